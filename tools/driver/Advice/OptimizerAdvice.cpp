//===- OptimizerAdvice.cpp - Other forms of an optimizer ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/OptimizerAdvice.h"

#include "passes/Frameworks/OptimizerFailure.h"
#include "tools/driver/Inputs/OptimizerInputs.h"

namespace accel {
namespace {

/// Forms of the optimizer that has `description` and states of 32 bits, or of
/// the parameter's dtype, by the library that has them.
struct Forms {
  const char *description;
  std::vector<const char *> names;
};
const std::vector<Forms> &allForms() {
  static const std::vector<Forms> all = {
      {"adamw",
       {"adamw_torch_fused", "adamw_8bit", "paged_adamw_8bit",
        "adamw_torch_8bit"}},
      {"lion", {"lion_8bit", "paged_lion_8bit"}},
      {"ademamix", {"ademamix_8bit", "paged_ademamix_8bit"}}};
  return all;
}

bool scriptChooses(const AdviceInputs &in) {
  if (in.executor == FrameworkKind::AccelRun ||
      in.executor == FrameworkKind::Megatron || !in.inputs.trainer.empty())
    return false;
  const auto &deepspeed = in.inputs.job.accelerate.deepspeed;
  return in.executor != FrameworkKind::Deepspeed || !deepspeed ||
         !deepspeed->ownOptimizer.value;
}

} // namespace

std::vector<tune::OptimizerOption> optimizerOptions(const AdviceInputs &in,
                                                    const Candidate &base,
                                                    const Target &target) {
  const OptimizerConfig &configured = in.inputs.job.optimizer;
  const Forms *forms = nullptr;
  for (const Forms &known : allForms())
    if (configured.name.value == known.description)
      forms = &known;
  // On the host it is the library's own, or torch's on the CPU.
  if (!forms || !scriptChooses(in) || base.offloadParameters ||
      base.offloadOptimizer)
    return {};
  tune::OptimizerOption first{configured.name.value, base.update,
                              base.optimizer, "", true};
  if (first.name == "adamw")
    first.name = base.optimizer == OptimizerKernel::Fused ? "adamw_torch_fused"
                                                          : "adamw_torch";
  if (in.options.optim)
    first.name = in.options.optim->name;
  else if (!in.inputs.job.script.optim.value.empty())
    first.name = *in.inputs.job.script.optim;
  std::vector<tune::OptimizerOption> options = {first};
  for (const char *name : forms->names) {
    const plan::TransformersOptimizer &named =
        *plan::findTransformersOptimizer(name);
    const bool narrow = configured.name.value != named.optimizer;
    if (whyOptimizerFails(in.executor, *plan::findOptimizer(named.optimizer),
                          &named) ||
        (narrow ? target.kind == TargetKind::Cpu
                : base.optimizer == OptimizerKernel::Fused))
      continue;
    JobConfig job;
    job.optimizer = configured;
    job.script.learningRate = in.inputs.job.script.learningRate;
    job.script.weightDecay = in.inputs.job.script.weightDecay;
    setOptimizer(in.options.script.versions.transformers, job, named);
    tune::OptimizerOption option{name, nullptr, *named.kernel, "", true};
    option.update =
        makeUpdateRule(job.optimizer.resolved(), job.optimizer.stateDtype,
                       job.optimizer.habits);
    if (narrow)
      option.caution = "states of 8 bits: losses are not those of " +
                       first.name + ", compare them first";
    options.push_back(std::move(option));
  }
  return options.size() > 1 ? options : std::vector<tune::OptimizerOption>();
}

} // namespace accel
