//===- SelectAttention.cpp - Kernels for attention ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/SelectAttention.h"

#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Types.h"
#include "dialects/Sharding/Sharding.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;

namespace {

class Attention {
public:
  Attention(OpBuilder &builder, aten::ScaledDotProductAttentionOp op,
            bool eager, bool cuda, Value filled = {})
      : builder(builder), op(op), eager(eager), cuda(cuda), filled(filled),
        query(tensorType(op.getQuery())), heads(query.getDimSize(1)),
        rows(query.getDimSize(2)), keys(tensorType(op.getKey()).getDimSize(2)) {
  }

  /// Of kernels that take any mask and as many key heads as there are, and
  /// write their result in the order of the query's memory.
  template <typename Kernel> Value likeTheQuery() {
    Value added = mask(/*causal=*/false), q = op.getQuery(), k = op.getKey(),
          v = op.getValue();
    if (std::is_same_v<Kernel, aten::FlashAttentionForCpuOp>) {
      // It takes one size alone, and the order of the query's memory stays.
      const int64_t size = std::max(query.getDimSize(3),
                                    tensorType(op.getValue()).getDimSize(3));
      for (Value *each : {&q, &k, &v})
        if (tensorType(*each).getDimSize(3) < size)
          *each = swapped(withZeros(swapped(*each), size));
    }
    if (eager && added) { // sdpa_attention_forward groups no queries then
      k = repeatHeads(k);
      v = repeatHeads(v);
    }
    return likeQuery(
        cut(make<Kernel>(q, k, v, added, op.getIsCausal(), op.getScale())));
  }
  Value flash() {
    Value q = filledUp(op.getQuery()), k = filledUp(op.getKey()),
          v = filledUp(op.getValue());
    if (drops())
      return cut(make<aten::DroppedFlashAttentionOp>(
          q, k, v, op.getIsCausal(), op.getScale(), op.getDropoutP(),
          op.getDropoutKey()));
    return likeQuery(cut(make<aten::FlashAttentionOp>(q, k, v, op.getIsCausal(),
                                                      op.getScale())));
  }
  /// As the kernel has tokens and heads in memory.
  Value window() {
    Value q = swapped(filledUp(op.getQuery())),
          k = swapped(filledUp(op.getKey())),
          v = swapped(filledUp(op.getValue()));
    return cut(swapped(make<aten::WindowAttentionOp>(
        q, k, v, uint64_t(op.getWindow() - 1), op.getScale())));
  }
  /// `groups`: the kernel takes fewer key heads than query heads.
  Value efficient(bool groups = false) {
    Value added = mask(/*causal=*/false);
    if (added) {
      added = alignRows(added);
      added = make<aten::ExpandOp>(added, scores());
    }
    Value k = op.getKey(), v = op.getValue();
    if (!groups) {
      k = repeatHeads(k);
      v = repeatHeads(v);
    }
    Value q = filledUp(op.getQuery());
    k = filledUp(k);
    v = filledUp(v);
    if (drops())
      return cut(make<aten::DroppedEfficientAttentionOp>(
          q, k, v, added, op.getIsCausal(), op.getScale(), op.getDropoutP(),
          op.getDropoutKey()));
    return cut(make<aten::EfficientAttentionOp>(
        q, k, v, added, op.getIsCausal(), op.getScale()));
  }

  /// Matmul, scale, cap, mask, softmax in fp32, matmul: the operators of
  /// transformers' eager_attention_forward. The result lies in memory as the
  /// kernels leave it, [B, S, H, D].
  Value byParts() {
    Type element = query.getElementType();
    auto [x, v] = scoresAndValues();
    x = scaled(x, op.getScale().convertToDouble());
    if (double cap = op.getSoftcap().convertToDouble(); cap > 0) {
      x = make<aten::DivScalarOp>(x, cap);
      x = make<aten::TanhOp>(x);
      x = scaled(x, cap);
    }
    if (Value added = mask(/*causal=*/!filled))
      x = make<aten::AddTensorOp>(x, added);
    if (filled)
      x = make<aten::MaskedFillScalarOp>(
          x, filled, TypedAttr(builder.getF64FloatAttr(leastOf(element))));
    x = cast(make<aten::SoftmaxOp>(cast(x, builder.getF32Type()), uint64_t(3)),
             element);
    return weighted(x, v);
  }

  /// Matmul, one kernel in the dtype of the scores, matmul. The kernel scales
  /// and masks too, which is not written down: it reads and writes the scores
  /// once, as softmax alone does.
  Value byFusedSoftmax() {
    auto [x, v] = scoresAndValues();
    x = make<aten::SoftmaxOp>(x, uint64_t(3));
    if (op.getIsCausal() && !op.getMask())
      x.getDefiningOp()->setAttr(aten::causalScoresAttr, builder.getUnitAttr());
    return weighted(x, v);
  }

  /// torch's _scaled_dot_product_attention_math: what has 16 bits is copied to
  /// fp32 (allowFP16BF16ReductionMathSDP is off), both operands are scaled
  /// before their matmul, the order of tokens becomes a mask of numbers, and
  /// the weights of all heads are saved.
  Value byMath() {
    const double root = std::sqrt(op.getScale().convertToDouble());
    auto wide = [&](Value x) { return cast(x, builder.getF32Type()); };
    Value q = matrices(make<aten::MulScalarOp>(wide(op.getQuery()), root));
    Value k = make<aten::TransposeIntOp>(repeatHeads(wide(op.getKey())),
                                         uint64_t(2), uint64_t(3));
    k = make<aten::MulScalarOp>(k, root);
    if (tensorType(op.getKey()).getDimSize(1) == heads) // as it was made
      k = make<aten::CloneOp>(k);
    ArrayRef<int64_t> shape = tensorType(k).getShape();
    k = make<aten::ViewOp>(
        k, ArrayRef<int64_t>{shape[0] * shape[1], shape[2], shape[3]});
    Value v = matrices(repeatHeads(wide(op.getValue())));
    Value x = make<aten::ViewOp>(make<aten::BmmOp>(q, k), scores());
    if (Value added = mask(/*causal=*/true))
      x = make<aten::AddTensorOp>(x, wide(added));
    x = make<aten::SoftmaxOp>(x, uint64_t(3));
    x.getDefiningOp()->setAttr(aten::wholeScoresAttr, builder.getUnitAttr());
    return cast(weighted(x, v), query.getElementType());
  }

private:
  /// By a key. What frameworks run drops by a generator's state, which changes
  /// neither bytes nor time.
  bool drops() { return !eager && !op.getDropoutP().isZero(); }

  /// Queries times keys, [B, H, S, S], and the values as matrices.
  std::pair<Value, Value> scoresAndValues() {
    Value q = matrices(op.getQuery()), k = matrices(repeatHeads(op.getKey())),
          v = matrices(repeatHeads(op.getValue()));
    Value x = make<aten::BmmOp>(
        q, make<aten::TransposeIntOp>(k, uint64_t(1), uint64_t(2)));
    return {make<aten::ViewOp>(x, scores()), v};
  }

  /// The weights x, with dropout, times the values, as the kernels leave it.
  Value weighted(Value x, Value v) {
    if (!op.getDropoutP().isZero())
      x = dropped(x);
    x = make<aten::ViewOp>(
        x, ArrayRef<int64_t>{query.getDimSize(0) * heads, rows, keys});
    SmallVector<int64_t> shape(query.getShape());
    shape.back() = tensorType(op.getValue()).getDimSize(3);
    x = make<aten::ViewOp>(make<aten::BmmOp>(x, v), shape);
    return swapped(make<aten::CloneOp>(swapped(x)));
  }

  /// Tokens and heads, or heads and tokens.
  Value swapped(Value x) {
    return make<aten::TransposeIntOp>(x, uint64_t(1), uint64_t(2));
  }

  /// The kernels of CUDA read rows of 16 bytes: heads of other sizes are filled
  /// up with zeros, which change neither scores nor sums, as PyTorch fills them
  /// up for flash attention (pad_last_dim in sdp_utils).
  Value filledUp(Value value) {
    RankedTensorType type = tensorType(value);
    const int64_t size = type.getDimSize(3);
    const int64_t unit = 16 / (type.getElementTypeBitWidth() / 8);
    return eager ? value : withZeros(value, (size + unit - 1) / unit * unit);
  }
  /// Heads of `size` elements, of which zeros are the last.
  Value withZeros(Value value, int64_t size) {
    RankedTensorType type = tensorType(value);
    SmallVector<int64_t> shape(type.getShape());
    shape[3] = size - shape[3];
    if (shape[3] == 0)
      return value;
    Value zeros = make<aten::FullOp>(shape, builder.getF64FloatAttr(0),
                                     type.getElementType());
    return make<aten::CatOp>(ValueRange{value, zeros}, uint64_t(3));
  }
  /// The result without what filled up the values, as it would lie in memory.
  Value cut(Value result) {
    const int64_t size = tensorType(op.getValue()).getDimSize(3);
    if (tensorType(result).getDimSize(3) == size)
      return result;
    Value part = make<aten::SliceTensorOp>(result, uint64_t(3), uint64_t(0),
                                           uint64_t(size), uint64_t(1));
    return swapped(make<aten::CloneOp>(swapped(part)));
  }
  Value dropped(Value weights) {
    if (!eager)
      return make<aten::DropoutOp>(weights, op.getDropoutP(),
                                   op.getDropoutKey());
    return make<aten::NativeDropoutOp>(
        weights, op.getDropoutP(),
        cuda ? Type(builder.getI1Type())
             : tensorType(weights).getElementType());
  }
  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(builder, op.getLoc(), std::forward<Args>(args)...)
        ->getResult(0);
  }
  Value cast(Value value, Type type) {
    return tensorType(value).getElementType() == type
               ? value
               : make<aten::ToCopyOp>(value, type);
  }
  Value scaled(Value value, double factor) {
    return factor == 1 ? value : make<aten::MulScalarOp>(value, factor);
  }
  SmallVector<int64_t> scores() {
    return {query.getDimSize(0), heads, rows, keys};
  }

  /// Key or value heads repeated for each query head, for kernels that do not
  /// group queries (`repeat_kv` of the models).
  Value repeatHeads(Value value) {
    ArrayRef<int64_t> shape = tensorType(value).getShape();
    int64_t batch = shape[0], groups = shape[1], length = shape[2],
            dim = shape[3];
    if (groups == heads)
      return value;
    // Autocast casts what is repeated already.
    if (auto low = value.getDefiningOp<aten::ToCopyOp>(); eager && low)
      return make<aten::ToCopyOp>(repeatHeads(low.getSelf()),
                                  tensorType(value).getElementType());
    if (eager && groups == 1) // reshape() needs no copy
      return make<aten::ExpandOp>(value,
                                  ArrayRef<int64_t>{batch, heads, length, dim});
    value = make<aten::UnsqueezeOp>(value, uint64_t(2));
    value = make<aten::ExpandOp>(
        value, ArrayRef<int64_t>{batch, groups, heads / groups, length, dim});
    value = make<aten::CloneOp>(value);
    return make<aten::ViewOp>(value,
                              ArrayRef<int64_t>{batch, heads, length, dim});
  }

  /// [B, H, S, D] as [B * H, S, D].
  Value matrices(Value value) {
    ArrayRef<int64_t> shape = tensorType(value).getShape();
    if (!value.getDefiningOp<aten::ViewOp>()) // of a copy that was repeated
      value = make<aten::CloneOp>(value);
    return make<aten::ViewOp>(
        value, ArrayRef<int64_t>{shape[0] * shape[1], shape[2], shape[3]});
  }

  /// 0 where `seen`, else the least number that `type` holds.
  Value additive(Value seen, Type type) {
    Value x = make<aten::ToCopyOp>(seen, type);
    x = make<aten::SubScalarOp>(x, 1.0);
    return make<aten::MulScalarOp>(x, -leastOf(type));
  }

  /// Flash attention writes its result in the order of the query's memory.
  /// Where transformers joins the query from a turned and a plain part, that is
  /// [B, H, S, D], as where it copies it so, and what joins the heads copies
  /// it.
  Value likeQuery(Value result) {
    Operation *maker = op.getQuery().getDefiningOp();
    while (isa_and_nonnull<aten::TransposeIntOp, aten::ViewOp, aten::TypeAsOp,
                           aten::ToCopyOp>(maker))
      maker = maker->getOperand(0).getDefiningOp();
    if (!eager ||
        !(isa_and_nonnull<aten::CatOp>(maker) ||
          op->hasAttr(aten::byHeadsAttr) || op->hasAttr(aten::joinedAttr)))
      return result;
    return swapped(make<aten::CloneOp>(swapped(result)));
  }

  /// What a window and, with `causal`, the order of tokens hide, [1, 1, S, T],
  /// or nothing. transformers makes a mask of truth values, for each sample,
  /// that PyTorch's attention turns into numbers; also where the window is just
  /// as long as the sequence.
  Value hidden(bool causal, Type type) {
    int64_t window = op.getWindow();
    causal &= op.getIsCausal();
    if (!limits(window))
      window = eager && always() ? keys : 0;
    if (!window && !causal)
      return {};
    Type integer = builder.getI32Type();
    auto count = [&](int64_t size) {
      return make<aten::ArangeOp>(uint64_t(0), uint64_t(size), uint64_t(1),
                                  integer);
    };
    // How far behind its query a key is. Operands that make operations stand
    // in statements of their own: compilers order arguments differently.
    Value keyAt = count(keys), queryAt = count(rows);
    Value behind = make<aten::SubTensorOp>(
        make<aten::UnsqueezeOp>(queryAt, uint64_t(1)), keyAt);
    auto integerAttr = [&](int64_t value) {
      return TypedAttr(builder.getI64IntegerAttr(value));
    };
    Value seen;
    if (causal)
      seen = make<aten::GtScalarOp>(behind, integerAttr(-1));
    if (window) {
      Value near = make<aten::LtScalarOp>(behind, integerAttr(window));
      seen = seen ? make<aten::LogicalAndOp>(seen, near) : near;
    }
    const int64_t shape[] = {1, 1, rows, keys};
    if (!eager || op.getByParts())
      return make<aten::ViewOp>(additive(seen, type), shape);
    auto number = [&](double value) {
      return make<aten::FullOp>(ArrayRef<int64_t>{1},
                                builder.getF64FloatAttr(value), type);
    };
    seen = make<aten::ExpandOp>(
        make<aten::ViewOp>(seen, shape),
        ArrayRef<int64_t>{query.getDimSize(0), 1, rows, keys});
    Value least = number(leastOf(type)), zero = number(0);
    return make<aten::WhereSelfOp>(seen, zero, least);
  }

  bool always() const {
    auto how = op->getAttrOfType<StringAttr>(aten::maskedAttr);
    return how && how.getValue() == aten::maskAlways;
  }
  bool limits(int64_t window) const {
    return window > 0 && (eager ? window <= keys : window < keys);
  }

  /// Everything that is added to the scores, or nothing. Kernels that are told
  /// the order of tokens need no `causal` mask.
  Value mask(bool causal) {
    Value given = op.getMask();
    Value added = hidden(causal, query.getElementType());
    if (!given || !added)
      return given ? given : added;
    return make<aten::AddTensorOp>(given, added);
  }

  /// Rows that start at multiples of 16 elements, as the kernel reads them.
  Value alignRows(Value value) {
    int64_t missing = (16 - keys % 16) % 16;
    if (missing == 0)
      return value;
    SmallVector<Value> parts{value};
    for (int64_t left = missing; left > 0; left -= keys)
      parts.push_back(make<aten::SliceTensorOp>(value, uint64_t(3), uint64_t(0),
                                                uint64_t(std::min(left, keys)),
                                                uint64_t(1)));
    Value padded = make<aten::CatOp>(ValueRange(parts), uint64_t(3));
    return make<aten::SliceTensorOp>(padded, uint64_t(3), uint64_t(0),
                                     uint64_t(keys), uint64_t(1));
  }

  OpBuilder &builder;
  aten::ScaledDotProductAttentionOp op;
  bool eager, cuda;
  Value filled; // truth values of keys that are hidden
  RankedTensorType query;
  int64_t heads, rows, keys;
};

} // namespace

double accel::leastOf(Type type) {
  return type.isF16()    ? -65504.0
         : type.isBF16() ? -3.3895313892515355e38
                         : -3.4028234663852886e38;
}

Value accel::attentionByParts(OpBuilder &b,
                              aten::ScaledDotProductAttentionOp op,
                              Value filled) {
  return Attention(b, op, /*eager=*/true, /*cuda=*/false, filled).byParts();
}

Value accel::attentionByFusedSoftmax(OpBuilder &b,
                                     aten::ScaledDotProductAttentionOp op) {
  return Attention(b, op, /*eager=*/true, /*cuda=*/true).byFusedSoftmax();
}

/// can_use_cudnn_attention of ATen/native/transformers/cuda/sdp_utils.cpp.
static bool takesCudnn(aten::ScaledDotProductAttentionOp op, int64_t head) {
  RankedTensorType query = tensorType(op.getQuery());
  const int64_t size = query.getDimSize(3);
  const double sixteenths = 16 * op.getDropoutP().convertToDouble();
  return query.getElementTypeBitWidth() == 16 && size % 8 == 0 &&
         tensorType(op.getValue()).getDimSize(3) == size && size <= head &&
         (size <= 128 || size == head) && query.getDimSize(2) > 1 &&
         tensorType(op.getKey()).getDimSize(2) > 1 &&
         sixteenths == std::floor(sixteenths);
}

/// Ranks have parts of a sequence: what a kernel makes of all tokens they would
/// have to cut, and to lay out anew.
static bool sharesTokens(Operation *op) {
  auto mesh =
      sharding::findOnly<sharding::MeshOp>(op->getParentOfType<ModuleOp>());
  return mesh && (mesh.axisSize("cp") > 1 || mesh.axisSize("sp") > 1);
}

Value accel::selectAttention(OpBuilder &b, aten::Device device, bool eager,
                             const frameworks::Kernels &kernels,
                             aten::ScaledDotProductAttentionOp op) {
  bool cuda = device == aten::Device::Cuda;
  Attention attention(b, op, eager, cuda);
  Type element = tensorType(op.getQuery()).getElementType();
  bool mixed =
      op.getMask() && tensorType(op.getMask()).getElementType() != element;
  // CUDA's kernels drop weights where they make them: frameworks by the state
  // of a generator, accel-run by one that is made of the key. No kernel of
  // accel-run gives a gradient of the mask then.
  const bool drops = !op.getDropoutP().isZero();
  const bool dropped =
      drops && (!cuda || (!eager && (op->hasAttr(aten::trainedMaskAttr) ||
                                     sharesTokens(op))));
  if (!op.getSoftcap().isZero() || (eager && op.getByParts()) ||
      (cuda && mixed) || dropped)
    return attention.byParts();
  // Values of another size: torch's kernels, not those of trainers with models
  // of their own.
  const bool ownValues = tensorType(op.getValue()).getDimSize(3) !=
                             tensorType(op.getQuery()).getDimSize(3) &&
                         (!eager || kernels.transformers);
  if (ownValues && eager && !cuda)
    return attention.byParts();
  if (!cuda)
    return attention.likeTheQuery<aten::FlashAttentionForCpuOp>();
  if (ownValues)
    return attention.efficient();
  if (op->hasAttr(aten::trainedMaskAttr))
    return kernels.efficientTakesAll ? attention.efficient()
                                     : attention.byMath();
  int64_t keys = tensorType(op.getKey()).getDimSize(2);
  const int64_t window = op.getWindow();
  bool masked = op.getMask() || (eager && op->hasAttr(aten::maskedAttr)) ||
                (window > 0 && (window < keys || (eager && window == keys)));
  // A mask of a plan of ours goes to a kernel that is known with masks.
  // So does one with dropout, whose state cuDNN wants on the device.
  if (takesCudnn(op, kernels.cudnnHead) && (eager || (!masked && !drops)))
    return attention.likeTheQuery<aten::CudnnAttentionOp>();
  // FlashAttention 2 takes heads of at most 256 elements.
  const bool wide = tensorType(op.getQuery()).getDimSize(3) > 256;
  const bool narrow = element.isBF16() || element.isF16();
  // sdpa_attention_forward of transformers groups queries where there is no
  // mask; FlashAttention takes no fp32 then. Where the memory-efficient kernel
  // takes no groups, what is left is torch's math.
  if (eager && kernels.transformers && !narrow && !masked && !wide &&
      tensorType(op.getKey()).getDimSize(1) !=
          tensorType(op.getQuery()).getDimSize(1))
    return kernels.efficientTakesAll ? attention.efficient(/*groups=*/true)
                                     : attention.byMath();
  if (narrow && !masked && !(wide && !eager))
    return attention.flash();
  // What frameworks run goes through scaled_dot_product_attention, which has
  // no window and gets a mask.
  if (narrow && !eager && !op.getMask() && op.getIsCausal() && !wide && !drops)
    return attention.window();
  return attention.efficient();
}
