//===- RecordPeaks.cpp - The peak of a program ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/RecordPeaks.h"

#include "passes/Schedule/Buffers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::schedule {
namespace {

class Counter {
public:
  Counter(ProgramOp program, CalleeMemory *callees)
      : program(program), callees(callees) {}

  LogicalResult run() {
    Block &body = program.getBody().front();
    live = program.getPersistentBytes();
    for (BlockArgument argument : body.getArguments()) {
      live += bytesOf(argument);
      if (isActivation(argument))
        define(argument, argument);
    }
    ownPeak = totalPeak = live;
    int64_t step = 0;
    for (Operation &op : body) {
      if (failed(visit(&op, step)))
        return failure();
      raise(live, live, step++);
    }
    Builder builder(program.getContext());
    program.setPeakBytesAttr(builder.getI64IntegerAttr(ownPeak));
    program.setPeakInstructionAttr(builder.getI64IntegerAttr(peakInstruction));
    return success();
  }

private:
  void raise(int64_t own, int64_t total, int64_t step) {
    ownPeak = std::max(ownPeak, own);
    if (total <= totalPeak)
      return;
    totalPeak = total;
    peakInstruction = step;
  }

  /// Returns whether the storage of `root` is new.
  bool define(Value value, Value root) {
    rootOf[value] = root;
    return handles[root]++ == 0 && root == value;
  }
  /// Returns whether nothing holds the storage of `root` any more.
  bool release(Value value) {
    auto root = rootOf.find(value);
    return root != rootOf.end() && --handles[root->second] == 0;
  }

  LogicalResult visit(Operation *op, int64_t step) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](AllocOp op) {
          live += bytesOf(op.getBuffer());
          return success();
        })
        .Case([&](FreeOp op) {
          for (Value buffer : op.getBuffers()) {
            if (!isActivation(buffer))
              live -= bytesOf(buffer);
            else if (release(buffer))
              live -= bytesOf(rootOf[buffer]);
          }
          return success();
        })
        .Case([&](CallOp op) { return call(op, step); })
        .Case([&](ReceiveOp op) {
          define(op.getValue(), op.getValue());
          live += bytesOf(op.getValue());
          return success();
        })
        .Case([&](FetchStartOp op) {
          for (int64_t bytes : op.getInflight().getType().getBytes())
            live += bytes;
          return success();
        })
        .Case([&](AwaitFetchOp op) {
          auto start = op.getInflight().getDefiningOp<FetchStartOp>();
          DenseMap<Value, Value> owners; // by the storage that was saved
          for (auto [saved, value] :
               llvm::zip(start.getSave().getValues(), op.getValues()))
            define(value,
                   owners.try_emplace(rootOf[saved], value).first->second);
          return success();
        })
        .Default([](Operation *) { return success(); });
  }

  LogicalResult call(CallOp op, int64_t step) {
    // A storage leaves with the call if no value is left on it.
    SmallVector<Value> leaving;
    SmallVector<bool> consumed(op.getInputs().size());
    for (int64_t position : op.getConsumes())
      consumed[position] = true;
    llvm::SmallDenseSet<Value> seen;
    for (auto [i, input] : llvm::enumerate(op.getInputs()))
      if (consumed[i] && seen.insert(input).second && release(input))
        leaving.push_back(rootOf[input]);
    int64_t made = 0;
    const int64_t numInputs = op.getInputs().size();
    for (auto [i, output] : llvm::enumerate(op.getOutputs())) {
      const int64_t alias = op.getAliases().empty() ? -1 : op.getAliases()[i];
      Value root = alias < 0            ? output
                   : alias >= numInputs ? op.getOutputs()[alias - numInputs]
                                        : rootOf[op.getInputs()[alias]];
      if (define(output, root))
        made += bytesOf(output);
    }
    llvm::erase_if(leaving, [&](Value root) { return handles[root] > 0; });
    if (callees && failed(measure(op, leaving)))
      return failure();
    raise(live + op.getOwnPeak(), live + op.getPeak(), step);
    for (Value root : leaving)
      live -= bytesOf(root);
    live += made;
    return success();
  }

  LogicalResult measure(CallOp op, ArrayRef<Value> leaving) {
    MeasuredCallee *callee = callees->get(op);
    if (!callee)
      return failure();
    // Charged to the input that keeps the storage longest inside the function.
    SmallVector<int64_t> consumed(op.getInputs().size());
    for (Value root : leaving) {
      int last = -1;
      for (auto [i, input] : llvm::enumerate(op.getInputs()))
        if (rootOf[input] == root &&
            (last < 0 || callee->inputDeath(i) > callee->inputDeath(last)))
          last = static_cast<int>(i);
      consumed[last] = bytesOf(root);
    }
    const plan::FunctionProfile &profile = callee->profile(consumed);
    op.setOwnPeak(profile.peakBytes);
    op.setPeak(profile.peakTotalBytes);
    return success();
  }

  ProgramOp program;
  CalleeMemory *callees;
  DenseMap<Value, Value> rootOf;
  DenseMap<Value, int> handles; // values that hold a storage, by root
  int64_t live = 0, ownPeak = 0, totalPeak = 0, peakInstruction = -1;
};

} // namespace

LogicalResult recordPeaks(ProgramOp program, CalleeMemory *callees) {
  return Counter(program, callees).run();
}

} // namespace accel::schedule
