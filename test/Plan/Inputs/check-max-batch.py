"""The answer of --max-batch fits, and one more does not.

  check-max-batch.py CONFIG MODEL [OPTION...]
"""
import json
import subprocess
import sys

config, model, *others = sys.argv[1:]


def plan(*options):
    done = subprocess.run(
        ["accel-opt", "plan", config, "--model", model, "--seq-len", "32",
         "--memory-budget", "3MiB", "--format", "json", *others, *options],
        stdout=subprocess.PIPE, check=False)
    return done.returncode, json.loads(done.stdout)


_, answer = plan("--max-batch")
most = answer["max_batch"]["micro_batch"]
fits, _ = plan("--micro-batch", str(most))
over, next_ = plan("--micro-batch", str(most + 1))
by = next_["memory"]["device_bytes"] - next_["memory"]["room_bytes"]
right = (fits, over) == (0, 2) and by == answer["max_batch"]["next_over_bytes"]
print("the largest fits, one more does not" if right else
      f"{most}: {fits}, {over}, {by}")
