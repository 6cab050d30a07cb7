"""Prints the units that Accelerate makes of a YAML file and a model, as JSON.

  accelerate_units.py CONFIG.yaml MODEL_FOLDER

The YAML goes the whole way: `accelerate launch` parses it and sets the
environment, the plugin reads that, and fsdp2_prepare_model wraps the model (on
CPU, in a process group of one). Version 1 is wrapped by torch's auto-wrap with
the plugin's policy. Output: {"units": [[FQN, ...], ...]} or {"error": text}.
"""
import json
import os
import sys
import types


def launch_environment(path):
    """What `accelerate launch --config_file path` exports."""
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_multi_gpu_env

    parser = launch.launch_command_parser()
    arguments = parser.parse_args(["--config_file", path, "train.py"])
    arguments, _, _ = launch._validate_launch_command(arguments)
    return prepare_multi_gpu_env(arguments)


def version_2(plugin, model):
    """Parameters by FSDP2 group, from Accelerate's own function."""
    import torch
    from accelerate.utils.fsdp_utils import (fsdp2_apply_ac,
                                             fsdp2_prepare_model)
    from torch.distributed.fsdp import FSDPModule

    accelerator = types.SimpleNamespace(
        state=types.SimpleNamespace(fsdp_plugin=plugin), mixed_precision="no",
        torch_device_mesh=None, is_main_process=True,
        device=torch.device("cpu"))
    # Accelerator._prepare_fsdp2 does these in this order.
    plugin.set_auto_wrap_policy(model)
    if plugin.activation_checkpointing:
        model = fsdp2_apply_ac(accelerator, model)
    # Parameter objects are replaced by fully_shard; module and attribute stay.
    names = {}
    for fqn, module in model.named_modules(remove_duplicate=False):
        for attribute, _ in module.named_parameters(recurse=False):
            name = f"{fqn}.{attribute}" if fqn else attribute
            name = name.replace("_checkpoint_wrapped_module.", "")
            names.setdefault((id(module), attribute), name)
    model = fsdp2_prepare_model(accelerator, model)
    units, seen = [], set()
    for module in model.modules():
        if not isinstance(module, FSDPModule):
            continue
        for group in module._get_fsdp_state()._fsdp_param_groups:
            if id(group) in seen:
                continue
            seen.add(id(group))
            units.append([names[id(p._module_info.module),
                                p._module_info.param_name]
                          for p in group.fsdp_params])
    return units


def version_1(plugin, model):
    """Parameters by the innermost module that torch's auto-wrap would wrap."""
    import torch
    from torch.distributed.fsdp.wrap import _recursive_wrap

    class Wrapper(torch.nn.Module):
        def __init__(self, module, **_):
            super().__init__()
            self.module = module

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs)

    plugin.set_auto_wrap_policy(model)
    names = {id(p): n for n, p in model.named_parameters()}
    if plugin.auto_wrap_policy is not None:
        _recursive_wrap(model, auto_wrap_policy=plugin.auto_wrap_policy,
                        wrapper_cls=Wrapper, ignored_modules=set(),
                        ignored_params=set(), only_wrap_children=True)
    units, taken = [], set()
    wrappers = [m for m in model.modules() if isinstance(m, Wrapper)]
    # Inner wrappers come after outer ones in modules(); they own first.
    for module in [*reversed(wrappers), model]:
        unit = [names[id(p)] for p in module.parameters()
                if id(p) not in taken]
        taken.update(id(p) for p in module.parameters())
        units.append(unit)
    return units


def flatten_1(model, use_orig_params):
    """torch's FSDP1 of one layer; raises where it refuses its parameters."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel

    layer = next(m for m in model.modules()
                 if type(m).__name__.endswith("DecoderLayer"))
    FullyShardedDataParallel(layer, use_orig_params=use_orig_params,
                             device_id=torch.device("cpu"))


def units_of(path, folder, adapter=None, dtype="float32"):
    """{"units": [[FQN, ...], ...]}, or {"error": text} where it refuses."""
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0",
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    import torch
    import torch.distributed as dist
    import transformers
    from accelerate import FullyShardedDataParallelPlugin
    from accelerate.state import PartialState

    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0,
                            world_size=1)
    config = transformers.AutoConfig.from_pretrained(folder)
    name = (config.architectures or [""])[0]
    dtype = getattr(torch, dtype)
    model = (transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
             if not name or name.endswith("CausalLM") else
             getattr(transformers, name)._from_config(config, dtype=dtype))
    if adapter:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(**adapter))
    try:
        environment = launch_environment(path)
        # The launcher's own choices of ports and ranks do not matter here.
        os.environ.update({k: v for k, v in environment.items()
                           if k.startswith(("FSDP_", "ACCELERATE_"))})
        # Weights play no part in units; loading and sending them needs a
        # device.
        os.environ["FSDP_SYNC_MODULE_STATES"] = "false"
        os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
        PartialState(cpu=True)
        plugin = FullyShardedDataParallelPlugin()
        wrap = version_2 if plugin.fsdp_version == 2 else version_1
        units = [sorted(u) for u in wrap(plugin, model) if u]
        if adapter and plugin.fsdp_version == 1:
            flatten_1(model, plugin.use_orig_params)
        return {"units": units}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps(units_of(*sys.argv[1:])))
