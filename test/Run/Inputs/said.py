"""said.py FILE TOKENS LENGTH: the file's predictions of each step are
of each sample once, in the labels of its tokens. Prints the steps."""
import array
import json
import sys

tokens = array.array("H")
with open(sys.argv[2], "rb") as f:
    tokens.frombytes(f.read())
length = int(sys.argv[3])
samples = list(range((len(tokens) - 1) // length))
steps = {}
with open(sys.argv[1], encoding="utf-8") as f:
    for line in map(json.loads, f):
        begin = line["sample"] * length + 1
        if line["label"] != list(tokens[begin:begin + length]):
            sys.exit(f"sample {line['sample']} has other labels")
        steps.setdefault(line["step"], []).append(line["sample"])
for step, found in steps.items():
    if sorted(found) != samples:
        sys.exit(f"step {step}: samples {found}")
print("steps", *steps)
