//===- ReadSections.cpp - Typed values of the other sections --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// As the plugins of accelerate/utils/dataclasses.py read what launch exports:
// numbers by int() and float(), booleans by str_to_bool.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/LaunchArguments.h"
#include "frontends/Accelerate/ReadValues.h"

using namespace accel;

const char *accel::toString(OffloadDevice device) {
  constexpr const char *names[] = {"none", "cpu", "nvme"};
  return names[static_cast<int>(device)];
}

void AccelerateReader::quietlyIgnored(const Field &field,
                                      const std::string &why) {
  EffectiveValue v;
  v.key = field.key;
  v.asked = yaml::shortText(field.value());
  v.effective = "(ignored)";
  v.why = why;
  v.origin = Origin::Written;
  v.ignored = true;
  v.at = locate(field);
  config.effective.push_back(std::move(v));
}

void AccelerateReader::unusedKeys(const Section &section,
                                  const std::string &why) {
  for (const auto &[name, entry] : section.keys)
    if (const KeyInfo *info = findKey(section.name, name);
        info && info->in(version) && !info->rules.instead)
      quietlyIgnored({entry, prefix + section.name + "." + entry->key->text},
                     why);
}

Section AccelerateReader::topAsSection(const char *table) const {
  Section result;
  result.name = table;
  for (const yaml::Entry &entry : root.entries)
    if (entry.key->isString())
      result.keys.emplace_back(entry.key->text, &entry);
  return result;
}

void AccelerateReader::text(Setting<std::string> &setting,
                            const Section &section, const char *name) {
  typed(
      setting, section, name,
      [](const std::string &s) { return std::optional(s); },
      [](const std::string &s) { return s.empty() ? "unset" : printable(s); });
}

void AccelerateReader::boolean(Setting<bool> &setting, const Section &section,
                               const char *name) {
  typed(
      setting, section, name,
      [](const std::string &s) { return stringToBool(s); }, showBool);
}

void AccelerateReader::integer(Setting<int64_t> &setting,
                               const Section &section, const char *name) {
  typed(setting, section, name, parseInteger, showInteger);
}

void AccelerateReader::readFp8Values(const Section &s) {
  Fp8Settings &f = config.fp8.emplace();
  typed(
      f.backend, s, "fp8_backend",
      [](const std::string &t) { return std::optional(upperCase(t)); },
      [](const std::string &t) {
        return t.empty() ? "the first that is installed" : printable(t);
      });
  boolean(f.autocastDuringEval, s, "fp8_use_autocast_during_eval");
  boolean(f.mxfp8BlockScaling, s, "fp8_use_mxfp8_block_scaling");
  integer(f.margin, s, "fp8_margin");
  integer(f.interval, s, "fp8_interval");
  integer(f.amaxHistory, s, "fp8_amax_history_len");
  text(f.format, s, "fp8_format");
  text(f.amaxAlgorithm, s, "fp8_amax_compute_algo");
  text(f.optLevel, s, "fp8_opt_level");
  boolean(f.float8AllGather, s, "fp8_enable_fsdp_float8_all_gather");
  boolean(f.padInnerDim, s, "fp8_pad_inner_dim");
  // Three items of a list, or three characters of a string.
  Field field = in(s, "fp8_override_linear_precision");
  std::vector<bool> flags(3, false);
  if (field && field.value().isSequence() && field.value().items.size() >= 3)
    for (int i = 0; i < 3; ++i)
      flags[i] = stringToBool(yaml::pythonText(*field.value().items[i]))
                     .value_or(false);
  else if (field && field.value().isString() && field.value().text.size() >= 3)
    for (int i = 0; i < 3; ++i)
      flags[i] = stringToBool(field.value().text.substr(i, 1)).value_or(false);
  std::string shown;
  for (bool flag : flags)
    shown += (shown.empty() ? "" : ", ") + showBool(flag);
  if (field)
    written(f.overrides, flags, field, shown);
  else
    setDefault(
        f.overrides, flags, field, shown,
        whyDefault(findKey(s.name, "fp8_override_linear_precision"), version));
}

void AccelerateReader::readDynamoValues(const Section &s) {
  DynamoSettings &d = config.dynamo;
  Field old = top("dynamo_backend");
  auto upper = [](const std::string &t) { return std::optional(upperCase(t)); };
  auto same = [](const std::string &t) { return printable(t); };
  if (old) // replaces the section
    written(d.backend, upperCase(yaml::pythonText(old.value())), old,
            upperCase(yaml::pythonText(old.value())));
  else
    typed(d.backend, s, "dynamo_backend", upper, same);
  if (d.backend->empty())
    d.backend.value = "NO";
  // What is not compiled, or replaced by the old key, says nothing.
  if (!d.compiles() || old)
    for (const auto &[name, entry] : s.keys)
      if ((old || name != "dynamo_backend") && findKey(s.name, name))
        quietlyIgnored({entry, prefix + s.name + "." + entry->key->text},
                       old ? "dynamo_backend at the top level replaces it"
                           : "the model is not compiled");
  if (!d.compiles())
    return;
  Section none;
  none.name = s.name;
  const Section &used = old ? none : s;
  text(d.mode, used, "dynamo_mode");
  boolean(d.fullGraph, used, "dynamo_use_fullgraph");
  boolean(d.dynamic, used, "dynamo_use_dynamic");
  boolean(d.regional, used, "dynamo_use_regional_compilation");
  checkFullGraph(in(used, "dynamo_use_fullgraph"));
}

/// A layer that is compiled by itself has its wrapper's hooks outside.
void AccelerateReader::checkFullGraph(const Field &field) {
  const DynamoSettings &d = config.dynamo;
  const Strategy strategy = *config.strategy;
  if (!*d.fullGraph || *d.regional ||
      (strategy != Strategy::Ddp && strategy != Strategy::Fsdp1 &&
       strategy != Strategy::Fsdp2))
    return;
  const std::string ends =
      strategy == Strategy::Ddp     ? "DDP's reducer ends the graph"
      : strategy == Strategy::Fsdp1 ? "FSDP1 ends the graph at each unit"
                                    : "FSDP2's hooks end the graph at each "
                                      "unit";
  error("graph-ends", field,
        ends + ", and dynamo_use_fullgraph refuses that: the first step stops "
               "with torch._dynamo.exc.Unsupported",
        "write dynamo_use_fullgraph: false, or "
        "dynamo_use_regional_compilation: true, which compiles each layer by "
        "itself");
}

void AccelerateReader::readTpu() {
  TpuSettings &t = config.tpu.emplace();
  Section s = topAsSection("");
  text(t.name, s, "tpu_name");
  text(t.zone, s, "tpu_zone");
  text(t.trainingFunction, s, "main_training_function");
  boolean(t.cluster, s, "tpu_use_cluster");
  boolean(t.sudo, s, "tpu_use_sudo");
  boolean(t.downcastBf16, s, "downcast_bf16");
}

void AccelerateReader::readSagemaker() {
  SagemakerSettings &m = config.sagemaker.emplace();
  Section s = topAsSection(sagemakerSection);
  text(m.instanceType, s, "ec2_instance_type");
  text(m.role, s, "iam_role_name");
  text(m.image, s, "image_uri");
  text(m.profile, s, "profile");
  text(m.region, s, "region");
  text(m.jobName, s, "base_job_name");
  text(m.pytorch, s, "pytorch_version");
  text(m.transformers, s, "transformers_version");
  text(m.python, s, "py_version");
  text(m.distributedType, s, "distributed_type");
}
