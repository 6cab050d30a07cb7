//===- AccelerateMapping.cpp - Keys that scripts set ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/AccelerateMapping.h"

#include "frontends/Accelerate/KeyTable.h"

#include <algorithm>

namespace accel::scripts {

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

void AccelerateMapping::addFlags(const GivenArguments &flags,
                                 DiagnosticEngine &engine) {
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
