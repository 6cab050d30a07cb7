"""A plan of an adapter beside the same of a quantised base."""
import json
import sys

wide, packed = (json.load(open(path)) for path in sys.argv[1:3])
with open(sys.argv[3]) as file:
    config = json.load(file)
hidden, ffn = config["hidden_size"], config["intermediate_size"]
kv = config["num_key_value_heads"] * config["head_dim"]


def rounded(size):
    return -(-size // 512) * 512


saved = 0
for out, of in ((hidden, hidden), (kv, hidden), (kv, hidden),
                (hidden, hidden), (ffn, hidden), (ffn, hidden),
                (hidden, ffn)):
    blocks = out * of // 64
    scales = (blocks, blocks // 256 * 4, 4, 64)  # nested
    saved += 2 * out * of - out * of // 2 - sum(map(rounded, scales))
saved *= config["num_hidden_layers"]
got = (wide["memory"]["persistent_bytes"]
       - packed["memory"]["persistent_bytes"])
assert got == saved, (got, saved)
assert packed["memory"]["peak_bytes"] < wide["memory"]["peak_bytes"]
print("to the byte")
