"""`accel-opt checkpoint convert` of torch.optim.Muon's states, which have the
name of SGD's: hyperparameters tell them apart, else the plan."""
import json
import os

import harness
import jobs
from convert_checkpoint_cases import convert, shards
from harness import check
from merge_cases import equal
from safetensors import safe_open

SAMPLES = ("--samples", "4", "--steps", "2")


def taken_for(folder):
    """Muon's momentum stands apart from its parameters, SGD's beside them."""
    with safe_open(os.path.join(folder, "rank-00000.safetensors"), "pt") as f:
        apart = {unit.get("state") for unit in json.loads(f.metadata()["layout"])}
    return "muon" if "momentum_buffer" in apart else "sgd"


def net(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(3, 4, bias=False)
            self.b = torch.nn.Linear(4, 2, bias=False)

    return Net()


def stepped(torch, model, make):
    optimizer = make(list(model.named_parameters()))
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = torch.rand_like(parameter)
        optimizer.step()
    return optimizer


def finding(answer, code, *words):
    first = answer["diagnostics"][0]
    check(first["code"] == code and all(w in first["message"] for w in words), first)


def alone(context):
    """Of files of torch.save and of a .metadata, without a plan."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    makers = {"muon": lambda p: torch.optim.Muon(p, lr=1e-3),
              "sgd": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9)}
    for kind, make in makers.items():
        model = net(torch)
        optimizer = stepped(torch, model, make)
        own, nested = get_state_dict(model, optimizer)
        joined = get_state_dict(model, optimizer, options=StateDictOptions(
            flatten_optimizer_state_dict=True))[1]
        want = {n: s["momentum_buffer"] for n, s in nested["state"].items()}
        os.makedirs(context.path(kind))
        torch.save({"model_state_dict": own,
                    "optimizer_state_dict": optimizer.state_dict()},
                   context.path(kind, "pytorch_model.bin"))
        # In a list, as Lightning saves it.
        os.makedirs(context.path(kind + "-list"))
        torch.save({"state_dict": own, "optimizer_states": [optimizer.state_dict()]},
                   context.path(kind + "-list", "pytorch_model.bin"))
        for name, saved in (("-dcp", {"model": own, "optim": nested}),
                            ("-joined", {"model": own, "optim": joined}),
                            ("-flat", {**own, **joined})):
            dcp.save(saved, checkpoint_id=context.path(kind + name), no_dist=True)
        for name in ("", "-list", "-dcp", "-joined", "-flat"):
            out = context.path("of-" + kind + name)
            answer = convert(context, context.path(kind + name), out, "accel-run",
                             *SAMPLES)
            check(answer["diagnostics"] == [], answer)
            check(taken_for(out) == kind, (kind + name, taken_for(out)))
            equal(shards(out)["momentum_buffer"], want)
        # And on: what accel-run's own layout says.
        again = context.path("again-" + kind)
        convert(context, context.path("of-" + kind), again, "accel-run")
        check(taken_for(again) == kind, taken_for(again))
        # Without hyperparameters nothing tells.
        dcp.save({"model": own, "optim": {"state": nested["state"]}},
                 checkpoint_id=context.path(kind + "-bare"), no_dist=True)
        answer = convert(context, context.path(kind + "-bare"),
                         context.path("of-bare-" + kind), "accel-run", *SAMPLES)
        finding(answer, "ambiguous-states", "SGD's or Muon's", "taken for sgd")
        check(taken_for(context.path("of-bare-" + kind)) == "sgd", answer)


def several(context):
    """Two optimizers in one file, which number parameters each."""
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(3, 4))
    weight, bias = model.named_parameters()
    own = model.state_dict()

    def save(name, first, second):
        for parameter in model.parameters():
            parameter.grad = torch.rand_like(parameter)
        first.step()
        second.step()
        os.makedirs(context.path(name))
        torch.save({"model": own, "matrices": first.state_dict(),
                    "rest": second.state_dict()},
                   context.path(name, "pytorch_model.bin"))
        return convert(context, context.path(name), context.path(name + "-out"),
                       "accel-run", "--samples", "4",
                       expect=0 if name == "both" else 4)

    muon = torch.optim.Muon([weight], lr=1e-3)
    adamw = torch.optim.AdamW([bias], lr=1e-3)
    check(save("both", muon, adamw)["converted"]["states"] == 3, "both")
    check(taken_for(context.path("both-out")) == "muon", "both")
    found = shards(context.path("both-out"))
    equal(found["momentum_buffer"],
          {"0.weight": muon.state[weight[1]]["momentum_buffer"]})
    equal(found["exp_avg"], {"0.bias": adamw.state[bias[1]]["exp_avg"]})
    # SGD and AdamW together are no Muon.
    answer = save("sgd", torch.optim.SGD([weight], lr=1e-3, momentum=0.9),
                  torch.optim.AdamW([bias], lr=1e-3))
    finding(answer, "not-supported", "states of sgd and of another optimizer")
    # Numbers without names are each file's own; no one plan orders them.
    answer = save("numbers", torch.optim.Muon([weight[1]], lr=1e-3),
                  torch.optim.AdamW([bias[1]], lr=1e-3))
    finding(answer, "not-supported", "numbers its parameters")


def updates(context):
    """Updates of Muon that no plan has."""
    import torch
    for name, options, words in (
            ("rates", {"adjust_lr_fn": "match_rms_adamw"}, "match_rms_adamw"),
            ("polynomial", {"ns_coefficients": (3.0, -4.0, 2.0)}, "ns_coefficients")):
        model = net(torch)
        optimizer = stepped(torch, model, lambda p: torch.optim.Muon(
            p, lr=1e-3, **options))
        os.makedirs(context.path(name))
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
                   context.path(name, "pytorch_model.bin"))
        answer = convert(context, context.path(name), context.path("no"), "accel-run",
                         *SAMPLES, expect=4)
        finding(answer, "not-supported", words, "another update")


def planned(context):
    """Where nothing else tells the plan's optimizer counts; one that the
    hyperparameters contradict is refused."""
    import torch
    import torch.distributed.checkpoint as dcp
    import transformers
    plans = {}
    for kind in ("muon", "sgd"):
        folder = context.path("job-" + kind)
        os.makedirs(folder)
        jobs.make_job(folder, jobs.MODELS["gqa"], kind="single", ranks=1, steps=4,
                      optimizer={"name": kind, "lr": 1e-3, "weight_decay": 0.0,
                                 **({"momentum": 0.9} if kind == "sgd" else {})})
        plans[kind] = os.path.join(folder, "plan.json")
        harness.plan(context, os.path.join(folder, "job.yaml"), plans[kind])
    model = transformers.AutoModelForCausalLM.from_pretrained(
        context.path("job-muon", "model"), dtype=torch.float32)
    names = dict(model.named_parameters())
    states = {n: {"momentum_buffer": torch.rand_like(p)} for n, p in names.items()
              if p.dim() == 2}
    vector = next(n for n, p in names.items() if p.dim() != 2)

    def saved(name, options):
        dcp.save({"model": model.state_dict(),
                  "optim": {"state": states, "param_groups": [
                      {"params": list(states), **options}]}},
                 checkpoint_id=context.path(name), no_dist=True)

    def converted(name, kind, expect):
        return convert(context, context.path(name), context.path("no"), "accel-run",
                       *SAMPLES, "--plan", plans[kind], expect=expect)

    saved("bare", {"lr": 1e-3})
    saved("told", {"lr": 1e-3, "ns_steps": 5})
    # Each optimizer keeps another state of a vector, and none is there.
    for name in ("bare", "told"):
        finding(converted(name, "muon", 4), "not-supported", "'exp_avg'",
                "muon of accel-run")
    finding(converted("bare", "sgd", 4), "not-supported", "'momentum_buffer'",
            "sgd of accel-run")
    finding(converted("told", "sgd", 1), "conflicting-arguments", "those of muon",
            "the plan's is sgd")
    check(vector and not os.path.exists(context.path("no")), "something is left")


CASES = [("muon-alone", alone), ("muon-several", several), ("muon-updates", updates),
         ("muon-planned", planned)]
