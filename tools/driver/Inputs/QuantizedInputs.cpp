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
        config(*inputs.job.quantization), values(config.values),
        format(plan::describe(values.format)) {}

  bool run() {
    if (format.notTrained)
      return refuse(quantizedBaseCode,
                    name() + " cannot be trained through: " + format.notTrained,
                    config.prequantized
                        ? "write \"dequantize\": true into "
                          "quantization_config, as "
                          "Mxfp4Config(dequantize=True) says it"
                        : "load it with Mxfp4Config(dequantize=True), and "
                          "leave --quantize out");
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
      return checkShards();
    case FrameworkKind::Fsdp1:
      return checkFlat();
    case FrameworkKind::Deepspeed:
    case FrameworkKind::Ddp:
    case FrameworkKind::Single:
    case FrameworkKind::Megatron:
      break;
    }
    return checkEmitted();
  }

private:
  std::string name() const { return format.name; }

  bool checkShards() {
    if (std::optional<QuantizedRefusal> why =
            refusalOfFsdp2(config, inputs.job.accelerate.version,
                           options.torchVersion.value_or("")))
      return refuse(why->isOurs ? notSupportedCode : quantizedBaseCode,
                    why->message, why->hint);
    if (!checkEmitted())
      return false;
    noteWholeUnderFsdp2(config, options.config, engine);
    return true;
  }

  /// A flat parameter has one dtype, a floating-point one.
  bool checkFlat() {
    const plan::DType loaded = inputs.loadedDtype();
    if (values.storageDtype() == loaded)
      return checkEmitted();
    const std::string wide = plan::toString(loaded);
    return refuse(
        quantizedBaseCode,
        name() + " weights are packed in " +
            plan::toString(values.storageDtype()) + ", and the others are " +
            wide +
            "; FSDP1 stops with \"Must flatten tensors with uniform "
            "dtype\"",
        plan::isFourBit(values.format)
            ? "set bnb_4bit_quant_storage to the model's dtype (--quantize " +
                  name() + ",storage=" + wide + ")"
            : "use DDP, or a 4-bit format of bitsandbytes with a storage "
              "dtype");
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
  const plan::Quantization &values;
  const plan::WeightFormatDescription &format;
};

} // namespace

bool checkQuantization(const PlanInputs &inputs, const PlanOptions &options,
                       DiagnosticEngine &engine) {
  return !inputs.job.quantization || Checker(inputs, options, engine).run();
}

} // namespace accel
