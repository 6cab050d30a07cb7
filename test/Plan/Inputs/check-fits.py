"""At which budget a plan fits, to the byte."""
import json
import os
import subprocess
import sys
import tempfile

TOOL, YAML, MODEL = sys.argv[1:]


def file_of(executor):
    """What launches it is what is planned."""
    with open(YAML, encoding="utf-8") as f:
        text = f.read()
    if executor == "fsdp1":
        text = text.replace("fsdp_version: 2", "fsdp_version: 1")
    if executor == "deepspeed":
        text = ("distributed_type: DEEPSPEED\nmixed_precision: bf16\n"
                "num_processes: 2\ndeepspeed_config: {zero_stage: 3}\n")
    path = os.path.join(tempfile.mkdtemp(), executor + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def plan(config, *options):
    done = subprocess.run(
        [TOOL, "plan", config, "--model", MODEL, "--seq-len", "32",
         "--format", "json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["memory"]


def check(executor, target):
    options = [file_of(executor), "--executor", executor]
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
