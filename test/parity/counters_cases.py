"""`accel-opt checkpoint merge`: counts of a training script beside flat weights
are left out by name, and a model's own numbers stay."""
import os

import harness
from harness import check
from merge_cases import equal, loaded, merge


def beside(context):
    """Counts as tensors and as plain values, and numbers of the model."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 4)
            self.norm = torch.nn.BatchNorm1d(4)
            self.logit_scale = torch.nn.Parameter(torch.tensor(2.5))
            self.step = torch.nn.Parameter(torch.tensor(0.5))  # of a quantizer

    model = Net()
    own = {n: t.detach().clone() for n, t in model.state_dict().items()}
    rest = {n: t for n, t in own.items() if n != "step"}
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    flat = get_state_dict(model, optimizer, options=StateDictOptions(
        flatten_optimizer_state_dict=True))[1]
    of_rest = {n: t for n, t in flat.items() if ".step." not in n}
    seven = torch.tensor(7)
    states = 3 * len(list(model.parameters()))
    for name, saved, want, apart, values, left in (
            ("step", {**rest, "step": seven}, rest, {"step": 1}, None, 1),
            ("one", {**rest, "global_step": torch.tensor([7])}, rest,
             {"global_step": 1}, None, 1),
            ("epoch", {**rest, "epoch": seven, "iteration": seven}, rest,
             {"epoch": 1, "iteration": 1}, None, 2),
            ("nested", {**rest, "train_state": {"step": seven, "epoch": seven}}, rest,
             {"train_state": 2}, None, 2),
            ("plain", {**rest, "step": 7, "epoch": 2, "note": "a"}, rest, None,
             ["epoch", "note", "step"], 0),
            ("below", {"net": rest, "step": seven},
             {"net." + n: t for n, t in rest.items()}, {"step": 1}, None, 1),
            ("float", {**rest, **of_rest, "step": torch.tensor(7.0)}, rest,
             {"step": 1}, None, states - 3 + 1),
            # A parameter of this name: of a model alone, and with its states.
            ("own", own, own, None, None, 0),
            ("own-states", {**own, **flat}, own, None, None, states),
            ("module", {**rest, "step": {"weight": torch.ones(2), "step": seven}},
             {**rest, "step.weight": torch.ones(2), "step.step": seven}, None, None,
             0)):
        dcp.save(saved, checkpoint_id=context.path(name), no_dist=True)
        answer = merge(context, context.path(name), context.path("of-" + name))["merged"]
        equal(loaded(context.path("of-" + name)), want)
        check(answer.get("left_out_beside") == apart, (name, answer))
        found = answer.get("left_out_values")
        check((found and sorted(found)) == values, (name, answer))
        check(answer["left_out"] == left, (name, answer))
    for name, words in (("step", "left out: 1 tensor of 'step', beside the model"),
                        ("plain", "which are no tensors")):
        text = harness.run([context.binary("accel-opt"), "checkpoint", "merge",
                            context.path(name), "-o", context.path("said-" + name)])
        check(words in text and "states of an optimizer" not in text, text)
    # torch.save has such dictionaries too; safetensors hold a model's tensors.
    from safetensors.torch import save_file
    for name, want in (("pytorch_model.bin", rest),
                       ("model.safetensors", {**rest, "step": seven})):
        folder = context.path("in-" + name)
        os.makedirs(folder)
        save = save_file if name.endswith("safetensors") else torch.save
        save({**rest, "step": seven}, os.path.join(folder, name))
        merge(context, folder, folder + "-out")
        equal(loaded(folder + "-out"), want)


CASES = [("counters-beside", beside)]
