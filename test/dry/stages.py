"""Runs of pipelines that are profiled."""
import json
import os


def profile(tools, folder, plan, ranks):
    """What is wrong, or nothing: each instruction has the bytes that the plan says,
    or above them what NCCL still holds of a message."""
    path = os.path.join(folder, "trace.json")
    tools.run_dry(os.path.join(folder, "gpu.json"), ranks, folder, "--profile", path)
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    count = {1: 0, 2: 0}  # by stage
    for event in trace["traceEvents"]:
        own = event.get("args", {})
        if event["ph"] == "X" and "measured_own_bytes" in own:
            peak = plan["stages"][event["pid"] - 1]["own_peak_bytes"]
            if not (own["predicted_own_bytes"] <= own["measured_own_bytes"] <= peak):
                return str(event)
            count[event["pid"]] += 1
    return "" if min(count.values()) > 20 else f"instructions in the trace: {count}"
