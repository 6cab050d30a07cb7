//===- Estimate.cpp - What a model takes ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Estimate/Estimate.h"

#include "frontends/HuggingFace/HubCache.h"
#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/Yaml/Yaml.h"
#include "tools/driver/Session/Compile.h"

#include <filesystem>

namespace accel::estimate {
namespace {

using Json = nlohmann::ordered_json;

class Estimator {
public:
  Estimator(const EstimateOptions &options, DiagnosticEngine &engine)
      : options(options), engine(engine) {}

  std::optional<Estimate> run() {
    estimate.model = options.model;
    std::error_code failed;
    const std::string folder = huggingface::modelFolder(options.model);
    std::filesystem::path path = folder.empty() ? options.model : folder;
    if (std::filesystem::is_directory(path, failed))
      path /= "config.json";
    file = path.string();
    if (options.library != "transformers") {
      engine.error(notSupportedCode, file,
                   "models of the library '" + options.library +
                       "' are not supported yet, only those of transformers");
      return std::nullopt;
    }
    if (!std::filesystem::exists(path, failed)) {
      published = huggingface::publishedModel(options.model);
      if (!published) {
        engine.error("no-model", file, "there is no such model here",
                     huggingface::isHubName(options.model)
                         ? huggingface::hubHint(options.model)
                         : "accel-opt reads folders: put the model's "
                           "config.json into one");
        return std::nullopt;
      }
      file = published->name + "/config.json";
      engine.note("published-model", file,
                  "the config.json as it was published is taken: '" +
                      printable(options.model) + "' is not on this machine",
                  huggingface::hubHint(options.model));
    }
    if (path.extension() == ".pt2") {
      engine.error(notSupportedCode, file,
                   "exported programs are not supported here, only folders "
                   "with a config.json",
                   "accel-opt plan --model " + file +
                       " says what training it takes");
      return std::nullopt;
    }
    if (!readTrees())
      return std::nullopt;
    estimate.table = modelSizes(estimate.base);
    for (Dtype dtype : options.dtypes)
      estimate.rows.push_back(row(estimate.table, dtype));
    plan::Optimizer optimizer;
    optimizer.name = options.optim->optimizer;
    estimate.sizes =
        trueSizes(estimate.full,
                  plan::OptimizerRule(optimizer, options.optim->stateDtype));
    if (options.optim != EstimateOptions().optim)
      estimate.optimizer = options.optim->name;
    planActivations();
    return std::move(estimate);
  }

private:
  const EstimateOptions &options;
  DiagnosticEngine &engine;
  std::string file;
  std::optional<huggingface::PublishedModel> published;
  Estimate estimate;

  /// The class that Accelerate makes: AutoModel's, or that of the first
  /// AutoModelFor... that the file maps to code of its own. `text` becomes the
  /// file as Accelerate reads it: in float32.
  bool chooseBase(ModuleTreeOptions &base, std::string &text) {
    std::string error;
    if (published)
      text = published->config;
    else if (!yaml::readWholeFile(file, 64 << 20, text, error)) {
      engine.error("no-model", file, "cannot be read: " + error);
      return false;
    }
    base.architecture = "base";
    // Bounds its depth, for copies recurse; reported where it is read.
    DiagnosticEngine silent;
    const yaml::Limits limits = {.bytes = text.size(), .nodes = 10'000'000};
    if (!yaml::parseText(file, text, silent, limits))
      return true;
    Json config = Json::parse(text, nullptr, false);
    if (!config.is_object())
      return true; // reported where it is read
    Json single = config;
    single.erase("dtype");
    single.erase("torch_dtype");
    text = single.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (!config.contains("auto_map") || !config["auto_map"].is_object())
      return true;
    if (options.trustRemoteCode) {
      engine.error(notSupportedCode, file,
                   "the model comes with Python code of its own, which "
                   "accel-opt does not run",
                   "leave out --trust_remote_code to take the class of "
                   "transformers");
      return false;
    }
    for (const auto &[key, value] : config["auto_map"].items())
      if (key.starts_with("AutoModelFor")) {
        // The class of the same task in transformers.
        base.architecture.clear();
        std::string task = key.substr(std::string("AutoModel").size());
        if (config.contains("architectures") &&
            config["architectures"].is_array())
          for (const Json &name : config["architectures"])
            if (name.is_string() && name.get<std::string>().ends_with(task))
              base.architecture = name.get<std::string>();
        if (base.architecture.empty()) {
          engine.error(notSupportedCode, file,
                       "the file maps " + printable(key) +
                           ", and 'architectures' names no class for it");
          return false;
        }
        break;
      }
    return true;
  }

  bool readTrees() {
    ModuleTreeOptions base;
    std::string text;
    if (!chooseBase(base, text))
      return false;
    DiagnosticEngine own, again;
    const std::string &named = published ? published->name : file;
    std::optional<ModuleTree> small =
        huggingface::moduleTreeNamed(named, base, own);
    std::optional<ModuleTree> full;
    if (small) {
      full = huggingface::moduleTreeNamed(named, {}, own);
      small = parseModuleTree(text, file, base, again);
    }
    for (Diagnostic d : own.all()) {
      // Here the tree is all there is.
      if (d.code == "unknown-model" && !small) {
        d.severity = Severity::Error;
        d.code = notSupportedCode;
        d.message = d.message.substr(0, d.message.find(", so"));
      }
      engine.report(std::move(d));
    }
    if (!small)
      return false;
    estimate.base = std::move(*small);
    estimate.full = full ? std::move(*full) : estimate.base;
    return true;
  }

  void planActivations() {
    PlanOptions plan;
    plan.config = "one process";
    plan.texts[plan.config] = "distributed_type: 'NO'\nmixed_precision: bf16\n";
    plan.executor = FrameworkKind::AccelRun;
    plan.model = published ? published->name : file;
    plan.microBatch = options.microBatch;
    plan.sequenceLength = options.sequenceLength;
    DiagnosticEngine own;
    CompileResult result = compile(plan, own);
    if (result.shown) {
      auto atPeak = [&](Holding holding) {
        return result.report.prediction.atPeak[static_cast<size_t>(holding)];
      };
      estimate.activations = Activations{
          result.shown->job.microBatch, result.shown->job.sequenceLength,
          atPeak(Holding::Activations), atPeak(Holding::Logits)};
      return;
    }
    for (const Diagnostic &d : own.all())
      if (d.severity == Severity::Error && estimate.whyNoActivations.empty())
        estimate.whyNoActivations = d.message;
  }
};

} // namespace

std::optional<Estimate> estimateMemory(const EstimateOptions &options,
                                       DiagnosticEngine &engine) {
  return Estimator(options, engine).run();
}

} // namespace accel::estimate
