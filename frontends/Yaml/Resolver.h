//===- Resolver.h - YAML 1.1 scalars ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which tag PyYAML gives a plain scalar (yaml/resolver.py), and the value that
// SafeConstructor makes of a scalar (yaml/constructor.py).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_RESOLVER_H
#define ACCEL_FRONTENDS_YAML_RESOLVER_H

#include <string_view>

namespace accel::yaml {

struct Node;

/// Tags of "tag:yaml.org,2002:"; Unknown is every other one.
enum class Tag : unsigned char {
  Null,
  Bool,
  Int,
  Float,
  String,
  Timestamp,
  Binary,
  Sequence,
  Mapping,
  Set,
  Omap,
  Pairs,
  Merge,
  Value,
  Unknown
};

/// The tag of a plain scalar without an explicit one.
Tag resolvePlain(std::string_view text);

/// A tag by its full name ("tag:yaml.org,2002:int").
Tag tagByName(std::string_view name);

/// Sets kind and value of `node` from its text; false if PyYAML's constructor
/// raises (`!!int x`, a 13th month, a tag that is none of a scalar).
bool constructScalar(Tag tag, Node &node);

/// The decimal digits of a number in another base; empty if they are more than
/// Python converts (4300).
std::string decimalDigits(std::string_view digits, int base);

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_RESOLVER_H
