"""moved.py PLAN TIMES TARGET: the target's rate of updates is what --calibrate has
measured of them, by the bytes of the plan's: 7 of a shard's f32 with AdamW."""
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    plan = json.load(f)
with open(sys.argv[2], encoding="utf-8") as f:
    times = json.load(f)
(moved,) = [m for m in times["moves"] if m["key"] == "adamw f32 1 rank"]
assert moved["bytes"] == 7 * 4 * sum(unit["padded"] for unit in plan["units"]), moved
assert 0 < moved["seconds"] <= times["update_seconds"] * 1.0001, (moved, times["update_seconds"])
with open(sys.argv[3], encoding="utf-8") as f:
    rate = float(re.search(r'"adamw f32 1 rank": (.*)', f.read())[1])
assert abs(rate - moved["seconds"] / moved["bytes"]) < 1e-3 * rate, (rate, moved)
