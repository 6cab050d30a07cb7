//===- Arguments.h - What training scripts may be told ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every argument of the dataclasses that scripts read, with type and default,
// as data/*.txt have them (tools/list-arguments writes those), and what each
// means for a prediction, as data/meanings.txt says.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_ARGUMENTS_H
#define ACCEL_FRONTENDS_SCRIPTS_ARGUMENTS_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace accel::scripts {

/// Whose arguments: one file of data each.
enum class Family { Transformers, Accelerate, Trl, LlamaFactory, Axolotl };
/// "transformers", "accelerate", "trl", "llamafactory", "axolotl".
const char *toString(Family family);

enum class ArgumentType { Int, Float, Bool, Text, List, Dict, Any };
/// "an integer", "a number", "true or false", ...
const char *describe(ArgumentType type);

/// Values that an option takes on a command line.
/// Never: argparse cannot make its value of text.
enum class Arity { None, Optional, One, Some, Repeated, Never };

struct ArgumentInfo {
  std::string_view owner; // "TrainingArguments", "SFTConfig", "launch"
  std::string_view name;
  ArgumentType type = ArgumentType::Any;
  bool nullable = false;
  Arity arity = Arity::One;
  std::string_view standard; // the default as JSON; empty: none is known
  std::vector<std::string_view> choices;
};

/// Every argument, in the order of the data.
std::span<const ArgumentInfo> argumentsOf(Family family);
/// The argument of one dataclass, or null.
const ArgumentInfo *findArgument(Family family, std::string_view owner,
                                 std::string_view name);

enum class Meaning {
  Read,     // ReadSettings counts it
  Same,     // another name of an argument that is read
  NoEffect, // neither bytes nor the time of a step depend on it
  Slight,   // they do, by too little to count
  Refused   // they do, and it is not modelled
};

struct ArgumentMeaning {
  Family family = Family::Transformers;
  std::string_view name;
  Meaning meaning = Meaning::Read;
  /// Same: the argument that is read. Slight, Refused: what it does, as a
  /// clause.
  std::string_view text;
  /// Slight, Refused: values beside the default with which nothing happens.
  std::vector<std::string_view> harmless;
};

std::span<const ArgumentMeaning> allMeanings();
/// Null for a name that the family does not have.
const ArgumentMeaning *meaningOf(Family family, std::string_view name);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_ARGUMENTS_H
