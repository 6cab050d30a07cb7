//===- DeepspeedKeys.cpp - Keys of DeepSpeed's JSON -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedKeys.h"

#include <algorithm>

using namespace accel;

namespace {

using enum DeepspeedMeaning;

// clang-format off
constexpr DeepspeedKey keys[] = {
    // Batches.
    {"train_batch_size", Counted, "", "", false, true},
    {"train_micro_batch_size_per_gpu", Counted, "", "", false, true},
    {"gradient_accumulation_steps", Counted, "", "", false, true},
    {"managed_gradient_accumulation", NoBytes},
    {"gradient_clipping", Counted, "", "", false, true},
    {"sequence_parallel_size", Refused, "shards sequences; parallelism_config says it to Accelerate", "1"},

    // Precision.
    {"fp16", Section, "", "", true},
    {"fp16.enabled", Counted, "", "", false, true},
    {"fp16.auto_cast", NoBytes}, {"fp16.loss_scale", NoBytes}, {"fp16.initial_scale_power", NoBytes},
    {"fp16.loss_scale_window", NoBytes}, {"fp16.hysteresis", NoBytes}, {"fp16.consecutive_hysteresis", NoBytes},
    {"fp16.min_loss_scale", NoBytes},
    {"fp16.fp16_master_weights_and_grads", Refused, "keeps master weights and gradients in fp16", "false"},
    {"bf16", Section, "", "", true},
    {"bf16.enabled", Counted, "", "", false, true},
    {"bf16.immediate_grad_update", NoBytes}, {"bf16.check_grad_overflow", NoBytes},
    {"bf16.bf16_master_weights_and_grads", Refused, "keeps master weights and gradients in bf16", "false"},
    {"bf16.bf16_optimizer_states", Refused, "keeps optimizer states in bf16", "false"},
    {"bfloat16", Section, "", "", true},
    {"bfloat16.enabled", Counted, "", "", false, false},
    {"torch_autocast", Section},
    {"torch_autocast.enabled", Refused, "runs the model under torch.autocast with fp32 parameters", "false"},
    {"torch_autocast.dtype", NoBytes}, {"torch_autocast.lower_precision_safe_modules", NoBytes},
    {"communication_data_type", Refused, "reduces gradients in another dtype", "null"},
    {"seq_parallel_communication_data_type", NoBytes},
    {"data_types", Section},
    {"data_types.grad_accum_dtype", Refused, "accumulates gradients in another dtype", "null"},
    {"data_types.param_dtype", Refused, "keeps parameters in another dtype", "null"},
    {"data_types.buffer_dtype", NoBytes}, {"data_types.keep_in_fp32_modules", NoBytes},

    // ZeRO.
    {"zero_optimization", Section, "", "", true},
    {"zero_optimization.stage", Counted, "", "", false, true},
    {"zero_optimization.contiguous_gradients", Refused, "copies gradients to no buffer where it is false", "true"},
    {"zero_optimization.overlap_comm", Counted},
    {"zero_optimization.reduce_bucket_size", Counted, "", "", false, true},
    {"zero_optimization.allgather_bucket_size", NoBytes},
    {"zero_optimization.stage3_prefetch_bucket_size", Counted, "", "", false, true},
    {"zero_optimization.stage3_param_persistence_threshold", Counted, "", "", false, true},
    {"zero_optimization.stage3_max_live_parameters", Refused, "limits how many parameters stay gathered", ">=1e9"},
    {"zero_optimization.stage3_max_reuse_distance", Refused, "limits how long parameters stay gathered", ">=1e9"},
    {"zero_optimization.sub_group_size", Counted},
    {"zero_optimization.stage3_model_persistence_threshold", Refused, "limits how many parameters stay whole", ""},
    {"zero_optimization.reduce_scatter", Refused, "reduces gradients whole where it is false", "true"},
    {"zero_optimization.allgather_partitions", Refused, "broadcasts updated parameters where it is false", "true"},
    {"zero_optimization.use_multi_rank_bucket_allreduce", NoBytes},
    {"zero_optimization.round_robin_gradients", NoBytes},
    {"zero_optimization.parameter_alignment", Refused, "pads flat buffers between parameters", "false"},
    {"zero_optimization.load_from_fp32_weights", NoBytes},
    {"zero_optimization.elastic_checkpoint", NoBytes},
    {"zero_optimization.ignore_unused_parameters", NoBytes},
    {"zero_optimization.compute_grad_norm", NoBytes},
    {"zero_optimization.legacy_stage1", Refused, "takes the old implementation of stage 1", "false"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", NoBytes, "", "", false, true},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", NoBytes},
    {"zero_optimization.stage3_module_granularity_threshold", Refused, "gathers fine-grained modules whole", "0"},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", Refused, "gathers by an all-reduce", "false"},
    {"zero_optimization.stage3_allgather_sequential", Refused, "gathers parameters one by one", "false"},
    {"zero_optimization.memory_efficient_linear", NoBytes},
    {"zero_optimization.pipeline_loading_checkpoint", NoBytes},
    {"zero_optimization.override_module_apply", NoBytes},
    {"zero_optimization.log_trace_cache_warnings", NoBytes},
    {"zero_optimization.enable_sanity_checks", NoBytes},
    {"zero_optimization.save_muon_momentum_buffer_in_memory", NoBytes},
    {"zero_optimization.leaf_module", Refused, "gathers these modules as one unit", ""},
    {"zero_optimization.zenflow", Refused, "updates a part of the parameters on the CPU, asynchronously", ""},
    {"zero_optimization.zero_hpz_partition_size", Counted},
    {"zero_optimization.zero_quantized_weights", Counted},
    {"zero_optimization.zero_quantized_nontrainable_weights", Refused, "stores frozen parameters quantised", "false"},
    {"zero_optimization.zero_quantized_gradients", Counted},
    {"zero_optimization.mics_shard_size", Removed, "MiCS sharding is gone; zero_hpz_partition_size keeps shards inside of a machine", "-1", false, false, "0.19.7"},
    {"zero_optimization.mics_hierarchical_params_gather", Removed, "MiCS sharding is gone", "false", false, false, "0.19.7", "gathers parameters in two steps"},
    {"zero_optimization.zeropp_loco_param", Removed, "remove it: ZeRO++ reduces without error feedback", "", false, false, "0.19.8", "keeps the error of quantised gradients"},
    {"zero_optimization.cpu_offload", Refused, "is the old name of offload_optimizer with device cpu", "false,null"},
    {"zero_optimization.cpu_offload_param", Refused, "is the old name of offload_param with device cpu", "false,null"},
    {"zero_optimization.cpu_offload_use_pin_memory", NoBytes},

    // Offload.
    {"zero_optimization.offload_optimizer", Section, "", "", true},
    {"zero_optimization.offload_optimizer.device", Counted, "", "", false, true},
    {"zero_optimization.offload_optimizer.nvme_path", Counted, "", "", false, true},
    {"zero_optimization.offload_optimizer.pin_memory", NoBytes},
    {"zero_optimization.offload_optimizer.buffer_count", NoBytes},
    {"zero_optimization.offload_optimizer.pipeline_read", NoBytes},
    {"zero_optimization.offload_optimizer.pipeline_write", NoBytes},
    {"zero_optimization.offload_optimizer.fast_init", NoBytes},
    {"zero_optimization.offload_optimizer.ratio", Refused, "offloads a part of the optimizer's state", "1,1.0"},
    {"zero_optimization.offload_optimizer.super_offload", Refused, "overlaps the update on the CPU with the backward", "false"},
    {"zero_optimization.offload_optimizer.cpuadam_cores_perc", NoBytes},
    {"zero_optimization.offload_param", Section, "", "", true},
    {"zero_optimization.offload_param.device", Counted, "", "", false, true},
    {"zero_optimization.offload_param.nvme_path", Counted, "", "", false, true},
    {"zero_optimization.offload_param.pin_memory", NoBytes},
    {"zero_optimization.offload_param.buffer_count", NoBytes},
    {"zero_optimization.offload_param.buffer_size", NoBytes},
    {"zero_optimization.offload_param.max_in_cpu", NoBytes},
    {"aio", Section},
    {"aio.block_size", NoBytes}, {"aio.queue_depth", NoBytes}, {"aio.intra_op_parallelism", NoBytes},
    {"aio.thread_count", NoBytes}, {"aio.single_submit", NoBytes}, {"aio.overlap_events", NoBytes}, {"aio.use_gds", NoBytes},

    // Optimizer and schedule.
    {"optimizer", Section},
    {"optimizer.type", Refused, "takes another optimizer than AdamW", "AdamW,Adam,adamw,adam"},
    {"optimizer.legacy_fusion", NoBytes},
    {"optimizer.params", Section},
    {"optimizer.params.lr", NoBytes, "", "", false, true}, {"optimizer.params.betas", NoBytes, "", "", false, true},
    {"optimizer.params.eps", NoBytes, "", "", false, true}, {"optimizer.params.weight_decay", NoBytes, "", "", false, true},
    {"optimizer.params.bias_correction", NoBytes}, {"optimizer.params.adam_w_mode", NoBytes},
    {"optimizer.params.torch_adam", Counted},
    {"optimizer.params.momentum", NoBytes}, {"optimizer.params.amsgrad", Refused, "keeps a third state for each parameter", "false"},
    {"optimizer.params.max_grad_norm", NoBytes},
    {"scheduler", Section},
    {"scheduler.type", NoBytes},
    {"scheduler.params", Section},
    {"scheduler.params.warmup_min_lr", NoBytes, "", "", false, true}, {"scheduler.params.warmup_max_lr", NoBytes, "", "", false, true},
    {"scheduler.params.warmup_num_steps", NoBytes, "", "", false, true}, {"scheduler.params.total_num_steps", NoBytes, "", "", false, true},
    {"scheduler.params.warmup_type", NoBytes}, {"scheduler.params.last_batch_iteration", NoBytes},
    {"scheduler.params.cos_min_ratio", NoBytes}, {"scheduler.params.warmup_min_ratio", NoBytes}, {"scheduler.params.min_lr", NoBytes},
    {"zero_allow_untested_optimizer", NoBytes},
    {"zero_force_ds_cpu_optimizer", Refused, "takes the script's own optimizer on the CPU where it is false", "true"},

    // Activation checkpointing: of deepspeed.checkpointing, which models of
    // transformers do not call.
    {"activation_checkpointing", Section},
    {"activation_checkpointing.partition_activations", NoBytes}, {"activation_checkpointing.cpu_checkpointing", NoBytes},
    {"activation_checkpointing.contiguous_memory_optimization", NoBytes}, {"activation_checkpointing.number_checkpoints", NoBytes},
    {"activation_checkpointing.synchronize_checkpoint_boundary", NoBytes}, {"activation_checkpointing.profile", NoBytes},

    // Other parallelism and engines.
    {"tensor_parallel", Section, "", "", true},
    {"tensor_parallel.autotp_size", Refused, "splits layers among ranks", "0,1"},
    {"tensor_parallel.dtype", NoBytes}, {"tensor_parallel.tp_overlap_comm", NoBytes}, {"tensor_parallel.tp", NoBytes},
    {"tensor_parallel.tensor_parallel", NoBytes}, {"tensor_parallel.vocab_parallel_lm_head", NoBytes},
    {"tensor_parallel.vocab_parallel_ce_backend", NoBytes}, {"tensor_parallel.injection_policy_tuple", NoBytes},
    {"tensor_parallel.partition_config", NoBytes}, {"tensor_parallel.preset_model", NoBytes},
    {"tensor_parallel.keep_module_on_host", NoBytes}, {"tensor_parallel.replace_with_kernel_inject", NoBytes},
    {"expert_parallel", Refused, "shards experts", ""},
    {"pipeline", NoBytes}, {"use_data_before_expert_parallelism", NoBytes},
    {"hybrid_engine", Section, "", "", true},
    {"hybrid_engine.enabled", Refused, "keeps an inference copy of the model", "false"},
    {"hybrid_engine.max_out_tokens", NoBytes}, {"hybrid_engine.inference_tp_size", NoBytes},
    {"hybrid_engine.release_inference_cache", NoBytes}, {"hybrid_engine.pin_parameters", NoBytes},
    {"hybrid_engine.tp_gather_partition_size", NoBytes}, {"hybrid_engine.enable_cuda_graph", NoBytes},
    {"compile", Section, "", "", true},
    {"compile.deepcompile", Refused, "compiles the model with its collectives", "false"},
    {"compile.autoep_non_moe", NoBytes}, {"compile.free_activation", NoBytes}, {"compile.free_activation_threshold", NoBytes},
    {"compile.offload_activation", NoBytes}, {"compile.offload_activation_pin_memory", NoBytes},
    {"compile.offload_opt_states", NoBytes}, {"compile.offload_parameters", NoBytes}, {"compile.double_buffer", NoBytes},
    {"compile.symmetric_memory", NoBytes}, {"compile.debug_log", NoBytes}, {"compile.sync_before_reduce", NoBytes},
    {"compile.sync_after_reduce", NoBytes}, {"compile.sync_before_allgather", NoBytes}, {"compile.sync_after_allgather", NoBytes},
    {"compile.keep_int_input_tensors", NoBytes}, {"compile.keep_all_input_tensors", NoBytes}, {"compile.passes", NoBytes},
    {"weight_quantization", Refused, "quantises weights", ""},
    {"msamp", Section},
    {"msamp.enabled", Refused, "trains in 8 bits (MS-AMP)", "false"}, {"msamp.opt_level", NoBytes},

    // Reduction.
    {"prescale_gradients", NoBytes}, {"gradient_predivide_factor", NoBytes}, {"gradient_allreduce_op", NoBytes},
    {"disable_allgather", Refused, "broadcasts updated parameters", "false"},

    // Data, checkpoints, logs.
    {"data_efficiency", Section},
    {"data_efficiency.enabled", Refused, "drops tokens or changes the samples' lengths", "false"},
    {"data_efficiency.seed", NoBytes}, {"data_efficiency.data_sampling", NoBytes}, {"data_efficiency.data_routing", NoBytes},
    {"dataloader_drop_last", NoBytes}, {"checkpoint", NoBytes}, {"datastates_ckpt", NoBytes},
    {"steps_per_print", NoBytes}, {"wall_clock_breakdown", NoBytes}, {"memory_breakdown", NoBytes}, {"dump_state", NoBytes},
    {"disable_python_gc", NoBytes}, {"vocabulary_size", NoBytes}, {"log_level", NoBytes}, {"comms_logger", NoBytes},
    {"flops_profiler", NoBytes}, {"tensorboard", NoBytes}, {"wandb", NoBytes}, {"csv_monitor", NoBytes}, {"comet", NoBytes},
    {"monitor_config", NoBytes}, {"autotuning", NoBytes}, {"timers", NoBytes}, {"hf_deepspeed_config", NoBytes},

    // Gone.
    {"amp", Removed, "write \"fp16\" or \"bf16\"", "", false, false, "0.19.8", "trains under Apex AMP"},
    {"compression_training", Removed, "remove it", "", false, false, "0.19.7", "quantises or prunes weights"}, {"curriculum_learning", Removed, "write data_efficiency.data_sampling.curriculum_learning", "", false, false, "0.19.8", "changes the lengths of samples"},
    {"eigenvalue", Removed, "remove it", "", false, false, "0.19.8", "computes eigenvalues of layers"}, {"elasticity", Removed, "write train_batch_size or train_micro_batch_size_per_gpu", "", false, false, "0.19.8", "chooses the batch by itself"},
    {"graph_harvesting", Removed, "remove it", "false", false, false, "0.19.8", "replays CUDA graphs"}, {"nebula", Removed, "remove it", "", false, false, "0.19.7", "writes checkpoints through another service"}, {"progressive_layer_drop", Removed, "remove it", "", false, false, "0.19.8", "drops layers"},
    {"quantize_training", Removed, "remove it", "", false, false, "0.19.7", "quantises weights"}, {"sparse_attention", Removed, "remove it", "", false, false, "0.19.7", "computes sparse attention"},
    {"sparse_gradients", Removed, "remove it: embeddings with sparse=True need no flag", "false", false, false, "0.19.8", "reduces gradients of embeddings as indices"},
};
// clang-format on

} // namespace

std::span<const DeepspeedKey> accel::deepspeedKeys() { return keys; }

const DeepspeedKey *accel::findDeepspeedKey(std::string_view path) {
  for (const DeepspeedKey &key : keys)
    if (path == key.path)
      return &key;
  return nullptr;
}

std::vector<std::string> accel::deepspeedKeysIn(std::string_view path) {
  std::vector<std::string> names;
  const std::string prefix = path.empty() ? "" : std::string(path) + ".";
  for (const DeepspeedKey &key : keys) {
    std::string_view name = key.path;
    if (!name.starts_with(prefix))
      continue;
    name.remove_prefix(prefix.size());
    if (!name.empty() && name.find('.') == name.npos &&
        key.meaning != DeepspeedMeaning::Removed)
      names.emplace_back(name);
  }
  return names;
}

std::string accel::placeOfDeepspeedKey(std::string_view name) {
  constexpr std::pair<const char *, const char *> own[] = {
      {"stage", "zero_stage"},
      {"zero_optimization", "zero_stage and offload_..._device"},
      {"offload_optimizer", "offload_optimizer_device"},
      {"offload_param", "offload_param_device"},
      {"stage3_gather_16bit_weights_on_model_save", "zero3_save_16bit_model"},
      {"fp16", "mixed_precision: fp16 at the top level"},
      {"bf16", "mixed_precision: bf16 at the top level"},
  };
  for (const auto &[json, yaml] : own)
    if (name == json)
      return "write " + std::string(yaml) +
             ", or set it in the JSON file that deepspeed_config_file names";
  const std::string zero = "zero_optimization." + std::string(name);
  for (const std::string &path : {std::string(name), zero})
    if (findDeepspeedKey(path))
      return "it belongs into the JSON file that deepspeed_config_file names, "
             "as " +
             path;
  return "";
}
