"""A plan over a GPTQ base as AutoGPTQ unpacks it, beside one as GPTQModel does.

Without checkpointing each weight is unpacked once, in the forward."""
import json
import re
import sys

operators, kernel = (json.load(open(path)) for path in sys.argv[1:3])
with open(sys.argv[3]) as file:
    config = json.load(file)
with open(sys.argv[4]) as file:
    target = file.read()


def figure(name):
    return float(re.search(rf"  {name}:\n    value: (\S+)", target)[1])


hidden, ffn = config["hidden_size"], config["intermediate_size"]
kv = config["num_key_value_heads"] * config["head_dim"]
weights = config["num_hidden_layers"] * (
    2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * ffn)
# Bytes an element: int32 written and read, int8 written, masked in its place,
# read and written by the subtraction, read by the product.
moved = (4 + 4) + (1 + (1 + 1) + (1 + 1) + 1)
wanted = moved * weights / (
    figure("bandwidth") * figure("bandwidth_efficiency"))
got = operators["time"]["step_s"] - kernel["time"]["step_s"]
assert abs(got - wanted) < 1e-3 * wanted, (got, wanted)
print("operators take", round(1e3 * got, 2), "ms")
