//===- CutGraphs.cpp - Where graphs of torch.compile end ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A graph that torch.compile captures is a function here. Two frameworks end
// graphs inside of functions: DDP's reducer wants the gradients of a bucket
// before the backward ends, so DDPOptimizer cuts what was captured where a
// bucket is full (torch/_dynamo/backends/distributed.py), and the hooks of
// ZeRO-3, which Dynamo does not trace, end a graph around each module. Each
// part is compiled by itself: nothing is fused, and nothing recomputed, over a
// cut. So a function is cut into functions before it is differentiated, and
// its call becomes calls of those.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Loss/LossHead.h"
#include "passes/Partition/GraphParts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace accel {
#define GEN_PASS_DEF_CUTGRAPHSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// The size at which DDPOptimizer closes the bucket that a graph ends with
/// (torch.distributed._DEFAULT_FIRST_BUCKET_BYTES), whatever DDP's own is.
constexpr int64_t firstBucketBytes = 1 << 20;

class GraphCutter {
public:
  GraphCutter(mlir::ModuleOp module, sharding::JobOp job)
      : job(job), compile(job.getCompileAttr()), symbols(module) {
    for (auto param : module.getOps<sharding::ParamOp>()) {
      params[param.getFqn()] = param;
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          params[alias.getValue()] = param;
    }
  }

  void run(sharding::GraphOp graph) {
    const auto calls =
        llvm::to_vector(graph.getBody().getOps<sharding::CallOp>());
    for (sharding::CallOp call : llvm::reverse(calls)) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal() || !isCompiled(call))
        continue;
      if (compile.getRegions() == sharding::CompileRegions::Layers)
        bucket = Bucket();
      cut(call, callee, startsOf(call, callee));
    }
  }

private:
  /// What is filled from the end of a graph on.
  struct Bucket {
    int64_t bytes = 0;
    bool first = true;
  };

  bool isCompiled(sharding::CallOp call) {
    return compile.getRegions() == sharding::CompileRegions::Model ||
           isRepeated(call.getPath());
  }
  /// A checkpoint is one operator of the graph, with all of its parameters.
  bool isCheckpointed(sharding::CallOp call) {
    auto mode = call.getCheckpointAttr() ? call.getCheckpointAttr()
                                         : job.getCheckpointAttr();
    return mode && mode.getMode() != sharding::CheckpointMode::None;
  }

  /// Operations that begin a part, the first part's aside.
  DenseSet<Operation *> startsOf(sharding::CallOp call, func::FuncOp callee) {
    // A loss in chunks is one operator, too.
    auto loss = call->getAttrOfType<sharding::LossAttr>(lossAttr);
    const bool whole = isCheckpointed(call) || (loss && loss.getChunks() > 1);
    const ParameterReads reads(callee);
    if (compile.getEnds() == sharding::CompileEnds::Buckets)
      return bucketStarts(call, reads, whole);
    return whole ? DenseSet<Operation *>() : moduleStarts(reads);
  }

  /// Bytes of what the reducer reduces; 0 for frozen parameters.
  int64_t gradientBytes(sharding::CallOp call, StringRef name) {
    sharding::ParamOp param = params.lookup(call.bindParam(name));
    if (!param || param.getFrozen())
      return 0;
    auto type = cast<RankedTensorType>(param.getTensorType());
    return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  }

  DenseSet<Operation *> bucketStarts(sharding::CallOp call,
                                     const ParameterReads &reads, bool whole) {
    auto ddp = job.getDdpAttr();
    DenseSet<Operation *> starts;
    auto isFull = [&] {
      return bucket.bytes >=
             (bucket.first ? firstBucketBytes : ddp.getBucketBytes());
    };
    auto open = [&] { bucket = {0, false}; };
    if (whole) {
      if (isFull())
        open();
      for (StringRef name : reads.all())
        bucket.bytes += gradientBytes(call, name);
      return starts;
    }
    Operation *next = nullptr; // the first one that is in the bucket
    for (Operation *op : llvm::reverse(reads.placed())) {
      if (isFull() && !(next && reads.belongsTo(op, next))) {
        if (next)
          starts.insert(next);
        open();
      }
      for (StringRef name : reads.of(op))
        bucket.bytes += gradientBytes(call, name);
      next = op;
    }
    return starts;
  }

  /// Where the module changes, but not behind the last that has parameters: a
  /// loss is of no module.
  static DenseSet<Operation *> moduleStarts(const ParameterReads &reads) {
    DenseSet<Operation *> starts;
    const ArrayRef<Operation *> ops = reads.placed();
    size_t end = ops.size();
    while (end > 0 && reads.of(ops[end - 1]).empty())
      --end;
    for (size_t i = 1; i < end; ++i)
      if (aten::modulePath(ops[i]->getLoc()) !=
          aten::modulePath(ops[i - 1]->getLoc()))
        starts.insert(ops[i]);
    return starts;
  }

  void cut(sharding::CallOp call, func::FuncOp callee,
           const DenseSet<Operation *> &starts) {
    if (starts.empty())
      return;
    SmallVector<Operation *> key;
    for (Operation &op : callee.getBody().front())
      if (starts.contains(&op))
        key.push_back(&op);
    auto [known, isNew] =
        cuts.try_emplace(std::vector<Operation *>(key.begin(), key.end()));
    if (isNew)
      known->second = cutFunction(callee, starts, symbols);
    callParts(call, known->second);
  }

  sharding::JobOp job;
  sharding::CompileAttr compile;
  SymbolTable symbols;
  llvm::StringMap<sharding::ParamOp> params;
  std::map<std::vector<Operation *>, std::vector<GraphPart>> cuts;
  Bucket bucket;
};

struct CutGraphsPass : accel::impl::CutGraphsPassBase<CutGraphsPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto graph = sharding::findOnly<sharding::GraphOp>(getOperation());
    auto compile = job ? job.getCompileAttr() : nullptr;
    if (!graph || !compile ||
        compile.getEnds() == sharding::CompileEnds::Functions)
      return;
    if (compile.getEnds() == sharding::CompileEnds::Buckets &&
        !job.getDdpAttr()) {
      job.emitOpError("ends graphs at buckets and has none; decide-framework "
                      "decides them");
      return signalPassFailure();
    }
    GraphCutter(getOperation(), job).run(graph);
  }
};

} // namespace
