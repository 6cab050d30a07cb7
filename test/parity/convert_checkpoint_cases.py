"""`accel-opt checkpoint convert`: a run goes on in another trainer with the
losses that it would have had."""
import json
import os
import sys

import harness
import jobs
from harness import check
from merge_cases import equal, loaded

STEPS, HALF = 8, 4


def convert(context, folder, output, to, *options, expect=0):
    return json.loads(harness.run(
        [context.binary("accel-opt"), "checkpoint", "convert", folder, "-o", output,
         "--to", to, "--format", "json", *options], expect=expect))


def accelerated(context, log, *arguments):
    """Accelerate's FSDP2 on two CPU ranks; the log's records."""
    path = context.path(log)
    harness.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                 "--nproc-per-node", "2",
                 os.path.join(harness.HERE, "accelerate_resume.py"),
                 context.path("job.yaml"), path, *map(str, arguments)])
    return harness.read_log(path)


def job(context, model="tied"):
    jobs.make_job(context.path(), jobs.MODELS[model], ranks=2, steps=STEPS,
                  checkpoint_every=HALF)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))


def from_accelerate(*options):
    """save_state of Accelerate's FSDP2, resumed by accel-run."""
    def case(context):
        job(context)
        want = accelerated(context, "accelerate.jsonl", 0, STEPS, "--save",
                           context.path("state"), "--at", HALF, *options)
        os.makedirs(context.path("from"))
        folder = context.path("from", f"step-{HALF:08}")
        # Two ranks, two sequences a micro-batch.
        answer = convert(context, context.path("state"), folder, "accel-run",
                         "--samples", str(HALF * 2 * 2))["converted"]
        check(answer["steps"] == HALF and answer["states"] > 0, answer)
        got = harness.execute(context, context.path("plan.json"), 2,
                              context.path("run.jsonl"), "--resume", folder)
        check([r["step"] for r in got] == list(range(HALF + 1, STEPS + 1)), got)
        loss = harness.compare_logs(got, want[HALF:], "loss", 1e-6)
        # What it holds is what Accelerate saved.
        convert(context, context.path("state"), context.path("weights"), "safetensors")
        harness.run([context.binary("accel-opt"), "checkpoint", "merge", folder,
                     "-o", context.path("merged")])
        equal(loaded(context.path("merged")), loaded(context.path("weights")))
        return f"losses after {HALF} steps of Accelerate: {loss:.1e}"

    return case


def refused(context):
    """What cannot be resumed is named, and nothing is left."""
    import torch

    def finding(name, code, *words, output="no", options=("--samples", "8")):
        answer = convert(context, context.path(name), context.path(output),
                         "accel-run", *options,
                         expect=4 if code == "not-supported" else 1)
        first = answer["diagnostics"][0]
        check(answer["converted"] is None and first["code"] == code
              and all(w in first["message"] for w in words), f"{name}: {first}")
        left = [n for n in os.listdir(context.work) if n.startswith(output)]
        check(not left, left)

    def saved(name, states, weights=None):
        os.makedirs(context.path(name))
        torch.save(weights or {"w": torch.ones(3, 2), "v": torch.ones(4)},
                   context.path(name, "pytorch_model_fsdp.bin"))
        torch.save({"state": states, "param_groups": []},
                   context.path(name, "optimizer.bin"))

    def state(step, shape):
        return {"step": torch.tensor(float(step)), "exp_avg": torch.zeros(shape)}

    saved("numbered", {0: state(1, (3, 2))})
    finding("numbered", "not-supported", "'0'", "no parameter")
    saved("steps", {"w": state(1, (3, 2)), "v": state(2, (4,))})
    finding("steps", "not-supported", "1 steps of one parameter and 2")
    saved("half", {"w": state(1.5, (3, 2))})
    finding("half", "invalid-checkpoint", "1.5")
    saved("large", {"w": {"step": torch.zeros(1 << 20)}})
    finding("large", "invalid-checkpoint", "is no number")
    saved("shape", {"w": state(1, (2, 3))})
    finding("shape", "not-supported", "another shape")
    saved("weights", {})
    finding("weights", "not-supported", "no states")
    saved("good", {"w": state(2, (3, 2))})
    finding("good", "conflicting-arguments", "2 steps", output="step-00000003")
    convert(context, context.path("good"), context.path("done"), "accel-run",
            "--samples", "8")
    again = convert(context, context.path("good"), context.path("done"), "accel-run",
                    "--samples", "8", expect=1)
    check(again["diagnostics"][0]["code"] == "output-exists", again)
    text = harness.run([context.binary("accel-opt"), "checkpoint", "convert",
                        context.path("good"), "-o", context.path("no"),
                        "--to", "accel-run"], expect=64)
    check("--samples" in text, text)
    return "each in a sentence"


CASES = [
    ("convert-from-accelerate", from_accelerate()),
    ("convert-from-accelerate-full", from_accelerate("--full")),
    ("convert-refused", refused),
]
