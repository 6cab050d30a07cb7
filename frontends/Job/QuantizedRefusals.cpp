//===- QuantizedRefusals.cpp - Who refuses a quantised base ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/QuantizedRefusals.h"

#include "frontends/Accelerate/DeepspeedJson.h"

namespace accel {

std::optional<QuantizedRefusal> refusalOfFsdp2(const QuantizationConfig &config,
                                               const std::string &accelerate,
                                               const std::string &torch) {
  const std::string name = plan::describe(config.values.format).name;
  const bool four = plan::isFourBit(config.values.format);
  if (config.keepsScalesUnderFsdp2) {
    if (four && plan::itemSize(config.values.storageDtype()) > 1)
      return std::nullopt;
    return QuantizedRefusal{
        "shards of weights that are packed in bytes (" + name +
            "), which FSDP2 has where axolotl patches it, are not modelled yet",
        "a 4-bit base is modelled", /*isOurs=*/true};
  }
  if (!four || config.values.storageDtype() != plan::DType::U8)
    return QuantizedRefusal{
        "FSDP2 cannot shard a quantised base (" + name +
            "): fully_shard makes DTensors of the packed weights, which lose "
            "their scales, and layers give wrong results (bitsandbytes issue "
            "1945, accelerate issue 3874)",
        four ? "leave bnb_4bit_quant_storage at uint8: each rank keeps the "
               "weights whole; or use fsdp_version: 1"
             : "use DDP, or a 4-bit format of bitsandbytes"};
  const auto needs = [&](const std::string &release, const char *does) {
    return QuantizedRefusal{
        "FSDP2 cannot shard weights that are packed in bytes (" + name + "); " +
            does,
        "use " + release + ", or fsdp_version: 1 with a 16-bit storage dtype"};
  };
  if (isEarlierRelease(accelerate, "1.14"))
    return needs("accelerate 1.14", "accelerate leaves them out from 1.14 on");
  if (!torch.empty() && isEarlierRelease(torch, "2.7"))
    return needs("torch 2.7",
                 "fully_shard takes ignored_params from torch 2.7 on");
  return std::nullopt;
}

void noteWholeUnderFsdp2(const QuantizationConfig &config,
                         const std::string &file, DiagnosticEngine &engine) {
  if (config.keepsScalesUnderFsdp2)
    return;
  engine.note("qlora-replicated", file,
              std::string(plan::describe(config.values.format).name) +
                  " weights are packed in bytes, which FSDP2's preparation "
                  "leaves out of the shards: each rank keeps them whole, and "
                  "gathers the others alone",
              "fsdp_version: 1 shards them, with bnb_4bit_quant_storage as the "
              "dtype of the rest");
}

} // namespace accel
