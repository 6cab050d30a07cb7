"""The job that this process is about to run, as accel-opt reads it: what
Accelerate's state says as an accelerate file, the model's configuration, its
adapter, and the device."""
import json
import os

# Accelerate's names of devices hold these; the first that does names the target.
TARGETS = (("GH200", None), ("H200", "h200"), ("GB200", None),
           ("B200", "b200"), ("H100 PCIe", "h100-pcie-80gb"),
           ("H100 NVL", None), ("H100", "h100-sxm-80gb"),
           ("H800", "h800-80gb"), ("H20", "h20"), ("A800", "a800-80gb"),
           ("A100-SXM4-40GB", "a100-40gb"), ("A100-PCIE-40GB", "a100-40gb"),
           ("A100", "a100-80gb"), ("MI300X", "mi300x"), ("L40S", "l40s"),
           ("L40", None), ("L4", "l4"), ("6000 Ada", "rtx6000-ada"),
           ("4090", "rtx4090"), ("3090 Ti", None), ("3090", "rtx3090"),
           ("A6000", "a6000"), ("A5000", "a5000"), ("A4000", None),
           ("A40", "a40"), ("A10G", "a10g"))


def device_name(device):
    import torch
    return torch.cuda.get_device_name(device) if device.type == "cuda" else \
        device.type


def machine(device):
    """Options of accel-opt for the device of this process."""
    import torch
    if device.type == "cpu":
        return {"target": "cpu"}
    if device.type != "cuda":
        return {}
    name = device_name(device)
    target = next((t for part, t in TARGETS if part in name), None)
    total = torch.cuda.get_device_properties(device).total_memory
    return {"target": target} if target else {"memory_budget": total}


def _word(value):
    """An enumerator's name; of Accelerate's plugins some values are classes."""
    return getattr(value, "name", value)


def _fsdp(plugin):
    """fsdp_config of a FullyShardedDataParallelPlugin."""
    policy = plugin.auto_wrap_policy
    policy = policy if isinstance(policy, str) else \
        getattr(getattr(policy, "func", policy), "__name__", "no_wrap")
    policies = {"transformer_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
                "size_based_auto_wrap_policy": "SIZE_BASED_WRAP"}
    policy = policies.get(policy, str(policy).upper())
    offload = plugin.cpu_offload
    offload = getattr(offload, "offload_params",
                      type(offload).__name__ == "CPUOffloadPolicy"
                      if not isinstance(offload, bool) else offload)
    config = {"fsdp_version": plugin.fsdp_version,
              "fsdp_auto_wrap_policy": policy,
              "fsdp_offload_params": bool(offload),
              "fsdp_activation_checkpointing":
                  bool(plugin.activation_checkpointing),
              "fsdp_cpu_ram_efficient_loading":
                  bool(plugin.cpu_ram_efficient_loading),
              "fsdp_state_dict_type": _word(plugin.state_dict_type)}
    if plugin.fsdp_version == 2:
        config["fsdp_reshard_after_forward"] = bool(plugin.reshard_after_forward)
        if getattr(plugin, "activation_checkpointing_offload", False):
            config["fsdp_activation_checkpointing_offload"] = True
    else:
        config["fsdp_sharding_strategy"] = _word(plugin.sharding_strategy)
        config["fsdp_sync_module_states"] = bool(plugin.sync_module_states)
        config["fsdp_use_orig_params"] = bool(plugin.use_orig_params)
        config["fsdp_forward_prefetch"] = bool(plugin.forward_prefetch)
        if plugin.backward_prefetch is not None:
            config["fsdp_backward_prefetch"] = _word(plugin.backward_prefetch)
    if plugin.transformer_cls_names_to_wrap and \
            policy == "TRANSFORMER_BASED_WRAP":
        config["fsdp_transformer_layer_cls_to_wrap"] = ",".join(
            plugin.transformer_cls_names_to_wrap)
    if policy == "SIZE_BASED_WRAP" and plugin.min_num_params:
        config["fsdp_min_num_params"] = int(plugin.min_num_params)
    return config


def accelerate_config(state, inputs):
    """The accelerate file that would make AcceleratorState what it is. A JSON of
    DeepSpeed is written beside it."""
    kind = _word(state.distributed_type)
    config = {"compute_environment": "LOCAL_MACHINE", "distributed_type": kind,
              "num_processes": state.num_processes,
              "mixed_precision": state.mixed_precision}
    local = int(os.environ.get("LOCAL_WORLD_SIZE") or state.num_processes)
    config["num_machines"] = max(1, state.num_processes // max(1, local))
    if state.device.type == "cpu":
        config["use_cpu"] = True
    if kind == "FSDP":
        config["fsdp_config"] = _fsdp(state.fsdp_plugin)
    if kind == "DEEPSPEED":
        path = inputs.path("deepspeed.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(state.deepspeed_plugin.deepspeed_config, f)
        config["deepspeed_config"] = {"deepspeed_config_file": path}
        config.pop("mixed_precision")  # the file says it
    mesh = getattr(state, "parallelism_config", None)
    sizes = {name: getattr(mesh, name, 1) for name in
             ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size")}
    if kind == "FSDP" and mesh is not None and \
            any(size > 1 for size in sizes.values()):
        config["parallelism_config"] = {
            "parallelism_config_" + name: size for name, size in sizes.items()}
    return config


def model_options(model, inputs):
    """--adapter and --dtype of a model that is loaded."""
    found = {}
    peft = getattr(model, "peft_config", None)
    if isinstance(peft, dict) and peft:
        name = getattr(model, "active_adapter", "default")
        name = name if isinstance(name, str) and name in peft else next(iter(peft))
        folder = inputs.path("adapter")
        peft[name].save_pretrained(folder)
        found["adapter"] = folder
    names = {"torch.float32": "f32", "torch.bfloat16": "bf16",
             "torch.float16": "f16"}
    for parameter in model.parameters():
        if parameter.is_floating_point() and str(parameter.dtype) in names:
            if not peft or not parameter.requires_grad:
                found["dtype"] = names[str(parameter.dtype)]
                break
    return found


def sequence_length(arguments, config):
    """Tokens of a sequence where nobody said it: as accel-opt takes it."""
    for name in ("max_length", "max_seq_length"):
        if getattr(arguments, name, None):
            return getattr(arguments, name)
    most = getattr(config, "max_position_embeddings", None) or \
        getattr(config, "n_positions", None) or 4096
    return min(most, 4096)
