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
std::string placeOf(const tune::Expresser &expresser,
                    const tune::YamlLine &line);
/// "fsdp_reshard_after_forward: false".
std::string textOf(const tune::YamlLine &line);
/// The line stands in the file already.
bool isWritten(const tune::Expresser &expresser, const tune::YamlLine &line);
/// What differs from the configuration, in short.
std::string summary(const tune::Space &space, const tune::Expresser &expresser,
                    const tune::Point &point);
/// The best refused alternative of a decision: "layers stay gathered until the
/// backward: 4.1 GiB over the budget, at the peak in ...".
std::string refusal(const tune::Expresser &expresser, const tune::Decided &d,
                    int64_t budgetBytes);
/// Decisions as a plan records them, with the binding constraint.
std::vector<plan::Decision> recordedDecisions(const Advice &advice);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_ADVICETEXT_H
