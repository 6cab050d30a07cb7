//===- ReadMegatron.cpp - megatron_lm_config -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// As MegatronLMPlugin of accelerate/utils/dataclasses.py reads what launch
// exports.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/LaunchArguments.h"
#include "frontends/Accelerate/ReadValues.h"

#include <algorithm>

using namespace accel;

void AccelerateReader::readMegatron(const Section &s) {
  MegatronSettings &m = config.megatron.emplace();
  integer(m.tensorParallel, s, "megatron_lm_tp_degree");
  integer(m.pipelineParallel, s, "megatron_lm_pp_degree");
  integer(m.microBatches, s, "megatron_lm_num_micro_batches");
  integer(m.contextParallel, s, "megatron_lm_context_parallel_size");
  integer(m.expertParallel, s, "megatron_lm_expert_model_parallel_size");
  integer(m.expertTensorParallel, s, "megatron_lm_expert_tensor_parallel_size");
  boolean(m.sequenceParallelism, s, "megatron_lm_sequence_parallelism");
  boolean(m.recomputeActivations, s, "megatron_lm_recompute_activations");
  boolean(m.distributedOptimizer, s, "megatron_lm_use_distributed_optimizer");
  boolean(m.optimizerCpuOffload, s, "megatron_lm_optimizer_cpu_offload");
  boolean(m.customFsdp, s, "megatron_lm_use_custom_fsdp");
  typed(m.gradientClipping, s, "megatron_lm_gradient_clipping", parseNumber,
        showNumber);
  text(m.recomputeGranularity, s, "megatron_lm_recompute_granularity");
  text(m.recomputeMethod, s, "megatron_lm_recompute_method");
  integer(m.recomputeLayers, s, "megatron_lm_recompute_num_layers");
  integer(m.lastStageLayers, s, "megatron_lm_decoder_last_pipeline_num_layers");
  boolean(m.preciseOptimizer, s, "megatron_lm_use_precision_aware_optimizer");
  boolean(m.flashAttention, s, "megatron_lm_attention_backend");
  boolean(m.rotaryPositions, s, "megatron_lm_use_rotary_position_embeddings");
  typed(m.attentionDropout, s, "megatron_lm_attention_dropout", parseNumber,
        showNumber);
  typed(m.hiddenDropout, s, "megatron_lm_hidden_dropout", parseNumber,
        showNumber);
  if (before(1, 13)) // Megatron-LM's own default
    m.attentionDropout.value = m.hiddenDropout.value = 0.1;
  checkMegatronValues(s);
  checkMegatronMesh(s);
}

void AccelerateReader::checkMegatronValues(const Section &s) {
  for (const auto &[name, entry] : s.keys) {
    const KeyInfo *info = findKey(s.name, name);
    const Field field{entry, prefix + s.name + "." + entry->key->text};
    if (!info || !info->readIn(version) ||
        (field.isNull() && info->rules.nullable))
      continue;
    const std::string text = yaml::pythonText(field.value());
    std::string expected; // empty: as it should be
    switch (info->type) {
    case ValueType::Boolean:
      envBool(field);
      break;
    case ValueType::Integer:
      if (const std::optional<int64_t> value = envInt(field.value());
          !value || (info->rules.minimum && *value < *info->rules.minimum))
        expected = info->rules.minimum
                       ? "an integer of at least " +
                             std::to_string(*info->rules.minimum)
                       : "an integer";
      break;
    case ValueType::Number:
      if (const std::optional<double> value = parseNumber(text);
          name.ends_with("_dropout")) {
        if (!value || !(*value >= 0 && *value <= 1)) // torch.nn.Dropout
          expected = "a number from 0 to 1";
      } else if (!value) {
        expected = "a number";
      }
      break;
    case ValueType::Choice:
      if (std::ranges::none_of(info->choices->values, [&](const EnumValue &v) {
            return text == v.value && v.in(version);
          }))
        for (const EnumValue &v : info->choices->values)
          expected += (expected.empty() ? "" : " or ") + std::string(v.value);
      break;
    default:
      break;
    }
    if (!expected.empty())
      error(field.isNull() ? "yaml-null" : "invalid-value", field,
            name + " must be " + expected + ", this is " +
                yaml::shortText(field.value()) + "; every rank stops");
  }
}

void AccelerateReader::checkMegatronMesh(const Section &s) {
  const Field whole{s.entry, prefix + s.name};
  const Field context = in(s, "megatron_lm_context_parallel_size");
  const int64_t tp = *config.megatron->tensorParallel,
                pp = *config.megatron->pipelineParallel,
                cp = *config.megatron->contextParallel,
                processes = *config.numProcesses;
  if (cp > 1 && (!context || context.isNull()))
    report(Severity::Warning, "megatron-context", whole,
           "context parallelism over " + std::to_string(cp) +
               " ranks is on: that is Accelerate's default where "
               "megatron_lm_context_parallel_size is not written",
           "write megatron_lm_context_parallel_size: 1", true);
  if (tp < 1 || pp < 1 || cp < 1 || config.assumed.numProcesses)
    return;
  // Of sizes above the number of ranks no product divides it.
  if (tp > processes || pp > processes || cp > processes ||
      processes % (tp * pp * cp) != 0)
    report(Severity::Error, "mesh-product", whole,
           "tensor, pipeline and context parallelism over " +
               std::to_string(tp) + " x " + std::to_string(pp) + " x " +
               std::to_string(cp) + " ranks do not divide num_processes " +
               std::to_string(processes),
           "num_processes must be a multiple of the product", true);
}
