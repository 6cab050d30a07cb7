//===- TorchOptimizer.cpp - Groups and schedule as torch keeps them -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchOptimizer.h"
#include "runtime/plan/LearningRate.h"
#include "runtime/plan/Optimizers.h"
#include "runtime/plan/Plan.h"

#include <algorithm>

namespace accel::checkpoint {

namespace {

constexpr const char *written = "adamw";

} // namespace

bool needAdamw(const plan::Plan &plan, const std::string &output,
               DiagnosticEngine &diagnostics) {
  const std::string &name = plan.job.optimizer.name;
  if (name == written)
    return true;
  diagnostics.error("not-supported", output,
                    "the plan's optimizer is " + printable(name) +
                        "; groups of " + written + " are written",
                    "convert with --to dcp and without --plan, and fill the "
                    "groups in torch");
  return false;
}

bool needAdamwStates(const TrainedParameter &trained,
                     const plan::Parameter &parameter,
                     const std::string &output, DiagnosticEngine &diagnostics) {
  const auto &kinds = plan::findOptimizer(written)->states;
  auto fail = [&](std::string_view kind, const char *has, const char *why) {
    diagnostics.error("not-supported", output,
                      std::string("the checkpoint holds ") + has + "'" +
                          printable(kind) + "' of '" +
                          printable(parameter.fqn) + "', " + why,
                      "give the plan of the job that was trained; merge writes "
                      "weights alone");
    return false;
  };
  for (const plan::StateRule &kind : kinds)
    if (!trained.states.count(kind.name))
      return fail(kind.name, "no ", "which torch's AdamW goes on from");
  for (const auto &[kind, state] : trained.states)
    if (std::none_of(kinds.begin(), kinds.end(),
                     [&, &kind = kind](const plan::StateRule &own) {
                       return kind == own.name;
                     }))
      return fail(kind, "", "which is no state of torch's AdamW");
  return true;
}

void groupOptions(
    const plan::Plan &plan, size_t group, int64_t steps,
    const std::function<void(const char *, const WriteValue &)> &take) {
  const plan::Optimizer &options = plan.job.optimizer;
  const plan::OptimizerGroup &own = options.groups[group];
  auto number = [&](const char *key, double is) {
    take(key, [&](PickleWriter &out) { out.real(is); });
  };
  number("lr", plan::learningRates(plan.job, steps)[group]);
  number("initial_lr", own.lr); // of torch's schedulers
  number("weight_decay", own.weightDecay);
  number("eps", plan::numberOf(options, "eps"));
  take("betas", [&](PickleWriter &out) {
    out.mark();
    for (size_t i = 0; i < 2; ++i)
      out.real(plan::numberOf(options, "betas", i));
    out.tuple();
  });
  for (const char *key : {"amsgrad", "maximize", "capturable", "differentiable",
                          "decoupled_weight_decay"})
    take(key, [&](PickleWriter &out) {
      out.boolean(key == std::string_view("decoupled_weight_decay"));
    });
  for (const char *key : {"foreach", "fused"})
    take(key, [](PickleWriter &out) { out.none(); });
}

void paramGroups(PickleWriter &out, const plan::Plan &plan,
                 const std::vector<size_t> &counts, int64_t steps, bool empty) {
  out.text("param_groups");
  out.emptyList();
  out.mark();
  int64_t number = 0;
  for (size_t g = 0; g < counts.size(); ++g) {
    if (counts[g] == 0 && !empty)
      continue;
    out.emptyDict();
    out.mark();
    groupOptions(plan, g, steps, [&](const char *key, const WriteValue &write) {
      out.text(key);
      write(out);
    });
    out.text("params");
    out.emptyList();
    out.mark();
    for (size_t i = 0; i < counts[g]; ++i)
      out.integer(number++);
    out.appends();
    out.items();
  }
  out.appends();
}

void scheduleState(PickleWriter &out, const plan::Plan &plan, int64_t steps,
                   int64_t stepped, bool rated) {
  auto rates = [&](const char *key, const std::vector<double> &is) {
    out.text(key);
    out.emptyList();
    out.mark();
    for (double rate : is)
      out.real(rate);
    out.appends();
  };
  out.text("last_epoch");
  out.integer(stepped);
  out.text("_step_count");
  out.integer(stepped + 1);
  if (rated) {
    std::vector<double> base;
    for (const plan::OptimizerGroup &group : plan.job.optimizer.groups)
      base.push_back(group.lr);
    rates("base_lrs", base);
    rates("_last_lr", plan::learningRates(plan.job, steps));
  }
  out.text("lr_lambdas");
  out.emptyList();
  out.mark();
  for (size_t g = 0; g < plan.job.optimizer.groups.size(); ++g)
    out.none();
  out.appends();
}

void scaleState(PickleWriter &out, const plan::Plan &plan,
                const std::optional<LossScale> &scale) {
  const plan::GradScaler &keys = plan.job.gradScaler;
  const LossScale is = scale.value_or(LossScale{keys.initScale, 0});
  for (const auto &[key, value] : {std::pair{"scale", is.scale},
                                   {"growth_factor", keys.growthFactor},
                                   {"backoff_factor", keys.backoffFactor}}) {
    out.text(key);
    out.real(value);
  }
  out.text("growth_interval");
  out.integer(keys.growthInterval);
  out.text("_growth_tracker");
  out.integer(is.goodSteps);
}

} // namespace accel::checkpoint
