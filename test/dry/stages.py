"""Runs that are profiled: of pipelines, and of a host that updates."""
import json
import os

from checks import gpu_check


def profile(tools, folder, plan, ranks):
    """What is wrong, or nothing: each instruction has the bytes that the plan
    says."""
    path = os.path.join(folder, "trace.json")
    tools.run_dry(os.path.join(folder, "gpu.json"), ranks, folder, "--profile", path,
                  environment={"DRY_BUSY": "1"})
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    count = {stage + 1: 0 for stage in range(len(plan["stages"]))}
    for event in trace["traceEvents"]:
        own = event.get("args", {})
        if event["ph"] == "X" and "measured_own_bytes" in own:
            if own["predicted_own_bytes"] != own["measured_own_bytes"]:
                return str(event)
            count[event["pid"]] += 1
    if min(count.values()) <= 20:
        return f"instructions in the trace: {count}"
    return gpu_check().host_seconds(
        [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] > 0])


def profile_host(tools, folder, plan, ranks):
    """What is wrong, or nothing: each update and norm is on the host's track, and
    what it copies to the device behind it on another."""
    path = os.path.join(folder, "trace.json")
    tools.run_dry(os.path.join(folder, "gpu.json"), ranks, folder, "--profile", path)
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    tracks = {}
    for event in events:
        if event["ph"] == "X":
            track = tracks.setdefault(names[event["tid"]], {})
            track[event["args"].get("instruction")] = event
    listed = next(each["instructions"] for each in plan["programs"]
                  if each["name"] == plan["step"][0]["program"])
    want = {i: each["kind"] for i, each in enumerate(listed)
            if each.get("stream") == "host"}
    host, copies = (tracks.get("measured: " + key, {}) for key in ("host", "host_in"))
    if set(host) != set(want) or set(want) & set(tracks["measured: compute stream"]):
        return f"on the host's track: {sorted(host)}, of {sorted(want)}"
    if not all(host[i]["dur"] > 0 for i in want):
        return "what the host does is not timed"
    if set(copies) != {i for i, kind in want.items() if kind == "optimizer"}:
        return f"copies from the host: {sorted(copies)}"
    # Two clocks: the host's, and the device's of all that is not on its track.
    own = {tid for tid, name in names.items()
           if name in ("predicted step", "measured: host")}
    return gpu_check().host_seconds(
        [e for e in events if e["ph"] == "X" and e["tid"] not in own])
