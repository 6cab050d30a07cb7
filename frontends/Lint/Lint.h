//===- Lint.h - What goes wrong beyond what parsing sees --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `accel-opt lint`: checks that need several keys together, another file (the
// DeepSpeed JSON), versions of accelerate and torch, or the model's modules.
// One file per subject; each check looks at a Subject (Subject.h) and reports.
// What the text of a single key gives away is found while parsing, in
// frontends/Accelerate.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_LINT_LINT_H
#define ACCEL_FRONTENDS_LINT_LINT_H

#include "frontends/Job/JobConfig.h"

namespace accel {

struct LintOptions {
  std::string accelerateVersion = "1.15.0";
  std::string torchVersion = "2.15.0";
  /// Folder of a transformers model, or its config.json; empty: the job's, or
  /// none.
  std::string model;
  std::string transformersVersion = "5.23.0";
  std::string deepspeedVersion = {}; // empty: not given
  /// How the script quantises the base, before what files say.
  std::optional<QuantizationConfig> quantization = {};
};

/// Reports on a file that `loadConfig` has read (also where that found errors).
void lintConfig(const std::string &path, const LoadedConfig &loaded,
                const LintOptions &options, DiagnosticEngine &engine);

/// Reports of these findings those that say whether the mesh of the file runs
/// and what its ranks do, which a plan of it does not show.
void lintMesh(const std::string &path, const LoadedConfig &loaded,
              const LintOptions &options, DiagnosticEngine &engine);

/// Reports a quantised base of the job or of its model that nothing trains
/// through, or that the job's FSDP refuses.
void lintQuantizedBase(const std::string &path, const LoadedConfig &loaded,
                       const LintOptions &options, DiagnosticEngine &engine);

/// torch stops where a micro-batch adds to gradients that CUDA graphs wrote. Of
/// wrappers that take gradients out plan knows more (VerifyCandidate.cpp).
void lintGraphGradients(const std::string &path, const JobConfig &job,
                        DiagnosticEngine &engine);

/// torch's GradScaler unscales no gradients in fp16 (torch/amp/grad_scaler.py),
/// and gets those of parameters in the dtype in which the model is loaded: from
/// DDP and one process, and from FSDP2 where Accelerate turns nothing into
/// fp32. FSDP1's scaler takes them.
bool scalesLoadedDtype(const JobConfig &job);

/// Notes that the weights of such a job are fp16.
void lintHalfGradients(const std::string &path, const LoadedConfig &loaded,
                       const LintOptions &options, DiagnosticEngine &engine);

/// Reports an attention of the script that FSDP2's context parallelism does not
/// run with (Trainer._prepare_context_parallel_inputs).
void lintContextAttention(const JobConfig &job, DiagnosticEngine &engine);

/// The file that `accelerate launch` takes when it gets no --config_file
/// ($HF_HOME/accelerate/default_config.yaml); empty if no home is known.
std::string defaultConfigPath();

/// Notes that `path` is that file, which every launch without --config_file
/// uses without a word.
void lintDefaultConfig(const std::string &path, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_FRONTENDS_LINT_LINT_H
