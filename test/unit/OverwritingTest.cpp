//===- OverwritingTest.cpp - Overwriting forms against LibTorch -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Overwriting.h"
#include "runtime/plan/Operators.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

using namespace accel;

namespace {

c10::OperatorHandle handleOf(std::string_view full) {
  const size_t dot = full.find('.');
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      std::string(full.substr(0, dot)).c_str(),
      dot == full.npos ? "" : std::string(full.substr(dot + 1)).c_str());
}

/// Values that suit each operator that has an overwriting form: a last
/// dimension, a scalar, a truth value, "none".
c10::IValue valueFor(const c10::Argument &formal, c10::ScalarType dtype) {
  const c10::TypePtr type = formal.real_type();
  if (type->isSubtypeOf(*c10::TensorType::get())) {
    at::Tensor value = at::rand({7, 37}, at::dtype(dtype)) + 0.25;
    return formal.name() == "mask" || formal.name() == "condition"
               ? value > 0.75
               : value;
  }
  switch (type->kind()) {
  case c10::TypeKind::IntType:
    return static_cast<int64_t>(-1);
  case c10::TypeKind::ScalarTypeType:
    return static_cast<int64_t>(dtype);
  case c10::TypeKind::NumberType:
    return formal.name() == "alpha" ? 1.0 : 0.3; // no number of 16 bits
  case c10::TypeKind::BoolType:
    return false;
  case c10::TypeKind::StringType:
    return std::string("none");
  default:
    throw std::runtime_error("no value for " + formal.name());
  }
}

class Forms : public ::testing::TestWithParam<plan::OverwritingForm> {};

TEST_P(Forms, WriteTheSameBitsOverEachArgument) {
  const plan::OverwritingForm &form = GetParam();
  EXPECT_TRUE(plan::mayCall(std::string(form.form)));
  const c10::OperatorHandle op = handleOf(form.op), over = handleOf(form.form);
  const auto &formals = op.schema().arguments();
  // The rest of an in-place form has defaults.
  ASSERT_TRUE(formals.size() == form.arguments ||
              (form.overFirst && formals[form.arguments].default_value()));
  ASSERT_EQ(over.schema().arguments().size(),
            formals.size() + (form.overFirst ? 0 : 1));
  const auto &written =
      over.schema().arguments()[form.overFirst ? 0 : form.arguments];
  ASSERT_TRUE(written.alias_info() && written.alias_info()->isWrite());
  at::manual_seed(1);
  int tried = 0;
  for (c10::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    torch::jit::Stack arguments;
    for (const c10::Argument &formal : formals)
      arguments.push_back(valueFor(formal, dtype));
    torch::jit::Stack stack = arguments;
    op.callBoxed(stack);
    const at::Tensor expected = stack.back().toTensor();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].isTensor() ||
          arguments[i].toTensor().scalar_type() != dtype ||
          (form.overFirst && i > 0))
        continue;
      const at::Tensor target = arguments[i].toTensor().clone();
      stack = arguments;
      stack[i] = target;
      if (form.wrapsNumber) {
        at::Tensor number = at::scalar_tensor(stack[1].toDouble(), at::kDouble);
        number.unsafeGetTensorImpl()->set_wrapped_number(true);
        stack[1] = number;
      }
      if (!form.overFirst)
        stack.emplace_back(target);
      over.callBoxed(stack);
      EXPECT_TRUE(at::equal(target, expected))
          << form.form << " over argument " << i << " in " << dtype;
      ++tried;
    }
  }
  EXPECT_GE(tried, 3);
}

INSTANTIATE_TEST_SUITE_P(
    All, Forms, ::testing::ValuesIn(plan::overwritingForms()),
    [](const ::testing::TestParamInfo<plan::OverwritingForm> &info) {
      std::string name(info.param.op.substr(sizeof("aten::") - 1));
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(Overwriting, OperatorsWithoutAFormHaveNone) {
  EXPECT_EQ(plan::overwritingForm("aten::mm"), nullptr);
  EXPECT_EQ(plan::overwritingForm("aten::mul.Tenso"), nullptr);
  EXPECT_EQ(plan::overwritingForm("aten::zz"), nullptr);
}

} // namespace
