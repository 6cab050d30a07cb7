//===- OptimizerAdvice.h - Other forms of an optimizer ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The optimizers of TrainingArguments.optim that update by the formula of the
// configured one, launched in another way or with states of fewer bits.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_OPTIMIZERADVICE_H
#define ACCEL_TOOLS_DRIVER_ADVICE_OPTIMIZERADVICE_H

#include "tools/driver/Advice/Advice.h"

namespace accel {

/// The configured optimizer first; empty where there is no other form, or where
/// the script does not choose it: accel-run and Megatron have their own, so has
/// a DeepSpeed file with a section `optimizer`, and other trainers than
/// transformers' name theirs otherwise.
std::vector<tune::OptimizerOption> optimizerOptions(const AdviceInputs &in,
                                                    const Candidate &base,
                                                    const Target &target);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_OPTIMIZERADVICE_H
