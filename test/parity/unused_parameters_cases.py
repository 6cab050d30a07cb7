"""Whether DistributedDataParallel, as transformers' Trainer makes it, gets over
recomputed layers: two ranks train a small Llama, and accel-opt says beforehand
which of the jobs stop."""
import json
import os

import fsdp2
import harness
import jobs
from harness import check

STOPS = "Expected to mark a variable ready only once"


def train(folder, out, arguments, adapter):
    """Two steps; the first line of what stopped them, else nothing."""
    import peft
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(folder))
    if adapter:
        config = peft.LoraConfig(
            r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        if os.environ["RANK"] == "0":
            config.save_pretrained(adapter)
        model = peft.get_peft_model(model, config)
    ids = torch.randint(0, 64, (8, 16))
    trainer = transformers.Trainer(
        model, transformers.TrainingArguments(
            out, use_cpu=True, report_to=[], disable_tqdm=True, max_steps=2,
            save_strategy="no", ddp_backend="gloo", **arguments),
        train_dataset=[{"input_ids": row, "labels": row} for row in ids])
    try:
        trainer.train()
    except RuntimeError as e:
        if STOPS not in str(e):
            raise
        return str(e).splitlines()[0]
    return ""


def planned(context, folder, arguments, adapter):
    """The errors of `accel-opt plan` for the same job."""
    script = context.path("arguments.json")
    with open(script, "w", encoding="utf-8") as f:
        json.dump({"output_dir": "out", **arguments}, f)
    text = harness.run(
        [context.binary("accel-opt"), "plan", "--trainer", script, "--model",
         folder, "--num-processes", "2", "--seq-len", "16", "--target",
         "a100-80gb", *(["--adapter", adapter] if adapter else [])],
        expect=None)
    return [line for line in text.splitlines() if "error: " in line]


def case(stops, adapts, form, finds=None):
    def compare(context):
        adapter = context.path("adapter") if adapts else None
        arguments = {"activation_checkpointing": True,
                     "activation_checkpointing_kwargs": {"use_reentrant": form}}
        if finds is not None:
            arguments["ddp_find_unused_parameters"] = finds
        folder = context.path("model")
        jobs.write_config(folder, jobs.MODELS["gqa"])
        port = fsdp2.free_port()
        found = harness.in_python(
            train, [(fsdp2.rank_environment(rank, 2, port),
                     (folder, context.path("out"), arguments, adapter))
                    for rank in range(2)], context.path("torch.out"))
        errors = planned(context, folder, arguments, adapter)
        check(bool(found[0]) == stops, f"torch: {found}")
        check(all("[reentrant-checkpoints]" in e for e in errors) and
              bool(errors) == stops, f"plan: {errors}, torch: {found}")
        return "stops" if stops else "goes on"
    return compare


CASES = [
    ("adapter-reentrant", case(True, True, True)),
    ("adapter-reentrant-told", case(False, True, True, False)),
    ("adapter", case(False, True, False)),
    ("full-reentrant", case(False, False, True)),
    ("full-reentrant-finds", case(True, False, True, True)),
]
