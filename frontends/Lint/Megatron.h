//===- Megatron.h - Megatron-LM's sizes against a model ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_LINT_MEGATRON_H
#define ACCEL_FRONTENDS_LINT_MEGATRON_H

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/ModuleTree/ModuleTree.h"

#include <optional>
#include <string_view>

namespace accel {

class DiagnosticEngine;

/// Reports where sizes of megatron_lm_config do not divide what Accelerate
/// hands to Megatron-LM of a model (heads, layers), or the `tokens` of a
/// sequence where they are known: TransformerConfig of megatron/core and
/// validate_args of megatron/training/arguments.py refuse these on every rank.
/// Lint and plan say the same.
void checkMegatronModel(const AccelerateConfig &config, const ModuleTree &tree,
                        std::optional<int64_t> tokens,
                        DiagnosticEngine &engine);

/// Reports keys of Megatron's optimizer that want another one beside them
/// (validate_args, and OptimizerConfig of megatron/core/optimizer). Lint and
/// plan say the same.
void checkMegatronOptimizer(const MegatronSettings &settings,
                            DiagnosticEngine &engine);

/// Reports a model of a type of which Accelerate hands Megatron-LM nothing, and
/// stops; false then. Lint and plan say the same.
bool checkMegatronFamily(const AccelerateConfig &config,
                         std::string_view modelType, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_FRONTENDS_LINT_MEGATRON_H
