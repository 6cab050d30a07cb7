//===- DeepspeedStops.cpp - DeepSpeed files that stop every rank ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// DeepSpeedPlugin of accelerate/utils/dataclasses.py asks for zero_optimization
// and replaces an "auto" stage; DeepSpeedConfig judges the rest.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/SettingDiagnostic.h"

using namespace accel;

namespace {

class Stops {
public:
  Stops(const std::string &file, const yaml::Node &root,
        DiagnosticEngine &engine)
      : file(file), root(root), engine(engine) {}

  void check(const yaml::Node &zero) {
    if (isTrue("fp16.enabled") && isTrue("bf16.enabled"))
      fail("deepspeed-file", "bf16.enabled",
           "fp16 and bf16 are both enabled; DeepSpeed stops in every rank",
           "enable one of the two");
    checkMasters();
    checkStage(zero);
    for (const char *what : {"offload_optimizer", "offload_param"}) {
      const std::string path =
          std::string("zero_optimization.") + what + ".device";
      const yaml::Node *device = at(path);
      if (device && device->isString() && device->text == "nvme" &&
          !zero.find(what)->find("nvme_path"))
        fail("nvme-path", path, "nvme_path is missing beside device nvme",
             "add \"nvme_path\": \"/local_nvme\"");
    }
  }

private:
  const std::string &file;
  const yaml::Node &root;
  DiagnosticEngine &engine;

  const yaml::Node *at(std::string_view path) const {
    return jsonAt(root, path);
  }
  bool isTrue(std::string_view path) const {
    const yaml::Node *node = at(path);
    return node && node->kind == yaml::Kind::Bool && node->boolean;
  }
  void fail(const char *code, const std::string &path,
            const std::string &message, const std::string &hint) {
    reportInJson(engine, file, Severity::Error, code, *at(path), path, message,
                 hint);
  }

  /// _do_error_check of DeepSpeedConfig and _configure_master_weights of ZeRO,
  /// which ask for these flags whichever of fp16 and bf16 is enabled.
  void checkMasters() {
    const char *half = "fp16.fp16_master_weights_and_grads",
               *brain = "bf16.bf16_master_weights_and_grads";
    auto stop = [&](const char *path, const std::string &message,
                    const char *hint) {
      fail("deepspeed-file", path, message + "; DeepSpeed stops in every rank",
           hint);
    };
    if (isTrue(half) && isTrue(brain))
      stop(brain,
           "fp16_master_weights_and_grads and bf16_master_weights_and_grads "
           "are both true",
           "keep the one of the dtype that is enabled");
    const yaml::Node *stage = at("zero_optimization.stage");
    const bool whole = !stage || jsonText(*stage) == "0";
    for (const char *path : {half, brain})
      if (isTrue(path) && whole)
        stop(path,
             std::string(path).substr(5) + " is of ZeRO stages 1, 2 and 3 only",
             "write \"stage\": 2, or false here");
    const yaml::Node *device = at("zero_optimization.offload_optimizer.device");
    // cpu_offload is its former name.
    const bool onHost = isTrue("zero_optimization.cpu_offload") ||
                        (device && jsonText(*device) != "none");
    if (isTrue(half) && !whole && !onHost)
      stop(half,
           "fp16_master_weights_and_grads needs the optimizer on the host, in "
           "DeepSpeedCPUAdam",
           "write \"offload_optimizer\": {\"device\": \"cpu\"} in "
           "zero_optimization, or false here");
  }

  void checkStage(const yaml::Node &zero) {
    const yaml::Node *stage = zero.find("stage");
    if (!stage || stage->text == "auto")
      return;
    if (stage->kind != yaml::Kind::Int || stage->huge)
      fail("deepspeed-file", "zero_optimization.stage",
           "the stage must be an integer from 0 to 3, this is " +
               yaml::shortText(*stage),
           "write 2 or 3");
    else if (stage->integer < 0 || stage->integer > 3)
      fail("deepspeed-file", "zero_optimization.stage",
           "there is no ZeRO stage " + std::to_string(stage->integer),
           "write 2 or 3");
  }
};

} // namespace

bool accel::isDeepspeedObject(const std::string &file, const yaml::Node *root,
                              DiagnosticEngine &engine) {
  if (root && root->isMapping())
    return true;
  engine.error("not-a-mapping", file, "a DeepSpeed file holds one JSON object",
               "write {\"zero_optimization\": {\"stage\": 2}}");
  return false;
}

bool accel::checkDeepspeedStops(const std::string &file, const yaml::Node &root,
                                DiagnosticEngine &engine) {
  const yaml::Node *zero = root.find("zero_optimization");
  if (!zero || !zero->isMapping()) {
    reportInJson(
        engine, file, Severity::Error, "deepspeed-file", root,
        "zero_optimization",
        "zero_optimization is missing; every rank stops with a ValueError",
        "add \"zero_optimization\": {\"stage\": 2}");
    return false;
  }
  Stops(file, root, engine).check(*zero);
  return true;
}

void accel::checkBatchProduct(const DeepspeedSettings &settings, int64_t ranks,
                              DiagnosticEngine &engine) {
  const auto &batch = settings.trainBatch, &micro = settings.microBatch,
             &steps = settings.gradientAccumulation;
  int64_t product = 0;
  if (ranks == 0 || !*batch || !*micro || !*steps ||
      __builtin_mul_overflow(**micro, **steps, &product) ||
      __builtin_mul_overflow(product, ranks, &product) || product == **batch)
    return;
  engine.report(diagnosticAt(
      batch, Severity::Error, "deepspeed-batch",
      batch.key + " is " + std::to_string(**batch) + ", but " +
          std::to_string(**micro) + " x " + std::to_string(**steps) + " x " +
          std::to_string(ranks) + " ranks make " + std::to_string(product) +
          "; DeepSpeed stops in every rank",
      "write \"auto\""));
}
