"""faulty.py HOW FOLDER [ARG...]: a checkpoint's folder is damaged.

  flip FILE        one bit in the middle of the data
  zero FILE        a page of zeros there
  state KEY VALUE  a number of state.json is another one, its hash fits
  text KEY VALUE   the same, and the hash does not fit
  grow             state.json has 2 MiB more, its hash fits
"""
import hashlib
import json
import os
import sys

how, folder, *rest = sys.argv[1:]
if how in ("flip", "zero"):
    path = os.path.join(folder, rest[0])
    with open(path, "r+b") as f:
        size = os.path.getsize(path)
        f.seek(size - size // 4)
        old = f.read(64)
        f.seek(size - size // 4)
        f.write(bytes([old[0] ^ 64]) if how == "flip" else bytes(64))
    sys.exit()
path = os.path.join(folder, "state.json")
with open(path, encoding="utf-8") as f:
    state = json.load(f)
if how == "grow":
    state["more"] = "x" * (2 << 20)
else:
    keys = rest[0].split(".")
    inner = state
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = json.loads(rest[1])
if how in ("state", "grow"):
    del state["sha256"]
    compact = json.dumps(state, separators=(",", ":"), ensure_ascii=False)
    state["sha256"] = hashlib.sha256(compact.encode()).hexdigest()
with open(path, "w", encoding="utf-8") as f:
    json.dump(state, f, indent=2)
