//===- AccelerateConfig.cpp - An accelerate YAML, understood --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Accelerate/Reader.h"

#include <algorithm>
#include <tuple>

using namespace accel;

const char *accel::toString(DistributedType type) {
  constexpr const char *names[] = {
      "NO",         "MULTI_CPU",  "MULTI_GPU", "MULTI_NPU",   "MULTI_MLU",
      "MULTI_SDAA", "MULTI_MUSA", "MULTI_XPU", "MULTI_HPU",   "MULTI_NEURON",
      "DEEPSPEED",  "FSDP",       "XLA",       "MEGATRON_LM", "TP"};
  return names[static_cast<int>(type)];
}

const char *accel::toString(Strategy strategy) {
  constexpr const char *names[] = {"single", "ddp", "fsdp1", "fsdp2", "other"};
  return names[static_cast<int>(strategy)];
}

const char *accel::toString(MixedPrecision precision) {
  constexpr const char *names[] = {"no", "fp16", "bf16", "fp8"};
  return names[static_cast<int>(precision)];
}

const char *accel::toString(Sharding sharding) {
  constexpr const char *names[] = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD",
                                   "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"};
  return names[static_cast<int>(sharding)];
}

const char *accel::toString(WrapPolicy policy) {
  constexpr const char *names[] = {"NO_WRAP", "TRANSFORMER_BASED_WRAP",
                                   "SIZE_BASED_WRAP"};
  return names[static_cast<int>(policy)];
}

const char *accel::toString(StateDictType type) {
  constexpr const char *names[] = {"FULL_STATE_DICT", "LOCAL_STATE_DICT",
                                   "SHARDED_STATE_DICT"};
  return names[static_cast<int>(type)];
}

const char *accel::toString(Upcast upcast) {
  constexpr const char *names[] = {"none", "trainable", "trainable units",
                                   "all"};
  return names[static_cast<int>(upcast)];
}

const char *accel::toString(CheckpointPlacement placement) {
  constexpr const char *names[] = {"none", "each unit", "each child of a unit",
                                   "every module"};
  return names[static_cast<int>(placement)];
}

const char *accel::toString(RestUnits units) {
  constexpr const char *names[] = {"none", "in the root unit",
                                   "embedding | norm and head | root"};
  return names[static_cast<int>(units)];
}

int64_t AccelerateConfig::processesPerMachine() const {
  return std::max<int64_t>(*numProcesses / std::max<int64_t>(*numMachines, 1),
                           1);
}

void AccelerateReader::readLocalJob() {
  fsdp = section("fsdp_config");
  parallelism = section("parallelism_config");
  readDistributedType();
  readProcesses();
  readPlace();
  readGpuIds();
  readMixedPrecision();
  readIgnoredTopLevel();
  if (*config.distributedType == DistributedType::Fsdp)
    readFsdp();
  deriveStrategy();
  readParallelism();
  readOtherSections();
  deriveMesh();
  derivePrecision();
  checkSupport();
}

void AccelerateReader::readSagemakerJob() {
  Field field = top("compute_environment");
  config.strategy = {Strategy::Other, Origin::Derived, field.key, locate(field),
                     "SageMaker starts the job"};
  readMixedPrecision();
  derivePrecision();
  notSupported(field, "SageMaker is not supported yet: what starts there is "
                      "not known here");
}

std::optional<AccelerateConfig> AccelerateReader::read() {
  std::optional<AccelerateVersion> parsed =
      parseAccelerateVersion(options.version);
  if (!parsed) {
    engine.error("invalid-version", "",
                 "'" + printable(options.version) +
                     "' is not a version of accelerate",
                 "write it as 1.15.0");
    return std::nullopt;
  }
  version = *parsed;
  if (version < oldestAccelerate || version > newestAccelerate) {
    engine.error(notSupportedCode, "",
                 "accelerate " + printable(options.version) +
                     " is not known, only " + toString(oldestAccelerate) +
                     " to " + toString(newestAccelerate) + " are");
    return std::nullopt;
  }
  torch = parseAccelerateVersion(options.torchVersion)
              .value_or(AccelerateVersion{0, 0});
  if (torch.major < 1) {
    engine.error("invalid-version", "",
                 "'" + printable(options.torchVersion) +
                     "' is not a version of torch",
                 "write it as 2.15.0");
    return std::nullopt;
  }
  config.torchVersion = options.torchVersion;
  config.launch = simulateLaunch(root, version, prefix, foreign);
  if (options.launch)
    *options.launch = config.launch;
  size_t errorsBefore = engine.errors() + engine.silencedErrors();
  checkTopLevelKeys();
  if (!readEnvironment())
    return std::nullopt;
  if (config.sagemaker)
    readSagemakerJob();
  else
    readLocalJob();
  // What launch refuses and nothing above has named. (A plan may do without
  // what only launch needs.)
  if (!options.forPlanning && !config.launch.refused.empty() &&
      !config.assumed.numProcesses &&
      engine.errors() + engine.silencedErrors() == errorsBefore)
    error("launch-stops", top("distributed_type"),
          "`accelerate launch` stops with " +
              printable(config.launch.refused, 200));
  if (unrecoverable)
    return std::nullopt;
  // What is written first, in the order of the file, then of files it names.
  auto rank = [&](const EffectiveValue &v) {
    bool here = v.at.file == file || v.at.file.empty();
    bool wrote = v.origin == Origin::Written || !v.asked.empty();
    return std::tuple(!here, !wrote, wrote ? v.at.line : 0);
  };
  std::stable_sort(config.effective.begin(), config.effective.end(),
                   [&](const EffectiveValue &a, const EffectiveValue &b) {
                     return rank(a) < rank(b);
                   });
  return std::move(config);
}

std::optional<AccelerateConfig>
accel::parseAccelerate(const std::string &path,
                       const AccelerateOptions &options,
                       DiagnosticEngine &engine) {
  std::unique_ptr<yaml::Document> document =
      yaml::parseFile(path, options.texts, engine);
  if (!document)
    return std::nullopt;
  const yaml::Node *root = document->root();
  if (!root || !root->isMapping()) {
    engine.error("not-a-mapping", path,
                 !root || root->isNull()
                     ? std::string("the file is empty")
                     : std::string("the file holds ") +
                           yaml::describe(root->kind) + ", not keys and values",
                 "write one with `accelerate config`");
    return std::nullopt;
  }
  return parseAccelerate(path, *root, "", {}, options, engine);
}

std::optional<AccelerateConfig> accel::parseAccelerate(
    const std::string &file, const yaml::Node &node, const std::string &prefix,
    const std::vector<std::string> &foreign, const AccelerateOptions &options,
    DiagnosticEngine &engine) {
  return AccelerateReader(file, node, prefix, foreign, options, engine).read();
}

std::vector<std::string>
accel::accelerateTopLevelKeys(const std::string &version) {
  return keysOf(
      "", parseAccelerateVersion(version).value_or(AccelerateVersion{1, 15}));
}
