"""Trains the job of a job.yaml with DeepSpeed itself on CPU ranks, from a folder
of its load_checkpoint.

  DS_ACCELERATOR=cpu PYTHONPATH=.deepspeed torchrun --nproc-per-node N
      deepspeed_resume.py JOB.yaml LOG STAGE FOLDER [SUB_GROUP_SIZE]

Behind the steps that the folder says, to the job's last, on the samples that
accel-run takes there; rank 0 logs a JSON line a step.
"""
import json
import os
import sys

import fsdp2
import torch_ranks


def main():
    path, log, stage, folder, *sub_group = sys.argv[1:]
    import deepspeed
    import torch
    import transformers
    import yaml

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with open(path, encoding="utf-8") as f:
        job = yaml.safe_load(f)
    here = os.path.dirname(os.path.abspath(path))
    torch_ranks.without_shared_memory()
    deepspeed.init_distributed(dist_backend="gloo")
    model = fsdp2.load_model(transformers, os.path.join(here, job["model"]),
                             False, dtype=torch.float32)
    model.config.use_cache = False
    model.train()
    # The group of all that no regex of the job names comes first, as in a plan
    # and in what transformers' Trainer makes.
    options = job["optimizer"]
    *named, rest = fsdp2.optimizer_groups(model, job)
    optimizer = torch.optim.AdamW([rest, *named], lr=options["lr"],
                                  betas=options["betas"], eps=options["eps"])
    steps = job["schedule"]["steps"]
    schedule = transformers.get_scheduler(
        job["schedule"].get("decay", "constant"), optimizer, num_warmup_steps=0,
        num_training_steps=steps)
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=optimizer, lr_scheduler=schedule, config={
            "train_micro_batch_size_per_gpu": job["data"]["micro_batch"],
            "gradient_clipping": 0.0, "zero_allow_untested_optimizer": True,
            "zero_optimization": {
                "stage": int(stage),
                **({"sub_group_size": int(sub_group[0])} if sub_group else {})}})
    if sub_group:
        print("sub-groups", *(len(group) for group in engine.optimizer.fp16_groups))
    loaded, _ = engine.load_checkpoint(folder)
    assert loaded, folder
    data = fsdp2.Tokens(os.path.join(here, job["data"]["tokens"]), job["data"])
    rank, world = engine.global_rank, engine.world_size
    lines = []
    for step in range(engine.global_steps, steps):
        ids, labels = data.micro_batch(step * world + rank)
        loss = fsdp2.causal_loss(engine(input_ids=ids, use_cache=False), labels, 0.0)
        engine.backward(loss)
        engine.step()
        total = loss.detach().clone()
        torch.distributed.all_reduce(total)
        lines.append({"step": step + 1, "loss": total.item() / world})
    if rank == 0:
        with open(log, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
    torch_ranks.leave()


if __name__ == "__main__":
    main()
