//===- EmitAdvice.h - A setting as files for others -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H
#define ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H

#include "tools/driver/Advice/Advice.h"

namespace accel {

/// The YAML `text` of `file` with these lines set or added; nothing where one
/// cannot be.
std::optional<std::string> applyLines(const std::string &file,
                                      const std::string &text,
                                      const std::vector<tune::YamlLine> &lines);

/// `--emit accelerate`: the accelerate file with the lines of the best setting
/// that a YAML can say; every other byte stays. Lines of another file (a job's
/// own keys) are reported as notes. Nothing if a line cannot be written; the
/// reason was reported.
std::optional<std::string> emitAccelerate(const Advice &advice,
                                          DiagnosticEngine &engine);

/// `--emit python`: a module for torch's FSDP2 whose `apply(model)` makes the
/// units, checkpointing and prefetching of the best setting. Only of fsdp2.
std::optional<std::string> emitPython(const Advice &advice,
                                      const plan::Plan &plan,
                                      DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H
