//===- PrecisionInputs.cpp - The file with other precisions ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/PrecisionInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "tools/driver/Inputs/EditFiles.h"

namespace accel {

void readPrecisions(PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine) {
  const JobConfig &job = inputs.job;
  auto keep = [&](const Location &at, const std::string &key, const char *what,
                  const char *fix) {
    engine.report(diagnosticAt(at, key, Severity::Note, "precision-fixed", what,
                               fix, options.config));
  };
  const AccelerateConfig &a = job.accelerate;
  if (job.script.trainer != TrainerKind::None)
    return keep(a.mixedPrecision.at, a.mixedPrecision.key,
                "the precision that a script asks for is not searched",
                "change bf16 in its arguments");
  if ((job.isJob && a.file == job.file) || job.precision.written())
    return keep(job.precision.at, job.precision.key,
                "the precision of a job with keys of its own is not searched",
                "put the accelerate keys into a file of their own");
  if (a.deepspeed && !a.deepspeed->configFile->empty()) {
    const auto &file = a.deepspeed->configFile;
    return keep(
        file.at, file.key,
        "the precision is that of DeepSpeed's file, and is not searched",
        "change bf16 and fp16 there");
  }
  FileEditor editor(options.texts);
  const std::string &key = a.mixedPrecision.key;
  for (MixedPrecision other : {MixedPrecision::No, MixedPrecision::Bf16}) {
    if (other == a.mixedPrecision.value)
      continue;
    const std::string value = toString(other);
    if (!editor.set({key, value, a.file}))
      continue;
    DiagnosticEngine ignored;
    AccelerateOptions read;
    read.version = options.accelerateVersion;
    if (inputs.torchVersion)
      read.torchVersion = *inputs.torchVersion;
    read.deepspeedVersion = options.script.versions.deepspeed;
    read.texts = editor.texts();
    auto config = parseAccelerate(a.file, read, ignored);
    if (!config || ignored.hasErrors())
      continue;
    JobConfig changed = job;
    changed.precision = config->precision;
    changed.accelerate = std::move(*config);
    changed.accelerate.numMachines = job.accelerate.numMachines;
    inputs.precisions.push_back({value, std::move(changed)});
  }
}

} // namespace accel
