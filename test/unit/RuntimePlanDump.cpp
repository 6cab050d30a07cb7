//===- RuntimePlanDump.cpp - Prints the plan made by hand -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// runtime-plan-dump [KEY=VALUE]... prints a plan that trains on tokens.bin
// beside it. The tests of accel-run in test/Run read it.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Verify.h"
#include "test/unit/RuntimeTinyPlan.h"

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char **argv) {
  using namespace accel;
  test::TinyOptions options;
  plan::Data data, evalData;
  plan::Checkpoint checkpoint;
  std::string weights, device = "cpu", model, predictions;
  double rate = 0;
  int64_t steps = 8, every = 0, logging = 1;
  data.kind = "tokens";
  data.path = "tokens.bin";
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? "" : text.substr(equals + 1);
    const long long number = std::atoll(value.c_str());
    if (key == "shard")
      options.shard = number;
    else if (key == "replicate")
      options.replicate = number;
    else if (key == "accumulation")
      options.accumulation = number;
    else if (key == "clip")
      options.maxGradNorm = std::atof(value.c_str());
    else if (key == "bf16")
      options.gather = plan::DType::BF16;
    else if (key == "scaling")
      options.lossScaling = true;
    else if (key == "hidden")
      options.hidden = number;
    else if (key == "steps")
      steps = number;
    else if (key == "eval")
      every = number;
    else if (key == "dir")
      checkpoint.dir = value;
    else if (key == "every")
      checkpoint.every = number;
    else if (key == "logging")
      logging = number;
    else if (key == "keep")
      checkpoint.keep = number;
    else if (key == "background")
      checkpoint.background = true;
    else if (key == "full")
      checkpoint.stateDict = "full";
    else if (key == "shuffle")
      data.shuffle = true;
    else if (key == "lr")
      rate = std::atof(value.c_str());
    else if (key == "weights")
      weights = value;
    else if (key == "model")
      model = value;
    else if (key == "predictions")
      predictions = value;
    else if (key == "no-data")
      data = plan::Data();
    else if (key == "device")
      device = value;
    else {
      std::fprintf(stderr, "runtime-plan-dump: unknown '%s'\n", argv[i]);
      return 64;
    }
  }
  plan::Plan plan = test::tinyPlan(options);
  plan.job.data = data;
  plan.job.schedule.steps = steps;
  plan.job.loggingSteps = logging;
  plan.job.checkpoint = checkpoint;
  plan.job.modelPath = model;
  plan.device = device;
  if (rate > 0)
    for (plan::OptimizerGroup &group : plan.job.optimizer.groups)
      group.lr = rate;
  if (every > 0) {
    plan.job.evalData = data;
    plan.job.evalEvery = every;
    plan.job.evalPredictions = predictions;
  }
  if (!weights.empty())
    plan.job.weightFiles = {weights};
  for (const std::string &problem : plan::verify(plan)) {
    std::fprintf(stderr, "runtime-plan-dump: %s\n", problem.c_str());
    return 1;
  }
  std::fputs(plan::toJson(plan).c_str(), stdout);
  return 0;
}
