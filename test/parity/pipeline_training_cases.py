"""accel-run runs stages of a pipeline on its ranks: what they learn is what
data-parallel ranks learn, and what each stage holds is what the plan says."""
import json
import re

import harness
import jobs
from adapter_cases import write_adapter
from harness import check
from launch_cases import killed_rank
from tensor_training_cases import moves_to_other_meshes
from training_cases import BF16, LOSS_BF16, WEIGHTS_BF16, case, measured


def stages_of(context):
    """The peaks of all stages, predicted and measured, are equal and differ from
    each other; text."""
    with open(context.path("summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    predicted = summary["predicted"]["stage_own_peak_bytes"]
    measured = summary["measured"]["stage_own_peak_bytes"]
    check(predicted == measured,
          f"own buffers by stage: predicted {predicted}, measured {measured}")
    check(len(set(measured)) > 1, f"all stages hold {measured[0]} bytes")
    return f"stages {measured}"


def pipeline(model="gqa", **options):
    train = case(model, **{"pp": 2, "steps": 20, "learned": 1.01, **options})
    return lambda context: f"{train(context)}, {stages_of(context)}"


def interleaved(model="six", **options):
    return pipeline(model, **{"chunks": 2, **options})


def zero_bubble(model="six", **options):
    return pipeline(model, **{"pipeline": "zb-h1", "micro_batch": 1, **options})


def zero_bubble_v(model="six", **options):
    return zero_bubble(model, pipeline="zb-v", **options)


def as_torch(context, model="gqa", chunks=1, **options):
    """Losses of torch's own schedule over the same stages."""
    import fsdp2
    import torch_pipeline

    jobs.make_job(context.path(), jobs.PEAKED[model], ranks=2, pp=2, steps=20,
                  accumulation=4, micro_batch=1, chunks=chunks, **options)
    plan = harness.plan(context, context.path("job.yaml"),
                        context.path("plan.json"))
    got = harness.execute(context, context.path("plan.json"), 2,
                          context.path("run.jsonl"))
    begins = torch_pipeline.begins_of(plan)
    parts = sum(1 + len(stage.get("further", [])) for stage in plan["stages"])
    check(len(begins) == parts and begins == sorted(set(begins)),
          f"the parts begin with layers {begins}")
    port = fsdp2.free_port()
    harness.in_python(
        torch_pipeline.train,
        [(fsdp2.rank_environment(rank, 2, port),
          (context.path("job.yaml"), context.path("torch.jsonl"), begins))
         for rank in range(2)], context.path("torch.out"))
    want = harness.read_log(context.path("torch.jsonl"))
    check(want[-1]["loss"] < want[0]["loss"], "torch did not learn")
    return f"loss {harness.compare_logs(got, want, 'loss', 1e-5):.1e}"


def through_meshes(context):
    """A run goes from tp 2 to dp 2, to pp 2 x tp 2 and back to dp 2, with its
    steps' samples and its losses."""
    job = jobs.make_job(context.path(), jobs.PEAKED["halves-tied"], ranks=2,
                        tp=2, steps=20, checkpoint_every=5, max_grad_norm=1.0)
    plans = []
    for name, ranks, mesh, accumulation in (
            ("tp", 2, {"tp": 2}, 2), ("dp", 2, {"dp_shard": 2}, 1),
            ("pp", 4, {"pp": 2, "tp": 2}, 2)):
        own = {**job, "mesh": mesh, "gradient_accumulation_steps": accumulation,
               "accelerate": {**job["accelerate"], "num_processes": ranks}}
        path = jobs.write_job(context.path(), own, f"{name}.yaml")
        plans.append((context.path(f"{name}.json"), ranks))
        harness.plan(context, path, plans[-1][0])
    whole = harness.execute(context, *plans[0], context.path("whole.jsonl"))
    log = context.path("moved.jsonl")
    harness.execute(context, *plans[0], log, "--steps", "5")
    for leg, plan in enumerate((plans[1], plans[2], plans[1]), 2):
        moved = harness.execute(context, *plan, log, "--resume", "auto",
                                "--steps", str(5 * leg))
    loss = harness.compare_logs(moved, whole, "loss", 1e-5)
    norm = harness.compare_logs(moved, whole, "grad_norm", 1e-4)
    return f"loss {loss:.1e}, norm {norm:.1e}"


def as_alone(context, model="halves-dropout", ranks=4, accumulation=2,
             adapter=None, **axes):
    """What is drawn depends on no mesh, and neither does an evaluation: two
    stages, of two ranks that share sequences between layers where the axes have
    tp, and one rank."""
    job = jobs.make_job(context.path(), jobs.PEAKED[model], ranks=ranks, pp=2,
                        steps=6, evaluation={"every": 3, "batches": 2},
                        accumulation=accumulation,
                        **{"max_grad_norm": 1.0, **axes})
    if adapter:
        write_adapter(context.path("adapter"), adapter)
        job["adapter"] = "adapter"
    alone = {key: value for key, value in job.items()
             if key not in ("mesh", "pipeline")}
    alone["accelerate"] = jobs.accelerate_config("single", 1, "")
    # Ranks that share no sample read others, those of ep too.
    readers = ranks // 2
    for axis in ("cp", "sp", "tp"):
        readers //= axes.get(axis, 1)
    alone["gradient_accumulation_steps"] *= readers
    alone["eval"] = {**job["eval"],
                     "batches": job["eval"]["batches"] * readers}
    logs = []
    for name, own, ranks in (
            ("split", {**job, "sequence_parallel": "tp" in axes}, ranks),
            ("alone", alone, 1)):
        logs.append(measured(context, own, name, ranks))
        if name == "split":
            stages_of(context)
    text = f"loss {harness.compare_logs(*logs, 'loss', 1e-6):.1e}"
    evaluated = [[r["eval_loss"] for r in log if "eval_loss" in r]
                 for log in logs]
    check(len(evaluated[0]) == 2, f"evaluations: {evaluated}")
    for a, b in zip(*evaluated):
        check(harness.relative(a, b) < 1e-6, f"evaluation: {a}, {b}")
    if "max_grad_norm" in job["optimizer"]:
        worst = harness.compare_logs(*logs, "grad_norm", 1e-4)
        text += f", norm {worst:.1e}"
    return text


def profiled(context, model="six", **options):
    """A trace of --profile has each instruction of all stages, with the bytes of
    own buffers that the plan says."""
    jobs.make_job(context.path(), jobs.PEAKED[model], pp=2, steps=4,
                  micro_batch=1, **options)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))
    harness.execute(context, context.path("plan.json"), options["ranks"],
                    context.path("run.jsonl"),
                    "--profile", context.path("trace.json"))
    with open(context.path("trace.json"), encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    count = {1: 0, 2: 0}  # by stage
    for event in events:
        if event["ph"] == "X" and "measured_own_bytes" in event["args"]:
            own = event["args"]
            check(own["measured_own_bytes"] == own["predicted_own_bytes"],
                  f"{event}")
            count[event["pid"]] += 1
    check(min(count.values()) > 100, f"instructions {count}")
    return f"{count[1]} and {count[2]} instructions"


def beside(pipeline, model="six", **options):
    """A split backward beside another option, and one process."""
    return lambda context: as_alone(context, model, **{
        "pipeline": pipeline, "accumulation": 3, "micro_batch": 1, **options})


MIXTURE = "halves-qwen3-moe"
ADAPTER = {"r": 4, "target_modules": ["q_proj", "down_proj"]}
CASES = [
    ("pp2", pipeline(ranks=2, max_grad_norm=0.5)),
    ("pp2-dp2-accumulation", pipeline(ranks=4, accumulation=4, micro_batch=1,
                                      max_grad_norm=0.5)),
    ("pp3-accumulation", pipeline(ranks=3, pp=3, accumulation=5,
                                  micro_batch=1)),
    ("pp2-full-checkpointing",
     pipeline(ranks=2, accumulation=3, activation_checkpointing="full")),
    ("pp2-dp2-bf16", pipeline(ranks=4, accumulation=2, precision=BF16,
                              loss=LOSS_BF16, weights=WEIGHTS_BF16)),
    ("pp2-gpt2", pipeline("gpt2-untied", ranks=2, accumulation=2)),
    # The first and the last stage have the embedding; between them is another.
    ("pp2-dp2-tied", pipeline("tied", ranks=4, accumulation=2,
                              max_grad_norm=0.5)),
    ("pp3-gpt2-tied", pipeline("gpt2", ranks=3, pp=3, accumulation=3,
                               micro_batch=1)),
    ("pp2-tied-bf16", pipeline("tied", ranks=2, accumulation=2, precision=BF16,
                               loss=LOSS_BF16, weights=WEIGHTS_BF16)),
    ("pp2-tp2-tied", pipeline("halves-tied", ranks=4, tp=2, accumulation=2,
                              max_grad_norm=0.5)),
    ("pp2-cp2", pipeline("halves", ranks=4, cp=2, accumulation=2,
                         max_grad_norm=0.5)),
    ("pp2-sp2", pipeline("halves", ranks=4, sp=2, accumulation=2)),
    ("torch-1f1b", as_torch),
    ("gpipe-pp2-clipping", pipeline(ranks=2, accumulation=4, micro_batch=1,
                                    pipeline="gpipe", max_grad_norm=0.5)),
    ("gpipe-pp3-tied", pipeline("six-tied", ranks=3, pp=3, accumulation=5,
                                micro_batch=1, pipeline="gpipe")),
    ("gpipe-dp2-checkpointing",
     pipeline(ranks=4, accumulation=3, micro_batch=1, pipeline="gpipe",
              activation_checkpointing="full")),
    ("torch-gpipe", lambda context: as_torch(context, pipeline="gpipe")),
    ("interleaved-pp2", interleaved(ranks=2, accumulation=4, micro_batch=1,
                                    max_grad_norm=0.5)),
    ("interleaved-pp2-dp2-checkpointing",
     interleaved(ranks=4, accumulation=2, activation_checkpointing="full")),
    ("interleaved-pp3-clipping", interleaved(ranks=3, pp=3, accumulation=6,
                                             micro_batch=1, max_grad_norm=0.5)),
    ("interleaved-pp2-chunks3", interleaved(ranks=2, chunks=3, accumulation=4,
                                            micro_batch=1)),
    ("interleaved-pp2-tied", interleaved("six-tied", ranks=2, accumulation=4,
                                         micro_batch=1, max_grad_norm=0.5)),
    ("interleaved-pp2-tp2", interleaved(ranks=4, tp=2, accumulation=2,
                                        max_grad_norm=0.5)),
    ("torch-interleaved-1f1b",
     lambda context: as_torch(context, "six", chunks=2)),
    ("interleaved-to-data-parallel", lambda context: moves_to_other_meshes(
        context, "pp", "six", accumulation=4, chunks=2)),
    ("zb-h1-pp2", zero_bubble(ranks=2, accumulation=4, max_grad_norm=0.5)),
    ("zb-h1-pp2-dp2-checkpointing",
     zero_bubble(ranks=4, accumulation=3, activation_checkpointing="full")),
    ("zb-h1-pp3", zero_bubble(ranks=3, pp=3, accumulation=7,
                              max_grad_norm=0.5)),
    ("zb-h1-pp4", zero_bubble(ranks=4, pp=4, accumulation=6)),
    ("zb-h1-pp2-bf16", zero_bubble(ranks=2, accumulation=4, precision=BF16,
                                   loss=LOSS_BF16, weights=WEIGHTS_BF16)),
    ("zb-h1-pp3-tied", zero_bubble("six-tied", ranks=3, pp=3, accumulation=4,
                                   max_grad_norm=0.5)),
    ("zb-h1-pp2-gpt2", zero_bubble("gpt2-untied", ranks=2, accumulation=3)),
    ("zb-h1-pp2-tp2", zero_bubble(ranks=4, tp=2, accumulation=3,
                                  max_grad_norm=0.5)),
    ("torch-zero-bubble",
     lambda context: as_torch(context, "six", pipeline="zb-h1")),
    ("zb-h1-to-data-parallel", lambda context: moves_to_other_meshes(
        context, "pp", "six", accumulation=4, pipeline="zb-h1")),
    ("zb-v-pp2", zero_bubble_v(ranks=2, accumulation=4, max_grad_norm=0.5)),
    ("zb-v-pp2-dp2-checkpointing",
     zero_bubble_v(ranks=4, accumulation=3, activation_checkpointing="full")),
    ("zb-v-pp3", zero_bubble_v(ranks=3, pp=3, accumulation=7,
                               max_grad_norm=0.5)),
    ("zb-v-pp2-bf16", zero_bubble_v(ranks=2, accumulation=3, precision=BF16,
                                    loss=LOSS_BF16, weights=WEIGHTS_BF16)),
    ("zb-v-pp2-tp2", zero_bubble_v(ranks=4, tp=2, accumulation=3,
                                   max_grad_norm=0.5)),
    # Both chunks of the first stage have the embedding.
    ("zb-v-pp2-tied", zero_bubble_v("six-tied", ranks=2, accumulation=4,
                                    max_grad_norm=0.5)),
    ("zb-v-pp3-tied", zero_bubble_v("six-tied", ranks=3, pp=3,
                                    accumulation=7)),
    ("zb-v-pp2-dp2-tied", zero_bubble_v("six-tied", ranks=4, accumulation=3,
                                        max_grad_norm=0.5)),
    ("torch-zero-bubble-v",
     lambda context: as_torch(context, "six", pipeline="zb-v")),
    ("zb-v-to-data-parallel", lambda context: moves_to_other_meshes(
        context, "pp", "six", accumulation=4, pipeline="zb-v")),
    ("zb-v-tied-to-data-parallel", lambda context: moves_to_other_meshes(
        context, "pp", "six-tied", accumulation=4, pipeline="zb-v")),
    ("zb-v-dropout", lambda context: as_alone(
        context, "six-dropout", ranks=2, pipeline="zb-v")),
    ("zb-h1-cp2", beside("zb-h1", cp=2)),
    ("zb-v-sp2", beside("zb-v", sp=2, max_grad_norm=None)),
    ("zb-v-ep2", beside("zb-v", MIXTURE, ep=2)),
    ("zb-v-adapter", beside("zb-v", ranks=2, adapter=ADAPTER)),
    # Parameters that every rank of a stage holds, gathered once a step.
    ("zero-1", lambda context: as_alone(context, "six-tied", kind="zero1",
                                        accumulation=4, micro_batch=1)),
    ("zero-1-interleaved", lambda context: as_alone(
        context, "six", kind="zero1", chunks=2, accumulation=4,
        micro_batch=1)),
    ("zero-2-zb-v", lambda context: as_alone(
        context, "six", kind="zero2", pipeline="zb-v", accumulation=4,
        micro_batch=1)),
    ("zero-1-zb-v-tied", lambda context: as_alone(
        context, "six-tied", kind="zero1", pipeline="zb-v", accumulation=4,
        micro_batch=1)),
    ("zero-1-zb-v-tied-unclipped", lambda context: as_alone(
        context, "six-tied", kind="zero1", pipeline="zb-v", accumulation=4,
        micro_batch=1, max_grad_norm=None)),
    ("zero-2-zb-v-tied", lambda context: as_alone(
        context, "six-tied", kind="zero2", pipeline="zb-v", accumulation=4,
        micro_batch=1)),
    ("hsdp-zb-v-tied", lambda context: as_alone(
        context, "six-tied", ranks=8, replicate=2, pipeline="zb-v",
        accumulation=2, micro_batch=1, max_grad_norm=None)),
    ("hsdp-dropout", lambda context: as_alone(context, ranks=8, replicate=2)),
    ("killed-rank", lambda context: killed_rank(
        context, ("rank 1 of stage 1", "rank 0 of stage 0"), pp=2,
        accumulation=4)),
    ("other-meshes", lambda context: moves_to_other_meshes(context, "pp")),
    ("pp2-tp2-sequence-dropout", lambda context: as_alone(context, tp=2)),
    ("interleaved-dropout", lambda context: as_alone(
        context, "six-dropout", ranks=2, chunks=2)),
    ("zb-h1-dropout", lambda context: as_alone(
        context, "six-dropout", ranks=2, pipeline="zb-h1")),
    ("through-meshes", through_meshes),
    ("interleaved-tied-profile", lambda context: profiled(
        context, "six-tied", ranks=2, accumulation=4, chunks=2)),
    ("zb-v-tp2-tied-profile", lambda context: profiled(
        context, "six-tied", ranks=4, accumulation=3, tp=2, pipeline="zb-v",
        max_grad_norm=0.5)),
]
# Of each schedule two stages, three with tied weights, and one other axis stay.
REPEATED = {"pp2-tied-bf16", "pp2-sp2", "interleaved-pp2-dp2-checkpointing",
            "zb-h1-pp2-dp2-checkpointing", "zb-v-to-data-parallel",
            "pp3-gpt2-tied", "gpipe-pp3-tied", "interleaved-pp3-clipping",
            "interleaved-pp2-tied", "zb-h1-pp3", "zb-h1-pp4", "zb-h1-pp2-bf16",
            "zb-h1-to-data-parallel", "zb-v-pp3", "zb-v-pp2-bf16",
            "zb-v-pp2-tied", "zb-v-pp2-dp2-tied", "zb-v-pp2-dp2-checkpointing"}
