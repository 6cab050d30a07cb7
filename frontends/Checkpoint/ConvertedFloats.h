//===- ConvertedFloats.h - Floats of another width --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Converts a stream of float64, float32, float16 or bfloat16 to one of the last
// three as torch's Tensor.to does: rounded to the nearest, ties to even.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_CONVERTEDFLOATS_H
#define ACCEL_FRONTENDS_CHECKPOINT_CONVERTEDFLOATS_H

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace accel::checkpoint {

/// Whether tensors of torch's dtype are converted. Floats of 8 bits are not:
/// their scales lie in other tensors.
bool isConvertedFloat(std::string_view dtype);

class FloatConverter {
public:
  /// Both as torch spells them: "float32".
  FloatConverter(std::string_view from, std::string_view to);

  /// Takes bytes cut anywhere; `next` gets whole converted elements. False
  /// where `next` says so or a finite value has no finite counterpart.
  bool take(std::string_view bytes,
            const std::function<bool(std::string_view)> &next);

  /// The finite value that stopped it.
  std::optional<double> overflow() const { return beyond; }

private:
  bool convert(const char *element);

  std::string_view from, to;
  size_t width;
  std::string pending, converted;
  std::optional<double> beyond;
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_CONVERTEDFLOATS_H
