//===- DeepspeedGroups.cpp - Ranks that ZeRO++ and MiCS group -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What DeepSpeed asserts of zero_hpz_partition_size (utils/groups.py),
// mics_shard_size (zero/mics.py, zero/mics_utils.py) and quantised weights
// (CUDAQuantizer of zero/partition_parameters.py).
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/SettingDiagnostic.h"

#include <filesystem>

using namespace accel;

namespace {

class Groups {
public:
  Groups(const DeepspeedSettings &zero, int64_t ranks, DiagnosticEngine &engine)
      : zero(zero), ranks(ranks), engine(engine) {}

  void check(const std::string &version) {
    // Later releases have no MiCS (deepspeed-removed).
    const bool grouped = *zero.secondaryRanks > 1,
               mics = *zero.micsRanks > 0 && !version.empty() &&
                      isEarlierRelease(version, "0.19.7");
    if (*zero.zeroStage != 3) {
      for (const auto *set : {&zero.quantizedWeights, &zero.quantizedGradients})
        if (**set)
          ignored(*set);
      if (grouped)
        ignored(zero.secondaryRanks);
      if (mics)
        ignored(zero.micsRanks);
      return;
    }
    if (grouped)
      checkSecondary();
    if (mics)
      checkMics();
    if (*zero.quantizedWeights && *zero.bf16 && !version.empty() &&
        isEarlierRelease(version, "0.19.6"))
      report(Severity::Warning, "zero-quantized-bf16", zero.quantizedWeights,
             "DeepSpeed before 0.19.6 quantises bf16 parameters as if their "
             "bits were fp16: the gathered weights are wrong, without an error",
             "train in fp16, or with DeepSpeed 0.19.6");
  }

private:
  const DeepspeedSettings &zero;
  const int64_t ranks; // 0: not known
  DiagnosticEngine &engine;

  template <typename T>
  void report(Severity severity, const char *code, const Setting<T> &setting,
              const std::string &message, const std::string &hint) {
    engine.report(diagnosticAt(setting, severity, code, message, hint));
  }
  template <typename T> void ignored(const Setting<T> &setting) {
    report(Severity::Warning, "zero-groups-no-gain", setting,
           "'" + setting.key + "' has no effect with ZeRO stage " +
               std::to_string(*zero.zeroStage),
           "write \"stage\": 3, or remove it");
  }
  void divides(const Setting<int64_t> &setting, const char *stops) {
    report(Severity::Error, "zero-groups", setting,
           std::to_string(ranks) + " ranks cannot be divided into groups of " +
               std::to_string(*setting) + "; " + stops,
           "write the number of ranks of a machine");
  }

  void checkSecondary() {
    const Setting<int64_t> &group = zero.secondaryRanks;
    if (ranks > *group && ranks % *group != 0)
      divides(group, "DeepSpeed stops with an AssertionError in every rank");
    else if (ranks > 1 && ranks <= *group)
      report(Severity::Warning, "zero-groups-no-gain", group,
             "the group is all " + std::to_string(ranks) +
                 " ranks: each keeps its shard of the parameters twice, and "
                 "gathers from as many as without it",
             "remove zero_hpz_partition_size, which is for several machines");
  }

  void checkMics() {
    const Setting<int64_t> &group = zero.micsRanks;
    if (ranks > 0 && ranks % *group != 0)
      divides(group, "DeepSpeed stops with an AssertionError in every rank");
    if (*zero.secondaryRanks > 1)
      report(Severity::Error, "zero-groups", zero.secondaryRanks,
             "ZeRO++ and MiCS exclude each other: both group the ranks",
             "remove zero_hpz_partition_size or mics_shard_size");
    if (*zero.zero3Init)
      report(Severity::Error, "zero-groups", group,
             "the model is built under deepspeed.zero.Init and MiCS wants "
             "MiCS_Init: every rank stops with \"Sharded parameters don't have "
             "the MiCS_CommGroups attached\"",
             "write zero3_init_flag: false in the accelerate YAML; "
             "transformers' Trainer always builds it so");
    if (*zero.offloadOptimizer != OffloadDevice::None && ranks > *group)
      report(Severity::Error, "zero-groups", zero.offloadOptimizer,
             "MiCS reduces gradients on the device alone: every rank stops "
             "with \"Local sharding has no support for CPU offloading\"",
             "write \"device\": \"none\", or remove mics_shard_size");
  }
};

} // namespace

void accel::checkRankGroups(const DeepspeedSettings &settings, int64_t ranks,
                            const std::string &version,
                            DiagnosticEngine &engine) {
  Groups(settings, ranks, engine).check(version);
}

void accel::lintDeepspeed(const DeepspeedSettings &settings, int64_t ranks,
                          const AccelerateOptions &options,
                          DiagnosticEngine &engine) {
  checkRankGroups(settings, ranks, options.deepspeedVersion, engine);
  checkBatchProduct(settings, ranks, engine);
  std::error_code failed;
  // An inner object is judged where it is read.
  auto json = !settings.inArguments && std::filesystem::is_regular_file(
                                           *settings.configFile, failed)
                  ? yaml::parseFile(*settings.configFile, options.texts, engine)
                  : nullptr;
  if (json && isDeepspeedObject(*settings.configFile, json->root(), engine))
    checkDeepspeedJson(*settings.configFile, *json->root(),
                       /*forPlanning=*/false, options.deepspeedVersion, engine);
}
