"""Jobs of `accelerate launch` on two GPUs that do not exist.

transformers' Trainer, Accelerate and torch's FSDP2, FSDP1 and DDP run over the stand-ins
(DryGpu.h), with values, two processes; `accel-opt plan` predicts the same files. As in trainer.py,
cuBLAS gets small workspaces. A model is made on the host, as from_pretrained does, and the peak is
that of steps behind the first two.
"""
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "bench"))
sys.path.insert(0, HERE)
import gpu_training  # noqa: E402
from gpu_training_jobs import ATTENTION, job  # noqa: E402
import trainer  # noqa: E402

RANKS = 2
COMMON = {"fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
          "fsdp_offload_params": False, "fsdp_cpu_ram_efficient_loading": False,
          "fsdp_state_dict_type": "SHARDED_STATE_DICT"}
WRAPPERS = {
    "fsdp2": {"distributed_type": "FSDP", "fsdp_config": {
        **COMMON, "fsdp_version": 2, "fsdp_reshard_after_forward": True}},
    "fsdp1": {"distributed_type": "FSDP", "fsdp_config": {
        **COMMON, "fsdp_version": 1, "fsdp_sharding_strategy": "FULL_SHARD",
        "fsdp_backward_prefetch": "BACKWARD_PRE", "fsdp_use_orig_params": True,
        "fsdp_sync_module_states": True}},
    "ddp": {"distributed_type": "MULTI_GPU"},
}
MODELS = {
    "amp": job(trainer.LLAMA, 256, 4),
    "bf16": job(trainer.LLAMA, 256, 4, weights="bfloat16"),
    "checkpointing": job(trainer.LLAMA, 256, 4, gradient_checkpointing=True),
    "accumulation": job(trainer.LLAMA, 256, 2, gradient_accumulation_steps=2),
    "qwen3": job(trainer.QWEN3, 256, 4),
    "tied": job(trainer.TIED, 64, 1, weights="bfloat16"),
    "lora": job(trainer.LLAMA, 256, 4, weights="bfloat16", lora=(8, ATTENTION)),
}
JOBS = {f"{wrapper}-{model}": (wrapper, MODELS[model])
        for wrapper, models in (
            ("fsdp2", MODELS),
            ("fsdp1", ("amp", "bf16", "tied", "checkpointing")),
            ("ddp", ("amp", "bf16", "tied", "lora")))
        for model in models}
# Of the suite; the others by --all.
CHOSEN = ("fsdp2-checkpointing", "fsdp1-checkpointing", "ddp-amp")
STEPS, SETTLED = 4, 2


def train(here, result):
    """In a process of a rank, which `accelerate launch` has started."""
    import torch
    import transformers
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    spec, arguments, model = gpu_training.build(here, "cpu")
    held = {}

    class Watch(transformers.TrainerCallback):
        def on_step_begin(self, _, state, *__, **___):
            if state.global_step == SETTLED:
                torch.cuda.reset_peak_memory_stats()

        def on_step_end(self, _, state, *__, **___):
            held["allocated"] = torch.cuda.max_memory_allocated()
            held["reserved"] = torch.cuda.max_memory_reserved()
            held["requested"] = torch.cuda.memory_stats()[
                "requested_bytes.all.peak"]

    transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(**{**arguments, "max_steps": STEPS}),
        train_dataset=gpu_training.tokens(spec["sequence"],
                                          model.config.vocab_size),
        callbacks=[Watch()],
        data_collator=transformers.default_data_collator).train()
    with open(f"{result}.{rank}", "w", encoding="utf-8") as f:
        json.dump(held, f)


def examine(tools, name):
    """Fails where the bytes are not as predicted; else says them."""
    wrapper, spec = JOBS[name]
    folder = os.path.join(tools.work, "launched-" + name)
    here, result = os.path.join(folder, name), os.path.join(folder, "result")
    gpu_training.prepare(folder, {name: spec})
    config = os.path.join(here, "accelerate.yaml")
    with open(config, encoding="utf-8") as f:
        accelerate = json.load(f)
    with open(config, "w", encoding="utf-8") as f:
        json.dump({**accelerate, **WRAPPERS[wrapper], "num_processes": RANKS,
                   "machine_rank": 0}, f)
    exchange = os.path.join("/dev/shm", f"accel-dry-{os.getpid()}-{name}")
    os.makedirs(exchange, exist_ok=True)
    try:
        tools.call([sys.executable, "-m", "accelerate.commands.launch",
                    "--config_file", config, "--main_process_port", "0",
                    __file__, here, result],
                   {**trainer.stand_ins(tools, RANKS), "DRY_EXCHANGE": exchange})
    finally:
        shutil.rmtree(exchange, ignore_errors=True)
    plan = gpu_training.predicted(folder, name, os.path.join(
        tools.bin, "accel-opt"), "h200", spec)
    if not plan:
        raise AssertionError("the job is not planned")
    said = []
    for rank in range(RANKS):
        with open(f"{result}.{rank}", encoding="utf-8") as f:
            said.append(trainer.compare(plan["memory"], json.load(f)))
    return said[0]


if __name__ == "__main__":
    train(*sys.argv[1:])
