//===- DeterministicTest.cpp - Kernels that give other bits ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Deterministic.h"

#include <gtest/gtest.h>

using namespace accel::plan;

namespace {

Bits bitsOf(const char *op, DType counted = DType::F32) {
  Instruction instruction;
  instruction.op = op;
  instruction.args.resize(1);
  instruction.args[0].kind = Arg::Kind::Tensor;
  instruction.args[0].slot = 0;
  Slot slot;
  slot.dtype = counted;
  return bitsOnCuda(instruction, {slot});
}

// As torch 2.15 stops at them with use_deterministic_algorithms.
TEST(Deterministic, Kernels) {
  EXPECT_EQ(bitsOf("aten::mm"), Bits::Same);
  EXPECT_EQ(bitsOf("aten::upsample_bilinear2d"), Bits::Same);
  EXPECT_EQ(bitsOf("aten::upsample_bilinear2d_backward"), Bits::VaryAll);
  EXPECT_EQ(bitsOf("aten::_adaptive_avg_pool2d_backward"), Bits::VaryAll);
  EXPECT_EQ(bitsOf("aten::_scaled_dot_product_cudnn_attention_backward"),
            Bits::Vary);
}

TEST(Deterministic, CountsOfIntegers) {
  for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16})
    EXPECT_EQ(bitsOf("aten::histc", dtype), Bits::Vary);
  for (DType dtype : {DType::I64, DType::I32})
    EXPECT_EQ(bitsOf("aten::histc", dtype), Bits::Same);
}

} // namespace
