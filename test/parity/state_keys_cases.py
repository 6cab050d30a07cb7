"""`accel-opt checkpoint merge` and `convert`: weights and states of an optimizer
where libraries put them, written by torch.distributed.checkpoint, torch.save and
safetensors with their dictionaries."""
import json
import os

import harness
from harness import check
from merge_cases import equal, loaded, merge


def layouts(context):
    """Of each layout all weights, and no state."""
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import save_file
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    class Net(torch.nn.Module):
        """A module "state", whose submodule has the name of a parameter."""

        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Parameter(torch.randn(3))
            self.state = torch.nn.Module()
            self.state.embed = torch.nn.Linear(3, 3)
            self.param_groups = torch.nn.ModuleDict({"embed": torch.nn.Linear(3, 1)})

        def forward(self, x):
            return self.param_groups["embed"](self.state.embed(x) * self.embed)

    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    own, named = get_state_dict(model, optimizer)
    joined = get_state_dict(model, optimizer, options=StateDictOptions(
        flatten_optimizer_state_dict=True))[1]
    tensors = {n: v for n, v in joined.items() if torch.is_tensor(v)}
    numbered = optimizer.state_dict()
    own = {n: t.clone() for n, t in own.items()}
    states = 3 * len(own)

    def below(prefix, saved):
        return {prefix + n: v for n, v in saved.items()}

    # name, what is saved, whether its weights have a prefix, states, in which
    # formats: d is torch.distributed.checkpoint, b torch.save, s safetensors
    rows = (
        ("plain", own, "", 0, "dbs"),
        ("model", {"model": own}, "", 0, "db"),
        ("lightning", {"state_dict": own, "optimizer_states": [numbered],
                       "epoch": 1}, "", states, "b"),
        ("composer", {"state": {"model": own, "optimizers": {"AdamW": numbered},
                                "timestamp": {"epoch": 1}}, "rng": [1]}, "", states,
         "b"),
        ("composer-named", {"state": {"model": own, "optimizers": {"AdamW": named}}},
         "", states, "db"),
        ("state", {"state": {"model": own, "optim": named}}, "", states, "db"),
        ("state-alone", {"state": {"model": own}}, "", 0, "db"),
        ("torchtitan", {**own, "optimizer": joined}, "", states, "db"),
        ("joined", {"model": own, "optim": joined}, "", states, "db"),
        ("joined-same", {**own, **joined}, "", states, "db"),
        ("joined-prefixed", {**below("model.", own), **below("optim.", joined)},
         "model.", states, "db"),
        ("joined-tensors", {**below("model.", own), **below("optimizer.", tensors)},
         "model.", states, "db"),
        ("fsdp", {"model": own, "optimizer": named}, "", states, "db"),
        ("deep", {"app": {"trainer": {"model": own, "optim": named}}}, "", states,
         "db"),
        ("net", {"net": own, "opt": named}, "", states, "db"),
        ("net-joined", {"net": own, "opt": joined}, "", states, "db"))
    merged = 0
    for name, saved, prefix, left, formats in rows:
        for kind in formats:
            folder = context.path(f"{name}-{kind}")
            if kind == "d":
                dcp.save(saved, checkpoint_id=folder, no_dist=True)
            else:
                os.makedirs(folder)
                if kind == "b":
                    torch.save(saved, os.path.join(folder, "pytorch_model.bin"))
                else:
                    save_file(saved, os.path.join(folder, "model.safetensors"))
            answer = merge(context, folder, folder + "-out")["merged"]
            equal(loaded(folder + "-out"), below(prefix, own))
            check(answer["left_out"] == left, (name, kind, answer))
            check("left_out_beside" not in answer and "left_out_unsure" not in answer,
                  (name, kind, answer))
            merged += 1
    # convert has the states of all that name parameters, the same ones.
    want = None
    for name in ("joined-d", "joined-same-d", "torchtitan-d", "composer-named-d",
                 "state-d", "fsdp-d", "deep-d", "composer-named-b"):
        answer = json.loads(harness.run(
            [context.binary("accel-opt"), "checkpoint", "convert", context.path(name),
             "-o", context.path("run-" + name), "--to", "accel-run", "--samples", "4",
             "--format", "json"]))["converted"]
        check(answer["states"] == 2 * len(own), (name, answer))
        found = loaded(context.path("run-" + name))
        if want:
            equal(found, want)
        want = found
    return f"{merged} checkpoints"


def named(context):
    """What is left out by its place alone is named."""
    import torch
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
    model = torch.nn.Sequential(torch.nn.Linear(3, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    own, joined = get_state_dict(model, optimizer, options=StateDictOptions(
        flatten_optimizer_state_dict=True))
    for name, saved, words, left in (
            ("kind", {**own, **joined, "state.0.bias.z": torch.ones(4)},
             "left out: 'state.0.bias.z', taken for states of an optimizer by their "
             "place alone", 7),
            ("key", {**own, "optimizer": {"net.weight": torch.ones(4)}},
             "left out: 1 tensor of 'optimizer', beside the model", 1)):
        os.makedirs(context.path(name))
        torch.save(saved, context.path(name, "pytorch_model.bin"))
        answer = merge(context, context.path(name), context.path("of-" + name))["merged"]
        check(answer["left_out"] == left, answer)
        check(answer.get("left_out_unsure") == (["state.0.bias.z"] if name == "kind"
                                                else None), answer)
        equal(loaded(context.path("of-" + name)), own)
        text = harness.run([context.binary("accel-opt"), "checkpoint", "merge",
                            context.path(name), "-o", context.path("said-" + name)])
        check(words in text, text)


CASES = [("state-keys-layouts", layouts), ("state-keys-named", named)]
