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
                checkpointed=False, exactly=0.5):
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
        check(exact >= exactly * layers, f"{exact} of {layers} layers exact")
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


def buckets_case(cases, within=0.06, growth=0.1, least=0.005):
    """A whole model under DDP, whose graphs end where buckets are full: what it
    saves, and by how much that is more than in one graph."""
    def compare(context):
        folders = []
        for i, (_, model, dtype, _) in enumerate(cases):
            folders.append(context.path(f"bucketed-{i}"))
            jobs.write_config(folders[-1], dict(model, dtype=dtype))
        asked = [(folder, BATCH, LENGTH, dtype, cap)
                 for folder, (_, _, dtype, most) in zip(folders, cases)
                 for cap in (most, 0)]
        found = harness.in_python(compiled_saves.bucketed_each,
                                  [({}, (asked,))], context.path("torch.out"),
                                  timeout=600)[0]
        for want in found:
            check(not isinstance(want, str), want)
        problems, said = [], []
        ddp = dict(SINGLE, distributed_type="MULTI_CPU", num_processes=2)
        for (name, _, dtype, cap), folder, cut, whole in zip(
                cases, folders, found[::2], found[1::2], strict=True):
            got = [dump(context, config, folder, BATCH, LENGTH, executor,
                        options=options)["saved"]
                   for config, executor, options in (
                       (ddp, "ddp", ["compiled", f"bucket={cap}"]),
                       (SINGLE, "single", ["compiled"]))]
            more, want = got[0] - got[1], cut[0] - whole[0]
            text = (f"{name} {dtype}, {cut[1]} graphs: {got[0]} bytes for "
                    f"{cut[0]}, {more} more than in one for {want}")
            said.append(text)
            if (cut[1] < 3 or abs(got[0] / cut[0] - 1) > within
                    or abs(more - want) > growth * want + least * whole[0]):
                problems.append(text)
        check(not problems, "\n".join(problems))
        return "; ".join(said)
    return compare


CASES = [
    ("compiled-layers", layers_case(LAYERS)),
    ("compiled-mixtures", layers_case(
        {"mixtral": dict(jobs.MODELS["mixtral"], intermediate_size=48)},
        exactly=0)),
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
    ("compiled-buckets", buckets_case([
        ("llama", jobs.MODELS["wide"], "float32", 2 << 20),
        ("gpt2", dict(jobs.GPT2, n_embd=384, n_layer=2), "float32", 2 << 20),
    ])),
    ("compiled-whole", whole_case(
        {name: LAYERS[name] for name in ("gqa", "gpt2", "qwen3")})),
]
