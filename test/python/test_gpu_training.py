"""Bytes that plan predicts, beside those of torch on GPUs (an H100 and an H200,
measured by test/bench/gpu_training.py and committed there)."""
import json
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "bench"))
import gpu_training  # noqa: E402

# cuBLAS keeps two workspaces of 32 MiB among torch's own bytes, of the forward
# and of the backward, which plans count with the context (docs/accuracy.md).
WORKSPACES = 2 * 2**25
# What is known to be off, and by how much: what torch.compile keeps, blocks that
# the allocator leaves whole, T5's attention by single matmuls, Liger's layers
# with adapters, and temporaries of nf4.
KNOWN = {"t5-base-amp": 0.0025, "llama1b-compile": 0.045,
         "llama8b-8layers-compile": 0.007,
         "llama8b-liger-lora-ckpt": 0.018, "qwen06b-liger-ckpt": 0.003,
         "llama1b-liger-amp": 0.002, "llama8b-qlora": 0.0012,
         "qwen7b-qlora-ckpt": 0.0025}
# Segments of LLM.int8()'s temporaries, of what compiled code keeps, of masks, and
# of a block of the logits.
KNOWN_RESERVED = {"llama8b-int8-lora": 0.15, "llama1b-compile": 0.053,
                  "qwen7b-qlora-ckpt": 0.061,
                  "gemma2b-amp-ckpt": 0.059, "glm4-ckpt": 0.067,
                  "qwen06b-liger-ckpt": 0.04, "mistral-window": 0.03,
                  "llama1b-liger-amp": 0.032, "bert-large-amp": 0.027,
                  "llama8b-liger-lora-ckpt": 0.019}
MEASURED = {}
for card, path in gpu_training.COMMITTED.items():
    with open(path, encoding="utf-8") as f:
        MEASURED.update({(card, name): job
                         for name, job in json.load(f)["jobs"].items()})


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    gpu_training.prepare(str(folder))
    return str(folder)


@pytest.mark.parametrize("card,name", list(MEASURED))
def test_allocated_bytes(jobs, card, name):
    binary = os.environ.get("ACCEL_OPT", os.path.join(
        ROOT, "build", "bin", "accel-opt"))
    plan = gpu_training.predicted(jobs, name, binary, card,
                                  torch=gpu_training.COMMITTED_TORCH)
    assert plan, "the job is not planned"
    measured = MEASURED[card, name]
    allocated = measured["allocated"] - WORKSPACES
    error = plan["memory"]["replayed_allocated_bytes"] / allocated - 1
    assert abs(error) <= KNOWN.get(name, 0.0005), f"{error:+.3%}"
    reserved = plan["memory"]["reserved_bytes"] / measured["reserved"] - 1
    assert abs(reserved) <= KNOWN_RESERVED.get(name, 0.0125), \
        f"reserved {reserved:+.2%}"
