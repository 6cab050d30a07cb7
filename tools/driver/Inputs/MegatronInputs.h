//===- MegatronInputs.h - Jobs of Megatron-LM -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_MEGATRONINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_MEGATRONINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Accelerate hands Megatron-LM a few sizes of the model and nothing else
/// (parse_gpt2_config, parse_llama_config of accelerate/utils/dataclasses.py),
/// and Megatron-LM makes a GPT of its own of them: layer norms, biases, an MLP
/// of four times the hidden size with GELU, as many key-value heads as heads, a
/// tied head, and a vocabulary that is filled up. The model of `inputs` becomes
/// that one, with a note. False, with errors, where there is none. `known`:
/// that of another configuration of the same model, or null.
bool takeMegatronModel(PlanInputs &inputs, const PlanInputs *known,
                       DiagnosticEngine &engine);

/// Refuses what is not planned of Megatron's arguments, by name.
void checkMegatron(const PlanInputs &inputs, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_MEGATRONINPUTS_H
