"""`accel-opt checkpoint merge` of DeepSpeed's folders. Inputs/deepspeed holds
what DeepSpeed itself wrote and what its zero_to_fp32 made of it
(deepspeed_writer.py says how). DeepSpeed is not installed where tests run, so
the other folders here are saved by torch.save with the keys and the classes of
DeepSpeed's engine (runtime/engine.py, runtime/zero/stage_1_and_2.py, stage3.py,
utils/zero_to_fp32.py of release 0.19.8)."""
import contextlib
import enum
import glob
import json
import math
import os
import random
import shutil
import sys
import types

import harness
from harness import check
from merge_cases import equal, loaded, merge

INPUTS = os.path.join(harness.HERE, "Inputs", "deepspeed")
STAGES = {1: "optimizer_states", 2: "gradients", 3: "weights"}


def produced(context):
    """Folders that DeepSpeed wrote, beside its own zero_to_fp32."""
    import torch
    from safetensors.torch import load_file
    compared = 0
    for path in sorted(glob.glob(os.path.join(INPUTS, "*.safetensors"))):
        folder = path.removesuffix(".safetensors")
        name = os.path.basename(folder)
        answer = merge(context, folder, context.path(name))["merged"]
        found, want = loaded(context.path(name)), load_file(path)
        if name.startswith("zero1"):
            # zero_to_fp32 leaves frozen parameters out; the module has them.
            module = torch.load(os.path.join(
                folder, "global_step2", "mp_rank_00_model_states.pt"))["module"]
            want |= {n: module[n] for n in ("frozen.weight", "frozen.bias")}
        check(answer["left_out"] > 0, answer)
        equal(found, want)
        # The tag's own folder, which has no 'latest'.
        merge(context, os.path.join(folder, "global_step2"),
              context.path(name + "-tag"))
        equal(loaded(context.path(name + "-tag")), want)
        compared += len(want)
    check(compared > 50, compared)
    return f"{compared} tensors as zero_to_fp32 has them"


@contextlib.contextmanager
def deepspeed_classes():
    """The classes that DeepSpeed's pickles name, for as long as they are saved."""
    modules = {name: types.ModuleType(name) for name in (
        "deepspeed", "deepspeed.runtime", "deepspeed.runtime.zero",
        "deepspeed.runtime.zero.config", "deepspeed.runtime.fp16",
        "deepspeed.runtime.fp16.loss_scaler", "deepspeed.utils",
        "deepspeed.utils.tensor_fragment")}
    zero = modules["deepspeed.runtime.zero.config"]
    zero.ZeroStageEnum = enum.Enum(
        "ZeroStageEnum", {name: n for n, name in STAGES.items()},
        module=zero.__name__, type=int)
    scaler = modules["deepspeed.runtime.fp16.loss_scaler"]
    scaler.LossScaler = type("LossScaler", (), {"__module__": scaler.__name__})
    fragment = modules["deepspeed.utils.tensor_fragment"]
    fragment.fragment_address = type("fragment_address", (),
                                     {"__module__": fragment.__name__})
    sys.modules.update(modules)
    try:
        yield zero.ZeroStageEnum, scaler.LossScaler
    finally:
        for name in modules:
            del sys.modules[name]


class Named:
    """An enumeration as Python 3.11's first releases pickle it."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return getattr, (type(self.value), self.value.name)


def save(folder, stage, ranks, groups, frozen=None, shared=None, buffers=None,
         named=False, paddings=None, tag="global_step7"):
    """A folder as DeepSpeed's engine saves it: `groups` are {name: tensor}."""
    import torch
    frozen, shared, buffers = frozen or {}, shared or {}, buffers or {}
    path = os.path.join(folder, tag)
    os.makedirs(path)
    with open(os.path.join(folder, "latest"), "w", encoding="ascii") as f:
        f.write(tag)
    shapes = [{n: t.shape for n, t in group.items()} for group in groups]
    weights = {n: t for group in groups for n, t in group.items()}

    def part(tensor, rank):
        """Of ZeRO 3: a rank's equal part, padded by what must not be read."""
        size = -(-tensor.numel() // ranks)
        flat = torch.cat([tensor.flatten(),
                          torch.full([size * ranks - tensor.numel()], math.nan)
                          .to(tensor.dtype)])
        return flat[rank * size:(rank + 1) * size].clone()

    def flats(rank):
        if stage == 3:
            made = []
            for group in groups:
                # Sub-groups, each with an attribute, as DeepSpeed's have.
                for names in (list(group)[:2], list(group)[2:]):
                    if names:
                        made.append(torch.cat([part(group[n], rank) for n in names]))
                        made[-1].ds_id = "0_1"
            return made
        made = []
        for g, group in enumerate(groups):
            spaces = paddings[g] if paddings else [0] * len(group)
            flat = torch.cat([t for tensor, space in zip(group.values(), spaces)
                              for t in (tensor.flatten(), torch.full([space], math.nan))])
            whole = -(-flat.numel() // (2 * ranks)) * 2 * ranks
            size = whole // ranks
            # Each rank leaves the padding at its end away.
            made.append(flat[rank * size:(rank + 1) * size].clone())
        return made

    with deepspeed_classes() as (enumeration, scaler):
        for rank in range(ranks):
            flat = flats(rank)
            states = {
                "zero_stage": (Named if named else lambda e: e)(enumeration(stage)),
                "loss_scaler": scaler(), "dynamic_loss_scale": False,
                "partition_count": ranks if stage == 3 else [ranks] * len(groups),
                "fp32_flat_groups" if stage == 3
                else "single_partition_of_fp32_groups": flat,
                "optimizer_state_dict" if stage == 3 else "base_optimizer_state": {
                    "state": {i: {"step": torch.tensor(1.0), "exp_avg": t * 2}
                              for i, t in enumerate(flat)}, "param_groups": []}}
            if paddings:
                states["param_alignment_paddings"] = paddings
            torch.save({"optimizer_state_dict": states, "ds_config": {}},
                       os.path.join(path, f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"))
        for rank in range(ranks if stage == 3 else 1):
            everything = weights | {n: weights[o] for n, o in shared.items()} | frozen
            module = {n: torch.empty(0) if stage == 3 else t.to(torch.bfloat16)
                      for n, t in everything.items()} | buffers
            keeps = stage > 1 and frozen
            torch.save({
                "module": module, "buffer_names": list(buffers), "optimizer": None,
                "param_shapes": shapes, "shared_params": shared if rank == 0 else {},
                "frozen_param_shapes": {n: t.shape for n, t in frozen.items()} if keeps else None,
                "frozen_param_fragments": {
                    n: part(t, rank) if stage == 3 else t
                    for n, t in frozen.items()} if keeps else None,
                "sparse_tensor_module_names": set(), "lr_scheduler": None,
                "global_steps": 7, "ds_config": {}, "ds_version": "0.19.8"},
                os.path.join(path, (f"zero_pp_rank_{rank}_" if stage == 3 else "")
                             + "mp_rank_00_model_states.pt"))
    return path


def weights(generator, count):
    import torch
    made = {}
    for i in range(count):
        shape = [generator.choice((1, 2, 3, 5, 7, 12))
                 for _ in range(generator.choice((0, 1, 1, 2, 2, 3)))]
        made[f"layer.{i}.weight"] = torch.randn(shape)
    return made


def layouts(context):
    """Every stage on 1 to 5 ranks, parameters of uneven sizes."""
    import torch
    torch.manual_seed(0)
    generator = random.Random(0)
    compared = 0
    for stage in (1, 2, 3):
        for ranks in (1, 2, 3, 5):
            named = f"{stage}-{ranks}"
            every = weights(generator, 12)
            names = list(every)
            groups = [{n: every[n] for n in names[:7]},
                      {n: every[n] for n in names[7:11]},
                      {n: every[n] for n in names[11:]}]
            frozen = {"frozen": torch.randn(3, 5).to(torch.bfloat16)}
            buffers = {"ids": torch.arange(4), "none": torch.empty(0)}
            paddings = ([[generator.choice((0, 3)) for _ in group] for group in groups]
                        if stage == 2 else None)
            save(context.path(named), stage, ranks, groups, frozen,
                 {"tied": names[1]}, buffers, named=ranks == 2, paddings=paddings)
            answer = merge(context, context.path(named),
                           context.path(named + "-out"))["merged"]
            want = every | frozen | buffers | {"tied": every[names[1]]}
            equal(loaded(context.path(named + "-out")), want)
            check(answer["left_out"] > 0, answer)
            merge(context, context.path(named), context.path(named + "-half"),
                  "--dtype", "bf16", "--max-shard-size", "64")
            equal(loaded(context.path(named + "-half")),
                  {n: t.to(torch.bfloat16) if t.is_floating_point() else t
                   for n, t in want.items()})
            compared += 2 * len(want)
    return f"{compared} tensors"


def refused(context):
    """What does not fit together is named in one sentence; nothing is left."""
    import torch

    def finding(name, code, *words, folder=None):
        answer = merge(context, folder or context.path(name), context.path("no"),
                       expect=4 if code == "not-supported" else 1)
        first = answer["diagnostics"][0]
        check(first["code"] == code and all(w in first["message"] for w in words),
              f"{name}: {first}")
        left = [n for n in os.listdir(context.work) if n.startswith("no")]
        check(answer["merged"] is None and not left, left)

    torch.manual_seed(0)
    groups = [{"a": torch.randn(70, 9), "b": torch.randn(11)}, {"c": torch.randn(5)}]
    optimizer = "zero_pp_rank_{}_mp_rank_00_optim_states.pt"

    def made(name, stage=2, **others):
        return save(context.path(name), stage, 3, groups,
                    frozen={"f": torch.randn(4, 2)}, **others)

    path = made("rank")
    os.remove(os.path.join(path, optimizer.format(1)))
    finding("rank", "invalid-checkpoint", "over 3 ranks", "2 files")
    path = made("module")
    os.remove(os.path.join(path, "mp_rank_00_model_states.pt"))
    finding("module", "invalid-checkpoint", "module are missing")
    path = made("optimizers")
    for rank in range(3):
        os.remove(os.path.join(path, optimizer.format(rank)))
    finding("optimizers", "invalid-checkpoint", "*_optim_states.pt")
    path = made("frozen", stage=3)
    os.remove(os.path.join(path, "zero_pp_rank_2_mp_rank_00_model_states.pt"))
    finding("frozen", "invalid-checkpoint", "frozen")
    # Ranks of two saves.
    path, other = made("mixed"), made("other", stage=3)
    shutil.copy(os.path.join(other, optimizer.format(1)), path)
    finding("mixed", "invalid-checkpoint", "ZeRO 3", "ZeRO 2")
    # Flat weights that end early, and that go on.
    for name, change, words in (
            ("short", lambda t: t[:40], "end inside of 'a'"),
            ("long", lambda t: torch.cat([t, torch.zeros(50)]), "641 elements")):
        path = os.path.join(made(name), optimizer.format(2))
        with deepspeed_classes():
            states = torch.load(path, weights_only=False)
            flat = states["optimizer_state_dict"]["single_partition_of_fp32_groups"]
            flat[0] = change(flat[0])
            if name == "short":
                flat[0] = flat[0][:1]
            torch.save(states, path)
        finding(name, "invalid-checkpoint", words if name == "long" else "end inside of")
    # Tags.
    made("tag")
    with open(context.path("tag", "latest"), "w", encoding="ascii") as f:
        f.write("../../etc")
    finding("tag", "invalid-checkpoint", "'../../etc'")
    made("tags")
    shutil.copytree(context.path("tags", "global_step7"), context.path("tags", "global_step9"))
    merge(context, context.path("tags"), context.path("tags-out"))
    os.remove(context.path("tags", "latest"))
    finding("tags", "not-supported", "2 tags")
    # Tensor-parallel ranks, stages of a pipeline.
    path = made("model")
    shutil.copy(os.path.join(path, "mp_rank_00_model_states.pt"),
                os.path.join(path, "mp_rank_01_model_states.pt"))
    finding("model", "not-supported", "tensor-parallel")
    path = made("layer")
    torch.save({"w": torch.ones(2)}, os.path.join(path, "layer_00-model_00-model_states.pt"))
    finding("layer", "not-supported", "pipeline")

    class Attack:
        def __reduce__(self):
            return os.mkdir, (context.path("no-such"),)

    path = os.path.join(made("attack"), "mp_rank_00_model_states.pt")
    torch.save({"module": {}, "buffer_names": Attack()}, path)
    finding("attack", "foreign-pickle", "mkdir")

    # A bit of the padding, which no tensor holds, and one of a weight.
    for name, value in (("weight", groups[0]["b"][5]), ("padding", None)):
        path = os.path.join(made(name), optimizer.format(2 if value is not None else 0))
        with open(path, "rb") as f:
            data = bytearray(f.read())
        if value is not None:
            data[data.index(value.numpy().tobytes())] ^= 1
        else:
            with deepspeed_classes():
                states = torch.load(path, weights_only=False)
            flat = states["optimizer_state_dict"]["single_partition_of_fp32_groups"][0]
            data[data.index(flat.numpy().tobytes())] ^= 1
        with open(path, "wb") as f:
            f.write(data)
        finding(name, "invalid-checkpoint", "damaged")
    return "each by its file"


def edited(path, change):
    """The file with `change` made to what DeepSpeed wrote."""
    import torch
    with deepspeed_classes():
        saved = torch.load(path, weights_only=False)
        change(saved)
        torch.save(saved, path)


def saves(context):
    """Files of two saves of one tag, which a save that broke off leaves: told
    by their counts of steps, where they have any."""
    import torch
    optimizer = "zero_pp_rank_{}_mp_rank_00_optim_states.pt"
    module = "zero_pp_rank_{}_mp_rank_00_model_states.pt"

    def folder(name, stage):
        shutil.copytree(os.path.join(INPUTS, f"zero{stage}-3ranks"), context.path(name))
        return context.path(name, "global_step2")

    def states(saved):
        own = saved["optimizer_state_dict"]
        return own["optimizer_state_dict" if "fp32_flat_groups" in own
                   else "base_optimizer_state"]["state"].values()

    def counted(steps):
        """As torch's AdamW counts, or DeepSpeed's own: in a plain number."""
        def change(saved):
            for state in states(saved):
                state["step"] = steps
        return change

    def uncounted(saved):
        for state in states(saved):
            del state["step"]

    def finding(name, *words):
        said = []
        for command in (["merge", context.path(name), "-o", context.path("no")],
                        ["convert", context.path(name), "-o", context.path("no"),
                         "--to", "dcp"],
                        ["inspect", context.path(name)]):
            answer = json.loads(harness.run(
                [context.binary("accel-opt"), "checkpoint", *command, "--format",
                 "json"], expect=1))
            said += answer["diagnostics"]
        check(len(said) == 3 and not os.path.exists(context.path("no")), said)
        for each in said:
            check(each["code"] == "invalid-checkpoint" and
                  each["file"] == context.path(name, "global_step2") and
                  all(w in each["message"] for w in words), f"{name}: {each}")

    def good(name):
        merge(context, context.path(name), context.path(name + "-out"))
        equal(loaded(context.path(name + "-out")), want)
        harness.run([context.binary("accel-opt"), "checkpoint", "inspect",
                     context.path(name)])

    for stage in (2, 3):
        merge(context, os.path.join(INPUTS, f"zero{stage}-3ranks"),
              context.path(f"want{stage}"))
        want = loaded(context.path(f"want{stage}"))
        for kind, count in (("tensor", lambda n: torch.tensor(float(n))),
                            ("number", int)):
            path = folder(f"{kind}{stage}", stage)
            for rank in range(3):
                edited(os.path.join(path, optimizer.format(rank)), counted(count(2)))
            good(f"{kind}{stage}")
            shutil.rmtree(context.path(f"{kind}{stage}-out"))
            edited(os.path.join(path, optimizer.format(1)), counted(count(4)))
            finding(f"{kind}{stage}", "of 2 saves",
                    optimizer.format(0) + " and 1 more after 2 steps",
                    optimizer.format(1) + " after 4 steps")
        # An optimizer that keeps no count, in one file and in all of them.
        path = folder(f"none{stage}", stage)
        edited(os.path.join(path, optimizer.format(2)), uncounted)
        good(f"none{stage}")
        shutil.rmtree(context.path(f"none{stage}-out"))
        for rank in range(2):
            edited(os.path.join(path, optimizer.format(rank)), uncounted)
        good(f"none{stage}")
    path = folder("modules", 3)
    edited(os.path.join(path, module.format(2)), lambda saved: saved.pop("global_steps"))
    good("modules")
    edited(os.path.join(path, module.format(1)),
           lambda saved: saved.update(global_steps=3))
    finding("modules", module.format(0) + " after 2 steps",
            module.format(1) + " after 3 steps")
    return "each of two saves by its files and steps"


def states_produced(context):
    """States of DeepSpeed's optimizers, where DeepSpeed says that they lie."""
    import torch
    from convert_checkpoint_cases import convert, shards
    compared = 0
    for name in ("zero1-1rank", "zero1-bf16-2ranks", "zero2-3ranks"):
        folder = os.path.join(INPUTS, name)
        answer = convert(context, folder, context.path(name), "accel-run",
                         "--samples", "6")["converted"]
        check(answer["steps"] == 2 and answer["states"] == 10, answer)
        found = shards(context.path(name))
        parts = {}
        for path in sorted(glob.glob(os.path.join(folder, "*", "*_optim_states.pt"))):
            with deepspeed_classes():
                states = torch.load(path, weights_only=False)["optimizer_state_dict"]
            for group, slices in enumerate(states["param_slice_mappings"]):
                for parameter, place in slices.items():
                    for kind in ("exp_avg", "exp_avg_sq"):
                        flat = states["base_optimizer_state"]["state"][group][kind]
                        parts.setdefault((kind, parameter), []).append(
                            flat[place.start:place.start + place.numel])
        for (kind, parameter), pieces in parts.items():
            want = torch.cat(pieces).view(found["param"][parameter].shape)
            check(torch.equal(found[kind][parameter], want), f"{name}: {parameter}")
            check(bool(want.abs().sum() > 0), f"{name}: {parameter} has no state")
            compared += 1
    return f"{compared} states by param_slice_mappings"


def states_layouts(context):
    """States of every stage; those of the layouts are twice the weights."""
    import torch
    from convert_checkpoint_cases import convert, shards
    torch.manual_seed(1)
    generator, compared = random.Random(1), 0
    for stage in (1, 2, 3):
        for ranks in (1, 2, 3, 5):
            every = weights(generator, 9)
            names = list(every)
            groups = [{n: every[n] for n in names[:5]}, {n: every[n] for n in names[5:]}]
            name = f"{stage}-{ranks}"
            # Sub-groups of ZeRO 3 have a state each, as the groups have.
            save(context.path(name), stage, ranks, groups, {"f": torch.ones(3)},
                 {"tied": names[0]})
            convert(context, context.path(name), context.path(name + "-run"),
                    "accel-run", "--samples", "14")
            found = shards(context.path(name + "-run"))
            equal(found["exp_avg"], {n: t * 2 for n, t in every.items()})
            compared += len(every)
    return f"{compared} states"


def states_counted(context):
    """DeepSpeed's own Adam counts steps as plain numbers; without a count the
    engine's is taken, less the steps that a loss scale skipped."""
    import torch
    from convert_checkpoint_cases import convert
    torch.manual_seed(2)
    groups = [{"a": torch.randn(3, 4), "b": torch.randn(5)}]
    for stage in (2, 3):
        for step in (5, None):
            name = f"{stage}-{step}"
            path = save(context.path(name), stage, 2, groups)
            for file in glob.glob(os.path.join(path, "*.pt")):
                with deepspeed_classes():
                    saved = torch.load(file, weights_only=False)
                    if "module" in saved:
                        saved["skipped_steps"] = 2
                    else:
                        base = saved["optimizer_state_dict"][
                            "optimizer_state_dict" if stage == 3
                            else "base_optimizer_state"]
                        for state in base["state"].values():
                            del state["step"]
                            if step:
                                state["step"] = step
                    torch.save(saved, file)
            convert(context, context.path(name), context.path(name + "-run"),
                    "accel-run", "--samples", "14")
            with open(context.path(name + "-run", "state.json"), encoding="utf-8") as f:
                state = json.load(f)
            check((state["step"], state["optimizer_steps"]) == (7, 5), state)
    return "5 steps of 7"


def memory(context):
    """Host memory does not grow with the model, nor time with its tensors."""
    import torch
    groups = [{f"w{i}": torch.ones(500_000) * i for i in range(200)}]
    save(context.path("large"), 3, 2, groups)
    peak = int(harness.run(
        [sys.executable, "-S", "-c",
         "import resource, subprocess, sys; "
         "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
         "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
         context.binary("accel-opt"), "checkpoint", "merge",
         context.path("large"), "-o", context.path("merged")]))
    check(peak < 80_000, f"{peak} kB for 400 MB")
    found = loaded(context.path("merged"))
    check(all(torch.equal(found[n], t) for n, t in groups[0].items()), "values")
    for name in ("large", "merged"):
        shutil.rmtree(context.path(name))
    return f"{peak / 1024:.0f} MiB of host memory for 381 MiB"


CASES = [("merge-zero-produced", produced), ("merge-zero-layouts", layouts),
         ("convert-zero-produced", states_produced),
         ("convert-zero-layouts", states_layouts),
         ("convert-zero-counted", states_counted),
         ("merge-zero-refused", refused), ("merge-zero-saves", saves), ("merge-zero-memory", memory)]
