//===- Expression.h - Arithmetic in model descriptions ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Shapes and conditions of a model description are expressions over members of
// config.json: `num_attention_heads * head_dim`, `layer % 2 == 0 ? a : b`.
// `/` rounds down; true is 1, false and null are 0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_EXPRESSION_H
#define ACCEL_FRONTENDS_MODULETREE_EXPRESSION_H

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace accel::moduletree {

/// The value of a name, or nothing if there is none.
using Lookup = std::function<std::optional<double>(std::string_view)>;

/// The value, or nothing with a phrase in `error`.
std::optional<double> evaluate(std::string_view text, const Lookup &lookup,
                               std::string &error);

} // namespace accel::moduletree

#endif // ACCEL_FRONTENDS_MODULETREE_EXPRESSION_H
