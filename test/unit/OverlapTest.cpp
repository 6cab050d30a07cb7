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
#include "dialects/Schedule/Convert.h"
#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/HoistGathers.h"
#include "passes/Schedule/InsertFrees.h"
#include "passes/Schedule/SinkAwaits.h"
#include "passes/Schedule/WritePrograms.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace accel;
using namespace accel::plan;
using accel::schedule::AllGatherStartOp;
using accel::schedule::AllReduceStartOp;
using accel::schedule::AwaitOp;
using accel::schedule::BackwardOperand;
using accel::schedule::CallOp;
using accel::schedule::Graph;
using accel::schedule::ProgramOp;
using accel::schedule::ReduceScatterStartOp;
using accel::schedule::SegmentCall;
using accel::schedule::WriteOptions;

namespace {

constexpr int64_t width = 16, rows = 4;

/// A chain of matmuls; `units[i]` is the unit whose weight call i reads, so a
/// number that comes twice is a tied weight.
class Chain {
public:
  Chain(std::vector<int> units, int64_t ranks, int64_t replicas = 1)
      : context(mlir::MLIRContext::Threading::DISABLED),
        module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))),
        uses(std::move(units)) {
    context.loadDialect<schedule::ScheduleDialect>();
    plan.device = "cpu";
    plan.job.optimizer.groups = {{}};
    plan.axes = {{"dp_replicate", replicas}, {"dp_shard", ranks}};
    int count = 1 + *std::max_element(uses.begin(), uses.end());
    for (int u = 0; u < count; ++u)
      addUnit("layer" + std::to_string(u), ranks, replicas);
    makeGraph();
  }

  /// Writes the programs to the module.
  bool build(const WriteOptions &options) {
    const int programs = std::min<int>(options.accumulation, 3);
    plan.job.accumulation = options.accumulation;
    plan.step.clear();
    for (int i = 0; i < programs; ++i)
      plan.step.emplace_back(
          i, programs == 3 && i == 1 ? options.accumulation - 2 : 1);
    plan.eval = programs;
    if (options.issue.clip)
      plan.job.optimizer.maxGradNorm = 1;
    return succeeded(schedule::writePrograms(
        *module, plan, graph, options,
        [&](const std::string &name, const std::vector<GradientMode> &modes)
            -> mlir::FailureOr<schedule::Callee> {
          return callee(plan.functions[function(name, modes)]);
        }));
  }

  std::vector<ProgramOp> programs() {
    auto ops = module->getOps<ProgramOp>();
    return {ops.begin(), ops.end()};
  }
  /// The programs as a plan has them, with activations freed.
  Plan translated() {
    Plan result = plan;
    result.programs.clear();
    for (ProgramOp program : programs()) {
      mlir::OwningOpRef<ProgramOp> copy = program.clone();
      schedule::insertFrees(*copy, [&](CallOp call, size_t input) {
        return drops(call.getCallee(), input);
      });
      mlir::FailureOr<Program> exported = schedule::exportProgram(*copy, plan);
      EXPECT_TRUE(succeeded(exported));
      if (succeeded(exported))
        result.programs.push_back(*exported);
    }
    return result;
  }
  /// What `verify` says once values are freed and memory is predicted.
  std::vector<std::string> problems() {
    Plan complete = translated();
    predictMemory(complete);
    return verify(complete);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Plan plan;
  Graph graph;

private:
  bool drops(llvm::StringRef name, size_t input) const {
    for (const Function &f : plan.functions)
      if (f.name == name)
        for (const Instruction &instruction : f.instructions)
          if (std::count(instruction.frees.begin(), instruction.frees.end(),
                         f.inputs[input]))
            return true;
    return false;
  }

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

  static schedule::Callee callee(const Function &f) {
    schedule::Callee result;
    result.name = f.name;
    for (int slot : f.outputs)
      result.results.push_back(
          {f.slots[slot].dtype, f.slots[slot].shape, f.slotBytes(slot), -1});
    return result;
  }

  int function(const std::string &name,
               const std::vector<GradientMode> &specs) {
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

std::string text(mlir::Operation *op) {
  std::string result;
  llvm::raw_string_ostream out(result);
  op->print(out);
  return result;
}

/// What each stream does, in order.
std::map<schedule::Stream, std::vector<std::pair<std::string, std::string>>>
collectives(ProgramOp program) {
  std::map<schedule::Stream, std::vector<std::pair<std::string, std::string>>>
      result;
  for (mlir::Operation &op : program.getBody().front())
    if (mlir::isa<AllGatherStartOp, ReduceScatterStartOp, AllReduceStartOp>(op))
      result[op.getAttrOfType<schedule::StreamAttr>("stream").getValue()]
          .push_back(
              {op.getName().getStringRef().str(), schedule::unitOf(&op).str()});
  return result;
}

/// The calls, in order.
std::vector<std::string> computation(ProgramOp program) {
  std::vector<std::string> result;
  for (auto call : program.getBody().getOps<CallOp>())
    result.push_back(call.getCallee().str());
  return result;
}

size_t numSteps(ProgramOp program) {
  return program.getBody().front().getOperations().size();
}

/// Starts of this kind that are in flight at once, at most.
template <typename StartOp> int inFlight(ProgramOp program) {
  int now = 0, most = 0;
  for (mlir::Operation &op : program.getBody().front()) {
    if (mlir::isa<StartOp>(op))
      most = std::max(most, ++now);
    else if (auto await = mlir::dyn_cast<AwaitOp>(op);
             await && mlir::isa<StartOp>(schedule::startOf(await)))
      --now;
  }
  return most;
}

/// Calls between the start of each unit's first collective of this kind and its
/// await.
template <typename StartOp>
std::map<std::string, int> callsBetween(ProgramOp program) {
  std::map<std::string, int> result;
  for (auto start : program.getBody().getOps<StartOp>()) {
    int calls = 0;
    for (mlir::Operation *op = start;
         op != schedule::awaitOf(start).getOperation(); op = op->getNextNode())
      calls += mlir::isa<CallOp>(op);
    result.emplace(schedule::unitOf(start).str(), calls);
  }
  return result;
}

struct Case {
  std::vector<int> uses;
  int64_t ranks = 2, replicas = 1, forward = 1, backward = 1;
  WriteOptions options;
  std::string text() const {
    std::string t = "uses";
    for (int u : uses)
      t += " " + std::to_string(u);
    return t + ", ranks " + std::to_string(replicas) + " x " +
           std::to_string(ranks) + ", depth " + std::to_string(forward) + "/" +
           std::to_string(backward) + ", accumulation " +
           std::to_string(options.accumulation) +
           (options.issue.keepUnsharded ? " unsharded" : "") +
           (options.issue.updateInline ? ", inline" : "") +
           (options.issue.clip ? ", clip" : "") + ", " + options.reduceScatter;
  }
};

/// Nothing overlaps.
WriteOptions awaitedAtOnce(size_t units) {
  WriteOptions options;
  options.reshardAfterForward.assign(units, true);
  options.issue.forwardPrefetch = options.issue.backwardPrefetch = 0;
  options.issue.awaitReductions = 1 << 20;
  return options;
}

void check(Case c) {
  SCOPED_TRACE(c.text());
  Chain chain(c.uses, c.ranks, c.replicas);
  const bool reshard = c.options.reshardAfterForward[0];
  c.options.reshardAfterForward.assign(chain.plan.units.size(), reshard);
  c.options.issue.forwardPrefetch = c.forward;
  c.options.issue.backwardPrefetch = c.backward;

  // As lower-to-schedule writes them.
  Chain issued(c.uses, c.ranks, c.replicas);
  ASSERT_TRUE(issued.build(c.options));
  ASSERT_EQ(issued.problems(), std::vector<std::string>()) << "as issued";
  std::map<std::string, std::string> wanted;
  for (ProgramOp program : issued.programs()) {
    SCOPED_TRACE(program.getSymName().str());
    std::string &want = wanted[program.getSymName().str()] = text(program);
    schedule::hoistGathers(program, c.forward, c.backward);
    schedule::sinkAwaits(program);
    EXPECT_EQ(text(program), want) << "the passes change what was issued";
  }

  // Awaited at once, and moved by the passes.
  c.options.issue.forwardPrefetch = c.options.issue.backwardPrefetch = 0;
  c.options.issue.awaitReductions = 1 << 20;
  ASSERT_TRUE(chain.build(c.options));
  ASSERT_EQ(chain.problems(), std::vector<std::string>()) << "as built";
  for (ProgramOp program : chain.programs()) {
    SCOPED_TRACE(program.getSymName().str());
    mlir::OwningOpRef<ProgramOp> before = program.clone();
    schedule::hoistGathers(program, c.forward, c.backward);
    // Reductions stay as they are; gathers only get fewer.
    auto was = collectives(*before), is = collectives(program);
    EXPECT_EQ(is[schedule::Stream::Reduce], was[schedule::Stream::Reduce]);
    size_t matched = 0;
    for (auto &gather : was[schedule::Stream::Gather])
      if (matched < is[schedule::Stream::Gather].size() &&
          is[schedule::Stream::Gather][matched] == gather)
        ++matched;
    EXPECT_EQ(matched, is[schedule::Stream::Gather].size());
    EXPECT_EQ(computation(program), computation(*before));
    EXPECT_LE(inFlight<AllGatherStartOp>(program),
              1 + std::max(c.forward, c.backward));
  }
  ASSERT_EQ(chain.problems(), std::vector<std::string>())
      << "after hoist-gathers";
  for (ProgramOp program : chain.programs()) {
    SCOPED_TRACE(program.getSymName().str());
    mlir::OwningOpRef<ProgramOp> before = program.clone();
    schedule::sinkAwaits(program);
    EXPECT_EQ(collectives(program), collectives(*before));
    EXPECT_EQ(computation(program), computation(*before));
    EXPECT_EQ(numSteps(program), numSteps(*before));
    EXPECT_LE(inFlight<ReduceScatterStartOp>(program), 1);
    EXPECT_LE(inFlight<AllReduceStartOp>(program), 1);
    EXPECT_EQ(text(program), wanted[program.getSymName().str()]);
  }
  ASSERT_EQ(chain.problems(), std::vector<std::string>())
      << "after sink-awaits";
}

TEST(Overlap, OneGatherAheadOverlapsTheCallBefore) {
  Chain chain({0, 1, 2}, 2);
  WriteOptions options = awaitedAtOnce(3);
  ASSERT_TRUE(chain.build(options));
  ProgramOp train = chain.programs()[0];
  EXPECT_EQ(callsBetween<AllGatherStartOp>(train)["layer1"], 0);
  schedule::hoistGathers(train, 1, 1);
  // Nothing comes before the first.
  EXPECT_EQ(callsBetween<AllGatherStartOp>(train),
            (std::map<std::string, int>{
                {"layer0", 0}, {"layer1", 1}, {"layer2", 1}}));
}

TEST(Overlap, AReductionOverlapsTheNextBackward) {
  Chain chain({0, 1, 2}, 2);
  WriteOptions options = awaitedAtOnce(3);
  ASSERT_TRUE(chain.build(options));
  ProgramOp train = chain.programs()[0];
  schedule::sinkAwaits(train);
  EXPECT_EQ(callsBetween<ReduceScatterStartOp>(train)["layer2"], 1);
}

/// On a hybrid mesh a shard is reduced inside and then across the replicas. The
/// second reduction starts when the first is done, and runs beside the backward
/// after the one that hid the first.
TEST(Overlap, BothReductionsOfAHybridMeshOverlap) {
  Chain chain({0, 1, 2, 3}, 2, 2);
  WriteOptions options = awaitedAtOnce(4);
  ASSERT_TRUE(chain.build(options));
  ProgramOp train = chain.programs()[0];
  using Calls = std::map<std::string, int>;
  EXPECT_EQ(
      callsBetween<ReduceScatterStartOp>(train),
      (Calls{{"layer0", 0}, {"layer1", 0}, {"layer2", 0}, {"layer3", 0}}));
  schedule::sinkAwaits(train);
  // The backward goes from unit 3 to unit 0, which has nothing after it.
  EXPECT_EQ(
      callsBetween<ReduceScatterStartOp>(train),
      (Calls{{"layer0", 0}, {"layer1", 1}, {"layer2", 1}, {"layer3", 1}}));
  EXPECT_EQ(
      callsBetween<AllReduceStartOp>(train),
      (Calls{{"layer0", 0}, {"layer1", 0}, {"layer2", 1}, {"layer3", 1}}));
  EXPECT_EQ(chain.problems(), std::vector<std::string>());
}

TEST(Overlap, EveryCombinationStaysSound) {
  for (const std::vector<int> &uses :
       {std::vector<int>{0}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2, 0}, {0, 0, 1, 1}})
    for (int64_t depth : {0, 1, 3})
      for (int bits = 0; bits < 128; ++bits) {
        Case c;
        c.uses = uses;
        c.forward = c.backward = depth;
        c.ranks = bits & 1 ? 2 : 1;
        c.replicas = bits & 64 ? 2 : 1;
        c.options.accumulation = bits & 2 ? 3 : 1;
        c.options.issue.keepUnsharded = bits & 4;
        c.options.issue.clip = bits & 8;
        c.options.issue.updateInline = !c.options.issue.clip && (bits & 16);
        c.options.reduceScatter = bits & 16 ? "all_to_all" : "direct";
        c.options.reshardAfterForward = {(bits & 32) != 0};
        check(c);
        if (HasFatalFailure())
          return;
      }
}

TEST(Overlap, RandomChainsStaySound) {
  std::mt19937 random(7);
  auto pick = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    Case c;
    int length = 1 + pick(8), units = 1 + pick(length);
    for (int i = 0; i < length; ++i)
      c.uses.push_back(i < units ? i : pick(units));
    c.ranks = 1 + pick(4);
    c.forward = pick(4);
    c.backward = pick(4);
    c.options.accumulation = 1 + pick(4);
    c.options.issue.keepUnsharded = pick(2);
    c.options.issue.clip = pick(2);
    c.options.issue.updateInline = !c.options.issue.clip && pick(2);
    c.options.reduceScatter = pick(2) ? "all_to_all" : "direct";
    c.options.reshardAfterForward = {pick(2) != 0};
    check(c);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
