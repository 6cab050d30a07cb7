//===- Quantized.cpp - Who refuses the job's quantised base ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/HuggingFace/Quantized.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "frontends/Lint/Lint.h"
#include "frontends/Lint/Subject.h"

namespace accel {

namespace {

/// What the checkpoint holds. Where a quantization_config stops transformers is
/// said here; what else is wrong with a config.json, where the model is read,
/// and what is not modelled trains.
std::optional<QuantizationConfig> packedWeights(const std::string &model,
                                                DiagnosticEngine &engine) {
  std::optional<QuantizationConfig> packed;
  DiagnosticEngine all;
  huggingface::readQuantizationNamed(model, packed, all);
  for (const Diagnostic &finding : all.all())
    if (finding.code == "invalid-model-config" &&
        finding.key.starts_with("quantization_config"))
      engine.report(finding);
  return packed;
}

bool isKnown(const std::string &model) {
  return !model.empty() && !model.ends_with(".pt2") &&
         (!huggingface::modelFolder(model).empty() ||
          huggingface::publishedModel(model));
}

} // namespace

void lintQuantizedBase(const std::string &path, const LoadedConfig &loaded,
                       const LintOptions &options, DiagnosticEngine &engine) {
  if (!loaded.job)
    return;
  JobConfig job = *loaded.job;
  if (options.quantization)
    job.quantization = options.quantization;
  const std::string model = options.model.empty() ? *job.model : options.model;
  const bool named = isKnown(model);
  if (!named && job.quantization && job.quantization->dequantizes)
    return; // what is packed is not known
  if (!settleQuantization(job,
                          named ? packedWeights(model, engine) : std::nullopt,
                          path, engine) ||
      !job.quantization)
    return;
  const QuantizationConfig &base = *job.quantization;
  const AccelerateConfig &accelerate = job.accelerate;
  QuantizedUse use{.strategy = *accelerate.strategy,
                   .accelerate = accelerate.version,
                   .torch = options.torchVersion,
                   .loaded = *job.loadDtype,
                   .rankZeroLoads = *accelerate.cpuRamEfficientLoading};
  // A job.yaml is accel-run's, whose FSDP is its own.
  if (job.isJob || accelerate.assumed.fsdpVersion)
    use.strategy = Strategy::Other;
  if (use.strategy == Strategy::Fsdp1 && !use.loaded && named)
    use.loaded = lint::checkpointDtype(model);
  if (const auto why = refusalOf(base, use)) {
    if (!why->isOurs) // it trains, and is not modelled
      engine.report(diagnosticAt(base.at, base.key, Severity::Error,
                                 quantizedBaseCode, why->message, why->hint,
                                 path));
    return;
  }
  if (use.strategy == Strategy::Fsdp2)
    noteWholeUnderFsdp2(base, base.at, path, Severity::Warning, engine);
}

} // namespace accel
