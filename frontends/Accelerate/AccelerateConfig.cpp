//===- AccelerateConfig.cpp - An accelerate YAML, understood --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Accelerate/Reader.h"

#include <algorithm>

using namespace accel;

const char *accel::toString(DistributedType type) {
  constexpr const char *names[] = {
      "NO",         "MULTI_CPU",  "MULTI_GPU", "MULTI_NPU",  "MULTI_MLU",
      "MULTI_SDAA", "MULTI_MUSA", "MULTI_XPU", "MULTI_HPU",  "MULTI_NEURON",
      "DEEPSPEED",  "FSDP",       "XLA",       "MEGATRON_LM"};
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
  constexpr const char *names[] = {"none", "trainable", "trainable units"};
  return names[static_cast<int>(upcast)];
}

int64_t AccelerateConfig::processesPerMachine() const {
  return std::max<int64_t>(*numProcesses / std::max<int64_t>(*numMachines, 1),
                           1);
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
  config.launch = simulateLaunch(root, version, prefix, foreign);
  if (options.launch)
    *options.launch = config.launch;
  size_t errorsBefore = engine.errors();
  if (version != AccelerateVersion{1, 15}) {
    engine.error(notSupportedCode, "",
                 "accelerate " + printable(options.version) +
                     " is not supported yet, only 1.15 is");
    return std::nullopt;
  }
  checkTopLevelKeys();
  if (!readEnvironment())
    return std::nullopt;
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
  // What launch refuses and nothing above has named. (A plan may do without
  // what only launch needs.)
  if (!options.forPlanning && !config.launch.refused.empty() &&
      engine.errors() == errorsBefore)
    error("launch-stops", top("distributed_type"),
          "`accelerate launch` stops with " +
              printable(config.launch.refused, 200));
  if (hopeless)
    return std::nullopt;
  std::stable_sort(config.effective.begin(), config.effective.end(),
                   [](const EffectiveValue &a, const EffectiveValue &b) {
                     bool wroteA = a.origin == Origin::Written,
                          wroteB = b.origin == Origin::Written;
                     if (wroteA != wroteB)
                       return wroteA;
                     return wroteA && a.at.line < b.at.line;
                   });
  return std::move(config);
}

std::optional<AccelerateConfig>
accel::parseAccelerate(const std::string &path,
                       const AccelerateOptions &options,
                       DiagnosticEngine &engine) {
  std::unique_ptr<yaml::Document> document = yaml::parseFile(path, engine);
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
