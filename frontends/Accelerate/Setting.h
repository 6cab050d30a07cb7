//===- Setting.h - A value and where it comes from --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_SETTING_H
#define ACCEL_FRONTENDS_ACCELERATE_SETTING_H

#include <cstdint>
#include <string>

namespace accel {

/// Where a value comes from.
enum class Origin {
  Default, // nobody wrote it
  Written, // stands in the file at `at`
  Derived, // follows from other values (`why` says which)
};

struct Location {
  std::string file; // empty: none
  int line = 0, column = 0;
};

/// A value with its provenance.
template <typename T> struct Setting {
  T value{};
  Origin origin = Origin::Default;
  std::string key; // dotted path in the file ("fsdp_config.fsdp_version")
  Location at;     // of the key's value; of the section for a default
  std::string why; // one phrase for people; may be empty when written

  const T &operator*() const { return value; }
  const T *operator->() const { return &value; }
  bool written() const { return origin == Origin::Written; }
};

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_SETTING_H
