//===- Fsdp.cpp - fsdp_config ---------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// launch turns each value into an environment variable by str(), and
// FullyShardedDataParallelPlugin (accelerate/utils/dataclasses.py) reads them
// in every rank. So `1e8`, null and quoted booleans fail or pass here as they
// do there.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"
#include "frontends/Diagnostics/Regex.h"

using namespace accel;

void AccelerateReader::readFsdp() {
  int fsdpVersion = readFsdpVersion();
  checkSectionKeys(fsdp);
  readSharding(fsdpVersion);
  flag(config.offloadParams, fsdp, "fsdp_offload_params", false);
  readWrapping();
  readIgnoredModules();
  readCheckpointing(fsdpVersion);
  readPrefetch(fsdpVersion);
  readLoading(fsdpVersion);
  readStateDict(fsdpVersion);
}

int AccelerateReader::readFsdpVersion() {
  Field field = in(fsdp, "fsdp_version");
  std::optional<int64_t> number = 1;
  if (field)
    number = envInt(field.value());
  if (!number || (*number != 1 && *number != 2)) {
    error(field.isNull() ? "yaml-null" : "invalid-value", field,
          "fsdp_version must be 1 or 2, this is " +
              yaml::shortText(field.value()),
          "write fsdp_version: 2");
    number = 2;
    config.assumed.fsdpVersion = true;
  }
  Strategy strategy = *number == 2 ? Strategy::Fsdp2 : Strategy::Fsdp1;
  if (field)
    written(config.strategy, strategy, field, std::to_string(*number));
  else
    setDefault(config.strategy, strategy, field, "1",
               whyDefault(findKey("fsdp_config", "fsdp_version"), version));
  return config.assumed.fsdpVersion ? 0 : static_cast<int>(*number);
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

/// A strategy by name or number, as ShardingStrategy reads it.
static std::optional<Sharding> parseSharding(std::string_view text) {
  for (int i = 0; i < 5; ++i) {
    auto sharding = static_cast<Sharding>(i);
    if (equalsUpper(text, toString(sharding)) ||
        (text.size() == 1 && text[0] == '1' + i))
      return sharding;
  }
  return std::nullopt;
}

static bool reshards(Sharding sharding) {
  return sharding == Sharding::FullShard || sharding == Sharding::HybridShard;
}

void AccelerateReader::readSharding(int fsdpVersion) {
  if (fsdpVersion == 1)
    readShardingV1();
  else
    readShardingV2();
}

void AccelerateReader::readShardingV1() {
  Field field = in(fsdp, "fsdp_sharding_strategy");
  Field reshard = in(fsdp, "fsdp_reshard_after_forward");
  std::optional<Sharding> sharding = Sharding::FullShard;
  const std::vector<std::string> strategies = {"FULL_SHARD", "SHARD_GRAD_OP",
                                               "NO_SHARD", "HYBRID_SHARD",
                                               "HYBRID_SHARD_ZERO2"};
  if (field) {
    std::string text = yaml::pythonText(field.value());
    sharding = parseSharding(text);
    bool number = text.size() == 1;
    if (sharding && before(0, 26) && !number) {
      error("invalid-value", field,
            "accelerate " + toString(version) +
                " takes a number from 1 to 5; every rank stops with a "
                "ValueError at " +
                yaml::shortText(field.value()),
            "write " + std::to_string(static_cast<int>(*sharding) + 1),
            fixRaw(field, std::to_string(static_cast<int>(*sharding) + 1)));
    } else if (sharding && before(1, 0) && !number &&
               text != toString(*sharding)) {
      error("invalid-value", field,
            "before accelerate 1.0 a sharding strategy is in capitals; every "
            "rank stops with a ValueError",
            std::string("write ") + toString(*sharding),
            fixText(field, toString(*sharding)));
    }
    if (!sharding)
      error("invalid-value", field,
            yaml::shortText(field.value()) +
                " is not a sharding strategy; every rank stops with a KeyError",
            didYouMean(field.value().text, strategies),
            fixSpelling(field, strategies));
  }
  if (field && sharding)
    written(config.sharding, *sharding, field, toString(*sharding));
  else
    setDefault(
        config.sharding, Sharding::FullShard, field, "FULL_SHARD",
        whyDefault(findKey("fsdp_config", "fsdp_sharding_strategy"), version));
  Sharding used = *config.sharding;
  setDefault(config.reshardAfterForward, reshards(used),
             field ? field : in(fsdp, "fsdp_sharding_strategy"),
             reshards(used) ? "true" : "false",
             std::string("follows from ") + toString(used), Origin::Derived);
  popEffective();
  if (!reshard)
    return;
  // FSDP_SHARDING_STRATEGY is always set by launch, so the plugin never looks
  // at this key, although the wizard stores the answer there and only there.
  const yaml::Node &value = reshard.value();
  std::optional<Sharding> asked = parseSharding(yaml::pythonText(value));
  if (value.kind == yaml::Kind::Bool)
    asked = value.boolean ? Sharding::FullShard : Sharding::ShardGradOp;
  bool matters = !asked || *asked != used;
  yaml::Edits fix = fixRemoval(reshard);
  if (matters)
    fix = asked && !field
              ? fixBoth(fixName(reshard, fsdp, "fsdp_sharding_strategy"),
                        fixText(reshard, toString(*asked)))
              : yaml::Edits();
  ignored(reshard,
          std::string("with fsdp_version 1: the job runs ") + toString(used),
          matters,
          matters && asked
              ? "write fsdp_sharding_strategy: " + std::string(toString(*asked))
              : "",
          std::move(fix));
}

void AccelerateReader::readShardingV2() {
  Field strategy = in(fsdp, "fsdp_sharding_strategy");
  Field field = in(fsdp, "fsdp_reshard_after_forward");
  std::optional<bool> value;
  if (field) {
    std::optional<Sharding> name;
    if (field.value().isString())
      name = parseSharding(field.value().text);
    if (config.assumed.fsdpVersion && name)
      value = reshards(*name);
    else if (name && field.value().text.size() > 1)
      error("invalid-value", field,
            "fsdp_reshard_after_forward is a boolean with fsdp_version 2; "
            "every rank stops with \"invalid truth value\"",
            std::string("write ") + (reshards(*name) ? "true" : "false"),
            fixRaw(field, reshards(*name) ? "true" : "false"));
    else
      value = envBool(field);
  }
  if (value)
    written(config.reshardAfterForward, *value, field,
            *value ? "true" : "false");
  else
    setDefault(config.reshardAfterForward, true, field, "true",
               whyDefault(findKey("fsdp_config", "fsdp_reshard_after_forward"),
                          version));
  bool reshard = *config.reshardAfterForward;
  Sharding sharding = reshard ? Sharding::FullShard : Sharding::ShardGradOp;
  config.sharding = {sharding, Origin::Derived, config.reshardAfterForward.key,
                     config.reshardAfterForward.at,
                     "follows from fsdp_reshard_after_forward"};
  if (!strategy || config.assumed.fsdpVersion)
    return;
  std::optional<Sharding> asked =
      parseSharding(yaml::pythonText(strategy.value()));
  bool matters = !asked || *asked != sharding;
  std::string hint = "remove it";
  yaml::Edits fix = matters ? yaml::Edits() : fixRemoval(strategy);
  if (asked == Sharding::NoShard)
    hint = "write distributed_type: MULTI_GPU for a job without sharding";
  else if (asked == Sharding::HybridShard ||
           asked == Sharding::HybridShardZero2)
    hint = "write a parallelism_config with dp_replicate_size and "
           "dp_shard_size for hybrid sharding";
  else if (asked && matters) {
    const char *answer = reshards(*asked) ? "true" : "false";
    hint = std::string("write fsdp_reshard_after_forward: ") + answer;
    fix = field ? fixBoth(fixRaw(field, answer), fixRemoval(strategy))
                : fixBoth(fixName(strategy, fsdp, "fsdp_reshard_after_forward"),
                          fixRaw(strategy, answer));
  }
  ignored(strategy, "with fsdp_version 2", matters, hint, std::move(fix));
}

//===----------------------------------------------------------------------===//
// Wrapping
//===----------------------------------------------------------------------===//

void AccelerateReader::readWrapping() {
  Field field = in(fsdp, "fsdp_auto_wrap_policy");
  auto &policy = config.wrapPolicy;
  setDefault(
      policy, WrapPolicy::None, field, "NO_WRAP",
      whyDefault(findKey("fsdp_config", "fsdp_auto_wrap_policy"), version));
  if (field && !field.isNull()) {
    popEffective();
    bool found = false;
    std::string text = yaml::pythonText(field.value());
    for (WrapPolicy p :
         {WrapPolicy::Transformer, WrapPolicy::Size, WrapPolicy::None})
      if (equalsUpper(text, toString(p))) {
        written(policy, p, field, toString(p));
        found = true;
      }
    config.assumed.wrapPolicy = !found;
    if (!found)
      error("invalid-value", field,
            yaml::shortText(field.value()) + " is not a wrap policy",
            didYouMean(
                text, {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}),
            fixSpelling(field, {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP",
                                "NO_WRAP"}));
  }
  if (!field || field.isNull())
    report(Severity::Note, "wraps-nothing", field,
           "no wrap policy: FSDP gathers the whole model at once",
           "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP");
  readWrapClasses();

  Field least = in(fsdp, "fsdp_min_num_params");
  setDefault(
      config.minNumParams, int64_t(100000000), least, "100000000",
      whyDefault(findKey("fsdp_config", "fsdp_min_num_params"), version));
  if (!least && before(1, 13) && *policy == WrapPolicy::Size)
    error("missing-key", least,
          "SIZE_BASED_WRAP without fsdp_min_num_params: accelerate " +
              toString(version) +
              " exports its default as 100000000.0, and every rank stops with "
              "a ValueError",
          "write fsdp_min_num_params: 100000000",
          fixSetting(fsdp, "fsdp_min_num_params", "100000000"));
  if (!least)
    return;
  if (config.assumed.wrapPolicy)
    return;
  popEffective();
  if (*policy != WrapPolicy::Size) {
    ignored(least, std::string("with wrap policy ") + toString(*policy), false,
            "", fixRemoval(least));
    return;
  }
  std::optional<int64_t> number = envInt(least.value());
  if (!number) {
    const yaml::Node &value = least.value();
    bool exponent = value.isString() && value.isPlain() &&
                    value.text.find_first_of("eE") != std::string::npos;
    error(least.isNull() ? "yaml-null"
          : exponent     ? "yaml-number"
                         : "invalid-value",
          least,
          "fsdp_min_num_params must be an integer, this is " +
              (exponent ? "the string '" + printable(value.text) + "' in YAML"
                        : yaml::shortText(value)) +
              "; every rank stops with a ValueError",
          exponent ? "write all digits, such as 100000000" : "",
          least.value().isString() ? fixNumber(least) : yaml::Edits());
    return;
  }
  written(config.minNumParams, *number, least, std::to_string(*number));
  if (*number <= 0)
    report(Severity::Warning, "wraps-nothing", least,
           "SIZE_BASED_WRAP with a minimum of " + std::to_string(*number) +
               " wraps nothing: the whole model is one unit",
           "write a positive number of parameters");
}

void AccelerateReader::readWrapClasses() {
  Field field = in(fsdp, "fsdp_transformer_layer_cls_to_wrap");
  auto &setting = config.wrapClasses;
  if (!field || field.isNull()) {
    setDefault(setting, {}, field, "the model's _no_split_modules",
               "Accelerate's default");
    return;
  }
  if (config.assumed.wrapPolicy)
    return;
  if (*config.wrapPolicy != WrapPolicy::Transformer) {
    ignored(field,
            std::string("with wrap policy ") + toString(*config.wrapPolicy),
            true, "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP");
    return;
  }
  const yaml::Node &value = field.value();
  std::vector<std::string> classes;
  std::string text = yaml::pythonText(value);
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    classes.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  std::string shown;
  for (const std::string &name : classes)
    shown += (shown.empty() ? "" : ",") + printable(name);
  written(setting, std::optional(classes), field, shown);
  auto strip = [](std::string_view s) {
    size_t begin = s.find_first_not_of(" \t\n\r"),
           end = s.find_last_not_of(" \t\n\r");
    return begin == s.npos ? std::string()
                           : std::string(s.substr(begin, end - begin + 1));
  };
  if (value.isSequence()) {
    std::string joined;
    bool names = !value.items.empty();
    for (const yaml::Node *item : value.items) {
      joined += (joined.empty() ? "" : ",") + printable(item->text);
      names &= item->isString() && item->text == strip(item->text) &&
               !item->text.empty() && item->text.find(',') == std::string::npos;
    }
    error("wrap-class-list", field,
          "a YAML list becomes the text \"" + printable(text) +
              "\", and no class has such a name",
          "write " + (joined.empty() ? "the names" : joined) +
              " as one string, without blanks",
          names ? fixText(field, joined) : yaml::Edits());
    return;
  }
  std::string stripped;
  bool blank = false, empty = false;
  for (const std::string &name : classes) {
    std::string s = strip(name);
    blank |= s != name && !s.empty();
    empty |= s.empty();
    if (!s.empty())
      stripped += (stripped.empty() ? "" : ",") + s;
  }
  if (empty)
    error("wrap-class-list", field,
          stripped.empty() ? "the class name is empty; every rank stops with "
                             "\"Could not find the transformer layer class\""
                           : "an empty class name after a comma; every rank "
                             "stops with \"Could not find the transformer "
                             "layer class\"",
          stripped.empty() ? "remove the line to wrap the model's own "
                             "_no_split_modules"
                           : "write " + printable(stripped),
          stripped.empty() ? fixRemoval(field) : fixText(field, stripped));
  else if (blank)
    error("wrap-class-list", field,
          "blanks around a class name are part of it; every rank stops with "
          "\"Could not find the transformer layer class\"",
          "write " + printable(stripped), fixText(field, stripped));
}

void AccelerateReader::readIgnoredModules() {
  Field field = in(fsdp, "fsdp_ignored_modules");
  auto &setting = config.ignoredModules;
  if (!field || field.isNull()) {
    setDefault(
        setting, std::string(), field, "none",
        whyDefault(findKey("fsdp_config", "fsdp_ignored_modules"), version));
    return;
  }
  std::string text = yaml::pythonText(field.value());
  if (*config.strategy == Strategy::Fsdp2 && torch < AccelerateVersion{2, 7}) {
    ignored(field, "with fsdp_version 2 before torch 2.7", true,
            "use torch 2.7 or later");
    return;
  }
  written(setting, text, field, printable(text));
  if (!field.value().isScalar()) {
    std::string joined;
    bool names = !field.value().items.empty();
    for (const yaml::Node *item : field.value().items) {
      joined += (joined.empty() ? "" : "|") + item->text;
      names &= item->isString() && !item->text.empty();
    }
    report(Severity::Warning, "regex-list", field,
           "a YAML list becomes the one regex \"" + printable(text) +
               "\", which matches no module",
           "write one regex: 'first|second'", false,
           names ? fixText(field, joined) : yaml::Edits());
    return;
  }
  if (text.size() > 2000) // the compiler of regexes recurses
    return notSupported(field, "a regex of more than 2000 bytes is not "
                               "supported yet");
  if (Regex::compile(text))
    return;
  error("invalid-regex", field, "\"" + printable(text) + "\" is not a regex");
}
