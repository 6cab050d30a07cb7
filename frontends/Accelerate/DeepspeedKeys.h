//===- DeepspeedKeys.h - Keys of DeepSpeed's JSON ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What each key of a DeepSpeed configuration means for a prediction, as data
// that lint, plan and the JSON reader share: a key is counted, or refused where
// it changes bytes that are not counted, or has no effect on bytes. Source:
// deepspeed/runtime/{config,constants,precision_config}.py and zero/*.py of
// DeepSpeed 0.19.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_DEEPSPEEDKEYS_H
#define ACCEL_FRONTENDS_ACCELERATE_DEEPSPEEDKEYS_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace accel {

enum class DeepspeedMeaning {
  Section, // an object of keys
  Counted, // read by the prediction
  NoBytes, // of logs, checkpoints, schedules or speed alone
  Refused, // changes bytes or time, which is not counted
  Removed, // newer releases stop with an error, and `before` has more bytes
};

struct DeepspeedKey {
  const char *path; // dotted, from the file's root
  DeepspeedMeaning meaning;
  /// Refused: what the key does, as a clause. Removed: what to write instead.
  const char *what = "";
  /// Refused: values with which nothing happens, joined by commas, or ">=" and
  /// the least such number; a key without any is refused whatever its value.
  const char *off = "";
  /// Section: an unknown key in it is an error of DeepSpeed, which elsewhere
  /// ignores it in silence.
  bool strict = false;
  /// Accelerate or transformers' Trainer replaces "auto" here; elsewhere
  /// Accelerate stops with a ValueError.
  bool fillsAuto = false;
  /// Removed: the first release without it, and what those before do, as a
  /// clause; empty where that is counted.
  const char *until = "", *before = "";
};

std::span<const DeepspeedKey> deepspeedKeys();
/// Null: DeepSpeed has no such key.
const DeepspeedKey *findDeepspeedKey(std::string_view path);
/// Names of the keys of the section at `path` ("" is the root).
std::vector<std::string> deepspeedKeysIn(std::string_view path);

/// For a key of the JSON that stands in deepspeed_config of the YAML: where it
/// belongs, as a hint; empty where DeepSpeed has no such key.
std::string placeOfDeepspeedKey(std::string_view name);

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_DEEPSPEEDKEYS_H
