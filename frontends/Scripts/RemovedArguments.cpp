//===- RemovedArguments.cpp - Arguments that later releases dropped -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// huggingface/transformers pull requests 30190, 41017, 41127, 41131, 41326,
// 41403, 41404, 41489 and 43138. What was removed during 5.x is held against
// the newest release only.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>
#include <charconv>

namespace accel::scripts {
namespace {

constexpr RemovedArgument formerArguments[] = {
    {"evaluation_strategy", "eval_strategy", "write eval_strategy", "5.0"},
    {"warmup_ratio", "", "write the ratio as warmup_steps: 0.1 is a tenth",
     "5.23"},
    {"group_by_length", "", "write train_sampling_strategy: group_by_length",
     "5.23"},
    {"no_cuda", "use_cpu", "write use_cpu", "5.0"},
    {"use_mps_device", "", "leave it out: the device is found", "5.0"},
    {"per_gpu_train_batch_size", "per_device_train_batch_size",
     "write per_device_train_batch_size", "5.0"},
    {"per_gpu_eval_batch_size", "per_device_eval_batch_size",
     "write per_device_eval_batch_size", "5.0"},
    {"adafactor", "", "write optim: adafactor", "5.0"},
    {"half_precision_backend", "", "leave it out", "5.0"},
    {"fp16_backend", "", "leave it out", "5.0"},
    {"fp16_opt_level", "", "leave it out: apex is not used any more", "5.23"},
    {"fsdp_min_num_params", "", "write fsdp_config: {min_num_params: N}",
     "5.0"},
    {"fsdp_transformer_layer_cls_to_wrap", "",
     "write fsdp_config: {transformer_layer_cls_to_wrap: [NAME]}", "5.0"},
    {"tpu_num_cores", "", "leave it out", "5.0"},
    {"tpu_metrics_debug", "", "leave it out", "5.0"},
    {"xpu_backend", "ddp_backend", "write ddp_backend", "5.0"},
    {"use_ipex", "", "leave it out", "5.0"},
    {"jit_mode_eval", "", "leave it out", "5.0"},
    {"torchdynamo", "", "write torch_compile_backend", "5.0"},
    {"ray_scope", "", "set RAY_SCOPE in the environment", "5.0"},
    {"past_index", "", "leave it out", "5.23"},
    {"mp_parameters", "", "leave it out", "5.0"},
    {"overwrite_output_dir", "", "leave it out", "5.0"},
    {"logging_dir", "", "set TENSORBOARD_LOGGING_DIR in the environment",
     "5.23"},
    {"save_safetensors", "", "leave it out: it is always so", "5.0"},
    {"dispatch_batches", "", "write accelerator_config: {dispatch_batches: X}",
     "5.0"},
    {"split_batches", "", "write accelerator_config: {split_batches: X}",
     "5.0"},
    {"include_inputs_for_metrics", "", "write include_for_metrics: [inputs]",
     "5.0"},
    {"include_tokens_per_second", "", "leave it out", "5.0"},
    {"eval_use_gather_objects", "eval_use_gather_object",
     "write eval_use_gather_object", "5.0"},
    {"push_to_hub_model_id", "hub_model_id", "write hub_model_id", "5.0"},
    {"push_to_hub_organization", "", "write hub_model_id", "5.0"},
    {"push_to_hub_token", "hub_token", "write hub_token", "5.0"},
    {"use_legacy_prediction_loop", "", "leave it out", "5.0"},
};

} // namespace

const RemovedArgument *removedArgument(std::string_view name) {
  auto found =
      std::find_if(std::begin(formerArguments), std::end(formerArguments),
                   [&](const auto &f) { return f.name == name; });
  return found == std::end(formerArguments) ? nullptr : found;
}

bool reportRemoved(const RemovedArgument &former, const std::string &written,
                   const std::string &file, const SourceRange &at,
                   const std::string &transformersVersion,
                   DiagnosticEngine &engine) {
  if (!isAtLeast(transformersVersion, former.until))
    return true;
  Diagnostic d;
  d.code = "former-argument";
  d.file = file;
  d.key = written;
  d.message = "transformers " + transformersVersion + " has no argument '" +
              written + "'; the script stops with it";
  d.hint = std::string(former.hint) +
           ", or pass --transformers-version of the release that runs it";
  d.setRange(at);
  engine.report(std::move(d));
  return false;
}

bool isAtLeast(const std::string &version, const std::string &other) {
  const char *a = version.c_str(), *b = other.c_str();
  const char *aEnd = a + version.size(), *bEnd = b + other.size();
  while (a != aEnd || b != bEnd) {
    int left = 0, right = 0;
    a = std::from_chars(a, aEnd, left).ptr;
    b = std::from_chars(b, bEnd, right).ptr;
    if (left != right)
      return left > right;
    if (a != aEnd && *a != '.') // 5.0.0.dev0
      return true;
    a += a != aEnd;
    b += b != bEnd;
  }
  return true;
}

} // namespace accel::scripts
