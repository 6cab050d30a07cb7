//===- AtenLayoutTest.cpp - Strides, workspaces, calls --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Layout.h"
#include "dialects/Aten/Schema.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace accel;
using Strides = aten::Strides;

namespace {

class AtenTest : public testing::Test {
protected:
  AtenTest() { context.loadDialect<func::FuncDialect, aten::AtenDialect>(); }

  /// The first function of `text`.
  func::FuncOp parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    layout = aten::LayoutAnalysis(); // what it knows is of the module before
    return *module->getOps<func::FuncOp>().begin();
  }
  /// What the function returns at `i`.
  static Value returned(func::FuncOp function, unsigned i = 0) {
    return function.getBody().front().getTerminator()->getOperand(i);
  }
  /// Strides of the value that `body` calls %r of type `type`.
  Strides strides(const std::string &arguments, const std::string &body,
                  const std::string &type) {
    auto function = parse("func.func @f(" + arguments + ") -> " + type + " {" +
                          body + "\n return %r : " + type + "}");
    return layout.strides(returned(function));
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  aten::LayoutAnalysis layout;
};

// Expected strides are those that torch 2.15 prints.
TEST_F(AtenTest, ViewsKeepStorage) {
  EXPECT_EQ(strides("%x: tensor<2x8x4x16xf32>",
                    "%r = aten.transpose.int %x, 1, 2 : "
                    "(tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>",
                    "tensor<2x4x8x16xf32>"),
            (Strides{512, 16, 64, 1}));
  EXPECT_EQ(strides("%x: tensor<8x64xf32>",
                    "%r = aten.slice.Tensor %x, 1 [0 : 64 : 2] : "
                    "(tensor<8x64xf32>) -> tensor<8x32xf32>",
                    "tensor<8x32xf32>"),
            (Strides{64, 2}));
  EXPECT_EQ(strides("%x: tensor<8x1xf32>",
                    "%r = aten.expand %x, [3, 8, 4] : (tensor<8x1xf32>) -> "
                    "tensor<3x8x4xf32>",
                    "tensor<3x8x4xf32>"),
            (Strides{0, 1, 0}));
}

TEST_F(AtenTest, ChainsAreAsLongAsAProgramLikes) {
  std::string body = "%v0 = aten.transpose.int %x, 0, 1 : (tensor<2x3xf32>) -> "
                     "tensor<3x2xf32>\n";
  constexpr int length = 40000;
  for (int i = 1; i <= length; ++i)
    body += "%v" + std::to_string(i) + " = aten.neg %v" +
            std::to_string(i - 1) + " : tensor<3x2xf32>\n";
  body += "%r = aten.neg %v" + std::to_string(length) + " : tensor<3x2xf32>";
  EXPECT_EQ(strides("%x: tensor<2x3xf32>", body, "tensor<3x2xf32>"),
            (Strides{1, 3}));
}

TEST_F(AtenTest, PointwiseResultsFollowTheirOperands) {
  const char *permuted =
      "%t = aten.transpose.int %x, 1, 2 : (tensor<2x8x4x16xf32>) -> "
      "tensor<2x4x8x16xf32>";
  EXPECT_EQ(strides("%x: tensor<2x8x4x16xf32>",
                    std::string(permuted) +
                        "\n %r = aten.neg %t : tensor<2x4x8x16xf32>",
                    "tensor<2x4x8x16xf32>"),
            (Strides{512, 16, 64, 1}));
  // The first operand that tells decides; broadcast dimensions do not tell.
  EXPECT_EQ(strides("%x: tensor<2x8x4x16xf32>, %b: tensor<8x16xf32>",
                    std::string(permuted) +
                        "\n %r = aten.mul.Tensor %b, %t : (tensor<8x16xf32>, "
                        "tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>",
                    "tensor<2x4x8x16xf32>"),
            (Strides{512, 16, 64, 1}));
  EXPECT_EQ(
      strides("%x: tensor<2x8x4x16xf32>, %y: tensor<2x4x8x16xf32>",
              std::string(permuted) +
                  "\n %r = aten.add.Tensor %y, %t : (tensor<2x4x8x16xf32>, "
                  "tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>",
              "tensor<2x4x8x16xf32>"),
      (Strides{512, 128, 16, 1}));
}

TEST_F(AtenTest, FlashAttentionIsLaidOutAsItsQuery) {
  auto function = parse(R"(
    func.func @f(%q: tensor<2x4x8x16xf32> {aten.strides = array<i64: 512, 16, 64, 1>}) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>) {
      %0:2 = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
      return %0#0, %0#1 : tensor<2x4x8x16xf32>, tensor<2x4x8xf32>
    })");
  EXPECT_EQ(layout.strides(returned(function, 0)), (Strides{512, 16, 64, 1}));
  EXPECT_EQ(layout.strides(returned(function, 1)), (Strides{32, 1, 4}));
  EXPECT_FALSE(layout.isContiguous(returned(function, 0)));
}

TEST_F(AtenTest, ViewsAreLegalWhereMemoryIsInOrder) {
  auto function = parse(R"(
    func.func @f(%x: tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32> {
      %0 = aten.transpose.int %x, 1, 2 : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
      return %0 : tensor<2x4x8x16xf32>
    })");
  Value x = function.getArgument(0), t = returned(function);
  EXPECT_EQ(layout.viewStrides(x, {16, 64}), (Strides{64, 1}));
  EXPECT_FALSE(layout.viewStrides(t, {8, 128}).has_value());
  // Splitting a dimension is always legal; joining the two last is not.
  EXPECT_EQ(layout.viewStrides(t, {2, 4, 8, 4, 4}),
            (Strides{512, 16, 64, 4, 1}));
  EXPECT_FALSE(layout.viewStrides(t, {2, 4, 128}).has_value());
  EXPECT_EQ(layout.viewStrides(t, {2, 1, 4, 8, 16}),
            (Strides{512, 64, 16, 64, 1}));
}

/// 32 tokens in chunks of 16, 4 heads of 4 elements in 2 groups, states of 8:
/// products of C and B within chunks 16384, their half with x 8192, states 8192
/// in and out each, a convolution of 4 taps over 48 channels 12288.
TEST_F(AtenTest, MixersCountTheChunkedScan) {
  const std::string operands =
      "tensor<1x32x68xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, "
      "tensor<4xf32>, tensor<4xf32>, tensor<16xf32>";
  const std::string saved = "tensor<1x32x16xf32>, tensor<1x32x2xf32>";
  const std::string sizes = "chunk = 16 : i64, eps = 1.0e-05 : f64, head_dim = "
                            "4 : i64, state = 8 : i64, step_min = 0.0 : f64";
  auto function = parse(
      "func.func @f(%p: tensor<1x32x68xf32>, %c: tensor<48x1x4xf32>, %b: "
      "tensor<48xf32>, %h: tensor<4xf32>, %n: tensor<16xf32>) {\n"
      "%0:3 = aten.mamba2_mixer %p, %c, %b, %h, %h, %h, %n {groups = 2 : "
      "i64, " +
      sizes + "} : (" + operands + ") -> (tensor<1x32x16xf32>, " + saved +
      ")\n%1:7 = aten.mamba2_mixer_backward %0#0, %p, %c, %b, %h, %h, %h, %n, "
      "%0#1, %0#2 {" +
      sizes + "} : (tensor<1x32x16xf32>, " + operands + ", " + saved +
      ") -> (" + operands + ")\nreturn }");
  auto ops = function.getBody().front().getOps<aten::AtenOpInterface>();
  auto forward = *ops.begin(), backward = *std::next(ops.begin());
  EXPECT_EQ(forward.getCost().flops, 16384 + 8192 + 2 * 8192 + 12288);
  EXPECT_EQ(backward.getCost().flops,
            3 * 16384 + 3 * 8192 + 5 * 8192 + 3 * 12288);
  // What the convolution gives, states of two chunks in two dtypes, C B, steps
  // and their sums.
  EXPECT_EQ(forward.getWorkspaceBytes(aten::Device::Cuda),
            4 * 32 * 48 + 256 * (4 + 4) + 4 * 1024 + 8 * 32 * 4);
}

/// Queries of `s` tokens, `dim` wide; the numbers are the profiler's.
struct Attention {
  int s, dim;
  const char *type;
  int64_t forward, backward;
};

class WorkspaceTest : public AtenTest,
                      public testing::WithParamInterface<Attention> {};

TEST_P(WorkspaceTest, IsThatOfTheKernel) {
  const Attention &a = GetParam();
  std::string q = "tensor<1x4x" + std::to_string(a.s) + "x" +
                  std::to_string(a.dim) + "x" + a.type + ">";
  std::string l = "tensor<1x4x" + std::to_string(a.s) + "xf32>";
  auto function = parse(
      "func.func @f(%q: " + q +
      ") {\n%0:2 = aten._scaled_dot_product_flash_"
      "attention_for_cpu %q, %q, %q {is_causal = true, scale = 0.25 : f64} : "
      "(" +
      q + ", " + q + ", " + q + ") -> (" + q + ", " + l +
      ")\n"
      "%1:3 = aten._scaled_dot_product_flash_attention_for_cpu_backward %q, "
      "%q, %q, %q, %0#0, %0#1 {is_causal = true, scale = 0.25 : f64} : (" +
      q + ", " + q + ", " + q + ", " + q + ", " + q + ", " + l + ") -> (" + q +
      ", " + q + ", " + q + ")\nreturn }");
  auto ops = function.getBody().front().getOps<aten::AtenOpInterface>();
  auto forward = *ops.begin(), backward = *std::next(ops.begin());
  EXPECT_EQ(forward.getWorkspaceBytes(aten::Device::Cpu), a.forward);
  EXPECT_EQ(backward.getWorkspaceBytes(aten::Device::Cpu), a.backward);
}

INSTANTIATE_TEST_SUITE_P(
    Measured, WorkspaceTest,
    testing::Values(Attention{16, 64, "f32", 5248, 2048 + 64},
                    Attention{64, 64, "f32", 16640, 16384 + 128},
                    Attention{192, 64, "f32", 66048, 98304 + 256},
                    Attention{512, 64, "f32", 147968, 262144 + 256},
                    Attention{767, 64, "f32", 147968, 262144 + 256},
                    Attention{768, 64, "f32", 591872, 1048576 + 1024},
                    Attention{2048, 64, "f32", 591872, 1048576 + 1024},
                    Attention{256, 128, "f32", 98816, 131072 + 256},
                    Attention{256, 64, "f16", 82432 + 32768,
                              131072 + 65536 + 256}));

TEST_F(AtenTest, CallsFollowTheSchema) {
  auto function = parse(R"(
    func.func @f(%q: tensor<1x2x8x16xbf16>) {
      %0:2 = aten._scaled_dot_product_flash_attention %q, %q, %q {is_causal = true, scale = 0.25 : f64} : (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>) -> (tensor<1x2x8x16xbf16>, tensor<1x2x8xf32>)
      %1:3 = aten._scaled_dot_product_flash_attention_backward %q, %q, %q, %q, %0#0, %0#1 {is_causal = true, scale = 0.25 : f64} : (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8xf32>) -> (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>)
      return
    })");
  auto ops = function.getBody().front().without_terminator();
  auto forward = aten::buildCall(&*ops.begin());
  ASSERT_TRUE(succeeded(forward));
  EXPECT_EQ(forward->name, "aten::_scaled_dot_product_flash_attention");
  EXPECT_EQ(forward->numResults, 9u);
  EXPECT_EQ(forward->args.size(), 7u);
  auto backward = aten::buildCall(&*std::next(ops.begin()));
  ASSERT_TRUE(succeeded(backward));
  ASSERT_EQ(backward->args.size(), 15u);
  EXPECT_EQ(backward->args[6].kind, aten::CallArg::Kind::None);
  EXPECT_EQ(cast<IntegerAttr>(backward->args[8].constant).getInt(), 8);
}

} // namespace
