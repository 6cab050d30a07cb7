"""What job-phases.test saves under FSDP2 (fp32 weights and two states of 1.2 B
parameters) on rank 0's host, beside a process, and what it resumes.

  check-saved.py FOLDER
"""
import json
import sys


def phases(name):
    with open(f"{sys.argv[1]}/{name}.json", encoding="utf-8") as file:
        return {p["phase"]: p for p in json.load(file)["phases"]}


layers, hidden, inner, keys, words = 16, 2048, 8192, 512, 128256
numel = words * hidden + hidden + layers * (
    2 * hidden * hidden + 2 * keys * hidden + 3 * inner * hidden + 2 * hidden)
states, only = phases("states"), phases("only")
process = states["start"]["host_bytes"]
for name, found, host, written in [("states", states, 8, 12),
                                   ("only", only, 4, 4)]:
    # Trainer resumes nothing under FSDP from what save_only_model leaves.
    resumed = process + host * numel if name == "states" else None
    for phase, expected in (("save", process + host * numel),
                            ("resume", resumed)):
        got = found[phase]["host_bytes"]
        assert got == expected, f"{name} {phase}: {got}, {expected}"
    got = found["save"]["serial_bytes"]
    assert got == written * numel, f"{name}: {got}, {written * numel}"
print("to the byte")
