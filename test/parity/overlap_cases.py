"""accel-run computes beside what ranks exchange in a function, and beside
reductions: the losses are those of a plan without overlap to the bit, and each
holds what it says."""
import math

import harness
import jobs
from harness import check


def started(plan, kinds=("",)):
    return sum(i["op"].endswith(".start") and any(k in i["op"] for k in kinds)
               for f in plan["functions"] for i in f["instructions"])


def awaited(plan):
    return sum(i["op"] == "sharding::await" for f in plan["functions"]
               for i in f["instructions"])


def largest(plan):
    """Bytes of the largest tensor that a started exchange reads or makes."""
    sizes = {"f32": 4, "bf16": 2, "i32": 4, "i64": 8}
    result = 0
    for function in plan["functions"]:
        for i in function["instructions"]:
            if i["op"].endswith(".start"):
                for slot in (int(i["args"][0][1:]), i["results"][0]):
                    dtype, shape = function["slots"][slot][:2]
                    result = max(result, sizes[dtype] * math.prod(shape))
    return (result + 63) // 64 * 64


def same_bits(model, ranks=2, least=1, change=None, kinds=("",), **options):
    def compare(context):
        job = jobs.make_job(context.path(), model, ranks=ranks,
                            **{"steps": 10, "max_grad_norm": 1.0, **options})
        job.update(change or {})
        path = jobs.write_job(context.path(), job, "job.yaml")
        logs, peaks, counts, extra = [], [], [], 0
        for name, flags in (("beside", ()), ("alone", ("--no-overlap",))):
            plan_path = context.path(f"{name}.json")
            plan = harness.plan(context, path, plan_path, *flags)
            extra = max(extra, largest(plan))
            check(started(plan) == awaited(plan),
                  f"{started(plan)} are started, {awaited(plan)} awaited")
            counts.append(started(plan, kinds))
            logs.append(harness.execute(
                context, plan_path, ranks, context.path(f"{name}.jsonl"),
                "--summary", context.path("summary.json")))
            harness.compare_memory(plan, context.path("summary.json"))
            peaks.append(plan["predicted"]["memory"]["peak_bytes"])
        check(counts[0] >= least and counts[1] == 0,
              f"{counts[0]} exchanges are started, {counts[1]} without overlap")
        for a, b in zip(*logs):
            check(a["loss"] == b["loss"] and
                  a.get("grad_norm") == b.get("grad_norm"),
                  f"step {a['step']}: loss {a['loss']!r}, norm "
                  f"{a.get('grad_norm')!r}; without overlap {b['loss']!r}, "
                  f"{b.get('grad_norm')!r}")
        check(peaks[0] <= peaks[1] + extra,
              f"a peak of {peaks[0]} bytes, {peaks[1]} without overlap, of "
              f"which at most {extra} are more")
        return f"bit-equal, {counts[0]} started"
    return compare


def waiting(key, model, ranks=2, **options):
    """The more reductions a backward waits for, or gathers it holds back, the
    less is held at its peak."""
    def compare(context):
        job = jobs.make_job(context.path(), jobs.PEAKED[model], ranks=ranks,
                            **{"steps": 10, "max_grad_norm": 1.0, **options})
        del job["checkpoint"]
        logs, peaks = [], []
        for number in (0, 1, 100):
            job.update({"await_reductions": 0, "hold_gathers": 0, key: number})
            path = jobs.write_job(context.path(), job, "job.yaml")
            plan_path = context.path(f"{number}.json")
            plan = harness.plan(context, path, plan_path)
            logs.append(harness.execute(
                context, plan_path, ranks, context.path(f"{number}.jsonl"),
                "--summary", context.path("summary.json")))
            # oneDNN's scratch in bf16 is not counted.
            harness.compare_memory(plan, context.path("summary.json"),
                                   128 * 1024 if "precision" in options else 0)
            peaks.append(plan["predicted"]["memory"]["own_peak_bytes"])
        for other in logs[1:]:
            for a, b in zip(logs[0], other):
                check(a["loss"] == b["loss"] and
                      a.get("grad_norm") == b.get("grad_norm"),
                      f"step {a['step']}: loss {a['loss']!r}, norm "
                      f"{a.get('grad_norm')!r}; waiting {b['loss']!r}, "
                      f"{b.get('grad_norm')!r}")
        check(peaks[2] < peaks[0] and peaks[2] <= peaks[1] <= peaks[0],
              f"peaks of {peaks} bytes, the more is waited for")
        return f"bit-equal, peaks {peaks}"
    return compare


def awaiting(model, **options):
    return waiting("await_reductions", model, **options)


def holding(model, **options):
    return waiting("hold_gathers", model, **options)


CASES = [
    ("gathers", holding("gqa")),
    ("gathers-accumulation",
     holding("tied", ranks=3, accumulation=2, max_grad_norm=None)),
    ("gathers-hybrid", holding("gqa", ranks=4, replicate=2)),
    ("gathers-bf16-full-checkpointing",
     holding("gqa", precision={"param": "bf16", "reduce": "fp32"},
             activation_checkpointing="full")),
    ("reductions", awaiting("gqa")),
    ("reductions-accumulation",
     awaiting("tied", ranks=3, accumulation=2, max_grad_norm=None)),
    ("reductions-hybrid", awaiting("gqa", ranks=4, replicate=2)),
    ("reductions-bf16-full-checkpointing",
     awaiting("gqa", precision={"param": "bf16", "reduce": "fp32"},
              activation_checkpointing="full")),
    ("tp2", same_bits(jobs.PEAKED["halves"], tp=2)),
    ("tp2-sequence", same_bits(jobs.PEAKED["halves"],
                               change={"sequence_parallel": True}, tp=2)),
    ("tp2-full-checkpointing",
     same_bits(jobs.PEAKED["halves"], tp=2, activation_checkpointing="full")),
    ("tp2-dp2-loss-in-pieces",
     same_bits(jobs.PEAKED["halves"], ranks=4, change={"loss_chunks": 4},
               tp=2, accumulation=2)),
    ("cp2", same_bits(jobs.PEAKED["halves"], cp=2)),
    ("cp4", same_bits(jobs.PEAKED["halves"], ranks=4, cp=4)),
    ("cp2-tp2", same_bits(jobs.PEAKED["halves"], ranks=4, cp=2, tp=2)),
    ("sp2", same_bits(jobs.PEAKED["halves"], least=0, sp=2)),
    ("ep2", same_bits(jobs.PEAKED["halves-mixtral"], least=0, ep=2)),
    # Rows are on their way beside the shared expert, forward and backward.
    ("ep2-shared-expert",
     same_bits(jobs.PEAKED["halves-qwen2-moe"], least=2,
               kinds=("dispatch", "combine"), ep=2)),
    ("ep4-shared-expert",
     same_bits(jobs.PEAKED["halves-qwen2-moe"], ranks=4, least=1,
               change={"expert_imbalance": 4}, kinds=("dispatch", "combine"),
               ep=4)),
]
