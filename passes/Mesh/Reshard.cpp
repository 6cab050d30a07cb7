//===- Reshard.cpp - From one sharding of a value to another ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/Reshard.h"

using namespace mlir;
using namespace accel;
using namespace accel::mesh;
using accel::sharding::ShardedBy;

namespace {

class Resharding {
public:
  Resharding(OpBuilder &b, Location loc, Value value, ValueSharding from,
             const ValueSharding &to, AxisSizes sizes)
      : b(b), loc(loc), value(value), now(std::move(from)), to(to),
        sizes(sizes) {}

  Value run() {
    reduce();
    for (size_t d = 0; d < now.dims.size(); ++d)
      exchange(d);
    for (size_t d = 0; d < now.dims.size(); ++d)
      while (now.dims[d].axes.size() > common(d))
        gather(d);
    for (size_t d = 0; d < now.dims.size(); ++d)
      while (now.dims[d].axes.size() < to.dims[d].axes.size())
        slice(d);
    return value;
  }

private:
  /// How many parts of a dimension are what they should be, from outside.
  size_t common(size_t d) const {
    const Parts &have = now.dims[d].axes, &want = to.dims[d].axes;
    size_t same = 0;
    while (same < have.size() && same < want.size() && have[same] == want[same])
      ++same;
    return same;
  }

  /// The pieces in which the rank's part of a dimension lies once `parts` have
  /// cut it.
  static int64_t piecesOf(ArrayRef<ShardedBy> parts) {
    int64_t pieces = 1;
    for (const ShardedBy &part : parts)
      pieces *= part.pieces;
    return pieces;
  }

  RankedTensorType type() const {
    return cast<RankedTensorType>(value.getType());
  }
  RankedTensorType scaled(RankedTensorType type, size_t d, int64_t times,
                          int64_t parts) const {
    SmallVector<int64_t> shape(type.getShape());
    shape[d] = shape[d] * times / parts;
    return type.clone(shape);
  }

  void reduce() {
    SmallVector<Attribute> rest;
    for (StringRef axis : now.partial) {
      if (llvm::is_contained(to.partial, axis) || scatter(axis))
        continue;
      rest.push_back(b.getStringAttr(axis));
    }
    if (!rest.empty())
      value = sharding::AllReduceOp::create(b, loc, value.getType(), value,
                                            b.getArrayAttr(rest),
                                            sharding::ReduceKind::Sum);
    SmallVector<Attribute> whole; // of which one rank's is the sum
    for (StringRef axis : to.partial)
      if (!llvm::is_contained(now.partial, axis))
        whole.push_back(b.getStringAttr(axis));
    if (!whole.empty())
      value = sharding::FirstRankOp::create(b, loc, value.getType(), value,
                                            b.getArrayAttr(whole));
    now.partial = to.partial;
  }

  /// A sum of which each rank needs a part.
  bool scatter(StringRef axis) {
    for (size_t d = 0; d < now.dims.size(); ++d) {
      const size_t next = now.dims[d].axes.size();
      const Parts &want = to.dims[d].axes;
      if (common(d) != next || next >= want.size() || want[next].axis != axis)
        continue;
      now.dims[d].axes.push_back(want[next]);
      value = sharding::ReduceScatterOp::create(
          b, loc, scaled(type(), d, 1, sizes(axis)), value, d, axis,
          piecesOf(now.dims[d].axes), want[next].mirrored);
      return true;
    }
    return false;
  }

  /// The innermost axis of a dimension that should shard another one.
  void exchange(size_t d) {
    Parts &have = now.dims[d].axes;
    if (have.size() != common(d) + 1 || piecesOf(have) != 1)
      return;
    const ShardedBy axis = have.back();
    for (size_t e = 0; e < now.dims.size(); ++e) {
      Parts &other = now.dims[e].axes;
      const Parts &want = to.dims[e].axes;
      if (e == d || common(e) != other.size() || other.size() >= want.size() ||
          want[other.size()] != axis || piecesOf(other) != 1)
        continue;
      const int64_t ranks = sizes(axis.axis);
      value = sharding::AllToAllOp::create(
          b, loc, scaled(scaled(type(), e, 1, ranks), d, ranks, 1), value, e, d,
          axis.axis);
      have.pop_back();
      other.push_back(axis);
      return;
    }
  }

  void gather(size_t d) {
    Parts &have = now.dims[d].axes;
    const ShardedBy axis = have.back();
    value = sharding::AllGatherOp::create(
        b, loc, scaled(type(), d, sizes(axis.axis), 1), value, d, axis.axis,
        piecesOf(have), axis.mirrored);
    have.pop_back();
  }

  void slice(size_t d) {
    Parts &have = now.dims[d].axes;
    have.push_back(to.dims[d].axes[have.size()]);
    const ShardedBy &by = have.back();
    value = sharding::SliceOp::create(
        b, loc, scaled(type(), d, 1, sizes(by.axis)), value, d, by.axis,
        piecesOf(have), by.mirrored);
  }

  OpBuilder &b;
  Location loc;
  Value value;
  ValueSharding now;
  const ValueSharding &to;
  AxisSizes sizes;
};

} // namespace

Value mesh::reshard(OpBuilder &b, Location loc, Value value, ValueSharding from,
                    const ValueSharding &to, AxisSizes sizes) {
  return Resharding(b, loc, value, std::move(from), to, sizes).run();
}
