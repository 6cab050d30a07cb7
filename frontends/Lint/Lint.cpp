//===- Lint.cpp - What goes wrong beyond what parsing sees ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Lint.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/Lint/Subject.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace accel {

void lintGraphGradients(const std::string &path, const JobConfig &job,
                        DiagnosticEngine &engine) {
  const AccelerateConfig &accelerate = job.accelerate;
  const auto asked = asksForGraphs(job);
  const bool keeps = *accelerate.strategy == Strategy::Single ||
                     *accelerate.strategy == Strategy::Ddp;
  if (job.isJob || !asked || !keeps || *accelerate.cpu ||
      *job.accumulation <= 1)
    return;
  engine.report(diagnosticAt(
      asked->at, asked->key, Severity::Error, "cuda-graphs",
      "CUDA graphs overwrite the gradients that the " +
          std::to_string(*job.accumulation) +
          " micro-batches of a step add up, and torch stops in the second",
      "write default or max-autotune-no-cudagraphs, or compute one micro-batch "
      "a step",
      path));
}

void lintConfig(const std::string &path, const LoadedConfig &loaded,
                const LintOptions &options, DiagnosticEngine &engine) {
  std::optional<AccelerateVersion> version = parseAccelerateVersion(
                                       options.accelerateVersion),
                                   torch = parseAccelerateVersion(
                                       loaded.job && loaded.job->isJob
                                           ? loaded.job->accelerate.torchVersion
                                           : options.torchVersion),
                                   transformers = parseAccelerateVersion(
                                       options.transformersVersion);
  if (!transformers)
    engine.error("invalid-version", "",
                 "'" + printable(options.transformersVersion) +
                     "' is not a version of transformers",
                 "write it as 5.23.0");
  if (!torch)
    engine.error("invalid-version", "",
                 "'" + printable(options.torchVersion) +
                     "' is not a version of torch",
                 "write it as 2.15.0");
  if (!version || !torch || !transformers)
    return;
  // Whatever is wrong with the text has been reported by loadConfig.
  DiagnosticEngine silent;
  std::unique_ptr<yaml::Document> document = yaml::parseFile(path, silent);
  if (!document || !document->root() || !document->root()->isMapping())
    return;
  lint::Subject subject{.engine = engine};
  subject.file = path;
  subject.root = document->root();
  subject.version = *version;
  subject.torch = *torch;
  subject.transformers = *transformers;
  subject.deepspeed = options.deepspeedVersion;
  std::string model = options.model;
  std::unique_ptr<yaml::Document> referenced;
  if (isJobFile(*subject.root)) {
    const yaml::Node *accelerate = subject.root->find("accelerate");
    if (loaded.job && accelerate && accelerate->isString()) {
      referenced = yaml::parseFile(loaded.job->accelerate.file, silent);
      accelerate = referenced ? referenced->root() : nullptr;
      subject.file = loaded.job->accelerate.file;
    } else {
      subject.prefix = "accelerate.";
    }
    if (!accelerate || !accelerate->isMapping())
      return;
    subject.root = accelerate;
    if (loaded.job) {
      subject.job = &*loaded.job;
      if (model.empty() && std::filesystem::exists(*loaded.job->model))
        model = *loaded.job->model;
    }
  }
  if (loaded.job)
    subject.config = &loaded.job->accelerate;
  std::optional<ModuleTree> tree;
  // A .pt2 has names and shapes of its own, no config.json.
  if (!model.empty() && !model.ends_with(".pt2"))
    tree = huggingface::moduleTreeNamed(model, {}, engine);
  subject.tree = tree ? &*tree : nullptr;
  for (auto check :
       {lint::checkUnits, lint::checkTiedWeights, lint::checkPrecision,
        lint::checkParallelism, lint::checkMegatron, lint::checkMemory,
        lint::checkVersions, lint::checkDeepspeed, lint::checkDeepspeedFile,
        lint::checkPairs})
    check(subject);
}

void lintMesh(const std::string &path, const LoadedConfig &loaded,
              const LintOptions &options, DiagnosticEngine &engine) {
  constexpr const char *codes[] = {
      "cp-hooks",  "cp-skipped", "deepspeed-hostfile", "sp-trainer",
      "tp-import", "tp-model",   "tp-optimizer",       "tp-skipped"};
  DiagnosticEngine all;
  lintConfig(path, loaded, options, all);
  for (const Diagnostic &finding : all.all())
    if (std::find(std::begin(codes), std::end(codes), finding.code) !=
        std::end(codes))
      engine.report(finding);
}

std::string defaultConfigPath() {
  // accelerate/commands/config/config_args.py
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string home = variable("HOME"), folder = variable("HF_HOME");
  if (folder.empty()) {
    std::string cache = variable("XDG_CACHE_HOME");
    if (cache.empty() && home.empty())
      return "";
    folder = (cache.empty() ? home + "/.cache" : cache) + "/huggingface";
  }
  if (folder.starts_with("~/"))
    folder = home + folder.substr(1);
  return folder + "/accelerate/default_config.yaml";
}

void lintDefaultConfig(const std::string &path, DiagnosticEngine &engine) {
  std::error_code error;
  std::string standard = defaultConfigPath();
  if (standard.empty() || !std::filesystem::exists(path, error) ||
      !std::filesystem::equivalent(path, standard, error))
    return;
  engine.note("default-config", path,
              "every `accelerate launch` without --config_file uses this "
              "file, and says nothing about it",
              "pass --config_file, or delete this file when it is out of date");
}

} // namespace accel
