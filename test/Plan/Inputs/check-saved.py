"""What job-phases.test saves under FSDP2 (fp32 weights and two states of 1.2 B
parameters) on rank 0's host, beside a process.

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
    for phase in ("save", "resume"):
        got = found[phase]["host_bytes"] - process
        assert got == host * numel, f"{name} {phase}: {got}, {host * numel}"
    got = found["save"]["serial_bytes"]
    assert got == written * numel, f"{name}: {got}, {written * numel}"
print("to the byte")
