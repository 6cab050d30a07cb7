"""Layers and models under torch.compile against torch's own partitioner."""
import compiled_saves
import harness
import jobs
from executor_cases import SINGLE, dump, kind_of, none_of
from harness import check

BATCH, LENGTH = 2, 32
LAYERS = {name: jobs.MODELS[name] for name in (
    "gqa", "gpt2", "gpt2-untied", "qwen3", "mistral-window", "phi3", "gemma",
    "olmo2", "gpt-neox", "opt")}
# LayerNorm's statistics in fp32: torch keeps those of one more form.
WITHIN = 0.005


def measured(context, models, dtypes, **settings):
    """((model, dtype), folder, what torch's partitioner saved) of each."""
    cases, folders = [], []
    for name, config in models.items():
        for dtype in dtypes:
            folder = context.path(f"{name}-{dtype}")
            jobs.write_config(folder, dict(config, dtype=dtype))
            cases.append((name, dtype))
            folders.append(folder)
    found = harness.in_python(
        compiled_saves.measure_each,
        [({}, ([(folder, BATCH, LENGTH, dtype, *settings.values())
                for folder, (_, dtype) in zip(folders, cases)],))],
        context.path("torch.out"), timeout=600)[0]
    for case, want in zip(cases, found, strict=True):
        check(not isinstance(want, str), f"{case}: {want}")
    return zip(cases, folders, found, strict=True)


def adapted_case(cases):
    """Of PEFT's models: the first layer's input has no gradient, and fp32
    adapters of a 16-bit base cast what goes in and out of them."""
    def compare(context):
        import adapter_cases

        folders = []
        for i, (name, dtype, options) in enumerate(cases):
            folders.append(context.path(f"adapted-{i}"))
            jobs.write_config(folders[-1], dict(jobs.MODELS[name], dtype=dtype))
            adapter_cases.write_adapter(folders[-1], options)
        found = harness.in_python(
            compiled_saves.measure_each,
            [({}, ([(folder, BATCH, LENGTH, dtype)
                    for folder, (_, dtype, _) in zip(folders, cases)],))],
            context.path("torch.out"), timeout=600)[0]
        for case, folder, want in zip(cases, folders, found, strict=True):
            check(not isinstance(want, str), f"{case}: {want}")
            got = dump(context, SINGLE, folder, BATCH, LENGTH, "single",
                       options=["compiled-layers"])
            layers = [none_of(kind_of(got, c["path"]))
                      for c in got["calls"] if c["layer"]]
            # Layers that are alike are compiled once.
            mine = {(v["saved"], v["saved_input"]) for v in layers}
            check(mine == set(want), f"{case}: {mine}, torch {want}")
        return f"{len(cases)} adapters exact"
    return compare


def layers_case(models, dtypes=("float32", "bfloat16"), autocast=False,
                checkpointed=False):
    """What a compiled layer saves, its inputs aside and with them."""
    def compare(context):
        config = dict(SINGLE, mixed_precision="bf16" if autocast else "no")
        problems, exact, layers = [], 0, 0
        for case, folder, found in measured(
                context, models, dtypes, whole=False, autocast=autocast,
                checkpointed=checkpointed):
            got = dump(context, config, folder, BATCH, LENGTH, "single",
                       options=["compiled-layers"])
            path = next(c["path"] for c in got["calls"] if c["layer"])
            kind = kind_of(got, path)
            mine = none_of(kind) if not checkpointed else next(
                v for v in kind["variants"] if v["name"] == "full")
            mine = mine["saved"], mine["saved_input"]
            for want in found:
                layers += 1
                exact += mine == want
                if abs(sum(mine) - sum(want)) > WITHIN * sum(want):
                    problems.append(f"{case}: own and received {mine}, torch's "
                                    f"partitioner {want}")
        check(not problems, "\n".join(problems))
        check(2 * exact >= layers, f"{exact} of {layers} layers exact")
        return f"{exact} of {layers} compiled layers exact"
    return compare


def whole_case(models, dtypes=("float32", "bfloat16"), least=-0.04, most=0.06):
    """A whole model in one graph, which is counted function by function."""
    def compare(context):
        problems, worst = [], 0.0
        for case, folder, found in measured(
                context, models, dtypes, whole=True):
            got = dump(context, SINGLE, folder, BATCH, LENGTH, "single",
                       options=["compiled"])
            # Of later graphs what they keep of the first is its own.
            want = found[0][0] + found[0][1] + sum(own for own, _ in found[1:])
            off = got["saved"] / want - 1
            worst = max(worst, off, key=abs)
            if not least <= off <= most:
                problems.append(f"{case}: {got['saved']} bytes, torch's "
                                f"partitioner {want}: {100 * off:+.1f} %")
        check(not problems, "\n".join(problems))
        return f"within {100 * worst:+.1f} %"
    return compare


CASES = [
    ("compiled-layers", layers_case(LAYERS)),
    ("compiled-autocast", layers_case(
        {name: LAYERS[name] for name in ("gqa", "gpt2", "qwen3")},
        ("float32",), autocast=True)),
    ("compiled-checkpoint", layers_case(
        {name: LAYERS[name] for name in ("gqa", "gpt2")}, checkpointed=True)),
    ("compiled-adapters", adapted_case([
        ("gqa", "float32", dict(r=4, target_modules=["q_proj", "v_proj"])),
        ("gqa", "float32", dict(r=4, lora_dropout=0.1,
                                target_modules=["q_proj", "o_proj"])),
        ("gqa", "bfloat16", dict(r=4, target_modules="all-linear")),
        ("gqa", "bfloat16", dict(r=4, lora_dropout=0.1,
                                 target_modules=["q_proj", "o_proj"]))])),
    ("compiled-whole", whole_case(
        {name: LAYERS[name] for name in ("gqa", "gpt2", "qwen3")})),
]
