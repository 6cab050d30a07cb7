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

/// `--emit job` to the file `path`: the job file with the lines of the fastest
/// mesh that accel-run trains on and that fits, all else as written.
std::optional<yaml::FileTexts> emitJob(const Advice &advice,
                                       const std::string &path,
                                       DiagnosticEngine &engine);

/// `--emit torchtitan`: sections of its TOML, of the configuration or of what
/// --tune chose. `--emit megatron`: Megatron-LM's arguments, one a line.
std::optional<std::string> emitTorchtitan(const Advice &advice,
                                          const plan::Plan &plan,
                                          const PlanOptions &options,
                                          DiagnosticEngine &engine);
std::optional<std::string> emitMegatron(const Advice &advice,
                                        const plan::Plan &plan,
                                        const PlanOptions &options,
                                        DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_EMITADVICE_H
