//===- Rope.h - Rotary position embeddings of a config.json -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ROPE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ROPE_H

#include <cstdint>
#include <string>

namespace accel::huggingface {

class ConfigReader;

/// Rotary position embedding.
struct Rope {
  enum class Kind { Default, Linear, Llama3 } kind = Kind::Default;
  double theta = 10000.0;
  double factor = 1.0;                                        // Linear, Llama3
  double lowFrequencyFactor = 1.0, highFrequencyFactor = 4.0; // Llama3
  int64_t originalMaxPositions = 0;                           // Llama3
  double partial = 1.0; // share of a head that is rotated, from its start

  /// Elements of a head that the frequencies are spread over.
  int64_t dims(int64_t headDim) const {
    return static_cast<int64_t>(static_cast<double>(headDim) * partial);
  }
  /// Elements of a head that are rotated: `dims`, made even.
  int64_t width(int64_t headDim) const { return (dims(headDim) + 1) / 2 * 2; }
  bool operator==(const Rope &) const = default;
};

/// How a family spells what others call rope_theta and partial_rotary_factor,
/// and its defaults.
struct RopeNames {
  std::string theta = "rope_theta";
  double defaultTheta = 10000.0;
  std::string partial = "partial_rotary_factor";
  double defaultPartial = 1.0;
  bool partialAllowed = false;
};

/// Reads rope_parameters or rope_scaling, and the older members beside them;
/// reports to `json` what is wrong and what is not supported.
Rope readRope(ConfigReader &json, int64_t maxPositions,
              const RopeNames &names = {});

/// The same for members of the object `section` ("rope_parameters.
/// full_attention"), or of none where it is empty.
Rope readRopeSection(ConfigReader &json, const std::string &section,
                     int64_t maxPositions, const RopeNames &names);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ROPE_H
