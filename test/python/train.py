"""A job of a few steps, by Trainer or by a loop over Accelerate.

  train.py trainer|loop OUTPUT [memory_budget=...] [on_misfit=...] ...
"""
import json
import os
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import accel_opt
import accel_opt.job

CONFIG = LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=128,
                     num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=64)
SEQUENCE = 32


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        ids = torch.arange(SEQUENCE) * (i + 1) % CONFIG.vocab_size
        return {"input_ids": ids, "labels": ids}


def by_trainer(output, options):
    from transformers import Trainer, TrainerCallback, TrainingArguments
    seen = []

    class Tracker(TrainerCallback):  # as W&B's: an earlier callback
        def on_log(self, args, state, control, logs=None, **kwargs):
            seen.append(dict(logs))

    model = LlamaForCausalLM(CONFIG)
    if options.pop("lora", None):
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(
            r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    args = TrainingArguments(
        output_dir=output, per_device_train_batch_size=2, max_steps=4,
        gradient_accumulation_steps=2, save_strategy="no", report_to="none",
        use_cpu=True, disable_tqdm=True)
    callback = accel_opt.PlanCallback(seq_len=SEQUENCE, **options)
    trainer = Trainer(model, args, train_dataset=Tokens(),
                      callbacks=[Tracker(), callback])
    trainer.train()
    return seen, callback


def by_loop(output, options):
    from accelerate import Accelerator
    try:
        accel_opt.PlanCallback(on_misfit="stop")
    except ValueError as error:
        print(error, flush=True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    seen = []
    accelerator.log = lambda values, **kwargs: seen.append(dict(values))
    model = LlamaForCausalLM(CONFIG)
    callback = accel_opt.PlanCallback(seq_len=SEQUENCE, **options)
    callback.begin(accelerator, model, micro_batch=2, output_dir=output)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, data = accelerator.prepare(
        model, optimizer, torch.utils.data.DataLoader(Tokens(), batch_size=2))
    for step, batch in enumerate(data):
        if step == 4:
            break
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
        callback.step()
    callback.end()
    return seen, callback


def say(word, value):
    """A line in one write: ranks share the pipe."""
    os.write(1, f"{word} {json.dumps(value)}\n".encode())


def main():
    kind, output, *words = sys.argv[1:]
    options = dict(word.split("=", 1) for word in words)
    # The table knows GPUs; what is measured on this CPU stays what it is.
    if name := options.pop("gpu", None):
        accel_opt.job.device_name = lambda device: name
    torch.manual_seed(0)
    seen, callback = (by_trainer if kind == "trainer" else by_loop)(
        output, options)
    say("LOGS", [x for x in seen
                 if any(k.startswith("accel_opt/") for k in x)])
    say("PLAN", [callback.refused, str(callback.plan),
                 callback.plan and callback.plan.raw["modelled"]["framework"]])


if __name__ == "__main__":
    main()
