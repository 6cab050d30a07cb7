//===- LinearClasses.h - Classes of torch.nn.Linear -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_LINEARCLASSES_H
#define ACCEL_FRONTENDS_MODULETREE_LINEARCLASSES_H

#include <string_view>

namespace accel {

/// isinstance(module, torch.nn.Linear): the class itself, or one that derives
/// from it. Conv1D of transformers, which is transposed, does not.
inline bool isLinearClass(std::string_view className) {
  return className == "Linear" || className == "FalconLinear";
}

} // namespace accel

#endif // ACCEL_FRONTENDS_MODULETREE_LINEARCLASSES_H
