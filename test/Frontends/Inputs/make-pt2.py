"""Writes a .pt2 of a linear layer and its loss, changed as asked.

   make-pt2.py SEED OUT [PATH=JSON ...] [--cut BYTES | --bomb | --npy NAME=SHAPE]

SEED is a file of test/fuzz/corpus/pt2: model.json, weights, constants and
notes, with a byte 0 between them. PATH starts with model, weights, constants or
notes, as in model.graph_module.graph.nodes[1].target=3; an empty JSON deletes.
--npy writes arrays of zeros beside OUT."""
import json
import os
import re
import sys
import zipfile

ENTRIES = {"model": "models/model.json",
           "weights": "data/weights/model_weights_config.json",
           "constants": "data/constants/model_constants_config.json",
           "notes": "extra/accel-opt.json"}


def change(parts, text):
    path, _, value = text.partition("=")
    keys = [int(k[1:-1]) if k[0] == "[" else k
            for k in re.findall(r"\[\d+\]|[^.\[\]]+", path)]
    at = parts
    for key in keys[:-1]:
        at = at[key]
    if value:
        at[keys[-1]] = json.loads(value)
    else:
        del at[keys[-1]]


def npy(path, shape, descr):
    header = str({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (-(11 + len(header)) % 64) + "\n"
    count = 1
    for size in shape:
        count *= size
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
                + header.encode() + bytes(count * int(descr[-1])))


def main():
    seed, out, *options = sys.argv[1:]
    with open(seed, "rb") as f:
        texts = f.read().split(b"\0")
    parts = {name: json.loads(t) for name, t in zip(ENTRIES, texts)}
    cut = bomb = None
    while options:
        option = options.pop(0)
        if option == "--cut":
            cut = int(options.pop(0))
        elif option == "--bomb":
            bomb = True
        elif option == "--npy":
            name, _, shape = options.pop(0).partition("=")
            descr = "<i8" if name in ("y", "input_ids", "labels") else "<f4"
            npy(os.path.join(os.path.dirname(out), name + ".npy"),
                tuple(int(s) for s in shape.split("x")), descr)
        else:
            change(parts, option)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("m/archive_format", "pt2")
        for name, part in parts.items():
            if bomb and name == "model":
                archive.writestr("m/" + ENTRIES[name], " " * (1 << 26),
                             zipfile.ZIP_DEFLATED)
            else:
                archive.writestr("m/" + ENTRIES[name], json.dumps(part))
        for i, size in enumerate((24, 8, 4)):
            archive.writestr(f"m/data/weights/weight_{i}", bytes(size))
        archive.writestr("m/data/constants/tensor_0", bytes(16))
    if cut:
        os.truncate(out, cut)


main()
