"""Tunes DIR/fsdp.yaml under a budget, plans what is written, and compares.

  check-tuned.py DIR MODEL EXECUTOR
"""
import json
import os
import subprocess
import sys

folder, model, executor = sys.argv[1:]
config = os.path.join(folder, "fsdp.yaml")
common = ["--model", model, "--seq-len", "2048", "--micro-batch", "4",
          "--target", "a100-80gb", "--executor", executor, "--format", "json"]


def plan(path, *options):
    done = subprocess.run(["accel-opt", "plan", path, *common, *options],
                          stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 2), done.returncode
    return json.loads(done.stdout)


peak = plan(config)["memory"]["device_bytes"]
budget = ["--memory-budget", str(peak * 8 // 10)]
out = os.path.join(folder, executor)
result = plan(config, *budget, "--tune=all", "--emit", "plan", "--emit",
              "accelerate", "-o", out)
promised = result["tune"]["yaml_alone"]["best"]
written = os.path.join(out, "accelerate.yaml")
got = plan(written, *budget)
same = (got["memory"]["device_bytes"] == promised["device_bytes"]
        and abs(got["time"]["step_s"] - promised["step_s"])
        < 1e-9 * promised["step_s"])
if executor == "accel-run":  # the search knows its model, the plan is exact
    same = abs(got["memory"]["device_bytes"] / promised["device_bytes"] - 1) < .02
print("yaml alone:", "as promised" if same else
      f"{got['memory']} {got['time']} is not {promised}")
with open(written, encoding="utf-8") as f:
    print("comment kept" if "# a comment" in f.read() else "comment lost")
front = result["tune"]["front"]
falls = all(a["device_bytes"] < b["device_bytes"] and a["step_s"] > b["step_s"]
            for a, b in zip(front, front[1:]))
print("the front is one" if falls and len(front) > 1 else f"no front: {front}")
with open(os.path.join(out, "plan.json"), encoding="utf-8") as f:
    tuned = json.load(f)
fits = tuned["predicted"]["memory"]["device_bytes"] <= int(budget[1])
print("the plan fits" if fits or executor != "accel-run" else "too big")
settings = [entry["setting"] for entry in front] + [
    result["tune"]["best"]["setting"]]
with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
    layers = json.load(f)["num_hidden_layers"]
wrong = [s for s in settings
         if sum(c["calls"] for c in s["checkpointing"]
                if c["of"].endswith("DecoderLayer")) != layers
         or (s["micro_batch"] * s["accumulation_steps"]
             != 4 * s["mesh"].get("cp", 1))
         or s["mesh"]["shard"] * s["mesh"]["replicate"] != 2
         or any(c["way"] == "none" and c["recompute_share"] != 0
                for c in s["checkpointing"])]
print("settings are whole" if not wrong else f"setting: {wrong[0]}")
