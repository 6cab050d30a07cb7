//===- AtenBuilderTest.cpp - Operations built from their arguments --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace accel;

namespace {

struct AtenBuilder : testing::Test {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  OpBuilder b{&context};
  Location loc = b.getUnknownLoc();
  Value x;

  void SetUp() override {
    context.loadDialect<aten::AtenDialect, func::FuncDialect>();
    module = ModuleOp::create(loc);
    auto type = RankedTensorType::get({2, 8}, b.getF32Type());
    b.setInsertionPointToEnd(module->getBody());
    auto function =
        func::FuncOp::create(b, loc, "f", b.getFunctionType({type}, {}));
    Block *body = function.addEntryBlock();
    b.setInsertionPointToEnd(body);
    x = body->getArgument(0);
  }
};

TEST_F(AtenBuilder, OperandsAndValuesInTheirOrder) {
  auto mean = aten::MeanDimOp::create(b, loc, x, llvm::ArrayRef<int64_t>{1},
                                      /*keepdim=*/true);
  EXPECT_EQ(mean.getDim(), llvm::ArrayRef<int64_t>{1});
  EXPECT_TRUE(mean.getKeepdim());
  EXPECT_EQ(cast<RankedTensorType>(mean.getType()).getShape(),
            (llvm::ArrayRef<int64_t>{2, 1}));
  auto sum = aten::AddScalarOp::create(b, loc, mean, 0.5);
  EXPECT_EQ(cast<FloatAttr>(sum.getOther()).getValueAsDouble(), 0.5);
  auto whole = aten::AddScalarOp::create(b, loc, sum, 2);
  EXPECT_EQ(cast<IntegerAttr>(whole.getOther()).getInt(), 2);
}

TEST_F(AtenBuilder, WhatIsLeftOutHasItsDefault) {
  Value weight = aten::FullOp::create(b, loc, llvm::ArrayRef<int64_t>{8}, 1.0,
                                      b.getF32Type());
  auto norm = aten::RmsNormOp::create(b, loc, x, weight, 1e-6);
  EXPECT_FALSE(norm.getWide());
  EXPECT_FALSE(norm.getShifted());
  EXPECT_TRUE(succeeded(norm.verify()));
}

TEST_F(AtenBuilder, VariadicOperandsAndNone) {
  auto cat = aten::CatOp::create(b, loc, llvm::SmallVector<Value>{x, x}, 0);
  EXPECT_EQ(cat.getTensors().size(), 2u);
  Value weight = aten::FullOp::create(b, loc, llvm::ArrayRef<int64_t>{8}, 1.0,
                                      b.getF32Type());
  auto norm = aten::NativeLayerNormOp::create(b, loc, x, weight, Value(),
                                              llvm::ArrayRef<int64_t>{8}, 1e-5,
                                              b.getF32Type());
  EXPECT_FALSE(norm.getBias());
  EXPECT_TRUE(norm.getWeight());
}

using AtenBuilderDeath = AtenBuilder;

TEST_F(AtenBuilderDeath, AnAttributeOfAnotherKindEndsTheProgram) {
  EXPECT_DEATH(aten::MeanDimOp::create(b, loc, x, 1.0, true),
               "aten.mean.dim.*an attribute of another");
  EXPECT_DEATH(aten::MeanDimOp::create(b, loc, x.getType(), x, true),
               "aten.mean.dim.*'self' is of another kind");
  EXPECT_DEATH(aten::AbsOp::create(b, loc, x, x), "more arguments than it has");
}

} // namespace
