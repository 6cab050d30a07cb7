"""What accel-run has measured of a pipeline's stages.

  stages.py trace FILE      each instruction's own bytes, measured and predicted
  stages.py summary FILE    what stages compute, of a step
  stages.py calibration FILE
"""
import json
import sys


def trace(data):
    named = {}
    for event in data["traceEvents"]:
        if event["name"] == "process_name":
            named[event["pid"]] = event["args"]["name"]
    micro_batches = {pid: set() for pid in named}
    for event in data["traceEvents"]:
        if event["ph"] != "X" or event["tid"] != 1:
            continue
        own = event["args"]
        assert own["measured_own_bytes"] == own["predicted_own_bytes"], event
        assert event["ts"] >= 0 and event["dur"] >= 0, event
        micro_batches[event["pid"]].add(own["micro_batch"])
    for pid, name in sorted(named.items()):
        print(f"{name}: micro-batches {sorted(micro_batches[pid])}")


def summary(data):
    for kind in ("predicted", "measured"):
        for stage, use in enumerate(data[kind]["stages"]):
            assert 0 < use["computes_s"] < use["step_s"], use
            share = 1 - use["computes_s"] / use["step_s"]
            assert abs(use["idle_share"] - share) < 1e-9, use
            print(f"{kind} stage {stage}")
    for use in data["measured"]["stages"]:
        waits = use["waits_for_stages_s"] + use["waits_otherwise_s"]
        assert 0 < use["waits_for_stages_s"], use
        assert waits + use["computes_s"] <= use["step_s"] * 1.001, use


def calibration(data):
    by_stage = [0, 0]
    for each in data["instructions"]:
        assert each["calls"] == sum(each["calls_by_stage"]), each
        for stage, calls in enumerate(each["calls_by_stage"]):
            by_stage[stage] += each["seconds"] * calls
    for use, seconds in zip(data["stages"], by_stage):
        assert abs(use["operator_seconds"] / seconds - 1) < 1e-6, use
        assert 0 < use["operator_seconds"] < use["step_seconds"], use
    only = [sum(each["calls_by_stage"][1 - stage] == 0
                for each in data["instructions"]) for stage in (0, 1)]
    assert min(only) > 0, only  # the embedding's, and the head's
    longest = max(use["step_seconds"] for use in data["stages"])
    assert data["step_seconds"] == longest
    for each in data["collectives"]:
        print(each["key"].rsplit(" ", 2)[0], each["axes"])


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as f:
        {"trace": trace, "summary": summary,
         "calibration": calibration}[sys.argv[1]](json.load(f))
