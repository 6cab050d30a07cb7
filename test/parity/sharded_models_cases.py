"""Models of every family under tensor parallelism: import-tp-plan and
propagate-sharding on the module of a real job, all derivatives included."""
import re

import harness
import jobs
from harness import check

# Families whose plan is transformers' or derived; sizes that two ranks divide.
DECODERS = ("gqa", "tied", "mha-bias", "mistral", "mistral-window", "qwen2",
            "qwen3", "mixtral", "gemma", "gemma2", "gemma3", "olmo2", "phi3",
            "gpt-neox", "gpt-bigcode", "gpt2", "opt", "falcon", "mpt",
            "qwen3-moe")
# Two ranks do not divide these, so they are asked for heads that are whole.
CHANGED = {"gemma": {"num_attention_heads": 4, "num_key_value_heads": 2},
           "gemma2": {"num_attention_heads": 4, "num_key_value_heads": 2},
           "gemma3": {"num_attention_heads": 4, "num_key_value_heads": 2},
           "mpt": {"d_model": 64, "n_heads": 4},
           "qwen3-moe": {"num_attention_heads": 4, "num_key_value_heads": 2}}
HEADS = {"bert": {"num_attention_heads": 4},
         "roberta": {"num_attention_heads": 4},
         "vit": {"num_attention_heads": 4}, "t5": {"num_heads": 4},
         "whisper": {"encoder_attention_heads": 4,
                     "decoder_attention_heads": 4}}
# Gradients of whole parameters of which each rank has made a part (norms over
# all heads, packed projections before an input that is split), and of
# parameters that are cut across the layers in them.
PARTS = {"olmo2": 2, "falcon": 2, "phi3": 2}
# The position bias is read whole by the heads of each rank.
INPUTS = {"t5": 4}
# Operands, those gradients included, that are gathered: projections that hold
# layers of different sizes, or whose plan gathers them; norms over all heads.
RESHARDED = {"olmo2": 2, "phi3": 15, "gpt-bigcode": 1, "falcon": 2}
SPEC = re.compile(r"#sharding\.spec<((?:[^<>]|<[^<>]*>)*)>")


def sharded(context, name, make):
    """The module after both passes, and what they remarked."""
    folder = context.path(name)
    make(folder)
    path = context.path(name, "module.mlir")
    harness.run([context.binary("accel-opt"), "plan",
                 context.path(name, "job.yaml"), "--compile-to", "sharded",
                 "-o", path])
    with open(path, encoding="utf-8") as f:
        text = f.read()
    mesh = '#sharding.axis<"dp_shard" = 2>'
    check(text.count(mesh) == 1, f"{name}: no mesh of two ranks")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(mesh, mesh + ', #sharding.axis<"tp" = 2>'))
    output = context.path(name, "out.mlir")
    remarks = harness.run([context.binary("accel-opt"), "opt", path,
                           "--import-tp-plan", "--propagate-sharding",
                           "-o", output])
    with open(output, encoding="utf-8") as f:
        return f.read(), remarks


def values(text):
    """[(attributes, dims)] of the arguments or results of a signature; dims
    without `partial` and `because`, None for a replicated value."""
    found = []
    for attributes in re.findall(
            r"tensor<[^<>]*>(?: \{((?:[^{}\"]|\"[^\"]*\")*)\})?", text):
        spec = re.search(r"sharding\.spec = " + SPEC.pattern, attributes)
        dims = spec and re.sub(r" ?(partial|because) .*", "", spec[1])
        found.append((attributes, dims if dims and '"' in dims else None))
    return found


def gradients(name, text):
    """How many sharded parameters have a gradient, each sharded as its
    parameter is."""
    count = 0
    for function, arguments, results in re.findall(
            r"func\.func private @(\S+\.joint)\((.*?)\) -> (.*) \{\n", text):
        given = {}
        for attributes, dims in values(arguments):
            binding = re.search(r"binding<param (\d+)>", attributes)
            if binding:
                given[binding[1]] = dims
        for attributes, dims in values(results):
            binding = re.search(r"binding<param_grad (\d+)>", attributes)
            if binding:
                check(dims == given[binding[1]],
                      f"{name}: {function}: parameter {binding[1]} is "
                      f"{given[binding[1]]}, its gradient {dims}")
                count += dims is not None
    return count


def share(text):
    """The part of matmuls in functions of layers that a rank has a share of."""
    matmuls = re.findall(r"aten\.(?:add)?mm [^\n]*", text)
    return sum("sharding.specs" in line for line in matmuls), len(matmuls)


def model(name, make, least, parts=0):
    def case(context):
        text, remarks = sharded(context, name, make)
        count = gradients(name, text)
        check(count >= 2, f"{count} gradients are sharded")
        saved = re.findall(r"func\.func private @\S+\.joint\(.*\n", text)
        for signature in saved:
            for attributes, _ in values(signature):
                check("partial" not in attributes or "param_grad" in attributes,
                      f"a sum leaves a function: {attributes}")
        split, matmuls = share(text)
        check(split >= least * matmuls, f"{split} of {matmuls} matmuls")
        # Once more: what flowed is derived again, to the same text.
        again = context.path(name, "again.mlir")
        harness.run([context.binary("accel-opt"), "opt",
                     context.path(name, "out.mlir"), "--import-tp-plan",
                     "--propagate-sharding", "-o", again])
        with open(again, encoding="utf-8") as f:
            check(f.read() == text, "the second run differs")
        own = remarks.count("parameter's gradient, is resharded")
        check(own == parts, f"{own} gradients are resharded:\n{remarks}")
        inputs = remarks.count("an input's gradient, is resharded")
        check(inputs == INPUTS.get(name, 0),
              f"{inputs} gradients of inputs are resharded:\n{remarks}")
        gathered = remarks.count("is resharded") - inputs
        check(gathered == RESHARDED.get(name, 0),
              f"{gathered} operands are resharded:\n{remarks}")
        return (f"{split} of {matmuls} matmuls, {count} gradients, {gathered} "
                "operands resharded")
    return case


def decoder(name):
    config = {**jobs.MODELS[name], **CHANGED.get(name, {})}
    # Attention of layers of different sizes in one is whole; of a mixture most
    # matmuls are grouped, and the routers' are whole.
    whole = name in ("gpt-bigcode", "falcon", "mixtral")
    least = 0.4 if whole else 0.6 if name == "opt" else 0.7
    return name, model(name, lambda folder: jobs.make_job(folder, config),
                       least, PARTS.get(name, 0))


def encoder(name):
    config = {**jobs.ENCODERS[name], **HEADS[name]}
    return name, model(name, lambda folder: jobs.make_array_job(
        folder, name, model_config=config), 0.6)


CASES = [decoder(name) for name in DECODERS] + \
    [encoder(name) for name in sorted(HEADS)]
