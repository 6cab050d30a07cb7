"""What the installed Accelerate makes of a configuration file.

`judge(path)` runs the code of `accelerate launch` up to the point where it would
start processes, and the plugins that every rank builds from the environment,
without devices or processes of its own. It returns an error as text, or the
effective values under the names that frontend-dump prints.
"""
import contextlib
import os
import types
import unittest.mock as mock


class Refused(Exception):
    pass


def tiny_model(names):
    """A model with a layer of each class that a name can name."""
    import torch

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

    class Other(Layer):
        pass

    class Model(torch.nn.Module):
        _no_split_modules = ["Layer"]

        def __init__(self):
            super().__init__()
            self.first = Layer()
            self.second = Other()
            for name in names:
                if name.isidentifier() and name not in ("Layer", "Other"):
                    self.add_module(name, type(name, (Layer,), {})())
    return Model()


def launch(path):
    """(args, environment for the ranks) or an exception of launch itself."""
    from accelerate.commands import launch as launching
    from accelerate.utils import launch as environment
    parser = launching.launch_command_parser()
    args = parser.parse_args(["--config_file", path, "script.py"])
    args.nondefault = []  # what launch's main() fills from the command line
    args, defaults, _ = launching._validate_launch_command(args)
    with mock.patch.object(environment, "is_port_in_use",
                           lambda port: int.__index__(port) < 0):
        if args.use_fsdp or args.multi_gpu:
            env = environment.prepare_multi_gpu_env(args)
            if int(args.nproc_per_node) < 1:
                raise ValueError("nproc_per_node")
        elif args.use_deepspeed or args.tpu or args.use_megatron_lm:
            env = {}
        else:
            _, env = environment.prepare_simple_launcher_cmd_env(args)
    return args, env


@contextlib.contextmanager
def devices():
    """As if each rank had a GPU, which some checks ask for."""
    import torch
    from accelerate.utils import dataclasses as plugins
    with mock.patch.object(plugins, "is_cuda_available", lambda: True), \
            mock.patch.object(torch.cuda, "current_device", lambda: 0):
        yield


def fsdp_plugin(arguments=None):
    """The plugin of `arguments`, or of the environment, and what it says."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils import fsdp_utils
    with devices():
        plugin = FullyShardedDataParallelPlugin(**(arguments or {}))
    values = {
        "strategy": f"fsdp{plugin.fsdp_version}",
        "offload_params": bool(getattr(plugin.cpu_offload, "offload_params",
                                       plugin.fsdp_version == 2 and
                                       type(plugin.cpu_offload).__name__
                                       == "CPUOffloadPolicy")),
        "activation_checkpointing": plugin.activation_checkpointing,
        "activation_checkpointing_offload":
            plugin.activation_checkpointing_offload,
        "state_dict_type": plugin.state_dict_type.name,
        "cpu_ram_efficient_loading": plugin.cpu_ram_efficient_loading,
        "ignored_modules": plugin.ignored_modules or "",
        "backward_prefetch": plugin.backward_prefetch.value
        if plugin.backward_prefetch else 0,
        "wrap_policy": {"transformer_auto_wrap_policy":
                        "TRANSFORMER_BASED_WRAP",
                        "size_based_auto_wrap_policy": "SIZE_BASED_WRAP",
                        }.get(getattr(plugin.auto_wrap_policy, "__name__", ""),
                              "NO_WRAP"),
    }
    if values["wrap_policy"] == "TRANSFORMER_BASED_WRAP":
        values["wrap_classes"] = plugin.transformer_cls_names_to_wrap
    if values["wrap_policy"] == "SIZE_BASED_WRAP":
        values["min_num_params"] = plugin.min_num_params
    if plugin.fsdp_version == 1:
        strategy = plugin.sharding_strategy.name.lstrip("_")
        values["sharding"] = strategy
        values["forward_prefetch"] = bool(plugin.forward_prefetch)
        values["use_orig_params"] = bool(plugin.use_orig_params)
        values["sync_module_states"] = bool(plugin.sync_module_states)
    else:
        values["reshard"] = plugin.reshard_after_forward
    plugin.set_mixed_precision(os.environ["ACCELERATE_MIXED_PRECISION"]) \
        if os.environ["ACCELERATE_MIXED_PRECISION"] != "no" else None
    policy = plugin.mixed_precision_policy
    names = {"torch.bfloat16": "bf16", "torch.float16": "f16"}
    values["param_dtype"] = names.get(str(getattr(policy, "param_dtype", "")))
    values["reduce_dtype"] = names.get(str(getattr(policy, "reduce_dtype",
                                                   "")))
    # What prepare() does before it needs a mesh.
    model = tiny_model(plugin.transformer_cls_names_to_wrap or [])
    plugin.set_auto_wrap_policy(model)
    state = types.SimpleNamespace(fsdp_plugin=plugin)
    if plugin.fsdp_version == 2 and plugin.activation_checkpointing:
        fsdp_utils.fsdp2_apply_ac(types.SimpleNamespace(state=state), model)
    return plugin, values


def parallelism(args, plugin):
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import DistributedType
    multi = not args.use_fsdp and args.num_processes > 1
    fake = types.SimpleNamespace(
        multi_device=multi, num_processes=args.num_processes,
        is_fsdp2=bool(plugin and plugin.fsdp_version == 2),
        is_main_process=True,
        distributed_type=DistributedType.FSDP if args.use_fsdp
        else DistributedType.MULTI_GPU)
    config = ParallelismConfig()
    config._validate_accelerator(fake)
    if config.total_size > 1 and config.total_size != args.num_processes:
        raise ValueError("init_device_mesh: other number of ranks")
    return config


def judge(path):
    """(None, values) or (text of the error, None)."""
    import torch.distributed  # noqa: F401
    try:
        args, env = launch(path)
        with mock.patch.dict(os.environ, {k: str(v) for k, v in env.items()},
                             clear=bool(env)):
            values = {"mixed_precision": args.mixed_precision.lower(),
                      "num_processes": args.num_processes}
            plugin = None
            if args.use_fsdp:
                plugin, more = fsdp_plugin()
                values.update(more)
            if args.use_parallelism_config and (args.use_fsdp or
                                                args.multi_gpu):
                mesh = parallelism(args, plugin)
                # (with all sizes 1 there is no mesh, and FSDP takes all ranks)
                if args.use_fsdp and mesh.total_size > 1:
                    values["dp_replicate"] = mesh.dp_replicate_size
                    values["dp_shard"] = mesh.dp_shard_size
        return None, values
    except (Exception, SystemExit) as error:  # any way of failing counts
        return f"{type(error).__name__}: {error}", None
