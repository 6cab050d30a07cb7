//===- OffloadActivations.cpp - offload-activations -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Calls are numbered in the order of the program, in which backwards follow the
// call that makes the loss. A storage that call `last` of the forward reads
// last, and call `next` of the backward first, is away from behind last + 1 to
// before next - 1.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/RecordPeaks.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"

#include <map>

namespace accel {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;

namespace accel::schedule {
namespace {

constexpr int64_t leastBytes = 1024;

class Offloader {
public:
  explicit Offloader(ProgramOp program)
      : body(program.getBody().front()), builder(program.getContext()) {
    for (auto call : body.getOps<CallOp>()) {
      numbers[call] = static_cast<int>(calls.size());
      calls.push_back(call);
    }
    end.assign(calls.begin(), calls.end());
  }

  void run() {
    Value loss = cast<ReturnOp>(body.getTerminator()).getLoss();
    if (!loss || !loss.getDefiningOp<CallOp>())
      return;
    lossCall = numbers.lookup(loss.getDefiningOp());
    findStorages();
    for (auto &[where, storages] : chosen())
      move(where.first, where.second, storages);
  }

private:
  struct Storage {
    SmallVector<Value> values; // that are on it, of the forward
    bool stays = false;
  };

  void findStorages() {
    for (CallOp call : calls) {
      const int64_t numInputs = call.getInputs().size();
      for (auto [i, output] : llvm::enumerate(call.getOutputs())) {
        const int64_t alias =
            call.getAliases().empty() ? -1 : call.getAliases()[i];
        Value root = alias < 0            ? output
                     : alias >= numInputs ? call.getOutputs()[alias - numInputs]
                                          : call.getInputs()[alias];
        auto known = roots.find(root);
        roots[output] = known == roots.end() ? root : known->second;
        Storage &storage = storages[roots[output]];
        storage.stays |= isa<BlockArgument>(roots[output]);
        if (numbers.lookup(call) <= lossCall)
          storage.values.push_back(output);
        for (Operation *user : output.getUsers())
          storage.stays |= !isa<CallOp>(user);
      }
    }
  }

  using Where = std::pair<int, int>; // the calls `last` and `next`
  std::map<Where, SmallVector<Value>> chosen() const {
    std::map<Where, SmallVector<Value>> result; // roots
    for (const auto &[root, storage] : storages) {
      if (storage.stays || storage.values.empty() || bytesOf(root) < leastBytes)
        continue;
      const int none = static_cast<int>(calls.size());
      int last = 0, next = none;
      for (Value value : storage.values) {
        last = std::max(last, numbers.lookup(value.getDefiningOp()));
        for (Operation *user : value.getUsers())
          if (const int call = numbers.lookup(user); call <= lossCall)
            last = std::max(last, call);
          else
            next = std::min(next, call);
      }
      // At least one call runs without it.
      if (next < none && next - last >= 4)
        result[{last, next}].push_back(root);
    }
    return result;
  }

  bool isRead(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return numbers.lookup(user) > lossCall;
    });
  }

  void move(int last, int next, ArrayRef<Value> moved) {
    MLIRContext *context = builder.getContext();
    SmallVector<Value> saved;
    SmallVector<int64_t> bytes;
    SmallVector<Type> types;
    for (Value root : moved)
      for (bool owns = true; Value value : storages.find(root)->second.values) {
        if (!isRead(value))
          continue;
        saved.push_back(value);
        bytes.push_back(owns ? bytesOf(root) : 0);
        types.push_back(
            BufferType::get(context, bytes.back(),
                            cast<BufferType>(value.getType()).getTensor()));
        owns = false;
      }
    const auto copies = InflightType::get(context, bytes);
    auto on = [&](Stream stream) { return StreamAttr::get(context, stream); };
    builder.setInsertionPointAfter(end[last]);
    auto save = SaveStartOp::create(builder, calls[last].getLoc(), copies,
                                    saved, on(Stream::HostOut));
    end[last] = save;
    builder.setInsertionPointAfter(end[last + 1]);
    end[last + 1] =
        AwaitSendOp::create(builder, calls[last].getLoc(), save.getInflight(),
                            saved, on(Stream::Compute));
    // Memory that the call before it gives up is there for it.
    Operation *behind = end[next - 2]->getNextNode();
    while (isa<FreeOp, FetchStartOp>(behind))
      behind = behind->getNextNode();
    builder.setInsertionPoint(behind);
    auto fetch = FetchStartOp::create(builder, calls[next].getLoc(), copies,
                                      save.getInflight(), on(Stream::HostIn));
    builder.setInsertionPoint(calls[next]);
    auto await = AwaitFetchOp::create(builder, calls[next].getLoc(), types,
                                      fetch.getInflight(), on(Stream::Compute));
    for (auto [before, after] : llvm::zip(saved, await.getValues()))
      before.replaceUsesWithIf(after, [&](OpOperand &use) {
        auto number = numbers.find(use.getOwner());
        return number != numbers.end() && number->second > lossCall;
      });
  }

  Block &body;
  OpBuilder builder;
  SmallVector<CallOp> calls;
  SmallVector<Operation *> end; // of what follows each call for the host
  DenseMap<Operation *, int> numbers;
  int lossCall = 0;
  DenseMap<Value, Value> roots;
  llvm::MapVector<Value, Storage> storages; // by root
};

struct OffloadActivationsPass
    : accel::impl::OffloadActivationsPassBase<OffloadActivationsPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto offload = job ? job.getOffloadAttr() : sharding::OffloadAttr();
    if (!offload || !offload.getActivations())
      return markAllAnalysesPreserved();
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Offloader(program).run();
      if (failed(recordPeaks(program)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace accel::schedule
