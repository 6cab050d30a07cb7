"""FSDP2's shards of an adapter's job beside those of a base that each rank holds whole."""
import json
import sys

wide, packed = (json.load(open(path)) for path in sys.argv[1:3])
with open(sys.argv[3], encoding="utf-8") as file:
    config = json.load(file)
hidden, ffn, ranks = config["hidden_size"], config["intermediate_size"], 2
kv = config["num_key_value_heads"] * config["head_dim"]


def rounded(size):
    return -(-size // 512) * 512


def whole(out, of):
    """Packed, with nested scales."""
    blocks = out * of // 64
    return sum(map(rounded, (out * of // 2, blocks, blocks // 256 * 4, 4, 64)))


more, kept = 0, 0
for out, of in ((hidden, hidden), (kv, hidden), (kv, hidden), (hidden, hidden), (ffn, hidden), (ffn, hidden),
                (hidden, ffn)):
    more += whole(out, of) - 2 * out * of // ranks
    kept += 2 * out * of
got = packed["memory"]["persistent_bytes"] - wide["memory"]["persistent_bytes"]
assert got == config["num_hidden_layers"] * more, (got, config["num_hidden_layers"] * more)

# The layers' units gather norms and adapters alone; two of them may be open.
gathered = [plan["memory"]["breakdown"]["gathered"] for plan in (wide, packed)]
assert gathered[0] - gathered[1] >= kept, gathered
print("to the byte")
