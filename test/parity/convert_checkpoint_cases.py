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


GROUPS = [{"match": "norm", "weight_decay": 0.0}]


def resumed(context, folder, want, ranks, *options):
    """accel-run goes on behind step HALF from what `folder` becomes, with the
    losses `want`; what convert says."""
    os.makedirs(context.path("from"), exist_ok=True)
    made = context.path("from", f"step-{HALF:08}")
    answer = convert(context, folder, made, "accel-run", "--samples",
                     str(HALF * ranks * 2), *options)["converted"]
    got = harness.execute(context, context.path("plan.json"), ranks,
                          context.path("run.jsonl"), "--resume", made)
    check([r["step"] for r in got] == list(range(HALF + 1, STEPS + 1)), got)
    kept = [n for n in os.listdir(context.path("out")) if n.endswith(".kept")]
    check(not kept, f"taken for somebody else's: {kept}")
    return answer, harness.compare_logs(got, want[HALF:], "loss", 1e-6)


def from_ddp(context):
    """Its optimizer numbers parameters, in groups that are not the plan's first
    and second; the schedule and random states stay behind, and are named."""
    jobs.make_job(context.path(), jobs.MODELS["tied"], kind="ddp", ranks=2,
                  steps=STEPS, groups=GROUPS)
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    state = context.path("state")
    want = accelerated(context, "accelerate.jsonl", 0, STEPS, "--save", state,
                       "--at", HALF, "--as", "ddp")
    finding = convert(context, state, context.path("no"), "accel-run",
                      "--samples", "8", expect=4)["diagnostics"][0]
    check("numbers its parameters" in finding["message"], finding)
    answer, loss = resumed(context, state, want, 2, "--plan", plan)
    left = {key: sorted(files) for key, files in answer["left_behind"].items()}
    check(left == {
        "learning-rate schedule (Accelerate)": ["scheduler.bin"],
        "random states of a rank (Accelerate)":
            ["random_states_0.pkl", "random_states_1.pkl"]}, left)
    # Another plan's groups, and another model.
    for name, model, groups, words in (
            ("groups", "tied", [{"match": "mlp", "weight_decay": 0.0}],
             "7 and 22 parameters in its groups, and the plan 20 and 9"),
            ("model", "gqa", GROUPS, "7 and 22 parameters")):
        other = context.path("other-" + name)
        os.makedirs(other)
        jobs.make_job(other, jobs.MODELS[model], kind="ddp", ranks=2,
                      steps=STEPS, groups=groups)
        harness.plan(context, os.path.join(other, "job.yaml"),
                     os.path.join(other, "plan.json"))
        finding = convert(context, state, context.path("no"), "accel-run",
                          "--samples", "8", "--plan",
                          os.path.join(other, "plan.json"),
                          expect=1)["diagnostics"][0]
        check(words in finding["message"], f"{name}: {finding}")
    check(not os.path.exists(context.path("no")), "something is left")
    # A loss scale is carried.
    import torch
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    torch.save({**scaler.state_dict(), "_growth_tracker": 7},
               os.path.join(state, "scaler.pt"))
    convert(context, state, context.path("scaled"), "accel-run", "--samples", "8",
            "--plan", plan)
    with open(context.path("scaled", "state.json"), encoding="utf-8") as f:
        check(json.load(f)["scaler"] == {"scale": 4096.0, "good_steps": 7},
              "the loss scale is not carried")
    torch.save({}, os.path.join(state, "scaler.pt"))  # it is not enabled
    convert(context, state, context.path("unscaled"), "accel-run", "--samples",
            "8", "--plan", plan)
    with open(context.path("unscaled", "state.json"), encoding="utf-8") as f:
        check(json.load(f)["scaler"]["scale"] == 65536.0, "unscaled")
    torch.save({"scale": -1.0, "_growth_tracker": 7},
               os.path.join(state, "scaler.pt"))
    finding = convert(context, state, context.path("no"), "accel-run",
                      "--samples", "8", "--plan", plan,
                      expect=1)["diagnostics"][0]
    check("GradScaler" in finding["message"], finding)
    return f"losses after {HALF} steps of DDP: {loss:.1e}"


def from_trainer(context):
    """optimizer.pt of transformers' Trainer, with its groups by weight decay."""
    jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="single", ranks=1,
                  steps=STEPS, groups=GROUPS)
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    harness.run([sys.executable, os.path.join(harness.HERE, "trainer_writer.py"),
                 context.path("job.yaml"), context.path("trainer.jsonl"),
                 context.path("trainer"), str(STEPS), str(HALF)])
    want = harness.read_log(context.path("trainer.jsonl"))
    answer, loss = resumed(context, context.path("trainer", f"checkpoint-{HALF}"),
                           want, 1, "--plan", plan)
    check("learning-rate schedule (Trainer)" in answer["left_behind"], answer)
    return f"losses after {HALF} steps of the Trainer: {loss:.1e}"


def to_trainer(context):
    """accel-run's checkpoint, resumed by the Trainer itself."""
    jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="single", ranks=1,
                  steps=STEPS, checkpoint_every=HALF, groups=GROUPS)
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    want = harness.execute(context, plan, 1, context.path("run.jsonl"))
    made = context.path(f"checkpoint-{HALF}")
    convert(context, context.path("out", f"step-{HALF:08}"), made, "trainer",
            "--plan", plan)
    harness.run([sys.executable, os.path.join(harness.HERE, "trainer_writer.py"),
                 context.path("job.yaml"), context.path("trainer.jsonl"),
                 context.path("trainer"), str(STEPS), str(HALF), made])
    got = harness.read_log(context.path("trainer.jsonl"))
    check([r["step"] for r in got] == list(range(HALF + 1, STEPS + 1)), got)
    loss = harness.compare_logs(got, want[HALF:], "loss", 1e-6)
    return f"losses after {HALF} steps of accel-run: {loss:.1e}"


def from_fsdp1(*options):
    """Flat parameters, which have names all the same."""
    def case(context):
        job(context)
        state = context.path("state")
        want = accelerated(context, "accelerate.jsonl", 0, STEPS, "--save", state,
                           "--at", HALF, "--as", "fsdp1", *options)
        _, loss = resumed(context, state, want, 2)
        return f"losses after {HALF} steps of FSDP1: {loss:.1e}"

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
    finding("numbered", "not-supported", "numbers its parameters")
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
    finding("good", "conflicting-arguments", "of step 2", output="step-00000003")
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


def shards(folder):
    """{kind: {name: tensor}} of accel-run's shards, by their headers alone."""
    import torch
    from safetensors import safe_open
    made = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with safe_open(os.path.join(folder, name), "pt") as f:
            for unit in json.loads(f.metadata()["layout"]):
                for key in f.keys():
                    if not key.startswith(unit["prefix"]):
                        continue
                    flat, kind = f.get_tensor(key), key[len(unit["prefix"]):]
                    for piece in unit["pieces"]:
                        whole = made.setdefault(kind, {}).setdefault(
                            piece["fqn"], torch.full(piece["shape"], float("nan")))
                        length = piece["end"] - piece["begin"]
                        for run in range(piece.get("runs", 1)):
                            begin = piece["begin"] + run * piece.get("stride", 0)
                            at = piece["offset"] + run * length
                            whole.view(-1)[begin:begin + length] = flat[at:at + length]
    return made


def loaded_dcp(folder):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict_loader import \
        _load_state_dict_from_keys
    return _load_state_dict_from_keys(storage_reader=dcp.FileSystemReader(folder))


def to_dcp(model, ranks, **options):
    """accel-run's checkpoint, loaded by torch.distributed.checkpoint."""
    def case(context):
        from run_shards_cases import trained
        out = trained(context, model, ranks, **options)
        last = os.path.join(out, "step-00000004")
        answer = convert(context, last, context.path("dcp"), "dcp", "--plan",
                         context.path("plan.json"))["converted"]
        found, kinds = loaded_dcp(context.path("dcp")), shards(last)
        tied = {"lm_head.weight": kinds["param"]["model.embed_tokens.weight"]
                } if model.get("tie_word_embeddings") else {}
        equal(found["model"], kinds["param"] | tied)
        states = found["optim"]["state"]
        for kind in ("exp_avg", "exp_avg_sq"):
            equal({n: s[kind] for n, s in states.items()}, kinds[kind])
        check(all(s["step"].item() == 4 for s in states.values()), "steps")
        groups = found["optim"]["param_groups"]
        check(sorted(n for g in groups for n in g["params"]) == sorted(states)
              and [g["weight_decay"] for g in groups] == [0.1, 0.0]
              and all(g["betas"] == (0.9, 0.95) and g["lr"] == 1e-3
                      for g in groups), groups)
        check(all(("norm" in n) == (i == 1) for i, g in enumerate(groups)
                  for n in g["params"]), groups)
        # And back: what accel-run resumes from is what it wrote.
        convert(context, context.path("dcp"), context.path("back"), "accel-run",
                "--samples", "64")
        again = shards(context.path("back"))
        for kind, tensors in kinds.items():
            equal(again[kind], tensors | (tied if kind == "param" else {}))
        return f"{answer['parameters']} parameters, {answer['states']} states"

    return case


def torch_to_dcp(context):
    """What torch wrote, along other dimensions too, is what torch loads."""
    from merge_cases import written
    for name, options in (("dcp", ()), ("columns", ("columns",))):
        folder = written(context, name, *options)
        convert(context, folder, context.path(name + "-out"), "dcp")
        want, found = loaded_dcp(folder), loaded_dcp(context.path(name + "-out"))
        if options:
            equal(found["model"], want)
            continue
        equal(found["model"], {n: t for n, t in flat(want["model"])})
        for parameter, states in want["optim"]["state"].items():
            equal(found["optim"]["state"][parameter], states)
    return "as torch saved it"


def flat(tensors, prefix=""):
    for name, value in tensors.items():
        if isinstance(value, dict):
            yield from flat(value, prefix + name + ".")
        else:
            yield prefix + name, value


def to_accelerate(context):
    """accel-run's checkpoint, resumed by Accelerate's load_state under FSDP2,
    with the schedule where it was. The script has the group that no regex names
    last, the plan first: each keeps its own rate."""
    jobs.make_job(context.path(), jobs.MODELS["tied"], ranks=2, steps=STEPS,
                  checkpoint_every=HALF, lr=5e-3, schedule={"decay": "cosine"},
                  groups=[{"match": "norm", "weight_decay": 0.0, "lr": 2e-2}])
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))
    want = harness.execute(context, context.path("plan.json"), 2,
                           context.path("run.jsonl"))
    answer = convert(context, context.path("out", f"step-{HALF:08}"),
                     context.path("state"), "accelerate", "--plan",
                     context.path("plan.json"))["converted"]
    check(answer["samples"] == HALF * 2 * 2, answer)
    weights = context.path("out", "model")
    finding = convert(context, weights, context.path("no"), "accelerate", "--plan",
                      context.path("plan.json"), expect=4)["diagnostics"][0]
    check("holds no states of an optimizer" in finding["message"], finding)
    got = accelerated(context, "accelerate.jsonl", HALF, STEPS, "--load",
                      context.path("state"), "--schedule")
    check([r["step"] for r in got] == list(range(HALF + 1, STEPS + 1)), got)
    loss = harness.compare_logs(got, want[HALF:], "loss", 1e-6)
    return f"losses after {HALF} steps of accel-run: {loss:.1e}"


def to_ddp(context):
    """The same under DDP, whose optimizer numbers parameters; and back."""
    jobs.make_job(context.path(), jobs.MODELS["tied"], kind="ddp", ranks=2,
                  steps=STEPS, checkpoint_every=HALF, lr=5e-3,
                  schedule={"decay": "cosine"}, groups=GROUPS)
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    want = harness.execute(context, plan, 2, context.path("run.jsonl"))
    last = context.path("out", f"step-{HALF:08}")
    convert(context, last, context.path("state"), "accelerate", "--plan", plan)
    left = sorted(os.listdir(context.path("state")))
    check(left == ["model.safetensors", "optimizer.bin", "scheduler.bin"], left)
    convert(context, context.path("state"), context.path("back"), "accel-run",
            "--samples", "16", "--plan", plan)
    again = shards(context.path("back"))
    for kind, tensors in shards(last).items():
        equal(again[kind], tensors)
    got = accelerated(context, "accelerate.jsonl", HALF, STEPS, "--load",
                      context.path("state"), "--as", "ddp")
    check([r["step"] for r in got] == list(range(HALF + 1, STEPS + 1)), got)
    loss = harness.compare_logs(got, want[HALF:], "loss", 1e-6)
    return f"losses after {HALF} steps of accel-run: {loss:.1e}"


def scale_to_accelerate(context):
    """A run in fp16: load_state wants the scaler, which goes on where it was."""
    import torch
    path = jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=3,
                         checkpoint_every=3)
    path["accelerate"]["mixed_precision"] = "fp16"
    path["grad_scaler"] = {"init_scale": 512, "growth_interval": 2,
                           "backoff_factor": 0.25}
    jobs.write_job(context.path(), path)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))
    harness.execute(context, context.path("plan.json"), 2,
                    context.path("run.jsonl"))
    convert(context, context.path("out", "step-00000003"), context.path("state"),
            "accelerate", "--plan", context.path("plan.json"))
    scaler = torch.amp.GradScaler("cpu")
    scaler.load_state_dict(torch.load(context.path("state", "scaler.pt")))
    scaler.scale(torch.ones(1))  # it makes its tensors when they are used
    state = scaler.state_dict()
    check(state == {"scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.25,
                    "growth_interval": 2, "_growth_tracker": 1}, state)
    # And back.
    convert(context, context.path("state"), context.path("back"), "accel-run",
            "--samples", "12")
    with open(context.path("back", "state.json"), encoding="utf-8") as f:
        check(json.load(f)["scaler"] == {"scale": 1024.0, "good_steps": 1}, "back")
    return "a scale of 1024 after one good step"


DEEPSPEED = os.path.join(os.path.dirname(os.path.dirname(harness.HERE)), ".deepspeed")


def sub_groups(context, ranks, size):
    """Parameters of each flat tensor of the folder; what is wrong with the cut
    is an error: each but a group's last has become `size` long by its last."""
    import pickle
    import types

    import torch

    class Plain(pickle.Unpickler):
        """Without DeepSpeed, whose own classes nobody reads here."""
        def find_class(self, module, name):
            if not module.startswith("deepspeed"):
                return super().find_class(module, name)
            return Other

    class Other:
        def __init__(self, *values):
            pass

    reader = types.ModuleType("reader")
    reader.Unpickler, reader.load = Plain, pickle.load

    def read(name):
        return torch.load(
            context.path("zero", f"global_step{HALF}",
                         f"zero_pp_rank_0_mp_rank_00_{name}_states.pt"),
            weights_only=False, pickle_module=reader)

    shapes = read("model")["param_shapes"]
    flat = read("optim")["optimizer_state_dict"]["fp32_flat_groups"]
    parts = [[-(-shape.numel() // ranks) for shape in group.values()]
             for group in shapes]
    check([sum(part) for part in parts] == [f.numel() for f in flat], parts)
    ends = {max(i for i, group in enumerate(shapes)
                if any("norm" in n for n in group) == norm)
            for norm in (False, True)}
    for i, part in enumerate(parts):
        check(sum(part[:-1]) < size and (sum(part) >= size or i in ends),
              f"sub-group {i} of {part}")
    return [len(part) for part in parts]


def to_deepspeed(stage, ranks, sub_group=None):
    """accel-run's checkpoint, resumed by DeepSpeed's own load_checkpoint, with the
    schedule where it was; read back, it is what accel-run wrote. `sub_group`:
    ZeRO 3's sub_group_size."""
    options = ["--stage", str(stage),
               *(["--sub-group-size", str(sub_group)] if sub_group else [])]

    def case(context):
        made = jobs.make_job(
            context.path(), jobs.MODELS["tied"],
            kind="fsdp" if stage == 3 else f"zero{stage}", ranks=ranks,
            steps=STEPS, checkpoint_every=HALF, lr=5e-3,
            schedule={"decay": "cosine"}, groups=GROUPS)
        plan = context.path("plan.json")
        harness.plan(context, context.path("job.yaml"), plan)
        want = harness.execute(context, plan, ranks, context.path("run.jsonl"))
        last = context.path("out", f"step-{HALF:08}")
        answer = convert(context, last, context.path("zero"), "deepspeed", "--plan",
                         plan, *options)["converted"]
        modules = ([f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt"
                    for rank in range(ranks)] if stage == 3
                   else ["mp_rank_00_model_states.pt"])
        check(answer["files"] == ranks + len(modules) + 1, answer)
        if sub_group:
            cut = sub_groups(context, ranks, sub_group)
            check(len(cut) > 4 and max(cut) > 1, f"parameters by sub-group: {cut}")
        convert(context, context.path("zero"), context.path("back"), "accel-run",
                "--samples", str(answer["samples"]))
        kinds = shards(last)
        tied = {"lm_head.weight": kinds["param"]["model.embed_tokens.weight"]}
        again = shards(context.path("back"))
        check(set(again) == set(kinds), set(again))
        for kind, tensors in kinds.items():
            found = again[kind]
            equal({n: t for n, t in found.items() if n not in tied},
                  {n: t for n, t in tensors.items() if n not in tied})
        # An engine in bf16 asks for files of other names.
        made["accelerate"]["mixed_precision"] = "bf16"
        jobs.write_job(context.path(), made, "bf16.yaml")
        harness.plan(context, context.path("bf16.yaml"), context.path("bf16.json"))
        convert(context, last, context.path("bf16"), "deepspeed", "--plan",
                context.path("bf16.json"), *options)
        names = os.listdir(context.path("bf16", f"global_step{HALF}"))
        check(sorted(names) == [f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
                                for rank in range(ranks)]
              + modules, names)
        # Of other ranks than the run's: the same elements, cut elsewhere.
        convert(context, last, context.path("five"), "deepspeed", "--plan", plan,
                "--ranks", "5", *options)
        convert(context, context.path("five"), context.path("again"), "accel-run",
                "--samples", "8")
        for kind, tensors in again.items():
            equal(shards(context.path("again"))[kind], tensors)
        if not os.path.isdir(os.path.join(DEEPSPEED, "deepspeed")):
            return "read back; DeepSpeed is not in .deepspeed (tools/setup)"
        log = context.path("deepspeed.jsonl")
        said = harness.run([
            "env", "DS_ACCELERATOR=cpu", f"PYTHONPATH={DEEPSPEED}",
            sys.executable, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(ranks),
            os.path.join(harness.HERE, "deepspeed_resume.py"),
            context.path("job.yaml"), log, str(stage), context.path("zero"),
            *([str(sub_group)] if sub_group else [])])
        check(not sub_group or
              " ".join(["sub-groups", *map(str, cut)]) in said,
              f"DeepSpeed cuts otherwise than into {sub_group and cut}: "
              + said[-800:])
        got = harness.read_log(log)
        check([r["step"] for r in got] == list(range(HALF + 1, STEPS + 1)), got)
        loss = harness.compare_logs(got, want[HALF:], "loss", 1e-6)
        return f"losses after {HALF} steps of accel-run: {loss:.1e}"

    return case


def large(context):
    """Host memory does not grow with the model; of what is damaged nothing is
    left."""
    import shutil
    import torch
    os.makedirs(context.path("large"))
    path = context.path("large", "pytorch_model.bin")
    torch.save({f"w{i}": torch.ones(25_000_000) for i in range(4)}, path)
    command = [context.binary("accel-opt"), "checkpoint", "convert",
               context.path("large"), "-o", context.path("dcp"), "--to", "dcp"]
    peak = int(harness.run(
        [sys.executable, "-S", "-c",
         "import resource, subprocess, sys; "
         "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
         "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", *command]))
    check(peak < 80_000, f"{peak} kB for 400 MB")
    check(all(torch.equal(t, torch.ones(25_000_000))
              for t in loaded_dcp(context.path("dcp"))["model"].values()), "values")
    shutil.rmtree(context.path("dcp"))
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) // 2)
        f.write(b"x")
    answer = convert(context, context.path("large"), context.path("dcp"), "dcp",
                     expect=1)
    check("damaged" in answer["diagnostics"][0]["message"], answer)
    left = [n for n in os.listdir(context.work) if n.startswith("dcp")]
    check(not left, left)
    shutil.rmtree(context.path("large"))
    return f"{peak / 1024:.0f} MiB of host memory for 381 MiB"


CASES = [
    ("convert-to-accelerate", to_accelerate),
    ("convert-to-ddp", to_ddp),
    ("convert-to-trainer", to_trainer),
    ("convert-scale-to-accelerate", scale_to_accelerate),
    ("convert-to-zero1", to_deepspeed(1, 3)),
    ("convert-to-zero2", to_deepspeed(2, 2)),
    ("convert-to-zero3", to_deepspeed(3, 3)),
    ("convert-to-zero3-groups", to_deepspeed(3, 3, sub_group=1000)),
    ("convert-to-dcp", to_dcp(jobs.MODELS["tied"], 3, groups=GROUPS)),
    ("convert-to-dcp-tp2", to_dcp(jobs.PEAKED["halves-bias"], 4, tp=2,
                                  groups=GROUPS)),
    ("convert-torch-to-dcp", torch_to_dcp),
    ("convert-memory", large),
    ("convert-from-accelerate", from_accelerate()),
    ("convert-from-accelerate-full", from_accelerate("--full")),
    ("convert-from-fsdp1", from_fsdp1()),
    ("convert-from-fsdp1-full", from_fsdp1("--full")),
    ("convert-from-ddp", from_ddp),
    ("convert-from-trainer", from_trainer),
    ("convert-refused", refused),
]

# Stage 1 has stage 2's files, and stage 3 is held with groups.
REPEATED = {"convert-to-zero2", "convert-to-zero3"}
