"""Activation budgets: what is recomputed has the same bits, and the bytes are
those that were asked for."""
import re
import shutil

import harness
import jobs
from harness import check

STEPS = 6


def run_job(context, budget):
    """(plan, log, weights) of the job at this budget; None is 'none'."""
    plan_path, out = context.path("plan.json"), context.path("out")
    options = [] if budget is None else ["--activation-budget", str(budget)]
    plan = harness.plan(context, context.path("job.yaml"), plan_path, *options)
    shutil.rmtree(out, ignore_errors=True)
    ranks = plan["ranks"] if "ranks" in plan else 2
    log = harness.execute(context, plan_path, ranks, context.path("run.jsonl"),
                          "--summary", context.path("summary.json"))
    # Own bytes are exact; bf16 matmuls have scratch that is not modelled.
    memory = harness.compare_memory(plan, context.path("summary.json"),
                                    128 * 1024)
    return plan, log, harness.load_weights(harness.find_weights(out)), memory


def layer_bytes(plan):
    """What each layer was given, from the plan's decisions."""
    found = []
    for decision in plan["decisions"]:
        match = re.fullmatch(r"budget of (\d+) bytes", decision["choice"])
        if decision["what"] == "checkpoint" and match:
            found.append(int(match[1]))
    return found


def budgets(model, **options):
    def case(context):
        jobs.make_job(context.path(), jobs.MODELS[model], ranks=2, steps=STEPS,
                      activation_checkpointing="none", max_grad_norm=1.0,
                      **options)
        _, want, want_weights, _ = run_job(context, None)
        plan, *_ = run_job(context, 1 << 40)
        most = sum(layer_bytes(plan))
        check(most > 0, "no layer has a budget")
        texts, before = [], None
        for percent in (100, 70, 45, 20, 5, 0):
            budget = most * percent // 100
            plan, log, weights, memory = run_job(context, budget)
            shares = layer_bytes(plan)
            check(sum(shares) <= budget,
                  f"{sum(shares)} bytes are kept, {budget} were allowed")
            for a, b in zip(log, want, strict=True):
                check(a["loss"] == b["loss"] and
                      a["grad_norm"] == b["grad_norm"],
                      f"at {percent} %, step {a['step']}: loss {a['loss']!r}, "
                      f"norm {a['grad_norm']!r}; with everything kept "
                      f"{b['loss']!r}, {b['grad_norm']!r}")
            harness.compare_weights(weights, want_weights, 0.0)
            check(before is None or sum(shares) < before,
                  f"{sum(shares)} bytes at {percent} %, no less than {before}")
            before = sum(shares)
            texts.append(f"{percent} %: {len(set(shares))} variants")
        return f"bit-equal, {memory}, " + ", ".join(texts)

    return case


def too_small_is_refused(context):
    """A budget that is no number of bytes, and one on a job without layers."""
    jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=2)
    output = harness.run([context.binary("accel-opt"), "plan",
                          context.path("job.yaml"),
                          "--activation-budget", "lots"], expect=64)
    check("expected bytes such as 2GiB, or 0" in output, output)
    return "refused"


CASES = [
    ("budgets-llama", budgets("gqa")),
    ("budgets-qwen3", budgets("qwen3")),
    ("budgets-llama-bf16-accumulation",
     budgets("tied", accumulation=2,
             precision={"param": "bf16", "reduce": "fp32", "output": "bf16"})),
    ("budget-refused", too_small_is_refused),
]
