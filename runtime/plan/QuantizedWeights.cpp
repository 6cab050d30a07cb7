//===- QuantizedWeights.cpp - What a quantised weight holds ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/QuantizedWeights.h"

namespace accel::plan {
namespace {

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// bitsandbytes/functional.py, quantize_4bit: one scale for 64 elements; with
/// nested statistics (Dettmers et al., QLoRA, arXiv 2305.14314, section 3) a
/// byte each, one fp32 scale for 256 of these, and their mean.
constexpr int64_t nfBlock = 64, nestedBlock = 256;
constexpr int64_t nfTableBytes = 16 * 4, meanBytes = 4;

std::vector<int64_t> blockScales(const Quantization &q, int64_t numel) {
  const int64_t blocks = divideUp(numel, nfBlock);
  if (!q.doubleQuant)
    return {blocks * 4, nfTableBytes};
  return {blocks, divideUp(blocks, nestedBlock) * 4, meanBytes, nfTableBytes};
}

/// GPTQ (Frantar et al., arXiv 2210.17323) and AWQ (arXiv 2306.00978) as their
/// libraries pack them: fp16 scales and packed zero points by group of inputs;
/// GPTQ also the group of each input (g_idx).
std::vector<int64_t> groupScales(const Quantization &q, int64_t out, int64_t in,
                                 int64_t bits, int64_t group) {
  const int64_t groups = group > 0 ? divideUp(in, group) : 1;
  std::vector<int64_t> scales = {groups * out * 2, groups * out * bits / 8};
  if (q.format == WeightFormat::Gptq)
    scales.push_back(in * 4);
  return scales;
}

} // namespace

const std::vector<WeightFormatDescription> &weightFormats() {
  static const std::vector<WeightFormatDescription> all = {
      {WeightFormat::Nf4, "nf4", "4-bit NormalFloat of bitsandbytes (QLoRA)",
       "bitsandbytes/autograd/_functions.py: MatMul4Bit", 4, DType::U8, true,
       QuantizedMatmul::Dequantizes, nfBlock, nullptr},
      {WeightFormat::Fp4, "fp4", "4-bit float of bitsandbytes",
       "bitsandbytes/autograd/_functions.py: MatMul4Bit", 4, DType::U8, true,
       QuantizedMatmul::Dequantizes, nfBlock, nullptr},
      {WeightFormat::Int8, "int8", "LLM.int8() of bitsandbytes",
       "bitsandbytes/autograd/_functions.py: MatMul8bitLt", 8, DType::U8, true,
       QuantizedMatmul::MultipliesIntegers, 0, nullptr},
      {WeightFormat::Gptq, "gptq", "GPTQ with its PyTorch kernel",
       "gptqmodel/nn_modules/qlinear/torch.py: TorchQuantLinear", 4, DType::I32,
       false, QuantizedMatmul::SavesCopy, 128, nullptr},
      {WeightFormat::Awq, "awq", "AWQ with its GEMM kernel",
       "awq/modules/linear/gemm.py: WQLinearMMFunction", 4, DType::I32, false,
       QuantizedMatmul::DequantizesSavesInput, 128, nullptr},
      {WeightFormat::Mxfp4, "mxfp4", "experts of gpt-oss in MXFP4",
       "transformers/integrations/mxfp4.py", 4, DType::U8, true,
       QuantizedMatmul::Dequantizes, 32,
       "its kernels have no backward; Mxfp4Config(dequantize=True) loads the "
       "weights in bf16, which trains"},
  };
  return all;
}

const WeightFormatDescription &describe(WeightFormat format) {
  return weightFormats()[static_cast<size_t>(format)];
}

const WeightFormatDescription *findWeightFormat(const std::string &name) {
  for (const WeightFormatDescription &description : weightFormats())
    if (name == description.name)
      return &description;
  return nullptr;
}

std::string weightFormatNames() {
  std::string names;
  for (const WeightFormatDescription &description : weightFormats())
    names += (names.empty() ? "" : ", ") + std::string(description.name);
  return names;
}

QuantizedWeight quantizedWeight(const Quantization &q, int64_t out, int64_t in,
                                int64_t experts) {
  const WeightFormatDescription &description = describe(q.format);
  const int64_t bits = q.bits > 0 ? q.bits : description.bits;
  const int64_t group = q.group != 0 ? q.group : description.group;
  const int64_t numel = out * in;
  QuantizedWeight weight;
  weight.packedBytes = divideUp(numel * bits, 8) * experts;
  weight.copyBytes = numel * 2;
  std::vector<int64_t> scales;
  switch (q.format) {
  case WeightFormat::Nf4:
  case WeightFormat::Fp4:
    scales = blockScales(q, numel);
    if (q.doubleQuant)
      weight.expandedScaleBytes = 4 * scales.front();
    break;
  case WeightFormat::Int8:
    scales = {out * 4}; // SCB
    break;
  case WeightFormat::Gptq:
  case WeightFormat::Awq:
    scales = groupScales(q, out, in, bits, group);
    break;
  case WeightFormat::Mxfp4:
    scales = {numel / group};
    break;
  }
  for (int64_t e = 0; e < experts; ++e)
    weight.scales.insert(weight.scales.end(), scales.begin(), scales.end());
  return weight;
}

} // namespace accel::plan
