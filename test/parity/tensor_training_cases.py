"""accel-run splits layers over ranks: what they learn is what data-parallel
ranks learn, and what they hold is what the plan says."""
import harness
import jobs
from harness import check
from training_cases import BF16, KEY_BIAS, LOSS_BF16, WEIGHTS_BF16, case


def moves_to_other_meshes(context):
    """A run on tp 2 goes on with data parallelism alone, and back: the losses
    are those of a run that stays where it was."""
    jobs.make_job(context.path(), jobs.PEAKED["halves"], ranks=4, steps=30,
                  checkpoint_every=10, max_grad_norm=1.0, tp=2)
    split = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), split)
    whole = harness.execute(context, split, 4, context.path("whole.jsonl"))
    with open(context.path("job.yaml"), encoding="utf-8") as f:
        text = f.read()
    alone = context.path("alone.yaml")
    with open(alone, "w", encoding="utf-8") as f:
        f.write(text.replace("parallelism_config_tp_size: 2",
                             "parallelism_config_tp_size: 1")
                .replace("num_processes: 4", "num_processes: 2"))
    data = context.path("alone.json")
    harness.plan(context, alone, data)
    log = context.path("moved.jsonl")
    harness.execute(context, split, 4, log, "--steps", "10")
    harness.execute(context, data, 2, log, "--resume", "auto", "--steps", "20")
    moved = harness.execute(context, split, 4, log, "--resume", "auto")
    check([r["step"] for r in moved] == list(range(1, 31)),
          f"the log has steps {[r['step'] for r in moved]}")
    loss = harness.compare_logs(moved, whole, "loss", 1e-5)
    norm = harness.compare_logs(moved, whole, "grad_norm", 1e-4)
    return f"loss {loss:.1e}, norm {norm:.1e}"


def dropout(context):
    """What is drawn depends on no mesh: the losses of data parallelism alone,
    also where nothing is drawn any more."""
    job = jobs.make_job(context.path(), jobs.PEAKED["halves-dropout"], ranks=4,
                        steps=6, tp=2, lr=1e-2, evaluation={
                            "every": 3, "batches": 2})
    logs = []
    for tp in (2, 1):
        config = dict(job["accelerate"], num_processes=2 * tp)
        config["parallelism_config"] = jobs.mesh_of(2, tp)
        path = jobs.write_job(context.path(), {**job, "accelerate": config},
                              f"tp{tp}.yaml")
        plan = context.path(f"tp{tp}.json")
        harness.plan(context, path, plan)
        logs.append(harness.execute(context, plan, 2 * tp,
                                    context.path(f"tp{tp}.jsonl")))
    loss = harness.compare_logs(*logs, "loss", 1e-6)
    evaluated = [[r["eval_loss"] for r in log if "eval_loss" in r]
                 for log in logs]
    check(len(evaluated[0]) == 2, f"evaluated {len(evaluated[0])} times")
    for a, b in zip(*evaluated):
        check(harness.relative(a, b) < 1e-6, f"evaluation: {a}, {b}")
    return f"loss {loss:.1e}"


def first_values(context):
    """Without weights every rank makes its part of what one rank makes."""
    job = jobs.make_job(context.path(), jobs.PEAKED["halves"], ranks=4,
                        steps=1, tp=2)
    job["init"] = {"seed": 3}
    losses = []
    for tp in (2, 1):
        config = dict(job["accelerate"], num_processes=2 * tp)
        config["parallelism_config"] = jobs.mesh_of(2, tp)
        path = jobs.write_job(context.path(), {**job, "accelerate": config},
                              f"tp{tp}.yaml")
        plan = context.path(f"tp{tp}.json")
        harness.plan(context, path, plan)
        losses.append(harness.execute(context, plan, 2 * tp,
                                      context.path(f"tp{tp}.jsonl"))[0]["loss"])
    check(harness.relative(*losses) < 1e-6, f"losses {losses}")
    return f"{harness.relative(*losses):.1e}"


CASES = [
    ("tp2-dp2", case("halves", ranks=4, tp=2, max_grad_norm=0.5)),
    ("tp2-dp2-full-checkpointing",
     case("halves", ranks=4, tp=2, activation_checkpointing="full")),
    ("tp2-dp2-tied-accumulation",
     case("halves-tied", ranks=4, tp=2, accumulation=2, steps=20,
          max_grad_norm=1.0)),
    ("tp2-dp2-bias", case("halves-bias", ranks=4, tp=2, lr=2e-3, steps=20,
                          learned=1.01)),
    ("tp2-dp2-phi3", case("halves-phi3", ranks=4, tp=2, steps=20, lr=3e-3,
                          weights=KEY_BIAS, learned=1.01)),
    ("tp2-dp2-bf16",
     case("halves", ranks=4, tp=2, precision=BF16, loss=LOSS_BF16,
          weights=WEIGHTS_BF16)),
    ("tp2-dp2-qwen3", case("halves-qwen3", ranks=4, tp=2, steps=20,
                           max_grad_norm=1.0, learned=1.01)),
    ("dropout", dropout),
    ("other-meshes", moves_to_other_meshes),
    ("first-values", first_values),
]
