"""Checkpoints in the other 16-bit type than autocast's, which it casts too: what
autograd saves of each layer."""
from executor_cases import ADAPTED, FAMILIES, adapted_case, saved_case

# CPUs' LayerNorm takes no residual in fp32 beside weights in fp16.
HALVES = {name: FAMILIES[name] for name in ("gqa", "mha-bias", "qwen3",
                                            "mistral", "tied")}

CASES = [
    ("saved-fp16", saved_case(HALVES, ("float16",), autocast=True)),
    ("saved-adapters-fp16", adapted_case(
        "float16", autocast=True,
        adapted={n: a for n, a in ADAPTED.items() if n != "conv1d"})),
]
