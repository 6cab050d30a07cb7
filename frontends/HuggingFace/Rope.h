//===- Rope.h - Rotary position embeddings of a config.json -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ROPE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ROPE_H

#include <cstdint>
#include <string>
#include <vector>

namespace accel::huggingface {

class ConfigReader;

/// Rotary position embedding, as transformers' modeling_rope_utils.py has it.
struct Rope {
  enum class Kind {
    Default,
    Linear,
    Dynamic,
    Yarn,
    LongRope,
    Llama3
  } kind = Kind::Default;
  double theta = 10000.0;
  double factor = 1.0;                                        // all but Default
  double lowFrequencyFactor = 1.0, highFrequencyFactor = 4.0; // Llama3
  double betaFast = 32.0, betaSlow = 1.0; // Yarn: turns within the context
  bool truncate = true;                   // Yarn: to whole elements
  int64_t originalMaxPositions = 0;       // Yarn, LongRope, Llama3
  int64_t maxPositions = 0;               // Dynamic
  /// LongRope: a divisor of each frequency, within and beyond
  /// `originalMaxPositions`.
  std::vector<double> shortFactors, longFactors;
  double attentionFactor = 1.0; // Yarn, LongRope: of cos and sin
  double partial = 1.0; // share of a head that is rotated, from its start

  /// Elements of a head that the frequencies are spread over.
  int64_t dims(int64_t headDim) const {
    return static_cast<int64_t>(static_cast<double>(headDim) * partial);
  }
  /// Elements of a head that are rotated: `dims`, made even.
  int64_t width(int64_t headDim) const { return (dims(headDim) + 1) / 2 * 2; }
  /// Positions that a model of `learnt` ones can take: those kinds that stretch
  /// a context reach further than max_position_embeddings may say.
  int64_t reach(int64_t learnt) const;
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
  /// Phi 3 knows longrope alone, also under its names "su" and "yarn".
  bool longRopeOnly = false;
  /// "mrope" is known: pairs of a head turn by a token's time, row or column,
  /// which are one number on text.
  bool sections = false;
  /// Without rope_parameters and rope_scaling, but for theta and what part of
  /// a head is rotated.
  Rope absent = {};
};

/// The object that has them: of rope_scaling and rope_parameters the first that
/// is not empty, as transformers prefers them; "" without one.
std::string ropeSection(ConfigReader &json);

/// Reads rope_parameters or rope_scaling, and the older members beside them;
/// reports to `json` what is wrong and what is not supported.
Rope readRope(ConfigReader &json, int64_t maxPositions,
              const RopeNames &names = {});

/// The same for members of the object `section` ("rope_parameters.
/// full_attention"), or of none where it is empty.
Rope readRopeSection(ConfigReader &json, const std::string &section,
                     int64_t maxPositions, const RopeNames &names);

/// Reports where `rope` does not fit heads of `headDim` elements.
void checkRope(ConfigReader &json, const Rope &rope, int64_t headDim);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ROPE_H
