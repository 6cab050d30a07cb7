//===- QuantizedWeightsTest.cpp - Bytes of quantised weights --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/QuantizedWeights.h"

#include <gtest/gtest.h>

using namespace accel::plan;

namespace {

Quantization nf4(bool doubleQuant) {
  Quantization q;
  q.format = WeightFormat::Nf4;
  q.doubleQuant = doubleQuant;
  return q;
}

int64_t rounded(int64_t bytes) { return (bytes + 511) / 512 * 512; }

/// On a CUDA device, whose allocator rounds up to 512 bytes.
int64_t held(const QuantizedWeight &weight) {
  int64_t bytes = rounded(weight.packedBytes);
  for (int64_t scale : weight.scales)
    bytes += rounded(scale);
  return bytes;
}

TEST(QuantizedWeights, FourBitsWithScales) {
  const QuantizedWeight weight = quantizedWeight(nf4(false), 4096, 1024);
  EXPECT_EQ(weight.packedBytes, 4096 * 1024 / 2);
  EXPECT_EQ(weight.scales, (std::vector<int64_t>{4096 * 1024 / 64 * 4, 64}));
  EXPECT_EQ(weight.copyBytes, 4096 * 1024 * 2);
}

TEST(QuantizedWeights, ScalesAreQuantisedAgain) {
  const QuantizedWeight weight = quantizedWeight(nf4(true), 4096, 1024);
  EXPECT_EQ(weight.scales,
            (std::vector<int64_t>{65536, 65536 / 256 * 4, 4, 64}));
}

/// Two published runs of Mistral-7B that differ in nothing but the base: LoRA
/// in bf16 and QLoRA under autocast (fms-acceleration's reference runs on one
/// A100, micro-batch 4: 26704571904 and 16373838336 bytes at the peak). The
/// second holds bf16 copies of the adapter in autocast's cache too, and one
/// table of 256 fp32 numbers for all weights.
TEST(QuantizedWeights, PublishedDifferenceToTheByte) {
  const std::pair<int64_t, int64_t> linears[] = {
      {4096, 4096},  {1024, 4096},  {1024, 4096}, {4096, 4096},
      {14336, 4096}, {14336, 4096}, {4096, 14336}};
  int64_t wide = 0, packed = 0;
  for (auto [out, in] : linears) {
    wide += 2 * out * in;
    packed += held(quantizedWeight(nf4(true), out, in));
  }
  const int64_t adapter = 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024));
  const int64_t layers = 32, table = 1024;
  EXPECT_EQ(layers * (wide - packed - 2 * adapter) - table,
            26704571904 - 16373838336);
}

TEST(QuantizedWeights, GroupsAndIndices) {
  Quantization gptq;
  gptq.format = WeightFormat::Gptq;
  const QuantizedWeight weight = quantizedWeight(gptq, 1024, 4096);
  EXPECT_EQ(weight.packedBytes, 1024 * 4096 / 2);
  EXPECT_EQ(weight.scales,
            (std::vector<int64_t>{32 * 1024 * 2, 32 * 1024 / 2, 4096 * 4}));
  gptq.group = -1; // one for all inputs
  EXPECT_EQ(quantizedWeight(gptq, 1024, 4096).scales[0], 1024 * 2);
  gptq.group = 32;
  gptq.bits = 8;
  EXPECT_EQ(quantizedWeight(gptq, 1024, 4096).packedBytes, 1024 * 4096);
}

TEST(QuantizedWeights, EachExpertIsQuantisedByItself) {
  const QuantizedWeight one = quantizedWeight(nf4(false), 64, 64);
  const QuantizedWeight eight = quantizedWeight(nf4(false), 64, 64, 8);
  EXPECT_EQ(eight.packedBytes, 8 * one.packedBytes);
  EXPECT_EQ(eight.scales.size(), 8 * one.scales.size());
  EXPECT_EQ(eight.copyBytes, one.copyBytes);
}

TEST(QuantizedWeights, EveryFormatIsDescribed) {
  for (const WeightFormatDescription &format : weightFormats()) {
    EXPECT_EQ(&describe(format.format), &format) << format.name;
    EXPECT_EQ(findWeightFormat(format.name), &format);
    EXPECT_NE(weightFormatNames().find(format.name), std::string::npos);
  }
  EXPECT_EQ(findWeightFormat("int3"), nullptr);
}

} // namespace
