"""The evaluations that job-phases.test plans, against what Trainer.evaluation_loop
keeps: logits of all ranks in fp32, joined by copies of all.

  check-kept-logits.py FOLDER
"""
import json
import sys

RANKS, BATCH, TOKENS, VOCABULARY, SAMPLES = 2, 2, 128, 128256, 40
sample = TOKENS * VOCABULARY * 4
gathered = RANKS * BATCH * sample


def phases(name):
    with open(f"{sys.argv[1]}/{name}.json", encoding="utf-8") as file:
        return {p["phase"]: p for p in json.load(file)["phases"]}


def check(what, got, want):
    assert got == want, f"{what}: {got} bytes, {want} are expected"


loss = phases("loss")
persistent = loss["save"]["device_bytes"]
forward = loss["eval"]["device_bytes"] - persistent
check("a forward", forward, BATCH * TOKENS * VOCABULARY * (2 + 4 + 4))
host = loss["eval"]["host_bytes"]
batches = SAMPLES // (RANKS * BATCH)
for name, there, joins in [("kept", batches, True), ("moved", 3, True),
                           ("parts", 3, False), ("each", 1, False)]:
    found = phases(name)["eval"]
    before = there if joins and there > 2 else there - 1
    device = max(forward + before * gathered,
                 (2 if joins and there > 1 else 1) * there * gathered)
    check(name, found["device_bytes"] - persistent, device)
    total = 0 if name == "each" else SAMPLES * sample
    check(name + " on the host", found["host_bytes"] - host,
          total * (2 if name == "moved" else 1))
wide = phases("wide")
copies = (wide["eval"]["device_bytes"] - wide["save"]["device_bytes"]
          - forward)
matrices = 16 * (2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 8192 * 2048)
check("autocast's copies", copies, 2 * (matrices + VOCABULARY * 2048))
print("to the byte")
