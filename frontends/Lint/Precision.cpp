//===- Precision.cpp - Dtypes and frozen parameters in units --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Diagnostics/Regex.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "frontends/Lint/Lint.h"
#include "frontends/Lint/UnitProblem.h"

#include <cmath>

namespace accel::lint {

namespace {

/// Parameters of each FSDP1 unit, as indices of the tree.
std::vector<std::pair<std::string, std::vector<int>>>
unitsOf(const Subject &subject) {
  std::vector<int> original;
  for (size_t i = 0; i < subject.tree->parameters.size(); ++i)
    if (subject.tree->parameters[i].tiedTo < 0)
      original.push_back(static_cast<int>(i));
  std::vector<std::pair<std::string, std::vector<int>>> units;
  for (const wrap::UnitSet &unit : wrap::solve(unitProblem(subject)).units) {
    units.emplace_back(unit.name, std::vector<int>());
    for (int p : unit.parameters)
      units.back().second.push_back(original[static_cast<size_t>(p)]);
  }
  return units;
}

std::string unitName(const std::string &fqn) {
  return fqn.empty() ? "the root unit" : "unit '" + fqn + "'";
}

/// One flat parameter has one dtype (torch/distributed/fsdp/_flat_param.py).
void checkDtypes(const Subject &subject) {
  const ModuleTree &tree = *subject.tree;
  Field place = subject.in("fsdp_config", "fsdp_version");
  for (const auto &[name, parameters] : unitsOf(subject))
    for (int p : parameters) {
      const TreeParameter &a =
          tree.parameters[static_cast<size_t>(parameters.front())];
      const TreeParameter &b = tree.parameters[static_cast<size_t>(p)];
      if (a.dtype == b.dtype)
        continue;
      subject.report(
          Severity::Warning, "mixed-dtypes", place,
          "in " + unitName(name) + ", '" + b.fqn + "' is " +
              plan::toString(b.dtype) + " and '" + a.fqn + "' is " +
              plan::toString(a.dtype) +
              " when the model is loaded in its own dtype; FSDP1 stops with "
              "\"Must flatten tensors with uniform dtype\"",
          "load it with dtype=torch.float32, or use fsdp_version: 2");
      return;
    }
}

/// `trainable` of a job.yaml freezes the rest.
void checkFrozen(const Subject &subject) {
  if (!subject.job || subject.job->trainable->empty())
    return;
  std::optional<Regex> regex = Regex::compile(*subject.job->trainable);
  if (!regex)
    return; // reported by the reader
  const ModuleTree &tree = *subject.tree;
  for (const auto &[name, parameters] : unitsOf(subject)) {
    int64_t trained = 0, frozen = 0;
    for (int p : parameters) {
      const TreeParameter &parameter = tree.parameters[static_cast<size_t>(p)];
      bool trains = regex->isIn(parameter.fqn);
      (trains ? trained : frozen) += parameter.numel();
    }
    if (regex->gaveUp()) {
      return subject.engine.report(diagnosticAt(
          subject.job->trainable.at, "trainable", Severity::Error,
          "invalid-regex",
          "the regex takes too many steps to match names of parameters",
          Regex::slowHint));
    }
    if (!trained || !frozen)
      continue;
    std::string counts = unitName(name) + " holds " + countText(trained) +
                         " trainable and " + countText(frozen) +
                         " frozen parameters";
    if (*subject.config->useOrigParams)
      subject.report(Severity::Warning, "mixed-trainable",
                     subject.in("fsdp_config", "fsdp_version"),
                     counts + "; FSDP1 makes gradients for all of them",
                     "use fsdp_version: 2, which shards each by itself");
    else
      subject.report(Severity::Error, "mixed-trainable",
                     subject.in("fsdp_config", "fsdp_use_orig_params"),
                     counts + "; FSDP1 stops with \"Must flatten tensors with "
                              "uniform `requires_grad` when "
                              "`use_orig_params=False`\"",
                     "write fsdp_use_orig_params: true");
    return;
  }
}

/// Gradients are summed over all ranks in a format of few bits.
void noteReduction(const Subject &subject) {
  const AccelerateConfig &config = *subject.config;
  const auto &reduce = config.precision->reduce;
  int64_t ranks =
      config.mesh->size("dp_replicate") * config.mesh->size("dp_shard");
  if (!reduce || ranks < 64 ||
      (*reduce != plan::DType::BF16 && *reduce != plan::DType::F16))
    return;
  subject.report(
      Severity::Note, "low-precision-reduction", subject.top("mixed_precision"),
      "gradients are reduced over " + std::to_string(ranks) + " ranks in " +
          plan::toString(*reduce) + ", and no key changes that",
      "pass a mixed_precision_policy with reduce_dtype float32 to "
      "FullyShardedDataParallelPlugin");
}

/// Accelerate replaces fp8 by fp16 on devices that have none.
void checkFp8Device(const Subject &subject) {
  if (!subject.job || !subject.config ||
      *subject.config->mixedPrecision != MixedPrecision::Fp8)
    return;
  const std::string &target = *subject.job->target;
  if (target.starts_with("a100"))
    subject.report(Severity::Warning, "fp8-device",
                   subject.top("mixed_precision"),
                   "the target " + target +
                       " computes no fp8; Accelerate falls back to fp16",
                   "write bf16, or take another target");
}

} // namespace

void checkPrecision(const Subject &subject) {
  checkFp8Device(subject);
  if (!subject.isFsdp())
    return;
  noteReduction(subject);
  if (!subject.tree || subject.isFsdp2())
    return;
  checkDtypes(subject);
  checkFrozen(subject);
}

std::optional<plan::DType> checkpointDtype(const std::string &model) {
  DiagnosticEngine silent;
  const auto tree = huggingface::moduleTreeNamed(model, {}, silent);
  if (!tree || tree->parameters.empty())
    return std::nullopt;
  return tree->parameters.front().dtype;
}

} // namespace accel::lint

namespace accel {

bool scalesLoadedDtype(const JobConfig &job) {
  const Strategy strategy = *job.accelerate.strategy;
  return job.precision.value.lossScaling &&
         (strategy == Strategy::Single || strategy == Strategy::Ddp ||
          (strategy == Strategy::Fsdp2 && upcastBeside(job) == Upcast::None));
}

void lintHalfGradients(const std::string &path, const LoadedConfig &loaded,
                       const LintOptions &options, DiagnosticEngine &engine) {
  if (!loaded.job || loaded.job->isJob || loaded.job->script.adapter ||
      !scalesLoadedDtype(*loaded.job))
    return;
  const JobConfig &job = *loaded.job;
  const std::string model = options.model.empty() ? *job.model : options.model;
  std::optional<plan::DType> dtype = *job.loadDtype;
  const bool said = dtype.has_value();
  if (!said && !model.empty() && !model.ends_with(".pt2"))
    dtype = lint::checkpointDtype(model);
  if (dtype != plan::DType::F16)
    return;
  const Setting<MixedPrecision> &mixed = job.accelerate.mixedPrecision;
  engine.report(diagnosticAt(
      mixed.at, mixed.key, Severity::Note, "fp16-gradients",
      std::string("the model's weights are f16 ") +
          (said ? "as the script loads it"
                : "when it is loaded in its own dtype") +
          ": where they are trained themselves, not an adapter, training stops "
          "with \"Attempting to unscale FP16 gradients.\"",
      "load it with dtype=torch.float32, or write bf16", path));
}

} // namespace accel
