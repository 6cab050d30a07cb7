//===- QuantizedInputs.cpp - Whether a quantised base trains --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/QuantizedInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Job/QuantizedRefusals.h"

namespace accel {
namespace {

class Checker {
public:
  Checker(const PlanInputs &inputs, const PlanOptions &options,
          DiagnosticEngine &engine)
      : inputs(inputs), options(options), engine(engine),
        config(*inputs.job.quantization) {}

  bool run() {
    if (const auto why = refusalOfFormat(config))
      return refuse(*why);
    if (!inputs.adapter)
      return refuse(quantizedBaseCode,
                    "the weights are quantised (" + name() +
                        ") and there is no adapter; transformers' Trainer "
                        "stops with \"You cannot perform fine-tuning on purely "
                        "quantized models\"",
                    "pass --adapter, or a model that is not quantised");
    switch (inputs.executor) {
    case FrameworkKind::AccelRun:
      return refuse(
          notSupportedCode,
          "accel-run does not execute a quantised base (" + name() + ")",
          inputs.job.isJob ? "plan an accelerate YAML for what the libraries do"
                           : "leave --executor out");
    case FrameworkKind::Fsdp2:
      return checkWrapper(Strategy::Fsdp2);
    case FrameworkKind::Fsdp1:
      return checkWrapper(Strategy::Fsdp1);
    case FrameworkKind::Deepspeed:
    case FrameworkKind::Ddp:
    case FrameworkKind::Single:
    case FrameworkKind::Megatron:
      break;
    }
    return checkEmitted();
  }

private:
  std::string name() const { return plan::describe(config.values.format).name; }

  bool checkWrapper(Strategy strategy) {
    const AccelerateConfig &accelerate = inputs.job.accelerate;
    if (const auto why = refusalOfWrapper(
            config, {.strategy = strategy,
                     .accelerate = accelerate.version,
                     .torch = options.torchVersion.value_or(""),
                     .loaded = inputs.loadedDtype(),
                     .rankZeroLoads = *accelerate.cpuRamEfficientLoading}))
      return refuse(*why);
    if (!checkEmitted())
      return false;
    if (strategy == Strategy::Fsdp2)
      noteWholeUnderFsdp2(config, {}, options.config, Severity::Note, engine);
    return true;
  }

  bool checkEmitted() {
    for (EmitKind kind :
         {EmitKind::Plan, EmitKind::Schedule, EmitKind::Mlir, EmitKind::Dot})
      if (options.emits(kind))
        return refuse(notSupportedCode,
                      std::string("--emit ") + toString(kind) +
                          " is accel-run's program, which does not execute a "
                          "quantised base (" +
                          name() + ")",
                      "leave it out");
    return true;
  }

  bool refuse(const QuantizedRefusal &why) {
    return refuse(why.isOurs ? notSupportedCode : quantizedBaseCode,
                  why.message, why.hint);
  }

  bool refuse(const char *code, std::string message, std::string hint) {
    Diagnostic d = diagnosticAt(config, Severity::Error, code,
                                std::move(message), std::move(hint));
    if (d.file.empty())
      d.file = options.config;
    engine.report(std::move(d));
    return false;
  }

  const PlanInputs &inputs;
  const PlanOptions &options;
  DiagnosticEngine &engine;
  const QuantizationConfig &config;
};

} // namespace

bool checkQuantization(const PlanInputs &inputs, const PlanOptions &options,
                       DiagnosticEngine &engine) {
  return !inputs.job.quantization || Checker(inputs, options, engine).run();
}

} // namespace accel
