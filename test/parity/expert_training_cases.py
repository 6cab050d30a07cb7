"""accel-run shares experts among ranks: what they learn is what ranks that each
compute all experts learn, and what they hold is what the plan says."""
import re
import shutil

import harness
import jobs
from harness import check
from tensor_training_cases import moves_to_other_meshes
from training_cases import BF16, LOSS_BF16, WEIGHTS_BF16, case

MODEL = "halves-qwen3-moe"


def loads_in_transformers(context):
    """What a run leaves is a model of transformers: it computes the loss of the
    step that follows. An evaluation counts what a step counts."""
    import fsdp2
    import torch
    import transformers

    job = jobs.make_job(context.path(), jobs.PEAKED["halves-mixtral"], ranks=4,
                        steps=6, ep=2, lr=3e-3, activation_checkpointing="full",
                        evaluation={"every": 2, "batches": 2})
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    full = harness.execute(context, plan_path, 4, context.path("full.jsonl"))
    harness.execute(context, plan_path, 4, context.path("run.jsonl"),
                    "--steps", "5")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        harness.find_weights(context.path("out")), dtype=torch.float32)
    data = fsdp2.Tokens(context.path("train.bin"), job["data"])
    losses = []
    with torch.no_grad():
        for rank in range(4):
            ids, labels = data.micro_batch(5 * 4 + rank)
            losses.append(float(torch.nn.functional.cross_entropy(
                model(ids).logits.flatten(0, 1), labels.flatten())))
    worst = harness.relative(full[5]["loss"], sum(losses) / 4)
    check(worst < 1e-5, f"transformers' loss differs by {worst:.1e}")
    check([r["step"] for r in full if "eval_loss" in r] == [2, 4, 6],
          "evaluations are not logged")
    return f"loss {worst:.1e}"


def overflow(context):
    """More rows than a rank's experts have a place for end the run, on every
    rank, with the layer and the bound that would have sufficed for this step:
    with the bounds that it says it trains on."""
    jobs.make_job(context.path(), jobs.PEAKED[MODEL], ranks=2, steps=2, ep=2)
    with open(context.path("job.yaml"), encoding="utf-8") as f:
        text = f.read()
    plan_path, bound, ends = context.path("plan.json"), 1.0, 0
    said = re.compile(r"rank [01]: model\.layers\.[13]: (\d+) rows go to the "
                      r"experts of rank [01] of 'ep', and the plan has a place "
                      r"for (\d+); plan with expert_imbalance of at least (\S+)")
    while ends < 8:
        with open(context.path("bound.yaml"), "w", encoding="utf-8") as f:
            f.write(text + f"expert_imbalance: {bound}\n")
        harness.plan(context, context.path("bound.yaml"), plan_path)
        shutil.rmtree(context.path("out"), ignore_errors=True)
        output = harness.run([context.binary("accel-run"), plan_path, "--nproc",
                              "2"], expect=None)
        found = said.search(output)
        if not found:
            break
        ends += 1
        check(int(found[1]) > int(found[2]) and float(found[3]) > bound,
              f"with {bound}: {found[0]}")
        bound = float(found[3])
    check(ends and "the trained model is in" in output,
          f"with {bound}, after {ends} that were too low:\n{output[-400:]}")
    return f"{bound} suffices"


def through_meshes(context):
    """A run goes from ep 2 x tp 2 to dp 2 and back, with its losses."""
    job = jobs.make_job(context.path(), jobs.PEAKED["even-mixtral"], ranks=4,
                        ep=2, tp=2, steps=18, checkpoint_every=6,
                        max_grad_norm=1.0)
    alone = {**job, "mesh": {"dp_shard": 2},
             "accelerate": {**job["accelerate"], "num_processes": 2}}
    plans = []
    for name, own, ranks in (("both", job, 4), ("alone", alone, 2)):
        plans.append((context.path(f"{name}.json"), ranks))
        harness.plan(context, jobs.write_job(context.path(), own,
                                             f"{name}.yaml"), plans[-1][0])
    whole = harness.execute(context, *plans[0], context.path("whole.jsonl"))
    log = context.path("moved.jsonl")
    harness.execute(context, *plans[0], log, "--steps", "6")
    harness.execute(context, *plans[1], log, "--resume", "auto", "--steps",
                    "12")
    moved = harness.execute(context, *plans[0], log, "--resume", "auto")
    loss = harness.compare_logs(moved, whole, "loss", 1e-5)
    norm = harness.compare_logs(moved, whole, "grad_norm", 1e-4)
    return f"loss {loss:.1e}, norm {norm:.1e}"


CASES = [
    ("ep2", case(MODEL, ranks=2, ep=2, steps=20, lr=3e-3, max_grad_norm=0.5,
                 learned=0.99)),
    ("ep2-dp2-accumulation", case(MODEL, ranks=4, ep=2, accumulation=2,
                                  steps=20, max_grad_norm=1.0, lr=3e-3)),
    ("pp2-ep2", case(MODEL, ranks=4, pp=2, ep=2, accumulation=2, steps=20,
                     max_grad_norm=1.0, lr=3e-3, learned=0.98)),
    # Rounding moves tokens to other experts, which Adam's whole steps show.
    ("ep2-bf16", case(MODEL, ranks=2, ep=2, steps=20, lr=1.5e-3, learned=0.995,
                      precision=BF16, loss=LOSS_BF16, weights=WEIGHTS_BF16)),
    # Experts are split over tp as well; each rank of sp has all of a sample's.
    ("ep2-tp2", case("even-qwen3-moe", ranks=4, ep=2, tp=2, steps=20, lr=3e-3,
                     max_grad_norm=0.5, learned=0.99)),
    ("ep2-sp2", case("even-qwen3-moe", ranks=4, ep=2, sp=2, steps=20, lr=3e-3,
                     max_grad_norm=0.5, learned=0.99)),
    ("mixtral-ep2-cp2", case("even-mixtral", ranks=4, ep=2, cp=2, steps=20,
                             lr=3e-3, accumulation=2, learned=0.99)),
    ("mixtral-ep2-tp2-resumed", through_meshes),
    ("loads-in-transformers", loads_in_transformers),
    ("overflow", overflow),
    ("other-meshes", lambda context: moves_to_other_meshes(
        context, "ep", MODEL, ranks=2, alone_on=2)),
]
