//===- Fixture.h - Plans of configurations that tests write -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_DRIVER_FIXTURE_H
#define ACCEL_TEST_UNIT_DRIVER_FIXTURE_H

#include "tools/driver/Options/PlanOptions.h"

#include <string>

namespace accel::test {

/// An accelerate file of FSDP2 over `ranks` GPUs.
inline std::string fsdp2(int ranks, const std::string &more = "") {
  return "distributed_type: FSDP\n"
         "mixed_precision: bf16\n"
         "num_machines: 1\n"
         "num_processes: " +
         std::to_string(ranks) +
         "\n"
         "fsdp_config:\n"
         "  fsdp_version: 2\n"
         "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n" +
         more;
}

/// `text` planned for a small Llama on H100s, without a file.
inline PlanOptions planOf(const std::string &text) {
  PlanOptions options;
  options.config = "c.yaml";
  options.texts["c.yaml"] = text;
  options.model = ACCEL_MODELS "/llama-3.2-1b";
  options.target = "h100-sxm-80gb";
  options.sequenceLength = 2048;
  return options;
}

/// The findings as "severity code" with messages, for failures of tests.
inline std::string findings(const DiagnosticEngine &engine) {
  std::string text;
  for (const Diagnostic &d : engine.sorted())
    text += d.code + ": " + d.message + "\n";
  return text;
}

inline bool has(const DiagnosticEngine &engine, const std::string &code) {
  for (const Diagnostic &d : engine.sorted())
    if (d.code == code)
      return true;
  return false;
}

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_DRIVER_FIXTURE_H
