//===- ReadDeepspeed.cpp - deepspeed_config and its JSON file -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// DeepSpeedPlugin of accelerate/utils/dataclasses.py: a JSON file replaces what
// the YAML says, and lends it "auto"; without a file the plugin writes one.
// Defaults of the file are those of deepspeed/runtime/zero/config.py.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/LaunchArguments.h"
#include "frontends/Accelerate/ReadValues.h"

#include <filesystem>

using namespace accel;

namespace {

using Count = std::optional<int64_t>;

std::string showCount(const Count &count) {
  return count ? std::to_string(*count) : "auto";
}
std::string showFraction(const std::optional<double> &number) {
  return number ? showNumber(*number) : "auto";
}

/// "auto", or a number.
std::optional<Count> parseCount(const std::string &text) {
  if (text == "auto")
    return Count();
  Count number = parseInteger(text);
  return number ? std::optional<Count>(number) : std::nullopt;
}

std::optional<std::optional<double>> parseFraction(const std::string &text) {
  if (text == "auto")
    return std::optional<double>();
  if (text == "none")
    return std::optional<double>(0.0);
  std::optional<double> number = parseNumber(text);
  return number ? std::optional(number) : std::nullopt;
}

std::optional<OffloadDevice> parseDevice(const std::string &text) {
  std::string lower = lowerCase(text);
  for (OffloadDevice d :
       {OffloadDevice::None, OffloadDevice::Cpu, OffloadDevice::Nvme})
    if (lower == toString(d))
      return d;
  return std::nullopt;
}

/// One value of a JSON file by its dotted path.
class JsonFile {
public:
  /// `prefix` of keys leads from the file's root to `root`.
  JsonFile(const yaml::Node &root, std::string file, std::string prefix)
      : root(root), file(std::move(file)), prefix(std::move(prefix)) {}

  const yaml::Node *find(std::string_view path) const {
    return jsonAt(root, path);
  }

  /// `byDefault` is DeepSpeed's own.
  template <typename T, typename Parse>
  void read(Setting<T> &setting, const char *path, T byDefault,
            Parse parse) const {
    const std::string key = prefix + path;
    setting = {
        byDefault, Origin::Default, key, {file, 1, 1}, "DeepSpeed's default"};
    const yaml::Node *node = find(path);
    if (!node || !node->isScalar() || node->isNull())
      return;
    std::optional<T> value = parse(yaml::pythonText(*node));
    if (!value)
      return;
    yaml::Mark at = node->range.begin;
    setting = {*value,
               Origin::Written,
               key,
               {file, at.line, at.column},
               prefix.empty() ? "from the JSON file" : "from the arguments"};
  }

  /// Of a setting's key.
  const yaml::Node *findKey(std::string_view key) const {
    return find(key.substr(prefix.size()));
  }

private:
  const yaml::Node &root;
  std::string file, prefix;
};

} // namespace

void AccelerateReader::readDeepspeed(const Section &s) {
  DeepspeedSettings &d = config.deepspeed.emplace();
  text(d.configFile, s, "deepspeed_config_file");
  bool named = d.configFile.written() && *d.configFile != "none";
  if (!named) {
    d.configFile.value.clear();
    checkDeepspeedValues(s);
    integer(d.zeroStage, s, "zero_stage");
    typed(d.offloadOptimizer, s, "offload_optimizer_device", parseDevice,
          [](OffloadDevice v) { return toString(v); });
    typed(d.offloadParameters, s, "offload_param_device", parseDevice,
          [](OffloadDevice v) { return toString(v); });
    text(d.optimizerNvmePath, s, "offload_optimizer_nvme_path");
    text(d.parametersNvmePath, s, "offload_param_nvme_path");
    typed(d.gradientAccumulation, s, "gradient_accumulation_steps", parseCount,
          showCount);
    typed(d.gradientClipping, s, "gradient_clipping", parseFraction,
          showFraction);
    typed(
        d.save16BitModel, s, "zero3_save_16bit_model",
        [](const std::string &t) {
          return std::optional(lowerCase(t) == "true");
        },
        showBool);
    auto mixed = config.mixedPrecision;
    auto derived = [&](Setting<bool> &setting, bool value) {
      setting = {value, Origin::Derived, mixed.key, mixed.at,
                 "follows from mixed_precision"};
    };
    derived(d.fp16, *mixed == MixedPrecision::Fp16);
    derived(d.bf16,
            *mixed == MixedPrecision::Bf16 || *mixed == MixedPrecision::Fp8);
  } else {
    readDeepspeedFile(s, d);
  }

  // Only stage 3 builds the model sharded; unset, it does.
  bool third = *d.zeroStage == 3;
  Field init = in(s, "zero3_init_flag");
  std::optional<bool> flag;
  if (init && !init.isNull())
    flag = envBool(init);
  if (flag && (third || !*flag))
    written(d.zero3Init, *flag, init, showBool(*flag));
  else if (flag)
    setDefault(d.zero3Init, false, init, "false",
               "only ZeRO stage 3 builds the model sharded, this is stage " +
                   std::to_string(*d.zeroStage),
               Origin::Derived);
  else
    setDefault(d.zero3Init, third, init, showBool(third),
               "follows from ZeRO stage " + std::to_string(*d.zeroStage),
               Origin::Derived);
  text(d.hostfile, s, "deepspeed_hostfile");
  text(d.exclusionFilter, s, "deepspeed_exclusion_filter");
  text(d.inclusionFilter, s, "deepspeed_inclusion_filter");
  text(d.launcher, s, "deepspeed_multinode_launcher");
  typed(
      d.moeClasses, s, "deepspeed_moe_layer_cls_names",
      [](const std::string &t) {
        std::vector<std::string> names;
        for (size_t at = 0; at <= t.size();) {
          size_t comma = std::min(t.find(',', at), t.size());
          names.push_back(t.substr(at, comma - at));
          at = comma + 1;
        }
        return std::optional(names);
      },
      [](const std::vector<std::string> &names) {
        std::string shown;
        for (const std::string &name : names)
          shown += (shown.empty() ? "" : ",") + printable(name);
        return shown;
      });
}

void AccelerateReader::checkDeepspeedValues(const Section &s) {
  auto given = [&](const char *name) {
    Field field = in(s, name);
    return field && !field.isNull() ? field : Field();
  };
  auto text = [](const Field &f) { return yaml::pythonText(f.value()); };
  if (Field stage = given("zero_stage")) {
    std::optional<int64_t> number = envInt(stage.value());
    if (!number || *number < 0 || *number > 3) {
      config.assumed.deepspeed = true;
      error("invalid-value", stage,
            "zero_stage must be 0, 1, 2 or 3, this is " +
                yaml::shortText(stage.value()) +
                (number ? "; DeepSpeed stops in every rank"
                        : "; every rank stops with a ValueError"),
            "write zero_stage: 2, or 3 to shard parameters too");
    }
  }
  for (const char *name : {"offload_optimizer_device", "offload_param_device"})
    if (Field device = given(name); device && !parseDevice(text(device)))
      error("invalid-value", device,
            std::string(name) + " must be none, cpu or nvme, this is " +
                yaml::shortText(device.value()) +
                "; DeepSpeed stops in every rank",
            didYouMean(text(device), {"none", "cpu", "nvme"}),
            fixSpelling(device, {"none", "cpu", "nvme"}));
  if (Field steps = given("gradient_accumulation_steps")) {
    std::optional<int64_t> number = envInt(steps.value());
    if (text(steps) == "auto")
      report(Severity::Warning, "deepspeed-accumulation", steps,
             "\"auto\" takes the gradient_accumulation_steps of the script's "
             "Accelerator or TrainingArguments, 1 where it gives none",
             "write the number, or leave the line out if the script gives it");
    else if (!number || *number < 1)
      error("invalid-value", steps,
            "gradient_accumulation_steps must be a positive integer or auto, "
            "this is " +
                yaml::shortText(steps.value()) +
                "; DeepSpeed stops in every rank",
            "write gradient_accumulation_steps: 1");
  }
  if (Field norm = given("gradient_clipping");
      norm && text(norm) != "auto" && !parseNumber(text(norm)))
    error("invalid-value", norm,
          "gradient_clipping must be a number or auto, this is " +
              yaml::shortText(norm.value()) +
              "; every rank stops with a ValueError",
          "write gradient_clipping: 1.0");
}

void AccelerateReader::readDeepspeedFile(const Section &s,
                                         DeepspeedSettings &d) {
  std::string found = findDeepspeedFile(*d.configFile, file);
  std::filesystem::path path = found.empty() ? *d.configFile : found;
  if (found.empty() && options.forPlanning)
    error("deepspeed-file-missing", in(s, "deepspeed_config_file"),
          "there is no file " + printablePath(*d.configFile) +
              ", which says what DeepSpeed does",
          "write its path from here or from the YAML's folder");
  d.configFile.value = path.string();
  DiagnosticEngine silent; // lint reads the file itself, and says what is wrong
  std::unique_ptr<yaml::Document> document;
  if (std::error_code failed; std::filesystem::is_regular_file(path, failed))
    document = yaml::parseFile(path.string(), options.texts,
                               options.forPlanning ? engine : silent);
  static const yaml::Node nothing = [] {
    yaml::Node node;
    node.kind = yaml::Kind::Mapping;
    return node;
  }();
  d.fileRead =
      document && isDeepspeedObject(path.string(), document->root(),
                                    options.forPlanning ? engine : silent);
  std::string prefix;
  const yaml::Node &root =
      d.fileRead ? deepspeedRoot(*document->root(), prefix) : nothing;
  d.inArguments = !prefix.empty();
  JsonFile json(root, path.string(), prefix);
  // Lint reads a file of its own accord, and no arguments of scripts.
  if (d.fileRead && (options.forPlanning || d.inArguments))
    checkDeepspeedJson(path.string(), root, options.forPlanning,
                       options.deepspeedVersion, engine);

  auto flag = [](const std::string &t) { return stringToBool(t); };
  auto text = [](const std::string &t) { return std::optional(t); };
  json.read(d.zeroStage, "zero_optimization.stage", int64_t(0), parseInteger);
  json.read(d.offloadOptimizer, "zero_optimization.offload_optimizer.device",
            OffloadDevice::None, parseDevice);
  json.read(d.offloadParameters, "zero_optimization.offload_param.device",
            OffloadDevice::None, parseDevice);
  json.read(d.optimizerNvmePath,
            "zero_optimization.offload_optimizer.nvme_path", std::string(),
            text);
  json.read(d.parametersNvmePath, "zero_optimization.offload_param.nvme_path",
            std::string(), text);
  json.read(d.gradientAccumulation, "gradient_accumulation_steps", Count(1),
            parseCount);
  json.read(d.gradientClipping, "gradient_clipping", std::optional<double>(0.0),
            parseFraction);
  json.read(d.ownOptimizer, "optimizer.type", false,
            [](const std::string &) { return std::optional(true); });
  json.read(d.torchAdam, "optimizer.params.torch_adam", false, flag);
  if (*d.torchAdam)
    d.torchAdam.why = "DeepSpeed makes torch.optim.AdamW";
  if (*d.ownOptimizer)
    d.ownOptimizer.why = "DeepSpeed makes its FusedAdam";
  json.read(d.microBatch, "train_micro_batch_size_per_gpu", Count(),
            parseCount);
  json.read(d.trainBatch, "train_batch_size", Count(), parseCount);
  json.read(d.save16BitModel,
            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
            false, flag);
  // "auto" follows mixed_precision.
  MixedPrecision mixed = *config.mixedPrecision;
  auto precision = [&](Setting<bool> &setting, const char *key, bool follows) {
    const yaml::Node *node = json.find(key);
    json.read(setting, key, false, flag);
    if (node && node->text == "auto") {
      yaml::Mark at = node->range.begin;
      setting = {follows,
                 Origin::Derived,
                 prefix + key,
                 {path.string(), at.line, at.column},
                 "\"auto\" follows mixed_precision"};
    } else if (!node && follows) {
      setting = {true, Origin::Derived, config.mixedPrecision.key,
                 config.mixedPrecision.at, "follows from mixed_precision"};
    }
  };
  precision(d.fp16, "fp16.enabled", mixed == MixedPrecision::Fp16);
  precision(d.bf16, "bf16.enabled",
            mixed == MixedPrecision::Bf16 || mixed == MixedPrecision::Fp8);
  bool third = *d.zeroStage == 3;
  json.read(d.overlapCommunication, "zero_optimization.overlap_comm", third,
            flag);
  json.read(d.contiguousGradients, "zero_optimization.contiguous_gradients",
            true, flag);
  json.read(d.reduceBucket, "zero_optimization.reduce_bucket_size",
            Count(500'000'000), parseCount);
  json.read(d.gatherBucket, "zero_optimization.allgather_bucket_size",
            Count(500'000'000), parseCount);
  json.read(d.prefetchBucket, "zero_optimization.stage3_prefetch_bucket_size",
            Count(50'000'000), parseCount);
  json.read(d.persistenceThreshold,
            "zero_optimization.stage3_param_persistence_threshold",
            Count(100'000), parseCount);
  json.read(d.maxLiveParameters, "zero_optimization.stage3_max_live_parameters",
            Count(1'000'000'000), parseCount);
  json.read(d.maxReuseDistance, "zero_optimization.stage3_max_reuse_distance",
            Count(1'000'000'000), parseCount);
  json.read(d.subGroup, "zero_optimization.sub_group_size",
            int64_t(1'000'000'000), parseInteger);
  json.read(d.secondaryRanks, "zero_optimization.zero_hpz_partition_size",
            int64_t(1), parseInteger);
  json.read(d.micsRanks, "zero_optimization.mics_shard_size", int64_t(-1),
            parseInteger);
  json.read(d.quantizedWeights, "zero_optimization.zero_quantized_weights",
            false, flag);
  json.read(d.quantizedGradients, "zero_optimization.zero_quantized_gradients",
            false, flag);

  auto row = [&](const auto &setting, const std::string &shown) {
    EffectiveValue v;
    v.key = path.filename().string() + ":" + setting.key;
    if (const yaml::Node *node = json.findKey(setting.key))
      v.asked = yaml::shortText(*node);
    v.effective = shown;
    v.why = setting.why;
    v.origin = setting.origin;
    v.at = setting.at;
    config.effective.push_back(std::move(v));
  };
  if (!d.fileRead)
    return;
  row(d.zeroStage, showInteger(*d.zeroStage));
  row(d.offloadOptimizer, toString(*d.offloadOptimizer));
  row(d.offloadParameters, toString(*d.offloadParameters));
  row(d.gradientAccumulation, showCount(*d.gradientAccumulation));
  row(d.gradientClipping, showFraction(*d.gradientClipping));
  row(d.microBatch, showCount(*d.microBatch));
  row(d.trainBatch, showCount(*d.trainBatch));
  row(d.fp16, showBool(*d.fp16));
  row(d.bf16, showBool(*d.bf16));
  row(d.save16BitModel, showBool(*d.save16BitModel));
  row(d.overlapCommunication, showBool(*d.overlapCommunication));
  row(d.reduceBucket, showCount(*d.reduceBucket));
  row(d.prefetchBucket, showCount(*d.prefetchBucket));
  row(d.persistenceThreshold, showCount(*d.persistenceThreshold));
  row(d.subGroup, showInteger(*d.subGroup));
  row(d.secondaryRanks, showInteger(*d.secondaryRanks));
  if (d.micsRanks.written())
    row(d.micsRanks, showInteger(*d.micsRanks));
  row(d.quantizedWeights, showBool(*d.quantizedWeights));
  row(d.quantizedGradients, showBool(*d.quantizedGradients));
}
