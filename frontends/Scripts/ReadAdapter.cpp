//===- ReadAdapter.cpp - The model, its adapter and its dtype -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// get_peft_config and get_quantization_config of trl/trainer/utils.py 1.10.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

#include <algorithm>

namespace accel::scripts {
namespace {

constexpr std::string_view peftLines[] = {
#include "frontends/Scripts/peft.inc"
};

std::optional<plan::DType> dtypeNamed(std::string_view name) {
  constexpr std::pair<std::string_view, plan::DType> names[] = {
      {"float32", plan::DType::F32}, {"bfloat16", plan::DType::BF16},
      {"float16", plan::DType::F16}, {"fp32", plan::DType::F32},
      {"bf16", plan::DType::BF16},   {"fp16", plan::DType::F16}};
  if (name.starts_with("torch."))
    name.remove_prefix(6);
  for (const auto &[known, dtype] : names)
    if (name == known)
      return dtype;
  return std::nullopt;
}

} // namespace

std::vector<std::string> loraTargets(std::string_view modelType) {
  for (std::string_view line : peftLines) {
    const size_t tab = line.find('\t');
    if (line.substr(0, tab) != modelType || line.starts_with("#"))
      continue;
    std::vector<std::string> names;
    std::string_view rest = line.substr(tab + 1);
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      names.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return names;
  }
  return {};
}

void SettingsReader::readModel() {
  const std::string model = text("model_name_or_path");
  if (!model.empty())
    set(settings.model, model, "model_name_or_path", model);
  std::string dtype = text("dtype");
  // TRL loads in fp32 unless told otherwise; others as the checkpoint says.
  const bool trl = recipe.reader() == Reader::Sft ||
                   recipe.reader() == Reader::Dpo ||
                   recipe.reader() == Reader::Grpo;
  if (!given("dtype") && !trl)
    return;
  if (const yaml::Node *init = value("model_init_kwargs");
      init && init->isMapping())
    for (const char *name : {"dtype", "torch_dtype"})
      if (const yaml::Node *inner = init->find(name))
        dtype = inner->text;
  if (dtype.empty() || dtype == "auto")
    return;
  const std::optional<plan::DType> loaded = dtypeNamed(dtype);
  if (!loaded)
    return error("invalid-value", "dtype",
                 "'" + printable(dtype) + "' is no dtype that a model loads in",
                 "it is one of auto, float32, bfloat16, float16");
  set(settings.loadDtype, loaded, "dtype", dtype);
}

void SettingsReader::readAdapter() {
  const bool asked = truth("use_peft");
  const Given *rank = given("lora_r");
  // --lora-r of accel-opt asks by itself.
  if (!asked && !(rank && !rank->info)) {
    const Given *first = nullptr;
    for (const char *name : {"lora_r", "lora_alpha", "lora_dropout",
                             "lora_target_modules", "use_dora", "use_rslora"})
      if (!first)
        first = given(name);
    if (first &&
        (recipe.reader() == Reader::Sft || recipe.reader() == Reader::Dpo ||
         recipe.reader() == Reader::Grpo))
      report(engine, Severity::Warning, "ignored-key", *first,
             "'" + first->written +
                 "' has no effect without use_peft: all parameters are trained",
             "write use_peft: true", true);
    return;
  }
  if (given("lora_target_parameters") && value("lora_target_parameters"))
    return refuse("lora_target_parameters",
                  "adapters of parameters (of experts) are not modelled yet",
                  "adapters of modules are: lora_target_modules");
  const Given &place = rank ? *rank : *given("use_peft");
  yaml::Node *config = nodes.make(place.file, place.value->range);
  config->kind = yaml::Kind::Mapping;
  nodes.set(*config, "peft_type",
            nodes.text(place.file, place.value->range, "LORA"));
  // A script of its own around Trainer has PEFT's defaults, not those of TRL's
  // ModelConfig.
  const bool asPeft = recipe.reader() == Reader::Trainer && !asked;
  auto argument = [&](const char *name) {
    return asPeft && !given(name) ? nullptr : value(name);
  };
  auto put = [&](const char *key, const char *name) {
    if (const yaml::Node *node = argument(name))
      nodes.set(*config, key, nodes.copy(*node, place.file));
  };
  put("r", "lora_r");
  put("lora_alpha", "lora_alpha");
  put("lora_dropout", "lora_dropout");
  put("use_rslora", "use_rslora");
  put("use_dora", "use_dora");
  put("modules_to_save", "lora_modules_to_save");
  put("task_type", "lora_task_type");
  put("fan_in_fan_out", "lora_fan_in_fan_out");
  const yaml::Node *targets = value("lora_target_modules"),
                   *dropout = argument("lora_dropout");
  if (targets && targets->isSequence() && targets->items.size() == 1 &&
      targets->items[0]->text == "all-linear")
    targets = targets->items[0];
  if (targets) {
    nodes.set(*config, "target_modules", nodes.copy(*targets, place.file));
  } else if (rank && !rank->info) {
    nodes.set(*config, "target_modules",
              nodes.text(place.file, place.value->range, "all-linear"));
    note("default-adapter", "lora_r",
         "adapters are taken to be at every linear layer but the output's" +
             (dropout && dropout->number > 0
                  ? ", behind a dropout of " + dropout->text +
                        ", which keeps its mask and its output"
                  : std::string()),
         "--adapter names an adapter_config.json that says otherwise");
  } else {
    const std::vector<std::string> names =
        loraTargets(typeOf(settings.model.value));
    if (names.empty())
      return error("invalid-value", given("lora_r") ? "lora_r" : "use_peft",
                   "PEFT has no standard target_modules for this model; "
                   "it stops with a ValueError",
                   "write lora_target_modules: all-linear");
    yaml::Node *list = nodes.make(place.file, place.value->range);
    list->kind = yaml::Kind::Sequence;
    for (const std::string &name : names)
      list->items.push_back(nodes.text(place.file, place.value->range, name));
    nodes.set(*config, "target_modules", list);
  }
  settings.adapter = accel::readAdapter(
      place.file, *config, "", /*strict=*/false, recipe.planning(), engine);
  if (!settings.adapter)
    return;
  row(rank ? "lora_r" : "use_peft",
      "rank " + std::to_string(settings.adapter->rank), "");
  if (recipe.reader() == Reader::Axolotl)
    readAdapterFunctions();
}

void SettingsReader::readQuantization() {
  const bool four = truth("load_in_4bit"), eight = truth("load_in_8bit");
  if (four && eight)
    return error("conflicting-arguments", "load_in_8bit",
                 "load_in_4bit and load_in_8bit are both true",
                 "keep one of them");
  if (!four && !eight)
    return;
  std::string spelled = "int8";
  if (four) {
    const std::string type = text("bnb_4bit_quant_type");
    spelled = type == "fp4" ? "fp4" : "nf4";
    if (truth("use_bnb_nested_quant"))
      spelled += ",double_quant";
    if (auto storage = dtypeNamed(text("bnb_4bit_quant_storage")))
      spelled += *storage == plan::DType::BF16  ? ",storage=bf16"
                 : *storage == plan::DType::F16 ? ",storage=f16"
                                                : ",storage=f32";
  }
  // axolotl calls prepare_model_for_kbit_training where nothing is sharded, and
  // gives norms and embeddings the base's dtype again behind it
  // (loaders/model.py, _configure_embedding_dtypes).
  set(settings.quantization, spelled, four ? "load_in_4bit" : "load_in_8bit",
      spelled);
  if (!settings.adapter && !truth("use_peft"))
    error("invalid-value", four ? "load_in_4bit" : "load_in_8bit",
          "a model that is loaded in " + std::string(four ? "4" : "8") +
              " bits has no parameters to train; Trainer stops with a "
              "ValueError",
          "add an adapter: use_peft: true, or --lora-r 16");
}

} // namespace accel::scripts
