//===- Validate.cpp - Predictions beside measured runs --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Validate.h"

#include "passes/Pipeline/Phases.h"
#include "passes/Validate/RunJob.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace accel::validate {

namespace {

/// With the optimizer inside the backward no gradient outlives its layer: the
/// memory is that of parameters which nobody updates, and the states.
void freeGradientsAtOnce(const DecidedStep &step, const Target &target,
                         StepPrediction &prediction) {
  StepModel frozen = *step.model;
  const Candidate &candidate = step.candidate;
  int64_t states = 0;
  for (StepParameter &parameter : frozen.parameters) {
    parameter.trainable = false;
    states +=
        candidate.update->stateBytes(parameter.shape, candidate.dtypes.state);
  }
  const StepPrediction memory =
      StepEvaluator(frozen, target).evaluate(candidate);
  prediction.peakBytes = memory.peakBytes + states;
  prediction.reservedBytes = memory.reservedBytes + states;
  prediction.peakAction = memory.peakAction;
  prediction.peakWhere = memory.peakWhere;
}

/// The measured speed, from the step's time where only that is stated.
std::optional<double> measuredSpeed(const RunRow &row) {
  if (row.tokensPerSecondPerGpu)
    return row.tokensPerSecondPerGpu;
  if (row.stepMilliseconds && row.globalBatch && row.sequence && row.gpus)
    return static_cast<double>(*row.globalBatch) *
           static_cast<double>(*row.sequence) / (*row.stepMilliseconds * 1e-3) /
           static_cast<double>(*row.gpus);
  return std::nullopt;
}

} // namespace

namespace {

/// Why the compiler does not take the run; of a file of one's own with its
/// name.
std::string reasonOf(const Run &run, const DiagnosticEngine &engine) {
  const bool own = run.configFile != Run().configFile;
  for (const Diagnostic &d : engine.all())
    if (d.severity == Severity::Error)
      return (own && d.file == run.configFile ? d.file + ": " : "") + d.message;
  return "the compiler refuses it";
}

StepPrediction predict(const Run &run, const DecidedStep &step,
                       const Target &target) {
  const Candidate &candidate = step.candidate;
  StepEvaluator evaluator(*step.model, target);
  StepPrediction prediction = evaluator.evaluate(candidate);
  if (run.optimizerInBackward)
    freeGradientsAtOnce(step, target, prediction);
  else
    replayInto(prediction, evaluator, candidate, run.allocator,
               target.contextBytes, /*budgetBytes=*/0);
  if (run.activationOffload && run.source == Source::Torchtune) {
    // Its copies run on a stream of their own, beside the computation.
    Candidate resident = candidate;
    resident.offloadActivations.assign(resident.offloadActivations.size(),
                                       false);
    prediction.stepSeconds = evaluator.evaluate(resident).stepSeconds;
  }
  return prediction;
}

TrainedKind kindOf(const Run &run) {
  return run.operands != LinearOperands::Computed ? TrainedKind::Fp8
         : run.quantization                       ? TrainedKind::Quantised
         : run.adapter                            ? TrainedKind::Adapter
                                                  : TrainedKind::Full;
}

double errorOf(int64_t bytes, double measured) {
  return static_cast<double>(bytes) / measured - 1;
}

int64_t countedBytes(const StepPrediction &p, MemoryKind kind) {
  switch (kind) {
  case MemoryKind::Reserved:
    return p.reservedBytes;
  case MemoryKind::Allocated:
    return p.peakBytes;
  case MemoryKind::Device:
    return p.deviceBytes;
  }
  return 0;
}

} // namespace

RowResult predictRow(const RunRow &row, const TargetSource &targets,
                     const ModelSource &models) {
  RowResult result;
  result.row = row;
  result.run = interpret(row, models);
  result.measuredTokensPerSecond = measuredSpeed(row);
  const Run &run = result.run;
  result.kind = kindOf(run);
  result.skipped = run.skipped;
  const Target *target = result.skipped.empty() ? targets(run.target) : nullptr;
  if (result.skipped.empty() && !target)
    result.skipped = "the target '" + run.target + "' cannot be read";
  if (!result.skipped.empty())
    return result;
  DiagnosticEngine engine;
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const std::optional<RunJob> job = jobOf(run, engine);
  const std::optional<DecidedStep> step =
      job ? decide(context, *job, *target, engine) : std::nullopt;
  result.skipped = step ? verifyCandidate(*step->model, step->candidate)
                        : reasonOf(run, engine);
  if (!result.skipped.empty())
    return result;
  result.prediction = predict(run, *step, *target);
  const StepPrediction &p = result.prediction;
  result.stepSeconds = p.stepSeconds;
  if (result.stepSeconds > 0)
    result.tokensPerSecondPerDevice =
        static_cast<double>(step->model->tokens() *
                            step->candidate.accumulation) /
        static_cast<double>(step->model->ranksPerSample) / result.stepSeconds;
  result.fits = !target->memoryBytes ||
                p.peakBytes + target->contextBytes <= *target->memoryBytes;
  result.predictedBytes = countedBytes(p, run.memory);
  if (row.peakMemoryGib) {
    const double measured = *row.peakMemoryGib * run.memoryUnit;
    result.measuredBytes = measured;
    result.memoryError = errorOf(result.predictedBytes, measured);
    if (run.memory == MemoryKind::Reserved && p.replayed)
      result.replayedError = errorOf(p.replayedBytes, measured);
  }
  if (result.measuredTokensPerSecond)
    result.speedError =
        result.tokensPerSecondPerDevice / *result.measuredTokensPerSecond - 1;
  return result;
}

ErrorSummary summarize(std::vector<double> errors) {
  ErrorSummary summary;
  summary.count = static_cast<int>(errors.size());
  if (errors.empty())
    return summary;
  const double count = static_cast<double>(errors.size());
  summary.bias = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  for (double &error : errors)
    error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  const size_t middle = errors.size() / 2;
  summary.median = errors.size() % 2
                       ? errors[middle]
                       : (errors[middle - 1] + errors[middle]) / 2;
  summary.most = errors.back();
  return summary;
}

namespace {

std::vector<double> ranks(const std::vector<double> &values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]])
      ++end;
    const double rank = (static_cast<double>(i + end) - 1) / 2;
    for (; i < end; ++i)
      result[order[i]] = rank;
  }
  return result;
}

} // namespace

double rankCorrelation(const std::vector<double> &a,
                       const std::vector<double> &b) {
  if (a.size() < 3 || a.size() != b.size())
    return 0;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double covariance = 0, varianceX = 0, varianceY = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    covariance += (x[i] - mean) * (y[i] - mean);
    varianceX += (x[i] - mean) * (x[i] - mean);
    varianceY += (y[i] - mean) * (y[i] - mean);
  }
  const double product = varianceX * varianceY;
  return product > 0 ? covariance / std::sqrt(product) : 0;
}

namespace {

struct Collected {
  FamilyResult result;
  std::vector<double> memory, replayed, speed, predicted, measured;
  std::set<std::string> frameworks;

  void add(const RowResult &row) {
    ++result.rows;
    frameworks.insert(toString(row.run.source));
    if (!row.skipped.empty())
      return;
    ++result.modelled;
    if (row.memoryError)
      memory.push_back(*row.memoryError);
    if (row.replayedError)
      replayed.push_back(*row.replayedError);
    if (row.speedError) {
      speed.push_back(*row.speedError);
      predicted.push_back(row.tokensPerSecondPerDevice);
      measured.push_back(*row.measuredTokensPerSecond);
    }
    const bool ran = row.row.peakMemoryGib || row.measuredTokensPerSecond;
    result.doNotFit += ran && !row.fits;
  }
  FamilyResult finish() {
    result.memory = summarize(memory);
    result.replayed = summarize(replayed);
    result.speed = summarize(speed);
    result.rankCorrelation = rankCorrelation(predicted, measured);
    for (const std::string &name : frameworks)
      result.frameworks += (result.frameworks.empty() ? "" : ", ") + name;
    return result;
  }
};

} // namespace

ValidationResult validateRuns(const std::vector<RunRow> &rows,
                              const TargetSource &targets,
                              const std::string &family,
                              const ModelSource &models) {
  ValidationResult result;
  std::vector<Collected> families;
  std::map<std::string, size_t> index;
  Collected all;
  for (const RunRow &row : rows) {
    if (!family.empty() && interpret(row).family != family)
      continue;
    result.rows.push_back(predictRow(row, targets, models));
    const RowResult &added = result.rows.back();
    auto [at, fresh] = index.emplace(added.run.family, families.size());
    if (fresh) {
      families.emplace_back();
      families.back().result.name = added.run.family;
    }
    families[at->second].add(added);
    all.add(added);
  }
  for (Collected &collected : families)
    result.families.push_back(collected.finish());
  result.all = all.finish();
  result.all.name = "all";
  return result;
}

} // namespace accel::validate
