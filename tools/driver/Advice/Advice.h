//===- Advice.h - What a configuration costs, and what is better *- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The prediction of a configuration under its executor, single changes that
// would help, and the answers of the joint search (--tune, --max-batch).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_ADVICE_H
#define ACCEL_TOOLS_DRIVER_ADVICE_ADVICE_H

#include "passes/Tune/Recommend.h"
#include "tools/driver/Inputs/PlanInputs.h"

#include <map>
#include <memory>
#include <optional>

namespace accel {

/// A setting that a search chose.
struct Tuned {
  tune::SearchResult result;
  StepPrediction predicted; // of the best, with details
  std::vector<tune::Decided> decisions;
  std::vector<tune::YamlLine> lines; // that say it
  std::vector<tune::Knob> notInYaml; // what no line says
};

struct MaxBatch {
  int64_t fits = 0; // largest micro-batch that fits; 0: not even one sequence
  StepPrediction at, next; // of it, and of one more
};

/// A whole mesh with its best setting, as planned.
struct MeshChoice {
  tune::MeshOption mesh;
  tune::Point point;
  StepPrediction predicted;
};

/// What a search over meshes found, and what speaks against others.
struct MeshAnswer {
  std::optional<MeshChoice> chosen;
  std::optional<MeshChoice> next;    // that fits and is slower
  std::optional<MeshChoice> lacking; // faster, and does not fit
  /// Tensor-parallel ranks on several nodes, where those of the chosen one
  /// are on one; on one where they are on several.
  std::optional<MeshChoice> otherSide;
  int64_t meshes = 0, evaluated = 0;
  int64_t ranksPerNode = 1;
  /// What the search evaluated, as points of the advice's space.
  std::map<tune::Point, tune::Evaluation> known;
};

/// A mesh that accel-run trains on, planned with all else as it is written.
struct RunMesh {
  std::string sizes;     // "pp 2, dp_shard 4"
  tune::ConfigEdit edit; // nothing: as configured
  int64_t accumulation = 1;
  StepPrediction predicted;
  bool fits = true;
};
struct RunMeshes {
  /// What fits first, the fastest before the others; then by bytes.
  std::vector<RunMesh> planned;
  int64_t meshes = 0, tried = 0, refused = 0; // but the configured one
};

struct Advice {
  FrameworkKind executor = FrameworkKind::AccelRun;
  Candidate candidate;       // as configured
  StepPrediction configured; // of it, with details
  /// Of the rank with the smallest shards, where shards are uneven.
  std::optional<StepPrediction> smallestRank;
  bool hasTime = false;
  /// INT64_MAX: none. What fits is judged by `roomBytes`, which is the budget
  /// or what --confidence leaves of it.
  int64_t budgetBytes = 0, roomBytes = 0;
  std::shared_ptr<const JobConfig> job; // what editor refers to
  yaml::FileTexts texts;                // that stand for its files
  /// The precision policy of each of the space's precisions.
  std::vector<PrecisionPolicy> policies;
  std::shared_ptr<const tune::Space> space;
  std::shared_ptr<const tune::ConfigEditor> editor;
  std::shared_ptr<const StepModel> model; // as configured
  std::vector<tune::Change> changes;
  /// Without a search: what the configuration says of each knob, and the best
  /// that it might say instead.
  std::vector<tune::Decided> refused;
  std::optional<Tuned> tuned; // all that the executor can do
  std::optional<Tuned> yaml;  // what a YAML alone can say
  std::optional<MeshAnswer> mesh;
  std::optional<RunMeshes> runMeshes;
  /// What checkpointing solved for a cap in bytes would make of the best
  /// setting, where the executor cannot be asked for it.
  std::optional<tune::Change> solved;
  std::optional<MaxBatch> maxBatch;
  /// Knobs that the search left alone, with the reason.
  std::vector<std::pair<tune::Knob, tune::KnobState>> fixed;
};

struct AdviceInputs {
  const PlanInputs &inputs;
  const PlanOptions &options;
  FrameworkKind executor;
  /// None: bytes alone are predicted, and `device` stands for a machine.
  const Target *target = nullptr;
  const Target &device;
  int64_t ranksPerNode = 1;
  /// Of a device, which its allocator has; what a prediction may be to fit.
  std::optional<int64_t> budgetBytes, roomBytes;
  int64_t lossChunks = 1; // of accel-run's program
  /// Of accel-run, what its program takes as configured; null of others.
  const StepPrediction *program = nullptr;
  /// DecidedSteps::planAgain.
  std::function<std::vector<std::optional<StepPrediction>>(
      const std::vector<tune::ConfigEdit> &)>
      replan;
  /// What accel-run's program of a setting of the advice's space takes.
  std::function<std::optional<StepPrediction>(const Advice &,
                                              const tune::Point &)>
      planProgram;
  /// DecidedSteps::modelOf.
  std::function<std::shared_ptr<const StepModel>(const tune::ConfigEdit &)>
      modelOf;
  /// Decided steps of the configuration; precision 0 is the configured one.
  tune::ModelSource source;
};

/// Fills what the options ask for. Nothing where the executor has no model of
/// the configuration; the reason was reported to `engine`.
std::optional<Advice> advise(const AdviceInputs &inputs,
                             DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_ADVICE_H
