"""Jobs of `accelerate launch` on two GPUs that do not exist.

transformers' Trainer, Accelerate and torch's FSDP2, FSDP1 and DDP, and DeepSpeed's ZeRO where it is
there, run over the stand-ins (DryGpu.h), with values, two processes; `accel-opt plan` predicts the same files. As in trainer.py,
cuBLAS gets small workspaces. A model is made on the host, as from_pretrained does, and the peak is
that of steps behind the first two. Models of 1 and 8 billion parameters ("full") are made without
values.
"""
import contextlib
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "bench"))
sys.path.insert(0, HERE)
import gpu_training  # noqa: E402
from gpu_training_jobs import ATTENTION, LLAMA_1B, LLAMA_8B, job  # noqa: E402
import prefork  # noqa: E402
import trainer  # noqa: E402

RANKS = 2
# Of tools/setup; nothing else imports it.
DEEPSPEED = os.path.join(ROOT, ".deepspeed")
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
    # What rank 0 has is broadcast, as accelerate's questions have it by default.
    "fsdp2-efficient": {"distributed_type": "FSDP", "fsdp_config": {
        **COMMON, "fsdp_version": 2, "fsdp_reshard_after_forward": True,
        "fsdp_cpu_ram_efficient_loading": True}},
    "ddp": {"distributed_type": "MULTI_GPU"},
}


def zero(stage, offload=None, **more):
    """DeepSpeed by a file of its own; buckets are small, as jobs are, unless said.
    What is offloaded lies on the host, where torch's AdamW updates it: DeepSpeed's
    own is compiled when it is first asked for."""
    small = {"reduce_bucket_size": 200_000}
    if stage == 3:
        small.update({"stage3_prefetch_bucket_size": 200_000,
                      "stage3_param_persistence_threshold": 1000})
    return {"distributed_type": "DEEPSPEED", "deepspeed_config": {
        "train_batch_size": "auto", "gradient_clipping": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "zero_allow_untested_optimizer": True, "bf16": {"enabled": True},
        **({"zero_force_ds_cpu_optimizer": False} if offload else {}),
        "zero_optimization": {"stage": stage, **(more or small), **{
            f"offload_{what}": {"device": "cpu", "pin_memory": True}
            for what in offload or ()}}}}


WRAPPERS.update({
    "zero1": zero(1), "zero2": zero(2), "zero3": zero(3),
    # reduce_bucket_size alone of the defaults would take a second of each step.
    "zero3-usual": zero(3, reduce_bucket_size=2_000_000),
    "zero1-offload": zero(1, ["optimizer"]),
    "zero2-offload": zero(2, ["optimizer"]),
    "zero3-offload": zero(3, ["optimizer"])})
MODELS = {
    "amp": job(trainer.LLAMA, 256, 4),
    "bf16": job(trainer.LLAMA, 256, 4, weights="bfloat16"),
    "checkpointing": job(trainer.LLAMA, 256, 4, gradient_checkpointing=True),
    "accumulation": job(trainer.LLAMA, 256, 2, gradient_accumulation_steps=2),
    "qwen3": job(trainer.QWEN3, 256, 4),
    "tied": job(trainer.TIED, 64, 1, weights="bfloat16"),
    "lora": job(trainer.LLAMA, 256, 4, weights="bfloat16", lora=(8, ATTENTION)),
    "short": job(trainer.LLAMA, 64, 1, weights="bfloat16"),
    "short-foreach": job(trainer.LLAMA, 64, 1, weights="bfloat16",
                         optim="adamw_torch"),
    "llava-images": trainer.JOBS["llava-images-bf16"],
    "qwen-images": trainer.JOBS["qwen2-5-vl-images-bf16"],
    "full-amp": job(LLAMA_1B, 2048, 4),
    "full-accumulation": job(LLAMA_1B, 2048, 2, gradient_accumulation_steps=2),
    "full-lora": job(LLAMA_1B, 2048, 4, weights="bfloat16", lora=(8, ATTENTION)),
    "full-reentrant": job(LLAMA_1B, 4096, 4, gradient_checkpointing=True, **trainer.REENTRANT),
    "full-lora-reentrant": job(LLAMA_8B, 4096, 4, weights="bfloat16", lora=(8, ATTENTION),
                               gradient_checkpointing=True, **trainer.REENTRANT),
    "full-foreach": job(LLAMA_1B, 8192, 4, optim="adamw_torch",
                        gradient_checkpointing=True),
    "full-checkpoints": job(LLAMA_1B, 4096, 4, gradient_checkpointing=True),
    "full-8b": job(LLAMA_8B, 8192, 2, gradient_checkpointing=True),
}
# Of a model's _no_split_modules some are of parts that it has not.
WRAPPED = {"llava-images": "LlamaDecoderLayer,CLIPEncoderLayer",
           "qwen-images": "Qwen2_5_VLDecoderLayer,Qwen2_5_VLVisionBlock"}
JOBS = {f"{wrapper}-{model}": (wrapper, MODELS[model])
        for wrapper, models in (
            ("fsdp2", [m for m in MODELS if not m.startswith("short")]),
            ("fsdp2-efficient", ("full-checkpoints", "full-amp")),
            ("fsdp1", ("amp", "bf16", "tied", "checkpointing", "llava-images",
                       "qwen-images", "full-amp",
                       "full-foreach", "full-checkpoints", "full-reentrant",
                       "full-lora-reentrant")),
            ("ddp", ("amp", "bf16", "tied", "lora", "llava-images",
                     "qwen-images", "full-amp",
                     "full-accumulation", "full-foreach")),
            ("zero1", ("short", "bf16")),
            ("zero2", ("short", "bf16", "tied", "checkpointing",
                       "short-foreach")),
            ("zero3", ("short", "bf16", "tied", "checkpointing",
                       "short-foreach")),
            ("zero3-usual", ("bf16",)),
            ("zero1-offload", ("short",)),
            ("zero2-offload", ("short", "accumulation", "checkpointing")),
            ("zero3-offload", ("short",)))
        for model in models}
# Of the suite; the others by --all.
CHOSEN = ("fsdp2-full-8b", "fsdp2-full-checkpoints", "fsdp1-checkpointing",
          "fsdp1-full-checkpoints", "ddp-full-foreach", "zero2-short",
          "zero3-short-foreach")
STEPS, SETTLED = 4, 2
# Of the backward of a layer in stage 3, not explained yet.
# FSDP2 casts the tables of cos and sin, which are fp32, for each block of Qwen's
# tower, and the block casts them back: those that a block keeps are its own. Under
# DDP the features that LLaVA returns are there in fp32, twice. Some 35 KB as in one
# process.
KNOWN = {"zero3-short": 68_000, "fsdp2-qwen-images": 570_000,
         "fsdp2-llava-images": 24_000, "ddp-llava-images": 240_000,
         "ddp-qwen-images": 4_000}


def train(here, result):
    """In a process of a rank, with the environment of one that `accelerate launch` has started."""
    import torch
    import transformers
    from transformers.initialization import no_init_weights
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    trainer.multiply_columns()
    # First, as scripts do: transformers learns of ZeRO's stage 3 there.
    with open(os.path.join(here, "arguments.json"), encoding="utf-8") as f:
        arguments = transformers.TrainingArguments(
            **{**json.load(f), "max_steps": STEPS,
               "output_dir": os.path.join(here, "out")})
    with (contextlib.nullcontext() if os.environ["DRY_COMPUTE"] == "1"
          else no_init_weights()):
        spec, _, model = gpu_training.build(here, "cpu")
    model.tie_weights()  # which is part of what is left out
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
        args=arguments,
        train_dataset=gpu_training.samples(spec["sequence"], model.config, spec["images"]),
        callbacks=[Watch()], data_collator=gpu_training.collate).train()
    with open(f"{result}.{rank}", "w", encoding="utf-8") as f:
        json.dump(held, f)


def examine(tools, name):
    """Fails where the bytes are not as predicted; else says them."""
    wrapper, spec = JOBS[name]
    deepspeed = WRAPPERS[wrapper].get("deepspeed_config")
    if deepspeed and not os.path.isdir(os.path.join(DEEPSPEED, "deepspeed")):
        return "skipped: DeepSpeed is not in .deepspeed (tools/setup)"
    folder = os.path.join(tools.work, "launched-" + name)
    here, result = os.path.join(folder, name), os.path.join(folder, "result")
    gpu_training.prepare(folder, {name: spec})
    config = os.path.join(here, "accelerate.yaml")
    with open(config, encoding="utf-8") as f:
        accelerate = json.load(f)
    accelerate.update(WRAPPERS[wrapper], num_processes=RANKS, machine_rank=0)
    if "fsdp_config" in accelerate and name.split("-", 1)[1] in WRAPPED:
        accelerate["fsdp_config"] = {
            **accelerate["fsdp_config"],
            "fsdp_transformer_layer_cls_to_wrap": WRAPPED[name.split("-", 1)[1]]}
    if deepspeed:
        path = os.path.join(here, "zero.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(deepspeed, f)
        accelerate["deepspeed_config"] = {"deepspeed_config_file": path,
                                          "zero3_init_flag": False}
        del accelerate["mixed_precision"]  # the file says it
    with open(config, "w", encoding="utf-8") as f:
        json.dump(accelerate, f)
    environment = {**trainer.stand_ins(tools, RANKS, name),
                   **({"DS_ACCELERATOR": "cuda", "PYTHONPATH": DEEPSPEED} if deepspeed else {})}
    exchange = os.path.join("/dev/shm", f"accel-dry-{os.getpid()}-{name}")
    os.makedirs(exchange, exist_ok=True)
    try:
        tools.call([sys.executable, "-m", "accelerate.commands.launch",
                    "--config_file", config, "--main_process_port", "0",
                    __file__, here, result],
                   {**environment, "DRY_EXCHANGE": exchange,
                    prefork.SOCKET: tools.prefork.socket(environment)})
    finally:
        shutil.rmtree(exchange, ignore_errors=True)
    if deepspeed and "zero_force_ds_cpu_optimizer" in deepspeed:
        # What it takes on the device is the same whoever updates on the host;
        # plans are of DeepSpeed's own optimizer alone.
        with open(path, "w", encoding="utf-8") as f:
            json.dump({key: value for key, value in deepspeed.items()
                       if key != "zero_force_ds_cpu_optimizer"}, f)
    plan = gpu_training.predicted(folder, name, os.path.join(
        tools.bin, "accel-opt"), "h200", spec)
    if not plan:
        raise AssertionError("the job is not planned")
    held = []
    for rank in range(RANKS):
        with open(f"{result}.{rank}", encoding="utf-8") as f:
            held.append(json.load(f))
    # ZeRO's partitions cut parameters where they end: the plan's rank is the
    # one with the most.
    if deepspeed:
        held = [max(held, key=lambda rank: rank["requested"])]
    return [trainer.compare(name, plan["memory"], rank, KNOWN.get(name, 0))
            for rank in held][0]


if __name__ == "__main__":
    prefork.run_as_rank("launched", sys.argv[1:])
