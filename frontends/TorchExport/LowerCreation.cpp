//===- LowerCreation.cpp - Rules for new tensors --------------------------===//
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

/// `number` as a tensor of the call's result.
Maybe filled(Lowering &f, const Call &call, TypedAttr number) {
  RankedTensorType type = f.resultType(call, 0);
  if (!type || !number)
    return std::nullopt;
  return one(f.full(type.getShape(), number, type.getElementType()));
}

/// zeros, ones and their kin.
template <int number> Maybe constant(Lowering &f, const Call &call) {
  return filled(f, call, f.builder().getI64IntegerAttr(number));
}

/// full, full_like, new_full, scalar_tensor
Maybe fullRule(Lowering &f, const Call &call) {
  const char *name =
      call.schema().name == "aten::scalar_tensor" ? "s" : "fill_value";
  return filled(f, call, call.scalar(f.builder(), call[name]));
}

Maybe fillRule(Lowering &f, const Call &call) {
  return filled(f, call, call.scalar(f.builder(), call["value"]));
}

Maybe arange(Lowering &f, const Call &call) {
  RankedTensorType type = f.resultType(call, 0);
  auto start = call["start"].kind == Argument::Kind::None
                   ? std::optional<int64_t>(0)
                   : call.integer("start");
  auto end = call.integer("end");
  auto step = call["step"].kind == Argument::Kind::None
                  ? std::optional<int64_t>(1)
                  : call.integer("step");
  if (!type || !start || !end || !step)
    return std::nullopt;
  return one(f.make<aten::ArangeOp>(
      {}, {{"start", f.integer(*start)},
           {"end", f.integer(*end)},
           {"step", f.integer(*step)},
           {"dtype", TypeAttr::get(type.getElementType())}}));
}

/// copy: what copy_ leaves in `self`.
Maybe copy(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), src = call.tensor("src");
  if (!self || !src)
    return std::nullopt;
  src = f.cast(src, aten::tensorType(self).getElementType());
  return one(src ? f.expand(src, f.shape(self)) : Value());
}

/// where with numbers: as 0-d tensors of the result's type.
Maybe whereNumbers(Lowering &f, const Call &call) {
  RankedTensorType type = f.resultType(call, 0);
  Value condition = call.tensor("condition");
  if (!type || !condition)
    return std::nullopt;
  auto side = [&](StringRef name) -> Value {
    if (Value tensor = call.tensor(name))
      return tensor;
    TypedAttr number = call.scalar(f.builder(), call[name]);
    return number ? f.full({}, number, type.getElementType()) : Value();
  };
  return one(
      f.make<aten::WhereSelfOp>({condition, side("self"), side("other")}));
}

} // namespace

void torchexport::addCreationRules(llvm::StringMap<Lowering::Rule> &rules) {
  // What is empty is written before it is read; zeros are the same each time.
  for (const char *name : {"aten::zeros", "aten::zeros_like", "aten::new_zeros",
                           "aten::empty_like", "aten::empty.memory_format",
                           "aten::new_empty", "aten::empty_permuted"})
    rules[name] = constant<0>;
  for (const char *name : {"aten::ones", "aten::ones_like", "aten::new_ones"})
    rules[name] = constant<1>;
  for (const char *name : {"aten::full", "aten::full_like", "aten::new_full",
                           "aten::scalar_tensor"})
    rules[name] = fullRule;
  for (const char *name :
       {"aten::arange", "aten::arange.start", "aten::arange.start_step"})
    rules[name] = arange;
  rules["aten::copy"] = copy;
  rules["aten::fill.Scalar"] = fillRule;
  rules["aten::zero"] = constant<0>;
  for (const char *name : {"aten::where.ScalarOther", "aten::where.ScalarSelf",
                           "aten::where.Scalar"})
    rules[name] = whereNumbers;
}
