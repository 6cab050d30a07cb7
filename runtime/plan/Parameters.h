//===- Parameters.h - What a model consists of ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Parameters and buffers by the names that PyTorch gives them, with their
// global shapes: the same on every rank. How they are sharded is their unit's
// business (Units.h).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PARAMETERS_H
#define ACCEL_RUNTIME_PLAN_PARAMETERS_H

#include "runtime/plan/DType.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::plan {

/// How a parameter gets its first value when no weights are read.
struct Initializer {
  enum class Kind {
    Normal, // mean 0
    Ones,
    Zeros,
    TruncatedNormal, // mean 0, drawn again until it is in [low, high]
    Uniform,         // in [low, high)
    Constant,
    /// Row p: sin(p f_i), then cos(p f_i), with f_i falling geometrically from
    /// 1 to 1 / value over half of the columns (Whisper's encoder).
    Sinusoids
  } kind = Kind::Zeros;
  double value = 0.0; // standard deviation, constant or wavelength / 2 pi
  double low = 0.0, high = 0.0;
  int64_t zeroRow = -1; // this row is zero all the same: an embedding's padding
  bool operator==(const Initializer &) const = default;
};

/// A dimension that the ranks of an axis inside of functions (tp) share. The
/// dimension is `pieces` equal pieces, of each of which a rank has its part:
/// the merged query, key and value rows of one weight are three.
struct AxisSplit {
  std::string axis;
  int64_t dim = 0;
  int64_t pieces = 1;
  bool operator==(const AxisSplit &) const = default;
};

/// A trained or frozen tensor of the model.
struct Parameter {
  std::string fqn;                  // as named_parameters() spells it
  std::vector<std::string> aliases; // other FQNs of a tied parameter
  std::vector<std::string> stored;  // names in checkpoints, see storedParts
  /// FQN and aliases in the model without its adapter, where that renames it;
  /// the weight files know it by these. Fresh values come from (seed, the first
  /// of these).
  std::vector<std::string> baseNames;
  /// Name in the weights of an adapter, which hold it trained; empty: not part
  /// of one.
  std::string adapterKey;
  std::vector<int64_t> shape; // global
  /// What functions and the unit's flat buffer hold of it on one rank: all of
  /// it, but of these dimensions a part. A dimension is split once.
  std::vector<AxisSplit> split;
  DType dtype = DType::F32; // in which the checkpoint is written
  bool trainable = true;
  int group = 0;      // optimizer group (Optimizer::groups)
  int unit = -1;      // units
  int64_t offset = 0; // elements, in the unit's flat buffer
  Initializer init;
  int64_t numel() const; // of the global shape
  bool operator==(const Parameter &) const = default;
};

/// A tensor of the model that is not trained; persistent ones are part of the
/// checkpoint. Programs have an input of its name, whose values are in
/// Job::archive. No program changes it: every rank whose programs read it holds
/// all of it on the device for the whole run.
struct Buffer {
  std::string fqn; // as named_buffers() spells it
  std::vector<int64_t> shape;
  DType dtype = DType::F32;
  bool persistent = false;
  bool operator==(const Buffer &) const = default;
};

/// A tensor of a checkpoint: elements [begin, begin + product of shape) of a
/// parameter.
struct StoredPart {
  std::string name;
  std::vector<int64_t> shape;
  int64_t begin = 0;
};

/// The tensors that save_pretrained of transformers writes for the parameter
/// `fqn` of `shape`, one after another in memory. `stored` is empty where the
/// parameter is its tensor, one name where that is called otherwise. Names with
/// `*` in them stand for one set per index of the first dimension, each an
/// equal part of the second: a [E, 2 I, H] that is stored as {"e.*.w1",
/// "e.*.w3"} is "e.0.w1" [I, H], "e.0.w3", "e.1.w1", ... Nothing where the
/// names do not fit the shape.
std::optional<std::vector<StoredPart>>
storedParts(const std::string &fqn, const std::vector<std::string> &stored,
            const std::vector<int64_t> &shape);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PARAMETERS_H
