//===- DeepspeedFile.cpp - The JSON that deepspeed_config_file names ------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// HfDeepSpeedConfig in accelerate/utils/deepspeed.py reads it, DeepSpeedPlugin
// and Accelerator._prepare_deepspeed fill in "auto", DeepSpeed judges the rest.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Lint/Subject.h"

#include <filesystem>

namespace accel::lint {

namespace {

class DeepspeedFile {
public:
  DeepspeedFile(const Subject &subject, std::string file,
                const yaml::Node &root)
      : subject(subject), file(std::move(file)), root(root) {}

  void run() {
    const yaml::Node *zero = root.find("zero_optimization");
    if (!zero || !zero->isMapping()) {
      report(Severity::Error, "deepspeed-file", root, "zero_optimization",
             "zero_optimization is missing; every rank stops with a ValueError",
             "add \"zero_optimization\": {\"stage\": 2}");
      return;
    }
    checkDeepspeedJson(file, root, /*forPlanning=*/false, subject.deepspeed,
                       subject.engine);
    checkHalf();
    checkZero(*zero);
    checkBatch();
  }

private:
  const Subject &subject;
  const std::string file;
  const yaml::Node &root;

  void report(Severity severity, const char *code, const yaml::Node &node,
              const std::string &key, const std::string &message,
              const std::string &hint) {
    reportInJson(subject.engine, file, severity, code, node, key, message,
                 hint);
  }

  const yaml::Node *at(std::string_view path) const {
    const yaml::Node *node = &root;
    while (node && !path.empty()) {
      size_t dot = std::min(path.find('.'), path.size());
      node = node->isMapping() ? node->find(path.substr(0, dot)) : nullptr;
      path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return node;
  }
  bool isTrue(std::string_view path) const {
    const yaml::Node *node = at(path);
    return node && node->kind == yaml::Kind::Bool && node->boolean;
  }
  std::optional<int64_t> number(std::string_view path) const {
    const yaml::Node *node = at(path);
    return node && node->kind == yaml::Kind::Int && !node->huge
               ? std::optional(node->integer)
               : std::nullopt;
  }

  void checkHalf() {
    if (isTrue("fp16.enabled") && isTrue("bf16.enabled"))
      report(Severity::Error, "deepspeed-file", *at("bf16.enabled"),
             "bf16.enabled",
             "fp16 and bf16 are both enabled; DeepSpeed stops in every rank",
             "enable one of the two");
    checkMasters();
  }

  /// _do_error_check of DeepSpeedConfig and _configure_master_weights of ZeRO,
  /// which ask for these flags whichever of fp16 and bf16 is enabled.
  void checkMasters() {
    const char *half = "fp16.fp16_master_weights_and_grads",
               *brain = "bf16.bf16_master_weights_and_grads";
    auto fail = [&](const char *path, const std::string &message,
                    const char *hint) {
      report(Severity::Error, "deepspeed-file", *at(path), path,
             message + "; DeepSpeed stops in every rank", hint);
    };
    if (isTrue(half) && isTrue(brain))
      fail(brain,
           "fp16_master_weights_and_grads and bf16_master_weights_and_grads "
           "are both true",
           "keep the one of the dtype that is enabled");
    const yaml::Node *stage = at("zero_optimization.stage");
    const bool whole = !stage || jsonText(*stage) == "0";
    for (const char *path : {half, brain})
      if (isTrue(path) && whole)
        fail(path,
             std::string(path).substr(5) + " is of ZeRO stages 1, 2 and 3 only",
             "write \"stage\": 2, or false here");
    const yaml::Node *device = at("zero_optimization.offload_optimizer.device");
    // cpu_offload is its former name.
    const bool onHost = isTrue("zero_optimization.cpu_offload") ||
                        (device && jsonText(*device) != "none");
    if (isTrue(half) && !whole && !onHost)
      fail(half,
           "fp16_master_weights_and_grads needs the optimizer on the host, in "
           "DeepSpeedCPUAdam",
           "write \"offload_optimizer\": {\"device\": \"cpu\"} in "
           "zero_optimization, or false here");
  }

  void checkZero(const yaml::Node &zero) {
    std::optional<int64_t> stage = number("zero_optimization.stage");
    const yaml::Node *stageNode = zero.find("stage");
    if (stageNode && !stage && stageNode->text != "auto")
      report(Severity::Error, "deepspeed-file", *stageNode,
             "zero_optimization.stage",
             "the stage must be an integer from 0 to 3, this is " +
                 yaml::shortText(*stageNode),
             "write 2 or 3");
    else if (stage && (*stage < 0 || *stage > 3))
      report(Severity::Error, "deepspeed-file", *stageNode,
             "zero_optimization.stage",
             "there is no ZeRO stage " + std::to_string(*stage),
             "write 2 or 3");
    int64_t real = stage.value_or(stageNode ? 2 : 0);
    for (const char *what : {"offload_optimizer", "offload_param"}) {
      const yaml::Node *offload = zero.find(what);
      const yaml::Node *device =
          offload && offload->isMapping() ? offload->find("device") : nullptr;
      if (!device || !device->isString() || device->text == "none" ||
          device->text == "auto")
        continue;
      std::string path = std::string("zero_optimization.") + what + ".device";
      bool param = what == std::string_view("offload_param");
      if ((param && real != 3) || real == 0)
        report(Severity::Warning, "offload-no-gain", *device, path,
               std::string(param ? "parameters are" : "nothing is") +
                   " offloaded with ZeRO stage " + (param ? "3 only" : "0"),
               param ? "write \"stage\": 3" : "write \"stage\": 2");
      if (device->text == "nvme" && !offload->find("nvme_path"))
        report(Severity::Error, "nvme-path", *device, path,
               "nvme_path is missing beside device nvme",
               "add \"nvme_path\": \"/local_nvme\"");
    }
    Field init = subject.in("deepspeed_config", "zero3_init_flag");
    if (init && boolean(init).value_or(false) && real != 3)
      subject.report(Severity::Warning, "ignored-key", init,
                     "'zero3_init_flag' has no effect: the DeepSpeed file "
                     "says stage " +
                         std::to_string(real),
                     "write false, or \"stage\": 3", At::Key);
  }

  /// DeepSpeed asserts it.
  void checkBatch() {
    std::optional<int64_t> batch = number("train_batch_size"),
                           micro = number("train_micro_batch_size_per_gpu"),
                           steps = number("gradient_accumulation_steps");
    if (!batch || !micro || !subject.config ||
        subject.config->assumed.numProcesses || subject.meshSize("sp") > 1)
      return;
    int64_t accumulation = steps.value_or(1),
            ranks = *subject.config->numProcesses, product = 0;
    if ((!steps && at("gradient_accumulation_steps")) ||
        __builtin_mul_overflow(*micro, accumulation, &product) ||
        __builtin_mul_overflow(product, ranks, &product) || product == *batch)
      return;
    report(Severity::Error, "deepspeed-batch", *at("train_batch_size"),
           "train_batch_size",
           "train_batch_size is " + std::to_string(*batch) + ", but " +
               std::to_string(*micro) + " x " + std::to_string(accumulation) +
               " x " + std::to_string(ranks) + " ranks make " +
               std::to_string(product) + "; DeepSpeed stops in every rank",
           "write \"auto\"");
  }
};

} // namespace

void checkDeepspeedFile(const Subject &subject) {
  if (!subject.isType(DistributedType::Deepspeed))
    return;
  Field field = subject.in("deepspeed_config", "deepspeed_config_file");
  // "none" is what the questionnaire writes for no file.
  if (!field || field.isNull() || field.text() == "none")
    return;
  std::string name = field.text();
  const std::string found = findDeepspeedFile(name, subject.file);
  if (found.empty()) {
    // A relative one may well be where the job starts.
    Severity severity = std::filesystem::path(name).is_absolute()
                            ? Severity::Warning
                            : Severity::Note;
    subject.report(severity, "deepspeed-file-missing", field,
                   "there is no file " + printablePath(name) +
                       " here; where the job starts there must be one",
                   "paths are relative to the folder where `accelerate "
                   "launch` is called");
    return;
  }
  std::unique_ptr<yaml::Document> document =
      yaml::parseFile(found, subject.engine);
  if (!document)
    return;
  const yaml::Node *root = document->root();
  if (!root || !root->isMapping()) {
    subject.engine.error("not-a-mapping", found,
                         "a DeepSpeed file holds one JSON object",
                         "write {\"zero_optimization\": {\"stage\": 2}}");
    return;
  }
  std::string prefix;
  DeepspeedFile(subject, found, deepspeedRoot(*root, prefix)).run();
}

} // namespace accel::lint
