//===- ChosenStep.h - The step that is written for others -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_CHOSENSTEP_H
#define ACCEL_TOOLS_DRIVER_EMIT_CHOSENSTEP_H

#include "tools/driver/Advice/Advice.h"

namespace accel {

/// The step of the configuration, or of the best setting that a YAML can say.
struct ChosenStep {
  Candidate candidate;
  int64_t microBatch = 1;             // sequences
  std::vector<tune::YamlLine> lines;  // that differ from the configuration
  std::vector<std::string> recompute; // of each layer: a variant's name

  /// What a line changes a key to, by the end of its name.
  std::optional<std::string> changed(const std::string &key) const;
  /// Sequences of a step, of all ranks.
  int64_t globalBatch() const;
  /// What all layers recompute; nothing where they differ.
  std::optional<std::string> recomputeOfAll() const;
};

/// Whether --tune found a setting that a YAML can say; else it is reported at
/// `file`, with what the script would have to say beside the YAML.
bool fitsByYaml(const Advice &advice, const std::string &file,
                DiagnosticEngine &engine);

/// Nothing where --tune found none that fits, which is reported; `microBatch`
/// is the configured one.
std::optional<ChosenStep> chosenStep(const Advice &advice, int64_t microBatch,
                                     DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_CHOSENSTEP_H
