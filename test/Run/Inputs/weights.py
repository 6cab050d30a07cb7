"""weights.py FOLDER: weight files of several types, good and bad; with
"compare": the model in FOLDER/out/model has the good file's values; with "own":
it has those of FOLDER/apart.safetensors and of FOLDER/other/apart.safetensors,
which no sample tells apart, each from the rank that reads the file."""
import json
import os
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


def apart(name, sign):
    """Values that a rank's sixteen samples of 4096 bytes do not see."""
    padding = 1 << 16
    tensors = {"first": ("U8", [5 * padding // 4], bytes(5 * padding // 4)),
               "embed.weight": ("F32", [29, 12], (sign * embed).tobytes()),
               "head.weight": ("F32", [29, 12], (
                   sign * head.astype(np.float32)).tobytes()),
               "last": ("U8", [padding], bytes(padding))}
    write(name, tensors)
    with open(f"{folder}/{name}.safetensors", "rb") as f:
        raw = f.read()
    begin = len(raw) - padding - embed.nbytes - 4 * head.size
    samples = [(len(raw) - 4096) * i // 15 for i in range(16)]
    assert not any(at < len(raw) - padding and at + 4096 > begin
                   for at in samples), (begin, samples)


if sys.argv[2:] == ["own"]:
    got = read(f"{folder}/out/model/model.safetensors")
    values = np.concatenate([got[name][1].ravel() for name in
                             ("embed.weight", "head.weight")])
    first = np.concatenate([embed.ravel(), head.astype(np.float32).ravel()])
    assert np.array_equal(np.abs(values), np.abs(first))
    others = np.mean(values != first)
    assert 0.4 < others < 0.6, f"{others} of the values are rank 1's"
    sys.exit()
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
apart("apart", 1)
os.makedirs(f"{folder}/other", exist_ok=True)
apart("other/apart", -1)
write("shape", {**good, "head.weight": ("F16", [12, 29], head.tobytes())})
