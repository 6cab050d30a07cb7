//===- LaunchArguments.cpp - The command line of accelerate launch --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// accelerate/commands/config/config_args.py (loading) and
// _validate_launch_command of accelerate/commands/launch.py (merging), of each
// release.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/LaunchArguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace accel;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static const char *typeName(yaml::Kind kind) {
  switch (kind) {
  case yaml::Kind::Null:
    return "NoneType";
  case yaml::Kind::Bool:
    return "bool";
  case yaml::Kind::Int:
    return "int";
  case yaml::Kind::Float:
    return "float";
  case yaml::Kind::String:
    return "str";
  case yaml::Kind::Sequence:
    return "list";
  case yaml::Kind::Mapping:
    return "dict";
  case yaml::Kind::Other:
    break;
  }
  return "object";
}

PythonValue PythonValue::of(const yaml::Node &node, std::string key) {
  PythonValue value;
  value.kind = node.kind;
  value.text = yaml::pythonText(node);
  value.node = &node;
  value.key = std::move(key);
  switch (node.kind) {
  case yaml::Kind::Null:
    break;
  case yaml::Kind::Bool:
    value.truth = node.boolean;
    value.number = node.boolean;
    break;
  case yaml::Kind::Int:
  case yaml::Kind::Float:
    value.truth = node.huge || node.number != 0;
    value.number = node.number;
    break;
  case yaml::Kind::String:
    value.truth = !node.text.empty();
    break;
  case yaml::Kind::Sequence:
    value.truth = !node.items.empty();
    break;
  case yaml::Kind::Mapping:
    value.truth = !node.entries.empty();
    break;
  case yaml::Kind::Other:
    value.truth = true;
    break;
  }
  return value;
}

PythonValue PythonValue::string(std::string text) {
  PythonValue value;
  value.kind = yaml::Kind::String;
  value.truth = !text.empty();
  value.text = std::move(text);
  return value;
}

PythonValue PythonValue::boolean(bool b) {
  PythonValue value;
  value.kind = yaml::Kind::Bool;
  value.text = b ? "True" : "False";
  value.truth = b;
  value.number = b;
  return value;
}

PythonValue PythonValue::integer(int64_t i) {
  PythonValue value;
  value.kind = yaml::Kind::Int;
  value.text = std::to_string(i);
  value.truth = i != 0;
  value.number = static_cast<double>(i);
  return value;
}

PythonValue PythonValue::ofDefault(const KeyInfo &key, const char *text) {
  std::string_view plain = text;
  if (plain.size() >= 2 && plain.front() == '\'')
    plain = plain.substr(1, plain.size() - 2);
  switch (key.type) {
  case ValueType::Integer: {
    // (argparse keeps the default 1e8 as the float that it is.)
    PythonValue value = integer(std::strtoll(text, nullptr, 10));
    value.text = text;
    return value;
  }
  case ValueType::Boolean: {
    // FSDP's are words on the command line, others are actions; argparse
    // itself converts the defaults of torchao's two.
    std::string_view name = key.name;
    if (std::string_view(key.section) == "fsdp_config")
      return string(std::string(plain));
    if (name == "fp8_enable_fsdp_float8_all_gather" ||
        name == "fp8_pad_inner_dim")
      return integer(plain == "true");
    return boolean(plain == "true");
  }
  case ValueType::Number: {
    PythonValue value = string(std::string(plain));
    value.kind = yaml::Kind::Float;
    value.number = std::strtod(text, nullptr);
    value.truth = value.number != 0;
    return value;
  }
  case ValueType::BoolTriple: {
    PythonValue value = string("(False, False, False)");
    value.kind = yaml::Kind::Sequence;
    value.truth = true;
    return value;
  }
  default:
    return string(std::string(plain));
  }
}

bool PythonValue::exceeds(double bound) const {
  if (!isNumber())
    throw LaunchRefusal{std::string("TypeError: '>' not supported between "
                                    "instances of '") +
                        typeName(kind) + "' and 'int'"};
  return number > bound;
}

std::string PythonValue::lower() const {
  if (!isString())
    throw LaunchRefusal{std::string("AttributeError: '") + typeName(kind) +
                        "' object has no attribute 'lower'"};
  return lowerCase(text);
}

int64_t PythonValue::toInt() const {
  if (isNumber() && std::abs(number) < 1e18)
    return static_cast<int64_t>(number);
  if (!isString())
    throw LaunchRefusal{std::string("TypeError: int() argument must be a "
                                    "string or a number, not '") +
                        typeName(kind) + "'"};
  int64_t result = 0;
  size_t begin = text.find_first_not_of(" \t\n\r\f\v");
  size_t end = text.find_last_not_of(" \t\n\r\f\v");
  bool good = begin != text.npos;
  if (good) {
    begin += text[begin] == '+';
    auto [stop, error] =
        std::from_chars(text.data() + begin, text.data() + end + 1, result);
    good = error == std::errc() && stop == text.data() + end + 1;
  }
  if (!good)
    throw LaunchRefusal{
        "ValueError: invalid literal for int() with base 10: '" + text + "'"};
  return result;
}

std::string accel::lowerCase(std::string text) {
  for (char &c : text)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::optional<bool> accel::stringToBool(std::string_view text) {
  std::string word = lowerCase(std::string(text));
  for (const char *yes : {"y", "yes", "t", "true", "on", "1"})
    if (word == yes)
      return true;
  for (const char *no : {"n", "no", "f", "false", "off", "0"})
    if (word == no)
      return false;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

LaunchArguments::LaunchArguments(const yaml::Node &root,
                                 AccelerateVersion version,
                                 const std::string &prefix,
                                 const std::vector<std::string> &foreign)
    : root(root), version(version), prefix(prefix), foreign(foreign) {
  load();
  selectLauncher();
  checkGpuIds();
  merge();
  finish();
}

const PythonValue &LaunchArguments::operator[](std::string_view name) const {
  static const PythonValue none;
  auto at = values.find(name);
  return at == values.end() ? none : at->second;
}

void LaunchArguments::loadKey(const yaml::Entry &entry) {
  const yaml::Node &key = *entry.key;
  if (!key.isString())
    throw LaunchRefusal{"TypeError: keys must be strings"};
  if (std::find(foreign.begin(), foreign.end(), key.text) != foreign.end())
    return;
  const char *section = sagemaker ? sagemakerSection : "";
  const KeyInfo *info = findKey(section, key.text);
  // Before 0.17 dynamo_backend is a field, since then it becomes a section.
  if (!info || !info->in(version))
    throw LaunchRefusal{
        before(0, 23) ? "TypeError: __init__() got an unexpected keyword "
                        "argument '" +
                            key.text + "'"
                      : "ValueError: The config file had unknown keys (['" +
                            key.text + "'])"};
  loaded[key.text] = PythonValue::of(*entry.value, prefix + key.text);
}

void LaunchArguments::load() {
  const yaml::Node *environment = root.find("compute_environment");
  if (environment && environment->isString() &&
      environment->text != "LOCAL_MACHINE") {
    if (environment->text != "AMAZON_SAGEMAKER")
      throw LaunchRefusal{"ValueError: '" + environment->text +
                          "' is not a valid ComputeEnvironment"};
    sagemaker = true;
  } else if (environment && !environment->isString()) {
    throw LaunchRefusal{"TypeError: compute_environment is no string"};
  }
  for (const yaml::Entry &entry : root.entries)
    loadKey(entry);
  if (!loaded.count("distributed_type"))
    throw LaunchRefusal{before(0, 34)
                            ? "TypeError: missing 1 required positional "
                              "argument: 'distributed_type'"
                            : "ValueError: A `distributed_type` must be "
                              "specified in the config file."};
  if (sagemaker)
    for (const char *name : {"ec2_instance_type", "iam_role_name", "image_uri"})
      if (!loaded.count(name) &&
          (before(0, 17) || std::string_view(name) != "image_uri"))
        throw LaunchRefusal{"TypeError: missing required argument: '" +
                            std::string(name) + "'"};

  const PythonValue &type = loaded["distributed_type"];
  if (type.isString()) {
    distributedType = type.text;
    const KeyInfo *info =
        findKey(sagemaker ? sagemakerSection : "", "distributed_type");
    std::vector<std::string> known = valuesOf(*info->choices, version);
    if (std::find(known.begin(), known.end(), distributedType) == known.end())
      throw LaunchRefusal{
          "ValueError: '" + distributedType + "' is not a valid " +
          (sagemaker ? "SageMakerDistributedType" : "DistributedType")};
  }
  loadDefaults();
}

void LaunchArguments::loadDefaults() {
  if (!sagemaker && !loaded.count("num_processes")) {
    if (before(0, 34))
      throw LaunchRefusal{"TypeError: missing 1 required positional argument: "
                          "'num_processes'"};
    loaded["num_processes"] =
        PythonValue::integer(distributedType == "NO" ? 1 : -1);
  }
  if (auto old = loaded.find("fp16"); old != loaded.end()) {
    if (!loaded.count("mixed_precision") && old->second.truth) {
      PythonValue value = PythonValue::string("fp16");
      value.node = old->second.node;
      value.key = old->second.key;
      loaded["mixed_precision"] = value;
    }
    loaded.erase(old);
  }
  if (!loaded.count("mixed_precision") && before(0, 16))
    loaded["mixed_precision"] = PythonValue::string("no");
  // YAML's `no`, forgiven for some releases.
  if (PythonValue &precision = loaded["mixed_precision"];
      precision.kind == yaml::Kind::Bool && !precision.truth &&
      !before(0, 19) && before(0, 34)) {
    PythonValue value = PythonValue::string("no");
    value.node = precision.node;
    value.key = precision.key;
    precision = value;
  }
  for (const KeyInfo &key : keysIn(sagemaker ? sagemakerSection : "")) {
    const DefaultValue *byDefault = key.defaultIn(version);
    if (key.rules.instead || !key.in(version) || loaded.count(key.name) ||
        !byDefault || byDefault->owner != DefaultOwner::Loader)
      continue;
    loaded[key.name] = PythonValue::ofDefault(key, byDefault->value);
  }
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

void LaunchArguments::selectLauncher() {
  // The launcher's own defaults first: what the command line would hold.
  for (const KeyInfo &key : allKeys()) {
    const DefaultValue *byDefault = key.defaultIn(version);
    std::string_view section = key.section;
    if (section == "" || section == sagemakerSection || !key.in(version) ||
        !byDefault || byDefault->owner != DefaultOwner::Launcher)
      continue;
    // These two defaults are given further on, where they are missing.
    std::string_view name = key.name;
    if (name == "dynamo_backend" || name == "deepspeed_multinode_launcher")
      continue;
    values[key.name] = PythonValue::ofDefault(key, byDefault->value);
  }
  for (const char *name : {"debug", "same_network", "enable_cpu_affinity",
                           "tpu_use_sudo", "downcast_bf16"})
    values[name] = PythonValue::boolean(false);
  if (!before(0, 20))
    values["rdzv_backend"] = PythonValue::string("static");

  if (sagemaker)
    return;
  auto choose = [&](const char *flag, const char *type) {
    values[flag] = PythonValue::boolean(distributedType == type);
  };
  choose("use_deepspeed", "DEEPSPEED");
  choose("use_fsdp", "FSDP");
  choose("use_megatron_lm", "MEGATRON_LM");
  if (before(1, 7)) // (the type outlived its launcher by three releases)
    choose("use_tp", "TP");
  choose("tpu", before(0, 28) ? "TPU" : "XLA");
  choose("mps", "MPS");
  bool multi = distributedType == "MULTI_GPU" ||
               (!before(0, 21) && distributedType.starts_with("MULTI_") &&
                distributedType != "MULTI_CPU");
  values["multi_gpu"] = PythonValue::boolean(multi);
  if (version == AccelerateVersion{0, 17} && flag("tpu"))
    throw LaunchRefusal{"AttributeError: 'ClusterConfig' object has no "
                        "attribute 'tpu_cluster'"};
  if (const yaml::Node *mesh = root.find("parallelism_config"))
    values["use_parallelism_config"] = PythonValue::boolean(
        !mesh->isNull() && !(mesh->isMapping() && mesh->entries.empty()));
}

void LaunchArguments::checkGpuIds() {
  if (before(0, 13) || flag("mps"))
    return;
  if (sagemaker && before(0, 14))
    throw LaunchRefusal{"AttributeError: 'SageMakerConfig' object has no "
                        "attribute 'gpu_ids'"};
  const PythonValue &ids = loaded["gpu_ids"];
  values["gpu_ids"] = ids.isNone() ? PythonValue::string("all") : ids;
  if (!before(1, 10) && sagemaker)
    throw LaunchRefusal{"AttributeError: 'SageMakerConfig' object has no "
                        "attribute 'parallelism_config'"};
  if (!ids.isNone() && !ids.isString())
    throw LaunchRefusal{"AttributeError: '" + std::string(typeName(ids.kind)) +
                        "' object has no attribute 'split'"};
  const std::string &text = values["gpu_ids"].text;
  bool few = text.find(',') == text.npos && text != "all" && flag("multi_gpu");
  if (!few)
    return;
  if (before(0, 17)) {
    values["multi_gpu"] = PythonValue::boolean(false);
    return;
  }
  if (version == AccelerateVersion{0, 17})
    throw LaunchRefusal{"TypeError: '<=' not supported between instances of "
                        "'NoneType' and 'int'"};
  if (!loaded["num_machines"].exceeds(1))
    throw LaunchRefusal{"ValueError: Less than two GPU ids were configured and "
                        "tried to run on multiple GPUs."};
}

void LaunchArguments::mergeSection(const std::string &name,
                                   const yaml::Node &section) {
  if (section.isNull())
    return;
  if (!section.isMapping()) {
    // Before 1.5 launch walks over it, later it is an attribute like others.
    bool empty = section.isScalar() ? section.isString() && section.text.empty()
                                    : section.items.empty();
    if (before(1, 5) && !empty)
      throw LaunchRefusal{"TypeError: " + name + " is not a mapping"};
    if (name == "deepspeed_config" && flag("use_deepspeed"))
      throw LaunchRefusal{std::string("AttributeError: '") +
                          typeName(section.kind) +
                          "' object has no attribute 'keys'"};
    values[name] = PythonValue::of(section, prefix + name);
    return;
  }
  for (const yaml::Entry &entry : section.entries) {
    const yaml::Node &key = *entry.key;
    if (!key.isString())
      throw LaunchRefusal{"AttributeError: a key of " + name +
                          " is not a string"};
    std::string attribute = canonicalKey(name, key.text, version);
    if (name == "deepspeed_config" && before(0, 16)) {
      const KeyInfo *info = findKey(name, attribute);
      if (!info || !info->in(version))
        throw LaunchRefusal{"AttributeError: 'Namespace' object has no "
                            "attribute '" +
                            attribute + "'"};
    }
    values[attribute] =
        PythonValue::of(*entry.value, prefix + name + "." + key.text);
    if (name == "deepspeed_config")
      deepspeedFields += (deepspeedFields.empty() ? "" : ",") + key.text;
  }
}

void LaunchArguments::merge() {
  if (sagemaker)
    return;
  for (const auto &[name, value] : loaded) {
    const KeyInfo *info = findKey("", name);
    bool apart = name == "compute_environment" || name == "mixed_precision" ||
                 name == "distributed_type" || name == "dynamo_backend";
    if (apart || (info && info->type == ValueType::Mapping))
      continue;
    if (value.kind == yaml::Kind::Mapping) {
      // Whatever is a dict is taken for a section.
      mergeSection(name, *value.node);
      if (name == "use_cpu")
        throw LaunchRefusal{"AttributeError: 'Namespace' object has no "
                            "attribute 'use_cpu'"};
      continue;
    }
    if ((*this)[name].isNone())
      values[name] = value;
  }
  for (const KeyInfo &key : keysIn(""))
    if (key.type == ValueType::Mapping && key.readIn(version))
      if (const yaml::Node *section = root.find(key.name)) {
        // The old key replaces the section.
        if (std::string_view(key.name) == "dynamo_config" &&
            loaded.count("dynamo_backend"))
          continue;
        mergeSection(key.name, *section);
      }
  // Not merged yet in these releases, but an attribute like any other.
  for (const KeyInfo &key : keysIn(""))
    if (key.type == ValueType::Mapping && key.in(version) &&
        !key.readIn(version))
      if (const yaml::Node *section = root.find(key.name);
          section && !section->isMapping() && !section->isNull())
        values[key.name] = PythonValue::of(*section, prefix + key.name);
  auto backend = loaded.find("dynamo_backend");
  if (backend == loaded.end())
    return;
  if (before(0, 17)) {
    const EnumInfo &known = *findKey("", "dynamo_backend")->choices;
    PythonValue &value = backend->second;
    std::vector<std::string> names = valuesOf(known, version);
    if (value.isString()) {
      std::string upper = value.text;
      for (char &c : upper)
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      if (std::find(names.begin(), names.end(), upper) == names.end())
        throw LaunchRefusal{"ValueError: '" + upper +
                            "' is not a valid DynamoBackend"};
    }
    values["dynamo_backend"] = value;
  } else if (!(backend->second.isString() && backend->second.text == "NO")) {
    values["dynamo_backend"] = backend->second;
  }
}

void LaunchArguments::finish() {
  if (!flag("debug") && loaded.count("debug"))
    values["debug"] = loaded["debug"];
  if (!flag("mixed_precision")) {
    const PythonValue &asked = loaded["mixed_precision"];
    if (asked.isNone() && !before(0, 16)) {
      values["mixed_precision"] = PythonValue::string("no");
    } else {
      values["mixed_precision"] = asked;
      if (before(0, 16) && asked.isNone())
        throw LaunchRefusal{"AttributeError: 'NoneType' object has no "
                            "attribute 'lower'"};
      deepspeedFields +=
          (deepspeedFields.empty() ? "" : ",") + std::string("mixed_precision");
    }
  }
  if ((*this)["dynamo_backend"].isNone())
    values["dynamo_backend"] = PythonValue::string("no");
  const PythonValue &processes = (*this)["num_processes"];
  if (!before(0, 34) && !sagemaker && processes.isNumber() &&
      processes.number == -1)
    throw LaunchRefusal{"ValueError: You need to manually pass in "
                        "`--num_processes` using this config yaml."};
  if (!sagemaker)
    checkThreads();
}

/// What launch calculates for OMP_NUM_THREADS may fail on the way.
void LaunchArguments::checkThreads() {
  if (before(0, 14) || !flag("use_cpu"))
    return;
  const PythonValue &processes = (*this)["num_processes"];
  bool several = processes.exceeds(before(0, 19) ? 1 : 0.999);
  if (!several || before(0, 34))
    return;
  const PythonValue &machines = (*this)["num_machines"];
  if (!machines.isNumber())
    throw LaunchRefusal{"TypeError: unsupported operand type(s) for /"};
  if (machines.number == 0)
    throw LaunchRefusal{"ZeroDivisionError: division by zero"};
}
