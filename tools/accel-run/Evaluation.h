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
#include "tools/accel-run/Log.h"
#include "tools/accel-run/Preflight.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// The evaluations of a run. Collective: every rank makes and runs it.
class Evaluation {
public:
  /// `resumes`: predictions are added to the file that is there.
  Evaluation(const Input &input, Executor &executor, Buffers &buffers,
             bool resumes);

  /// The mean loss over the labels that count, of all ranks, and what else the
  /// plan asks for.
  EvalRecord run(int64_t step);

private:
  /// Labels of one micro-batch and what the model says.
  struct Batch {
    EvalResult result;
    std::vector<int64_t> labels; // empty: no classes
  };
  Batch evaluate(int64_t k);
  int64_t batches() const;
  void writePredictions(int64_t step, int64_t number, const Batch &batch);
  std::vector<SampleRecord> sample();
  /// Continues the prompts of `rows` samples, which begin at sample `first`.
  std::vector<std::vector<int64_t>> continued(int64_t first);

  const plan::Job &job;
  Executor &executor;
  Buffers &buffers;
  Loader data;
  bool whole; // all of the data, each sample once
  bool appends;
  std::string predictions; // the file; rank 0's, or empty
  std::optional<Vocabulary> vocabulary;
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_EVALUATION_H
