//===- QuantizedRefusals.h - Who refuses a quantised base -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H
#define ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H

#include "frontends/Job/JobConfig.h"

namespace accel {

/// The code of a refusal among diagnostics.
inline constexpr const char *quantizedBaseCode = "quantized-base";

struct QuantizedRefusal {
  std::string message, hint; // sentences
  bool isOurs = false;       // it works, and is not modelled
};

/// Puts the base that is trained into `job`: what the checkpoint holds, else
/// what the script says of it, and nothing where that is loaded in 16 bits, as
/// LLaMA-Factory does with MXFP4. False where there is nothing to dequantise or
/// transformers stops, which is reported.
bool settleQuantization(JobConfig &job,
                        std::optional<QuantizationConfig> ofModel,
                        const std::string &file, DiagnosticEngine &engine);

/// prepare_model_for_kbit_training (peft/utils/other.py) was called, and turns
/// what is not packed into fp32, as it does beside all formats but GPTQ.
bool widensOthers(const QuantizationConfig &config);

/// What Accelerate turns into fp32 of the job: under FSDP2 nothing beside a
/// Params4bit (fsdp2_prepare_model).
Upcast upcastBeside(const JobConfig &job);

/// How a job trains an adapter on a quantised base, as far as one is refused.
struct QuantizedUse {
  Strategy strategy = Strategy::Other;
  std::string accelerate, torch;     // releases; no torch: a new one
  std::optional<plan::DType> loaded; // of what is not packed; nothing: unknown
  /// Rank 0 sends the others what it loaded (fsdp_cpu_ram_efficient_loading).
  bool rankZeroLoads = true;
};

/// Why nothing can be trained through the format.
std::optional<QuantizedRefusal>
refusalOfFormat(const QuantizationConfig &config);

/// Why the wrapper cannot train an adapter on such a base. FSDP2 takes 4-bit
/// weights that it leaves out of the shards: from Accelerate 1.14 on
/// fsdp2_prepare_model (accelerate/utils/fsdp_utils.py) gives those that
/// bitsandbytes packs in bytes to an argument that fully_shard has since torch
/// 2.7. A flat parameter of FSDP1 has one dtype, a floating-point one.
std::optional<QuantizedRefusal>
refusalOfWrapper(const QuantizationConfig &config, const QuantizedUse &use);

/// The first of both.
std::optional<QuantizedRefusal> refusalOf(const QuantizationConfig &config,
                                          const QuantizedUse &use);

/// Says of a base that FSDP2 takes that each rank keeps it whole.
void noteWholeUnderFsdp2(const QuantizationConfig &config, const Location &at,
                         const std::string &file, Severity severity,
                         DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H
