//===- Effect.cpp - What a configuration or a plan comes to ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Compare/Effect.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "frontends/Yaml/Yaml.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/ModulePath.h"
#include "runtime/plan/PlanJson.h"
#include "tools/driver/Session/AccelRunPrediction.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {

bool isPlanFile(const std::string &path) {
  std::string text, error;
  if (!path.ends_with(".json") ||
      !yaml::readWholeFile(path, size_t(1) << 30, text, error))
    return false;
  const std::string_view start = std::string_view(text).substr(0, 4096);
  return start.find("\"format\"") != std::string_view::npos;
}

std::optional<Effect> effectOfPlan(const std::string &path,
                                   DiagnosticEngine &engine) {
  Effect effect;
  effect.name = path;
  std::string error;
  noteInputFile(path);
  if (!plan::readPlan(path, effect.plan, error)) {
    engine.error("invalid-plan", path, error);
    return std::nullopt;
  }
  effect.units = unitBytes(effect.plan);
  effect.strategy = "accel-run";
  effect.prediction = accelRunPrediction(effect.plan, nullptr, 1);
  const plan::Predicted &own = effect.plan.predicted;
  if (own.hasTime) {
    effect.hasTime = true;
    effect.prediction.stepSeconds = own.stepSeconds;
    effect.prediction.computeSeconds = own.computeSeconds;
    effect.prediction.exposedSeconds = own.exposedCommSeconds;
    effect.prediction.tokensPerSecondPerDevice =
        own.tokensPerSecond / static_cast<double>(effect.plan.ranks());
  }
  return effect;
}

PlanReport reportOf(const Effect &ofPlan) {
  PlanReport report;
  report.title = ofPlan.plan.job.modelName;
  report.strategy = ofPlan.strategy;
  report.executor = FrameworkKind::AccelRun;
  report.prediction = ofPlan.prediction;
  report.hasTime = ofPlan.hasTime;
  return report;
}

std::optional<Effect> effectOfConfig(const std::string &path,
                                     PlanOptions options,
                                     DiagnosticEngine &engine) {
  options.config = path;
  CompileResult result = compile(options, engine);
  if (!result.valid || !result.shown)
    return std::nullopt;
  const PlanReport &report = result.report;
  Effect effect;
  effect.name = path;
  effect.units = unitBytes(*result.shown, report);
  effect.plan = std::move(*result.shown);
  effect.strategy = report.executor == FrameworkKind::AccelRun
                        ? report.strategy + " by accel-run"
                        : report.strategy;
  effect.prediction = report.prediction;
  effect.hasTime = report.hasTime;
  effect.budgetBytes = report.budgetBytes;
  effect.roomBytes = report.roomBytes;
  effect.fits = report.fits;
  return effect;
}

namespace {

using Unit = FigureChange::Unit;

std::vector<FigureChange> memoryOf(const StepPrediction &a,
                                   const StepPrediction &b) {
  std::vector<FigureChange> rows;
  auto add = [&](const std::string &what, int64_t left, int64_t right) {
    if (left || right)
      rows.push_back({what, Unit::Bytes, static_cast<double>(left),
                      static_cast<double>(right)});
  };
  for (int h = 0; h < numHoldings; ++h)
    add(toString(static_cast<Holding>(h)), a.atPeak[h], b.atPeak[h]);
  add("allocator", a.reservedBytes - a.peakBytes,
      b.reservedBytes - b.peakBytes);
  add("context", a.deviceBytes - a.reservedBytes,
      b.deviceBytes - b.reservedBytes);
  add("together", a.deviceBytes, b.deviceBytes);
  add("between steps", a.persistentBytes, b.persistentBytes);
  add("on the host", a.hostBytes, b.hostBytes);
  add("on the drive", a.diskBytes, b.diskBytes);
  return rows;
}

std::vector<FigureChange> timeOf(const Effect &x, const Effect &y) {
  if (!x.hasTime || !y.hasTime)
    return {};
  const StepPrediction &a = x.prediction, &b = y.prediction;
  std::vector<FigureChange> rows;
  auto add = [&](const std::string &what, double left, double right,
                 Unit unit = Unit::Seconds) {
    if (left != 0 || right != 0)
      rows.push_back({what, unit, left, right});
  };
  add("a step", a.stepSeconds, b.stepSeconds);
  add("forward and backward",
      a.computeSeconds - a.recomputeSeconds - a.optimizerSeconds,
      b.computeSeconds - b.recomputeSeconds - b.optimizerSeconds);
  add("recomputation", a.recomputeSeconds, b.recomputeSeconds);
  add("optimizer", a.optimizerSeconds, b.optimizerSeconds);
  add("exposed", a.exposedSeconds, b.exposedSeconds);
  add("tokens/s per rank", a.tokensPerSecondPerDevice,
      b.tokensPerSecondPerDevice, Unit::Count);
  return rows;
}

/// Rows by what they are of, each kept once with how often it stands there.
class Gathered {
public:
  void add(bool ofA, const std::string &what, const std::string &text,
           const std::string &why = "") {
    auto [it, isNew] = at.try_emplace(what, all.size());
    if (isNew)
      all.push_back({what, {}, {}});
    auto &rows = ofA ? all[it->second].a : all[it->second].b;
    for (Choices::Row &row : rows)
      if (row.text == text) {
        ++row.count;
        return;
      }
    rows.push_back({text, 1, why});
  }
  /// Those in which a and b differ, in the order in which they came.
  std::vector<Choices> different() const {
    std::vector<Choices> result;
    for (const Choices &c : all)
      if (c.a != c.b)
        result.push_back(c);
    return result;
  }

private:
  std::map<std::string, size_t> at;
  std::vector<Choices> all;
};

std::string nameOf(const std::string &name) {
  return name.empty() ? "(root)" : plan::withoutLayerNumbers(name);
}

std::string unitText(const plan::Unit &unit, const UnitBytes &bytes) {
  std::string text = formatCount(static_cast<double>(unit.numel)) +
                     " elements, a rank keeps " + formatBytes(bytes.kept) +
                     " in " + bytes.dtypes;
  if (bytes.gathered)
    text += ", gathered " + formatBytes(bytes.gathered) + " in " +
            plan::toString(unit.gather);
  return text + (unit.trainable ? "" : ", frozen");
}

std::string reasonOf(const plan::Decision &d) {
  std::string text = d.why;
  if (!d.file.empty())
    text += " (" + d.file + ":" + std::to_string(d.line) + ")";
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

/// What decides which numbers are computed: dtypes, samples of a step, and the
/// optimizer's settings. Sharding, order and recomputation do not.
void addNumerics(Gathered &into, bool ofA, const plan::Plan &plan) {
  const plan::Job &job = plan.job;
  auto say = [&](const char *what, const std::string &text) {
    into.add(ofA, what, text);
  };
  std::set<std::string> storage, compute, reduce;
  int64_t trained = 0;
  for (const plan::Unit &unit : plan.units) {
    storage.insert(plan::toString(unit.storage));
    compute.insert(plan::toString(unit.gather));
    reduce.insert(plan::toString(unit.reduce));
    trained += unit.trainable ? unit.numel : 0;
  }
  auto joined = [](const std::set<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  say("parameters are stored in", joined(storage));
  say("parameters are computed with in", joined(compute));
  say("gradients are reduced in", joined(reduce));
  say("elements that are trained", number(static_cast<double>(trained)));
  say("precision", job.precision + (job.lossScaling ? ", loss scaled" : ""));
  say("samples of a step",
      number(
          static_cast<double>(job.microBatch * job.accumulation * plan.ranks() /
                              plan::Mesh{plan.axes}.ranksPerSample())));
  say("tokens of a sample", number(static_cast<double>(job.sequenceLength)));
  say("optimizer", job.optimizer.name);
  say("gradient norm is clipped at", job.optimizer.maxGradNorm > 0
                                         ? number(job.optimizer.maxGradNorm)
                                         : "nothing");
  for (const plan::OptimizerGroup &group : job.optimizer.groups)
    say("learning rate and weight decay",
        number(group.lr) + ", " + number(group.weightDecay));
  say("learning rate over time",
      job.schedule.decay + ", " +
          number(static_cast<double>(job.schedule.warmupSteps)) +
          " steps of warm-up");
  say("at a step that is not finite", job.onNan);
  if (job.deterministic)
    say("kernels", "deterministic");
  say("seed", number(static_cast<double>(job.seed)) + ", " +
                  number(static_cast<double>(job.randomSeed)));
}

} // namespace

Comparison compare(const Effect &a, const Effect &b) {
  Comparison result;
  result.memory = memoryOf(a.prediction, b.prediction);
  result.time = timeOf(a, b);
  result.unitsOfA = static_cast<int>(a.plan.units.size());
  result.unitsOfB = static_cast<int>(b.plan.units.size());
  Gathered units, decisions, numerics;
  for (const Effect *effect : {&a, &b}) {
    const bool ofA = effect == &a;
    const plan::Plan &plan = effect->plan;
    for (size_t u = 0; u < plan.units.size(); ++u)
      units.add(ofA, nameOf(plan.units[u].name),
                unitText(plan.units[u], effect->units[u]));
    for (const plan::Decision &d : plan.decisions)
      if (d.what != "limit") // a figure, told above
        decisions.add(ofA, d.what + " of " + nameOf(d.where), d.choice,
                      reasonOf(d));
    addNumerics(numerics, ofA, plan);
  }
  result.units = units.different();
  result.decisions = decisions.different();
  result.numerics = numerics.different();
  return result;
}

} // namespace accel
