//===- ContextBlocks.h - What ring attentions are made of -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For ContextAttention.cpp and TorchRing.cpp, and for no other header.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_CONTEXTBLOCKS_H
#define ACCEL_PASSES_MESH_CONTEXTBLOCKS_H

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"

namespace accel::mesh {

using mlir::ArrayRef;
using mlir::Location;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::StringRef;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

inline RankedTensorType tensorTypeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

inline constexpr uint64_t tokens = 2; // of [batch, heads, tokens, ...]

/// The two parts of a rank's tokens; one of them is null where there is none.
struct Halves {
  Value head, tail;
};

/// An output and the log-sum-exp of the scores that it was made of.
struct Attended {
  Value output, logsumexp;
};

/// What a backward reads of some queries, and what it gives.
struct AttendedQueries {
  Value gradient, query, output, logsumexp;
};
struct AttendedGradients {
  Value query, key, value;
};

/// What is common to the forward and the backward of one attention.
class Blocks {
public:
  Blocks(mlir::Operation *op, sharding::MeshOp mesh, StringRef axis)
      : b(op), loc(op->getLoc()), axis(axis), ranks(mesh.axisSize(axis)) {}

  /// Before `isBefore`.
  void makeCoordinate() {
    coordinate = sharding::CoordinateOp::create(
        b, loc, RankedTensorType::get({}, b.getI64Type()), axis, 1);
  }

  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }

  Halves halves(Value value) {
    const int64_t size = tensorTypeOf(value).getDimSize(tokens);
    auto part = [&](int64_t from, int64_t to) {
      return make<aten::SliceTensorOp>(value, tokens, uint64_t(from),
                                       uint64_t(to), uint64_t(1));
    };
    return {part(0, size / 2), part(size / 2, size)};
  }

  /// In the memory order of the kernels, [batch, tokens, heads, ...].
  Value join(const Halves &halves) {
    Value whole = make<aten::CatOp>(
        ValueRange{swap(halves.head), swap(halves.tail)}, uint64_t(1));
    return swap(whole);
  }

  /// That of the rank `shift` before this one.
  Value from(Value value, int64_t shift) {
    Value lying = swap(value);
    return swap(sharding::PermuteOp::create(b, loc, lying.getType(), lying,
                                            shift, axis));
  }
  /// Back to where `from` took it.
  Value back(Value value, int64_t shift) { return from(value, ranks - shift); }

  /// True where the rank `shift` before this one has the earlier tokens at the
  /// start of the sequence (and the later ones at its end): where the ranks
  /// are not counted around.
  Value isBefore(int64_t shift) {
    return make<aten::GeScalarOp>(coordinate, b.getI64IntegerAttr(shift));
  }

  Value choose(Value condition, Value a, Value other) {
    return make<aten::WhereSelfOp>(condition, a, other);
  }
  Value number(double value, Type element) {
    return make<aten::FullOp>(ArrayRef<int64_t>{}, b.getF64FloatAttr(value),
                              element);
  }
  Value inF32(Value value) { return cast(value, b.getF32Type()); }
  Value cast(Value value, Type element) {
    return tensorTypeOf(value).getElementType() == element
               ? value
               : make<aten::ToCopyOp>(value, element);
  }
  Value swap(Value value) {
    return make<aten::TransposeIntOp>(value, uint64_t(1), tokens);
  }
  /// Statistics of rows, [batch, heads, tokens], beside their features; cuDNN's
  /// have a dimension for these.
  Value besideFeatures(Value statistics) {
    return tensorTypeOf(statistics).getRank() == 3
               ? make<aten::UnsqueezeOp>(statistics, uint64_t(3))
               : statistics;
  }
  Value add(Value a, Value other) { return make<aten::AddTensorOp>(a, other); }

  /// The kernel of `like`, a forward, over these.
  template <typename OpT>
  Attended attend(OpT like, Value query, Value key, Value value, bool causal) {
    auto made = [&] {
      if constexpr (requires { like.getMask(); })
        return OpT::create(b, loc, query, key, value, Value(), causal,
                           like.getScale());
      else
        return OpT::create(b, loc, query, key, value, causal, like.getScale());
    }();
    return {made.getOutput(), made.getLogsumexp()};
  }
  /// The same of a backward.
  template <typename OpT>
  AttendedGradients attend(OpT like, const AttendedQueries &of, Value key,
                           Value value, bool causal) {
    auto made = [&] {
      if constexpr (requires { like.getMask(); })
        return OpT::create(b, loc, of.gradient, of.query, key, value, of.output,
                           of.logsumexp, Value(), causal, like.getScale());
      else
        return OpT::create(b, loc, of.gradient, of.query, key, value, of.output,
                           of.logsumexp, causal, like.getScale());
    }();
    return {made.getGradQuery(), made.getGradKey(), made.getGradValue()};
  }

  /// What attention gives is kept for the backward: to make it again is to
  /// attend again.
  static void markJoined(mlir::Operation *op) {
    op->setAttr(sharding::joinedAttr, mlir::UnitAttr::get(op->getContext()));
  }

  OpBuilder b;
  Location loc;
  StringRef axis;
  int64_t ranks;
  Value coordinate;
};

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_CONTEXTBLOCKS_H
