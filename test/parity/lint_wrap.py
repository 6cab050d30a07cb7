"""Wraps models as Accelerate would, many in one process, without devices.

  lint_wrap.py CASES.json    [[CONFIG.yaml, MODEL_FOLDER], ...]

Prints one JSON line each: {"error": text or null, "units": number of units}.
FSDP1 is torch's own FullyShardedDataParallel on CPU in a group of one, FSDP2 is
Accelerate's fsdp2_prepare_model.
"""
import json
import os
import sys
import warnings

from accelerate_units import launch_environment, version_2


def version_1(plugin, model):
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel
    plugin.set_auto_wrap_policy(model)
    wrapped = FullyShardedDataParallel(
        model, auto_wrap_policy=plugin.auto_wrap_policy,
        use_orig_params=plugin.use_orig_params,
        sharding_strategy=plugin.sharding_strategy,
        device_id=torch.device("cpu"))
    return FullyShardedDataParallel.fsdp_modules(wrapped)


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
    return len((version_2 if plugin.fsdp_version == 2 else version_1)(
        plugin, model))


def main():
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0",
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    warnings.simplefilter("ignore")
    import torch
    import torch.distributed as dist
    import transformers
    from accelerate.state import PartialState
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0,
                            world_size=1)
    PartialState(cpu=True)
    with open(sys.argv[1], encoding="utf-8") as f:
        cases = json.load(f)
    for path, folder in cases:
        try:
            line = {"error": None, "units": wrap(path, folder)}
        except Exception as e:
            line = {"error": f"{type(e).__name__}: {e}"[:300], "units": 0}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
