//===- Fp8Training.h - How linear layers compute in fp8 ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_FP8TRAINING_H
#define ACCEL_FRONTENDS_JOB_FP8TRAINING_H

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace accel {

/// torchao's recipes by their names (torchao/float8/config.py), or
/// TransformerEngine's delayed scaling.
enum class Fp8Recipe { Tensorwise, Rowwise, RowwiseGradWeight, Delayed };

constexpr std::array<const char *, 4> fp8RecipeNames = {
    "tensorwise", "rowwise", "rowwise_with_gw_hp", "te"};

constexpr const char *toString(Fp8Recipe recipe) {
  return fp8RecipeNames[static_cast<size_t>(recipe)];
}
constexpr std::optional<Fp8Recipe> parseFp8Recipe(std::string_view name) {
  for (size_t i = 0; i < fp8RecipeNames.size(); ++i)
    if (name == fp8RecipeNames[i])
      return static_cast<Fp8Recipe>(i);
  return std::nullopt;
}

struct Fp8Training {
  Fp8Recipe recipe = Fp8Recipe::Tensorwise;
  /// The script wants weights gathered in fp8, where what shards them can.
  bool gathers = false;
  int64_t amaxHistory = 1024; // steps, of delayed scaling
};

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_FP8TRAINING_H
