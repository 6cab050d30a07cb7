//===- SinkAwaits.cpp - sink-awaits ---------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/SinkAwaits.h"

#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/RecordPeaks.h"

#include "mlir/Pass/Pass.h"

#include <deque>

namespace accel {
#define GEN_PASS_DEF_SINKAWAITSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;

namespace accel::schedule {
namespace {

/// Walks a program and holds back what follows the start of a reduction until
/// the next one begins.
class Sinker {
public:
  void run(Block &body) {
    bool allocated = false; // what the reduction at hand needs
    for (Operation *op = &body.front(); op; op = next) {
      next = op->getNextNode();
      auto alloc = dyn_cast<AllocOp>(op);
      const bool receive = alloc && alloc.getRole() == Role::Receive;
      const bool start = startsReduction(op);
      if (receive || (start && !allocated))
        flushEach(op);
      if (isa<GradNormOp, OptimizerStepOp, HostStepOp, PauseOp, ReturnOp>(op) ||
          readsHeld(op))
        flushAll(op);
      if (start)
        hold(op);
      // Between them stands at most the allocation of the gradient's shard.
      allocated = receive || (allocated && alloc &&
                              alloc.getRole() == Role::ShardGradient);
    }
  }

private:
  using Tail = SmallVector<Operation *>;

  /// Holds the await of `start` and what its unit does next.
  void hold(Operation *start) {
    Tail tail;
    StringAttr unit = unitOf(start);
    while (unitOf(next) == unit && !isa<AllocOp>(next) && !gathers(next)) {
      tail.push_back(next);
      waiting.insert(next);
      next = next->getNextNode();
    }
    held.push_back(std::move(tail));
  }

  /// It is about a gathered buffer that the program makes. Of a unit that is
  /// whole, the gather follows the update.
  static bool gathers(Operation *op) {
    if (auto start = dyn_cast<AllGatherStartOp>(op))
      return start.getBuffer().getDefiningOp<AllocOp>() != nullptr;
    if (auto await = dyn_cast<AwaitOp>(op))
      return gathers(startOf(await));
    auto free = dyn_cast<FreeOp>(op);
    return free && unitBufferOf(free.getBuffers()[0])->role == Role::Gathered;
  }

  bool readsHeld(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return waiting.contains(operand.getDefiningOp());
    });
  }

  /// Places the oldest tail before `op`; behind the start of a reduction in it,
  /// the rest is held again.
  void flushOne(Operation *op) {
    if (held.empty())
      return;
    Tail tail = std::move(held.front());
    held.pop_front();
    for (auto [i, each] : llvm::enumerate(tail)) {
      each->moveBefore(op);
      waiting.erase(each);
      if (startsReduction(each)) {
        held.emplace_back(tail.begin() + i + 1, tail.end());
        return;
      }
    }
  }
  /// One stage of each: a unit's reduction across replicas begins where its
  /// reduction inside shards ends.
  void flushEach(Operation *op) {
    for (size_t n = held.size(); n > 0; --n)
      flushOne(op);
  }
  void flushAll(Operation *op) {
    while (!held.empty())
      flushOne(op);
  }

  Operation *next = nullptr;
  std::deque<Tail> held;
  llvm::DenseSet<Operation *> waiting; // all that is held
};

struct SinkAwaitsPass : accel::impl::SinkAwaitsPassBase<SinkAwaitsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      sinkAwaits(program);
      if (failed(recordPeaks(program)))
        return signalPassFailure();
    }
  }
};

} // namespace

void sinkAwaits(ProgramOp program) { Sinker().run(program.getBody().front()); }

} // namespace accel::schedule
