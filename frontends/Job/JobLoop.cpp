//===- JobLoop.cpp - The training loop of a job.yaml ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobReader.h"
#include "runtime/plan/Fields/Job.h"

#include <algorithm>
#include <iterator>
#include <limits>

using namespace accel;

namespace {

constexpr int64_t most = int64_t(1) << 40;
constexpr double largest = std::numeric_limits<double>::max();

template <typename Names> std::vector<std::string> listOf(const Names &names) {
  return {std::begin(names), std::end(names)};
}

/// A key that one decay alone reads.
struct OwnKey {
  const char *key, *decay;
};
constexpr OwnKey ownKeys[] = {{"cycles", "cosine_with_restarts"},
                              {"power", "polynomial"},
                              {"decay_steps", "warmup_stable_decay"},
                              {"decay_shape", "warmup_stable_decay"},
                              {"timescale", "inverse_sqrt"}};

} // namespace

void JobReader::readSchedule(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("schedule");
  if (!fields)
    return;
  std::vector<std::string> known = {"steps", "warmup_steps", "decay", "min_lr"};
  for (const OwnKey &own : ownKeys)
    known.emplace_back(own.key);
  fields->checkKeys(known);
  ScheduleConfig &schedule = job.schedule;
  fields->integer("steps", schedule.steps, 1, most);
  fields->integer("warmup_steps", schedule.warmupSteps, 0, most);
  fields->choice("decay", schedule.decay, listOf(plan::decayNames));
  fields->number("min_lr", schedule.minLr, 0, largest);
  fields->integer("cycles", schedule.cycles, 1, 1 << 30);
  fields->number("power", schedule.power, 0, largest);
  fields->integer("decay_steps", schedule.decaySteps, 1, most);
  fields->choice("decay_shape", schedule.decayShape, listOf(plan::decayShapes));
  fields->integer("timescale", schedule.timescale, 1, most);
  const std::string &decay = schedule.decay.value;
  for (const OwnKey &own : ownKeys)
    if (fields->find(own.key) && decay != own.decay)
      fields->error("invalid-value", own.key,
                    "'" + std::string(own.key) + "' is of decay: " + own.decay +
                        ", and the decay is " + decay,
                    "remove it", true);
  const bool endless = decay == "constant" || decay == "inverse_sqrt";
  if (schedule.minLr.value > job.optimizer.lr.value)
    fields->error("invalid-value", "min_lr",
                  "schedule.min_lr is above optimizer.lr");
  else if (schedule.minLr.written() && endless)
    fields->report(Severity::Warning, "ignored-key", "min_lr",
                   "'min_lr' has no effect with decay: " + decay,
                   "write decay: linear or cosine", true);
  if (!endless && !fields->find("steps"))
    fields->error("missing-key", "decay",
                  "decay: " + decay + " needs to know where it ends",
                  "write steps: N");
  if (decay == "warmup_stable_decay") {
    if (!fields->find("decay_steps"))
      fields->error("missing-key", "decay",
                    "decay: warmup_stable_decay needs to know where it begins",
                    "write decay_steps: N, the last so many of the steps");
    else if (schedule.steps.written() && schedule.decaySteps.written() &&
             schedule.decaySteps.value + schedule.warmupSteps.value >
                 schedule.steps.value)
      fields->error("invalid-value", "decay_steps",
                    "warm-up and decay are " +
                        std::to_string(schedule.decaySteps.value +
                                       schedule.warmupSteps.value) +
                        " steps, more than the run's " +
                        std::to_string(schedule.steps.value));
  }
  if (schedule.steps.written() &&
      schedule.warmupSteps.value > schedule.steps.value)
    fields->report(Severity::Warning, "invalid-value", "warmup_steps",
                   "the warm-up of " +
                       std::to_string(schedule.warmupSteps.value) +
                       " steps is longer than the run of " +
                       std::to_string(schedule.steps.value));
}

void JobReader::readSampling(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("sample");
  if (!fields)
    return;
  fields->checkKeys({"count", "prompt_tokens", "new_tokens"});
  plan::Sampling read{1};
  Setting<int64_t> count{read.count}, prompt{read.promptTokens},
      fresh{read.newTokens};
  const size_t errors = engine.errors();
  fields->integer("count", count, 1, 1 << 20);
  fields->integer("prompt_tokens", prompt, 1, 1 << 30);
  fields->integer("new_tokens", fresh, 1, 1 << 30);
  job.sampling = {{count.value, prompt.value, fresh.value},
                  Origin::Written,
                  "sample",
                  top.locate("sample"),
                  ""};
  if (!job.eval.present) {
    top.error("missing-key", "sample",
              "samples are written at evaluations, and the job has none",
              "write eval: {tokens: FILE, every: STEPS}", true);
    return;
  }
  const auto &length = job.data.sequenceLength.value;
  const bool whole = engine.errors() == errors;
  if (whole && length && prompt.value + fresh.value > *length + 1)
    fields->error("invalid-value",
                  fields->find("new_tokens") ? "new_tokens" : "count",
                  "a prompt of " + std::to_string(prompt.value) +
                      " tokens and " + std::to_string(fresh.value) +
                      " new ones are longer than the sequences of " +
                      std::to_string(*length) + " tokens",
                  "the last new token is not read: the sum may be " +
                      std::to_string(*length + 1) + " at most");
}

void JobReader::readGradScaler(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("grad_scaler");
  if (!fields)
    return;
  fields->checkKeys(
      {"init_scale", "growth_factor", "backoff_factor", "growth_interval"});
  const plan::GradScaler standard;
  Setting<double> scale{standard.initScale}, growth{standard.growthFactor},
      backoff{standard.backoffFactor};
  Setting<int64_t> interval{standard.growthInterval};
  constexpr double least = 1e-30;
  fields->number("init_scale", scale, least, 1e30);
  fields->number("growth_factor", growth, least, 1e30);
  fields->number("backoff_factor", backoff, least, 1e30);
  // As torch's GradScaler asserts.
  if (growth.value <= 1)
    fields->error("invalid-value", "growth_factor",
                  "grad_scaler.growth_factor must be above 1");
  if (backoff.value >= 1)
    fields->error("invalid-value", "backoff_factor",
                  "grad_scaler.backoff_factor must be below 1");
  fields->integer("growth_interval", interval, 1, 1 << 30);
  job.gradScaler = {{scale.value, growth.value, backoff.value, interval.value},
                    Origin::Written,
                    "grad_scaler",
                    top.locate("grad_scaler"),
                    ""};
  if (!job.precision.value.lossScaling)
    top.report(Severity::Warning, "ignored-key", "grad_scaler",
               "'grad_scaler' has no effect: the loss is scaled in fp16 alone",
               "write mixed_precision: fp16, or remove it", true);
}

void JobReader::readSeed(JobConfig &job) {
  Setting<int64_t> seed;
  top.integer("seed", seed, 0, most);
  if (!seed.written())
    return;
  auto follow = [&](Setting<int64_t> &setting) {
    if (setting.written())
      return;
    setting.value = seed.value;
    setting.origin = Origin::Derived;
    setting.at = seed.at;
    setting.why = "follows from seed";
  };
  follow(job.data.seed);
  follow(job.eval.data.seed);
  follow(job.dropoutSeed);
  if (job.init.value.kind != InitConfig::Kind::Seed)
    job.init.value.seed = seed.value;
}
