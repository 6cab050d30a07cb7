"""Writes a checkpoint by DeepSpeed itself, on CPUs, and what its own
zero_to_fp32 makes of it: FOLDER.safetensors.

  DS_ACCELERATOR=cpu torchrun --nproc-per-node N deepspeed_writer.py FOLDER STAGE

DeepSpeed is not among the packages of this repository: Inputs/deepspeed holds
what release 0.19.8 wrote with torch 2.15 (pip install deepspeed==0.19.8 into an
environment of its own, with DS_BUILD_OPS=0). Stage 0 is without ZeRO; with bf16
as a third word the weights are bf16, and the optimizer's fp32; with client a
script saves what is its own, and DeepSpeed's schedule of the learning rate.
"""
import os
import sys

import deepspeed
import torch
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
from safetensors.torch import save_file


class Model(torch.nn.Module):
    """Odd sizes, a tied weight, a frozen one, a scalar and two buffers."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(7, 5)
        self.one = torch.nn.Linear(5, 3)
        self.frozen = torch.nn.Linear(3, 5)
        self.two = torch.nn.Linear(5, 5, bias=False)
        self.scale = torch.nn.Parameter(torch.tensor([1.5]))
        self.head = torch.nn.Linear(5, 7, bias=False)
        self.head.weight = self.embed.weight
        self.frozen.requires_grad_(False)
        self.register_buffer("mean", torch.linspace(0, 1, 4))
        self.register_buffer("count", torch.tensor(2**40 + 1))
        self.register_buffer("unsaved", torch.ones(2), persistent=False)

    def forward(self, ids):
        x = self.two(self.frozen(self.one(self.embed(ids)))) * self.scale
        return self.head(x + self.mean.sum().to(x.dtype)).float().square().mean()


def main():
    folder, stage, bf16 = sys.argv[1], int(sys.argv[2]), "bf16" in sys.argv
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(0)
    model = Model()
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": [p for n, p in named if p.ndim > 1]},
         {"params": [p for n, p in named if p.ndim <= 1], "weight_decay": 0.0}],
        lr=1e-2)
    config = {"train_micro_batch_size_per_gpu": 1,
              "zero_allow_untested_optimizer": True,
              "bf16": {"enabled": bf16},
              "zero_optimization": {"stage": stage, "sub_group_size": 20}}
    client = {}
    if "client" in sys.argv:
        config["scheduler"] = {"type": "WarmupLR",
                               "params": {"warmup_max_lr": 1e-2,
                                          "warmup_num_steps": 10}}
        client = {"epoch": 3, "best": {"loss": 1.25}}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer,
                                      config=config)
    for step in range(2):
        ids = torch.arange(4).unsqueeze(0) + engine.global_rank
        engine.backward(engine(ids))
        engine.step()
    engine.save_checkpoint(folder, client_state=client)
    if engine.global_rank == 0:
        for name in os.listdir(folder):
            if name.endswith(".py"):
                os.remove(os.path.join(folder, name))
        weights = (get_fp32_state_dict_from_zero_checkpoint(folder) if stage
                   else engine.module.state_dict())
        save_file({name: tensor.detach().clone().contiguous()
                   for name, tensor in weights.items()},
                  folder + ".safetensors")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
