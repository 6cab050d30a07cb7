"""Each optimizer that accel-run executes against the update as published; the
bytes of predicted ones against the states that the libraries make."""
import json
import shutil

import executor_cases
import harness
import jobs
import published_optimizers
import saved_tensors
import tracked_step
from harness import check
from training_cases import (BF16, LOSS_BF16, WEIGHTS_BF16, case as training,
                            train_both)

STEPS = 20
# Newton-Schulz rounds to 8 bits what differs in the last of 24, and steps are
# as large as ever where little is left to learn; Lion's are, in each element. An
# addmm of one CPU is not the sum of another: with MKL's plainest instructions
# Muon is 4e-4 of a weight apart, Lion 9e-6 of a loss and, where a sign differs
# once, two steps (6e-4) of a weight.
ROUNDED = {"muon": dict(loss=5e-5, weights=1.2e-3),
           "lion": dict(loss=5e-5, weights=7e-4)}


def name_of(optimizer, settings):
    rest = [f"{key}-{value}" for key, value in settings.items()
            if key not in ("lr", "betas")]
    return "-".join([optimizer, *rest]).lower()


def trains(optimizer, settings, ranks):
    def case(context):
        return train_both(
            context, "gqa", ranks=ranks, kind="single" if ranks == 1 else "fsdp",
            steps=STEPS, learned=1.0, **ROUNDED.get(optimizer, {}),
            optimizer={"name": optimizer, **settings})
    return case


def resumes(optimizer, settings):
    """A run that stops after half of its steps and resumes has the same bits."""
    def case(context):
        jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=STEPS,
                      checkpoint_every=STEPS // 2,
                      optimizer={"name": optimizer, **settings})
        plan_path, out = context.path("plan.json"), context.path("out")
        harness.plan(context, context.path("job.yaml"), plan_path)
        whole = harness.execute(context, plan_path, 2,
                                context.path("whole.jsonl"))
        weights = harness.load_weights(harness.find_weights(out))
        shutil.rmtree(out)
        log = context.path("resumed.jsonl")
        harness.execute(context, plan_path, 2, log, "--steps",
                        str(STEPS // 2))
        resumed = harness.execute(context, plan_path, 2, log, "--resume",
                                  "auto")
        check([r["step"] for r in resumed] == list(range(1, STEPS + 1)),
              f"the resumed log has steps {[r['step'] for r in resumed]}")
        for a, b in zip(resumed, whole):
            check(a["loss"] == b["loss"],
                  f"step {a['step']}: loss {a['loss']!r}, without the break "
                  f"{b['loss']!r}")
        harness.compare_weights(harness.load_weights(harness.find_weights(out)),
                                weights, 0.0)
        return "bit-equal"
    return case


def moves(optimizer, settings, loss):
    """Three ranks go on with what two have written, and two with that: the
    losses of a run that stays."""
    def case(context):
        job = jobs.make_job(context.path(), jobs.PEAKED["gqa"], ranks=2,
                            steps=9, accumulation=3, micro_batch=1,
                            checkpoint_every=3,
                            optimizer={"name": optimizer, **settings})
        two, three = context.path("plan.json"), context.path("three.json")
        harness.plan(context, context.path("job.yaml"), two)
        other = dict(job, gradient_accumulation_steps=2,
                     accelerate=dict(job["accelerate"], num_processes=3))
        harness.plan(context, jobs.write_job(context.path(), other,
                                             "three.yaml"), three)
        whole = harness.execute(context, two, 2, context.path("whole.jsonl"))
        shutil.rmtree(context.path("out"))
        log = context.path("moved.jsonl")
        harness.execute(context, two, 2, log, "--steps", "3")
        harness.execute(context, three, 3, log, "--resume", "auto", "--steps",
                        "6")
        moved = harness.execute(context, two, 2, log, "--resume", "auto")
        check([r["step"] for r in moved] == list(range(1, 10)),
              f"the log has steps {[r['step'] for r in moved]}")
        return f"loss {harness.compare_logs(moved, whole, 'loss', loss):.1e}"
    return case


def library_optimizers(name, parameters):
    """What `--optim name` makes, as transformers does; Muon beside the AdamW
    that its documentation puts beside it."""
    import torch
    import transformers

    parameters = list(parameters)
    if name == "muon":
        return [torch.optim.Muon([p for p in parameters if p.ndim == 2]),
                torch.optim.AdamW([p for p in parameters if p.ndim != 2])]
    if name == "adafactor_torch":
        return [torch.optim.Adafactor(parameters)]
    if name == "adafactor":
        return [transformers.Adafactor(parameters, lr=1e-3,
                                       scale_parameter=False,
                                       relative_step=False)]
    if name == "sgd":
        return [torch.optim.SGD(parameters, lr=1e-3)]
    if name.split()[0] in ("adagrad", "rmsprop"):
        made = {"adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}
        return [made[name.split()[0]](parameters,
                                      foreach=name.endswith(" foreach"))]
    if name in TORCHAO:
        import torchao.optim
        made = {"adamw_torch_8bit": torchao.optim.AdamW8bit,
                "adamw_torch_4bit": torchao.optim.AdamW4bit}[name]
        return [made(parameters, block_size=256)]
    if name.startswith("adamw_torch"):
        return [torch.optim.AdamW(parameters, fused=name.endswith("fused"))]
    import bitsandbytes
    made = {"adamw_8bit": bitsandbytes.optim.AdamW8bit,
            "lion_8bit": bitsandbytes.optim.Lion8bit,
            "lion_32bit": bitsandbytes.optim.Lion,
            "rmsprop_bnb": bitsandbytes.optim.RMSprop,
            "rmsprop_bnb_8bit": bitsandbytes.optim.RMSprop8bit,
            "ademamix": bitsandbytes.optim.AdEMAMix,
            "ademamix_8bit": bitsandbytes.optim.AdEMAMix8bit,
            "paged_adamw_32bit": bitsandbytes.optim.AdamW}[name]
    return [made(parameters)]


class All:
    """Several optimizers as one."""

    def __init__(self, optimizers):
        self.optimizers = optimizers
        self.param_groups = [g for o in optimizers for g in o.param_groups]
        self.state = {p: s for o in optimizers for p, s in o.state.items()}

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()


def library_states(folder, dtype, name):
    """Bytes of each parameter's state tensors after a step, as an allocator
    rounds them; steps and the tables that 8 bits index are not counted."""
    from unittest import mock

    import torch

    model = tracked_step.build(folder, dtype)
    made = library_optimizers(name, model.parameters())
    ids = torch.randint(0, model.config.vocab_size, (1, 8))
    # torchao compiles the update of each shape, which changes no state.
    with mock.patch.object(torch, "compile", lambda update, **_: update):
        tracked_step.one_step(model, All(made), ids)
    total = 0
    for optimizer in made:
        for state in optimizer.state.values():
            for key, value in state.items():
                if hasattr(value, "tensor_attrs"):  # torchao's
                    total += sum(
                        saved_tensors.aligned(getattr(value, part).nbytes)
                        for part in value.tensor_attrs)
                elif (torch.is_tensor(value) and value.numel() > 1
                      and not key.startswith("qmap")):
                    total += saved_tensors.aligned(value.nbytes)
    return total


def library_peak(folder, dtype, name, length):
    """MemTracker's peak of a step."""
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    model = tracked_step.build(folder, dtype)
    made = library_optimizers(name, model.parameters())
    ids = torch.randint(0, model.config.vocab_size, (1, length))
    tracked_step.one_step(model, All(made), ids)
    tracker = MemTracker()
    tracker.track_external(model, *made, ids)
    with tracker:
        tracked_step.one_step(model, All(made), ids)
    return tracked_step.peak_of(tracker)["Total"]


def has_bitsandbytes():
    import importlib.util

    return importlib.util.find_spec("bitsandbytes") is not None


def predicted(context, folder, name, *extra):
    path = jobs.write_job(context.path(), executor_cases.SINGLE,
                          "accelerate.yaml")
    text = harness.run([context.binary("accel-opt"), "plan", path, "--model",
                        folder, "--executor", "ddp",
                        "--micro-batch", "1", "--optim", name, "--format",
                        "json", *extra])
    return json.loads(text)["memory"]


LIBRARY = ["adamw_torch_fused", "adafactor", "adafactor_torch", "muon", "sgd",
           "adagrad", "rmsprop"]
# Lists of all tensors, which torch makes on GPUs unless told otherwise.
LISTS = ["adagrad foreach", "rmsprop foreach"]
TORCHAO = ["adamw_torch_8bit", "adamw_torch_4bit"]
BITSANDBYTES = ["adamw_8bit", "lion_8bit", "lion_32bit", "paged_adamw_32bit",
                "rmsprop_bnb", "rmsprop_bnb_8bit", "ademamix", "ademamix_8bit"]


def states(context):
    """The bytes of optimizer states are those that torch, transformers and
    bitsandbytes make."""
    names = LIBRARY + TORCHAO + (BITSANDBYTES if has_bitsandbytes() else [])
    cases = []
    for model in ("gqa", "gpt2", "mixtral"):
        for dtype in ("float32", "bfloat16"):
            if dtype == "bfloat16" and model == "mixtral":
                continue  # CPUs have no grouped matmuls in bf16
            folder = context.path(f"{model}-{dtype}")
            jobs.write_config(folder, dict(jobs.MODELS[model], dtype=dtype))
            cases += [(folder, dtype, name) for name in names]
    found = harness.in_python(measure_states, [({}, (cases,))],
                              context.path("torch.out"), timeout=240)[0]
    for (folder, dtype, name), want in zip(cases, found, strict=True):
        got = predicted(context, folder, name)["breakdown"]["optimizer"]
        check(got == want, f"{folder} {name}: {got} bytes of states, the "
                           f"library makes {want}")
    return f"{len(cases)} exact" + (
        "" if has_bitsandbytes() else ", without bitsandbytes")


def measure_states(cases):
    return [library_states(*case) for case in cases]


def temporaries(context):
    """What an update holds at its peak is what torch and transformers
    allocate."""
    cases, texts = [], []
    for dtype in ("float32", "bfloat16"):
        folder = context.path(dtype)
        # Short sequences: the peak is the update's.
        jobs.write_config(folder, dict(jobs.MODELS["gqa"], dtype=dtype))
        cases += [(folder, dtype, name, 4) for name in LIBRARY + LISTS]
    found = harness.in_python(measure_peaks, [({}, (cases,))],
                              context.path("torch.out"), timeout=240)[0]
    for (folder, dtype, name, length), want in zip(cases, found, strict=True):
        got = predicted(context, folder, name.split()[0], "--seq-len",
                        str(length),
                        *(["--target", "h100-sxm-80gb"] if name in LISTS
                          else []))
        difference = got["peak_bytes"] - want
        # What rounding adds to each tensor of a rank, on the target.
        check(abs(difference) <= 64 * (512 if name in LISTS else 64),
              f"{name} {dtype}: predicted {got['peak_bytes']} bytes, "
              f"MemTracker counts {want}")
        texts.append(f"{name} {dtype} {difference:+d}")
    return ", ".join(texts)


def measure_peaks(cases):
    return [library_peak(*case) for case in cases]


def names(context):
    """Each of transformers' names is known, as modelled or not."""
    from transformers.training_args import OptimizerNames

    listed = json.loads(harness.run([context.binary("accel-opt"), "optimizers",
                                     "--format", "json"]))
    modelled = {name for each in listed for name in each["transformers"]}
    folder = context.path("model")
    jobs.write_config(folder, jobs.MODELS["gqa"])
    path = jobs.write_job(context.path(), executor_cases.SINGLE,
                          "accelerate.yaml")
    theirs = {name.value for name in OptimizerNames}
    check(modelled - theirs == {"muon", "adafactor_torch"},
          f"not transformers': {modelled - theirs}")
    for name in sorted(theirs):
        harness.run([context.binary("accel-opt"), "plan", path, "--model",
                     folder, "--optim", name],
                    expect=0 if name in modelled else 4)
    output = harness.run([context.binary("accel-opt"), "plan", path, "--model",
                          folder, "--optim", "adamw"], expect=64)
    check("expected adamw_torch, adamw_torch_fused" in output, output)
    check({each["name"] for each in listed if each["executed"]} ==
          set(published_optimizers.OPTIMIZERS),
          "what accel-run executes has no oracle, or the other way around")
    return f"{len(modelled)} modelled, {len(theirs - modelled)} refused"


CASES = [("states", states), ("temporaries", temporaries), ("names", names)]
for _name, (_, _, _tried) in published_optimizers.OPTIMIZERS.items():
    for _settings in _tried:
        for _ranks in (1, 2):
            CASES.append((f"{name_of(_name, _settings)}-{_ranks}-ranks",
                          trains(_name, _settings, _ranks)))
    CASES.append((f"{_name}-resumes", resumes(_name, _tried[0])))
# Updates that read more than elements. Muon's Newton-Schulz iterations in bf16
# make another last bit of a gradient another step: accel-run under three sets of
# CPU instructions and PyTorch are up to 4e-6 of a loss, 2e-4 of a norm and 3e-4
# of a weight apart here. One iteration less is 9e-4, 4e-3 and 3e-3; a momentum
# of 0.9, the smallest of such mistakes, 6e-5, 4e-3 and 1e-3.
for _name, _settings, _moved, _tolerances in (
        ("adafactor", dict(lr=2e-3, clip_threshold=0.5, decay_rate=-0.6), 1e-5,
         dict(loss=1e-5, weights=1e-4)),
        ("muon", dict(lr=2e-3, nesterov=False, weight_decay=2.0), 1e-4,
         dict(loss=2e-5, norm=1e-3, weights=8e-4))):
    _, _, _tried = published_optimizers.OPTIMIZERS[_name]
    CASES += [
        (f"{_name}-moves", moves(_name, _tried[0], _moved)),
        (f"{_name}-3-ranks-uneven-clipping-groups",
         training("tied", ranks=3, steps=12, accumulation=2, micro_batch=1,
                  max_grad_norm=0.5, learned=1.0, **_tolerances,
                  optimizer={"name": _name, **_settings, "groups": [
                      {"match": ".*norm.*", "weight_decay": 0.0}]})),
        (f"{_name}-2-ranks-bf16",
         training("gqa", ranks=2, steps=12, precision=BF16, loss=LOSS_BF16,
                  weights=WEIGHTS_BF16, learned=1.0,
                  optimizer={"name": _name, **_tried[0]}))]
