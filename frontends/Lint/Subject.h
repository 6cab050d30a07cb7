//===- Subject.h - What the checks look at ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_LINT_SUBJECT_H
#define ACCEL_FRONTENDS_LINT_SUBJECT_H

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Job/JobConfig.h"
#include "frontends/ModuleTree/ModuleTree.h"

namespace accel::lint {

/// A key of the file; without `entry` it does not stand there, and findings
/// point at its section or the file's first line.
struct Field {
  const yaml::Entry *entry = nullptr;
  std::string key; // dotted

  explicit operator bool() const { return entry != nullptr; }
  const yaml::Node &value() const { return *entry->value; }
  bool isNull() const { return entry->value->isNull(); }
  /// str(value), as it lands in an environment variable.
  std::string text() const { return yaml::pythonText(*entry->value); }
};

enum class At { Value, Key };

struct Subject {
  std::string file;                 // of the accelerate keys
  const yaml::Node *root = nullptr; // the mapping with the accelerate keys
  std::string prefix;               // of dotted keys: "" or "accelerate."
  const AccelerateConfig *config = nullptr; // null: could not be read
  const JobConfig *job = nullptr;           // null: not a job.yaml
  const ModuleTree *tree = nullptr;         // null: no model, or unknown
  AccelerateVersion version;
  AccelerateVersion torch{2, 15}, transformers{5, 23};
  std::string deepspeed; // empty: not given
  DiagnosticEngine &engine;

  Field top(const std::string &name) const;
  /// A nested key by its canonical name (with the section's prefix).
  Field in(const std::string &section, const std::string &canonical) const;
  bool has(const std::string &section) const;
  void report(Severity severity, const char *code, const Field &field,
              const std::string &message, const std::string &hint = "",
              At at = At::Value) const;

  /// Which FSDP a wrong fsdp_version means is not known: then neither.
  bool isFsdp() const {
    return config && !config->assumed.fsdpVersion &&
           (*config->strategy == Strategy::Fsdp1 ||
            *config->strategy == Strategy::Fsdp2);
  }
  bool isFsdp2() const {
    return isFsdp() && *config->strategy == Strategy::Fsdp2;
  }
  bool isType(DistributedType type) const {
    return config && *config->distributedType == type;
  }
  /// A size of parallelism_config, 1 where it is absent, wrong, or not for
  /// the job.
  int64_t meshSize(const std::string &axis) const;
  /// Bytes of a gathered parameter's element.
  int64_t gatheredBytes() const;
};

/// int(str(value)) of Python, where that works.
std::optional<int64_t> integer(const Field &field);
/// str_to_bool(str(value)), where that works.
std::optional<bool> boolean(const Field &field);

/// "1.5 GiB", "12 MiB", "512 bytes".
std::string bytesText(double bytes);
/// "8.03 B", "131 M", "4096" parameters.
std::string countText(int64_t count);

/// In which from_pretrained loads the model by itself; nothing: not known.
std::optional<plan::DType> checkpointDtype(const std::string &model);

// The checks. Each is silent where it does not apply.
void checkUnits(const Subject &subject);         // Units.cpp
void checkTiedWeights(const Subject &subject);   // Ties.cpp
void checkPrecision(const Subject &subject);     // Precision.cpp
void checkParallelism(const Subject &subject);   // Parallelism.cpp
void checkMegatron(const Subject &subject);      // Megatron.cpp
void checkMemory(const Subject &subject);        // Memory.cpp
void checkVersions(const Subject &subject);      // Versions.cpp
void checkDeepspeed(const Subject &subject);     // Deepspeed.cpp
void checkDeepspeedFile(const Subject &subject); // DeepspeedFile.cpp
void checkPairs(const Subject &subject);         // Pairs.cpp

} // namespace accel::lint

#endif // ACCEL_FRONTENDS_LINT_SUBJECT_H
