//===- Init.h - A configuration from a target and a model -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `accel-opt init`: each executor that could run the job gets a plain pair of
// files, of which the search changes what is worth it; the fastest that fits is
// planned once more as it will be read, and each of its lines says why it is
// there.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INIT_INIT_H
#define ACCEL_TOOLS_DRIVER_INIT_INIT_H

#include "tools/driver/Session/Compile.h"

namespace accel {

struct InitOptions {
  /// Model, target, lengths and optimizer. Its files are made here.
  PlanOptions plan;
  int64_t processes = 1;
  /// Sequences of a step over all ranks.
  std::optional<int64_t> globalBatch;
  std::string precision = "bf16"; // mixed_precision
  std::string folder = ".";       // where the files will lie
};

/// An executor that was looked at.
struct InitChoice {
  std::string strategy;     // "FSDP2"
  StepPrediction predicted; // of its best setting, or the smallest
  bool fits = false;
  std::string refused; // why it cannot run the job; empty: it can
};

struct InitResult {
  /// By path: the accelerate file and that of TrainingArguments. Empty where
  /// nothing fits, or after an error.
  yaml::FileTexts texts;
  std::string accelerateFile, argumentsFile;
  std::vector<InitChoice> choices; // the chosen one first
  bool onCpu = false;              // the target is a CPU
  std::string launch;              // the command up to the script
  /// The files as they will be read.
  CompileResult planned;
};

/// Errors go to `engine`; that nothing fits is one (nothing-fits).
InitResult initialise(const InitOptions &options, DiagnosticEngine &engine);

/// What was looked at, what was chosen and how it is started.
std::string renderInit(const InitResult &result);
/// {files, choices, plan, diagnostics}.
std::string renderInitJson(const InitResult &result,
                           const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INIT_INIT_H
