"""Functions that partition-sharding made, run on every rank of a mesh: loss and
gradients are those of the whole functions."""
import re

import harness
import jobs
from harness import check
from sharded_models_cases import CHANGED, DECODERS, HEADS, SPEC

WHOLE = "partition"
SHARDED = WHOLE + ",import-tp-plan,propagate-sharding,partition-sharding"
SEQUENCE = SHARDED.replace("propagate-sharding",
                           "propagate-sharding{sequence-axis=tp}")
FOLD = ",fold-collectives"
# As accel-run's plans are made: what is saved is chosen of one rank's parts.
BEFORE_SAVES = ("import-tp-plan,propagate-sharding,partition-sharding"
                ",fold-collectives,select-saved-tensors,partition")
LEAST = 2e-6  # of what is compared, beside its largest element
VALUE = re.compile(r'sharding\.param "([^"]+)" : tensor<([^>]*)>([^\n]*)')
COLLECTIVE = re.compile(r"sharding\.(all_reduce|all_gather|reduce_scatter|"
                        r"all_to_all|permute|slice|first_rank|coordinate) ")
VOCABULARY = 64
# Windows, caps, and positions that are added to scores.
MASKED = ("mistral-window", "gemma2", "phi3", "mpt")
# A grouped matmul takes rows of whole 16 bytes.
EXPERTS = {"moe_intermediate_size": 32, "num_experts": 4}


def config_of(name):
    if name in jobs.ENCODERS:
        return {**jobs.ENCODERS[name], **HEADS.get(name, {})}
    return {**jobs.MODELS[name], **CHANGED.get(name, {})}


def module(context, name, mesh, config):
    """The module of a job with every decision, over the axes of `mesh` too."""
    folder = context.path(name)
    if name in jobs.ENCODERS:
        jobs.make_array_job(folder, name, model_config=config)
    else:
        jobs.make_job(folder, config)
    path = context.path(name, "module.mlir")
    harness.run([context.binary("accel-opt"), "plan",
                 context.path(name, "job.yaml"), "--compile-to", "sharded",
                 "-o", path])
    with open(path, encoding="utf-8") as f:
        text = f.read()
    shard = '#sharding.axis<"dp_shard" = 2>'
    check(text.count(shard) == 1, f"{name}: no mesh of two ranks")
    return text.replace(shard, ", ".join([shard] + [
        f'#sharding.axis<"{axis}" = {size}>'
        for axis, size in mesh.sizes.items()]))


def dims_of(spec, rank):
    """[["tp"], []] of the text of a spec; whole dimensions without one."""
    if not spec:
        return [[]] * rank
    text = re.sub(r" ?(partial|because) .*", "", spec)
    return [[int(e) if e.isdigit() else e.strip('"')
             for e in re.split(r",\s*", dim) if e]
            for dim in re.findall(r"\[([^\]]*)\]", text)]


class Parameters:
    """Random values of a module's parameters, whole and by rank."""

    def __init__(self, printed, mesh):
        import torch

        generator = torch.Generator().manual_seed(3)
        self.whole, self.specs, self.sharded = {}, {}, {}
        for name, shape, rest in VALUE.findall(printed):
            sizes = [int(n) for n in shape.split("x")[:-1]]
            spec = SPEC.search(rest)
            dims = dims_of(spec and spec[1], len(sizes))
            value = torch.randn(sizes, generator=generator) * 0.15
            self.whole[name], self.specs[name] = value, dims
            self.sharded[name] = [mesh.part(value, dims, rank)
                                  for rank in range(len(mesh.places))]
            for alias in re.findall(r'aliases \[([^\]]*)\]', rest)[:1]:
                for other in re.findall(r'"([^"]+)"', alias):
                    self.whole[other] = value
                    self.specs[other] = dims
                    self.sharded[other] = self.sharded[name]


def inputs_of(printed):
    """Random values of the graph's arguments."""
    import torch

    generator = torch.Generator().manual_seed(4)
    line = printed[printed.index("sharding.graph"):].splitlines()[0]
    made = {}
    for name, shape in re.findall(r"%(\w+): tensor<([^>]*)>", line):
        *sizes, dtype = shape.split("x")
        sizes = [int(n) for n in sizes]
        if dtype == "f32":
            made[name] = torch.randn(sizes, generator=generator)
        else:
            classes = "mask" in name or "type" in name or len(sizes) == 1
            high = 2 if classes else VOCABULARY
            low = 1 if "mask" in name else 0
            made[name] = torch.randint(low, high, sizes, generator=generator)
    return made


def differs(got, wanted):
    scale = max(wanted.abs().max().item(), 1e-3)
    return (got - wanted).abs().max().item() / scale


def compare(mesh, parameters, whole, sharded, sums):
    """The largest difference of loss and gradients; a gradient that leaves its
    function as a sum is added up over `sums` of it."""
    import torch

    (loss, gradients), (losses, parts) = whole, sharded
    worst, where = max((differs(part, loss), f"loss of rank {rank}")
                       for rank, part in enumerate(losses))
    check(set(gradients) == set(parts), set(gradients) ^ set(parts))
    for name, gradient in gradients.items():
        for rank in range(len(mesh.places)):
            part = parts[name][rank]
            if sums.get(name):
                part = torch.stack([parts[name][r] for r in mesh.group(
                    rank, sums[name])]).sum(0)
            wanted = mesh.part(gradient, parameters.specs[name], rank)
            check(part.shape == wanted.shape,
                  f"{name}: {part.shape}, not {wanted.shape}")
            worst, where = max((worst, where), (differs(part, wanted), name))
    return worst, where


def sums_of(printed, calls):
    """Axes over which the gradient of each parameter is still a sum."""
    by_function = {}
    for function, results in re.findall(
            r"func\.func private @(\S+)\.backward\(.*?\) -> (.*) \{\n",
            printed):
        for attributes in re.findall(
                r"tensor<[^<>]*> \{((?:[^{}\"]|\"[^\"]*\")*)\}", results):
            name = re.search(r'sharding\.param = "([^"]+)"', attributes)
            axes = re.search(r"partial \[([^\]]*)\]", attributes)
            if name and axes:
                by_function.setdefault(function, {})[name[1]] = \
                    re.findall(r'"([^"]+)"', axes[1])
    return {f"{path}.{name}" if path else name: axes
            for _, function, _, path in calls
            for name, axes in by_function.get(function, {}).items()}


def run(context, name, change=None, config=None, edit=str, sharded=SHARDED,
        passes=None, **axes):
    """(worst difference, where, collectives) of a model on a mesh of `axes`."""
    from graph_runner import Graph, Run, optimise
    from sharded_execution import Mesh, ShardedRun

    mesh = Mesh(**axes)
    text = edit(module(context, name, mesh, config or config_of(name)))
    whole = Graph(context, text, passes=WHOLE)
    path = context.path("model.mlir")
    specs = optimise(context, path, sharded.rsplit(",", 1)[0])
    parameters = Parameters(specs, mesh)
    inputs = inputs_of(text)
    expected = Run(whole, parameters.whole).train(inputs)
    passes = passes or sharded + FOLD
    parts = Graph(context, text, passes=passes)
    printed = optimise(context, path, passes)
    body = printed[printed.index("sharding.graph"):]
    check(not COLLECTIVE.search(body[:body.index("sharding.return")]),
          "values are exchanged between calls")
    if change:
        change(parts)
    found = ShardedRun(mesh, parts, parameters.sharded).train(
        {n: [v] * len(mesh.places) for n, v in inputs.items()})
    worst, where = compare(mesh, parameters, expected, found,
                           sums_of(specs, parts.calls))
    return worst, where, COLLECTIVE.findall(printed)


def model(name, ranks):
    def case(context):
        return described(*run(context, name, tp=ranks))
    return f"{name}-tp{ranks}", case


def described(worst, where, collectives):
    check(worst < LEAST * 10, f"{where} differs by {worst:.1e}")
    check("all_reduce" in collectives, "nothing is reduced")
    counts = ", ".join(f"{collectives.count(c)} {c}"
                       for c in sorted(set(collectives)))
    return f"{worst:.0e} ({where}); {counts}"


def mutants(context):
    """Each all-reduce that is left out, and a bias that every rank adds, is
    found."""
    tried = 0
    for index in range(100):
        left = [index]

        def leave_out(graph):
            for name, function in graph.functions.items():
                if name + ".forward" in graph.functions:
                    continue  # runs in an evaluation alone
                for instruction in function["instructions"]:
                    if instruction["op"] in ("sharding::all_reduce",
                                             "sharding::first_rank"):
                        if left[0] == 0:
                            instruction["op"] = "aten::clone"
                            instruction["args"] = [instruction["args"][0],
                                                   None]
                        left[0] -= 1
        worst, _, _ = run(context, "gpt2", leave_out, tp=2)
        if left[0] >= 0:
            break
        tried += 1
        check(worst > LEAST * 100, f"exchange {index} is left out, and the "
              f"largest difference is {worst:.1e}")
    check(tried >= 4, f"{tried} exchanges")
    return f"{tried} found"


def vocabulary(name, parameter, **sizes):
    """The rows of an embedding are sharded by the user."""
    def shard(text):
        made, count = re.subn(
            rf'(sharding\.param "{re.escape(parameter)}" : [^\n]*)( loc\()',
            r'\1 {spec = #sharding.spec<["tp"], [] because <"a test">>}\2',
            text)
        check(count == 1, f"{parameter}: {count} times")
        return made

    def case(context):
        worst, where, collectives = run(
            context, name, tp=2, edit=shard,
            config={**config_of(name), "vocab_size": 256, **sizes})
        check(collectives.count("coordinate") >= 2,
              "no table is read by its own rows")
        check("all_gather" not in collectives, "logits are gathered")
        return described(worst, where, collectives)
    return f"{name}-own-rows", case


def sequence(name, ranks, **sizes):
    """Sequence parallelism: sums of layers are scattered by tokens."""
    def case(context):
        worst, where, collectives = run(
            context, name, tp=ranks, config={**config_of(name), **sizes},
            sharded=SEQUENCE)
        check(collectives.count("reduce_scatter") >= 3, collectives)
        return described(worst, where, collectives)
    return "-".join([f"{name}-tp{ranks}-sequence", *sizes]), case


def sized(name, ranks, **sizes):
    """A model with other sizes: what four ranks divide, a vocabulary that two
    do."""
    def case(context):
        return described(*run(context, name, tp=ranks,
                              config={**config_of(name), **sizes}))
    return f"{name}-tp{ranks}-{'-'.join(sizes)}", case


def context(name, exchange="permute", **axes):
    """Context parallelism: a rank's tokens are parts everywhere, and attention
    sends keys and values round; with a mask of its own it gathers them."""
    sizes = axes.pop("sizes", {})

    def case(context):
        worst, where, collectives = run(
            context, name, config={**config_of(name), **sizes},
            passes=BEFORE_SAVES, **axes)
        check(worst < LEAST * 10, f"{where} differs by {worst:.1e}")
        check(collectives.count(exchange) >= 4, collectives)
        return f"{worst:.0e} ({where}); {len(collectives)} exchanges"
    return "-".join([name] + [f"{a}{n}" for a, n in axes.items()] +
                    ["context", *sizes]), case


def experts(name, **axes):
    """Experts are sharded over ep; a grouped matmul reads all of them, so that
    they are gathered."""
    def case(context):
        worst, where, collectives = run(
            context, name, config={**config_of(name), **EXPERTS}, **axes)
        check(worst < LEAST * 10, f"{where} differs by {worst:.1e}")
        check("all_gather" in collectives, "experts are whole")
        return f"{worst:.0e} ({where})"
    return "-".join([name] + [f"{a}{n}" for a, n in axes.items()]), case


CASES = [model(name, 2) for name in DECODERS 
         if name not in ("mixtral", "qwen3-moe")] + \
    [model(name, 2) for name in sorted(HEADS)] + [
        sized("qwen3-moe", 2, moe_intermediate_size=32),
        sized("mixtral", 2, intermediate_size=64),
        sized("gqa", 2, vocab_size=256), sized("tied", 2, vocab_size=256),
        sized("gemma2", 2, vocab_size=256),
        sized("qwen3", 4, num_attention_heads=8, num_key_value_heads=4,
              vocab_size=256),
        sized("gpt2", 4, n_head=4, vocab_size=256),
        vocabulary("gqa", "model.embed_tokens.weight"),
        vocabulary("tied", "model.embed_tokens.weight", pad_token_id=5),
        vocabulary("gpt2", "transformer.wte.weight"),
        sequence("gqa", 2), sequence("gqa", 2, vocab_size=256),
        sequence("gqa", 2, vocab_size=256, tie_word_embeddings=True),
        sequence("gpt2", 2), sequence("qwen3", 4, num_attention_heads=8,
                                      num_key_value_heads=4, vocab_size=256),
        *[context(name, cp=2, exchange="all_gather" if name in MASKED else
                  "permute") for name in DECODERS], context("gqa", cp=4),
        context("qwen3", tp=2, cp=2),
        # Caps are written as matmuls.
        *[context(name, sp=2, exchange="all_gather" if name == "gemma2" else
                  "all_to_all") for name in DECODERS],
        context("gqa", sp=4, exchange="all_to_all"),
        context("qwen3", tp=2, sp=2, exchange="all_to_all"),
        experts("qwen3-moe", ep=2), experts("qwen3-moe", tp=2, ep=2),
        ("mutants", mutants)]
