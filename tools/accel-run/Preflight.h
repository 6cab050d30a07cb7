//===- Preflight.h - What is checked before a rank starts -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_PREFLIGHT_H
#define ACCEL_TOOLS_ACCEL_RUN_PREFLIGHT_H

#include "runtime/data/Loader.h"
#include "runtime/plan/Plan.h"
#include "tools/accel-run/Options.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace accel::run {

/// Something about the input is wrong: one sentence, and the exit code.
struct InputError : std::runtime_error {
  explicit InputError(const std::string &what, int code = exitInvalid)
      : std::runtime_error(what), code(code) {}
  int code;
};

/// A plan and the job's paths, made absolute.
struct Input {
  plan::Plan plan;
  std::string outDir;    // empty: nothing is written
  std::string modelPath; // empty: unknown
  std::vector<std::string> weightFiles;
  std::string archive; // with the values of buffers; empty: there are none
  std::string baseDir; // of the plan

  /// Where the small files beside the trained weights come from.
  const std::string &modelSource() const {
    return modelPath.empty() ? archive : modelPath;
  }
};

/// Reads and verifies the plan. Throws InputError.
Input readInput(const Options &options);

/// Checks that a job of `ranks` ranks can start: their number, files, data.
/// --nproc does so before it starts a process. Throws InputError.
void checkInput(const Input &input, const Options &options, int64_t ranks);

/// The loader of training or evaluation data. Throws InputError.
Loader openData(const Input &input, bool eval);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_PREFLIGHT_H
