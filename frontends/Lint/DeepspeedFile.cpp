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
    checkDeepspeedJson(file, root, /*forPlanning=*/false, subject.deepspeed,
                       subject.engine);
    const yaml::Node *zero = root.find("zero_optimization");
    if (!zero || !zero->isMapping())
      return; // reported
    checkZero(*zero);
    const AccelerateConfig *config = subject.config;
    if (config && config->deepspeed && !config->assumed.numProcesses &&
        subject.meshSize("sp") <= 1)
      checkBatchProduct(*config->deepspeed, *config->numProcesses,
                        subject.engine);
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

  void checkZero(const yaml::Node &zero) {
    const yaml::Node *stage = zero.find("stage");
    const int64_t real = !stage ? 0
                         : stage->kind == yaml::Kind::Int && !stage->huge
                             ? stage->integer
                             : 2;
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
    }
    Field init = subject.in("deepspeed_config", "zero3_init_flag");
    if (init && boolean(init).value_or(false) && real != 3)
      subject.report(Severity::Warning, "ignored-key", init,
                     "'zero3_init_flag' has no effect: the DeepSpeed file "
                     "says stage " +
                         std::to_string(real),
                     "write false, or \"stage\": 3", At::Key);
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
  if (!isDeepspeedObject(found, root, subject.engine))
    return;
  std::string prefix;
  DeepspeedFile(subject, found, deepspeedRoot(*root, prefix)).run();
}

} // namespace accel::lint
