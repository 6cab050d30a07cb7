//===- DriveKeys.h - DeepSpeed's keys of a drive ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the JSON says of buffers, of what overlaps and of requests
// (deepspeed/runtime/zero/offload_config.py, swap_tensor/aio_config.py), as
// accel-run's file of states has it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_DRIVEKEYS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_DRIVEKEYS_H

#include "frontends/Job/JobConfig.h"
#include "frontends/Yaml/Yaml.h"

#include <string>
#include <type_traits>

namespace accel {

class DriveKeys {
public:
  /// `root` is the JSON of `file`.
  DriveKeys(const yaml::Node *root, const std::string &file, DiskConfig &disk,
            DiagnosticEngine &engine)
      : root(root), file(file), disk(disk), engine(engine) {}
  void take();

private:
  void report(const yaml::Node &node, Severity severity, const char *code,
              const std::string &key, const std::string &what,
              const std::string &fix);
  const yaml::Node *find(const char *section, const char *key) const;
  void takeFlag(const char *key, Setting<bool> &into);
  std::optional<int64_t> number(const char *section, const char *key,
                                int64_t least, int64_t most);
  /// Sets what the JSON's `key` of a section says, unless the job file says
  /// something else.
  template <typename T>
  void set(Setting<T> &into, const char *section, const char *key,
           std::type_identity_t<T> value);
  void takeBuffers();
  void noteOthers();
  Location placeOf(const yaml::Node &node) const;

  const yaml::Node *root;
  const std::string &file;
  DiskConfig &disk;
  DiagnosticEngine &engine;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_DRIVEKEYS_H
