"""accel-run executes DeepSpeed's ZeRO stages: what ranks learn is what PyTorch's
DDP learns, and what they hold is what the plan says."""
import json

import harness
import jobs
from harness import check
from training_cases import BF16, LOSS_BF16, WEIGHTS_BF16, case, train_both


def gathers(context, name="plan.json"):
    """Gathers of the programs of a step, by program."""
    with open(context.path(name), encoding="utf-8") as f:
        plan = json.load(f)
    programs = {p["name"]: p for p in plan["programs"]}
    return plan, {n: [i for i in p["instructions"] if i["kind"] == "all_gather"]
                  for n, p in programs.items()}


def whole(context):
    """Stage 1: nothing is gathered for a micro-batch or an evaluation, every unit
    once a step, and gradients are reduced in the last micro-batch alone."""
    text = train_both(context, "tied", kind="zero1", ranks=3, accumulation=3,
                      steps=16, micro_batch=1, max_grad_norm=0.5,
                      learned=1.01, evaluation={"every": 8, "batches": 2})
    plan, found = gathers(context)
    counts = {name: len(each) for name, each in found.items()}
    check(counts == {"first": 0, "middle": 0, "last": len(plan["units"]),
                     "eval": 0}, counts)
    reduced = [p["name"] for p in plan["programs"] for i in p["instructions"]
               if i["kind"] == "reduce_scatter"]
    check(set(reduced) == {"last"}, reduced)
    return text


def json_file(context):
    """Accumulation, clipping, and the optimizer's numbers of a JSON file."""
    job = jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="zero2",
                        ranks=2, steps=16, accumulation=2)
    config = {"zero_optimization": {"stage": 2},
              "gradient_accumulation_steps": 2, "gradient_clipping": 0.5,
              "train_batch_size": 8, "train_micro_batch_size_per_gpu": "auto",
              "optimizer": {"type": "AdamW", "params": {
                  "lr": 2e-3, "betas": [0.8, 0.9], "eps": "auto",
                  "weight_decay": 0.2}}}
    with open(context.path("ds.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    own = {k: v for k, v in job.items()
           if k not in ("gradient_accumulation_steps", "optimizer")}
    own["accelerate"] = {**job["accelerate"],
                         "deepspeed_config": {"deepspeed_config_file": "ds.json"}}
    jobs.write_job(context.path(), {**own, "optimizer": {"eps": 1e-7}})
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    got = harness.execute(context, plan_path, 2, context.path("run.jsonl"))
    same = {**job, "gradient_accumulation_steps": 2, "optimizer": {
        "name": "adamw", "lr": 2e-3, "betas": [0.8, 0.9], "eps": 1e-7,
        "weight_decay": 0.2, "max_grad_norm": 0.5}}
    want = harness.reference(
        jobs.write_job(context.path(), same, "reference.yaml"), 2,
        context.path("reference.jsonl"), context.path("reference.safetensors"))
    loss = harness.compare_logs(got, want, "loss", 1e-5)
    norm = harness.compare_logs(got, want, "grad_norm", 1e-4)
    return f"loss {loss:.1e}, norm {norm:.1e}"


def to_fsdp2_and_back(context):
    """ZeRO 2 goes on as FSDP2, and back: the bits of a run that stays."""
    options = {"ranks": 2, "steps": 24, "checkpoint_every": 8,
               "max_grad_norm": 1.0}
    jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="zero2", **options)
    zero, fsdp = context.path("zero.json"), context.path("fsdp.json")
    harness.plan(context, context.path("job.yaml"), zero)
    stays = harness.execute(context, zero, 2, context.path("stays.jsonl"))
    jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="fsdp", **options)
    harness.plan(context, context.path("job.yaml"), fsdp)
    log = context.path("moved.jsonl")
    harness.execute(context, zero, 2, log, "--steps", "8")
    harness.execute(context, fsdp, 2, log, "--resume", "auto", "--steps", "16")
    moved = harness.execute(context, zero, 2, log, "--resume", "auto")
    check([r["step"] for r in moved] == list(range(1, 25)),
          f"the log has steps {[r['step'] for r in moved]}")
    for a, b in zip(moved, stays):
        check(a["loss"] == b["loss"], f"step {a['step']}: loss {a['loss']!r}, "
              f"without the moves {b['loss']!r}")
    return "bit-equal"


def narrow(context):
    """Stage 2 in bf16 against FSDP2 of the same dtypes."""
    options = {"ranks": 2, "precision": BF16, "steps": 20}
    fsdp = jobs.make_job(context.path(), jobs.MODELS["gqa"], **options)
    jobs.write_job(context.path(), fsdp, "reference.yaml")
    jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="zero2", **options)
    plan_path = context.path("plan.json")
    plan = harness.plan(context, context.path("job.yaml"), plan_path)
    got = harness.execute(context, plan_path, 2, context.path("run.jsonl"),
                          "--summary", context.path("summary.json"))
    want = harness.reference(context.path("reference.yaml"), 2,
                             context.path("reference.jsonl"),
                             context.path("reference.safetensors"))
    loss = harness.compare_logs(got, want, "loss", LOSS_BF16)
    memory = harness.compare_memory(plan, context.path("summary.json"),
                                    128 * 1024)
    return f"loss {loss:.1e}, {memory}"


CASES = [
    ("stage-1-accumulation-clipping", whole),
    ("stage-2", case(kind="zero2", ranks=2, steps=30)),
    ("stage-2-accumulation", case("tied", kind="zero2", ranks=2, accumulation=2,
                                  micro_batch=1, steps=16, learned=1.01)),
    ("stage-2-bf16", narrow),
    ("stage-2-json", json_file),
    ("stage-3-clipping", case(kind="zero3", ranks=2, steps=20,
                              max_grad_norm=0.5, learned=1.01)),
    ("stage-2-to-fsdp2", to_fsdp2_and_back),
]
