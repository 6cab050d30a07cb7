//===- OptimizerOption.cpp - The optimizer by transformers' name ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/OptimizerOption.h"

namespace accel {

ValueKind<const plan::TransformersOptimizer *> optimizerValue() {
  return {"NAME",
          [](const std::string &word,
             const plan::TransformersOptimizer *&value) -> std::string {
            if (const auto *named = plan::findTransformersOptimizer(word)) {
              value = named;
              return "";
            }
            std::vector<std::string> names;
            for (const plan::TransformersOptimizer &known :
                 plan::transformersOptimizers())
              if (known.optimizer)
                names.emplace_back(known.name);
            return expectedOneOf(word, names);
          }};
}

} // namespace accel
