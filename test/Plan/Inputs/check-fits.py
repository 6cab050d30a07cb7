"""At which budget a plan fits, to the byte."""
import json
import subprocess
import sys

TOOL, YAML, MODEL = sys.argv[1:]


def plan(*options):
    done = subprocess.run(
        [TOOL, "plan", YAML, "--model", MODEL, "--seq-len", "32",
         "--format", "json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["memory"]


def check(executor, target):
    options = ["--executor", executor]
    if target:
        options += ["--target", target]
    code, memory = plan(*options)
    assert code == 0, memory
    device = memory["device_bytes"]
    # Tensors, then the allocator's segments, then context and communicators.
    parts = [memory["peak_bytes"], memory["reserved_bytes"], device]
    assert parts == sorted(parts), parts
    assert (parts[0] < parts[1] < device) == bool(target), parts
    assert memory["fits"] == (True if target else None), memory
    for budget, want in ((device, 0), (device - 1, 2)):
        code, memory = plan(*options, "--memory-budget", str(budget))
        assert code == want, (code, memory)
        assert memory["fits"] == (want == 0), memory
        assert memory["budget_bytes"] == budget, memory
        assert memory["device_bytes"] == device, memory
    place = f"on {target}" if target else "without a target"
    print(f"{executor} {place}: the boundary is device_bytes")


for name in ("accel-run", "fsdp2", "fsdp1", "deepspeed"):
    check(name, "h100-sxm-80gb")
for name in ("accel-run", "fsdp2"):
    check(name, None)
