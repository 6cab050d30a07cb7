"""Wraps models as Accelerate would, many in one process, on CPUs.

  torchrun --nproc-per-node 2 lint_wrap.py CASES.json RESULTS

CASES.json is [[CONFIG.yaml, MODEL_FOLDER], ...]; RESULTS gets one JSON line for
each: {"error": text or null}. FSDP1 is torch's own FullyShardedDataParallel,
which also runs a forward; FSDP2 is Accelerate's fsdp2_prepare_model.
"""
import json
import os
import sys
import warnings

from accelerate_units import launch_environment, version_2


def inputs(model):
    """A batch that the model takes."""
    import torch
    if hasattr(model.config, "patch_size"):
        size = model.config.image_size
        return {"pixel_values": torch.zeros(1, 3, size, size)}
    tokens = torch.arange(8)[None]
    decoder = getattr(model.config, "is_encoder_decoder", False) and \
        "Encoder" not in type(model).__name__
    return {"input_ids": tokens, "decoder_input_ids": tokens} if decoder \
        else {"input_ids": tokens}


def version_1(plugin, model):
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel
    plugin.set_auto_wrap_policy(model)
    wrapped = FullyShardedDataParallel(
        model, auto_wrap_policy=plugin.auto_wrap_policy,
        use_orig_params=plugin.use_orig_params,
        sharding_strategy=plugin.sharding_strategy,
        device_id=torch.device("cpu"))
    wrapped(**inputs(model))


def wrap(path, folder):
    import torch
    import transformers
    from accelerate import FullyShardedDataParallelPlugin
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(0)
    model = getattr(transformers, config.architectures[0])._from_config(config)
    # As from_pretrained leaves it.
    if config.dtype == torch.float16:
        for name, p in model.named_parameters():
            if any(k in name.split(".")
                   for k in model._keep_in_fp32_modules or ()):
                p.data = p.data.float()
    for key in [k for k in os.environ if k.startswith(("FSDP_", "ACCELERATE_"))]:
        del os.environ[key]
    os.environ.update({k: v for k, v in launch_environment(path).items()
                       if k.startswith(("FSDP_", "ACCELERATE_"))})
    # Loading plays no part in wrapping, and needs a device.
    os.environ["FSDP_SYNC_MODULE_STATES"] = "false"
    os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
    plugin = FullyShardedDataParallelPlugin()
    (version_2 if plugin.fsdp_version == 2 else version_1)(plugin, model)


def main():
    warnings.simplefilter("ignore")
    import torch
    import torch.distributed as dist
    import transformers
    from accelerate.state import PartialState
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    PartialState(cpu=True)
    with open(sys.argv[1], encoding="utf-8") as f:
        cases = json.load(f)
    with open(sys.argv[2] if dist.get_rank() == 0 else os.devnull, "w",
              encoding="utf-8") as out:
        for path, folder in cases:
            try:
                wrap(path, folder)
                error = None
            except Exception as e:
                error = f"{type(e).__name__}: {e}"[:300]
            out.write(json.dumps({"error": error}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
