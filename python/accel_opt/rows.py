"""Predicted beside measured, as rows that `accel-opt validate` reads:

  accel-opt validate out/accel_opt/runs.csv --models out/accel_opt/models
"""
import csv
import os

COLUMNS = ["id", "model", "gpus", "gpu", "framework", "seq", "micro_batch",
           "global_batch", "sharding", "precision", "ac", "compile",
           "tokens_per_s_per_gpu", "peak_mem_gib", "step_ms", "source"]


def sharding_of(config):
    kind = config["distributed_type"]
    if kind == "FSDP":
        fsdp = config["fsdp_config"]
        if fsdp["fsdp_version"] == 2:
            name = "FSDP2"
            if not fsdp["fsdp_reshard_after_forward"]:
                name += " SHARD_GRAD_OP"
        else:
            name = f"FSDP1 {fsdp['fsdp_sharding_strategy']}"
        return name + (" offload" if fsdp["fsdp_offload_params"] else "")
    if kind == "DEEPSPEED":
        return "ZeRO"
    return "none" if kind == "NO" else "DDP"


def releases():
    from importlib.metadata import PackageNotFoundError, version
    words = []
    for name in ("transformers", "accelerate", "torch"):
        try:
            words.append(f"{name} {version(name).split('+')[0]}")
        except PackageNotFoundError:
            pass
    return " ".join(words)


def append(path, row):
    """Adds a row, with the header where the file is new, and an id."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        with open(path, newline="", encoding="utf-8") as f:
            have = list(csv.reader(f))
    except FileNotFoundError:
        have = []
    if have and have[0] != COLUMNS:
        raise ValueError(f"'{path}' is a table of other columns; name another "
                         "file with rows=")
    with open(path, "a", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, COLUMNS)
        if not have:
            writer.writeheader()
        writer.writerow({"id": f"own{max(len(have), 1)}", **row})
