//===- DeepspeedJson.h - Every key of a DeepSpeed JSON ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_DEEPSPEEDJSON_H
#define ACCEL_FRONTENDS_ACCELERATE_DEEPSPEEDJSON_H

#include "frontends/Accelerate/SectionSettings.h"
#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Yaml/Yaml.h"

namespace accel {

struct AccelerateOptions;

/// Where `accelerate launch` would find the JSON file `name` of the YAML
/// `yaml`: in the working folder, else beside the YAML; empty: nowhere.
std::string findDeepspeedFile(const std::string &name, const std::string &yaml);

/// Reports what DeepSpeed refuses or ignores in the file's keys, and each
/// "auto" that nobody replaces. With `forPlanning` also what changes bytes that
/// are not counted (exit code 4).
/// `version`: DeepSpeed's; empty: not given, and the newest in a plan.
/// It begins with checkDeepspeedStops and says nothing more where that is
/// false.
void checkDeepspeedJson(const std::string &file, const yaml::Node &root,
                        bool forPlanning, const std::string &version,
                        DiagnosticEngine &engine);

/// Whether a DeepSpeed file holds an object at all; reports where it does not.
bool isDeepspeedObject(const std::string &file, const yaml::Node *root,
                       DiagnosticEngine &engine);

/// Reports the values with which Accelerate or DeepSpeed stops every rank.
/// False where there is no zero_optimization.
bool checkDeepspeedStops(const std::string &file, const yaml::Node &root,
                         DiagnosticEngine &engine);

/// DeepSpeed asserts that a train_batch_size is micro-batch x accumulation x
/// ranks (0: not known), where the file says all three.
void checkBatchProduct(const DeepspeedSettings &settings, int64_t ranks,
                       DiagnosticEngine &engine);

/// One note of a plan with the keys that change no bytes, but for those that
/// the executor has `read`.
void noteKeysWithoutBytes(const std::string &file, const yaml::Node &root,
                          const std::vector<std::string> &read,
                          DiagnosticEngine &engine);

/// Puts what Accelerate and the Trainer put for "auto" of a model with this
/// hidden size: buckets and thresholds in elements.
/// The configuration in a file that deepspeed_config_file names: the file
/// itself, or the object "deepspeed" of TrainingArguments, with `prefix` then
/// "deepspeed.".
const yaml::Node &deepspeedRoot(const yaml::Node &file, std::string &prefix);

/// What DeepSpeed says of ZeRO++ and MiCS over so many ranks (0: not known).
void checkRankGroups(const DeepspeedSettings &settings, int64_t ranks,
                     const std::string &version, DiagnosticEngine &engine);

/// Both for lint, of the file that a script's arguments name; a plan looks
/// where it reads them.
void lintDeepspeed(const DeepspeedSettings &settings, int64_t ranks,
                   const AccelerateOptions &options, DiagnosticEngine &engine);

/// `a` is an earlier release than `b`, number by number: 0.9 is before 0.19.
bool isEarlierRelease(std::string_view a, std::string_view b);

void resolveAuto(DeepspeedSettings &settings, int64_t hiddenSize);

/// The value at a dotted path below `root`, or null.
const yaml::Node *jsonAt(const yaml::Node &root, std::string_view path);
/// A scalar as JSON writes it: null, true, or its text.
std::string jsonText(const yaml::Node &value);
/// It is one of `values`, which commas divide.
bool isOneOf(const yaml::Node &value, std::string_view values);

/// Reports a value of the file at its place.
void reportInJson(DiagnosticEngine &engine, const std::string &file,
                  Severity severity, const char *code, const yaml::Node &node,
                  const std::string &key, const std::string &message,
                  const std::string &hint);

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_DEEPSPEEDJSON_H
