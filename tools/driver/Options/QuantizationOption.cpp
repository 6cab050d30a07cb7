//===- QuantizationOption.cpp - --quantize --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/QuantizationOption.h"

accel::ValueKind<accel::QuantizationConfig> accel::quantizationValue() {
  return {"FORMAT", [](const std::string &word, QuantizationConfig &value) {
            std::string problem;
            if (auto config = parseQuantization(word, problem))
              value = std::move(*config);
            return problem;
          }};
}
