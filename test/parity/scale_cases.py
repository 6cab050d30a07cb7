"""`accel-opt checkpoint convert` carries the loss scale of fp16, or says that it
does not."""
import os

import harness
import jobs
from convert_checkpoint_cases import convert
from harness import check


def untold(context):
    """Without a plan, which has the scaler's other keys, it is named."""
    import torch
    from safetensors.torch import save_file
    folder = context.path("state")
    os.makedirs(folder)
    save_file({"w": torch.ones(3, 2)}, os.path.join(folder, "model.safetensors"))
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    torch.save({**scaler.state_dict(), "_growth_tracker": 7},
               os.path.join(folder, "scaler.pt"))
    answer = convert(context, folder, context.path("dcp"), "dcp")["converted"]
    check(answer["left_behind"] == {"loss scale": ["scaler.pt"]}, answer)
    check(not os.path.exists(context.path("dcp", "scaler.pt")), "half of it")
    text = harness.run([context.binary("accel-opt"), "checkpoint", "convert", folder,
                        "-o", context.path("said"), "--to", "dcp"])
    check("not carried: loss scale (scaler.pt)" in text, text)
    torch.save({}, os.path.join(folder, "scaler.pt"))  # it is not enabled
    answer = convert(context, folder, context.path("off"), "dcp")["converted"]
    check(answer["left_behind"] == {}, answer)


def carried(context):
    """A run's scale in a torch DCP, and from there back; DeepSpeed takes none."""
    import torch
    job = jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=3,
                        checkpoint_every=3)
    job["accelerate"]["mixed_precision"] = "fp16"
    job["grad_scaler"] = {"init_scale": 512, "growth_interval": 2,
                          "backoff_factor": 0.25}
    jobs.write_job(context.path(), job)
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    harness.execute(context, plan, 2, context.path("run.jsonl"))
    last = context.path("out", "step-00000003")
    answer = convert(context, last, context.path("dcp"), "dcp", "--plan",
                     plan)["converted"]
    check(answer["left_behind"] == {}, answer)
    check(answer["files"] == len(os.listdir(context.path("dcp"))), answer)
    saved = torch.load(context.path("dcp", "scaler.pt"))
    check(saved == {"scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.25,
                    "growth_interval": 2, "_growth_tracker": 1}, saved)
    scaler = torch.amp.GradScaler("cpu")
    scaler.load_state_dict(saved)
    convert(context, context.path("dcp"), context.path("back"), "accel-run",
            "--samples", str(answer["samples"]))
    convert(context, context.path("back"), context.path("again"), "dcp", "--plan",
            plan)
    check(torch.load(context.path("again", "scaler.pt")) == saved, "another scale")
    for to, options in (("dcp", ()), ("deepspeed", ("--plan", plan))):
        answer = convert(context, last, context.path("without-" + to), to,
                         *options)["converted"]
        check(answer["left_behind"] == {"loss scale": ["state.json"]}, (to, answer))
    # A run in fp32 has none.
    job["accelerate"]["mixed_precision"] = "no"
    del job["grad_scaler"]
    job["checkpoint"]["dir"] = "plain"
    jobs.write_job(context.path(), job)
    harness.plan(context, context.path("job.yaml"), plan)
    harness.execute(context, plan, 2, context.path("plain.jsonl"))
    answer = convert(context, context.path("plain", "step-00000003"),
                     context.path("plain-dcp"), "dcp")["converted"]
    check(answer["left_behind"] == {}, answer)


CASES = [("scale-untold", untold), ("scale-carried", carried)]
