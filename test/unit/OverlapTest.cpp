//===- OverlapTest.cpp - Programs stay right when overlapped ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Builds programs of small chains of segments with every combination of
// decisions, moves starts and awaits, and checks what must not change.
//
//===----------------------------------------------------------------------===//
#include "passes/Prefetch/Overlap.h"
#include "passes/Memory/AssignMemory.h"
#include "passes/Schedule/BuildProgram.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "test/unit/PlanFixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace accel;
using namespace accel::plan;
using accel::schedule::BackwardOperand;
using accel::schedule::BuildOptions;
using accel::schedule::GradientSpec;
using accel::schedule::Graph;
using accel::schedule::SegmentCall;

namespace {

constexpr int64_t width = 16, rows = 4;

/// A chain of matmuls; `units[i]` is the unit whose weight call i reads, so a
/// number that comes twice is a tied weight.
class Chain {
public:
  Chain(std::vector<int> units, int64_t ranks, int64_t replicas = 1)
      : uses(std::move(units)) {
    plan.device = "cpu";
    plan.job.optimizer.groups = {{}};
    plan.axes = {{"dp_replicate", replicas}, {"dp_shard", ranks}};
    int count = 1 + *std::max_element(uses.begin(), uses.end());
    for (int u = 0; u < count; ++u)
      addUnit("layer" + std::to_string(u), ranks, replicas);
    makeGraph();
  }

  std::string build(const BuildOptions &options) {
    plan.job.accumulation = options.accumulation;
    if (options.clip)
      plan.job.optimizer.maxGradNorm = 1;
    return schedule::buildPrograms(
        plan, graph, options,
        [&](const std::string &name, const std::vector<GradientSpec> &specs) {
          return function(name, specs);
        });
  }

  /// What `verify` says once values are freed and memory is predicted.
  std::vector<std::string> problems() {
    Plan complete = plan;
    for (Program &program : complete.programs)
      schedule::assignMemory(complete, program);
    predictMemory(complete);
    return verify(complete);
  }

  Plan plan;
  Graph graph;

private:
  void addUnit(const std::string &name, int64_t ranks, int64_t replicas) {
    Parameter parameter;
    parameter.fqn = name + ".weight";
    parameter.shape = {width, width};
    parameter.unit = static_cast<int>(plan.units.size());
    parameter.init.kind = Initializer::Kind::Ones;
    Unit unit;
    unit.name = name;
    if (ranks > 1)
      unit.shardAxes = {"dp_shard"};
    if (replicas > 1)
      unit.replicateAxes = {"dp_replicate"};
    unit.states = {{"exp_avg", DType::F32}, {"exp_avg_sq", DType::F32}};
    unit.parameters = {static_cast<int>(plan.parameters.size())};
    unit.numel = width * width;
    int64_t quantum = 64 * ranks;
    unit.padded = (unit.numel + quantum - 1) / quantum * quantum;
    unit.groupRanges = {{0, 0, unit.padded}};
    plan.parameters.push_back(parameter);
    plan.units.push_back(unit);
  }

  int addValue(const std::string &name, std::vector<int64_t> shape) {
    graph.values.push_back({name, DType::F32, std::move(shape)});
    return static_cast<int>(graph.values.size()) - 1;
  }

  void makeGraph() {
    int x = addValue("x", {rows, width});
    graph.inputs = {x};
    using Kind = BackwardOperand::Kind;
    for (size_t i = 0; i < uses.size(); ++i) {
      SegmentCall call;
      call.path = "call" + std::to_string(i);
      call.evalFunction = call.forwardFunction = "mm.forward";
      call.backwardFunction = i ? "mm.backward" : "mm.backward.first";
      call.inputs = {x};
      x = addValue(call.path, {rows, width});
      call.outputs = {x};
      ParamRef weight{uses[i], uses[i]};
      call.evalParams = call.forwardParams = {weight};
      call.backwardOperands = {{Kind::Input, 0}, {Kind::Tangent, 0}};
      if (i) {
        call.backwardParams = {weight};
        call.inputGradients = {0};
      }
      call.gradients = {weight};
      graph.calls.push_back(call);
    }
    SegmentCall loss;
    loss.path = "loss";
    loss.evalFunction = loss.forwardFunction = "loss.forward";
    loss.backwardFunction = "loss.backward";
    loss.inputs = {x};
    loss.outputs = {addValue("loss", {})};
    loss.backwardOperands = {{Kind::Input, 0}, {Kind::Tangent, 0}};
    loss.inputGradients = {0};
    graph.loss = loss.outputs[0];
    graph.calls.push_back(loss);
  }

  int function(const std::string &name,
               const std::vector<GradientSpec> &specs) {
    bool add = !specs.empty() && specs[0].accumulate;
    std::string key = name + (add ? "+0" : "");
    if (auto it = known.find(key); it != known.end())
      return it->second;
    test::FunctionBuilder b(key);
    const DType f = DType::F32;
    std::vector<int64_t> shape = {rows, width}, square = {width, width};
    int x = b.input(f, shape);
    std::vector<int> outputs;
    if (name == "mm.forward") {
      int w = b.param("weight", f, square);
      outputs = {b.make("aten::mm", {x, w}, f, shape)};
    } else if (name == "loss.forward") {
      outputs = {b.make("aten::mean", {x}, f, {})};
    } else if (name == "loss.backward") {
      int seed = b.input(f, {});
      outputs = {b.make("aten::mul.Tensor", {x, seed}, f, shape)};
    } else {
      int dy = b.input(f, shape);
      int w = name == "mm.backward" ? b.param("weight", f, square) : -1;
      int dw = b.gradient("weight", specs.at(0).dtype, square);
      b.into(add ? "aten::addmm.out" : "aten::mm.out", {x, dy, dw});
      if (w >= 0)
        outputs = {b.make("aten::mm", {dy, w}, f, shape)};
    }
    plan.functions.push_back(b.finish(outputs));
    return known[key] = static_cast<int>(plan.functions.size()) - 1;
  }

  std::vector<int> uses;
  std::map<std::string, int> known;
};

bool isCollective(StepKind kind) {
  return kind == StepKind::AllGather || kind == StepKind::ReduceScatter ||
         kind == StepKind::AllReduce;
}

/// What each stream does, in order.
std::map<Stream, std::vector<std::pair<StepKind, int>>>
collectives(const Program &program) {
  std::map<Stream, std::vector<std::pair<StepKind, int>>> result;
  for (const Step &step : program.steps)
    if (isCollective(step.kind))
      result[step.stream].push_back({step.kind, step.unit});
  return result;
}

/// The computation: calls with what they read, updates and norms.
std::vector<std::string> computation(const Program &program) {
  std::vector<std::string> result;
  for (const Step &step : program.steps)
    if (step.kind == StepKind::Call)
      result.push_back("call " + step.where + " " +
                       std::to_string(step.function));
  return result;
}

int inFlight(const Program &program, StepKind kind) {
  std::map<int, bool> open;
  int now = 0, most = 0;
  for (const Step &step : program.steps) {
    if (step.kind == kind) {
      open[step.timepoint] = true;
      most = std::max(most, ++now);
    } else if (step.kind == StepKind::Await && open.count(step.timepoint)) {
      --now;
    }
  }
  return most;
}

struct Case {
  std::vector<int> uses;
  int64_t ranks = 2, replicas = 1, forward = 1, backward = 1;
  BuildOptions options;
  std::string text() const {
    std::string t = "uses";
    for (int u : uses)
      t += " " + std::to_string(u);
    return t + ", ranks " + std::to_string(replicas) + " x " +
           std::to_string(ranks) + ", depth " + std::to_string(forward) + "/" +
           std::to_string(backward) + ", accumulation " +
           std::to_string(options.accumulation) +
           (options.keepUnsharded ? " unsharded" : "") +
           (options.updateInline ? ", inline" : "") +
           (options.clip ? ", clip" : "") + ", " + options.reduceScatter;
  }
};

void check(Case c) {
  SCOPED_TRACE(c.text());
  Chain chain(c.uses, c.ranks, c.replicas);
  c.options.units.resize(chain.plan.units.size(), c.options.units.empty()
                                                      ? schedule::UnitPolicy()
                                                      : c.options.units[0]);
  ASSERT_EQ(chain.build(c.options), "");
  ASSERT_EQ(chain.problems(), std::vector<std::string>()) << "as built";
  for (Program &program : chain.plan.programs) {
    SCOPED_TRACE(program.name);
    Program before = program;
    schedule::hoistGathers(program, c.forward, c.backward);
    if (c.forward == 0 && c.backward == 0)
      EXPECT_EQ(program, before);
    // Reductions stay as they are; gathers only get fewer.
    auto was = collectives(before), is = collectives(program);
    EXPECT_EQ(is[Stream::Reduce], was[Stream::Reduce]);
    size_t matched = 0;
    for (auto &gather : was[Stream::Gather])
      if (matched < is[Stream::Gather].size() &&
          is[Stream::Gather][matched] == gather)
        ++matched;
    EXPECT_EQ(matched, is[Stream::Gather].size());
    EXPECT_EQ(computation(program), computation(before));
    EXPECT_LE(inFlight(program, StepKind::AllGather),
              1 + std::max(c.forward, c.backward));
  }
  ASSERT_EQ(chain.problems(), std::vector<std::string>())
      << "after hoist-gathers";
  for (Program &program : chain.plan.programs) {
    SCOPED_TRACE(program.name);
    Program before = program;
    schedule::sinkAwaits(program);
    EXPECT_EQ(collectives(program), collectives(before));
    EXPECT_EQ(computation(program), computation(before));
    EXPECT_EQ(program.steps.size(), before.steps.size());
    EXPECT_LE(inFlight(program, StepKind::ReduceScatter), 1);
    EXPECT_LE(inFlight(program, StepKind::AllReduce), 1);
  }
  ASSERT_EQ(chain.problems(), std::vector<std::string>())
      << "after sink-awaits";
}

TEST(Overlap, OneGatherAheadOverlapsTheCallBefore) {
  Chain chain({0, 1, 2}, 2);
  BuildOptions options;
  options.units.resize(3);
  ASSERT_EQ(chain.build(options), "");
  Program &train = chain.plan.programs[0];
  auto callsBetween = [&](int unit) {
    int timepoint = -1, calls = 0;
    for (const Step &step : train.steps) {
      if (step.kind == StepKind::AllGather && step.unit == unit &&
          timepoint < 0)
        timepoint = step.timepoint;
      else if (step.kind == StepKind::Await && step.timepoint == timepoint)
        return calls;
      else if (timepoint >= 0 && step.kind == StepKind::Call)
        ++calls;
    }
    return -1;
  };
  EXPECT_EQ(callsBetween(1), 0);
  schedule::hoistGathers(train, 1, 1);
  EXPECT_EQ(callsBetween(0), 0); // nothing comes before it
  EXPECT_EQ(callsBetween(1), 1);
  EXPECT_EQ(callsBetween(2), 1);
}

TEST(Overlap, AReductionOverlapsTheNextBackward) {
  Chain chain({0, 1, 2}, 2);
  BuildOptions options;
  options.units.resize(3);
  ASSERT_EQ(chain.build(options), "");
  Program &train = chain.plan.programs[0];
  schedule::sinkAwaits(train);
  int calls = 0, timepoint = -1;
  for (const Step &step : train.steps) {
    if (step.kind == StepKind::ReduceScatter && timepoint < 0)
      timepoint = step.timepoint;
    else if (step.kind == StepKind::Call && timepoint >= 0)
      ++calls;
    else if (step.kind == StepKind::Await && step.timepoint == timepoint)
      break;
  }
  EXPECT_EQ(calls, 1);
}

/// On a hybrid mesh a shard is reduced inside and then across the replicas. The
/// second reduction starts when the first is done, and runs beside the backward
/// after the one that hid the first.
TEST(Overlap, BothReductionsOfAHybridMeshOverlap) {
  Chain chain({0, 1, 2, 3}, 2, 2);
  BuildOptions options;
  options.units.resize(4);
  ASSERT_EQ(chain.build(options), "");
  Program &train = chain.plan.programs[0];
  /// Calls between the start and the await of each unit's reduction.
  auto hidden = [&](StepKind kind) {
    std::map<int, int> unitOf, since; // by timepoint
    std::map<int, int> calls;         // by unit
    for (const Step &step : train.steps) {
      if (step.kind == kind) {
        unitOf[step.timepoint] = step.unit;
        since[step.timepoint] = 0;
      } else if (step.kind == StepKind::Call) {
        for (auto &[timepoint, count] : since)
          ++count;
      } else if (step.kind == StepKind::Await && since.count(step.timepoint)) {
        calls[unitOf[step.timepoint]] = since[step.timepoint];
        since.erase(step.timepoint);
      }
    }
    return calls;
  };
  using Calls = std::map<int, int>;
  EXPECT_EQ(hidden(StepKind::ReduceScatter),
            (Calls{{0, 0}, {1, 0}, {2, 0}, {3, 0}}));
  schedule::sinkAwaits(train);
  // The backward goes from unit 3 to unit 0, which has nothing after it.
  EXPECT_EQ(hidden(StepKind::ReduceScatter),
            (Calls{{0, 0}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(hidden(StepKind::AllReduce),
            (Calls{{0, 0}, {1, 0}, {2, 1}, {3, 1}}));
  EXPECT_EQ(chain.problems(), std::vector<std::string>());
}

TEST(Overlap, EveryCombinationStaysSound) {
  for (const std::vector<int> &uses :
       {std::vector<int>{0}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2, 0}, {0, 0, 1, 1}})
    for (int64_t depth : {0, 1, 2, 5})
      for (int bits = 0; bits < 128; ++bits) {
        Case c;
        c.uses = uses;
        c.forward = c.backward = depth;
        c.ranks = bits & 1 ? 2 : 1;
        c.replicas = bits & 64 ? 2 : 1;
        c.options.accumulation = bits & 2 ? 3 : 1;
        c.options.keepUnsharded = bits & 4;
        c.options.clip = bits & 8;
        c.options.updateInline = !c.options.clip && (bits & 16);
        c.options.reduceScatter = bits & 16 ? "all_to_all" : "direct";
        c.options.units = {{(bits & 32) != 0}};
        check(c);
        if (HasFatalFailure())
          return;
      }
}

TEST(Overlap, RandomChainsStaySound) {
  std::mt19937 random(7);
  auto pick = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    Case c;
    int length = 1 + pick(8), units = 1 + pick(length);
    for (int i = 0; i < length; ++i)
      c.uses.push_back(i < units ? i : pick(units));
    c.ranks = 1 + pick(4);
    c.forward = pick(4);
    c.backward = pick(4);
    c.options.accumulation = 1 + pick(4);
    c.options.keepUnsharded = pick(2);
    c.options.clip = pick(2);
    c.options.updateInline = !c.options.clip && pick(2);
    c.options.reduceScatter = pick(2) ? "all_to_all" : "direct";
    c.options.units = {{pick(2) != 0}};
    check(c);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
