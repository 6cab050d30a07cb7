"""weights.py FOLDER: weight files of several types, good and bad; with
"compare": the model in FOLDER/out/model has the good file's values."""
import json
import struct
import sys

import numpy as np

folder = sys.argv[1]
rng = np.random.default_rng(0)
# bf16 is the upper half of f32, so these values are exact in it.
embed = (rng.standard_normal((29, 12)).astype(np.float32).view(np.uint32)
         & 0xffff0000).view(np.float32)
head = rng.standard_normal((29, 12)).astype(np.float16)


def write(name, tensors):
    header, data = {}, b""
    for key, (dtype, shape, raw) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape,
                       "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(f"{folder}/{name}.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    return {key: (entry["dtype"], np.frombuffer(
        raw[8 + length:][slice(*entry["data_offsets"])],
        np.float32).reshape(entry["shape"]))
        for key, entry in header.items() if key != "__metadata__"}


if len(sys.argv) > 2:
    got = read(f"{folder}/out/model/model.safetensors")
    assert list(got) == ["embed.weight", "head.weight"], list(got)
    for name, want in (("embed.weight", embed), ("head.weight", head)):
        assert got[name][0] == "F32", got[name][0]
        assert np.array_equal(got[name][1], want.astype(np.float32)), name
    sys.exit()
upper = (embed.view(np.uint32) >> 16).astype(np.uint16).tobytes()
good = {"embed.weight": ("BF16", [29, 12], upper),
        "head.weight": ("F16", [29, 12], head.tobytes()),
        "rotary.inv_freq": ("F32", [2], bytes(8))}
write("good", good)
write("missing", {"embed.weight": good["embed.weight"]})
write("shape", {**good, "head.weight": ("F16", [12, 29], head.tobytes())})
