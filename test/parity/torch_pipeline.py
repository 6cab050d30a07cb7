"""torch.distributed.pipelining's Schedule1F1B, ScheduleInterleaved1F1B where a rank
has several stages, ScheduleInterleavedZeroBubble for zb-h1 or ScheduleZBVZeroBubble
for zb-v, for Llama of transformers over Gloo: layers [begin, end) of the model in
each stage."""
import json
import os


def train(job_path, log_path, begins):
    """One rank; RANK, WORLD_SIZE and MASTER_* are in the environment."""
    import fsdp2
    import torch
    import torch.distributed as dist
    import transformers
    import yaml
    from torch.distributed.pipelining import (PipelineStage, Schedule1F1B,
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
    elif len(stages) == 1:
        schedule = Schedule1F1B(stages[0], parts, loss_of)
    else:
        schedule = ScheduleInterleaved1F1B(stages, parts, loss_of)
    optimizer = fsdp2.make_optimizer(held, job)
    data = fsdp2.Tokens(os.path.join(folder, job["data"]["tokens"]), job["data"])
    records = []
    for step in range(job["schedule"]["steps"]):
        batches = [data.micro_batch(step * parts + i) for i in range(parts)]
        losses = []
        ids, labels = (torch.cat(each) for each in zip(*batches))
        args = (ids,) if 0 in own else ()
        if len(begins) - 1 in own:
            schedule.step(*args, target=labels, losses=losses)
        else:
            schedule.step(*args)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if losses:
            records.append({"step": step + 1, "loss": float(
                torch.stack([loss.detach() for loss in losses]).mean())})
    if records:
        with open(log_path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(record) + "\n" for record in records)
    dist.barrier()
    dist.destroy_process_group()
