//===- Sizes.cpp - What a model really takes ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Estimate/Sizes.h"

#include <set>

using namespace accel;
using namespace accel::estimate;

namespace {

/// Bytes of a linear layer's matrix in bitsandbytes.
int64_t int8Bytes(const TreeParameter &p) {
  return p.numel() + 4 * p.shape[0]; // a float32 scale for each row
}
int64_t int4Bytes(const TreeParameter &p) {
  // Two to a byte, and a float32 scale for each block of 64.
  return (p.numel() + 1) / 2 + 4 * ((p.numel() + 63) / 64);
}

/// Whether bitsandbytes quantizes it: the matrix of a Linear (or of GPT-2's
/// Conv1D) that is not the output embedding.
bool isQuantized(const ModuleTree &tree, const TreeParameter &p) {
  const TreeModule &module = tree.modules[static_cast<size_t>(p.module)];
  bool linear = module.className == "Linear" || module.className == "Conv1D";
  return linear && p.shape.size() == 2 && module.fqn != tree.outputEmbedding;
}

} // namespace

TrueSizes accel::estimate::trueSizes(const ModuleTree &tree,
                                     const plan::OptimizerRule &optimizer) {
  TrueSizes sizes;
  int64_t int8 = 0, int4 = 0, states32 = 0, states16 = 0;
  for (const TreeParameter &p : tree.parameters) {
    if (p.tiedTo >= 0)
      continue;
    sizes.parameters += p.numel();
    states32 += optimizer.stateBytes(p.shape, plan::DType::F32);
    states16 += optimizer.stateBytes(p.shape, plan::DType::BF16);
    bool quantized = isQuantized(tree, p);
    int8 += quantized ? int8Bytes(p) : 2 * p.numel();
    int4 += quantized ? int4Bytes(p) : 2 * p.numel();
  }
  for (const TreeBuffer &buffer : tree.buffers)
    sizes.bufferBytes += buffer.numel() * plan::itemSize(buffer.dtype);
  // Where weights are loaded in `itemSize` bytes.
  auto buffersAt = [&](int64_t itemSize) {
    int64_t bytes = 0;
    for (const TreeBuffer &buffer : tree.buffers)
      bytes += buffer.numel() *
               (buffer.asModel ? itemSize : plan::itemSize(buffer.dtype));
    return bytes;
  };
  int64_t n = sizes.parameters, buffers = buffersAt(2);
  sizes.loaded = {
      {"float32", 4 * n + buffersAt(4), "4 B per parameter"},
      {"float16, bfloat16", 2 * n + buffers, "2 B per parameter"},
      {"int8 (LLM.int8)", int8 + buffers,
       "1 B in linear layers and a scale per row, the rest in bfloat16"},
      {"int4 (NF4)", int4 + buffers,
       "half a byte in linear layers and a scale per 64, the rest in "
       "bfloat16"}};
  const bool adamw = optimizer.values.name == "adamw";
  auto each = [&](int64_t bytes) {
    return n ? static_cast<double>(bytes) / static_cast<double>(n) : 0.0;
  };
  sizes.training = {
      {"float32", each(8 * n + states32), 4 * n, 4 * n, states32, 0,
       adamw ? "weights, gradients and both moments in float32"
             : "weights and gradients in float32, and the optimizer's states"},
      {"fp16, bf16 mixed precision", each(8 * n + states32), 4 * n, 4 * n,
       states32, 2 * n,
       "the same in float32, and copies of 2 B while a step computes"},
      {"bf16 weights, no mixed precision", each(4 * n + states16), 2 * n, 2 * n,
       states16, 0, "all in bfloat16, small updates are lost to rounding"}};
  return sizes;
}

std::vector<const TreeParameter *>
accel::estimate::missingParameters(const ModuleTree &full,
                                   const ModuleTree &base) {
  std::set<std::string> known;
  std::string prefix =
      full.base && !full.base->empty() ? *full.base + "." : std::string();
  for (const TreeParameter &p : base.parameters) {
    known.insert(p.fqn);
    known.insert(prefix + p.fqn);
  }
  std::vector<const TreeParameter *> missing;
  for (const TreeParameter &p : full.parameters)
    if (p.tiedTo < 0 && !known.count(p.fqn))
      missing.push_back(&p);
  return missing;
}
