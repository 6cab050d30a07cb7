//===- HoistGathers.cpp - hoist-gathers -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/HoistGathers.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/RecordPeaks.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_HOISTGATHERSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;

namespace accel::schedule {
namespace {

bool isGathered(Value buffer) {
  std::optional<UnitBuffer> at = unitBufferOf(buffer);
  return at && at->role == Role::Gathered;
}

/// The unit is gathered anew after it: a gather must not move above it.
bool endsUse(Operation *op) {
  if (auto free = dyn_cast<FreeOp>(op))
    return isGathered(free.getBuffers()[0]);
  return isa<OptimizerStepOp, HostStepOp>(op);
}

class Hoister {
public:
  explicit Hoister(Block &body) {
    for (auto [i, op] : llvm::enumerate(body)) {
      at[&op] = {i, numCalls};
      numCalls += isa<CallOp>(op);
    }
  }

  void run(Block &body, int64_t forward, int64_t backward) {
    if (Value loss = cast<ReturnOp>(body.getTerminator()).getLoss())
      lossCall = loss.getDefiningOp();
    for (Operation &op : body) {
      if (endsUse(&op))
        lastUse[unitOf(&op)] = &op;
      if (auto start = dyn_cast<AllGatherStartOp>(op))
        visit(start, forward, backward);
    }
    for (auto &[target, ops] : moves)
      for (Operation *op : llvm::reverse(ops))
        op->moveAfter(target);
  }

private:
  struct Position {
    size_t index = 0, calls = 0; // calls before it
  };

  size_t indexOf(Operation *op) const { return at.lookup(op).index; }
  Operation *later(Operation *a, Operation *b) const {
    return !b || (a && indexOf(a) > indexOf(b)) ? a : b;
  }

  /// It is gathered for a call after the loss.
  bool isBackward(AwaitOp await) const {
    Operation *reader = await;
    for (Operation *user : await->getResult(0).getUsers())
      if (isa<CallOp>(user) &&
          (reader == await || indexOf(user) < indexOf(reader)))
        reader = user;
    return lossCall && indexOf(reader) > indexOf(lossCall);
  }

  void visit(AllGatherStartOp start, int64_t forward, int64_t backward) {
    auto alloc = start.getBuffer().getDefiningOp<AllocOp>();
    AwaitOp await = awaitOf(start);
    if (!await)
      return;
    const int64_t depth = isBackward(await) ? backward : forward;
    const bool overlaps = at.lookup(await).calls != at.lookup(start).calls;
    Operation *target = nullptr;
    if (alloc && depth > 0 && !awaits.empty() && !overlaps) {
      target = awaits[awaits.size() - std::min<size_t>(awaits.size(), depth)];
      if (Operation *own = lastUse.lookup(start.getUnitAttr());
          own && indexOf(own) < indexOf(alloc))
        target = later(target, own);
      target = later(target, latest);
    }
    if (target && indexOf(target) < indexOf(alloc)) {
      moves[target].append({alloc, start});
      latest = target;
    } else {
      latest = later(start, latest);
    }
    awaits.push_back(await);
  }

  DenseMap<Operation *, Position> at; // before anything moves
  size_t numCalls = 0;
  Operation *lossCall = nullptr; // computes the loss, or null
  DenseMap<StringAttr, Operation *> lastUse;
  SmallVector<Operation *> awaits; // of the gathers so far
  Operation *latest = nullptr;     // after which the last gather starts
  llvm::MapVector<Operation *, SmallVector<Operation *>> moves; // after it
};

/// The gather of the unit that `free` frees, if neither a call nor an update of
/// the unit stands in between.
AllGatherStartOp gatheredAgain(FreeOp free) {
  StringAttr unit = unitOf(free);
  for (Operation *op = free->getNextNode(); op && !isa<CallOp>(op);
       op = op->getNextNode()) {
    if (isa<OptimizerStepOp, HostStepOp>(op) && unitOf(op) == unit)
      return {};
    auto alloc = dyn_cast<AllocOp>(op);
    if (alloc && alloc.getUnitAttr() == unit &&
        alloc.getRole() == Role::Gathered)
      return alloc->hasOneUse()
                 ? dyn_cast<AllGatherStartOp>(*alloc->getUsers().begin())
                 : AllGatherStartOp();
  }
  return {};
}

void keepGathered(Block &body) {
  for (auto free : llvm::to_vector(body.getOps<FreeOp>())) {
    if (!isGathered(free.getBuffers()[0]))
      continue;
    AllGatherStartOp start = gatheredAgain(free);
    AwaitOp await = start ? awaitOf(start) : AwaitOp();
    if (!await)
      continue;
    await->getResult(0).replaceAllUsesWith(free.getBuffers()[0]);
    Operation *alloc = start.getBuffer().getDefiningOp();
    for (Operation *op : {await.getOperation(), start.getOperation(), alloc,
                          free.getOperation()})
      op->erase();
  }
}

struct HoistGathersPass : accel::impl::HoistGathersPassBase<HoistGathersPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto prefetch = job ? job.getPrefetchAttr() : sharding::PrefetchAttr();
    if (!prefetch) {
      getOperation().emitError("hoist-gathers needs a sharding.job with its "
                               "prefetch decision");
      return signalPassFailure();
    }
    for (auto program : getOperation().getOps<ProgramOp>()) {
      // Other micro-batches of a stage gather between its two parts.
      if (program->hasAttr(stageAttr))
        continue;
      hoistGathers(program, prefetch.getForward(), prefetch.getBackward());
      if (failed(recordPeaks(program)))
        return signalPassFailure();
    }
  }
};

} // namespace

void hoistGathers(ProgramOp program, int64_t forward, int64_t backward) {
  Block &body = program.getBody().front();
  Hoister(body).run(body, forward, backward);
  if (backward > 0)
    keepGathered(body);
}

} // namespace accel::schedule
