"""torch.distributed.pipelining's Schedule1F1B, ScheduleGPipe for gpipe,
ScheduleInterleaved1F1B where a rank has several stages, ScheduleInterleavedZeroBubble
for zb-h1 or ScheduleZBVZeroBubble for zb-v, for Llama of transformers over Gloo:
layers [begin, end) of the model in each stage.

  torch_pipeline.py JOB.yaml --log LOG --begins 0,4 [--steps N]
                    [--count-memory LIBRARY]

starts the job's ranks on this machine. The rank that has the loss logs a JSON
line per optimizer step.
"""
import argparse
import gc
import json
import os
import re
import sys
import time


def begins_of(plan):
    """The first layer of each part of the model, as they follow each other."""
    begins = []
    for decision in plan["decisions"]:
        if decision["what"] == "stage":
            layer = re.search(r"model\.layers\.(\d+)", decision["choice"])
            begins.append(int(layer[1]) if begins else 0)
    return begins


def train(job_path, log_path, begins, steps=0, count_memory=None):
    """One rank; RANK, WORLD_SIZE and MASTER_* are in the environment."""
    import fsdp2

    # Before the first tensor, so that it counts all of them.
    counter = fsdp2.CountingAllocator(count_memory) if count_memory else None
    import torch
    import torch.distributed as dist
    import transformers
    import yaml
    from torch.distributed.pipelining import (PipelineStage, Schedule1F1B,
                                              ScheduleGPipe,
                                              ScheduleInterleaved1F1B,
                                              ScheduleInterleavedZeroBubble,
                                              ScheduleZBVZeroBubble)

    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    folder = os.path.dirname(os.path.abspath(job_path))
    with open(job_path, encoding="utf-8") as f:
        job = yaml.safe_load(f)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = fsdp2.load_model(transformers, os.path.join(folder, job["model"]),
                             False, dtype=torch.float32)
    base = model.model
    ends = begins[1:] + [len(base.layers)]

    class Part(torch.nn.Module):
        def __init__(self, stage):
            super().__init__()
            self.layers = torch.nn.ModuleList(
                base.layers[begins[stage]:ends[stage]])
            self.rotary = base.rotary_emb
            self.first, self.last = stage == 0, stage == len(begins) - 1
            if self.first:
                self.embed = base.embed_tokens
            if self.last:
                self.norm, self.head = base.norm, model.lm_head

        def forward(self, x):
            x = self.embed(x) if self.first else x
            positions = torch.arange(x.shape[1])[None]
            rotary = self.rotary(x, positions)
            for layer in self.layers:
                x = layer(x, attention_mask=None, position_ids=positions,
                          position_embeddings=rotary)
                x = x[0] if isinstance(x, tuple) else x
            return self.head(self.norm(x)) if self.last else x

    by = job.get("pipeline", {}).get("schedule")
    own = ([rank, len(begins) - 1 - rank] if by == "zb-v"
           else range(rank, len(begins), world))
    held = torch.nn.ModuleList([Part(stage) for stage in own]).train()
    stages = [PipelineStage(part, stage, len(begins), torch.device("cpu"))
              for part, stage in zip(held, own)]
    parts = job["gradient_accumulation_steps"]

    def loss_of(logits, labels):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                 labels.flatten())

    if by == "zb-v":
        schedule = ScheduleZBVZeroBubble(stages, parts, loss_of)
    elif by == "zb-h1":
        schedule = ScheduleInterleavedZeroBubble(stages, parts, loss_of)
    elif by == "gpipe":
        schedule = ScheduleGPipe(stages[0], parts, loss_of)
    elif len(stages) == 1:
        schedule = Schedule1F1B(stages[0], parts, loss_of)
    else:
        schedule = ScheduleInterleaved1F1B(stages, parts, loss_of)
    # A stage keeps its own part, in memory and not in the file that it was
    # read from.
    for parameter in held.parameters():
        parameter.data = parameter.data.clone()
    del model, base
    gc.collect()
    optimizer = fsdp2.make_optimizer(held, job)
    data = fsdp2.Tokens(os.path.join(folder, job["data"]["tokens"]), job["data"])
    has_loss = len(begins) - 1 in own
    log = open(log_path, "w", encoding="utf-8") if has_loss else None
    for step in range(steps or job["schedule"]["steps"]):
        begin = time.perf_counter()
        batches = [data.micro_batch(step * parts + i) for i in range(parts)]
        losses = []
        ids, labels = (torch.cat(each) for each in zip(*batches))
        args = (ids,) if 0 in own else ()
        if has_loss:
            schedule.step(*args, target=labels, losses=losses,
                          return_outputs=False)
        else:
            schedule.step(*args, return_outputs=False)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.zeros(())
        if has_loss:
            loss = torch.stack([each.detach() for each in losses]).mean()
        # A step ends where all ranks know its loss, as accel-run's does.
        dist.broadcast(loss, world - 1 if by != "zb-v" else 0)
        seconds = time.perf_counter() - begin
        peak = torch.tensor([counter.peak() if counter else 0])
        if counter:
            dist.all_reduce(peak, dist.ReduceOp.MAX)
            counter.reset()
        if log:
            line = {"step": step + 1, "loss": float(loss), "step_s": seconds,
                    "tokens_per_s": parts * data.batch * data.length / seconds}
            if counter:
                line["peak_bytes"] = int(peak)
            log.write(json.dumps(line) + "\n")
            log.flush()
    if log:
        log.close()
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--log", required=True)
    parser.add_argument("--begins", required=True)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--count-memory", metavar="LIBRARY")
    args = parser.parse_args()
    if "RANK" in os.environ:
        train(args.job, args.log,
              [int(layer) for layer in args.begins.split(",")], args.steps,
              args.count_memory)
        return 0
    import fsdp2
    import yaml

    with open(args.job, encoding="utf-8") as f:
        ranks = yaml.safe_load(f)["accelerate"]["num_processes"]
    codes = [p.wait() for p in fsdp2.start(args.job, ranks, sys.argv[2:],
                                           __file__)]
    return max(abs(code) for code in codes)


if __name__ == "__main__":
    sys.exit(main())
