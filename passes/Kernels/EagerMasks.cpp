//===- EagerMasks.cpp - Masks of the order of tokens, made once -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/EagerMasks.h"

#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Types.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Kernels/EagerEncoders.h"
#include "passes/Kernels/SelectAttention.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;
using accel::eager::make;

namespace {

using Attention = aten::ScaledDotProductAttentionOp;

/// What a mask depends on beside the shape of the layers' input.
struct Kind {
  int64_t window; // keys that a query sees, itself too; 0: all before it
  bool numbers;   // else truth values

  auto operator<=>(const Kind &) const = default;
};

class SharedMasks {
public:
  explicit SharedMasks(ModuleOp module)
      : module(module), graph(sharding::findOnly<sharding::GraphOp>(module)) {}

  LogicalResult run() {
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    if (!graph ||
        (mesh && (mesh.axisSize("cp") > 1 || mesh.axisSize("sp") > 1)))
      return success();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        function.walk([&, this](Attention op) {
          if (takesMask(op))
            readers[function].push_back(op);
        });
    StringRef list; // FQN of the layers' ModuleList
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      if (auto function = module.lookupSymbol<func::FuncOp>(call.getCallee());
          readers.contains(function)) {
        calls[function].push_back(call);
        if (list.empty())
          list = call.getPath().rsplit('.').first;
      }
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      if (!first && call.getPath().rsplit('.').first == list)
        first = call;
    if (!first)
      return success();
    makeAll();
    for (auto &[function, ops] : readers)
      if (!calls[function].empty() && failed(give(function, ops)))
        return failure();
    return success();
  }

private:
  static bool takesNumbers(Attention op) {
    return op.getByParts() || !op.getSoftcap().isZero();
  }

  /// What `call` hands to the attention `op`.
  static Kind kindOf(Attention op, sharding::CallOp call) {
    Kind kind{static_cast<int64_t>(op.getWindow()), takesNumbers(op)};
    auto whole = call->getAttrOfType<IntegerAttr>(aten::wholeWindowAttr);
    if (whole && !kind.window && kind.numbers)
      kind.window = whole.getInt();
    return kind;
  }

  static bool takesMask(Attention op) {
    auto how = op->getAttrOfType<StringAttr>(aten::maskedAttr);
    const bool always = how && how.getValue() == aten::maskAlways;
    const int64_t keys = tensorType(op.getKey()).getDimSize(2);
    const int64_t window = op.getWindow();
    if ((how && !always) || op.getMask() || !op.getIsCausal() ||
        tensorType(op.getQuery()).getDimSize(2) != keys)
      return false;
    // _ignore_causal_mask_sdpa: a window as long as the sequence has a mask.
    return takesNumbers(op) || always || (window > 0 && window <= keys);
  }

  /// An input of `function` for each attention, after its other ones.
  LogicalResult give(func::FuncOp function, ArrayRef<Attention> ops) {
    for (Attention op : ops) {
      SmallVector<sharding::CallOp> &of = calls[function];
      const unsigned at = of.front().getNumOperands();
      Type type = masks[kindOf(op, of.front())].getType();
      if (failed(function.insertArgument(at, type, {}, op.getLoc())))
        return failure();
      for (sharding::CallOp call : of)
        call.getOperandsMutable().append(masks[kindOf(op, call)]);
      OpBuilder b(op);
      Value mask = function.getArgument(at);
      op.getMaskMutable().assign(takesNumbers(op) ? mask
                                                  : inLayer(b, op, mask));
      op.setIsCausal(false);
      op.setWindow(0);
      op->removeAttr(aten::maskedAttr);
    }
    return success();
  }

  /// scaled_dot_product_attention turns truth values, expanded to all samples,
  /// into numbers (convert_boolean_attn_mask of ATen's attention.cpp).
  static Value inLayer(OpBuilder &b, Attention op, Value seen) {
    RankedTensorType query = tensorType(op.getQuery());
    return chosen(b, op.getLoc(), seen, query.getDimSize(0),
                  query.getElementType());
  }

  /// 0 where `seen`, else the least number of `type`, for each sample.
  static Value chosen(OpBuilder &b, Location loc, Value seen, int64_t samples,
                      Type type) {
    SmallVector<int64_t> shape(tensorType(seen).getShape());
    shape[0] = samples;
    seen = make<aten::ExpandOp>(b, loc, seen, shape);
    auto number = [&](double value) {
      return make<aten::FullOp>(b, loc, ArrayRef<int64_t>{1},
                                b.getF64FloatAttr(value), type);
    };
    Value least = number(leastOf(type)), zero = number(0);
    return make<aten::WhereSelfOp>(b, loc, seen, zero, least);
  }

  /// Every mask, that of all tokens first: models make them of the embeddings,
  /// before the rotary tables.
  void makeAll() {
    for (auto &[function, ops] : readers)
      for (sharding::CallOp call : calls[function])
        for (Attention op : ops)
          masks[kindOf(op, call)] = op.getQuery();
    Value hidden = first.getOperands().front();
    OpBuilder b(module.getContext());
    b.setInsertionPointAfterValue(hidden);
    StringRef path = first.getPath().rsplit('.').first.rsplit('.').first;
    for (auto &[kind, value] : masks) {
      auto maker = maskMaker(kind, tensorType(value), tensorType(hidden));
      value = sharding::CallOp::create(
                  b, first.getLoc(), maker.getResultTypes(), maker.getSymName(),
                  ValueRange(hidden), path, sharding::CheckpointAttr())
                  .getResult(0);
    }
  }

  /// A function of the layers' input that makes the mask of `kind`, for scores
  /// of `query`.
  func::FuncOp maskMaker(Kind kind, RankedTensorType query,
                         RankedTensorType hidden) {
    Location loc = first.getLoc();
    std::string name = kind.window ? "WindowMask." + std::to_string(kind.window)
                                   : "CausalMask";
    if (module.lookupSymbol(name))
      name += kind.numbers ? ".numbers" : ".truth";
    OpBuilder b(module.getContext());
    b.setInsertionPointToEnd(module.getBody());
    auto maker =
        func::FuncOp::create(b, loc, name, b.getFunctionType({hidden}, {}));
    maker.setPrivate();
    b.setInsertionPointToStart(maker.addEntryBlock());
    Value value = seen(b, loc, query.getDimSize(2), kind.window);
    if (kind.numbers)
      value =
          chosen(b, loc, value, query.getDimSize(0), hidden.getElementType());
    func::ReturnOp::create(b, loc, ValueRange(value));
    eager::updateType(maker);
    return maker;
  }

  /// [1, 1, S, S]: which keys a query sees (sliding_window_overlay and
  /// causal_mask_function).
  static Value seen(OpBuilder &b, Location loc, int64_t size, int64_t window) {
    auto count = [&] {
      return make<aten::ArangeOp>(b, loc, uint64_t(0), uint64_t(size),
                                  uint64_t(1), Type(b.getI64Type()));
    };
    Value query = make<aten::UnsqueezeOp>(b, loc, count(), uint64_t(1));
    Value key = count(), near;
    if (window > 0)
      near = make<aten::GtTensorOp>(
          b, loc, key,
          make<aten::SubScalarOp>(b, loc, query,
                                  TypedAttr(b.getI64IntegerAttr(window))));
    Value all = make<aten::LeTensorOp>(b, loc, key, query);
    if (near)
      all = make<aten::BitwiseAndTensorOp>(b, loc, near, all);
    return make<aten::ViewOp>(b, loc, all, ArrayRef<int64_t>{1, 1, size, size});
  }

  ModuleOp module;
  sharding::GraphOp graph;
  llvm::MapVector<func::FuncOp, SmallVector<Attention>> readers;
  llvm::DenseMap<func::FuncOp, SmallVector<sharding::CallOp>> calls;
  sharding::CallOp first; // of a layer
  std::map<Kind, Value> masks;
};

} // namespace

LogicalResult accel::eager::shareMasks(ModuleOp module) {
  return SharedMasks(module).run();
}
