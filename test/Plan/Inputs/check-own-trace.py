"""Holds a trace of accel-run's step against its plan.

  check-own-trace.py TRACE accel-opt plan ...    without --emit and --format
"""
import json
import subprocess
import sys

trace, *command = sys.argv[1:]
with open(trace, encoding="utf-8") as f:
    slices = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
time = json.loads(subprocess.run([*command, "--format", "json"], check=True,
                                 stdout=subprocess.PIPE).stdout)["time"]


def near(a, b):  # the step model's step, and that of the programs
    return abs(a - b) <= 2e-2 * max(a, b)


before, = [e for e in slices if e["cat"] == "before"]
begin = (before["ts"] + before["dur"]) * 1e-6
end = max(e["ts"] + e["dur"] for e in slices) * 1e-6
assert near(end - begin, time["step_s"]), (end - begin, time["step_s"])
computed = sum(e["dur"] for e in slices if e["cat"] == "compute") * 1e-6
assert near(computed, time["compute_s"]), (computed, time["compute_s"])
first = min((e for e in slices if e["cat"] == "collective"),
            key=lambda e: e["ts"])
assert before["ts"] == 0 and first["ts"] * 1e-6 < begin, first
print(f"{before['name']}, beside {first['name']}")
