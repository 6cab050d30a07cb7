"""Reads what `accel-opt plan --format json` printed: one object, with the keys
that it always has, and says what is in it."""
import json
import sys

KEYS = {
    "memory": ["peak_bytes", "persistent_bytes", "reserved_bytes",
               "device_bytes", "breakdown", "budget_bytes", "fits"],
    "time": ["step_s", "compute_s", "exposed_comm_s", "tokens_per_s",
             "tokens_per_s_per_device", "mfu"],
}
BREAKDOWN = ["parameters", "gradients", "optimizer", "activations", "logits",
             "gathered", "buffers"]
DIAGNOSTIC = ["severity", "code", "file", "line", "column", "key", "message",
              "hint"]

report = json.loads(sys.stdin.read())  # fails unless it is one value
assert isinstance(report, dict)
for name in ("memory", "time", "units", "decisions", "recommendations",
             "diagnostics", "planning_s"):
    assert name in report, f"no {name}"
for name, keys in KEYS.items():
    if report[name] is not None:
        for key in keys:
            assert key in report[name], f"no {name}.{key}"
for diagnostic in report["diagnostics"]:
    for key in DIAGNOSTIC:
        assert key in diagnostic, f"a diagnostic without {key}"
    assert diagnostic["severity"] in ("error", "warning", "note")
for decision in report["decisions"]:
    for key in ("what", "where", "choice", "why", "alternatives"):
        assert key in decision, f"a decision without {key}"
memory = report["memory"]
if memory is not None and memory["breakdown"] is not None:
    assert sorted(memory["breakdown"]) == sorted(BREAKDOWN)
    assert sum(memory["breakdown"].values()) == memory["peak_bytes"]
    print("peak", memory["peak_bytes"] > memory["persistent_bytes"] > 0)
print("fits", memory and memory["fits"], "budget",
      memory and memory["budget_bytes"])
print("time", report["time"] is not None)
print("units", len(report["units"]), "decisions", len(report["decisions"]) > 0)
for diagnostic in report["diagnostics"]:
    print(diagnostic["severity"], diagnostic["code"], diagnostic["line"],
          diagnostic["column"], diagnostic["key"])
