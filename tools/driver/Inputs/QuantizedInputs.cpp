//===- QuantizedInputs.cpp - Whether a quantised base trains --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/QuantizedInputs.h"

#include "frontends/Accelerate/DeepspeedJson.h"
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
      return refuse("quantized-base",
                    name() + " cannot be trained through: " + format.notTrained,
                    config.prequantized
                        ? "write \"dequantize\": true into "
                          "quantization_config, as "
                          "Mxfp4Config(dequantize=True) says it"
                        : "load it with Mxfp4Config(dequantize=True), and "
                          "leave --quantize out");
    if (!inputs.adapter)
      return refuse("quantized-base",
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
      break;
    }
    return checkEmitted();
  }

private:
  std::string name() const { return format.name; }

  bool isFourBit() const {
    return values.format == plan::WeightFormat::Nf4 ||
           values.format == plan::WeightFormat::Fp4;
  }

  /// From 1.14 on fsdp2_prepare_model of accelerate/utils/fsdp_utils.py leaves
  /// bytes of bitsandbytes' 4-bit parameters out of the shards, by an argument
  /// that fully_shard has since torch 2.7.
  bool checkShards() {
    const bool bytes = isFourBit() && values.storageDtype() == plan::DType::U8;
    if (!bytes)
      return refuse("quantized-base", refusalOfFsdp2(config),
                    isFourBit() ? "leave bnb_4bit_quant_storage at uint8: each "
                                  "rank keeps the weights whole; or use "
                                  "fsdp_version: 1"
                                : "use DDP, or a 4-bit format of bitsandbytes");
    const auto stops = [&](const char *has, const char *what) {
      return refuse("quantized-base",
                    std::string("FSDP2 cannot shard weights that are packed in "
                                "bytes (") +
                        name() + "); " + has,
                    std::string(what) +
                        ", or fsdp_version: 1 with a 16-bit storage dtype");
    };
    if (isEarlierRelease(inputs.job.accelerate.version, "1.14"))
      return stops("accelerate leaves them out from 1.14 on",
                   "use accelerate 1.14");
    if (options.torchVersion && isEarlierRelease(*options.torchVersion, "2.7"))
      return stops("fully_shard takes ignored_params from torch 2.7 on",
                   "use torch 2.7");
    if (!checkEmitted())
      return false;
    engine.note("qlora-replicated", options.config,
                name() + " weights are packed in bytes, which FSDP2's "
                         "preparation leaves out of the shards: each rank "
                         "keeps them whole, and gathers the others alone",
                "fsdp_version: 1 shards them, with bnb_4bit_quant_storage as "
                "the dtype of the rest");
    return true;
  }

  /// A flat parameter has one dtype, a floating-point one.
  bool checkFlat() {
    const plan::DType loaded = inputs.loadedDtype();
    if (values.storageDtype() == loaded)
      return checkEmitted();
    const std::string wide = plan::toString(loaded);
    return refuse(
        "quantized-base",
        name() + " weights are packed in " +
            plan::toString(values.storageDtype()) + ", and the others are " +
            wide +
            "; FSDP1 stops with \"Must flatten tensors with uniform "
            "dtype\"",
        isFourBit()
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
