//===- LowerReductions.cpp - Rules for reductions -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Results = Lowering::Results;
using Maybe = std::optional<Lowering::Results>;
using Kind = Argument::Kind;

namespace {

Maybe one(Value value) { return Results{value}; }

SmallVector<int64_t> allDims(int64_t rank) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back(i);
  return dims;
}

/// The dimensions that `dim` names, counted from 0: all where it is None or
/// empty.
std::optional<SmallVector<int64_t>> dimsOf(const Call &call, int64_t rank) {
  SmallVector<int64_t> dims;
  if (call["dim"].kind != Kind::None) {
    auto given = call.integers("dim");
    if (!given)
      return std::nullopt;
    dims = *given;
  }
  if (dims.empty())
    return allDims(rank);
  for (int64_t &dim : dims)
    dim = dim < 0 ? dim + rank : dim;
  if (rank == 0) // a number has dimension 0, which is none
    dims.clear();
  return dims;
}

/// The operand, cast where the call names a dtype.
Value operandOf(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (self && call["dtype"].kind == Kind::ScalarType)
    self = f.cast(self, elementType(f.builder(), call["dtype"].integer));
  return self;
}

template <typename OpT>
Value over(Lowering &f, Value self, ArrayRef<int64_t> dims, bool keepdim) {
  return f.make<OpT>(self, {{"dim", f.integers(dims)},
                            {"keepdim", f.builder().getBoolAttr(keepdim)}});
}

/// sum, mean, any, all, amax, amin: over the named or over all dimensions.
template <typename OpT> Maybe reduction(Lowering &f, const Call &call) {
  Value self = operandOf(f, call);
  if (!self)
    return std::nullopt;
  auto dims = dimsOf(call, f.rank(self));
  if (!dims)
    return std::nullopt;
  return one(over<OpT>(f, self, *dims, call.flag("keepdim")));
}

Maybe product(Lowering &f, const Call &call) {
  Value self = operandOf(f, call);
  auto dim = call.integer("dim");
  if (!self)
    return std::nullopt;
  if (call["dim"].kind == Kind::None || f.rank(self) == 0) {
    self = f.reshape(self, {aten::tensorType(self).getNumElements()});
    dim = 0;
  }
  if (!self || !dim)
    return std::nullopt;
  return one(f.make<aten::ProdDimIntOp>(
      self, {{"dim", f.integer(*dim < 0 ? *dim + f.rank(self) : *dim)},
             {"keepdim", f.builder().getBoolAttr(call.flag("keepdim"))}}));
}

/// linalg_vector_norm, norm.*: their order is `ord` or `p`, 2 where absent.
template <bool isOrd> Maybe vectorNorm(Lowering &f, const Call &call) {
  const char *name = isOrd ? "ord" : "p";
  Value self = operandOf(f, call);
  if (!self || !f.isFloat(self))
    return std::nullopt;
  auto ord = call.isNone(name) ? std::optional<double>(2) : call.number(name);
  auto dims = dimsOf(call, f.rank(self));
  if (!ord || !dims)
    return std::nullopt;
  return one(f.make<aten::LinalgVectorNormOp>(
      self, {{"ord", f.number(*ord)},
             {"dim", f.integers(*dims)},
             {"keepdim", f.builder().getBoolAttr(call.flag("keepdim"))}}));
}

/// var and std; `unbiased` and `correction` say what is taken from the count,
/// 1 where neither does.
template <bool root> Maybe variance(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self || !f.isFloat(self))
    return std::nullopt;
  double correction = 1;
  if (auto given = call.number("correction"))
    correction = *given;
  else if (auto unbiased = call.integer("unbiased"))
    correction = double(*unbiased);
  auto dims = dimsOf(call, f.rank(self));
  if (!dims)
    return std::nullopt;
  const bool keepdim = call.flag("keepdim");
  if (!root)
    return one(f.make<aten::VarCorrectionOp>(
        self, {{"dim", f.integers(*dims)},
               {"correction", f.number(correction)},
               {"keepdim", f.builder().getBoolAttr(keepdim)}}));
  // A norm has no gradient where it is 0, as PyTorch's std has none; a root's
  // is infinite there.
  double count = 1;
  for (int64_t dim : *dims)
    count *= double(f.shape(self)[dim]);
  if (count <= correction)
    return std::nullopt;
  Value mean = over<aten::MeanDimOp>(f, self, *dims, /*keepdim=*/true);
  Value norm = f.make<aten::LinalgVectorNormOp>(
      f.make<aten::SubTensorOp>({self, mean}),
      {{"ord", f.number(2)},
       {"dim", f.integers(*dims)},
       {"keepdim", f.builder().getBoolAttr(keepdim)}});
  return one(f.make<aten::DivScalarOp>(
      norm, {{"other", f.number(std::sqrt(count - correction))}}));
}

/// Positions are counted in integers, whose kernel CPUs lack.
Maybe histogram(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto bins = call.integer("bins");
  auto min = call.number("min"), max = call.number("max");
  RankedTensorType type = f.resultType(call, 0);
  if (!self || !bins || !min || !max || !type || *min != int64_t(*min) ||
      *max != int64_t(*max))
    return std::nullopt;
  if (!f.isFloat(self))
    self = f.make<aten::ToCopyOp>(
        self, {{"dtype", TypeAttr::get(f.builder().getF32Type())}});
  Value counts = f.make<aten::HistcOp>(self, {{"bins", f.integer(*bins)},
                                              {"min", f.integer(*min)},
                                              {"max", f.integer(*max)}});
  return one(counts ? f.cast(counts, type.getElementType()) : Value());
}

} // namespace

void torchexport::addReductionRules(llvm::StringMap<Lowering::Rule> &rules) {
  for (const char *name : {"aten::mean", "aten::mean.dim"})
    rules[name] = reduction<aten::MeanDimOp>;
  for (const char *name : {"aten::sum", "aten::sum.dim_IntList"})
    rules[name] = reduction<aten::SumDimOp>;
  for (const char *name : {"aten::any", "aten::any.dim", "aten::any.dims"})
    rules[name] = reduction<aten::AnyDimsOp>;
  for (const char *name : {"aten::all", "aten::all.dim", "aten::all.dims"})
    rules[name] = reduction<aten::AllDimsOp>;
  for (const char *name : {"aten::amax", "aten::max"})
    rules[name] = reduction<aten::AmaxOp>;
  for (const char *name : {"aten::amin", "aten::min"})
    rules[name] = reduction<aten::AminOp>;
  for (const char *name : {"aten::prod", "aten::prod.dim_int"})
    rules[name] = product;
  rules["aten::linalg_vector_norm"] = vectorNorm<true>;
  for (const char *name :
       {"aten::norm.Scalar", "aten::norm.ScalarOpt_dim",
        "aten::norm.ScalarOpt_dtype", "aten::norm.ScalarOpt_dim_dtype"})
    rules[name] = vectorNorm<false>;
  for (const char *name :
       {"aten::var", "aten::var.dim", "aten::var.correction"})
    rules[name] = variance<false>;
  for (const char *name :
       {"aten::std", "aten::std.dim", "aten::std.correction"})
    rules[name] = variance<true>;
  rules["aten::histc"] = histogram;
}
