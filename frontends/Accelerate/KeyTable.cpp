//===- KeyTable.cpp - Keys of accelerate files by version -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/KeyTable.h"

#include <charconv>

using namespace accel;

namespace {

constexpr AccelerateVersion never{99, 0};
constexpr const char *top = "", *fsdp = "fsdp_config",
                     *deepspeed = "deepspeed_config",
                     *megatron = "megatron_lm_config",
                     *parallelism = "parallelism_config", *fp8 = "fp8_config",
                     *mpirun = "mpirun_config", *dynamo = "dynamo_config",
                     *sagemaker = "sagemaker";

// clang-format off
constexpr KeyInfo table[] = {
    {top, "compute_environment", {0, 2}, never},
    {top, "distributed_type", {0, 2}, never},
    {top, "mixed_precision", {0, 6}, never},
    {top, "fp16", {0, 2}, never}, // migrated on load since 0.6
    {top, "dynamo_backend", {0, 15}, never}, // migrated on load since 0.17
    {top, "use_cpu", {0, 6}, never},
    {top, "debug", {0, 22}, never},
    {top, "num_processes", {0, 2}, never},
    {top, "num_machines", {0, 2}, never},
    {top, "machine_rank", {0, 2}, never},
    {top, "main_process_ip", {0, 2}, never},
    {top, "main_process_port", {0, 2}, never},
    {top, "main_training_function", {0, 2}, never},
    {top, "gpu_ids", {0, 13}, never},
    {top, "rdzv_backend", {0, 13}, never},
    {top, "same_network", {0, 13}, never},
    {top, "enable_cpu_affinity", {0, 29}, never},
    {top, "downcast_bf16", {0, 12}, never},
    {top, "tpu_name", {0, 14}, never},
    {top, "tpu_zone", {0, 14}, never},
    {top, "tpu_use_cluster", {0, 17}, never},
    {top, "tpu_use_sudo", {0, 17}, never},
    {top, "tpu_vm", {0, 17}, never},
    {top, "tpu_env", {0, 17}, never},
    {top, "commands", {0, 14}, never},
    {top, "command_file", {0, 14}, never},
    {top, "dynamo_config", {0, 17}, never},
    {top, "fsdp_config", {0, 7}, never},
    {top, "deepspeed_config", {0, 4}, never},
    {top, "megatron_lm_config", {0, 14}, never},
    {top, "mpirun_config", {0, 28}, never},
    {top, "fp8_config", {0, 34}, never},
    {top, "parallelism_config", {1, 10}, never},
    {top, "ipex_config", {0, 19}, {1, 13}},
    {top, "tp_config", {1, 4}, {1, 7}},

    {fsdp, "fsdp_version", {1, 6}, never},
    {fsdp, "fsdp_sharding_strategy", {0, 12}, never},
    {fsdp, "fsdp_reshard_after_forward", {1, 6}, never},
    {fsdp, "fsdp_offload_params", {0, 12}, never},
    {fsdp, "fsdp_auto_wrap_policy", {0, 11}, never},
    {fsdp, "fsdp_transformer_layer_cls_to_wrap", {0, 12}, never},
    {fsdp, "fsdp_min_num_params", {0, 12}, never},
    {fsdp, "fsdp_backward_prefetch", {0, 26}, never},
    {fsdp, "fsdp_backward_prefetch_policy", {0, 11}, {1, 0}},
    {fsdp, "fsdp_forward_prefetch", {0, 21}, never},
    {fsdp, "fsdp_state_dict_type", {0, 12}, never},
    {fsdp, "fsdp_use_orig_params", {0, 21}, never},
    {fsdp, "fsdp_sync_module_states", {0, 21}, never},
    {fsdp, "fsdp_cpu_ram_efficient_loading", {0, 24}, never},
    {fsdp, "fsdp_activation_checkpointing", {0, 31}, never},
    {fsdp, "fsdp_activation_checkpointing_offload", {1, 15}, never},
    {fsdp, "fsdp_ignored_modules", {1, 10}, never},

    {deepspeed, "zero_stage", {0, 4}, never},
    {deepspeed, "offload_optimizer_device", {0, 4}, never},
    {deepspeed, "offload_param_device", {0, 10}, never},
    {deepspeed, "offload_optimizer_nvme_path", {0, 20}, never},
    {deepspeed, "offload_param_nvme_path", {0, 20}, never},
    {deepspeed, "gradient_accumulation_steps", {0, 4}, never},
    {deepspeed, "gradient_clipping", {0, 10}, never},
    {deepspeed, "zero3_init_flag", {0, 10}, never},
    {deepspeed, "zero3_save_16bit_model", {0, 10}, never},
    {deepspeed, "deepspeed_config_file", {0, 10}, never},
    {deepspeed, "deepspeed_hostfile", {0, 11}, never},
    {deepspeed, "deepspeed_exclusion_filter", {0, 11}, never},
    {deepspeed, "deepspeed_inclusion_filter", {0, 11}, never},
    {deepspeed, "deepspeed_multinode_launcher", {0, 11}, never},
    {deepspeed, "deepspeed_moe_layer_cls_names", {0, 30}, never},

    {megatron, "megatron_lm_tp_degree", {0, 14}, never},
    {megatron, "megatron_lm_pp_degree", {0, 14}, never},
    {megatron, "megatron_lm_num_micro_batches", {0, 14}, never},
    {megatron, "megatron_lm_sequence_parallelism", {0, 14}, never},
    {megatron, "megatron_lm_recompute_activations", {0, 14}, never},
    {megatron, "megatron_lm_use_distributed_optimizer", {0, 14}, never},
    {megatron, "megatron_lm_gradient_clipping", {0, 14}, never},
    {megatron, "megatron_lm_use_custom_fsdp", {1, 13}, never},
    {megatron, "megatron_lm_no_load_optim", {1, 13}, never},
    {megatron, "megatron_lm_no_save_optim", {1, 13}, never},
    {megatron, "megatron_lm_eod_mask_loss", {1, 13}, never},
    {megatron, "megatron_lm_overlap_cpu_optimizer_d2h_h2d", {1, 13}, never},
    {megatron, "megatron_lm_optimizer_cpu_offload", {1, 13}, never},
    {megatron, "megatron_lm_use_precision_aware_optimizer", {1, 13}, never},
    {megatron, "megatron_lm_decoder_last_pipeline_num_layers", {1, 13}, never},
    {megatron, "megatron_lm_recompute_granularity", {1, 13}, never},
    {megatron, "megatron_lm_recompute_method", {1, 13}, never},
    {megatron, "megatron_lm_recompute_num_layers", {1, 13}, never},
    {megatron, "megatron_lm_attention_backend", {1, 13}, never},
    {megatron, "megatron_lm_expert_model_parallel_size", {1, 13}, never},
    {megatron, "megatron_lm_context_parallel_size", {1, 13}, never},
    {megatron, "megatron_lm_attention_dropout", {1, 13}, never},
    {megatron, "megatron_lm_hidden_dropout", {1, 13}, never},
    {megatron, "megatron_lm_attention_softmax_in_fp32", {1, 13}, never},
    {megatron, "megatron_lm_expert_tensor_parallel_size", {1, 13}, never},
    {megatron, "megatron_lm_calculate_per_token_loss", {1, 13}, never},
    {megatron, "megatron_lm_use_rotary_position_embeddings", {1, 13}, never},

    {parallelism, "parallelism_config_dp_replicate_size", {1, 10}, never},
    {parallelism, "parallelism_config_dp_shard_size", {1, 10}, never},
    {parallelism, "parallelism_config_tp_size", {1, 10}, never},
    {parallelism, "parallelism_config_cp_size", {1, 10}, never},
    {parallelism, "parallelism_config_cp_comm_strategy", {1, 10}, never},
    {parallelism, "parallelism_config_cp_backend", {1, 12}, never},
    {parallelism, "parallelism_config_sp_size", {1, 12}, never},
    {parallelism, "parallelism_config_sp_backend", {1, 12}, never},
    {parallelism, "parallelism_config_sp_seq_length", {1, 12}, never},
    {parallelism, "parallelism_config_sp_seq_length_is_variable", {1, 12}, never},
    {parallelism, "parallelism_config_sp_attn_implementation", {1, 12}, never},

    {fp8, "fp8_backend", {0, 34}, never},
    {fp8, "fp8_use_autocast_during_eval", {0, 34}, never},
    {fp8, "fp8_margin", {0, 34}, never},
    {fp8, "fp8_interval", {0, 34}, never},
    {fp8, "fp8_format", {0, 34}, never},
    {fp8, "fp8_amax_history_len", {0, 34}, never},
    {fp8, "fp8_amax_compute_algo", {0, 34}, never},
    {fp8, "fp8_override_linear_precision", {0, 34}, never},
    {fp8, "fp8_use_mxfp8_block_scaling", {1, 9}, never},
    {fp8, "fp8_opt_level", {0, 34}, never},
    {fp8, "fp8_enable_fsdp_float8_all_gather", {1, 13}, never},
    {fp8, "fp8_pad_inner_dim", {1, 13}, never},

    {mpirun, "mpirun_hostfile", {0, 28}, never},
    {mpirun, "mpirun_ccl", {0, 28}, {1, 13}},

    {dynamo, "dynamo_backend", {0, 17}, never},
    {dynamo, "dynamo_mode", {0, 17}, never},
    {dynamo, "dynamo_use_fullgraph", {0, 17}, never},
    {dynamo, "dynamo_use_dynamic", {0, 17}, never},
    {dynamo, "dynamo_use_regional_compilation", {1, 7}, never},

    {sagemaker, "ec2_instance_type", {0, 2}, never},
    {sagemaker, "iam_role_name", {0, 2}, never},
    {sagemaker, "image_uri", {0, 2}, never},
    {sagemaker, "profile", {0, 2}, never},
    {sagemaker, "region", {0, 2}, never},
    {sagemaker, "base_job_name", {0, 2}, never},
    {sagemaker, "pytorch_version", {0, 2}, never},
    {sagemaker, "transformers_version", {0, 2}, never},
    {sagemaker, "py_version", {0, 2}, never},
    {sagemaker, "sagemaker_inputs_file", {0, 2}, never},
    {sagemaker, "sagemaker_metrics_file", {0, 2}, never},
    {sagemaker, "additional_args", {0, 2}, never},
};
// clang-format on

} // namespace

std::optional<AccelerateVersion>
accel::parseAccelerateVersion(std::string_view text) {
  AccelerateVersion v;
  const char *end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, v.major);
  if (error != std::errc() || dot == end || *dot != '.')
    return std::nullopt;
  auto [rest, second] = std::from_chars(dot + 1, end, v.minor);
  if (second != std::errc() || (rest != end && *rest != '.'))
    return std::nullopt;
  return v;
}

const KeyInfo *accel::findKey(std::string_view section, std::string_view name) {
  for (const KeyInfo &key : table)
    if (section == key.section && name == key.name)
      return &key;
  return nullptr;
}

std::vector<std::string> accel::keysOf(std::string_view section,
                                       AccelerateVersion v) {
  std::vector<std::string> names;
  for (const KeyInfo &key : table)
    if (section == key.section && key.in(v))
      names.push_back(key.name);
  return names;
}

const KeyInfo *accel::findInSections(std::string_view name,
                                     AccelerateVersion v) {
  for (const KeyInfo &key : table)
    if (*key.section && key.section != std::string_view(sagemaker) &&
        name == key.name && key.in(v))
      return &key;
  return nullptr;
}

std::string_view accel::impliedPrefix(std::string_view section) {
  if (section == fsdp)
    return "fsdp_";
  if (section == fp8)
    return "fp8_";
  return section == dynamo ? "dynamo_" : "";
}

std::string_view accel::requiredPrefix(std::string_view section) {
  if (section == parallelism)
    return "parallelism_config_";
  return section == megatron ? "megatron_lm_" : "";
}

std::string accel::canonicalKey(std::string_view section,
                                std::string_view written) {
  // Accelerate tests for "fsdp" and "fp8" without the underscore.
  std::string_view prefix = impliedPrefix(section);
  std::string_view test = prefix;
  if (section != dynamo && !test.empty())
    test.remove_suffix(1);
  if (written.starts_with(test))
    return std::string(written);
  return std::string(prefix) + std::string(written);
}
