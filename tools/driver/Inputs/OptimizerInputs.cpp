//===- OptimizerInputs.cpp - The optimizer of a plan ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/OptimizerInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "passes/Frameworks/ExecutorOf.h"
#include "passes/Frameworks/OptimizerFailure.h"
#include "runtime/plan/Optimizers.h"

namespace accel {

namespace {

/// At the job's optimizer where the file names one.
void place(const PlanOptions &options, const OptimizerConfig &optimizer,
           DiagnosticEngine &engine, Severity severity, const char *code,
           std::string message, std::string hint) {
  engine.report(diagnosticAt(
      optimizer.name.at, optimizer.name.written() ? optimizer.name.key : "",
      severity, code, std::move(message), std::move(hint), options.config));
}

} // namespace

void setOptimizer(const std::string &transformers, JobConfig &job,
                  const plan::TransformersOptimizer &named) {
  OptimizerConfig &optimizer = job.optimizer;
  const Setting<double> rate = optimizer.lr, decay = optimizer.weightDecay;
  optimizer.setDefaults(*plan::findOptimizer(named.optimizer));
  if (job.script.learningRate.value)
    optimizer.lr = rate;
  if (job.script.weightDecay.value)
    optimizer.weightDecay = decay;
  optimizer.kernel = named.kernel;
  optimizer.stateDtype = named.stateDtype;
  optimizer.habits = named.habits;
  if (!atLeast(transformers, "4.52"))
    optimizer.habits.wideEmbeddings = false;
}

void chooseOptimizer(const PlanOptions &options, PlanInputs &inputs,
                     DiagnosticEngine &engine) {
  OptimizerConfig &optimizer = inputs.job.optimizer;
  const bool own = inputs.executor == FrameworkKind::AccelRun;
  auto report = [&](Severity severity, const char *code, std::string message,
                    std::string hint) {
    place(options, optimizer, engine, severity, code, std::move(message),
          std::move(hint));
  };
  const plan::TransformersOptimizer *named = options.optim;
  const Setting<std::string> &asked = inputs.job.script.optim;
  if (!named && !asked.value.empty()) {
    optimizer.name.at = asked.at;
    named = plan::findTransformersOptimizer(*asked);
    if (!named)
      return report(Severity::Error, notSupportedCode,
                    "the optimizer '" + printable(*asked) +
                        "' is not modelled yet",
                    "accel-opt optimizers lists those that are");
  }
  if (named) {
    if (!named->optimizer)
      return report(Severity::Error, notSupportedCode,
                    std::string(options.optim ? "--optim: " : "") +
                        "the optimizer '" + named->name +
                        "' is not modelled yet",
                    "accel-opt optimizers lists those that are");
    if (own && inputs.job.isJob)
      return report(Severity::Error, "unusable-optimizer",
                    "--optim is not for a job.yaml that accel-run executes",
                    "write optimizer: {name: " + std::string(named->optimizer) +
                        "} in the file");
    setOptimizer(options.script.versions.transformers, inputs.job, *named);
    if (!options.optim)
      optimizer.name.at = asked.at;
  }
  const auto *description = plan::findOptimizer(optimizer.name.value);
  if (!description)
    return; // reported where the file was read
  // Frameworks' own default is that of torch's AdamW and SGD.
  if (!own && !optimizer.kernel &&
      description->kernels.front() != plan::UpdateKernel::Foreach)
    optimizer.kernel = description->kernels.front();
  const std::string name = description->name;
  const bool program = own || options.emitsProgram();
  const FrameworkKind launched = launchedBy(inputs.job);
  if (program && !description->executed)
    return report(Severity::Error, notSupportedCode,
                  "accel-run does not execute the optimizer '" + name +
                      "' yet, it is predicted for other executors only",
                  own ? std::string("plan with --executor ") +
                            toString(launched == FrameworkKind::Single
                                         ? FrameworkKind::Ddp
                                         : launched)
                      : "-o takes a program of accel-run: leave it out to plan "
                        "what accelerate itself would do");
  if (program && description->reads != plan::UpdateReads::Elements &&
      inputs.job.accelerate.mesh->size(plan::expertAxis) > 1)
    return report(Severity::Error, notSupportedCode,
                  "the optimizer '" + name +
                      "' reads whole parameters, which accel-run does not "
                      "plan yet where ranks of ep share experts",
                  "leave ep at 1, or use adamw, sgd or lion");
  if (program && description->reads != plan::UpdateReads::Elements &&
      inputs.job.accelerate.mesh->size("tp") > 1)
    return report(Severity::Error, notSupportedCode,
                  "the optimizer '" + name +
                      "' reads rows and columns of whole parameters, which "
                      "accel-run does not add up over the ranks of tensor "
                      "parallelism yet",
                  "leave tp_size at 1, or use adamw, sgd or lion");
  const char *reason = whyOptimizerFails(inputs.executor, *description, named);
  if (!reason)
    return;
  if (inputs.executor == FrameworkKind::Fsdp2)
    return report(
        Severity::Warning, "unusable-optimizer",
        "the optimizer '" + name +
            "' stops at its first step under FSDP2: " + reason,
        "use FSDP1, DDP or adamw_torch; the prediction is of what its states "
        "would take");
  report(Severity::Error, "unusable-optimizer",
         "the optimizer '" + name + "' cannot run under " +
             toString(inputs.executor) + ": " + reason,
         "use FSDP2 or DDP, or another optimizer");
}

} // namespace accel
