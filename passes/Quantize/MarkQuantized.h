//===- MarkQuantized.h - Which weights are quantised ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A quantised weight stays a parameter of its own shape and 16-bit type in the
// IR, which is what matmuls compute with; the attribute says what is held.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_QUANTIZE_MARKQUANTIZED_H
#define ACCEL_PASSES_QUANTIZE_MARKQUANTIZED_H

#include "dialects/Sharding/Sharding.h"
#include "frontends/Job/QuantizationConfig.h"
#include "passes/Quantize/QuantizedAttr.h"

namespace accel {

/// What a parameter's attribute says.
struct QuantizedParam {
  plan::WeightFormat format = plan::WeightFormat::Nf4;
  plan::QuantizedWeight weight;
  plan::DType storage = plan::DType::U8;
  bool findsOutliers = false; // of inputs: Quantization::threshold
};
/// Nothing where the parameter is not quantised.
std::optional<QuantizedParam> quantizedParam(sharding::ParamOp param);

/// What a release of transformers gives bitsandbytes beside layers of the class
/// nn.Linear itself.
struct LinearLayers {
  /// Each expert's: mixtures keep their experts in one tensor each from
  /// transformers 5 on, which bitsandbytes leaves as it is.
  bool experts = false;
  /// Of classes that derive from it: replace_with_bnb_linear asks for
  /// isinstance until transformers 5.4, for the type from 5.5 on.
  bool derived = false;
};

/// Marks the weights of linear layers as transformers' replace_with_bnb_linear
/// and its kin choose them: all but `skipped`, or the output embedding (at
/// `outputEmbedding`). Returns how many were marked.
int64_t markQuantized(mlir::ModuleOp module, const QuantizationConfig &config,
                      llvm::StringRef outputEmbedding, LinearLayers layers);

} // namespace accel

#endif // ACCEL_PASSES_QUANTIZE_MARKQUANTIZED_H
