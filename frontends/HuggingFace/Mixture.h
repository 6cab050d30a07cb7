//===- Mixture.h - Experts of a layer ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_MIXTURE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_MIXTURE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace accel::huggingface {

/// Experts in place of a layer's MLP. A router chooses some of them for each
/// token and none is ever full, as transformers' "grouped_mm" experts.
struct Mixture {
  int64_t experts = 0; // 0: the model has none
  int64_t chosen = 0;  // for each token
  int64_t intermediateSize = 0;
  bool normalize = true;     // scores of the chosen sum to 1
  bool scoresInFp32 = false; // also where the model computes in 16 bits
  std::vector<bool> sparse;  // by layer: it has experts
  /// Coefficient of the load balancing loss, where the loss has one.
  std::optional<double> auxiliary;
  bool isSparse(int64_t layer) const {
    return experts && sparse[size_t(layer)];
  }
  int64_t sparseLayers() const;
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_MIXTURE_H
