//===- LowerIndex.cpp - Rules for positions, order and groups -------------===//
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
using Kind = Argument::Kind;

namespace {

Maybe one(Value value) { return Results{value}; }

/// A list of indices, some of them None: the tensors and their dimensions.
struct Indices {
  SmallVector<Value> tensors;
  SmallVector<int64_t> dims;
};
std::optional<Indices> indicesOf(const Call &call) {
  const Argument &list = call["indices"];
  if (list.kind != Kind::List)
    return std::nullopt;
  Indices result;
  for (auto [dim, item] : llvm::enumerate(list.items)) {
    if (item.kind == Kind::None)
      continue;
    Value index = call.tensor(item);
    auto type =
        index ? dyn_cast<IntegerType>(aten::tensorType(index).getElementType())
              : IntegerType();
    if (!type || type.getWidth() == 1)
      return std::nullopt;
    result.tensors.push_back(index);
    result.dims.push_back(int64_t(dim));
  }
  if (result.tensors.empty())
    return std::nullopt;
  return result;
}

Maybe indexed(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto indices = indicesOf(call);
  if (!self || !indices || indices->dims.back() >= f.rank(self))
    return std::nullopt;
  const int64_t dim = indices->dims.front();
  const Value first = indices->tensors.front();
  if (indices->tensors.size() == 1) {
    // A position that the file tells is a slice.
    ArrayRef<int64_t> known = f.elementsOf(first);
    if (known.size() == 1 && f.rank(first) == 1) {
      const int64_t size = f.shape(self)[dim];
      const int64_t at = known[0] < 0 ? known[0] + size : known[0];
      if (at < 0 || at >= size)
        return std::nullopt;
      return one(f.make<aten::SliceTensorOp>(self, {{"dim", f.integer(dim)},
                                                    {"start", f.integer(at)},
                                                    {"end", f.integer(at + 1)},
                                                    {"step", f.integer(1)}}));
    }
    // Rows of a matrix, whose gradient an embedding's kernel adds up.
    if (dim == 0 && f.rank(self) == 2 && f.isFloat(self))
      return one(f.make<aten::EmbeddingOp>({self, first},
                                           {{"padding_idx", f.integer(-1)}}));
  }
  SmallVector<Value> operands = {self};
  llvm::append_range(operands, indices->tensors);
  return one(f.make<aten::IndexTensorOp>(
      operands, {{"dims", f.integers(indices->dims)}}));
}

Maybe indexPut(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), values = call.tensor("values");
  auto indices = indicesOf(call);
  if (!self || !values || !indices)
    return std::nullopt;
  // All of a vector, which is what turns an order round.
  const Value first = indices->tensors.front();
  if (f.rank(self) == 1 && !call.flag("accumulate") &&
      f.shape(first) == f.shape(self) && f.shape(values) == f.shape(self) &&
      aten::tensorType(values) == aten::tensorType(self))
    return one(f.make<aten::ScatterSrcOp>({self, first, values},
                                          {{"dim", f.integer(0)}}));
  SmallVector<Value> operands = {self, values};
  llvm::append_range(operands, indices->tensors);
  return one(f.make<aten::IndexPutOp>(
      operands,
      {{"dims", f.integers(indices->dims)},
       {"accumulate", f.builder().getBoolAttr(call.flag("accumulate"))}}));
}

Maybe sort(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto dim = call.integer("dim");
  if (!self || !dim || f.rank(self) == 0)
    return std::nullopt;
  Operation *op = f.makeOp(
      "aten.sort.stable", self,
      {{"dim", f.integer(*dim < 0 ? *dim + f.rank(self) : *dim)},
       {"descending", f.builder().getBoolAttr(call.flag("descending"))}});
  if (!op)
    return std::nullopt;
  return Results(op->getResults());
}

Maybe floorDivide(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto other = call.integer("other");
  if (!self || f.isFloat(self) || !other || *other == 0)
    return std::nullopt;
  if (*other == 1)
    return one(self);
  return one(
      f.make<aten::FloorDivideScalarOp>(self, {{"other", f.integer(*other)}}));
}

Maybe groupedMm(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), mat2 = call.tensor("mat2"),
        offs = call.tensor("offs");
  if (!self || !mat2 || !offs || !call.isNone("bias"))
    return std::nullopt;
  return one(f.make<aten::GroupedMmOp>({self, mat2, offs}));
}

/// Sums so far in another integer type: of the same numbers.
Maybe cumsum(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto dim = call.integer("dim");
  RankedTensorType type = f.resultType(call, 0);
  if (!self || !dim || !type || f.rank(self) == 0)
    return std::nullopt;
  Value sum = f.make<aten::CumsumOp>(
      self, {{"dim", f.integer(*dim < 0 ? *dim + f.rank(self) : *dim)}});
  return one(f.cast(sum, type.getElementType()));
}

/// Numbers in a row, of which `embedding` takes the listed rows.
Maybe embedding(Lowering &f, const Call &call) {
  Value weight = call.tensor("weight"), indices = call.tensor("indices");
  if (!weight || !indices || call.flag("scale_grad_by_freq") ||
      call.flag("sparse"))
    return std::nullopt;
  return one(f.make<aten::EmbeddingOp>(
      {weight, indices},
      {{"padding_idx", f.integer(call.integer("padding_idx").value_or(-1))}}));
}

} // namespace

void torchexport::addIndexRules(llvm::StringMap<Lowering::Rule> &rules) {
  rules["aten::index.Tensor"] = indexed;
  rules["aten::index_put"] = indexPut;
  for (const char *name : {"aten::sort", "aten::sort.stable"})
    rules[name] = sort;
  for (const char *name : {"aten::floor_divide", "aten::floor_divide.Scalar"})
    rules[name] = floorDivide;
  rules["aten::_grouped_mm"] = groupedMm;
  rules["aten::cumsum"] = cumsum;
  rules["aten::embedding"] = embedding;
}
