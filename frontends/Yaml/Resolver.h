//===- Resolver.h - YAML 1.1 scalars ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which type PyYAML gives a plain scalar, and the value it constructs
// (yaml/resolver.py and SafeConstructor in yaml/constructor.py).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_RESOLVER_H
#define ACCEL_FRONTENDS_YAML_RESOLVER_H

#include <string_view>

namespace accel::yaml {

struct Node;

enum class Tag { Null, Bool, Int, Float, String, Merge, Value, Timestamp };

/// The tag of a plain scalar without an explicit one.
Tag resolvePlain(std::string_view text);

/// Sets kind and value of `node` from its text; false if PyYAML's constructor
/// raises (`!!int x`, a 13th month).
bool constructScalar(Tag tag, Node &node);

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_RESOLVER_H
