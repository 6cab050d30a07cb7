//===- QuantizedWeights.h - What a quantised weight holds -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One description per format in which transformers keeps the linear layers of a
// frozen base: the packed tensor, its scales, what a matmul makes of it and
// what its backward needs. Readers of config.json and of --quantize, the step
// model and the rules of the wrappers read it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_QUANTIZEDWEIGHTS_H
#define ACCEL_RUNTIME_PLAN_QUANTIZEDWEIGHTS_H

#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::plan {

enum class WeightFormat { Nf4, Fp4, Int8, Gptq, Awq, Mxfp4 };

/// What a matmul with the weight needs beside it.
enum class QuantizedMatmul {
  /// The forward and the backward each make a copy of the weight in the dtype
  /// of the activations and drop it.
  Dequantizes,
  /// The same, and the matmul saves its input although the weight is frozen.
  DequantizesSavesInput,
  /// The forward multiplies integers, the backward makes the copy; the node
  /// keeps its input in an attribute, not by save_for_backward, so that a
  /// checkpoint that is not reentrant does not drop it (bitsandbytes'
  /// MatMul8bitLt).
  MultipliesIntegers,
  /// The forward makes the copy, and autograd saves it for the backward.
  SavesCopy
};

struct WeightFormatDescription {
  WeightFormat format;
  const char *name; // as --quantize spells it
  const char *summary;
  const char *source; // the code or paper that it follows
  int64_t bits;       // of an element, packed
  /// Of the packed tensor, unless the configuration says another.
  DType storage;
  /// The packed tensor is a parameter, which wrappers shard; else it is a
  /// buffer, which they leave whole on every rank.
  bool isParameter;
  QuantizedMatmul product;
  /// Elements that share a scale, where the configuration does not say.
  int64_t group;
  /// Why nothing can be trained through it; null where it can.
  const char *notTrained;
};

const std::vector<WeightFormatDescription> &weightFormats();
const WeightFormatDescription &describe(WeightFormat format);
/// Null for a name that is not known.
const WeightFormatDescription *findWeightFormat(const std::string &name);
/// nf4 and fp4: Linear4bit of bitsandbytes.
inline bool isFourBit(WeightFormat format) {
  return format == WeightFormat::Nf4 || format == WeightFormat::Fp4;
}
/// "nf4, fp4, ...".
std::string weightFormatNames();

/// A format with the values of a configuration.
struct Quantization {
  WeightFormat format = WeightFormat::Nf4;
  /// bnb_4bit_use_double_quant: the scales are quantised to 8 bits.
  bool doubleQuant = false;
  /// bnb_4bit_quant_storage; nothing: the format's.
  std::optional<DType> storage;
  int64_t bits = 0, group = 0; // of GPTQ and AWQ; 0: the format's
  /// llm_int8_threshold: columns of inputs that reach it are multiplied in 16
  /// bits; 0: none are looked for. BitsAndBytesConfig has 6.
  double threshold = 6;

  DType storageDtype() const {
    return storage.value_or(describe(format).storage);
  }
  bool findsOutliers() const {
    return format == WeightFormat::Int8 && threshold > 0;
  }
  bool operator==(const Quantization &) const = default;
};

/// Bytes of one weight [out, in]; without the allocator's rounding.
struct QuantizedWeight {
  int64_t packedBytes = 0;
  /// Scales, zero points, tables and indices, each a tensor.
  std::vector<int64_t> scales;
  /// The weight in 16 bits, as a matmul makes it.
  int64_t copyBytes = 0;
  /// Scales in fp32 that a matmul makes of scales that are quantised too.
  int64_t expandedScaleBytes = 0;
};
/// `experts`: matrices of that shape in one tensor, each quantised by itself.
QuantizedWeight quantizedWeight(const Quantization &quantization, int64_t out,
                                int64_t in, int64_t experts = 1);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_QUANTIZEDWEIGHTS_H
