"""What linear layers in fp8 save: torchao's by torchao itself, whose products
CPUs emulate, TransformerEngine's by what its source says that it saves."""
import re

import harness
import jobs
import saved_tensors
from executor_cases import SINGLE, differences, dump, kind_of, none_of
from harness import check

# Where the linear layers are nn.Linear, tied heads and biases among them.
MODELS = ["gqa", "mha-bias", "tied", "qwen3", "gpt2"]
BATCH, LENGTH, DTYPE = 2, 32, "bfloat16"


def folder_of(context, name):
    folder = context.path(name)
    jobs.write_config(folder, dict(jobs.MODELS[name], dtype=DTYPE))
    return folder


def torchao_case(recipe):
    def compare(context):
        folders = [(name, folder_of(context, name)) for name in MODELS]
        cases = [(folder, BATCH, LENGTH, DTYPE, None, False, None, recipe)
                 for _, folder in folders]
        found = harness.in_python(
            saved_tensors.measure_each, [({}, (cases,))],
            context.path("torch.out"), timeout=240)[0]
        problems, layers, converted = [], 0, 0
        for (name, folder), want in zip(folders, found, strict=True):
            if isinstance(want, str):
                problems.append(f"{name}: {want}")
                continue
            got = dump(context, SINGLE, folder, BATCH, LENGTH, "single",
                       options=[f"fp8:{recipe}"])
            layers += len(want["layers"])
            problems += [f"{name}: {text}" for text in differences(got, want)]
            # By the layer's own names; the dump has each function once.
            mine = {path.removesuffix(".weight") for path in got["fp8"]}
            theirs = {re.sub(r"^.*layers\.\d+\.", "", path)
                      for path in want["float8"]}
            if mine != theirs:
                problems.append(f"{name}: converted are {sorted(mine)}, "
                                f"Accelerate's are {sorted(theirs)}")
            converted += len(theirs)
        check(not problems, "\n".join(problems))
        check(converted > 10, f"{converted} layers")
        return f"{layers} layers of {len(cases)} models exact"
    return compare


def transformer_engine(context):
    """_Linear.forward (TransformerEngine 2.18, pytorch/module/linear.py) saves
    the input transposed and the weight in both forms, a byte an element, and
    nothing in 16 bits. Of a Llama layer, 16 bits save four inputs: what comes
    of both norms and of SwiGLU for the linear layers alone, and the
    attention's result, which attention saves too."""
    folder = folder_of(context, "gqa")
    config = jobs.MODELS["gqa"]
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    keys = (config["num_key_value_heads"] * hidden
            // config["num_attention_heads"])
    linears = [(hidden, hidden), (hidden, keys), (hidden, keys),
               (hidden, hidden), (hidden, inner), (hidden, inner),
               (inner, hidden)]
    rows = BATCH * LENGTH
    path = "model.layers.1"
    wide, narrow = (
        none_of(kind_of(dump(context, SINGLE, folder, BATCH, LENGTH, "single",
                             options=options), path))["saved"]
        for options in ([], ["fp8:te"]))
    dropped = 2 * rows * (hidden + hidden + inner)
    copies = sum(rows * inputs + 2 * inputs * outputs
                 for inputs, outputs in linears)
    check(narrow - wide == copies - dropped,
          f"saves {narrow - wide} bytes more than 16 bits, not "
          f"{copies - dropped}")
    return f"{copies} bytes in place of {dropped}"


CASES = [
    *((f"saved-{recipe}", torchao_case(recipe)) for recipe in
      ("tensorwise", "rowwise", "rowwise_with_gw_hp")),
    ("saved-te", transformer_engine),
]
