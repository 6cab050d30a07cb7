"""What `accel-opt checkpoint convert` takes from an optimizer's own file: its
steps, its groups, and updates that no plan has."""
import json
import os

import harness
import jobs
from convert_checkpoint_cases import convert, loaded_dcp, shards
from harness import check

STEPS = 4
MODEL = jobs.MODELS["gqa"]
GROUPS = [{"match": r"layers\.0\.", "lr": 5e-4}, {"match": r"layers\.1\.", "lr": 1e-3}]


class Saved:
    """A model and a plan; folders as Accelerate saves them of one process, with
    an optimizer that has done STEPS steps."""

    def __init__(self, context, model=MODEL, **options):
        self.context = context
        jobs.make_job(context.path(), model, kind="single", ranks=1, steps=2 * STEPS,
                      **options)
        self.plan = context.path("plan.json")
        harness.plan(context, context.path("job.yaml"), self.plan)

    def save(self, name, make, processes=1, change=None, schedule=True):
        """`make(model)`: the optimizer. `change(state)`: of its state_dict()."""
        import torch
        import transformers
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            self.context.path("model"), dtype=torch.float32)
        optimizer = make(model)
        rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 8)
        for _ in range(STEPS):
            for parameter in model.parameters():
                parameter.grad = torch.rand_like(parameter)
            optimizer.step()
            for _ in range(processes):
                rates.step()
        folder = self.context.path(name)
        model.save_pretrained(folder)
        os.remove(os.path.join(folder, "config.json"))
        state = optimizer.state_dict()
        if change:
            change(state)
        torch.save(state, os.path.join(folder, "optimizer.bin"))
        if schedule:
            torch.save(rates.state_dict(), os.path.join(folder, "scheduler.bin"))
        for rank in range(processes):
            torch.save({"step": 0}, os.path.join(folder, f"random_states_{rank}.pkl"))
        self.names = {id(p): n for n, p in model.named_parameters()}
        self.optimizer = optimizer
        return folder

    def convert(self, name, *options, expect=0, to="accel-run"):
        samples = () if to != "accel-run" else ("--samples", str(2 * STEPS))
        return convert(self.context, self.context.path(name),
                       self.context.path(name + "-out"), to, *samples, "--plan",
                       self.plan, *options, expect=expect)

    def refuses(self, name, *words):
        answer = self.convert(name, expect=4)
        first = answer["diagnostics"][0]
        check(first["code"] == "not-supported"
              and all(word in first["message"] for word in words), first)
        check(not os.path.exists(self.context.path(name + "-out")), name)

    def state(self, name):
        with open(self.context.path(name + "-out", "state.json"),
                  encoding="utf-8") as f:
            return json.load(f)


def adamw(model, **options):
    import torch
    return torch.optim.AdamW(model.parameters(), lr=1e-3,
                             **{"betas": (0.9, 0.95), "weight_decay": 0.1, **options})


def counts(context):
    """Steps that are plain numbers; those of a schedule where the optimizer keeps
    none; what the user says where neither is there."""
    import torch
    saved = Saved(context)

    def plain(state):
        for each in state["state"].values():
            each["step"] = int(each["step"])

    def sgd(model):
        return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    saved.save("int", adamw, change=plain, schedule=False)
    saved.save("sgd", sgd)
    saved.save("ddp", sgd, processes=2)
    saved.save("none", sgd, schedule=False)
    for name, source in (("int", None), ("sgd", "4 steps on 1 process"),
                         ("ddp", "8 steps on 2 processes")):
        answer = saved.convert(name)["converted"]
        check(answer["steps"] == STEPS, f"{name}: {answer}")
        check(source is None and "steps_from" not in answer
              or answer["steps_from"] == f"scheduler.bin, {source}", answer)
        state = saved.state(name)
        check(state["step"] == state["optimizer_steps"] == STEPS, state)
    text = harness.run(
        [context.binary("accel-opt"), "checkpoint", "convert", context.path("none"),
         "-o", context.path("no"), "--to", "accel-run", "--samples", "8", "--plan",
         saved.plan], expect=64)
    check("--steps N" in text, text)
    check(saved.convert("none", "--steps", "4")["converted"]["steps"] == 4, "--steps")
    other = convert(context, context.path("int"), context.path("no"), "accel-run",
                    "--samples", "8", "--plan", saved.plan, "--steps", "5", expect=1)
    check("4 steps, and --steps 5" in other["diagnostics"][0]["message"], other)
    names = {saved.state(n)["run"] for n in ("sgd", "ddp", "none", "int")}
    check(len(names) == 3, names)  # two hold the same


def groups(context):
    """Groups of the same shapes in another order than the plan's: their rates
    tell which are which, and others are refused."""
    import torch
    saved = Saved(context, groups=GROUPS, lr=2e-4)

    def layered(rates):
        def make(model):
            def of(layer):
                own = ("layers.0.", "layers.1.")
                return [p for n, p in model.named_parameters()
                        if (own[layer] in n if layer != "rest"
                            else not any(o in n for o in own))]
            return torch.optim.AdamW(
                [{"params": of(layer), "lr": rate} for layer, rate in rates],
                betas=(0.9, 0.95), weight_decay=0.1)
        return make

    saved.save("order", layered(((1, 1e-3), (0, 5e-4), ("rest", 2e-4))))
    answer = saved.convert("order")["converted"]
    check(answer["replaced"] == [], answer)
    found = shards(context.path("order-out"))["exp_avg"]
    for parameter, state in saved.optimizer.state.items():
        name = saved.names[id(parameter)]
        check(torch.equal(found[name], state["exp_avg"]), name)
    # One rate of the plan for both, rates of no group of it, and one of each:
    # that one layer's is known says nothing of the other's.
    for name, rates in (("rates", (1e-2, 5e-3)), ("equal", (1e-3, 1e-3)),
                        ("twice", (2e-3, 1e-3)), ("one", (5e-4, 3e-3))):
        saved.save(name, layered(((1, rates[0]), (0, rates[1]), ("rest", 2e-3))))
        saved.refuses(name, "the same shapes", "lr and weight_decay")
    # Shapes tell the rest from the layers, whatever its rate.
    saved.save("rest", layered((("rest", 7e-3), (1, 1e-3), (0, 5e-4))))
    answer = saved.convert("rest")["converted"]
    check([r["name"] for r in answer["replaced"]] == ["lr"], answer)


def updates(context):
    """Updates that no plan has are refused; other hyperparameters are named."""
    import torch
    saved = Saved(context)
    saved.save("amsgrad", lambda m: adamw(m, amsgrad=True))
    saved.refuses("amsgrad", "amsgrad set")
    saved.save("maximize", lambda m: adamw(m, maximize=True))
    saved.refuses("maximize", "maximize set")

    def adam(decay):
        return lambda m: torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.9, 0.95),
                                          weight_decay=decay)

    saved.save("adam", adam(0.1))
    saved.refuses("adam", "decoupled_weight_decay")
    # RAdam keeps what AdamW keeps; apex's groups have no amsgrad either.
    saved.save("radam", lambda m: torch.optim.RAdam(
        m.parameters(), lr=1e-3, decoupled_weight_decay=True, weight_decay=0.1))
    saved.refuses("radam", "no 'amsgrad'", "RAdam")

    def apex(state):
        for group in state["param_groups"]:
            del group["amsgrad"]
            group["bias_correction"] = True

    saved.save("apex", adamw, change=apex)
    saved.convert("apex")
    saved.save("undecayed", adam(0.0))
    saved.save("other", lambda m: adamw(m, betas=(0.8, 0.95), eps=1e-6))
    for name, want in (
            ("undecayed", [("weight_decay", "0.0", "0.1")]),
            ("other", [("betas", "[0.8,0.95]", "[0.9,0.95]"),
                       ("eps", "1e-06", "1e-08")])):
        answer = saved.convert(name)["converted"]
        found = [(r["name"], r["checkpoint"], r["plan"]) for r in answer["replaced"]]
        check(found == want, f"{name}: {found}")
    text = harness.run(
        [context.binary("accel-opt"), "checkpoint", "convert", context.path("other"),
         "-o", context.path("text"), "--to", "accel-run", "--samples", "8", "--plan",
         saved.plan])
    check("the plan's eps 1e-08 counts, not the checkpoint's 1e-06" in text, text)


def scaled(context):
    """LAMB and LARS keep what AdamW and SGD keep, and RAdam what AdamW does: names
    in the groups tell them, of files of torch.save and of a .metadata."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    def lamb(parameters):  # as timm's and apex'
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
        for group in optimizer.param_groups:
            for name in [n for n in group if n not in ("params", "lr", "betas", "eps",
                                                       "weight_decay", "param_names")]:
                del group[name]
            group.update(bias_correction=True, grad_averaging=True, max_grad_norm=1.0)
        return optimizer

    def lars(parameters):  # as timm's
        optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)
        for group in optimizer.param_groups:
            group.update(trust_coeff=0.001, trust_clip=False)
        return optimizer

    def finding(name, words):
        first = convert(context, context.path(name), context.path("no"), "accel-run",
                        "--samples", "4", "--steps", "2",
                        expect=4)["diagnostics"][0]
        check(first["code"] == "not-supported" and words in first["message"], first)
        check(not os.path.exists(context.path("no")), name)

    for kind, make, words in (
            ("lamb", lamb, "'grad_averaging'"), ("lars", lars, "'trust_c"),
            ("radam", lambda p: torch.optim.RAdam(p, lr=1e-3), "no 'amsgrad'"),
            ("adamw", lambda p: torch.optim.AdamW(p, lr=1e-3), None)):
        model = torch.nn.Linear(3, 4)
        optimizer = make(list(model.named_parameters()))
        # The update does not matter here: states and groups do.
        keep = ("momentum_buffer",) if kind == "lars" else ("exp_avg", "exp_avg_sq")
        for parameter in model.parameters():
            optimizer.state[parameter] = {
                **({} if kind == "lars" else {"step": torch.tensor(2.0)}),
                **{k: torch.rand_like(parameter) for k in keep}}
        os.makedirs(context.path(kind))
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
                   context.path(kind, "pytorch_model.bin"))
        for name, options in (("-dcp", {}),
                              ("-joined", {"flatten_optimizer_state_dict": True})):
            own, states = get_state_dict(model, optimizer,
                                         options=StateDictOptions(**options))
            dcp.save({"model": own, "optim": states},
                     checkpoint_id=context.path(kind + name), no_dist=True)
        for name in ("", "-dcp", "-joined"):
            if words:
                finding(kind + name, words)
            else:
                convert(context, context.path(kind + name),
                        context.path(kind + name + "-out"), "accel-run", "--samples",
                        "4")


def values(context):
    """Rates that are tensors, and flags."""
    import torch
    saved = Saved(context, optimizer={"name": "sgd", "lr": 1e-3, "momentum": 0.9,
                                      "nesterov": True, "weight_decay": 0.0})

    def sgd(rate, nesterov):
        return lambda m: torch.optim.SGD(m.parameters(), lr=rate, momentum=0.9,
                                         nesterov=nesterov)

    saved.save("same", sgd(torch.tensor(1e-3), True))
    saved.save("rate", sgd(torch.tensor(0.5), True))
    saved.save("flag", sgd(1e-3, False))
    for name, want in (("same", []), ("rate", [("lr", "0.5", "0.001")]),
                       ("flag", [("nesterov", "false", "true")])):
        answer = saved.convert(name)["converted"]
        found = [(r["name"], r["checkpoint"], r["plan"]) for r in answer["replaced"]]
        check(found == want, f"{name}: {found}")


def others(context):
    """States of optimizers that accel-run has not, or not in this form."""
    import torch
    import transformers
    saved = Saved(context)
    for name, kind, words in (
            ("adagrad", torch.optim.Adagrad, ("'sum'", "no optimizer")),
            ("rmsprop", torch.optim.RMSprop, ("'square_avg'", "no optimizer")),
            ("nadam", torch.optim.NAdam, ("'mu_product'", "no optimizer")),
            ("adafactor", torch.optim.Adafactor, ("adafactor_torch", "factored")),
            ("transformers", lambda p: transformers.optimization.Adafactor(
                p, lr=1e-3, relative_step=False, scale_parameter=False),
             ("the optimizer is adafactor", "factored"))):
        saved.save(name, lambda m, kind=kind: kind(list(m.parameters())))
        saved.refuses(name, *words)


def names(context):
    """Runs of one layout and step are told apart by what they hold."""
    saved = Saved(context)
    saved.save("a", adamw)
    saved.save("b", lambda m: adamw(m, betas=(0.8, 0.95)))
    for name in "ab":
        saved.convert(name)
    check(saved.state("a")["run"] != saved.state("b")["run"], "one name for two")
    convert(context, context.path("a"), context.path("again"), "accel-run",
            "--samples", "8", "--plan", saved.plan)
    with open(context.path("again", "state.json"), encoding="utf-8") as f:
        check(json.load(f)["run"] == saved.state("a")["run"], "two names for one")
    # Headers name the run too, and hashes are of what stands there.
    got = harness.execute(context, saved.plan, 1, context.path("run.jsonl"),
                          "--resume", context.path("a-out"))
    check([r["step"] for r in got] == list(range(STEPS + 1, 2 * STEPS + 1)), got)


def given(context):
    """Names that the file says itself: in any order, of parameters of one shape,
    and without a plan."""
    import torch
    saved = Saved(context)

    def named(change):
        def make(model):
            return torch.optim.AdamW(change(list(model.named_parameters())), lr=1e-3,
                                     betas=(0.9, 0.95), weight_decay=0.1)
        return make

    for name, change in (
            ("reversed", lambda all: all[::-1]),
            ("layers", lambda all: [
                {"params": [(n, p) for n, p in all if (".layers.0." in n) == first]}
                for first in (True, False)]),
            ("wrapped", lambda all: [
                ("module._orig_mod." + n, p) for n, p in all[1:] + all[:1]])):
        saved.save(name, named(change))
        convert(context, context.path(name), context.path(name + "-no-plan"),
                "accel-run", "--samples", str(2 * STEPS))
        found = shards(context.path(name + "-no-plan"))["exp_avg"]
        for parameter, state in saved.optimizer.state.items():
            own = saved.names[id(parameter)]
            check(torch.equal(found[own], state["exp_avg"]), f"{name}: {own}")
        answer = saved.convert(name, "--steps", str(STEPS))["converted"]
        check(answer["replaced"] == [], answer)


def tied(context):
    """States of a tied weight by its other name are the weight's, whether the
    model saved it once or by each of its names."""
    import torch
    import torch.distributed.checkpoint as dcp
    saved = Saved(context, model=jobs.MODELS["tied"])
    own, other = "model.embed_tokens.weight", "lm_head.weight"

    def make(model):
        return torch.optim.AdamW(
            [(other if n == own else n, p) for n, p in model.named_parameters()],
            lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)

    saved.save("once", make)
    saved.convert("once")
    want = next(s["exp_avg"] for p, s in saved.optimizer.state.items()
                if saved.names[id(p)] == own)
    check(torch.equal(shards(context.path("once-out"))["exp_avg"][own], want), "once")
    weights = shards(context.path("once-out"))["param"]
    states = {(other if saved.names[id(p)] == own else saved.names[id(p)]): s
              for p, s in saved.optimizer.state.items()}
    dcp.save({"model": {**weights, other: weights[own]}, "optim": {"state": states}},
             checkpoint_id=context.path("twice"), no_dist=True)
    for to in ("dcp", "trainer", "deepspeed"):
        answer = convert(context, context.path("twice"), context.path(to), to,
                         "--plan", saved.plan)["converted"]
        check(answer["states"] == 2 * len(states), f"{to}: {answer}")
    found = loaded_dcp(context.path("dcp"))["optim"]
    check(sorted(n for g in found["param_groups"] for n in g["params"])
          == sorted(found["state"]), "groups and states have other names")
    check(torch.equal(found["state"][own]["exp_avg"], want), "twice")


def partial(context):
    """A parameter without the states that accel-run reads of it is named."""
    saved = Saved(context)

    def drop(*kinds):
        def change(state):
            last = state["state"][max(state["state"])]
            for kind in kinds or list(last):
                del last[kind]
            if not last:
                del state["state"][max(state["state"])]
        return change

    for name, kinds, missing in (("never", (), "exp_avg"),
                                 ("one", ("exp_avg_sq",), "exp_avg_sq")):
        saved.save(name, adamw, change=drop(*kinds))
        saved.refuses(name, f"no '{missing}' of '{list(saved.names.values())[-1]}'")


def stateless(context):
    """SGD without momentum has no states, which is whole for a plan of it."""
    import torch
    plain = {"name": "sgd", "lr": 1e-2, "momentum": 0.0, "weight_decay": 0.0}
    saved = Saved(context, optimizer=plain)
    saved.save("sgd", lambda m: torch.optim.SGD(m.parameters(), lr=1e-2))
    answer = saved.convert("sgd")["converted"]
    check((answer["steps"], answer["states"]) == (STEPS, 0), answer)
    state = saved.state("sgd")
    check(state["step"] == state["optimizer_steps"] == STEPS, state)
    got = harness.execute(context, saved.plan, 1, context.path("run.jsonl"),
                          "--resume", context.path("sgd-out"))
    check([r["step"] for r in got] == list(range(STEPS + 1, 2 * STEPS + 1)), got)
    saved.save("maximize", lambda m: torch.optim.SGD(m.parameters(), lr=1e-2,
                                                     maximize=True))
    saved.refuses("maximize", "maximize set")
    convert(context, context.path("sgd"), context.path("no"), "accel-run",
            "--samples", str(2 * STEPS), expect=4)


def muon(context):
    """Not every parameter has each of Muon's states; accel-run goes on from what
    was converted with the losses of the run itself."""
    jobs.make_job(context.path(), MODEL, kind="single", ranks=1, steps=2 * STEPS,
                  checkpoint_every=STEPS,
                  optimizer={"name": "muon", "lr": 1e-3, "weight_decay": 0.1})
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    want = harness.execute(context, plan, 1, context.path("run.jsonl"))
    convert(context, context.path("out", f"step-{STEPS:08}"), context.path("again"),
            "accel-run")
    got = harness.execute(context, plan, 1, context.path("again.jsonl"), "--out",
                          context.path("other"), "--resume", context.path("again"))
    harness.compare_logs(got, want[STEPS:], "loss", 1e-6)


CASES = [("saved-steps", counts), ("saved-groups", groups),
         ("saved-updates", updates), ("saved-scaled", scaled),
         ("saved-values", values),
         ("saved-others", others),
         ("saved-names", names), ("saved-param-names", given),
         ("saved-tied-names", tied), ("saved-partial", partial),
         ("saved-stateless", stateless),
         ("saved-muon", muon)]
