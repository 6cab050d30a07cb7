//===- AccelerateMapping.h - Keys that scripts set --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What Accelerate is told comes from a YAML, flags of its launcher, and objects
// that a script builds. They are put together as one mapping of an accelerate
// YAML whose values know where they stand, since that is what the reader of
// accelerate files judges.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_ACCELERATEMAPPING_H
#define ACCEL_FRONTENDS_SCRIPTS_ACCELERATEMAPPING_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Scripts/GivenArguments.h"

namespace accel::scripts {

class AccelerateMapping {
public:
  explicit AccelerateMapping(NodeStore &nodes) : nodes(nodes) {
    root_.kind = yaml::Kind::Mapping;
  }

  /// Starts from the root of an accelerate YAML at `file`.
  void start(const yaml::Node &root, const std::string &file);

  /// A key of the top level (section "") or of a section, instead of what is
  /// there under any of its spellings.
  void set(const std::string &section, const std::string &key,
           const yaml::Node *value);
  /// Where nothing is there.
  void setDefault(const std::string &section, const std::string &key,
                  const yaml::Node *value) {
    if (!find(section, key))
      set(section, key, value);
  }
  void remove(const std::string &section, const std::string &key = "");
  const yaml::Node *find(const std::string &section,
                         const std::string &key) const;
  /// distributed_type, as text; empty: none.
  std::string type() const;

  /// Flags of accelerate launch, which go before the file.
  void addFlags(const GivenArguments &flags, DiagnosticEngine &engine);

  const yaml::Node &root() const { return root_; }
  bool empty() const { return root_.entries.empty(); }

private:
  bool readsParallelism(const GivenArguments &flags, DiagnosticEngine &engine);
  void startOnCpu(const Given &flag, DiagnosticEngine &engine);
  yaml::Node *section(const std::string &name, const yaml::Node *place);
  NodeStore &nodes;
  yaml::Node root_;
};

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_ACCELERATEMAPPING_H
