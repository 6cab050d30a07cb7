"""Holds a trace of --emit perfetto against the plan of the same job.

  check-trace.py TRACE accel-opt plan ...    without --emit and --format
"""
import json
import subprocess
import sys

trace, *command = sys.argv[1:]
subprocess.run([*command, "--emit", "perfetto", "-o", trace], check=True,
               stdout=subprocess.DEVNULL)
with open(trace, encoding="utf-8") as f:
    events = json.load(f)["traceEvents"]
plan = json.loads(subprocess.run([*command, "--format", "json"], check=True,
                                 stdout=subprocess.PIPE).stdout)


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-9)


slices = [e for e in events if e["ph"] == "X"]
names = {e["tid"]: e["args"]["name"] for e in events
         if e["ph"] == "M" and e["name"] == "thread_name"}
for tid in {e["tid"] for e in slices}:
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices
                   if e["tid"] == tid)
    assert all(a[1] <= b[0] + 1e-3 for a, b in zip(spans, spans[1:])), names[tid]
assert set(names) == {e["tid"] for e in slices}
end = max(e["ts"] + e["dur"] for e in slices) * 1e-6
assert near(end, plan["time"]["step_s"]), (end, plan["time"]["step_s"])
computed = sum(e["dur"] for e in slices if e["cat"] == "compute") * 1e-6
assert near(computed, plan["time"]["compute_s"]), computed
# Purposes sum to the counter of all, whose peak is the plan's.
levels = [e["args"] for e in events if e["ph"] == "C" and e["name"] == "memory"]
sums = [e["args"]["bytes"] for e in events
        if e["ph"] == "C" and e["name"] == "memory, all"]
assert [sum(level.values()) for level in levels] == sums
peak = max(sums)
assert peak == plan["memory"]["peak_bytes"], peak
assert levels[sums.index(peak)] == plan["memory"]["breakdown"]
budget, = [e["args"]["bytes"] for e in events if e.get("name") == "budget"]
assert budget == plan["memory"]["budget_bytes"]
collectives = [e for e in slices if e["cat"] == "collective"]
assert all(e["args"]["bytes"] > 0 and e["dur"] > 0 for e in collectives)
waits = sorted({e["name"] for e in slices if e["cat"] == "wait"})
print(len(collectives), "collectives;", ", ".join(waits))
