//===- EmitAdvice.h - A setting as files for others -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H
#define ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H

#include "tools/driver/Advice/Advice.h"

namespace accel {

/// `--emit accelerate` to the file `path`: texts by path. The accelerate file
/// with the lines of the best setting that a YAML can say; every other byte
/// stays. Where DeepSpeed's JSON rules and changes, the changed one is written
/// beside `path`, and named in it. Lines of a job.yaml are reported as notes.
/// Nothing if a line cannot be written; the reason was reported.
std::optional<yaml::FileTexts> emitAccelerate(const Advice &advice,
                                              const std::string &path,
                                              DiagnosticEngine &engine);

/// `--emit python`: a module for torch's FSDP2 whose `apply(model)` makes the
/// units, checkpointing and prefetching of the best setting. Only of fsdp2.
std::optional<std::string> emitPython(const Advice &advice,
                                      const plan::Plan &plan,
                                      DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H
