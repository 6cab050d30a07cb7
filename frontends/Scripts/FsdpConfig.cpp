//===- FsdpConfig.cpp - fsdp and fsdp_config of TrainingArguments ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// TrainingArguments._process_fsdp_args of transformers 5.23: version 2 unless
// another is written, rank-0 loading off unless it is asked for. What it gives
// FullyShardedDataParallelPlugin goes before the accelerate file; what it
// leaves open is the file's, through the environment.
//
//===----------------------------------------------------------------------===//
#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Scripts/ReadSettings.h"
#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>

namespace accel::scripts {
namespace {

struct FsdpKey {
  std::string_view name;   // in fsdp_config, without fsdp_
  const char *accelerate;  // key of the accelerate file
  const char *standard[2]; // default under version 1 and 2; null: left open
};

constexpr FsdpKey fsdpKeys[] = {
    {"cpu_offload", "fsdp_offload_params", {nullptr, nullptr}},
    {"auto_wrap_policy",
     "fsdp_auto_wrap_policy",
     {"TRANSFORMER_BASED_WRAP", "TRANSFORMER_BASED_WRAP"}},
    {"min_num_params", "fsdp_min_num_params", {nullptr, nullptr}},
    {"transformer_layer_cls_to_wrap",
     "fsdp_transformer_layer_cls_to_wrap",
     {nullptr, nullptr}},
    {"cpu_ram_efficient_loading",
     "fsdp_cpu_ram_efficient_loading",
     {"false", "false"}},
    {"state_dict_type",
     "fsdp_state_dict_type",
     {"FULL_STATE_DICT", "FULL_STATE_DICT"}},
    {"activation_checkpointing",
     "fsdp_activation_checkpointing",
     {nullptr, nullptr}},
    {"reshard_after_forward", "fsdp_reshard_after_forward", {nullptr, "true"}},
    {"forward_prefetch", "fsdp_forward_prefetch", {"false", nullptr}},
    {"backward_prefetch", "fsdp_backward_prefetch", {"NO_PREFETCH", nullptr}},
    {"use_orig_params", "fsdp_use_orig_params", {"true", nullptr}},
    {"sync_module_states", "fsdp_sync_module_states", {"true", nullptr}},
};

/// Keys that Trainer reads and that change no bytes of a step.
constexpr std::string_view silentKeys[] = {
    "version",     "limit_all_gathers",  "xla",
    "xla_fsdp_v2", "xla_fsdp_grad_ckpt", "xla_fsdp_settings"};

std::string withoutPrefix(const std::string &name) {
  return name.starts_with("fsdp_") ? name.substr(5) : name;
}

std::string upper(std::string text) {
  for (char &c : text)
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

} // namespace

void SettingsReader::readFsdp() {
  const Given &asked = *given("fsdp");
  const std::string place = asked.file;
  // The base file's section holds only if it is of FSDP.
  if (accelerate.type() != "FSDP")
    accelerate.remove("fsdp_config");
  accelerate.set("", "distributed_type",
                 nodes.text(place, asked.value->range, "FSDP"));
  row("fsdp", "true", "");

  const Given *config = given("fsdp_config");
  if (config && config->value->isString()) {
    const std::string path = config->value->text;
    auto document = yaml::parseFile(path, engine);
    if (!document || !document->root() || !document->root()->isMapping())
      return;
    const yaml::Node &root = *document->root();
    nodes.keep(std::move(document));
    return readFsdpConfig(asked, root, path);
  }
  if (config && config->value->isMapping())
    return readFsdpConfig(asked, *config->value, config->file);
  yaml::Node empty;
  empty.kind = yaml::Kind::Mapping;
  readFsdpConfig(asked, empty, place);
}

void SettingsReader::readFsdpConfig(const Given &asked,
                                    const yaml::Node &config,
                                    const std::string &file) {
  std::map<std::string, const yaml::Node *> written;
  for (const yaml::Entry &entry : config.entries) {
    const std::string name = withoutPrefix(entry.key->text);
    written[name] = entry.value;
    const bool known =
        std::any_of(std::begin(fsdpKeys), std::end(fsdpKeys),
                    [&](const FsdpKey &k) { return k.name == name; }) ||
        std::find(std::begin(silentKeys), std::end(silentKeys), name) !=
            std::end(silentKeys) ||
        (recipe.reader() == Reader::Axolotl &&
         findArgument(Family::Axolotl, "fsdp_config", name));
    if (known)
      continue;
    std::vector<std::string> names;
    for (const FsdpKey &key : fsdpKeys)
      names.emplace_back(key.name);
    Diagnostic d;
    d.severity = Severity::Warning;
    d.code = "unknown-argument";
    d.file = file;
    d.key = "fsdp_config." + entry.key->text;
    d.message = "fsdp_config has no '" + printable(entry.key->text) +
                "', and Trainer does not read it";
    d.hint = didYouMean(name, names);
    d.setRange(entry.key->range);
    engine.report(std::move(d));
  }
  auto on = [&](const char *name) {
    auto found = written.find(name);
    return found != written.end() && found->second->kind == yaml::Kind::Bool &&
           found->second->boolean;
  };
  if (on("xla"))
    return refuse("fsdp_config", "fsdp_config with xla: true trains on TPUs, "
                                 "which is not modelled yet");

  // The version, by which the rest is read.
  const bool axolotl = recipe.reader() == Reader::Axolotl;
  int version =
      !axolotl && isAtLeast(recipe.versions().transformers, "5.6") ? 2 : 1;
  const yaml::Node *versionAt = nullptr;
  if (auto found = written.find("version"); found != written.end()) {
    const std::string number = found->second->text;
    if (number != "1" && number != "2") {
      Diagnostic d;
      d.code = "invalid-value";
      d.file = file;
      d.key = "fsdp_config.version";
      d.message = "'version' is '" + printable(number) + "', not 1 or 2";
      d.setRange(found->second->range);
      engine.report(std::move(d));
      return;
    }
    version = number == "2" ? 2 : 1;
    versionAt = nodes.copy(*found->second, file);
  } else {
    versionAt = nodes.integer(asked.file, asked.value->range, version);
  }
  accelerate.set("fsdp_config", "fsdp_version", versionAt);
  if (version == 1 && !axolotl &&
      isAtLeast(recipe.versions().transformers, "5.6"))
    note("former-argument", given("fsdp_config") ? "fsdp_config" : "fsdp",
         "FSDP1 is deprecated in transformers 5.23 and announced to go",
         "write version: 2");

  // "full_shard auto_wrap offload", as earlier releases had it.
  std::string strategy;
  const yaml::Node &list = *asked.value;
  std::vector<std::string> words;
  if (list.isSequence())
    for (const yaml::Node *item : list.items)
      words.push_back(item->text);
  else if (list.isString()) {
    size_t begin = 0;
    const std::string &text = list.text;
    while ((begin = text.find_first_not_of(" ,", begin)) != text.npos) {
      const size_t end = std::min(text.find_first_of(" ,", begin), text.size());
      words.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  }
  for (const std::string &word : words) {
    if (word == "auto_wrap" || word == "true" || word == "True")
      continue;
    if (word == "offload") {
      if (!written.count("cpu_offload"))
        written["cpu_offload"] = nodes.boolean(asked.file, list.range, true);
      continue;
    }
    const bool both = word == "full_shard" || word == "shard_grad_op";
    const bool first = word == "hybrid_shard" || word == "no_shard" ||
                       word == "hybrid_shard_zero2";
    if (!both && !first)
      return error("invalid-value", "fsdp",
                   "'" + printable(word) +
                       "' is no option of fsdp; TrainingArguments stops with "
                       "a ValueError",
                   didYouMean(word, {"full_shard", "shard_grad_op", "offload",
                                     "auto_wrap", "hybrid_shard",
                                     "hybrid_shard_zero2", "no_shard"}));
    if (first && version == 2)
      return error("invalid-value", "fsdp",
                   "'" + word +
                       "' is of FSDP1, and fsdp_config has version 2; "
                       "TrainingArguments stops with a ValueError",
                   "write version: 1 in fsdp_config, or a mesh in "
                   "parallelism_config of the accelerate file");
    if (!written.count("reshard_after_forward"))
      written["reshard_after_forward"] =
          version == 2
              ? nodes.boolean(asked.file, list.range, word == "full_shard")
              : nodes.text(asked.file, list.range, word);
  }
  if (!words.empty() && !axolotl && list.isString() &&
      isAtLeast(recipe.versions().transformers, "5.6"))
    note("former-argument", "fsdp",
         "text in fsdp is deprecated in transformers 5.23",
         "write fsdp: true, and the rest in fsdp_config");
  // axolotl names two keys otherwise.
  if (auto found = written.find("offload_params"); found != written.end())
    written.try_emplace("cpu_offload", found->second);

  for (const FsdpKey &key : fsdpKeys) {
    auto found = written.find(std::string(key.name));
    const char *standard = key.standard[version - 1];
    const yaml::Node *value = nullptr;
    if (found != written.end() && !found->second->isNull()) {
      const yaml::Node *node = found->second;
      value = nodes.copy(*node, node->source ? *node->source : file);
    } else if (standard && !axolotl) {
      value = nodes.plain(asked.file, asked.value->range, standard);
    } else {
      continue;
    }
    const bool firstOnly = key.standard[0] && !key.standard[1];
    if (firstOnly && version == 2)
      continue; // Trainer does not hand it on
    if (key.name == "reshard_after_forward" && version == 1) {
      // accelerator.py takes `sharding_strategy or reshard_after_forward`, and
      // the first has a default.
      if (upper(value->text) == "FULL_SHARD")
        continue;
      Diagnostic d;
      d.severity = Severity::Warning;
      d.code = "ignored-key";
      d.file = *value->source;
      d.key = "fsdp_config.reshard_after_forward";
      d.message = "'" + printable(value->text) +
                  "' has no effect under FSDP1: accelerate prefers its own "
                  "fsdp_sharding_strategy, by default FULL_SHARD";
      d.hint = "write fsdp_sharding_strategy in an accelerate file, or use "
               "version 2";
      d.setRange(value->range);
      engine.report(std::move(d));
      continue;
    }
    if (value->isSequence()) { // names of classes
      std::string names;
      for (const yaml::Node *item : value->items)
        names += (names.empty() ? "" : ",") + item->text;
      value = nodes.text(*value->source, value->range, names);
    }
    accelerate.set("fsdp_config", key.accelerate, value);
  }
}

} // namespace accel::scripts
