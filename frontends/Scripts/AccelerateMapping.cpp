//===- AccelerateMapping.cpp - Keys that scripts set ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/AccelerateMapping.h"

#include "frontends/Accelerate/KeyTable.h"

#include <algorithm>

namespace accel::scripts {

static constexpr const char *parallelismSection = "parallelism_config";

void AccelerateMapping::start(const yaml::Node &root, const std::string &file) {
  const yaml::Node *copy = nodes.copy(root, file);
  root_ = *copy;
}

yaml::Node *AccelerateMapping::section(const std::string &name,
                                       const yaml::Node *place) {
  if (name.empty())
    return &root_;
  for (yaml::Entry &entry : root_.entries)
    if (entry.key->text == name && entry.value->isMapping()) {
      // Nodes of the store are this mapping's own.
      return const_cast<yaml::Node *>(entry.value);
    }
  if (!place)
    return nullptr;
  yaml::Node *made =
      nodes.make(place->source ? *place->source : "", place->range);
  made->kind = yaml::Kind::Mapping;
  nodes.set(root_, name, made);
  return made;
}

void AccelerateMapping::remove(const std::string &name,
                               const std::string &key) {
  yaml::Node *from = key.empty() ? &root_ : section(name, nullptr);
  if (!from)
    return;
  const std::string wanted = key.empty() ? name : key;
  auto same = [&](const yaml::Entry &entry) {
    return key.empty() ? entry.key->text == wanted
                       : canonicalKey(name, entry.key->text) ==
                             canonicalKey(name, wanted);
  };
  from->entries.erase(
      std::remove_if(from->entries.begin(), from->entries.end(), same),
      from->entries.end());
}

const yaml::Node *AccelerateMapping::find(const std::string &name,
                                          const std::string &key) const {
  const yaml::Node *from = name.empty() ? &root_ : root_.find(name);
  if (!from || !from->isMapping())
    return nullptr;
  for (const yaml::Entry &entry : from->entries)
    if (canonicalKey(name, entry.key->text) == canonicalKey(name, key))
      return entry.value;
  return nullptr;
}

void AccelerateMapping::set(const std::string &name, const std::string &key,
                            const yaml::Node *value) {
  yaml::Node *into = section(name, value);
  if (!name.empty())
    remove(name, key);
  nodes.set(*into, key, value);
}

std::string AccelerateMapping::type() const {
  const yaml::Node *node = find("", "distributed_type");
  return node ? node->text : "";
}

/// Whether launch hands a mesh on (args.use_parallelism_config): a flag that
/// names the launcher has it look at its own alone, not at the file's section.
bool AccelerateMapping::readsParallelism(const GivenArguments &flags,
                                         DiagnosticEngine &engine) {
  auto isOn = [&](const char *name) {
    const Given *given = flags.find(name);
    return given && given->value->boolean;
  };
  const bool asked = isOn("use_parallelism_config");
  if (asked && !isOn("use_fsdp"))
    report(engine, Severity::Error, "launch-stops",
           *flags.find("use_parallelism_config"),
           "accelerate launch stops with a ValueError: "
           "--use_parallelism_config is given without --use_fsdp",
           "write parallelism_config into the file, or add --use_fsdp "
           "--fsdp_version 2");
  for (const char *launcher : {"multi_gpu", "tpu", "tpu_use_cluster",
                               "use_deepspeed", "use_fsdp", "use_megatron_lm"})
    if (isOn(launcher))
      return asked;
  const yaml::Node *own = root_.find(parallelismSection);
  return asked || (own && own->isMapping() && !own->entries.empty());
}

void AccelerateMapping::addFlags(const GivenArguments &flags,
                                 DiagnosticEngine &engine) {
  // _validate_launch_command of accelerate/commands/launch.py.
  const Given *first = nullptr;
  for (const char *flag :
       {"cpu", "multi_gpu", "tpu", "use_deepspeed", "use_fsdp"})
    if (const Given *given = flags.find(flag); given && given->value->boolean) {
      if (first)
        return report(engine, Severity::Error, "launch-stops", *given,
                      "accelerate launch stops with a ValueError: " +
                          given->written + " is given beside " + first->written,
                      "keep one of --cpu, --multi_gpu, --tpu, --use_deepspeed "
                      "and --use_fsdp");
      first = given;
    }
  const Given *several = flags.find("multi_gpu");
  const Given *count = flags.find("num_processes");
  if (several && several->value->boolean && count &&
      count->value->kind == yaml::Kind::Int && count->value->integer < 2)
    return report(engine, Severity::Error, "launch-stops", *count,
                  "accelerate launch stops with a ValueError: --multi_gpu is "
                  "of at least 2 processes",
                  "leave --multi_gpu out");
  const bool hasMesh = readsParallelism(flags, engine);
  // The paradigm: one flag instead of distributed_type.
  constexpr std::pair<const char *, const char *> paradigms[] = {
      {"use_deepspeed", "DEEPSPEED"},
      {"use_fsdp", "FSDP"},
      {"use_megatron_lm", "MEGATRON_LM"},
      {"tpu", "XLA"},
      {"multi_gpu", "MULTI_GPU"}};
  for (const auto &[flag, type] : paradigms)
    if (const Given *given = flags.find(flag))
      set("", "distributed_type",
          nodes.text(given->file, given->value->range, type));
  for (const auto &[name, given] : flags.all()) {
    const KeyInfo *top = findKey("", name);
    if (top) {
      set("", name, given.value);
      continue;
    }
    const KeyInfo *key = findInSections(name, newestAccelerate);
    if (!key)
      continue; // how processes are started, or what they print
    if (!hasMesh && key->section == std::string_view(parallelismSection)) {
      report(engine, Severity::Warning, "ignored-key", given,
             given.written + " has no effect: accelerate launch reads it where "
                             "the file it takes has parallelism_config, or "
                             "beside --use_fsdp --use_parallelism_config",
             "write parallelism_config into the file");
      continue;
    }
    const yaml::Node *value = given.value;
    // Text that stands for a truth value or a number.
    if (value->isString() && key->type != ValueType::String)
      value = nodes.plain(given.file, value->range, value->text);
    set(key->section, key->name, value);
  }
  if (const Given *given = flags.find("cpu"); given && given->value->boolean)
    startOnCpu(*given, engine);
}

/// With --cpu launch_command takes the simple launcher whatever the file says
/// (accelerate/commands/launch.py): one process, unless mpirun starts more.
void AccelerateMapping::startOnCpu(const Given &flag,
                                   DiagnosticEngine &engine) {
  const yaml::Range &place = flag.value->range;
  const std::string before = type();
  const yaml::Node *count = find("", "num_processes");
  set("", "use_cpu", flag.value);
  if (before == "MULTI_CPU")
    return;
  const yaml::Node *hostfile = find("mpirun_config", "mpirun_hostfile");
  const bool several = hostfile && !hostfile->isNull();
  const bool fewer =
      !several && count && count->kind == yaml::Kind::Int && count->integer > 1;
  if (fewer || (!before.empty() && before != "NO")) {
    Diagnostic d;
    d.severity = Severity::Warning;
    d.code = "process-count";
    d.file = flag.file;
    d.setRange(place);
    d.message = std::string("--cpu starts ") +
                (several ? "the processes of mpirun, joined by DDP"
                         : "one process on the CPU") +
                ", whatever " +
                (before.empty()
                     ? "--num_processes says"
                     : "distributed_type " + printable(before) + " asks for");
    d.hint = std::string("leave --cpu out for a job on GPUs") +
             (several ? ""
                      : "; on CPUs mpirun starts several processes, with "
                        "distributed_type: MULTI_CPU");
    engine.report(std::move(d));
  }
  // What no launcher hands on.
  for (const char *unread : {"fsdp_config", "deepspeed_config",
                             "megatron_lm_config", "parallelism_config"})
    remove(unread);
  set("", "distributed_type",
      nodes.text(flag.file, place, several ? "MULTI_CPU" : "NO"));
  if (!several)
    set("", "num_processes", nodes.integer(flag.file, place, 1));
}

} // namespace accel::scripts
