//===- DecoderParts.h - Blocks of a decoder as operators --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_DECODERPARTS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_DECODERPARTS_H

#include "frontends/HuggingFace/Decoder.h"
#include "frontends/HuggingFace/FunctionWriter.h"

#include <string>

namespace accel::huggingface {

/// Writes single modules of a decoder into a function.
class DecoderParts {
public:
  DecoderParts(FunctionWriter &f, const Decoder &decoder) : f(f), d(decoder) {}

  /// `rows` [tokens, in] -> [tokens, out].
  mlir::Value linear(mlir::Value rows, const std::string &module);
  /// `x` where `module` is empty.
  mlir::Value norm(mlir::Value x, const std::string &module);
  mlir::Value norm(mlir::Value x, const std::string &module, double eps);
  mlir::Value slice(mlir::Value x, int64_t dim, int64_t begin, int64_t end);

private:
  mlir::Value layerNormByParts(mlir::Value x, mlir::Value weight, double eps);

protected:
  FunctionWriter &f;
  const Decoder &d;
};

/// What an attention reads.
struct AttentionInputs {
  mlir::Value hidden;     // [B, S, hidden]
  mlir::Value cos, sin;   // [S, width]; null: not rotary
  mlir::Value added;      // to the scores; or null
  bool documents = false; // `added` hides other documents, and has the window
};

/// The attention of a layer, without norms around it: [B, S, hidden].
mlir::Value writeAttention(FunctionWriter &f, const Decoder &decoder,
                           const DecoderLayerKind &kind,
                           const AttentionInputs &inputs);

/// The Mamba-2 mixer of a layer: [B, S, hidden].
mlir::Value writeMamba(FunctionWriter &f, const Decoder &decoder,
                       mlir::Value hidden);

/// The gated delta rule of a layer: [B, S, hidden].
mlir::Value writeDelta(FunctionWriter &f, const Decoder &decoder,
                       mlir::Value hidden);

/// What tells functions of layers of this kind from those of others by name.
std::string suffixOf(const DecoderLayerKind &kind);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_DECODERPARTS_H
