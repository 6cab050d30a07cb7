//===- OverlapCollectives.cpp - overlap-collectives -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/ExportFunction.h"
#include "passes/Overlap/OverlapOrder.h"
#include "passes/Passes.h"
#include "runtime/plan/Timeline.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace accel {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// From the gentlest change of the order to the farthest.
constexpr OverlapRule rules[] = {
    {OverlapRule::Beside::None, 0},
    {OverlapRule::Beside::Results, 0},
    {OverlapRule::Beside::Results, 0, true},
    {OverlapRule::Beside::Results, 1.5},
    {OverlapRule::Beside::Results, 1.5, true},
    {OverlapRule::Beside::Any, 0, true},
    {OverlapRule::Beside::Any, 1.5},
    {OverlapRule::Beside::Any, 1.5, true},
};
/// Less is not worth another order.
constexpr double leastGain = 1e-3;

bool mayStart(Operation *op) {
  return isa<sharding::AllReduceOp, sharding::AllGatherOp,
             sharding::ReduceScatterOp, sharding::AllToAllOp,
             sharding::PermuteOp, sharding::DispatchOp, sharding::CombineOp>(
             op) &&
         !op->use_empty();
}

/// A function's peak, and the node of the exchange that is under way there, of
/// several the one that was started last; -1: none.
struct Peak {
  int64_t bytes = 0;
  int started = -1;
};

/// What a function takes, whoever calls it: its inputs are kept, or given up.
struct Measured {
  Peak kept, given;
};

class FunctionOverlap {
public:
  FunctionOverlap(func::FuncOp function, aten::Device device,
                  const plan::Mesh &mesh, const Target &target, int64_t extra)
      : function(function), device(device), mesh(mesh), target(target),
        extra(extra) {}

  LogicalResult run() {
    SmallVector<Operation *> makers;
    auto exported = exportFunction(function, modesOf(function), device,
                                   Reuse::AnyDead, &makers);
    if (failed(exported))
      return failure();
    addNodes(*exported, makers);
    before = measure(*exported);
    std::vector<OverlapStep> asIs;
    for (size_t i = 0; i < nodes.size(); ++i)
      asIs.push_back({static_cast<int>(i), false});
    least = overlapSeconds(nodes, asIs, hidden) * (1 - leastGain);
    if (extra < 0)
      extra = largestExchange();
    std::vector<std::pair<double, OverlapRule>> tries;
    for (OverlapRule rule : rules) {
      rule.hidden = hidden;
      tries.push_back(
          {overlapSeconds(nodes, overlapOrder(nodes, rule), hidden), rule});
    }
    llvm::stable_sort(tries, llvm::less_first());
    for (const auto &[seconds, rule] : tries)
      if (failed(tryRule(rule)))
        return failure();
    if (!best.empty())
      apply(function, best);
    return success();
  }

private:
  /// Takes the rule's order if it is the fastest so far. While it would hold
  /// too much, the exchange that was started last before the peak is not.
  LogicalResult tryRule(const OverlapRule &rule) {
    std::vector<OverlapNode> started = nodes;
    while (true) {
      std::vector<OverlapStep> steps = overlapOrder(started, rule);
      const double seconds = overlapSeconds(nodes, steps, hidden);
      if (seconds >= least)
        return success();
      auto tried = measure(steps);
      if (failed(tried))
        return failure();
      const bool kept = tried->kept.bytes <= before.kept.bytes + extra,
                 given = tried->given.bytes <= before.given.bytes + extra;
      if (kept && given) {
        least = seconds * (1 - leastGain);
        best = std::move(steps);
        return success();
      }
      const int last = kept ? tried->given.started : tried->kept.started;
      if (last < 0)
        return success();
      started[last].exchanges = false;
    }
  }

  static SmallVector<GradientMode> modesOf(func::FuncOp function) {
    SmallVector<GradientMode> modes;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto binding = function.getResultAttrOfType<aten::BindingAttr>(
              i, aten::bindingAttr);
          binding && binding.getKind() == aten::BindingKind::ParamGrad) {
        GradientMode mode;
        if (auto to = function.getResultAttrOfType<schedule::DestinationAttr>(
                i, schedule::destinationAttr)) {
          mode.accumulate = to.getAccumulate();
          mode.dtype = toDType(to.getDtype()).value_or(mode.dtype);
        }
        modes.push_back(mode);
      }
    return modes;
  }

  static auto operationsOf(func::FuncOp function) {
    return function.getBody().front().without_terminator();
  }

  int64_t largestExchange() const {
    int64_t bytes = 0;
    for (Operation &op : operationsOf(function))
      if (mayStart(&op))
        for (Type type :
             {op.getOperand(0).getType(), op.getResult(0).getType()})
          bytes = std::max(bytes, plan::alignedBytes(aten::tensorBytes(type)));
    return bytes;
  }

  void addNodes(const plan::Function &exported, ArrayRef<Operation *> makers) {
    DenseMap<Operation *, int> numbers;
    for (Operation &op : operationsOf(function)) {
      numbers[&op] = static_cast<int>(nodes.size());
      OverlapNode &node = nodes.emplace_back();
      node.exchanges = mayStart(&op);
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp())
          node.reads.push_back(numbers.lookup(maker));
    }
    for (auto [instruction, maker] : llvm::zip(exported.instructions, makers)) {
      OverlapNode &node = nodes[numbers.lookup(maker)];
      node.seconds += exchangeSeconds(exported, instruction, mesh,
                                      target.ranksPerNode, target);
      // What a started one copies by itself is little beside it.
      if (!node.exchanges && opKind(instruction) != OpKind::View)
        node.seconds += opSeconds(exported, instruction, target);
    }
    keepOrderOfSums(numbers);
  }

  /// Products that are summed into a gradient one after the other, and calls
  /// of operators that are not modelled, keep their order: the results have the
  /// same bits.
  void keepOrderOfSums(const DenseMap<Operation *, int> &numbers) {
    auto chain = [&](std::vector<int> members) {
      llvm::sort(members);
      for (size_t i = 1; i < members.size(); ++i)
        if (members[i] != members[i - 1])
          nodes[members[i]].reads.push_back(members[i - 1]);
    };
    std::vector<int> opaque;
    for (Operation &op : operationsOf(function))
      if (isa<aten::OpaqueOp>(op))
        opaque.push_back(numbers.lookup(&op));
    chain(opaque);
    for (Value result :
         function.getBody().front().getTerminator()->getOperands()) {
      std::vector<int> products;
      SmallVector<Value> sums = {result};
      while (!sums.empty()) {
        Operation *op = sums.pop_back_val().getDefiningOp();
        if (!op)
          continue;
        if (isa<aten::AddTensorOp>(op))
          sums.append(op->operand_begin(), op->operand_begin() + 2);
        else if (isa<aten::MmOp>(op))
          products.push_back(numbers.lookup(op));
      }
      chain(products);
    }
  }

  /// `makers`, the nodes that instructions are of, are those of an order.
  Measured measure(const plan::Function &exported,
                   ArrayRef<int> makers = {}) const {
    Measured result;
    std::vector<int64_t> consumed(exported.inputs.size(), 0);
    result.kept = peakOf(exported, consumed, makers);
    for (auto [bytes, slot] : llvm::zip(consumed, exported.inputs))
      bytes = exported.slotBytes(slot);
    result.given = peakOf(exported, consumed, makers);
    return result;
  }

  static Peak peakOf(const plan::Function &exported,
                     const std::vector<int64_t> &consumed,
                     ArrayRef<int> makers) {
    const plan::FunctionProfile profile = profileFunction(exported, consumed);
    Peak peak{profile.peakTotalBytes, -1};
    SmallVector<int> underWay;
    for (int i = 0; i <= profile.peakInstruction && !makers.empty(); ++i) {
      auto exchange = plan::exchangeOf(exported.instructions[i]);
      if (exchange && exchange->started)
        underWay.push_back(makers[i]);
      else if (exchange && exchange->kind == plan::ExchangeKind::Await &&
               i < profile.peakInstruction)
        llvm::erase(underWay, makers[i]);
    }
    if (!underWay.empty())
      peak.started = underWay.back();
    return peak;
  }

  /// Of a copy in that order.
  FailureOr<Measured> measure(const std::vector<OverlapStep> &steps) {
    func::FuncOp copy = function.clone();
    copy.setName((function.getName() + ".overlapped").str());
    function->getParentOfType<mlir::ModuleOp>().insert(
        std::next(function->getIterator()), copy);
    const DenseMap<Operation *, int> numbers = apply(copy, steps);
    SmallVector<Operation *> makers;
    auto exported =
        exportFunction(copy, modesOf(copy), device, Reuse::AnyDead, &makers);
    const SmallVector<int> numbered = llvm::map_to_vector(
        makers, [&](Operation *maker) { return numbers.lookup(maker); });
    copy.erase();
    if (failed(exported))
      return failure();
    // What is copied to a gradient at the end is of no node.
    SmallVector<int> all(numbered);
    all.resize(exported->instructions.size(), -1);
    return measure(*exported, all);
  }

  /// The node of each operation, awaits among them.
  DenseMap<Operation *, int> apply(func::FuncOp to,
                                   const std::vector<OverlapStep> &steps) {
    assert(overlapProblem(nodes, steps).empty() && "the order is valid");
    SmallVector<Operation *> ops;
    DenseMap<Operation *, int> numbers;
    for (Operation &op : operationsOf(to)) {
      numbers[&op] = static_cast<int>(ops.size());
      ops.push_back(&op);
    }
    Operation *end = to.getBody().front().getTerminator();
    OpBuilder builder(end);
    struct Beside {
      int operators = 0;
      double seconds = 0;
    };
    llvm::MapVector<int, Beside> underWay;
    DenseSet<int> awaited;
    for (const OverlapStep &step : steps)
      if (step.awaits)
        awaited.insert(step.node);
    for (const OverlapStep &step : steps) {
      Operation *op = ops[step.node];
      const OverlapNode &node = nodes[step.node];
      if (!step.awaits) {
        op->moveBefore(end);
        if (node.exchanges && awaited.contains(step.node))
          underWay[step.node] = {};
        else if (node.seconds > 0)
          for (auto &[started, beside] : underWay)
            ++beside.operators, beside.seconds += node.seconds;
        continue;
      }
      const Beside beside = underWay.lookup(step.node);
      underWay.erase(step.node);
      std::string why;
      llvm::raw_string_ostream(why)
          << llvm::format("%.3g", 1e3 * node.seconds) << " ms, beside "
          << beside.operators << " operator"
          << (beside.operators == 1 ? "" : "s") << " of "
          << llvm::format("%.3g", 1e3 * beside.seconds) << " ms";
      op->setAttr(schedule::startAttr, builder.getStringAttr(why));
      Value value = isa<sharding::AllReduceOp, sharding::CombineOp>(op)
                        ? Value() // it reads a copy
                        : op->getOperand(0);
      auto await = schedule::AwaitExchangeOp::create(builder, op->getLoc(),
                                                     op->getResult(0).getType(),
                                                     op->getResult(0), value);
      op->getResult(0).replaceAllUsesExcept(await.getResult(), await);
      numbers[await] = step.node;
    }
    return numbers;
  }

  func::FuncOp function;
  aten::Device device;
  const plan::Mesh &mesh;
  const Target &target;
  /// Of what does not hide nothing is gained.
  const double hidden = std::max(0.0, target.overlap);
  int64_t extra;
  std::vector<OverlapNode> nodes;
  Measured before;
  double least = 0; // seconds that another order must stay below
  std::vector<OverlapStep> best;
};

struct OverlapCollectivesPass
    : accel::impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  using OverlapCollectivesPassBase::OverlapCollectivesPassBase;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && exchanges(function))
        functions.push_back(function);
    auto axes = sharding::findOnly<sharding::MeshOp>(module);
    if (functions.empty() || !axes)
      return;
    auto job = sharding::findOnly<sharding::JobOp>(module);
    const bool onCpu = job && job.getDevice() == "cpu";
    std::string name = target;
    if (name.empty())
      name = onCpu ? "cpu" : "h100-sxm-80gb";
    accel::DiagnosticEngine problems;
    std::optional<Target> machine = loadTarget(name, problems);
    if (!machine) {
      module.emitError("overlap-collectives knows no target '") << name << "'";
      return signalPassFailure();
    }
    plan::Mesh mesh;
    for (auto axis : axes.getAxes().getAsRange<sharding::AxisAttr>())
      mesh.resize(axis.getName().str(), axis.getSize());
    for (func::FuncOp function : functions)
      if (failed(FunctionOverlap(function,
                                 onCpu ? aten::Device::Cpu : aten::Device::Cuda,
                                 mesh, *machine, extraBytes)
                     .run()))
        return signalPassFailure();
  }

private:
  /// Something may be started, and nothing is yet.
  static bool exchanges(func::FuncOp function) {
    bool any = false;
    for (Operation &op : function.getBody().front()) {
      if (op.hasAttr(schedule::startAttr))
        return false;
      any |= mayStart(&op);
    }
    return any;
  }
};

} // namespace
