"""Accelerate files of all kinds of jobs, from a fixed seed.

Half of them are what people mean to write; the other half has values of the
wrong kind, YAML's traps, misplaced and misspelt keys.
"""
import random

BOOL = ["true", "false"]
ODD = ["null", "'true'", "'no'", "yes", "1", "0", "1.5", "[1, 2]", "{a: b}",
       "''", "abc", "'2'", "1e8", "~"]
TOP = {
    "mixed_precision": ["'no'", "bf16", "fp16", "BF16", "fp8"],
    "use_cpu": BOOL, "debug": BOOL, "machine_rank": ["0", "1"],
    "main_process_ip": ["10.0.0.1", "host"],
    "main_process_port": ["29501", "0"],
    "main_training_function": ["main"], "gpu_ids": ["all", "'0,1'", "'0'"],
    "rdzv_backend": ["static", "c10d"], "same_network": BOOL,
    "enable_cpu_affinity": BOOL, "downcast_bf16": ["'no'", "true"],
    "tpu_use_cluster": BOOL, "tpu_use_sudo": BOOL, "tpu_name": ["pod"],
    "tpu_env": ["[]"], "fp16": BOOL, "commands": ["null"],
    "num_machines": ["1", "2"],
}
SECTIONS = {
    "fsdp_config": {
        "fsdp_version": ["1", "2"],
        "fsdp_sharding_strategy": ["FULL_SHARD", "HYBRID_SHARD", "2"],
        "fsdp_reshard_after_forward": BOOL + ["FULL_SHARD"],
        "fsdp_offload_params": BOOL,
        "fsdp_auto_wrap_policy": ["TRANSFORMER_BASED_WRAP", "NO_WRAP"],
        "fsdp_transformer_layer_cls_to_wrap": ["A", "A,B", "'A, B'"],
        "fsdp_min_num_params": ["1000"],
        "fsdp_backward_prefetch": ["BACKWARD_PRE"],
        "fsdp_backward_prefetch_policy": ["BACKWARD_PRE"],
        "fsdp_forward_prefetch": BOOL, "fsdp_use_orig_params": BOOL,
        "fsdp_state_dict_type": ["SHARDED_STATE_DICT"],
        "fsdp_sync_module_states": BOOL,
        "fsdp_cpu_ram_efficient_loading": BOOL,
        "fsdp_activation_checkpointing": BOOL,
        "fsdp_activation_checkpointing_offload": BOOL,
        "fsdp_ignored_modules": ["'.*norm'"], "fsdp_typo": ["1"]},
    "deepspeed_config": {
        "zero_stage": ["0", "1", "2", "3"],
        "offload_optimizer_device": ["none", "cpu", "NVME"],
        "offload_param_device": ["none", "cpu"],
        "offload_optimizer_nvme_path": ["/nvme"],
        "gradient_accumulation_steps": ["1", "4"],
        "gradient_clipping": ["1.0", "0.5", "auto"],
        "zero3_init_flag": BOOL, "zero3_save_16bit_model": BOOL,
        "deepspeed_config_file": ["ds.json"],
        "deepspeed_hostfile": ["hosts"],
        "deepspeed_multinode_launcher": ["standard", "pdsh", "slurm"],
        "deepspeed_exclusion_filter": ["a@b"],
        "deepspeed_moe_layer_cls_names": ["Moe"], "typo": ["1"]},
    "megatron_lm_config": {
        "megatron_lm_tp_degree": ["2"], "megatron_lm_pp_degree": ["2"],
        "megatron_lm_num_micro_batches": ["4"],
        "megatron_lm_sequence_parallelism": BOOL,
        "megatron_lm_recompute_activations": BOOL,
        "megatron_lm_use_distributed_optimizer": BOOL,
        "megatron_lm_gradient_clipping": ["1.0", "0"],
        "megatron_lm_use_custom_fsdp": BOOL,
        "megatron_lm_no_load_optim": BOOL + ["null"],
        "megatron_lm_recompute_granularity": ["full"],
        "megatron_lm_recompute_num_layers": ["1"],
        "megatron_lm_context_parallel_size": ["1"],
        "megatron_lm_hidden_dropout": ["0.1"], "tp_degree": ["4"]},
    "parallelism_config": {
        "parallelism_config_dp_replicate_size": ["1", "2"],
        "parallelism_config_dp_shard_size": ["1", "4"],
        "parallelism_config_tp_size": ["1", "2"],
        "parallelism_config_cp_size": ["1", "2"],
        "parallelism_config_cp_comm_strategy": ["alltoall"],
        "parallelism_config_cp_backend": ["torch"],
        "parallelism_config_sp_size": ["1", "2"],
        "parallelism_config_sp_seq_length": ["1024"],
        "parallelism_config_sp_seq_length_is_variable": BOOL,
        "parallelism_config_sp_attn_implementation": ["sdpa"],
        "tp_size": ["2"]},
    "fp8_config": {
        "fp8_backend": ["TE", "AO", "ao"], "fp8_margin": ["1"],
        "fp8_use_autocast_during_eval": BOOL, "fp8_interval": ["2"],
        "fp8_format": ["E4M3", "HYBRID"], "fp8_amax_history_len": ["512"],
        "fp8_amax_compute_algo": ["max"],
        "fp8_override_linear_precision": ["[true, false, false]",
                                          "(false, false, false)", "[]"],
        "fp8_use_mxfp8_block_scaling": BOOL, "fp8_opt_level": ["O1"],
        "fp8_enable_fsdp_float8_all_gather": BOOL,
        "fp8_pad_inner_dim": BOOL, "fp8_amax_history_length": ["7"]},
    "dynamo_config": {
        "dynamo_backend": ["INDUCTOR", "inductor", "'no'", "NEURON"],
        "dynamo_mode": ["default", "max-autotune"],
        "dynamo_use_fullgraph": BOOL, "dynamo_use_dynamic": BOOL,
        "dynamo_use_regional_compilation": BOOL},
    "mpirun_config": {"mpirun_hostfile": ["hosts", "~/hosts"],
                      "mpirun_ccl": ["4"]},
    "ipex_config": {"ipex": BOOL, "use_xpu": BOOL},
    "tp_config": {"tp_size": ["4"]},
}
OWN = {"FSDP": "fsdp_config", "DEEPSPEED": "deepspeed_config",
       "MEGATRON_LM": "megatron_lm_config", "MULTI_CPU": "mpirun_config",
       "TP": "tp_config"}
TYPES = ["FSDP"] * 6 + ["DEEPSPEED"] * 4 + ["MULTI_GPU"] * 4 + [
    "MEGATRON_LM", "MEGATRON_LM", "MULTI_CPU", "MULTI_CPU", "'NO'", "'NO'",
    "XLA", "MULTI_XPU", "MULTI_NPU", "MULTI_HPU"]
RARE = ["NO", "TPU", "TP", "MPS", "fsdp", "null", "MULTI_NEURON"]
PREFIXES = {"fsdp_config": "fsdp_", "fp8_config": "fp8_",
            "dynamo_config": "dynamo_"}
SAGEMAKER = ("ec2_instance_type: ml.p3.2xlarge\niam_role_name: me\n"
             "image_uri: null\n")


def section(rng, name, odd):
    keys = SECTIONS[name]
    text = f"{name}:\n"
    for key in rng.sample(sorted(keys), rng.randint(1, min(6, len(keys)))):
        value = rng.choice(keys[key])
        if rng.random() < odd:
            value = rng.choice(ODD)
        prefix = PREFIXES.get(name)
        if prefix and rng.random() < 0.3:
            key = key[len(prefix):]
        text += f"  {key}: {value}\n"
    return text


def generate(rng):
    odd = rng.choice([0, 0, 0.15])
    kind = rng.choice(TYPES if rng.random() < 0.95 else RARE)
    machines = rng.choice(["1"] * 4 + ["2"])
    lines = {"distributed_type": kind,
             "num_processes": rng.choice(["1", "2", "4", "8"])}
    if machines != "1" or rng.random() < 0.5:
        lines["num_machines"] = machines
        lines["machine_rank"] = "0"
        if rng.random() < 0.9:
            lines["main_process_ip"] = "10.0.0.1"
            lines["main_process_port"] = "29500"
    for key in rng.sample(sorted(TOP), rng.choice([0, 1, 2, 4])):
        lines[key] = rng.choice(TOP[key])
        if rng.random() < odd:
            lines[key] = rng.choice(ODD)
    if rng.random() < 0.1:
        lines["mixed_precision"] = "fp8"
    if rng.random() < 0.05:
        del lines[rng.choice(sorted(lines))]
    if rng.random() < 0.03:
        lines["compute_environment"] = rng.choice(
            ["LOCAL_MACHINE", "AMAZON_SAGEMAKER", "MOON"])
    if rng.random() < 0.03:
        lines["typo_key"] = "1"
    if rng.random() < 0.04:
        lines["dynamo_backend"] = rng.choice(["INDUCTOR", "'NO'", "eager"])
    text = "".join(f"{k}: {v}\n" for k, v in lines.items())
    sections = {OWN[kind]} if kind in OWN else set()
    for name in SECTIONS:
        old = name in ("ipex_config", "tp_config")
        if rng.random() < (0.03 if old else 0.15):
            sections.add(name)
    if lines.get("mixed_precision") == "fp8":
        sections.add("fp8_config")
    for name in sorted(sections):
        if rng.random() < 0.02:
            text += f"{name}: {rng.choice(ODD)}\n"
        else:
            text += section(rng, name, odd)
    return text


def corpus(count, seed=4):
    rng = random.Random(seed)
    return [generate(rng) for _ in range(count)]
