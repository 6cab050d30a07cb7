//===- Layout.cpp - Strides of every value ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Layout.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Types.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static Strides contiguous(ArrayRef<int64_t> shape) {
  auto strides = contiguousStrides(shape);
  return Strides(strides.begin(), strides.end());
}

static bool isContiguous(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  int64_t expected = 1;
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= std::max<int64_t>(shape[i], 1);
  }
  return true;
}

/// True where the elements fill one piece of memory without overlap.
static bool isDense(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  SmallVector<std::pair<int64_t, int64_t>> dims;
  for (auto [size, stride] : llvm::zip(shape, strides))
    if (size != 1)
      dims.push_back({stride, size});
  llvm::sort(dims);
  int64_t expected = 1;
  for (auto [stride, size] : dims) {
    if (stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

/// [B, H, S, D] whose memory is [B, S, H, D].
static Strides headsInside(ArrayRef<int64_t> shape) {
  int64_t heads = shape[1], seq = shape[2], dim = shape[3];
  return {seq * heads * dim, dim, heads * dim, 1};
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

std::optional<Strides> LayoutAnalysis::viewStrides(Value value,
                                                   ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> old = shapeOf(value);
  const Strides &strides = this->strides(value);
  int64_t numel = cast<RankedTensorType>(value.getType()).getNumElements();
  if (numel == 0 || old.empty())
    return contiguous(shape);
  // Walks chunks of dimensions that lie in memory one after another, from the
  // last; each must be filled exactly by dimensions of the new shape.
  Strides result(shape.size(), 1);
  int64_t newDim = static_cast<int64_t>(shape.size()) - 1;
  int64_t base = strides.back(), oldNumel = 1, newNumel = 1;
  for (int64_t dim = static_cast<int64_t>(old.size()) - 1; dim >= 0; --dim) {
    oldNumel *= old[dim];
    if (dim > 0 && (old[dim - 1] == 1 || strides[dim - 1] == oldNumel * base))
      continue;
    while (newDim >= 0 && (newNumel < oldNumel || shape[newDim] == 1)) {
      result[newDim] = newNumel * base;
      newNumel *= shape[newDim];
      --newDim;
    }
    if (newNumel != oldNumel)
      return std::nullopt;
    if (dim > 0) {
      base = strides[dim - 1];
      oldNumel = newNumel = 1;
    }
  }
  if (newDim >= 0)
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Pointwise operations
//===----------------------------------------------------------------------===//

/// TensorIterator's order of dimensions: by the operands' strides, the fastest
/// first; ties keep row-major order.
Strides LayoutAnalysis::pointwiseStrides(Operation *op) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  int64_t rank = shape.size();
  SmallVector<Strides> operands;
  bool allContiguous = true;
  SmallVector<Value> values(op->getOperands());
  // These two put the input first in their iterator.
  if (isa<ThresholdBackwardOp, LeakyReluBackwardOp>(op))
    std::reverse(values.begin(), values.end());
  // And this one its gradient last.
  if (isa<PreluKernelBackwardOp>(op))
    std::rotate(values.begin(), values.begin() + 1, values.end());
  for (Value operand : values) {
    ArrayRef<int64_t> own = shapeOf(operand);
    if (own.empty())
      continue;
    Strides aligned(rank - own.size(), 0);
    for (auto [size, target, stride] :
         llvm::zip(own, shape.take_back(own.size()), strides(operand)))
      aligned.push_back(size == target ? stride : 0);
    allContiguous &= isContiguous(operand) && own == shape;
    operands.push_back(std::move(aligned));
  }
  if (allContiguous)
    return contiguous(shape);
  return iteratorStrides(shape, operands);
}

Strides LayoutAnalysis::iteratorStrides(ArrayRef<int64_t> shape,
                                        ArrayRef<Strides> operands) {
  int64_t rank = shape.size();
  // -1: in order, 1: swap, 0: these operands do not say.
  auto shouldSwap = [&](int64_t a, int64_t b) {
    for (const Strides &strides : operands) {
      if (strides[a] == 0 || strides[b] == 0)
        continue;
      if (strides[a] != strides[b])
        return strides[a] < strides[b] ? -1 : 1;
      if (shape[a] > shape[b])
        return 1;
    }
    return 0;
  };
  SmallVector<int64_t> order;
  for (int64_t i = rank - 1; i >= 0; --i)
    order.push_back(i);
  for (int64_t i = 1; i < rank; ++i) {
    int64_t moved = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      int swap = shouldSwap(order[j], order[moved]);
      if (swap < 0)
        break;
      if (swap > 0) {
        std::swap(order[j], order[moved]);
        moved = j;
      }
    }
  }
  Strides result(rank, 1);
  int64_t stride = 1;
  for (int64_t dim : order) {
    result[dim] = stride;
    stride *= shape[dim];
  }
  return result;
}

//===----------------------------------------------------------------------===//
// All values
//===----------------------------------------------------------------------===//

static Strides argumentStrides(BlockArgument arg) {
  auto function =
      dyn_cast_or_null<FunctionOpInterface>(arg.getOwner()->getParentOp());
  if (function && arg.getOwner()->isEntryBlock())
    if (auto given = function.getArgAttrOfType<DenseI64ArrayAttr>(
            arg.getArgNumber(), stridesAttr))
      return Strides(given.asArrayRef().begin(), given.asArrayRef().end());
  return contiguous(shapeOf(arg));
}

Strides LayoutAnalysis::compute(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  if (auto arg = dyn_cast<BlockArgument>(value))
    return argumentStrides(arg);
  Operation *op = value.getDefiningOp();
  unsigned result = cast<OpResult>(value).getResultNumber();
  auto input = [&] { return strides(op->getOperand(0)); };
  return llvm::TypeSwitch<Operation *, Strides>(op)
      .Case([&](TOp) {
        Strides s = input();
        std::swap(s[0], s[1]);
        return s;
      })
      .Case([&](TransposeIntOp transpose) {
        Strides s = input();
        std::swap(s[transpose.getDim0()], s[transpose.getDim1()]);
        return s;
      })
      .Case([&](PermuteOp permute) {
        Strides old = input(), s;
        for (int64_t dim : permute.getDims())
          s.push_back(old[dim]);
        return s;
      })
      .Case([&](ViewOp view) {
        // An illegal view is reported by the exporter.
        auto s = viewStrides(view.getSelf(), shape);
        return s ? *s : contiguous(shape);
      })
      .Case([&](ExpandOp expand) {
        Strides old = input();
        ArrayRef<int64_t> oldShape = shapeOf(expand.getSelf());
        Strides s(shape.size() - old.size(), 0);
        for (auto [size, target, stride] :
             llvm::zip(oldShape, shape.take_back(old.size()), old))
          s.push_back(size == target ? stride : 0);
        return s;
      })
      .Case([&](UnsqueezeOp unsqueeze) {
        Strides s = input();
        int64_t dim = unsqueeze.getDim();
        int64_t stride = dim < static_cast<int64_t>(s.size())
                             ? s[dim] * shapeOf(unsqueeze.getSelf())[dim]
                             : 1;
        s.insert(s.begin() + dim, stride);
        return s;
      })
      .Case([&](SqueezeDimOp squeeze) {
        Strides s = input();
        s.erase(s.begin() + squeeze.getDim());
        return s;
      })
      .Case([&](SliceTensorOp slice) {
        Strides s = input();
        s[slice.getDim()] *= slice.getStep();
        return s;
      })
      .Case([&](FlashAttentionForCpuOp) -> Strides {
        if (result == 0) // like the query
          return preservedStrides(op->getOperand(0));
        return {shape[1] * shape[2], 1, shape[1]};
      })
      // Of at::empty_like of the query, and of query, key and value.
      .Case([&](CudnnAttentionOp) {
        return result == 0 ? preservedStrides(op->getOperand(0))
                           : contiguous(shape);
      })
      .Case([&](CudnnAttentionBackwardOp) {
        return preservedStrides(op->getOperand(1 + result));
      })
      .Case<FlashAttentionOp, EfficientAttentionOp>([&](auto) {
        return result == 0 ? headsInside(shape) : contiguous(shape);
      })
      // Of the kernels that it becomes.
      .Case([&](ScaledDotProductAttentionOp op) {
        return op.getByParts() ? contiguous(shape) : headsInside(shape);
      })
      .Case<FlashAttentionForCpuBackwardOp, FlashAttentionBackwardOp,
            EfficientAttentionBackwardOp>(
          [&](auto) { return headsInside(shape); })
      .Case([&](EfficientAttentionMaskBackwardOp) {
        return result == 3 ? contiguous(shape) : headsInside(shape);
      })
      .Case([&](DropoutOp) { return contiguous(shape); })
      .Case([&](PowScalarOp) { return contiguous(shape); })
      .Case<ToCopyOp, ZerosLikeOp, SortStableOp>(
          [&](auto) { return preservedStrides(op->getOperand(0)); })
      .Default([&](Operation *) {
        auto aten = dyn_cast<AtenOpInterface>(op);
        return aten ? aten.getStrides(*this, result) : contiguous(shape);
      });
}

Strides LayoutAnalysis::preservedStrides(ArrayRef<int64_t> shape,
                                         const Strides &strides) {
  return isDense(shape, strides) ? strides : iteratorStrides(shape, strides);
}

Strides LayoutAnalysis::preservedStrides(Value value) {
  return preservedStrides(shapeOf(value), strides(value));
}

bool LayoutAnalysis::isChannelsLast(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  const Strides &own = strides(value);
  int64_t rank = shape.size();
  if ((rank != 4 && rank != 5) || own[1] == 0 || isContiguous(value))
    return false;
  // Fastest first: channels, then width, height, depth, then the batch.
  SmallVector<int64_t> order = {1};
  for (int64_t dim = rank - 1; dim > 1; --dim)
    order.push_back(dim);
  order.push_back(0);
  int64_t least = 0;
  for (int64_t dim : order) {
    if (shape[dim] == 0 || own[dim] < least || (dim == 0 && least == own[1]))
      return false;
    least = own[dim] * std::max<int64_t>(shape[dim], 1);
  }
  return true;
}

Strides LayoutAnalysis::channelsLast(ArrayRef<int64_t> shape) {
  Strides result(shape.size(), 1);
  int64_t stride = std::max<int64_t>(shape[1], 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim > 1; --dim) {
    result[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  result[0] = stride;
  return result;
}

Strides aten::defaultStrides(Operation *op, LayoutAnalysis &layout,
                             unsigned result) {
  if (cast<AtenOpInterface>(op).getCategory() == Category::Pointwise)
    return layout.pointwiseStrides(op);
  return contiguous(shapeOf(op->getResult(result)));
}

/// Values whose strides are being computed, each for the one before.
static thread_local unsigned depth = 0;
/// A chain of operators is as long as a program likes, the stack is not: behind
/// so many, operands are computed first.
constexpr unsigned deepest = 400;

/// The values that `value` is made of whose strides are not known, each behind
/// those that it is made of itself.
static llvm::SmallVector<Value>
unknownOperands(Value value, llvm::function_ref<bool(Value)> isKnown) {
  llvm::SmallVector<Value> order;
  llvm::SmallVector<std::pair<Value, bool>> stack = {{value, false}};
  llvm::DenseSet<Value> seen;
  while (!stack.empty()) {
    const auto [next, done] = stack.pop_back_val();
    if (done) {
      if (next != value)
        order.push_back(next);
      continue;
    }
    if (!seen.insert(next).second)
      continue;
    stack.push_back({next, true});
    if (Operation *op = next.getDefiningOp())
      for (Value operand : op->getOperands())
        if (llvm::isa<mlir::RankedTensorType>(operand.getType()) &&
            !isKnown(operand))
          stack.push_back({operand, false});
  }
  return order;
}

const Strides &LayoutAnalysis::strides(Value value) {
  auto found = cache.find(value);
  if (found != cache.end())
    return found->second;
  if (depth >= deepest)
    for (Value operand : unknownOperands(
             value, [&](Value known) { return cache.contains(known); }))
      strides(operand);
  ++depth;
  Strides computed = compute(value);
  --depth;
  // Dimensions of size 1 do not matter; one spelling for a contiguous tensor.
  if (::isContiguous(shapeOf(value), computed))
    computed = contiguous(shapeOf(value));
  return cache[value] = std::move(computed);
}

bool LayoutAnalysis::isContiguous(Value value) {
  return ::isContiguous(shapeOf(value), strides(value));
}
