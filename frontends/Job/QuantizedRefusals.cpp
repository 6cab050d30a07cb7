//===- QuantizedRefusals.cpp - Who refuses a quantised base ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/QuantizedRefusals.h"

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel {
namespace {

std::string nameOf(const QuantizationConfig &config) {
  return plan::describe(config.values.format).name;
}

bool isGrouped(plan::WeightFormat format) {
  return format == plan::WeightFormat::Gptq ||
         format == plan::WeightFormat::Awq;
}

/// Int8Params hold torch.int8, a byte as plan::DType has it.
std::string packedIn(const plan::Quantization &values) {
  return values.format == plan::WeightFormat::Int8
             ? "int8"
             : plan::toString(values.storageDtype());
}

bool isFloating(plan::DType dtype) {
  return dtype != plan::DType::U8 && dtype != plan::DType::I32;
}

constexpr const char *otherFormats =
    "use DDP, or a 4-bit format of bitsandbytes";

/// fully_shard takes parameters; what a format keeps in buffers stays whole.
QuantizedRefusal refusalOfBuffers(const std::string &name, bool rankZeroLoads) {
  if (!rankZeroLoads)
    return {"a base whose packed weights are buffers (" + name +
                "), which FSDP2 leaves whole on each rank, is not modelled yet",
            otherFormats, /*isOurs=*/true};
  return {"FSDP2 cannot shard a quantised base (" + name +
              "): its packed weights are buffers, which fully_shard leaves as "
              "they are, and fsdp_cpu_ram_efficient_loading asks each of them "
              "for its device_mesh; every rank stops with an AttributeError",
          otherFormats};
}

std::optional<QuantizedRefusal> refusalOfFsdp2(const QuantizationConfig &config,
                                               const QuantizedUse &use) {
  const std::string name = nameOf(config);
  const bool four = plan::isFourBit(config.values.format);
  if (config.keepsScalesUnderFsdp2) {
    if (four && plan::itemSize(config.values.storageDtype()) > 1)
      return std::nullopt;
    return QuantizedRefusal{
        "shards of weights that are packed in bytes (" + name +
            "), which FSDP2 has where axolotl patches it, are not modelled yet",
        "a 4-bit base is modelled", /*isOurs=*/true};
  }
  if (isGrouped(config.values.format))
    return refusalOfBuffers(name, use.rankZeroLoads);
  const std::string lost =
      "FSDP2 cannot shard a quantised base (" + name +
      "): fully_shard makes DTensors of the packed weights, which lose their "
      "scales";
  if (!four)
    return QuantizedRefusal{lost, otherFormats};
  if (config.values.storageDtype() != plan::DType::U8)
    return QuantizedRefusal{
        lost + ", and layers give wrong results (bitsandbytes issue 1945, "
               "accelerate issue 3874)",
        "leave bnb_4bit_quant_storage at uint8: each rank keeps the weights "
        "whole; or use fsdp_version: 1"};
  const auto needs = [&](const std::string &release, const char *does) {
    return QuantizedRefusal{
        "FSDP2 cannot shard weights that are packed in bytes (" + name + "); " +
            does,
        "use " + release + ", or fsdp_version: 1 with a 16-bit storage dtype"};
  };
  if (isEarlierRelease(use.accelerate, "1.14"))
    return needs("accelerate 1.14", "accelerate leaves them out from 1.14 on");
  if (!use.torch.empty() && isEarlierRelease(use.torch, "2.7"))
    return needs("torch 2.7",
                 "fully_shard takes ignored_params from torch 2.7 on");
  return std::nullopt;
}

/// The dtype of what is not packed; nothing: unknown.
std::optional<plan::DType> dtypeOfOthers(const QuantizationConfig &config,
                                         const QuantizedUse &use) {
  if (widensOthers(config))
    return plan::DType::F32;
  return use.loaded;
}

/// How the flat parameters of FSDP1 get one dtype.
std::string hintOfFsdp1(const QuantizationConfig &config,
                        const QuantizedUse &use) {
  if (!plan::isFourBit(config.values.format))
    return std::string(otherFormats) + " with a storage dtype";
  const bool turned = widensOthers(config);
  const std::string dtype = turned ? "float32" : "the model's dtype";
  const std::optional<plan::DType> others = dtypeOfOthers(config, use);
  const plan::DType storage = config.values.storageDtype();
  const std::string unturned =
      turned && isFloating(storage) && use.loaded.value_or(storage) == storage
          ? "leave prepare_model_for_kbit_training out, or "
          : "";
  if (config.prequantized)
    return unturned +
           (unturned.empty() ? "the checkpoint was packed so: " : "") +
           "quantise its 16-bit original as it is loaded, with "
           "bnb_4bit_quant_storage in " +
           (turned ? dtype : "its dtype") + ", or use DDP";
  return unturned + "set bnb_4bit_quant_storage to " + dtype +
         (others
              ? " (--quantize " + nameOf(config) + (turned ? ",prepared" : "") +
                    ",storage=" + plan::toString(*others) + ")"
              : "");
}

std::optional<QuantizedRefusal> refusalOfFsdp1(const QuantizationConfig &config,
                                               const QuantizedUse &use) {
  const plan::DType storage = config.values.storageDtype();
  const std::optional<plan::DType> others = dtypeOfOthers(config, use);
  if (others ? storage == *others : isFloating(storage))
    return std::nullopt;
  const std::string packed =
      nameOf(config) + " weights are packed in " + packedIn(config.values);
  const std::string dtype = others ? plan::toString(*others) : "floating point";
  return QuantizedRefusal{
      packed +
          (widensOthers(config)
               ? ", and prepare_model_for_kbit_training turns the others into "
               : ", and the others are ") +
          dtype +
          "; FSDP1 stops with \"Must flatten tensors with uniform dtype\"",
      hintOfFsdp1(config, use)};
}

/// transformers' class of the configuration.
const char *classOf(plan::WeightFormat format) {
  switch (format) {
  case plan::WeightFormat::Gptq:
    return "GPTQConfig";
  case plan::WeightFormat::Awq:
    return "AwqConfig";
  case plan::WeightFormat::Mxfp4:
    return "Mxfp4Config";
  case plan::WeightFormat::Nf4:
  case plan::WeightFormat::Fp4:
  case plan::WeightFormat::Int8:
    break;
  }
  return "BitsAndBytesConfig";
}

/// What is asked for and the checkpoint has not; "" where it has all.
std::string differenceOf(const QuantizationConfig &base,
                         const QuantizationConfig &ofModel) {
  const plan::Quantization &asked = base.values, &has = ofModel.values;
  const plan::Quantization usual;
  auto name = [](plan::WeightFormat format) {
    return std::string(plan::describe(format).name);
  };
  if (asked.format != has.format)
    return name(has.format) + ", not " + name(asked.format);
  if (asked.storage && asked.storageDtype() != has.storageDtype())
    return "packed in " + packedIn(has) + ", not " + packedIn(asked);
  if (asked.doubleQuant && !has.doubleQuant)
    return "without double quantisation";
  // bnb_4bit_compute_dtype is float32 where nothing says it.
  const plan::DType computes = ofModel.compute.value_or(plan::DType::F32);
  if (base.compute && *base.compute != computes)
    return std::string("computed in ") + plan::toString(computes) + ", not " +
           plan::toString(*base.compute);
  if (asked.bits && has.bits && asked.bits != has.bits)
    return "in " + std::to_string(has.bits) + " bits, not " +
           std::to_string(asked.bits);
  if (asked.group && has.group && asked.group != has.group)
    return "in groups of " + std::to_string(has.group) + ", not " +
           std::to_string(asked.group);
  if (asked.threshold != usual.threshold && asked.threshold != has.threshold)
    return "with another llm_int8_threshold";
  return "";
}

/// merge_quantization_configs of transformers/quantizers/auto.py: what the
/// checkpoint says stays, and another class stops. LLaMA-Factory passes nothing
/// on for such a checkpoint.
bool keepCheckpoints(QuantizationConfig &base, QuantizationConfig ofModel,
                     bool passedOn, const std::string &file,
                     DiagnosticEngine &engine) {
  const std::string has = classOf(ofModel.values.format),
                    asked = classOf(base.values.format);
  if (passedOn && has != asked) {
    engine.report(diagnosticAt(
        base.at, base.key, Severity::Error, quantizedBaseCode,
        "the checkpoint is quantised already (" + nameOf(ofModel) +
            "); transformers stops with \"The model is quantized with " + has +
            " but you are passing a " + asked + " config\"",
        "leave it out, or take a checkpoint that is not quantised", file));
    return false;
  }
  if (const std::string other = differenceOf(base, ofModel); !other.empty())
    engine.report(diagnosticAt(
        base.at, base.key, Severity::Warning, "checkpoint-quantization",
        "the checkpoint is quantised already: its weights stay as its "
        "quantization_config says (" +
            other + ")",
        "leave it out, or take a checkpoint that is not quantised", file));
  ofModel.preparedForTraining |= base.preparedForTraining;
  ofModel.keepsScalesUnderFsdp2 |= base.keepsScalesUnderFsdp2;
  base = std::move(ofModel);
  return true;
}

} // namespace

bool widensOthers(const QuantizationConfig &config) {
  return config.preparedForTraining &&
         config.values.format != plan::WeightFormat::Gptq;
}

Upcast upcastBeside(const JobConfig &job) {
  const Upcast upcast = job.precision.value.upcast;
  const bool params4bit =
      job.quantization && plan::isFourBit(job.quantization->values.format);
  return upcast == Upcast::Trainable && params4bit ? Upcast::None : upcast;
}

bool settleQuantization(JobConfig &job,
                        std::optional<QuantizationConfig> ofModel,
                        const std::string &file, DiagnosticEngine &engine) {
  std::optional<QuantizationConfig> &base = job.quantization;
  const bool packed =
      ofModel && ofModel->values.format == plan::WeightFormat::Mxfp4;
  const bool ownLoader = job.script.owner == "LLaMA-Factory";
  if (base && base->dequantizes && !packed) {
    engine.report(diagnosticAt(
        base->at, base->key, Severity::Error, quantizedBaseCode,
        "the model has no " + nameOf(*base) + " weights to dequantise",
        "leave --quantize out", file));
    return false;
  }
  if (base && ofModel && !base->dequantizes) {
    if (!keepCheckpoints(*base, std::move(*ofModel), !ownLoader, file, engine))
      return false;
  } else if (!base) {
    base = std::move(ofModel);
  }
  // model/model_utils/quantization.py, configure_quantization. No release of
  // transformers stops there with FSDP's rank-0 loading: 4.55 to 4.57 drop what
  // the other ranks dequantised, and from 5 on each rank keeps it. axolotl
  // alone refuses the two together (AxolotlRules.cpp).
  if (packed && ownLoader)
    base->dequantizes = true;
  if (base && base->dequantizes)
    base.reset();
  return true;
}

std::optional<QuantizedRefusal>
refusalOfFormat(const QuantizationConfig &config) {
  const auto &format = plan::describe(config.values.format);
  if (!format.notTrained)
    return std::nullopt;
  return QuantizedRefusal{
      nameOf(config) + " cannot be trained through: " + format.notTrained,
      "load it with quantization_config=Mxfp4Config(dequantize=True), which "
      "--quantize mxfp4,dequantize says here"};
}

std::optional<QuantizedRefusal>
refusalOfWrapper(const QuantizationConfig &config, const QuantizedUse &use) {
  if (use.strategy == Strategy::Fsdp2)
    return refusalOfFsdp2(config, use);
  if (use.strategy == Strategy::Fsdp1)
    return refusalOfFsdp1(config, use);
  return std::nullopt;
}

std::optional<QuantizedRefusal> refusalOf(const QuantizationConfig &config,
                                          const QuantizedUse &use) {
  std::optional<QuantizedRefusal> why = refusalOfFormat(config);
  return why ? why : refusalOfWrapper(config, use);
}

void noteWholeUnderFsdp2(const QuantizationConfig &config, const Location &at,
                         const std::string &file, Severity severity,
                         DiagnosticEngine &engine) {
  if (config.keepsScalesUnderFsdp2)
    return;
  engine.report(diagnosticAt(
      at, config.key, severity, "qlora-replicated",
      nameOf(config) +
          " weights are packed in bytes, which FSDP2's preparation leaves out "
          "of the shards: each rank keeps them whole, and gathers the others "
          "alone",
      "fsdp_version: 1 shards them, with bnb_4bit_quant_storage as the dtype "
      "of the rest",
      file));
}

} // namespace accel
