//===- LowerPointwise.cpp - Rules for element by element operators --------===//
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

/// The first operand. Decomposed programs have numbers there too, which count
/// as tensors of the type that they promote the other to.
Value selfOf(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), other = call.tensor("other");
  if (self || !other)
    return self;
  TypedAttr number = call.scalar(f.builder(), call["self"]);
  if (!number)
    return {};
  Type type = aten::promoteTypes({aten::tensorType(other)}, number.getType());
  return f.full({}, number, type);
}

/// The second operand times alpha.
Value scaled(Lowering &f, const Call &call, Value other) {
  auto alpha = call.number("alpha");
  if (!alpha)
    return {};
  if (*alpha == 1)
    return other;
  return f.make<aten::MulScalarOp>(
      other, {{"other", call.scalar(f.builder(), call["alpha"])}});
}

/// A Python number where the signature has a tensor, or a Scalar, times alpha.
TypedAttr scaledScalar(Lowering &f, const Call &call) {
  TypedAttr value = call.scalar(f.builder(), call["other"]);
  auto alpha = call["alpha"].kind == Argument::Kind::None
                   ? std::optional<double>(1)
                   : call.number("alpha");
  if (!value || !alpha)
    return {};
  if (*alpha == 1)
    return value;
  auto number = call.number("other");
  if (auto integer = dyn_cast<IntegerAttr>(value);
      integer && *alpha == double(int64_t(*alpha)))
    return cast<TypedAttr>(f.integer(integer.getInt() * int64_t(*alpha)));
  return cast<TypedAttr>(f.number(*number * *alpha));
}

/// add, sub: with a tensor or a number.
template <typename TensorOp, typename ScalarOp>
Maybe sum(Lowering &f, const Call &call) {
  Value self = selfOf(f, call);
  if (!self)
    return std::nullopt;
  if (Value other = call.tensor("other")) {
    Value right = scaled(f, call, other);
    return one(f.make<TensorOp>({self, right}));
  }
  TypedAttr value = scaledScalar(f, call);
  if (!value)
    return std::nullopt;
  // x + 0 keeps x, and its type.
  auto integer = dyn_cast<IntegerAttr>(value);
  if (integer && integer.getInt() == 0 &&
      !aten::tensorType(self).getElementType().isInteger(1))
    return one(self);
  return one(f.make<ScalarOp>(self, {{"other", value}}));
}

/// mul, div, comparisons: with a tensor or a number.
template <typename TensorOp, typename ScalarOp>
Maybe binary(Lowering &f, const Call &call) {
  Value self = selfOf(f, call);
  if (!self)
    return std::nullopt;
  if (Value other = call.tensor("other"))
    return one(f.make<TensorOp>({self, other}));
  TypedAttr value = call.scalar(f.builder(), call["other"]);
  if (!value)
    return std::nullopt;
  return one(f.make<ScalarOp>(self, {{"other", value}}));
}

Maybe rsub(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  if (Value other = call.tensor("other"))
    return one(f.make<aten::SubTensorOp>({other, scaled(f, call, self)}));
  if (call.number("alpha") != 1)
    return std::nullopt;
  TypedAttr value = call.scalar(f.builder(), call["other"]);
  return one(f.make<aten::RsubScalarOp>(self, {{"other", value}}));
}

/// number / x is reciprocal times the number in PyTorch's own formula.
Maybe square(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  return one(f.make<aten::PowTensorScalarOp>(self, {{"other", f.integer(2)}}));
}

Maybe powScalar(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  TypedAttr exponent = call.scalar(f.builder(), call["exponent"]);
  if (!self || !exponent)
    return std::nullopt;
  return one(f.make<aten::PowTensorScalarOp>(self, {{"other", exponent}}));
}

Maybe scalarPow(Lowering &f, const Call &call) {
  Value exponent = call.tensor("exponent");
  TypedAttr base = call.scalar(f.builder(), call["self"]);
  if (!exponent || !base)
    return std::nullopt;
  return one(f.make<aten::PowScalarOp>(exponent, {{"other", base}}));
}

/// div with a rounding mode, also by a number; floor_divide of integers.
Maybe roundedDiv(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), other = call.tensor("other");
  const Argument &mode = call["rounding_mode"];
  if (!self)
    return std::nullopt;
  if (mode.kind == Argument::Kind::None)
    return binary<aten::DivTensorOp, aten::DivScalarOp>(f, call);
  auto integer = other ? std::nullopt : call.integer("other");
  if (integer && *integer > 0 && mode.text == "floor" && !f.isFloat(self))
    if (Value result = f.make<aten::FloorDivideScalarOp>(
            self, {{"other", f.integer(*integer)}}))
      return one(result);
  if (!other) {
    TypedAttr number = call.scalar(f.builder(), call["other"]);
    if (!number)
      return std::nullopt;
    // A Python number of the dtype that it would promote to.
    Type type = aten::promoteTypes({aten::tensorType(self)}, number.getType());
    other = f.full({}, number, type);
  }
  return one(f.make<aten::DivTensorModeOp>(
      {self, other},
      {{"rounding_mode", f.builder().getStringAttr(mode.text)}}));
}

/// clamp_min, clamp_max, relu6: one of the bounds, or both.
Maybe bounded(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self)
    return std::nullopt;
  SmallVector<std::pair<StringRef, Attribute>> bounds;
  for (StringRef name : {"min", "max"})
    if (TypedAttr bound = call.scalar(f.builder(), call[name]))
      bounds.push_back({name, bound});
  return one(bounds.empty() ? Value() : f.make<aten::ClampOp>(self, bounds));
}

template <typename OpT> Maybe extreme(Lowering &f, const Call &call) {
  return one(f.make<OpT>({call.tensor("self"), call.tensor("other")}));
}

/// Of integers 0 - x.
Maybe negated(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  if (!self || f.isFloat(self))
    return std::nullopt;
  return one(f.make<aten::RsubScalarOp>(self, {{"other", f.integer(0)}}));
}

Maybe relu6(Lowering &f, const Call &call) {
  return one(f.make<aten::HardtanhOp>(
      call.tensor("self"),
      {{"min_val", f.number(0)}, {"max_val", f.number(6)}}));
}

/// Of truth values `&` is a logical and.
Maybe andOf(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), other = call.tensor("other");
  if (!self || !other)
    return std::nullopt;
  return one(f.make<aten::BitwiseAndTensorOp>({self, other}));
}

} // namespace

void torchexport::addPointwiseRules(llvm::StringMap<Lowering::Rule> &rules) {
  for (const char *name : {"aten::add.Tensor", "aten::add.Scalar"})
    rules[name] = sum<aten::AddTensorOp, aten::AddScalarOp>;
  for (const char *name :
       {"aten::sub.Tensor", "aten::sub.Scalar", "aten::subtract.Tensor"})
    rules[name] = sum<aten::SubTensorOp, aten::SubScalarOp>;
  for (const char *name :
       {"aten::mul.Tensor", "aten::mul.Scalar", "aten::multiply.Tensor"})
    rules[name] = binary<aten::MulTensorOp, aten::MulScalarOp>;
  for (const char *name : {"aten::div.Tensor", "aten::div.Scalar",
                           "aten::divide.Tensor", "aten::true_divide.Tensor"})
    rules[name] = binary<aten::DivTensorOp, aten::DivScalarOp>;
  for (const char *name : {"aten::rsub.Scalar", "aten::rsub.Tensor"})
    rules[name] = rsub;
  rules["aten::square"] = square;
  rules["aten::pow.Tensor_Scalar"] = powScalar;
  rules["aten::pow.Scalar"] = scalarPow;
  rules["aten::__and__.Tensor"] = andOf;
  for (const char *name : {"aten::div.Tensor_mode", "aten::div.Scalar_mode"})
    rules[name] = roundedDiv;
  for (const char *name : {"aten::clamp_min", "aten::clamp_max", "aten::clip"})
    rules[name] = bounded;
  rules["aten::relu6"] = relu6;
  rules["aten::max.other"] = extreme<aten::MaximumOp>;
  rules["aten::min.other"] = extreme<aten::MinimumOp>;
  rules["aten::neg"] = negated;
}
