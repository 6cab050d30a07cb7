//===- Evaluation.h - What a model is worth so far --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_EVALUATION_H
#define ACCEL_TOOLS_ACCEL_RUN_EVALUATION_H

#include "runtime/checkpoint/Buffers.h"
#include "runtime/data/Loader.h"
#include "runtime/data/Vocabulary.h"
#include "runtime/execute/Executor.h"
#include "tools/accel-run/LineFile.h"
#include "tools/accel-run/Log.h"
#include "tools/accel-run/Preflight.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// The evaluations of a run. Collective: every rank makes and runs it.
class Evaluation {
public:
  /// Whether the job evaluates at all.
  static bool isWanted(const plan::Plan &plan) {
    return plan.evalOf(0) >= 0 && !plan.job.evalData.kind.empty();
  }

  /// `lock` holds the file of predictions. Throws InputError where no label of
  /// the data counts.
  Evaluation(const Input &input, Executor &executor, Buffers &buffers,
             LineLock *lock);

  /// The run goes on with the evaluations behind those of `steps`: of the file
  /// of predictions, their lines stay.
  void continueAfter(int64_t steps) { doneSteps = steps; }

  /// Whether an evaluation follows step `done` of a run that ends at `last`.
  bool isDue(int64_t done, int64_t last) const {
    return done == last || (job.evalEvery > 0 && done % job.evalEvery == 0);
  }

  /// The mean loss over the labels that count, of all ranks, and what else the
  /// plan asks for. Nothing where a rank was asked to end meanwhile.
  std::optional<EvalRecord> run(int64_t step);
  /// The signal that has broken it off; all ranks know it.
  int stopSignal() const { return stopped; }

private:
  /// Labels of one micro-batch and what the model says.
  struct Batch {
    EvalResult result;
    std::vector<int64_t> labels; // empty: none that can be ignored
  };
  /// What a loss is of, and their number.
  struct Loss {
    double sum = 0, weight = 0;
  };
  /// With `row`, all of the micro-batch's rows are that one.
  Batch evaluate(int64_t k, std::optional<int64_t> row = std::nullopt);
  /// The loss of micro-batch `k` where samples count alike: a row at a time if
  /// it is `filled`, that is, some rank's last rows are evaluated before.
  Loss lossOfSamples(int64_t k, bool filled);
  at::Tensor loadLabels(int64_t k);
  /// Files with weights go on without an end: their batches hold no sample that
  /// only fills them up, and no number of batches is all of them.
  bool isMixture() const;
  /// Rows of micro-batch `k` that are not evaluated before.
  int64_t ownRows(int64_t k) const;
  /// Micro-batches of all ranks that hold each sample once.
  int64_t allBatches() const;
  int64_t batches() const;
  void checkLabels();
  /// Whether a rank was asked to end, on all ranks alike. They agree about once
  /// a second, and ask equally often.
  bool isAsked();
  void writePredictions(int64_t step, int64_t number, const Batch &batch);
  std::vector<SampleRecord> sample();
  /// Continues the prompts of `rows` samples, which begin at sample `first`;
  /// empty where a rank was asked to end.
  std::vector<std::vector<int64_t>> continued(int64_t first);

  const plan::Job &job;
  Executor &executor;
  Buffers &buffers;
  Loader data;
  /// Of the data, with a value that the loss ignores; else samples count alike.
  bool hasLabels = false;
  int64_t doneSteps = 0;
  bool complained = false;               // that predictions cannot be written
  int stopped = 0;                       // by which signal
  int64_t untilAgreed = 1, interval = 1; // calls of isAsked
  double agreedAt = 0;                   // by hostSeconds()
  std::string predictions;               // the file, or empty
  LineLock *lock;                        // of that
  std::optional<LineFile> predicted;     // rank 0's, once it has been begun
  std::optional<Vocabulary> vocabulary;
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_EVALUATION_H
