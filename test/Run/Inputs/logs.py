"""logs.py A B [FROM]: the logs A and B have the same losses and norms, bit by
bit; or, with "keys A", the keys of each line are the documented ones."""
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


if sys.argv[1] == "keys":
    for line in read(sys.argv[2]):
        print(line["step"], *sorted(set(line) - {"step"}))
    sys.exit()
one, two = read(sys.argv[1]), read(sys.argv[2])
for a, b in zip(one, two):
    for key in ("step", "loss", "grad_norm", "lr", "eval_loss"):
        if a.get(key) != b.get(key):
            sys.exit(f"step {a['step']}: {key} {a.get(key)!r}, {b.get(key)!r}")
if len(one) != len(two):
    sys.exit(f"{len(one)} and {len(two)} steps")
print(f"{len(one)} steps, equal")
