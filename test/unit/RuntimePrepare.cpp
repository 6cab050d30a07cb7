//===- RuntimePrepare.cpp - Prepares the functions of plans ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// runtime-prepare PLAN... resolves every instruction of every function against
// LibTorch's schemas: names, number and types of arguments, results. Nothing
// runs, so plans for CUDA devices are checked where no device is. Prints one
// line a plan; the exit code is 1 if one cannot be prepared.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/FunctionRunner.h"
#include "runtime/plan/PlanJson.h"

#include <cstdio>
#include <set>
#include <string>

namespace {

/// A device that is named and never used.
struct NoDevice final : accel::run::Device {
  explicit NoDevice(const std::string &kind) : kind(kind) {}
  c10::Device device() const override { return c10::Device(kind); }
  c10::DataPtr allocate(size_t, accel::plan::Stream) override { return {}; }
  c10::DataPtr allocateHost(size_t) override { return {}; }
  int64_t hostBytes() const override { return 0; }
  accel::run::MemoryCount memory() const override { return {}; }
  int64_t ownBytes() const override { return 0; }
  void resetPeak() override {}
  int64_t reservedPeak() const override { return 0; }
  int64_t allocatedPeak() const override { return 0; }
  void discount(int64_t) override {}
  int mark() override { return 0; }
  void resolve(accel::run::InstructionTimes &) override {}
  std::string kind;
};

} // namespace

int main(int argc, char **argv) {
  using namespace accel;
  int code = 0;
  for (int i = 1; i < argc; ++i) {
    plan::Plan plan;
    std::string error;
    if (!plan::readPlan(argv[i], plan, error)) {
      std::printf("%s\n", error.c_str());
      code = 1;
      continue;
    }
    NoDevice device(plan.device);
    plan::Plan alone; // nobody to exchange with
    alone.axes = plan.axes;
    for (plan::Axis &axis : alone.axes)
      axis.size = 1;
    run::Groups groups(alone);
    std::set<std::string> operators;
    try {
      for (const plan::Function &function : plan.functions) {
        run::FunctionRunner runner(function, device, groups);
        for (const plan::Instruction &instruction : function.instructions)
          operators.insert(instruction.op);
      }
      std::printf("%s: %zu functions for %s:", argv[i], plan.functions.size(),
                  plan.device.c_str());
      for (const std::string &name : operators)
        std::printf(" %s", name.c_str());
      std::printf("\n");
    } catch (const std::exception &problem) {
      std::printf("%s: cannot be prepared: %s\n", argv[i], problem.what());
      code = 1;
    }
  }
  return code;
}
