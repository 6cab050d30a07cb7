//===- LaunchExports.h - Values that launch exports as they are -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Data: which attribute of the command line goes into which variable, in which
// releases.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_LAUNCHEXPORTS_H
#define ACCEL_FRONTENDS_ACCELERATE_LAUNCHEXPORTS_H

#include "frontends/Accelerate/KeyTable.h"

namespace accel {

/// One line `env[name] = str(args.attribute)`.
struct Export {
  const char *name;
  const char *attribute;
  enum Form { Plain, Lower, PlainIfSet, LowerIfSet } form;
  AccelerateVersion since = {0, 11}, until = neverAccelerate;
};
inline constexpr auto Plain = Export::Plain, Lower = Export::Lower,
                      PlainIfSet = Export::PlainIfSet,
                      LowerIfSet = Export::LowerIfSet;

// clang-format off
inline constexpr Export dynamoExports[] = {
    {"ACCELERATE_DYNAMO_MODE", "dynamo_mode", Plain, {0, 17}},
    {"ACCELERATE_DYNAMO_USE_FULLGRAPH", "dynamo_use_fullgraph", Plain, {0, 17}},
    {"ACCELERATE_DYNAMO_USE_DYNAMIC", "dynamo_use_dynamic", Plain, {0, 17}},
    {"ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION", "dynamo_use_regional_compilation", Plain, {1, 7}},
};

inline constexpr Export fsdpExports[] = {
    {"FSDP_AUTO_WRAP_POLICY", "fsdp_auto_wrap_policy", Plain, {0, 11}, {0, 12}},
    {"FSDP_TRANSFORMER_CLS_TO_WRAP", "transformer_layer_cls_to_wrap", Plain, {0, 11}, {0, 12}},
    {"FSDP_OFFLOAD_PARAMS", "offload_params", Lower, {0, 11}, {0, 12}},
    {"FSDP_MIN_NUM_PARAMS", "min_num_params", Plain, {0, 11}, {0, 12}},
    {"FSDP_SHARDING_STRATEGY", "sharding_strategy", Plain, {0, 11}, {0, 12}},
    {"FSDP_BACKWARD_PREFETCH", "fsdp_backward_prefetch_policy", Plain, {0, 11}, {0, 12}},
    {"FSDP_VERSION", "fsdp_version", Plain, {1, 6}},
    {"FSDP_SHARDING_STRATEGY", "fsdp_sharding_strategy", Plain, {0, 12}},
    {"FSDP_RESHARD_AFTER_FORWARD", "fsdp_reshard_after_forward", Lower, {1, 6}},
    {"FSDP_OFFLOAD_PARAMS", "fsdp_offload_params", Lower, {0, 12}},
    {"FSDP_MIN_NUM_PARAMS", "fsdp_min_num_params", Plain, {0, 12}},
    {"FSDP_AUTO_WRAP_POLICY", "fsdp_auto_wrap_policy", PlainIfSet, {0, 12}},
    {"FSDP_TRANSFORMER_CLS_TO_WRAP", "fsdp_transformer_layer_cls_to_wrap", PlainIfSet, {0, 12}},
    {"FSDP_BACKWARD_PREFETCH", "fsdp_backward_prefetch", PlainIfSet, {0, 26}},
    {"FSDP_BACKWARD_PREFETCH", "fsdp_backward_prefetch_policy", PlainIfSet, {0, 12}, {1, 0}},
    {"FSDP_STATE_DICT_TYPE", "fsdp_state_dict_type", PlainIfSet, {0, 12}},
    {"FSDP_FORWARD_PREFETCH", "fsdp_forward_prefetch", Lower, {0, 21}},
    {"FSDP_USE_ORIG_PARAMS", "fsdp_use_orig_params", Lower, {0, 21}},
    {"FSDP_CPU_RAM_EFFICIENT_LOADING", "fsdp_cpu_ram_efficient_loading", Lower, {0, 24}},
    {"FSDP_SYNC_MODULE_STATES", "fsdp_sync_module_states", Lower, {0, 21}},
    {"FSDP_ACTIVATION_CHECKPOINTING", "fsdp_activation_checkpointing", Lower, {0, 31}},
    {"FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", "fsdp_activation_checkpointing_offload", Lower, {1, 15}},
    {"FSDP_IGNORED_MODULES", "fsdp_ignored_modules", PlainIfSet, {1, 10}},
};

inline constexpr Export megatronExports[] = {
    {"MEGATRON_LM_TP_DEGREE", "megatron_lm_tp_degree", Plain, {0, 14}},
    {"MEGATRON_LM_PP_DEGREE", "megatron_lm_pp_degree", Plain, {0, 14}},
    {"MEGATRON_LM_GRADIENT_CLIPPING", "megatron_lm_gradient_clipping", Plain, {0, 14}},
    {"MEGATRON_LM_NUM_MICRO_BATCHES", "megatron_lm_num_micro_batches", PlainIfSet, {0, 14}},
    {"MEGATRON_LM_SEQUENCE_PARALLELISM", "megatron_lm_sequence_parallelism", PlainIfSet, {0, 14}},
    {"MEGATRON_LM_RECOMPUTE_ACTIVATIONS", "megatron_lm_recompute_activations", PlainIfSet, {0, 14}},
    {"MEGATRON_LM_USE_DISTRIBUTED_OPTIMIZER", "megatron_lm_use_distributed_optimizer", PlainIfSet, {0, 14}},
    {"MEGATRON_LM_USE_CUSTOM_FSDP", "megatron_lm_use_custom_fsdp", Plain, {1, 13}},
    {"MEGATRON_LM_NO_LOAD_OPTIM", "megatron_lm_no_load_optim", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_EOD_MASK_LOSS", "megatron_lm_eod_mask_loss", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_NO_SAVE_OPTIM", "megatron_lm_no_save_optim", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_OPTIMIZER_CPU_OFFLOAD", "megatron_lm_optimizer_cpu_offload", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_USE_PRECISION_AWARE_OPTIMIZER", "megatron_lm_use_precision_aware_optimizer", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_OVERLAP_CPU_OPTIMIZER_D2H_H2D", "megatron_lm_overlap_cpu_optimizer_d2h_h2d", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_DECODER_LAST_PIPELINE_NUM_LAYERS", "megatron_lm_decoder_last_pipeline_num_layers", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_RECOMPUTE_GRANULARITY", "megatron_lm_recompute_granularity", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_RECOMPUTE_METHOD", "megatron_lm_recompute_method", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_RECOMPUTE_NUM_LAYERS", "megatron_lm_recompute_num_layers", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_ATTENTION_BACKEND", "megatron_lm_attention_backend", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_EXPERT_MODEL_PARALLEL_SIZE", "megatron_lm_expert_model_parallel_size", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_CONTEXT_PARALLEL_SIZE", "megatron_lm_context_parallel_size", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_ATTENTION_DROPOUT", "megatron_lm_attention_dropout", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_HIDDEN_DROPOUT", "megatron_lm_hidden_dropout", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_ATTENTION_SOFTMAX_IN_FP32", "megatron_lm_attention_softmax_in_fp32", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_EXPERT_TENSOR_PARALLEL_SIZE", "megatron_lm_expert_tensor_parallel_size", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_CALCULATE_PER_TOKEN_LOSS", "megatron_lm_calculate_per_token_loss", PlainIfSet, {1, 13}},
    {"MEGATRON_LM_USE_ROTARY_POSITION_EMBEDDINGS", "megatron_lm_use_rotary_position_embeddings", PlainIfSet, {1, 13}},
};

inline constexpr Export deepspeedExports[] = {
    {"DEEPSPEED_ZERO_STAGE", "zero_stage", Plain, {0, 11}, {0, 16}},
    {"GRADIENT_ACCUMULATION_STEPS", "gradient_accumulation_steps", Plain, {0, 11}, {0, 16}},
    {"GRADIENT_CLIPPING", "gradient_clipping", Lower, {0, 11}, {0, 16}},
    {"DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "offload_optimizer_device", Lower, {0, 11}, {0, 16}},
    {"DEEPSPEED_OFFLOAD_PARAM_DEVICE", "offload_param_device", Lower, {0, 11}, {0, 16}},
    {"DEEPSPEED_ZERO3_INIT", "zero3_init_flag", Lower, {0, 11}, {0, 16}},
    {"DEEPSPEED_ZERO3_SAVE_16BIT_MODEL", "zero3_save_16bit_model", Lower, {0, 11}, {0, 16}},
    {"DEEPSPEED_CONFIG_FILE", "deepspeed_config_file", Lower, {0, 11}, {0, 13}},
    {"DEEPSPEED_CONFIG_FILE", "deepspeed_config_file", PlainIfSet, {0, 13}, {0, 16}},
    {"ACCELERATE_DEEPSPEED_ZERO_STAGE", "zero_stage", PlainIfSet, {0, 16}},
    {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "gradient_accumulation_steps", PlainIfSet, {0, 16}},
    {"ACCELERATE_GRADIENT_CLIPPING", "gradient_clipping", LowerIfSet, {0, 16}},
    {"ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "offload_optimizer_device", LowerIfSet, {0, 16}},
    {"ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", "offload_param_device", LowerIfSet, {0, 16}},
    {"ACCELERATE_DEEPSPEED_ZERO3_INIT", "zero3_init_flag", LowerIfSet, {0, 16}},
    {"ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL", "zero3_save_16bit_model", LowerIfSet, {0, 16}},
    {"ACCELERATE_DEEPSPEED_CONFIG_FILE", "deepspeed_config_file", PlainIfSet, {0, 16}},
    {"ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES", "deepspeed_moe_layer_cls_names", PlainIfSet, {0, 30}},
};

inline constexpr Export meshExports[] = {
    {"PARALLELISM_CONFIG_DP_REPLICATE_SIZE", "parallelism_config_dp_replicate_size", Plain, {1, 10}},
    {"PARALLELISM_CONFIG_DP_SHARD_SIZE", "parallelism_config_dp_shard_size", Plain, {1, 10}},
    {"PARALLELISM_CONFIG_TP_SIZE", "parallelism_config_tp_size", Plain, {1, 10}},
    {"PARALLELISM_CONFIG_CP_SIZE", "parallelism_config_cp_size", Plain, {1, 10}},
    {"PARALLELISM_CONFIG_CP_BACKEND", "parallelism_config_cp_backend", Plain, {1, 12}},
    {"PARALLELISM_CONFIG_SP_SIZE", "parallelism_config_sp_size", Plain, {1, 12}},
    {"PARALLELISM_CONFIG_SP_BACKEND", "parallelism_config_sp_backend", Plain, {1, 12}},
};
inline constexpr Export cpExports[] = {
    {"PARALLELISM_CONFIG_CP_COMM_STRATEGY", "parallelism_config_cp_comm_strategy", Plain, {1, 10}},
};
inline constexpr Export spExports[] = {
    {"PARALLELISM_CONFIG_SP_SEQ_LENGTH", "parallelism_config_sp_seq_length", Plain, {1, 12}},
    {"PARALLELISM_CONFIG_SP_SEQ_LENGTH_IS_VARIABLE", "parallelism_config_sp_seq_length_is_variable", Plain, {1, 12}},
    {"PARALLELISM_CONFIG_SP_ATTN_IMPLEMENTATION", "parallelism_config_sp_attn_implementation", Plain, {1, 12}},
};
// clang-format on

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_LAUNCHEXPORTS_H
