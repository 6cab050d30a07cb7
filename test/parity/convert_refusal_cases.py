"""`accel-opt checkpoint convert` to other trainers at its edges: what it refuses,
ranks that become one, tied weights, runs in fp16."""
import json
import os

import harness
import jobs
from convert_checkpoint_cases import GROUPS, convert, shards
from harness import check
from merge_cases import equal, loaded

STEPS = 2
# Who asks for a plan's groups of AdamW.
NUMBERED = (("deepspeed", "--stage", "2"), ("deepspeed", "--stage", "3"),
            ("trainer",))


def ran(context, name, model=jobs.MODELS["gqa"], change=None, **options):
    """A run of two steps in a folder of its own; its plan and checkpoint."""
    folder = context.path(name)
    options = {"kind": "single", "ranks": 1, **options}
    job = jobs.make_job(folder, model, steps=STEPS,
                        checkpoint_every=STEPS, **options)
    if change:
        change(job)
        jobs.write_job(folder, job)
    plan = os.path.join(folder, "plan.json")
    harness.plan(context, os.path.join(folder, "job.yaml"), plan)
    harness.execute(context, plan, options["ranks"],
                    os.path.join(folder, "run.jsonl"))
    return plan, os.path.join(folder, "out", f"step-{STEPS:08}")


def refuses(context, source, to, code, *words):
    """`to`: whom, with the options; nothing is left of a refused conversion."""
    answer = convert(context, source, context.path("no"), *to,
                     expect=4 if code == "not-supported" else 1)
    first = answer["diagnostics"][0]
    check(answer["converted"] is None and first["code"] == code
          and all(w in first["message"] for w in words), f"{to}: {first}")
    left = [n for n in os.listdir(context.work) if n.startswith("no")]
    check(not left, left)
    return first


def optimizers(context):
    """Groups of another optimizer than AdamW are not written, nor AdamW's for
    another one's states; each target without a plan takes the states."""
    lion = {"name": "lion", "lr": 2e-4}
    for kind, ranks in (("single", 1), ("fsdp", 2)):
        plan, source = ran(context, f"lion-{kind}", optimizer=lion, kind=kind,
                           ranks=ranks)
        adamw, _ = ran(context, f"adamw-{kind}", kind=kind, ranks=ranks)
        for to in (*NUMBERED, ("accelerate",), ("dcp",)):
            first = refuses(context, source, (*to, "--plan", plan),
                            "not-supported", "the plan's optimizer is lion")
            check("--to dcp and without --plan" in first["hint"], first)
            refuses(context, source, (*to, "--plan", adamw), "not-supported",
                    "no 'exp_avg_sq'")
        convert(context, source, context.path(f"dcp-{kind}"), "dcp")


def frozen(context):
    """Parameters that are not trained have no place in ZeRO's flat weights."""
    def adapt(job):
        os.makedirs(context.path("lora", "adapter"))
        job["adapter"] = {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}

    plan, source = ran(context, "lora", change=adapt)
    for to in NUMBERED[:2]:
        refuses(context, source, (*to, "--plan", plan), "not-supported",
                "is frozen")


def narrow(context):
    """ZeRO keeps weights in float32; others would not be the run's."""
    plan, source = ran(context, "run")
    harness.run([context.binary("accel-opt"), "checkpoint", "merge", source, "-o",
                 context.path("bf16"), "--dtype", "bf16"])
    for to in NUMBERED[:2]:
        refuses(context, context.path("bf16"), (*to, "--plan", plan),
                "not-supported", "bfloat16", "float32")


def stateless(context):
    """A model's folder has no states of an optimizer."""
    plan, source = ran(context, "run")
    model = os.path.join(os.path.dirname(source), "model")
    for to, words in zip(NUMBERED, ("no 'exp_avg'", "no 'exp_avg'",
                                    "no states of an optimizer")):
        refuses(context, model, (*to, "--plan", plan), "not-supported", words)


def half(context):
    """fp16: ZeRO 1 and 2 take their loss scaler from DeepSpeed's configuration,
    ZeRO 3 from the file, so that it is refused; the Trainer's file has it."""
    import torch

    def change(job):
        job["accelerate"]["mixed_precision"] = "fp16"
        job["grad_scaler"] = {"init_scale": 512, "growth_interval": 2}

    plan, source = ran(context, "fp16", change=change)
    refuses(context, source, ("deepspeed", "--stage", "3", "--plan", plan),
            "not-supported", "fp16", "loss scale")
    convert(context, source, context.path("zero"), "deepspeed", "--plan", plan)
    names = os.listdir(context.path("zero", f"global_step{STEPS}"))
    check("zero_pp_rank_0_mp_rank_00_optim_states.pt" in names, names)
    convert(context, source, context.path("trainer"), "trainer", "--plan", plan)
    scaler = torch.load(context.path("trainer", "scaler.pt"), weights_only=True)
    with open(os.path.join(source, "state.json"), encoding="utf-8") as f:
        kept = json.load(f)["scaler"]
    check((scaler["scale"], scaler["_growth_tracker"])
          == (kept["scale"], kept["good_steps"]), f"{scaler} of {kept}")
    for folder in ("zero", "trainer"):
        convert(context, context.path(folder), context.path(folder + "-back"),
                "accel-run", "--samples", "4", "--plan", plan)
        again = shards(context.path(folder + "-back"))
        for kind, tensors in shards(source).items():
            equal(again[kind], tensors)


def skipped(context):
    """Steps that the loss scale skips are steps of the trainers, and none of the
    optimizer's."""
    import torch

    def change(job):
        job["accelerate"]["mixed_precision"] = "fp16"
        job["grad_scaler"] = {"init_scale": 2.0 ** 40, "growth_interval": 2}

    plan, source = ran(context, "skipped", change=change)
    with open(os.path.join(source, "state.json"), encoding="utf-8") as f:
        was = json.load(f)
    check((was["step"], was["optimizer_steps"]) == (STEPS, 0), was)
    for to in ("trainer", "deepspeed", "accel-run"):
        answer = convert(context, source, context.path(to), to,
                         *(() if to == "accel-run" else ("--plan", plan)))
        check(answer["converted"]["steps"] == STEPS, answer)
    with open(context.path("trainer", "trainer_state.json"), encoding="utf-8") as f:
        check(json.load(f)["global_step"] == STEPS, "global_step")
    states = torch.load(context.path("trainer", "optimizer.pt"),
                        weights_only=True)["state"]
    check(all(s["step"].item() == 0 for s in states.values()), "step of states")
    rates = torch.load(context.path("trainer", "scheduler.pt"), weights_only=True)
    check(rates["last_epoch"] == 0, rates)
    module = torch.load(context.path("deepspeed", f"global_step{STEPS}",
                                     "mp_rank_00_model_states.pt"),
                        weights_only=False)
    check((module["global_steps"], module["skipped_steps"]) == (STEPS, STEPS), module)
    # Back from each, and from itself.
    for name, samples in (("trainer", "4"), ("deepspeed", "4"), ("accel-run", None)):
        convert(context, context.path(name), context.path(name + "-back"),
                "accel-run", *(("--samples", samples) if samples else ()),
                "--plan", plan)
        with open(context.path(name + "-back", "state.json"), encoding="utf-8") as f:
            now = json.load(f)
        check((now["step"], now["optimizer_steps"]) == (STEPS, 0), f"{name}: {now}")


def gathered(context):
    """Shards of three ranks, with tied weights, are one Trainer's: its optimizer
    takes them by the names that a model's parameters have in order."""
    import torch
    import transformers

    plan, source = ran(context, "three", model=jobs.MODELS["tied"], kind="fsdp",
                       ranks=3, groups=GROUPS)
    made = context.path(f"checkpoint-{STEPS}")
    answer = convert(context, source, made, "trainer", "--plan",
                     plan)["converted"]
    kinds = shards(source)
    check(answer["parameters"] == len(kinds["param"]), answer)
    # safetensors holds the tied weight once, as the Trainer saves it.
    equal(loaded(made), kinds["param"])
    config = transformers.AutoConfig.from_pretrained(context.path("three", "model"))
    model = transformers.AutoModelForCausalLM.from_config(config)
    missing, unexpected = model.load_state_dict(loaded(made), strict=False)
    check((missing, unexpected) == (["lm_head.weight"], []), (missing, unexpected))
    check(model.lm_head.weight is model.model.embed_tokens.weight, "not tied")
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if "norm" not in n]},
              {"params": [p for n, p in named if "norm" in n],
               "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1.0)
    optimizer.load_state_dict(
        torch.load(os.path.join(made, "optimizer.pt"), weights_only=True))
    for name, parameter in named:
        state = optimizer.state[parameter]
        check(state["step"].item() == STEPS, f"{name}: {state['step']}")
        for kind in ("exp_avg", "exp_avg_sq"):
            check(torch.equal(state[kind], kinds[kind][name]), f"{name}: {kind}")
    decays = [g["weight_decay"] for g in optimizer.param_groups]
    check(decays[1] == 0.0 and decays[0] > 0, decays)
    return f"{len(named)} parameters"


def other_plans(context):
    """A plan of fewer layers or of other shapes would lose weights and states, or
    give them to a model that does not load them."""
    plan, source = ran(context, "run")
    for name, words, changed in (
            ("short", ("layers.2.", "the plan has none of this name"),
             {"num_hidden_layers": 2}),
            ("wide", ("mlp", "[176, 64] in the checkpoint", "[128, 64] in the plan"),
             {"intermediate_size": 128}),
            ("long", ("layers.3.", "the checkpoint has none of this name"),
             {"num_hidden_layers": 4})):
        folder = context.path(name)
        for kind, ranks in (("single", 1), ("fsdp", 2)):
            jobs.make_job(folder, {**jobs.MODELS["gqa"], **changed}, kind=kind,
                          ranks=ranks, steps=STEPS)
            other = os.path.join(folder, f"{kind}.json")
            harness.plan(context, os.path.join(folder, "job.yaml"), other)
            for to in (*NUMBERED, ("accelerate",), ("dcp",), ("accel-run",)):
                first = refuses(context, source, (*to, "--plan", other),
                                "conflicting-arguments", *words)
                check(first["hint"] == "give the plan of the job that was trained",
                      first)
    convert(context, source, context.path("own"), "deepspeed", "--plan", plan)


def other_ties(context):
    """A plan that ties what was trained apart, or freezes what was trained, would
    lose states."""
    _, source = ran(context, "run")
    merged = context.path("weights")
    harness.run([context.binary("accel-opt"), "checkpoint", "merge", source, "-o",
                 merged])
    for name, words, tied, change in (
            ("tied", ("ties 'lm_head.weight' to 'model.embed_tokens.weight'",
                      "states of the optimizer of each"), True, {}),
            ("frozen", ("freezes 'model.embed_tokens.weight'",), False,
             {"trainable": "norm|layers.1"})):
        folder = context.path(name)
        for kind, ranks in (("single", 1), ("fsdp", 2)):
            job = jobs.make_job(
                folder, {**jobs.MODELS["gqa"], "tie_word_embeddings": tied},
                kind=kind, ranks=ranks, steps=STEPS)
            jobs.write_job(folder, {**job, **change})
            other = os.path.join(folder, f"{kind}.json")
            harness.plan(context, os.path.join(folder, "job.yaml"), other)
            for to in (*NUMBERED, ("accelerate",), ("dcp",), ("accel-run",)):
                refuses(context, source, (*to, "--plan", other),
                        "conflicting-arguments", *words)
        if tied:
            refuses(context, merged, ("dcp", "--plan", other),
                    "conflicting-arguments", "other values in each")
        else:  # which holds no states
            convert(context, merged, context.path("own"), "dcp", "--plan", other)


def buffers(context):
    """Buffers that are saved lie among the weights of other trainers; each target
    has them, and DeepSpeed names them."""
    import torch
    plan, source = ran(context, "bias", model=jobs.PEAKED["deepseek-v3"])
    harness.run([context.binary("accel-opt"), "checkpoint", "merge", source, "-o",
                 context.path("whole")])
    weights = loaded(context.path("whole"))
    with open(plan, encoding="utf-8") as f:
        names = [b["fqn"] for b in json.load(f)["buffers"] if b.get("persistent")]
    check(names and set(names) < set(weights), names)
    sources = {"run": source}
    for to in ("dcp", "accelerate", "trainer"):
        sources[to] = context.path(to)
        convert(context, source, sources[to], to, "--plan", plan)
    for name, folder in sources.items():
        for stage in "23":
            made = context.path(f"{name}-zero{stage}")
            answer = convert(context, folder, made, "deepspeed", "--plan", plan,
                             "--stage", stage)["converted"]
            check(answer["parameters"] == len(weights) - len(names), answer)
            rank = "zero_pp_rank_0_" if stage == "3" else ""
            module = torch.load(os.path.join(
                made, f"global_step{STEPS}", rank + "mp_rank_00_model_states.pt"),
                weights_only=False)
            check(sorted(module["buffer_names"]) == sorted(names),
                  module["buffer_names"])
            equal({n: module["module"][n] for n in names},
                  {n: weights[n] for n in names})
            harness.run([context.binary("accel-opt"), "checkpoint", "merge", made,
                         "-o", made + "-merged"])
            equal(loaded(made + "-merged"), weights)
        if name == "run":
            continue
        back = context.path(name + "-back")
        convert(context, folder, back, "accel-run", "--samples", "4", "--plan", plan)
        harness.run([context.binary("accel-opt"), "checkpoint", "merge", back, "-o",
                     back + "-merged"])
        equal(loaded(back + "-merged"), weights)
    return f"{len(names)} buffers from {len(sources)} trainers"


def adapter_to_trainer(context):
    """The Trainer makes a group without decay where an adapter has nothing for
    it, and loads the groups that are written; the plan may have one alone."""
    for groups in (GROUPS, []):
        sizes = adapted(context, groups)
    return f"groups of {sizes[0]} and {sizes[1]}"


def adapted(context, groups):
    import shutil
    import torch
    for name in ("out", "trainer"):
        shutil.rmtree(context.path(name), ignore_errors=True)
    made = jobs.make_job(context.path(), jobs.MODELS["gqa"], kind="single", ranks=1,
                         steps=2, checkpoint_every=2, groups=groups)
    made["adapter"] = {"r": 2, "lora_alpha": 4, "lora_dropout": 0.0,
                       "target_modules": ["q_proj", "v_proj"]}
    jobs.write_job(context.path(), made)
    plan = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan)
    harness.execute(context, plan, 1, context.path("run.jsonl"))
    convert(context, context.path("out", "step-00000002"), context.path("trainer"),
            "trainer", "--plan", plan)
    saved = torch.load(context.path("trainer", "optimizer.pt"), weights_only=True)
    with open(plan, encoding="utf-8") as f:
        shapes = [p["shape"] for p in json.load(f)["parameters"]
                  if p.get("trainable", True)]
    # As Trainer.create_optimizer groups them.
    optimizer = torch.optim.AdamW([
        {"params": [torch.nn.Parameter(torch.zeros(s)) for s in shapes],
         "weight_decay": 0.1}, {"params": [], "weight_decay": 0.0}])
    optimizer.load_state_dict(saved)
    sizes = [len(group["params"]) for group in saved["param_groups"]]
    # What PEFT saves has no weights of the model.
    answer = json.loads(harness.run(
        [context.binary("accel-opt"), "checkpoint", "merge",
         context.path("out", "model"), "-o", context.path("no"), "--format", "json"],
        expect=4))
    check("holds an adapter" in answer["diagnostics"][0]["message"], answer)
    return sizes


CASES = [
    ("convert-refuses-optimizers", optimizers),
    ("convert-refuses-frozen", frozen),
    ("convert-refuses-bf16", narrow),
    ("convert-refuses-weights", stateless),
    ("convert-fp16", half),
    ("convert-skipped-steps", skipped),
    ("convert-refuses-other-plans", other_plans),
    ("convert-refuses-other-ties", other_ties),
    ("convert-buffers", buffers),
    ("convert-ranks-to-trainer", gathered),
    ("convert-adapter-to-trainer", adapter_to_trainer),
]
