"""What DDP's communication hooks make of a step."""
import json
import subprocess
import sys

TOOL, YAML, MODEL = sys.argv[1:]


def plan(*options):
    done = subprocess.run(
        [TOOL, "plan", YAML, "--model", MODEL, "--target", "a100-80gb",
         "--seq-len", "16", "--format", "json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    return (result["memory"]["breakdown"]["buffers"],
            result["memory"]["peak_bytes"],
            result["time"]["exposed_comm_s"])


none = plan()
hooks = {name: plan("--ddp-kwargs", "comm_hook=" + name)
         for name in ("fp16", "bf16", "power_sgd")}
assert hooks["fp16"] == hooks["bf16"], hooks
# Half the bytes travel; the copies of 16 bits are there until they arrive.
assert 0.4 * none[2] < hooks["fp16"][2] < 0.7 * none[2], (none, hooks)
assert hooks["fp16"][1] >= none[1], (none, hooks)
# Rank 1 hardly travels; the error's feedback is as large as the buckets.
assert hooks["power_sgd"][2] < hooks["fp16"][2], hooks
assert hooks["power_sgd"][1] > 1.05 * none[1], (none, hooks)
print("hooks: fp16 and bf16 alike, power_sgd least on the wire")
