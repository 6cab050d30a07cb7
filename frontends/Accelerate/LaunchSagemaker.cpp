//===- LaunchSagemaker.cpp - Files for Amazon SageMaker -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// BaseConfig.process_config and SageMakerConfig of accelerate/commands/config/
// config_args.py, then _validate_launch_command of
// accelerate/commands/launch.py since 1.10.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"

#include <algorithm>

using namespace accel;

/// The loader comes first: unknown keys, then missing ones, then the type. Only
/// a file that it takes reaches what stops every file.
void AccelerateReader::refuseSagemaker(const Field &environment) {
  bool loads = true;
  std::vector<std::string> known = keysOf(sagemakerSection, version);
  for (const yaml::Entry &entry : root.entries) {
    const std::string &name = entry.key->text;
    if (!entry.key->isString() ||
        std::find(foreign.begin(), foreign.end(), name) != foreign.end() ||
        std::find(known.begin(), known.end(), name) != known.end())
      continue;
    loads = false;
    const KeyInfo *local = findKey("", name);
    if (local && local->in(version)) // others have been reported
      report(Severity::Error, "unknown-key", {&entry, prefix + name},
             "unknown key '" + printable(name) + "' in a file for SageMaker",
             "remove it: `accelerate launch` refuses the file", true,
             fixRemoval({&entry, prefix + name}));
  }
  for (const char *required : {"ec2_instance_type", "iam_role_name"})
    if (!top(required)) {
      loads = false;
      report(
          Severity::Error, "missing-key", environment,
          std::string(required) +
              " is missing, which a file for SageMaker must have; `accelerate"
              " launch` stops with a TypeError",
          std::string("add `") + required + ": ...`");
    }
  Field type = top("distributed_type");
  std::string text = type ? yaml::pythonText(type.value()) : "";
  if (!type) {
    loads = false;
    report(Severity::Error, "missing-key", environment,
           "distributed_type is missing",
           "add distributed_type: 'NO', DATA_PARALLEL or MODEL_PARALLEL");
  } else if (text == "NO" && type.value().isString()) {
    // The loader adds num_processes, which then is a key too many.
    loads = false;
    error("sagemaker-launch", type,
          "accelerate " + toString(version) +
              " cannot load a file for SageMaker with distributed_type NO: it "
              "adds num_processes itself and then refuses that key",
          "use accelerate 1.9 or older for SageMaker");
  } else if (type.value().isString() && text != "DATA_PARALLEL" &&
             text != "MODEL_PARALLEL") {
    loads = false;
    error("invalid-value", type,
          yaml::shortText(type.value()) +
              " is not a distributed_type of SageMaker",
          "write 'NO', DATA_PARALLEL or MODEL_PARALLEL");
  }
  if (loads)
    error("sagemaker-launch", environment,
          "accelerate " + toString(version) +
              " cannot launch SageMaker files: it stops with AttributeError: "
              "'SageMakerConfig' object has no attribute 'parallelism_config'",
          "use accelerate 1.9 or older for SageMaker");
}
