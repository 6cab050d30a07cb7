"""The allocator's segments in plans: by replay, and what the settings of the
allocator make of them."""
import json
import os
import subprocess
import sys
import tempfile

TOOL, YAML, DDP, MODEL = sys.argv[1:]


def memory(*options, config=YAML):
    done = subprocess.run(
        [TOOL, "plan", config, "--model", MODEL, "--target", "h100-sxm-80gb",
         "--seq-len", "2048", "--format", "json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    return json.loads(done.stdout)["memory"]


# The file of each: what launches it is what is planned.
with open(YAML, encoding="utf-8") as f:
    text = f.read()
FILES = {"fsdp2": text,
         "fsdp1": text.replace("fsdp_version: 2", "fsdp_version: 1"),
         "deepspeed": "distributed_type: DEEPSPEED\nmixed_precision: bf16\n"
                      "num_processes: 2\ndeepspeed_config: {zero_stage: 3}\n"}
for executor, content in FILES.items():
    config = os.path.join(tempfile.mkdtemp(), executor + ".yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(content)
    plain = memory("--executor", executor, config=config)
    replayed = plain["replayed_reserved_bytes"]
    assert plain["peak_bytes"] <= replayed < 1.35 * plain["peak_bytes"], plain
    assert replayed % (2 << 20) == 0, plain
    assert plain["reserved_bytes"] == max(
        replayed, plain["estimated_reserved_bytes"]), plain
    assert (plain["reserved_by"] == "replay") == (
        plain["reserved_bytes"] == replayed), plain
    growing = memory("--executor", executor, "--allocator-conf",
                     "expandable_segments:True", config=config)
    assert growing["peak_bytes"] == plain["peak_bytes"]
    assert growing["replayed_reserved_bytes"] != replayed
    print(f"{executor}: by replay, and other segments where they grow")
whole = memory(config=DDP)
assert whole["reserved_by"] == "replay", whole
assert whole["reserved_bytes"] == whole["replayed_reserved_bytes"] != \
    whole["estimated_reserved_bytes"], whole
print("ddp: by replay alone")
own = memory("--executor", "accel-run")
assert own["reserved_by"] == "replay", own
assert own["reserved_bytes"] == own["replayed_reserved_bytes"], own
assert own["peak_bytes"] < own["reserved_bytes"] < 1.2 * own["peak_bytes"], own
assert own["reserved_bytes"] % (2 << 20) == 0, own
fixed = memory("--executor", "accel-run", "--allocator-conf",
               "expandable_segments:False")
assert fixed["peak_bytes"] == own["peak_bytes"]
assert fixed["reserved_bytes"] != own["reserved_bytes"], fixed
assert own["allocator_retries"] is None
print("accel-run: by replay, in segments that grow")
# Tensors fit, and so do their segments if idle ones are returned.
plain = memory("--executor", "fsdp2")
tight = memory("--executor", "fsdp2", "--memory-budget",
               str(plain["device_bytes"] - plain["reserved_bytes"] +
                   plain["replayed_reserved_bytes"] - (256 << 20)))
assert not tight["fits"] and tight["allocator_retries"] > 0, tight
assert tight["device_bytes"] == plain["device_bytes"]
print("a full device is asked again")
