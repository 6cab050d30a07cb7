"""check-snapshot.py FOLDER COMMAND...: torch reads the snapshot, and its peak is the plan's."""
import json
import pathlib
import pickle
import subprocess
import sys

from torch.cuda import _memory_viz as viz

path = pathlib.Path(sys.argv[1]) / "memory.pickle"
command = sys.argv[2:] + ["--emit", "memory-snapshot", "-o", str(path), "--format", "json"]
plan = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
snapshot = pickle.loads(path.read_bytes())
held = peak = 0
live = {}
for event in snapshot["device_traces"][0]:
    begin, end = event["addr"], event["addr"] + event["size"]
    if event["action"] == "alloc":
        assert not any(begin < b + s and b < end for b, s in live.items()), "allocations overlap"
        live[begin] = event["size"]
        held += event["size"]
        peak = max(peak, held)
    elif event["action"] == "free_completed":
        assert live.pop(begin) == event["size"], "freed as it was allocated"
        held -= event["size"]
segment = snapshot["segments"][0]
assert held == segment["allocated_size"] == sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"] >= peak
numbers = []


def walk(value):
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        walk(item)
        numbers.append(item)


walk(plan)
print("peak is the plan's:", peak in numbers, "segments are:", segment["total_size"] in numbers)
page = viz.trace_plot(snapshot)
print("page:", "<html" in page.lower() or "<script" in page, "segments:", "segments" in viz.segsum(snapshot),
      "memory:", "parameters" in viz.memory(snapshot, format_flamegraph=lambda text: text))
