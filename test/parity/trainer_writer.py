"""Trains the job of a job.yaml with transformers' Trainer in one process, on the
samples that accel-run takes.

  trainer_writer.py JOB.yaml LOG FOLDER STEPS AT [FROM]

It logs a JSON line a step, and saves FOLDER/checkpoint-AT; or it goes on from the
checkpoint FROM, of step AT.
"""
import json
import os
import sys

import fsdp2


def main():
    path, log, folder, steps, at, *checkpoint = sys.argv[1:]
    import torch
    import transformers
    import yaml

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    with open(path, encoding="utf-8") as f:
        job = yaml.safe_load(f)
    here = os.path.dirname(os.path.abspath(path))
    data = fsdp2.Tokens(os.path.join(here, job["data"]["tokens"]), job["data"])
    rows = job["data"]["micro_batch"]
    optimizer = job["optimizer"]

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return int(steps) * rows

        def __getitem__(self, i):
            ids, labels = data.micro_batch(i // rows)
            return {"input_ids": ids[i % rows], "labels": labels[i % rows]}

    class Own(transformers.Trainer):
        losses = []

        def compute_loss(self, model, inputs, **_):
            loss = fsdp2.causal_loss(
                model(input_ids=inputs["input_ids"], use_cache=False),
                inputs["labels"], 0.0)
            self.losses.append(loss.item())
            return loss

    trainer = Own(
        model=fsdp2.load_model(transformers, os.path.join(here, job["model"]),
                               False, dtype=torch.float32),
        args=transformers.TrainingArguments(
            output_dir=folder, max_steps=int(steps), save_steps=int(at),
            per_device_train_batch_size=rows, use_cpu=True, report_to="none",
            learning_rate=optimizer["lr"], lr_scheduler_type="constant",
            weight_decay=optimizer["weight_decay"],
            adam_beta1=optimizer["betas"][0], adam_beta2=optimizer["betas"][1],
            adam_epsilon=optimizer["eps"], max_grad_norm=0,
            optim="adamw_torch", train_sampling_strategy="sequential",
            disable_tqdm=True),
        train_dataset=Samples(),
        data_collator=transformers.default_data_collator)
    trainer.train(resume_from_checkpoint=checkpoint[0] if checkpoint else None)
    with open(log, "w", encoding="utf-8") as f:
        first = int(at) if checkpoint else 0
        for step, loss in enumerate(trainer.losses, first):
            f.write(json.dumps({"step": step + 1, "loss": loss}) + "\n")


if __name__ == "__main__":
    main()
