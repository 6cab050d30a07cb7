//===- AdapterInputs.cpp - Which adapter a plan is for --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/AdapterInputs.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/HuggingFace/Safetensors.h"

#include <filesystem>
#include <map>

namespace accel {

namespace fs = std::filesystem;

namespace {

constexpr const char *configName = "adapter_config.json";
constexpr const char *weightsName = "adapter_model.safetensors";

bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string absolutePath(const fs::path &path) {
  std::error_code error;
  fs::path result = fs::absolute(path, error);
  return error ? path.string() : result.lexically_normal().string();
}

/// What needs a release of PEFT (peft/tuners/lora/config.py of each).
struct PeftFeature {
  const char *key, *since;
  bool (*used)(const AdapterConfig &);
};
const PeftFeature peftFeatures[] = {
    {"use_rslora", "0.8",
     [](const AdapterConfig &a) { return a.rankStabilized; }},
    {"target_modules", "0.8",
     [](const AdapterConfig &a) { return a.allLinear; }},
};

/// Judges the adapter as the release does, and chooses the dtype that it gives
/// the weights.
bool checkPeft(AdapterConfig &adapter, const std::string &version,
               const JobConfig &job, DiagnosticEngine &engine) {
  adapter.keepsBaseDtype = !atLeast(version, "0.12") && !job.quantization;
  for (const PeftFeature &feature : peftFeatures) {
    if (!feature.used(adapter) || atLeast(version, feature.since))
      continue;
    engine.report(diagnosticAt(
        adapter.place(feature.key), feature.key, Severity::Error, "needs-peft",
        std::string(feature.key) + " as it is written here needs PEFT " +
            feature.since + " or later, this is " + printable(version),
        std::string("install PEFT ") + feature.since));
    return false;
  }
  return true;
}

} // namespace

std::string baseModelPath(const std::string &path, DiagnosticEngine &engine) {
  if (isThere(fs::path(path) / "config.json") ||
      !isThere(fs::path(path) / configName))
    return path;
  std::optional<AdapterConfig> adapter = readAdapterConfig(path, engine);
  if (!adapter)
    return "";
  for (const fs::path &folder :
       {fs::path(path) / adapter->baseModel, fs::path(adapter->baseModel)})
    if (!adapter->baseModel.empty() && isThere(folder / "config.json"))
      return folder.lexically_normal().string();
  if (const std::string cached =
          huggingface::findInHubCache(adapter->baseModel);
      !cached.empty())
    return cached;
  if (huggingface::publishedModel(adapter->baseModel))
    return adapter->baseModel;
  constexpr const char *key = "base_model_name_or_path";
  engine.report(diagnosticAt(
      adapter->place(key), key, Severity::Error, "no-model",
      adapter->baseModel.empty()
          ? "the adapter does not name its base model"
          : "the adapter's base model '" + printablePath(adapter->baseModel) +
                "' is no folder with a config.json",
      "pass the base model with --model, and this folder with --adapter"));
  return "";
}

bool readAdapterInputs(const PlanOptions &options, const std::string &given,
                       PlanInputs &inputs, DiagnosticEngine &engine) {
  const JobConfig &job = inputs.job;
  fs::path folder;
  if (!options.adapter.empty())
    folder = options.adapter;
  else if (job.adapter)
    inputs.adapter = job.adapter;
  else if (job.adapterPath.written())
    folder = job.adapterPath.value;
  else if (isThere(fs::path(given) / configName))
    folder = given;
  if (!folder.empty()) {
    inputs.adapter = readAdapterConfig(folder.string(), engine);
    if (!inputs.adapter)
      return false;
  }
  if (!inputs.adapter)
    return true;
  if (!checkPeft(*inputs.adapter, options.script.versions.peft, job, engine))
    return false;
  // The base of an adapter is named in its configuration, and loaded from
  // there.
  inputs.training.adapterConfig =
      adapterConfigText(*inputs.adapter, inputs.training.modelPath);
  std::error_code ignored;
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    folder = folder.parent_path();
  if (folder.empty() || !isThere(folder / weightsName) || !job.isJob ||
      job.init.value.kind == InitConfig::Kind::Seed)
    return true;
  if (inputs.training.weightFiles.empty()) {
    engine.error("no-weights", inputs.training.modelPath,
                 "the adapter has weights, but its base model has none",
                 "use 'init: {seed: 0}' to start both from random values");
    return false;
  }
  inputs.adapterWeights = absolutePath(folder / weightsName);
  inputs.training.weightFiles.push_back(inputs.adapterWeights);
  return true;
}

bool checkMagnitude(const PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine) {
  if (!inputs.adapter || !inputs.adapter->magnitude)
    return true;
  auto refuse = [&](std::string message, std::string hint) {
    engine.report(diagnosticAt(inputs.adapter->place("use_dora"), "use_dora",
                               Severity::Error, notSupportedCode,
                               std::move(message), std::move(hint)));
    return false;
  };
  if (inputs.executor == FrameworkKind::AccelRun || options.emitsProgram() ||
      options.emits(EmitKind::Mlir))
    return refuse("accel-run does not train DoRA, whose magnitudes begin as "
                  "the norms of the base's weights",
                  "plan an accelerate YAML for what PEFT does, or leave "
                  "use_dora out");
  if (!inputs.job.quantization)
    return true;
  const plan::WeightFormat format = inputs.job.quantization->values.format;
  if (!plan::isFourBit(format) && format != plan::WeightFormat::Int8)
    return refuse(std::string("DoRA over ") + plan::describe(format).name +
                      " weights is not counted: of quantised bases PEFT's "
                      "DoRA knows those of bitsandbytes",
                  "use nf4, fp4 or int8, or leave use_dora out");
  if (inputs.adapter->dropout > 0)
    return refuse("DoRA with lora_dropout over a quantised base is not "
                  "counted: it computes each layer twice, and autograd keeps "
                  "the second dequantised copy of every weight",
                  "set lora_dropout to 0");
  return true;
}

bool checkAdapterWeights(mlir::ModuleOp module, const PlanInputs &inputs,
                         DiagnosticEngine &engine) {
  if (inputs.adapterWeights.empty())
    return true;
  const std::string &path = inputs.adapterWeights;
  auto file = huggingface::readSafetensorsHeader(path, engine);
  if (!file)
    return false;
  std::map<std::string, const huggingface::StoredTensor *> stored;
  for (const huggingface::StoredTensor &tensor : file->tensors)
    stored[tensor.name] = &tensor;
  auto shown = [](llvm::ArrayRef<int64_t> shape) {
    std::string text;
    for (int64_t size : shape)
      text += (text.empty() ? "[" : ", ") + std::to_string(size);
    return text.empty() ? std::string("[]") : text + "]";
  };
  for (auto param : module.getOps<sharding::ParamOp>()) {
    std::string key = param.getAdapterKey().value_or("").str();
    if (key.empty())
      continue;
    auto it = stored.find(key);
    if (it == stored.end()) {
      engine.error("weights-mismatch", path,
                   "lacks tensor '" + printable(key) +
                       "' of the adapter that adapter_config.json describes");
      return false;
    }
    const huggingface::StoredTensor &tensor = *it->second;
    llvm::ArrayRef<int64_t> shape = param.getTensorType().getShape();
    if (shape != llvm::ArrayRef<int64_t>(tensor.shape)) {
      engine.error("weights-mismatch", path,
                   "tensor '" + printable(key) + "' has shape " +
                       shown(tensor.shape) +
                       ", but adapter_config.json makes it " + shown(shape));
      return false;
    }
    if (tensor.dtype != "F32" && tensor.dtype != "BF16" &&
        tensor.dtype != "F16") {
      engine.error("weights-mismatch", path,
                   "tensor '" + printable(key) + "' has dtype " +
                       printable(tensor.dtype) +
                       "; supported are F32, BF16 and F16");
      return false;
    }
    stored.erase(it);
  }
  if (!stored.empty())
    engine.warning(
        "surplus-weights", path,
        "tensors that the adapter does not have are not read: '" +
            printable(stored.begin()->first) + "'" +
            (stored.size() > 1
                 ? " and " + std::to_string(stored.size() - 1) + " more"
                 : ""));
  return true;
}

} // namespace accel
