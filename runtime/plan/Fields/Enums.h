//===- Enums.h - Names of enumerators ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_ENUMS_H
#define ACCEL_RUNTIME_PLAN_FIELDS_ENUMS_H

#include "runtime/plan/Functions.h"
#include "runtime/plan/Programs.h"
#include "runtime/plan/Stages.h"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace accel::plan {

/// Enums that plan.json has by name, with toString for each enumerator: what
/// they are called in messages, and the last enumerator.
template <typename E> struct EnumOf;
template <> struct EnumOf<DType> {
  static constexpr const char *what = "dtype";
  static constexpr DType last = DType::I1;
};
template <> struct EnumOf<Instruction::Kind> {
  static constexpr const char *what = "kind of instruction";
  static constexpr Instruction::Kind last = Instruction::Kind::Opaque;
};
template <> struct EnumOf<ProgramInstructionKind> {
  static constexpr const char *what = "kind of instruction";
  static constexpr ProgramInstructionKind last = ProgramInstructionKind::Fetch;
};
template <> struct EnumOf<Role> {
  static constexpr const char *what = "role";
  static constexpr Role last = Role::ShardGradient;
};
template <> struct EnumOf<Stream> {
  static constexpr const char *what = "stream";
  static constexpr Stream last = Stream::Host;
};
template <> struct EnumOf<Part> {
  static constexpr const char *what = "part";
  static constexpr Part last = Part::Weights;
};

template <typename E> std::vector<const char *> enumNames() {
  std::vector<const char *> names;
  for (int i = 0; i <= static_cast<int>(EnumOf<E>::last); ++i)
    names.push_back(toString(static_cast<E>(i)));
  return names;
}

template <typename E> std::optional<E> enumNamed(const std::string &name) {
  for (int i = 0; i <= static_cast<int>(EnumOf<E>::last); ++i)
    if (name == toString(static_cast<E>(i)))
      return static_cast<E>(i);
  return std::nullopt;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_ENUMS_H
