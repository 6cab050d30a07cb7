//===- AdviceText.h - Phrases of an advice ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_ADVICETEXT_H
#define ACCEL_TOOLS_DRIVER_ADVICE_ADVICETEXT_H

#include "tools/driver/Advice/Advice.h"

namespace accel {

/// "fsdp.yaml:9", or "fsdp.yaml (new)" for a key that is not there.
/// One thing to write, and where: ("fsdp.yaml:7",
/// "fsdp_activation_checkpointing: true"), ("TrainingArguments",
/// "use_liger_kernel=True").
struct Edit {
  std::string place, text;
  /// The same for transformers' Trainer, where that is another way to say it.
  std::string trainingArguments;
  bool operator==(const Edit &) const = default;
};
/// All that a change writes, in the order of its parts. What no file can say
/// comes last.
std::vector<Edit> editsOf(const tune::ConfigEditor &editor,
                          const tune::ConfigEdit &expression);

std::string placeOf(const tune::ConfigEditor &editor,
                    const tune::YamlLine &line);
/// "fsdp_reshard_after_forward: false".
std::string textOf(const tune::YamlLine &line);
/// The line stands in the file already.
bool isWritten(const tune::ConfigEditor &editor, const tune::YamlLine &line);
/// What differs from the configuration, in short.
std::string summary(const tune::Space &space, const tune::ConfigEditor &editor,
                    const tune::Point &point);
/// The best refused alternative of a decision: "layers stay gathered until the
/// backward: 4.1 GiB over the budget, at the peak in ...".
std::string refusal(const Advice &advice, const tune::Decided &d);
/// Of what does not fit: "2.84 GiB too much", or where the device has room,
/// that the host has none.
std::string lacking(const Advice &advice, int64_t deviceBytes);
/// Of what the device has no room for: "2.84 GiB over the budget, at the peak
/// in backward of head".
std::string over(const Advice &advice, int64_t deviceBytes,
                 const std::string &peakWhere);
/// What settings are judged by: "the budget", or "what --confidence leaves of
/// the budget".
std::string judgedBy(const Advice &advice);
/// Decisions as a plan records them, with the binding constraint.
std::vector<plan::Decision> recordedDecisions(const Advice &advice);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_ADVICETEXT_H
