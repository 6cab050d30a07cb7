//===- LowerShapes.cpp - Rules for shapes, copies and casts ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Results = Lowering::Results;
using Maybe = std::optional<Lowering::Results>;

namespace {

Maybe one(Value value) { return Results{value}; }

Maybe identityRule(Lowering &, const Call &call) {
  return one(call.tensor(call.at(0)));
}

Maybe detachRule(Lowering &f, const Call &call) {
  return one(f.detach(call.tensor(call.at(0))));
}

/// Where shapes alone change: what the file says the result is.
Maybe reshapeToResult(Lowering &f, const Call &call) {
  Value self = call.tensor(call.at(0));
  RankedTensorType type = f.resultType(call, 0);
  if (!self || !type)
    return std::nullopt;
  return one(f.reshape(self, type.getShape()));
}

Maybe expandToResult(Lowering &f, const Call &call) {
  Value self = call.tensor(call.at(0));
  RankedTensorType type = f.resultType(call, 0);
  if (!self || !type)
    return std::nullopt;
  return one(f.expand(self, type.getShape()));
}

std::optional<int64_t> dimOf(const Call &call, StringRef name, int64_t rank) {
  auto dim = call.integer(name);
  if (!dim)
    return std::nullopt;
  int64_t value = *dim < 0 ? *dim + rank : *dim;
  if (value < 0 || value >= rank)
    return std::nullopt;
  return value;
}

/// Elements [start, end) of a dimension; the value itself where that is all.
Value sliceOf(Lowering &f, Value self, int64_t dim, int64_t start, int64_t end,
              int64_t step = 1) {
  int64_t size = f.shape(self)[dim];
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  start = clamp(start);
  end = std::max(start, clamp(end));
  if (start == 0 && end == size && step == 1)
    return self;
  return f.make<aten::SliceTensorOp>(self, {{"dim", f.integer(dim)},
                                            {"start", f.integer(start)},
                                            {"end", f.integer(end)},
                                            {"step", f.integer(step)}});
}

Maybe sliceRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  auto dim = dimOf(call, "dim", f.rank(self));
  auto step = call.integer("step");
  if (!dim || !step || *step < 1)
    return std::nullopt;
  int64_t start = call.integer("start").value_or(0);
  int64_t end = call.integer("end").value_or(f.shape(self)[*dim]);
  return one(sliceOf(f, self, *dim, start, end, *step));
}

Maybe narrowRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  auto dim = dimOf(call, "dim", f.rank(self));
  auto start = call.integer("start"), length = call.integer("length");
  if (!dim || !start || !length || *length < 0)
    return std::nullopt;
  int64_t first = *start < 0 ? *start + f.shape(self)[*dim] : *start;
  return one(sliceOf(f, self, *dim, first, first + *length));
}

/// One row of a dimension, which goes away.
Value selectOf(Lowering &f, Value self, int64_t dim, int64_t index) {
  if (index < 0)
    index += f.shape(self)[dim];
  Value row = sliceOf(f, self, dim, index, index + 1);
  return f.make<aten::SqueezeDimOp>(row, {{"dim", f.integer(dim)}});
}

Maybe selectRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  auto dim = dimOf(call, "dim", f.rank(self));
  auto index = call.integer("index");
  if (!dim || !index)
    return std::nullopt;
  return one(selectOf(f, self, *dim, *index));
}

/// unbind: all rows of a dimension.
Maybe unbindRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  auto dim = dimOf(call, "dim", f.rank(self));
  if (!dim)
    return std::nullopt;
  Results rows;
  for (int64_t i = 0; i < f.shape(self)[*dim]; ++i)
    rows.push_back(selectOf(f, self, *dim, i));
  return rows;
}

/// chunk, split, split_with_sizes: the parts have the sizes that the file says.
Maybe partsRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  auto dim = dimOf(call, "dim", f.rank(self));
  if (!dim)
    return std::nullopt;
  Results results;
  int64_t start = 0;
  for (size_t i = 0;; ++i) {
    RankedTensorType type = f.resultType(call, i);
    if (!type || type.getRank() != f.rank(self))
      break;
    int64_t length = type.getDimSize(*dim);
    results.push_back(sliceOf(f, self, *dim, start, start + length));
    start += length;
  }
  if (start != f.shape(self)[*dim])
    return std::nullopt;
  return results;
}

/// broadcast_tensors: each in the shape of all.
Maybe broadcastRule(Lowering &f, const Call &call) {
  Results results;
  for (auto [i, tensor] : llvm::enumerate(call.tensors("tensors"))) {
    RankedTensorType type = f.resultType(call, i);
    if (!type)
      return std::nullopt;
    results.push_back(f.expand(tensor, type.getShape()));
  }
  return results;
}

/// slice_scatter: bounds as Python's slices have them.
Maybe scatterSlice(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), src = call.tensor("src");
  auto step = call.integer("step");
  if (!self || !src || !f.rank(self))
    return std::nullopt;
  auto dim = dimOf(call, "dim", f.rank(self));
  if (!dim)
    return std::nullopt;
  const int64_t size = f.shape(self)[*dim];
  auto bound = [&](StringRef name, int64_t otherwise) {
    int64_t at =
        call.isNone(name) ? otherwise : call.integer(name).value_or(otherwise);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t start = bound("start", 0);
  src = f.cast(src, aten::tensorType(self).getElementType());
  if (!src)
    return std::nullopt;
  return one(f.make<aten::SliceScatterOp>(
      {self, src}, {{"dim", f.integer(*dim)},
                    {"start", f.integer(start)},
                    {"end", f.integer(std::max(start, bound("end", size)))},
                    {"step", f.integer(step.value_or(1))}}));
}

Maybe transposeLast(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self || f.rank(self) < 2)
    return std::nullopt;
  return one(f.transpose(self, f.rank(self) - 2, f.rank(self) - 1));
}

/// numpy_T and t: all dimensions turned round.
Maybe reverseDims(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  if (f.rank(self) < 2)
    return one(self);
  if (f.rank(self) == 2)
    return one(f.make<aten::TOp>(self));
  SmallVector<int64_t> dims;
  for (int64_t i = f.rank(self) - 1; i >= 0; --i)
    dims.push_back(i);
  return one(f.make<aten::PermuteOp>(self, {{"dims", f.integers(dims)}}));
}

Maybe transposeRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  auto first = dimOf(call, "dim0", f.rank(self));
  auto second = dimOf(call, "dim1", f.rank(self));
  if (!first || !second)
    return std::nullopt;
  return one(*first == *second ? self : f.transpose(self, *first, *second));
}

/// repeat_interleave by one number: each element several times.
Maybe repeatEach(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto repeats = call.integer("repeats"), given = call.integer("dim");
  if (!self || !repeats || *repeats < 1)
    return std::nullopt;
  int64_t rank = f.rank(self);
  if (!given) {
    self = f.reshape(self, {aten::tensorType(self).getNumElements()});
    rank = 1;
  }
  int64_t dim = given.value_or(0) < 0 ? *given + rank : given.value_or(0);
  if (!self || dim >= rank)
    return std::nullopt;
  SmallVector<int64_t> shape(f.shape(self)), wide(shape);
  wide.insert(wide.begin() + dim + 1, *repeats);
  shape[dim] *= *repeats;
  self = f.make<aten::UnsqueezeOp>(self, {{"dim", f.integer(dim + 1)}});
  return one(f.reshape(f.expand(self, wide), shape));
}

/// pad with a number; other modes are not modelled.
Maybe constantPad(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto pad = call.integers("pad");
  if (!self || !pad || call["mode"].text != "constant")
    return std::nullopt;
  return one(f.make<aten::ConstantPadNdOp>(
      self, {{"pad", f.integers(*pad)},
             {"value", f.number(call.number("value").value_or(0))}}));
}

/// Removes the dimensions of size 1 that the file's result lacks, as a view.
Maybe squeezeRule(Lowering &f, const Call &call) {
  return reshapeToResult(f, call);
}

/// contiguous, and clone: copies only what is not contiguous already, since
/// nothing is written in place.
Maybe contiguousRule(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  const Argument &format = call["memory_format"];
  // A file counts memory formats from 1, signatures' defaults from 0. Channels
  // last and preserved strides are the operator's own business.
  const bool counted = format.kind == Argument::Kind::Int;
  const bool plain = format.kind == Argument::Kind::None ||
                     format.integer == (counted ? 0 : 1);
  const bool preserved = format.integer == (counted ? 1 : 4);
  if (!self || !(plain || preserved))
    return std::nullopt;
  const bool copies = call.schema().name == "aten::clone" &&
                      format.kind == Argument::Kind::None;
  return one(preserved || copies ? self : f.contiguous(self));
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

Maybe toDtype(Lowering &f, const Call &call) {
  Value self = call.tensor(call.at(0));
  if (!self)
    return std::nullopt;
  const Argument &dtype = call["dtype"];
  if (dtype.kind == Argument::Kind::None)
    return one(self);
  if (dtype.kind != Argument::Kind::ScalarType)
    return std::nullopt;
  Type type = elementType(f.builder(), dtype.integer);
  // x.to(device) is written with the dtype that x had.
  if (call.schema().name == "aten::to.dtype_layout" && !call.isNone("device") &&
      type == aten::tensorType(self).getElementType())
    return one(self);
  return one(f.cast(self, type));
}

/// type_as, to.other
Maybe toOther(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), other = call.tensor("other");
  if (!self || !other)
    return std::nullopt;
  // A cast that changes nothing in the exported dtype hands on its operand, so
  // that later readers of the operand seem to read the cast.
  if (f.isFloat(self) && f.isFloat(other))
    return one(f.make<aten::TypeAsOp>({self, f.beforeCast(other)}));
  return one(f.cast(self, aten::tensorType(other).getElementType()));
}

} // namespace

void torchexport::addShapeRules(llvm::StringMap<Lowering::Rule> &rules) {
  for (const char *name :
       {"aten::alias", "aten::lift_fresh", "aten::lift_fresh_copy",
        "aten::lift", "aten::resolve_conj", "aten::resolve_neg"})
    rules[name] = identityRule;
  for (const char *name : {"aten::detach", "aten::detach_"})
    rules[name] = detachRule;
  for (const char *name :
       {"aten::view", "aten::reshape", "aten::_unsafe_view",
        "aten::flatten.using_ints", "aten::unflatten.int", "aten::view_as",
        "aten::reshape_as", "aten::view_copy", "aten::_reshape_alias"})
    rules[name] = reshapeToResult;
  for (const char *name : {"aten::squeeze", "aten::squeeze.dim",
                           "aten::squeeze.dims", "aten::unsqueeze_copy"})
    rules[name] = squeezeRule;
  for (const char *name : {"aten::expand", "aten::expand_as",
                           "aten::broadcast_to", "aten::expand_copy"})
    rules[name] = expandToResult;
  for (const char *name : {"aten::slice.Tensor", "aten::slice_copy.Tensor"})
    rules[name] = sliceRule;
  for (const char *name : {"aten::narrow", "aten::narrow_copy"})
    rules[name] = narrowRule;
  for (const char *name : {"aten::select.int", "aten::select_copy.int"})
    rules[name] = selectRule;
  rules["aten::unbind.int"] = unbindRule;
  rules["aten::broadcast_tensors"] = broadcastRule;
  rules["aten::slice_scatter"] = scatterSlice;
  for (const char *name :
       {"aten::chunk", "aten::split.Tensor", "aten::split.sizes",
        "aten::split_with_sizes", "aten::split_with_sizes_copy",
        "aten::split_copy.Tensor", "aten::unsafe_chunk",
        "aten::unsafe_split.Tensor"})
    rules[name] = partsRule;
  for (const char *name : {"aten::mT", "aten::adjoint", "aten::mH"})
    rules[name] = transposeLast;
  for (const char *name : {"aten::t", "aten::numpy_T"})
    rules[name] = reverseDims;
  for (const char *name :
       {"aten::transpose.int", "aten::swapaxes", "aten::transpose_copy.int"})
    rules[name] = transposeRule;
  for (const char *name : {"aten::contiguous", "aten::clone"})
    rules[name] = contiguousRule;
  for (const char *name :
       {"aten::to.dtype", "aten::to.dtype_layout", "aten::to.device",
        "aten::_to_copy", "aten::_autocast_to_full_precision"})
    rules[name] = toDtype;
  rules["aten::repeat_interleave.self_int"] = repeatEach;
  rules["aten::pad"] = constantPad;
  for (const char *name : {"aten::type_as", "aten::to.other"})
    rules[name] = toOther;
}
