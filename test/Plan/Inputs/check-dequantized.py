"""What the copies of 4-bit weights take beside a base in 16 bits."""
import json
import sys

config, folder = json.load(open(sys.argv[1])), sys.argv[2]
hidden, inner = config["hidden_size"], config["intermediate_size"]
keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
elements = config["num_hidden_layers"] * hidden * (
    2 * hidden + 2 * keys + 3 * inner)


def time_of(name):
    return json.load(open(f"{folder}/{name}.json"))["time"]


def seconds(name):
    return time_of(name)["step_s"]


# The optimizer reads the adapter alone.
assert time_of("nf4")["optimizer_s"] == time_of("wide-time")["optimizer_s"]
# The first layer's q, k and v have no derivative of their inputs, and a
# kernel takes its launch too.
bandwidth = 2039e9
wide = seconds("wide-time")
for name, base, times, each in (("nf4", wide, 2, 2.5 + 4 / 64),
                                ("nested", wide, 2, 2.5 + 4.25 * 4 / 64),
                                ("nf4-again", seconds("wide-again"), 3,
                                 2.5 + 4 / 64)):
    more, least = seconds(name) - base, times * each * elements / bandwidth
    assert 0.95 * least < more < 2 * least, (name, more, least)
print("as long as the bytes take")
