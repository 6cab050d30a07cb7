"""accel-run splits layers over ranks: what they learn is what data-parallel
ranks learn, and what they hold is what the plan says."""
import json

import cancelled
import harness
import jobs
from harness import check
from training_cases import (BF16, LOSS_BF16, TURNED, WEIGHTS_BF16, case,
                            measured)

SCHEDULES = ("pipeline:\n  schedule: interleaved-1f1b\n  chunks: 2\n",
             "pipeline:\n  schedule: zb-h1\n", "pipeline:\n  schedule: zb-v\n")

def moves_to_other_meshes(context, axis="tp", model="halves", ranks=4,
                          alone_on=2, accumulation=1, **pipeline):
    """A run on an axis of 2 goes on with data parallelism alone, and back: the
    losses are those of a run that stays where it was."""
    jobs.make_job(context.path(), jobs.PEAKED[model], ranks=ranks, steps=30,
                  checkpoint_every=10, max_grad_norm=1.0,
                  accumulation=accumulation, **{axis: 2}, **pipeline)
    split = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), split)
    whole = harness.execute(context, split, ranks, context.path("whole.jsonl"))
    with open(context.path("job.yaml"), encoding="utf-8") as f:
        text = f.read()
    for schedule in SCHEDULES:
        text = text.replace(schedule, "")
    alone = context.path("alone.yaml")
    with open(alone, "w", encoding="utf-8") as f:
        f.write(text.replace(f"parallelism_config_{axis}_size: 2",
                             f"parallelism_config_{axis}_size: 1")
                .replace(f"  {axis}: 2", f"  {axis}: 1")
                .replace(f"num_processes: {ranks}",
                         f"num_processes: {alone_on}"))
    data = context.path("alone.json")
    harness.plan(context, alone, data)
    log = context.path("moved.jsonl")
    harness.execute(context, split, ranks, log, "--steps", "10")
    harness.execute(context, data, alone_on, log, "--resume", "auto",
                    "--steps", "20")
    moved = harness.execute(context, split, ranks, log, "--resume", "auto")
    check([r["step"] for r in moved] == list(range(1, 31)),
          f"the log has steps {[r['step'] for r in moved]}")
    loss = harness.compare_logs(moved, whole, "loss", 1e-5)
    norm = harness.compare_logs(moved, whole, "grad_norm", 1e-4)
    return f"loss {loss:.1e}, norm {norm:.1e}"


def both(context, job, tolerance=1e-6, tight=1e-4, **axes):
    """The job on two ranks that read samples, each split over `axes` or not:
    the same losses, norms and final weights. What one of them does is compared
    with PyTorch elsewhere."""
    from safetensors.torch import load_file

    logs, weights = [], []
    for name, mesh in (("split", axes or {"tp": 2}), ("alone", {})):
        ranks = 2
        for size in mesh.values():
            ranks *= size
        config = dict(job["accelerate"], num_processes=ranks)
        config.pop("parallelism_config", None)
        own = {k: v for k, v in job.items() if k != "mesh" and
               (mesh or k != "sequence_parallel")}
        if "sp" in mesh:
            own["mesh"] = {"dp_shard": 2, **mesh}
        else:
            config["parallelism_config"] = jobs.mesh_of(2, **mesh)
        logs.append(measured(context, {**own, "accelerate": config}, name,
                             ranks))
        if "adapter" in job:
            weights.append(load_file(context.path(
                "out", "model", "adapter_model.safetensors")))
        else:
            weights.append(harness.load_weights(
                harness.find_weights(context.path("out"))))
    text = f"loss {harness.compare_logs(*logs, 'loss', tolerance):.1e}"
    if logs[0][0].get("grad_norm") is not None:
        norm = harness.compare_logs(*logs, "grad_norm", 1e-4)
        text += f", norm {norm:.1e}"
    evaluated = [[r["eval_loss"] for r in log if "eval_loss" in r]
                 for log in logs]
    check(("eval" in job) == bool(evaluated[0]), "the evaluation is not logged")
    for a, b in zip(*evaluated):
        check(harness.relative(a, b) < tolerance, f"evaluation: {a}, {b}")
    with open(context.path("model", "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    worst = harness.compare_weights(*weights, tight,
                                    cancelled.rounding(job, config))
    return f"{text}, weights {worst:.1e}"


def as_alone(config, change=None, axes=None, weights=1e-4, **options):
    def compare(context):
        job = jobs.make_job(context.path(), config, ranks=4, tp=2,
                            **{"steps": 8, "max_grad_norm": 1.0, **options})
        job.update(change or {})
        return both(context, job, tight=weights, **(axes or {}))
    return compare


def first_values(context):
    """Without weights every rank makes its part of what one rank makes."""
    job = jobs.make_job(context.path(), jobs.PEAKED["halves"], ranks=4,
                        steps=2, tp=2)
    job["init"] = {"seed": 3}
    return both(context, job)


def as_torch_splits(share, change=None, **axes):
    """Losses of torch's own split of the model over the same two ranks."""
    def compare(context):
        job = jobs.make_job(context.path(), jobs.PEAKED["halves"], ranks=2,
                            steps=20, **axes)
        job.update(change or {})
        path = jobs.write_job(context.path(), job)
        harness.plan(context, path, context.path("plan.json"))
        got = harness.execute(context, context.path("plan.json"), 2,
                              context.path("run.jsonl"))
        want = harness.reference(path, 2, context.path("torch.jsonl"),
                                 share=share)
        check(want[-1]["loss"] < want[0]["loss"], "torch did not learn")
        return f"loss {harness.compare_logs(got, want, 'loss', 1e-5):.1e}"
    return compare


CASES = [
    ("tp2", case("halves", ranks=2, tp=2, steps=20, max_grad_norm=0.5,
                 learned=1.01)),
    ("tp2-ministral3", case("halves-ministral3", ranks=2, tp=2)),
    ("tp2-hunyuan", case("halves-hunyuan", ranks=2, tp=2)),
    ("tp2-glm4-moe", case("halves-glm4-moe", ranks=2, tp=2, steps=20,
                          lr=2e-3, learned=1.01)),
    ("tp2-glm4-moe-lite", case("halves-glm4-moe-lite", ranks=2, tp=2)),
    ("tp2-dp2", case("halves", ranks=4, tp=2, max_grad_norm=0.5)),
    ("tp2-hsdp", case("halves", ranks=8, tp=2, replicate=2, steps=20,
                      max_grad_norm=0.5, learned=1.01)),
    ("tp2-dp2-full-checkpointing",
     case("halves", ranks=4, tp=2, activation_checkpointing="full")),
    ("tp2-dp2-tied-accumulation",
     case("halves-tied", ranks=4, tp=2, accumulation=2, steps=20,
          max_grad_norm=1.0)),
    ("tp2-dp2-bias", case("halves-bias", ranks=4, tp=2, lr=2e-3, steps=20,
                          learned=1.01)),
    ("tp2-dp2-phi3", case("halves-phi3", ranks=4, tp=2, steps=20, lr=3e-3,
                          learned=1.01)),
    ("tp2-dp2-bf16",
     case("halves", ranks=4, tp=2, precision=BF16, loss=LOSS_BF16,
          weights=WEIGHTS_BF16)),
    ("tp2-dp2-qwen3", case("halves-qwen3", ranks=4, tp=2, steps=20,
                           max_grad_norm=1.0, learned=1.01, **TURNED)),
    # What is drawn depends on no mesh.
    ("dropout", as_alone(jobs.PEAKED["halves-dropout"], steps=6,
                         evaluation={"every": 3, "batches": 2})),
    ("adapter", as_alone(jobs.PEAKED["halves"], {"adapter": {
        "r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "target_modules": [
            "q_proj", "o_proj", "gate_proj", "down_proj"]}})),
    ("loss-in-pieces", as_alone(jobs.PEAKED["halves"], {"loss_chunks": 4})),
    ("whole-vocabulary", as_alone({**jobs.PEAKED["halves"],
                                   "vocab_size": 257})),
    ("gpt2", as_alone({**jobs.GPT2, "vocab_size": 256})),
    ("gemma2", as_alone({**jobs.GEMMA, "architectures": ["Gemma2ForCausalLM"],
                         "model_type": "gemma2", "sliding_window": 8,
                         "query_pre_attn_scalar": 16, "vocab_size": 256,
                         "num_attention_heads": 4, "num_key_value_heads": 2})),
    ("sequence", as_alone(jobs.PEAKED["halves"], {"sequence_parallel": True},
                          accumulation=2)),
    ("sequence-gpt2-dropout", as_alone(
        {**jobs.GPT2, "vocab_size": 256, "resid_pdrop": 0.1,
         "embd_pdrop": 0.1, "attn_pdrop": 0.1}, {"sequence_parallel": True})),
    ("sgd", as_alone(jobs.PEAKED["halves-tied"], optimizer={
        "name": "sgd", "lr": 0.05, "momentum": 0.9, "max_grad_norm": 0.5})),
    ("torch-parallelize-module", as_torch_splits("tp", tp=2)),
    ("torch-sequence-parallel", as_torch_splits(
        "sp", {"sequence_parallel": True}, tp=2)),
    ("other-meshes", moves_to_other_meshes),
    ("first-values", first_values),
]

# Functions of these families on the same axes are in partition_cases.
REPEATED = {"tp2-dp2-bias", "tp2-dp2-phi3", "tp2-dp2-qwen3"}
