//===- DdpInputs.cpp - What a script passes to DDP ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/DdpInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel {

namespace {

/// Where one of two settings is written.
struct Place {
  std::string key;
  Location at;
};

} // namespace

bool findsUnusedParameters(const PlanInputs &inputs,
                           const PlanOptions &options) {
  const ScriptSettings &script = inputs.job.script;
  if (*inputs.job.ddp.findUnusedParameters)
    return true;
  if (!*inputs.job.transformersTrainer)
    return false;
  if (*script.findsUnusedParameters)
    return **script.findsUnusedParameters;
  // A PeftModel is none of transformers' models, which are looked at where no
  // layer is recomputed.
  return inputs.adapter || !recomputesLayers(inputs, options);
}

void checkDdp(const PlanInputs &inputs, const PlanOptions &options,
              DiagnosticEngine &engine) {
  const DdpConfig &ddp = inputs.job.ddp;
  auto report = [&](const auto &setting, Severity severity, const char *code,
                    const std::string &what, const std::string &fix) {
    Diagnostic d = diagnosticAt(setting, severity, code, what, fix);
    if (d.file.empty())
      d.file = options.config;
    engine.report(std::move(d));
  };
  const bool own = inputs.executor == FrameworkKind::AccelRun;
  const bool replicated = inputs.job.accelerate.strategy.value == Strategy::Ddp;
  const bool hooked =
      !ddp.commHook->empty() || (options.ddp && !options.ddp->commHook.empty());
  const bool cut =
      *ddp.bucketBytes || (options.ddp && options.ddp->bucketBytes);
  if (!replicated && (hooked || cut) && (own || !options.ddp))
    report(Place{hooked ? ddp.commHook.key : ddp.bucketBytes.key,
                 hooked ? ddp.commHook.at : ddp.bucketBytes.at},
           Severity::Error, "executor-choice",
           "communication hooks and buckets are DistributedDataParallel's, and "
           "this job is not replicated by it",
           "write distributed_type: MULTI_GPU, or leave ddp out");
  // Layers of a reentrant checkpoint are not in the graph that DDP searches: it
  // takes their parameters for unused, and each is ready again when its layer
  // runs in the backward.
  const auto &form = inputs.job.reentrantCheckpointing;
  if (inputs.executor == FrameworkKind::Ddp && *form &&
      recomputesLayers(inputs, options) &&
      *inputs.job.accelerate.numProcesses > 1 &&
      findsUnusedParameters(inputs, options)) {
    const bool asked = *ddp.findUnusedParameters ||
                       inputs.job.script.findsUnusedParameters->value_or(false);
    report(
        form, Severity::Error, "reentrant-checkpoints",
        std::string("DistributedDataParallel takes the parameters of "
                    "reentrant checkpoints for unused ones") +
            (asked ? "" : " (Trainer has it look for those with an adapter)") +
            ": every rank stops in the first backward with \"Expected to "
            "mark a variable ready only once\"",
        std::string("write use_reentrant: false in "
                    "gradient_checkpointing_kwargs, or ") +
            (*inputs.job.transformersTrainer ? "ddp_" : "") +
            "find_unused_parameters: false");
  }
  if (!own)
    return;
  const std::string hook = options.ddp ? options.ddp->commHook : *ddp.commHook;
  if (hook == "powersgd")
    report(ddp.commHook, Severity::Error, notSupportedCode,
           "accel-run does not compress gradients by PowerSGD",
           "write fp16 or bf16, or leave comm_hook out");
  if (*ddp.findUnusedParameters)
    report(ddp.findUnusedParameters, Severity::Note, "ddp-static",
           "find_unused_parameters has nothing to find: a plan is of one "
           "graph, so that what a step does not use is known, and neither "
           "reduced nor updated",
           "");
  if (ddp.gradientAsBucketView.written())
    report(ddp.gradientAsBucketView, Severity::Note, "ddp-static",
           "gradient_as_bucket_view has no effect: accel-run writes gradients "
           "into the buffer that is reduced",
           "");
}

} // namespace accel
