//===- DiskStatesTest.cpp - Records between a drive and updates -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/DiskStates.h"
#include "runtime/execute/FunctionRunner.h"
#include "test/unit/RuntimeTinyPlan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

using namespace accel;
using namespace accel::run;

namespace {

struct Case {
  int64_t buffers;
  bool readAhead, writeBehind;
};

class Records : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const auto [buffers, readAhead, writeBehind] = GetParam();
    plan = test::tinyPlan({});
    // Five units of two sizes.
    auto &program = plan.programs[plan.step.back().first];
    for (int more = 2; more < 5; ++more) {
      plan.units.push_back(plan.units[more - 2]);
      program.instructions.push_back(program.instructions.back());
      program.instructions.back().kind =
          plan::ProgramInstructionKind::Optimizer;
      program.instructions.back().unit = more;
    }
    plan.offload.states = true;
    plan.offload.disk = {.folder = testing::TempDir() + "records-" +
                                   std::to_string(getpid()),
                         .buffers = buffers,
                         .readAhead = readAhead,
                         .writeBehind = writeBehind,
                         .blockBytes = plan::diskAlignment};
    std::string error;
    device = makeDevice("cpu", 0, error);
    for (size_t i = 0; i < plan.units.size(); ++i)
      units.push_back(std::make_unique<UnitStorage>(plan, i, 0, *device));
    order = plan::recordOrder(plan);
    values.assign(units.size(), 0);
    disk = std::make_unique<DiskStates>(plan, 0, 0, *device, units, 0,
                                        DiskIo::Auto);
  }
  /// The shard has `values`, and each state one more than the tensor before.
  void expectValues(int unit) {
    UnitStorage &of = *units[unit];
    const double value = values[unit];
    EXPECT_TRUE(of.shard().eq(value).all().item<bool>()) << unit;
    for (int s = 0; s < of.numStates(); ++s)
      EXPECT_TRUE(of.state(s).eq(value * (s + 2)).all().item<bool>())
          << unit << ", state " << s;
  }
  void add(int unit, double more) {
    UnitStorage &of = *units[unit];
    values[unit] += more;
    of.shard().add_(more);
    for (int s = 0; s < of.numStates(); ++s)
      of.state(s).add_(more * (s + 2));
  }
  void step() {
    disk->readAhead();
    for (int unit : order) {
      disk->begin(unit);
      expectValues(unit);
      add(unit, unit + 1);
      disk->end();
    }
  }

  plan::Plan plan;
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<UnitStorage>> units;
  std::vector<int> order;
  std::vector<double> values; // by unit
  std::unique_ptr<DiskStates> disk;
};

TEST_P(Records, HaveWhatTheLastUpdateLeft) {
  ASSERT_EQ(order.size(), 5U);
  EXPECT_EQ(disk->bytes(), plan::diskBytes(plan));
  for (int i = 0; i < 5; ++i)
    step();
}

TEST_P(Records, AreHeldBetweenSteps) {
  for (int i = 0; i < 3; ++i) {
    step();
    disk->readAhead(); // what a checkpoint drops
    for (size_t u = 0; u < units.size(); ++u) {
      disk->hold(static_cast<int>(u), /*changes=*/false);
      if (plan::recordBytes(plan, plan.units[u]) > 0)
        expectValues(static_cast<int>(u));
    }
    for (int unit : order) {
      disk->hold(unit, /*changes=*/true);
      disk->hold(unit, /*changes=*/false);
      add(unit, 100);
    }
    if (i == 1)
      disk->letGo();
  }
  step();
}

TEST_P(Records, HaveNoMemoryOtherwise) {
  disk->begin(order[0]);
  EXPECT_NE(units[order[0]]->shard().const_data_ptr(), nullptr);
  disk->end();
  EXPECT_EQ(units[order[0]]->state(0).storage().data_ptr().get(), nullptr);
}

TEST_P(Records, ComeInTheirOrder) {
  EXPECT_THROW(disk->begin(order[1]), PlanError);
}

INSTANTIATE_TEST_SUITE_P(
    Buffers, Records,
    testing::Values(Case{1, false, false}, Case{2, true, false},
                    Case{2, false, true}, Case{3, true, true},
                    Case{4, true, true}, Case{9, true, true}),
    [](const auto &info) {
      return std::to_string(info.param.buffers) +
             (info.param.readAhead ? "Read" : "") +
             (info.param.writeBehind ? "Write" : "");
    });

} // namespace
