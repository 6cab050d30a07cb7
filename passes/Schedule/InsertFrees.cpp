//===- InsertFrees.cpp - insert-frees -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/InsertFrees.h"

#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/RecordPeaks.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_INSERTFREESPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;

namespace accel::schedule {
namespace {

struct InsertFreesPass : accel::impl::InsertFreesPassBase<InsertFreesPass> {
  void runOnOperation() override {
    auto &callees = getAnalysis<CalleeMemory>();
    for (auto program : getOperation().getOps<ProgramOp>()) {
      bool known = true;
      for (auto call : program.getBody().getOps<CallOp>())
        known &= callees.get(call) != nullptr;
      if (!known)
        return signalPassFailure();
      insertFrees(program, [&](CallOp call, size_t input) {
        return callees.get(call)->drops(input);
      });
      if (failed(recordPeaks(program, &callees)))
        return signalPassFailure();
    }
    markAnalysesPreserved<CalleeMemory>();
  }
};

} // namespace

/// The activations that `op` reads.
static SmallVector<Value> activationsOf(Operation *op) {
  if (auto call = dyn_cast<CallOp>(op))
    return llvm::to_vector_of<Value>(call.getInputs());
  if (auto send = dyn_cast<SendStartOp>(op))
    return {send.getValue()};
  if (auto handOver = dyn_cast<HandOverOp>(op))
    return {handOver.getValue()};
  if (auto await = dyn_cast<AwaitSendOp>(op))
    return llvm::to_vector_of<Value>(await.getValues());
  if (auto save = dyn_cast<SaveStartOp>(op))
    return llvm::to_vector_of<Value>(save.getValues());
  return {};
}

void insertFrees(ProgramOp program, function_ref<bool(CallOp, size_t)> drops) {
  Block &body = program.getBody().front();
  for (auto free : llvm::make_early_inc_range(body.getOps<FreeOp>()))
    if (isActivation(free.getBuffers()[0]))
      free.erase();
  DenseMap<Value, Operation *> lastUse;
  llvm::DenseSet<Value> kept(body.args_begin(), body.args_end());
  auto end = cast<ReturnOp>(body.getTerminator());
  for (Value result : {Value(end.getLoss()), Value(end.getPredictions())})
    if (result)
      kept.insert(result);
  // Calls, messages to and from other stages, copies to and from the host.
  SmallVector<Operation *> users;
  for (Operation &op : body) {
    if (isa<CallOp, SendStartOp, HandOverOp, AwaitSendOp, ReceiveOp,
            SaveStartOp, AwaitFetchOp>(op))
      users.push_back(&op);
    for (Value value : activationsOf(&op))
      lastUse[value] = &op;
  }
  OpBuilder builder(program.getContext());
  for (Operation *op : users) {
    auto call = dyn_cast<CallOp>(op);
    const SmallVector<Value> inputs = activationsOf(op);
    SmallVector<int64_t> consumes;
    SmallVector<Value> unused;
    for (auto [i, input] : llvm::enumerate(inputs)) {
      if (kept.contains(input) || lastUse.lookup(input) != op ||
          llvm::is_contained(ArrayRef<Value>(inputs).drop_front(i + 1), input))
        continue;
      if (call && drops(call, i))
        consumes.push_back(i);
      else
        unused.push_back(input);
    }
    for (Value output : op->getResults())
      if (isa<BufferType>(output.getType()) && !lastUse.contains(output) &&
          !kept.contains(output))
        unused.push_back(output);
    if (call)
      call.setConsumes(consumes);
    if (unused.empty())
      continue;
    builder.setInsertionPointAfter(op);
    FreeOp::create(builder, op->getLoc(), unused, Stream::Compute);
  }
}

} // namespace accel::schedule
