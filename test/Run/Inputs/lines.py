"""lines.py EACH SOME [--from DONE] STEP...: the log SOME has lines at these steps,
and each one's loss is the mean of those that the log EACH of the same run has of
the steps since the line before, or since DONE; rate and norm are the step's."""
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return {line["step"]: line for line in map(json.loads, f)}


each, some = read(sys.argv[1]), read(sys.argv[2])
steps = sys.argv[3:]
before = int(steps[1]) if steps[0] == "--from" else 0
steps = [int(s) for s in (steps[2:] if steps[0] == "--from" else steps)]
if list(some) != steps:
    sys.exit(f"lines at {list(some)}, expected {steps}")
first = before
for step in steps:
    losses = [each[s]["loss"] for s in range(before + 1, step + 1)]
    mean = sum(losses) / len(losses)
    line = some[step]
    if abs(line["loss"] - mean) > 1e-12 * abs(mean):
        sys.exit(f"step {step}: loss {line['loss']!r}, the mean is {mean!r}")
    for key in ("lr", "grad_norm"):
        if line[key] != each[step][key]:
            sys.exit(f"step {step}: {key} {line[key]!r}, {each[step][key]!r}")
    rate = line["tokens_per_s"] * line["step_s"]
    if abs(rate / (each[step]["tokens_per_s"] * each[step]["step_s"]) - 1) > 1e-9:
        sys.exit(f"step {step}: {rate} tokens a step")
    before = step
print(f"{len(steps)} lines, means of {steps[-1] - first} steps")
