"""Writes a checkpoint by torch.distributed.checkpoint on two Gloo ranks.

  torchrun --nproc-per-node 2 checkpoint_writer.py FOLDER [columns|model]

`columns`: weights alone, cut along other dimensions than the first, without a
dictionary around them. `model`: {"model": weights}, as Accelerate saves.
"""
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import torch_ranks


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    if sys.argv[2:] == ["columns"]:
        weights = {
            "columns": distribute_tensor(torch.randn(6, 11), mesh, [Shard(1)]),
            "middle": distribute_tensor(torch.randn(3, 5, 4), mesh, [Shard(1)]),
            "rows": distribute_tensor(torch.randn(7, 3), mesh, [Shard(0)]),
            "whole": distribute_tensor(torch.randn(4, 4), mesh, [Replicate()]),
            "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 4)}
        dcp.save(weights, checkpoint_id=sys.argv[1])
        torch_ranks.leave()
    model = torch.nn.Sequential(torch.nn.Linear(5, 7),
                                torch.nn.Linear(7, 3, dtype=torch.bfloat16))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    weights, states = get_state_dict(model, optimizer)
    saved = {"model": weights, "optim": states, "step": 7}
    if sys.argv[2:] == ["model"]:
        saved = {"model": weights}
    dcp.save(saved, checkpoint_id=sys.argv[1])
    torch_ranks.leave()


if __name__ == "__main__":
    main()
