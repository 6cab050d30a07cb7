//===- Rule.h - What a field may be -----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each struct of a plan has one list of its fields, a function
//
//   template <typename V> void fields(V &v, Of<V, Axis> &axis) {
//     v.about("axis", "One dimension of the mesh");
//     v("name", axis.name);
//     v("size", axis.size, {.low = 1, .high = maxInt});
//   }
//
// that visitors are taken through: the writer and the reader of plan.json
// (PlanWrite.cpp, PlanRead.cpp), the schema (PlanSchema.cpp), and the
// compiler's attribute of a job (passes/Pipeline/JobAttr.cpp). Lists are in the
// order of the file. A visitor has
//
//   about(name, doc)              what the struct is called; comes first
//   v(key, value, rule)           a field that is always there
//   optional(key, value, rule)    left out where the value is empty or zero
//   optional(key, value, standard, rule)    left out where it is `standard`
//   group(key, rule, list)        an object of its own in the file alone
//   nullable(key, rule, has, list)          null unless `has`
//   check(key, problem)           what else the reader refuses: `problem` gives
//                                 a sentence, or nothing
//   plan()                        what names refer to
//
// Values are scalars, enums, lists, other structs with lists, or forms
// (Forms.h), which plan.json spells in a way of their own.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_RULE_H
#define ACCEL_RUNTIME_PLAN_FIELDS_RULE_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace accel::plan {

constexpr int64_t maxInt = std::numeric_limits<int>::max();
/// Elements or bytes of one tensor: far above any, far below overflow.
constexpr int64_t maxSize = int64_t(1) << 45;

/// A struct as the visitor has it: to be filled by readers, constant elsewhere.
template <typename V, typename T>
using Of = std::conditional_t<V::reads, T, const T>;

/// Things that others name. Names are unique where a rule says so.
enum class Named { Nothing, Axis, Unit, Parameter, Function, Program };

struct Rule {
  /// A phrase for the schema: meaning and unit.
  const char *doc = nullptr;

  // What the reader asks for.
  /// Of an integer, and of the items of a list of them.
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();
  /// Of a real, and of the items of a list of them: in [least, below).
  double least = -std::numeric_limits<double>::max();
  double below = std::numeric_limits<double>::infinity();
  /// Items of a list of reals; 0: any number.
  size_t count = 0;
  /// Of a string, and what to call it in a message.
  std::span<const char *const> names = {};
  const char *what = nullptr;
  /// The items of a list have names, which are unique.
  Named items = Named::Nothing;
  /// The index -1 is null.
  bool null = false;
  /// It is in the file although it has its standard value.
  bool stated = false;
  /// It is read after the fields of its object with lower turns: what refers to
  /// fields that come later in the file.
  int turn = 0;

  // How it is written.
  /// Starts a line of this indentation; -1: goes on in the same one.
  int line = -1;
  /// With a line for each item of the list.
  bool rows = false;
  /// With spaces between fields of the same line.
  bool spaced = false;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_RULE_H
