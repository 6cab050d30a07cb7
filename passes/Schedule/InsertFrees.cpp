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

void insertFrees(ProgramOp program, function_ref<bool(CallOp, size_t)> drops) {
  Block &body = program.getBody().front();
  for (auto free : llvm::make_early_inc_range(body.getOps<FreeOp>()))
    if (isActivation(free.getBuffers()[0]))
      free.erase();
  DenseMap<Value, Operation *> lastUse;
  llvm::DenseSet<Value> kept(body.args_begin(), body.args_end());
  if (Value loss = cast<ReturnOp>(body.getTerminator()).getLoss())
    kept.insert(loss);
  SmallVector<CallOp> calls = llvm::to_vector(body.getOps<CallOp>());
  for (CallOp call : calls)
    for (Value input : call.getInputs())
      lastUse[input] = call;
  OpBuilder builder(program.getContext());
  for (CallOp call : calls) {
    SmallVector<int64_t> consumes;
    SmallVector<Value> unused;
    for (auto [i, input] : llvm::enumerate(call.getInputs())) {
      if (kept.contains(input) || lastUse.lookup(input) != call ||
          llvm::is_contained(call.getInputs().drop_front(i + 1), input))
        continue;
      if (drops(call, i))
        consumes.push_back(i);
      else
        unused.push_back(input);
    }
    for (Value output : call.getOutputs())
      if (!lastUse.contains(output) && !kept.contains(output))
        unused.push_back(output);
    call.setConsumes(consumes);
    if (unused.empty())
      continue;
    builder.setInsertionPointAfter(call);
    FreeOp::create(builder, call.getLoc(), unused, Stream::Compute);
  }
}

} // namespace accel::schedule
