//===- Launch.cpp - Top-level keys ----------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What load_config_from_file, _validate_launch_command and the launchers of
// accelerate/commands/launch.py and accelerate/utils/launch.py do with them.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"

#include <algorithm>

using namespace accel;

void AccelerateReader::checkTopLevelKeys() {
  // Which keys there are depends on the environment, if that is known.
  const yaml::Node *environment = root.find("compute_environment");
  const bool local = !environment || environment->text == "LOCAL_MACHINE";
  for (const yaml::Entry &entry : root.entries) {
    const yaml::Node &key = *entry.key;
    if (key.isString() &&
        std::find(foreign.begin(), foreign.end(), key.text) != foreign.end())
      continue;
    const KeyInfo *info = key.isString() ? findKey("", key.text) : nullptr;
    if (!info || !info->in(version))
      unknownTopLevel(entry, local);
  }
}

void AccelerateReader::unknownTopLevel(const yaml::Entry &entry, bool local) {
  const yaml::Node &key = *entry.key;
  Field field{&entry, prefix + printable(key.text, 200)};
  std::string name = printable(key.text);
  if (!key.isString()) {
    report(Severity::Error, "invalid-key", field,
           "keys must be strings, this is " +
               std::string(yaml::describe(key.kind)),
           "", true);
    return;
  }
  if (!local && findKey(sagemakerSection, key.text))
    return;
  std::string message = "unknown key '" + name + "'", hint;
  yaml::Edits fix;
  if (const KeyInfo *old = findKey("", key.text)) {
    message = "key '" + name + "' ";
    message += version < old->since ? "exists only since accelerate "
                                    : "was removed in accelerate ";
    AccelerateVersion v = version < old->since ? old->since : old->until;
    message += toString(v);
    hint = "remove it: `accelerate launch` refuses the file";
    fix = fixRemoval(field);
  } else if (const KeyInfo *nested = findInSections(key.text, version)) {
    hint = "it belongs below '" + std::string(nested->section) +
           ":', indented; `accelerate launch` refuses the file as it is";
    fix = fixMove(field, nested->section, key.text);
  } else {
    if (topLevelNames.empty()) {
      topLevelNames = keysOf("", version);
      topLevelNames.insert(topLevelNames.end(), foreign.begin(), foreign.end());
    }
    std::string best = nearest(key.text, topLevelNames);
    hint = best.empty() ? "remove it: `accelerate launch` refuses the file"
                        : "did you mean '" + best + "'?";
    fix = fixName(field, root, best);
    if (const KeyInfo *meant = nearestInSections(key.text, version);
        meant && best.empty())
      hint = "did you mean '" + std::string(meant->name) + "', below '" +
             meant->section + ":'?";
  }
  report(Severity::Error, "unknown-key", field, message, hint, true,
         std::move(fix));
}

bool AccelerateReader::readEnvironment() {
  Field field = top("compute_environment");
  if (!field)
    return true;
  const std::string &text = field.value().text;
  if (field.value().isString() && text == "LOCAL_MACHINE")
    return true;
  if (field.value().isString() && text == "AMAZON_SAGEMAKER") {
    if (before(1, 10)) {
      readSagemaker();
      return true;
    }
    refuseSagemaker(field);
    return false;
  }
  error("invalid-value", field,
        "compute_environment is " + yaml::shortText(field.value()) +
            ", which is not a known environment",
        nearest(text, {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"}).empty()
            ? "write LOCAL_MACHINE"
            : didYouMean(text, {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"}),
        fixSpelling(field, {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"}));
  return false;
}

void AccelerateReader::readDistributedType() {
  constexpr int count = static_cast<int>(DistributedType::MegatronLm) + 1;
  Field field = top("distributed_type");
  auto &setting = config.distributedType;
  if (!field) {
    error("missing-key", field, "distributed_type is missing",
          "add a line such as `distributed_type: FSDP`");
    unrecoverable = true;
    return;
  }
  const yaml::Node &value = field.value();
  if (value.kind == yaml::Kind::Bool && !value.boolean) {
    report(Severity::Warning, "yaml-boolean", field,
           "unquoted " + value.text +
               " is the boolean false in YAML, not a distributed_type",
           "write 'NO' in quotes", false, fixText(field, "NO"));
    written(setting, DistributedType::No, field, "NO",
            "false is no distributed type, so the job is not distributed");
    return;
  }
  if (!value.isString()) {
    report(Severity::Warning, "invalid-value", field,
           "distributed_type is " + yaml::shortText(value) +
               "; Accelerate runs this as one plain process",
           "write 'NO' in quotes if that is meant");
    written(setting, DistributedType::No, field, "NO",
            "not a string, so the job is not distributed");
    return;
  }
  const EnumInfo &types = *findKey("", "distributed_type")->choices;
  std::vector<std::string> names = valuesOf(types, version);
  bool known = std::find(names.begin(), names.end(), value.text) != names.end();
  for (int i = 0; i < count && known; ++i)
    if (value.text == toString(static_cast<DistributedType>(i)))
      return written(setting, static_cast<DistributedType>(i), field,
                     value.text);
  if (known) {
    // Types that are gone: TPU was XLA, MPS one process, TP its own launcher.
    DistributedType type = value.text == "TPU"   ? DistributedType::Xla
                           : value.text == "MPS" ? DistributedType::No
                                                 : DistributedType::Tp;
    return written(setting, type, field, value.text);
  }
  std::string hint = didYouMean(value.text, names);
  yaml::Edits fix = fixSpelling(field, names);
  for (const EnumValue &old : types.values)
    if (value.text == old.value)
      hint = value.text +
             (version < old.since
                  ? " exists since accelerate " + toString(old.since)
                  : " was removed in accelerate " + toString(old.until));
  if (value.text == "TPU") {
    hint = "TPU became XLA in accelerate 0.28";
    fix = fixText(field, "XLA");
  } else if (value.text == "MPS") {
    hint = "MPS was removed in accelerate 0.20: write 'NO'";
    fix = fixText(field, "NO");
  }
  if (value.text == "TP" && !before(1, 10)) {
    hint = "TP was removed in accelerate 1.10: write FSDP and a "
           "parallelism_config with tp_size";
    fix.clear();
  }
  error("invalid-value", field,
        yaml::shortText(value) + " is not a valid distributed_type", hint,
        std::move(fix));
  unrecoverable = true;
}

void AccelerateReader::readProcesses() {
  DistributedType type = *config.distributedType;
  bool simple =
      type == DistributedType::No || type == DistributedType::MultiCpu;

  Field machines = top("num_machines");
  setDefault(config.numMachines, int64_t(1), machines, "1",
             whyDefault(findKey("", "num_machines"), version));
  if (machines) {
    popEffective();
    const yaml::Node &value = machines.value();
    bool good = value.kind == yaml::Kind::Int && !value.huge &&
                value.integer >= 1 && value.integer <= 1 << 20;
    if (good)
      written(config.numMachines, value.integer, machines,
              std::to_string(value.integer));
    else
      error("invalid-value", machines,
            "num_machines must be a positive integer, this is " +
                yaml::shortText(value),
            envInt(value) && value.isString() ? "remove the quotes" : "",
            value.isString() ? fixNumber(machines) : yaml::Edits());
    config.assumed.numMachines = !good;
  }

  Field field = top("num_processes");
  auto &setting = config.numProcesses;
  if (!field ||
      (field.value().kind == yaml::Kind::Int && field.value().integer == -1)) {
    const Field kind = top("distributed_type");
    if (!field && type == DistributedType::No && kind && !before(0, 34) &&
        kind.value().isString()) {
      setDefault(setting, int64_t(1), field, "1",
                 "one process, since distributed_type is NO");
      return;
    }
    if (!options.forPlanning) {
      // A template for jobs of any size.
      config.assumed.numProcesses = true;
      report(Severity::Note, "missing-key", field,
             "num_processes is missing, so `accelerate launch` wants it on the "
             "command line",
             "launch with --num_processes N, the total over all machines");
      return;
    }
    error("missing-key", field,
          "num_processes is missing; `accelerate launch` asks for it",
          "add `num_processes: N`, the total over all machines, or give "
          "--num-processes N");
    unrecoverable = true;
    return;
  }
  const yaml::Node &value = field.value();
  std::optional<int64_t> number = envInt(value);
  // The simple launcher starts one process, whatever number stands here.
  bool unused = value.isNull() || value.kind == yaml::Kind::Bool ||
                value.kind == yaml::Kind::Float ||
                (value.kind == yaml::Kind::Int && (!number || *number < 1));
  Field cpu = top("use_cpu");
  if (simple && unused && !(value.isNull() && cpu && truthy(cpu.value()))) {
    report(Severity::Warning, "process-count", field,
           "num_processes is " + yaml::shortText(value) +
               ", and one process starts",
           "write num_processes: 1", false, fixRaw(field, "1"));
    written(setting, int64_t(1), field, "1", "one process starts");
    return;
  }
  // Only several machines need arithmetic on it; torchrun takes a string.
  if (number && value.isString()) {
    bool fails = *config.numMachines > 1 || simple;
    report(fails ? Severity::Error : Severity::Warning, "quoted-number", field,
           "num_processes is a string" +
               std::string(fails ? ", which Accelerate cannot calculate with"
                                 : ""),
           "remove the quotes", false, fixNumber(field));
  }
  if (!number || *number < 1 || *number > 1 << 24) {
    error("invalid-value", field,
          "num_processes must be a positive integer, this is " +
              yaml::shortText(value));
    unrecoverable = true;
    return;
  }
  if (config.assumed.numMachines)
    return written(setting, *number, field, std::to_string(*number));
  int64_t perMachine = *number / *config.numMachines;
  if (perMachine == 0 && type != DistributedType::No) {
    error("process-count", field,
          std::to_string(*number) + " processes are fewer than " +
              std::to_string(*config.numMachines) + " machines",
          "num_processes is the total over all machines");
    unrecoverable = true;
    return;
  }
  int64_t total = perMachine * *config.numMachines;
  if (type == DistributedType::No)
    total = 1;
  std::string why;
  if (unrecoverable) {
    total = *number; // the type is unknown
  } else if (type == DistributedType::No && *number > 1) {
    why = "distributed_type NO starts one process";
    report(Severity::Warning, "process-count", field,
           "num_processes is " + std::to_string(*number) +
               ", but distributed_type NO starts one process",
           "write distributed_type: MULTI_GPU (or FSDP, DEEPSPEED, MULTI_CPU), "
           "or num_processes: 1");
  } else if (total != *number) {
    why = "Accelerate rounds down to " + std::to_string(perMachine) +
          " on each machine";
    report(Severity::Warning, "process-count", field,
           "num_processes " + std::to_string(*number) +
               " is not divisible by num_machines " +
               std::to_string(*config.numMachines) + "; only " +
               std::to_string(total) + " processes start",
           "write num_processes: " + std::to_string(total) + " or " +
               std::to_string(total + *config.numMachines));
  }
  written(setting, total, field, std::to_string(total), why);
}

/// DeepSpeed's runner finds the machines in its hostfile, and asks the first of
/// them for its address; without ssh it cannot.
bool AccelerateReader::findsMachines() const {
  if (*config.distributedType != DistributedType::Deepspeed)
    return false;
  const yaml::Node *section = root.find("deepspeed_config");
  const yaml::Node *launcher =
      section && section->isMapping()
          ? section->find("deepspeed_multinode_launcher")
          : nullptr;
  return !launcher || launcher->isNull() ||
         (launcher->text != "standard" && launcher->text != "nossh");
}

void AccelerateReader::readPlace() {
  DistributedType type = *config.distributedType;
  bool simple =
      type == DistributedType::No || type == DistributedType::MultiCpu;
  bool several = *config.numMachines > 1;
  Field rank = top("machine_rank");
  std::optional<int64_t> number;
  if (rank)
    number = envInt(rank.value());
  if (number && *number >= 0 && *number < *config.numMachines) {
    written(config.machineRank, *number, rank, std::to_string(*number));
  } else {
    const bool known = !unrecoverable && !config.assumed.numMachines;
    if (rank && several && !simple && known)
      error("invalid-value", rank,
            "machine_rank must be an integer from 0 to " +
                std::to_string(*config.numMachines - 1) + ", this is " +
                yaml::shortText(rank.value()));
    else if (rank && !rank.isNull() && known)
      report(Severity::Note, "ignored-key", rank,
             std::string("machine_rank has no effect with ") +
                 (several ? toString(type) : "one machine"),
             "", true);
    setDefault(config.machineRank, int64_t(0), rank, "0",
               whyDefault(findKey("", "machine_rank"), version));
  }

  Field ip = top("main_process_ip");
  if (ip && !ip.isNull())
    written(config.mainProcessIp, yaml::pythonText(ip.value()), ip,
            yaml::pythonText(ip.value()));
  else if (several && type != DistributedType::Xla && !unrecoverable &&
           !findsMachines())
    // A plan does not depend on the address.
    report(options.forPlanning ? Severity::Warning : Severity::Error,
           "missing-key", ip ? ip : top("num_machines"),
           "main_process_ip is not set, so the " +
               std::to_string(*config.numMachines) +
               " machines cannot find each other",
           "write the address of machine 0, or give --main_process_ip to "
           "`accelerate launch`");

  Field port = top("main_process_port");
  setDefault(config.mainProcessPort, int64_t(29500), port, "29500",
             whyDefault(findKey("", "main_process_port"), version));
  if (!port || port.isNull()) {
    if (several && simple && !unrecoverable)
      report(options.forPlanning ? Severity::Warning : Severity::Error,
             "missing-key", port ? port : top("num_machines"),
             "main_process_port is not set, which " +
                 std::string(toString(type)) +
                 " requires with several machines",
             "write main_process_port: 29500");
    return;
  }
  popEffective();
  const yaml::Node &value = port.value();
  bool number16 = value.kind == yaml::Kind::Int && !value.huge &&
                  value.integer >= 0 && value.integer <= 65535;
  if (number16)
    written(config.mainProcessPort, value.integer, port,
            std::to_string(value.integer));
  else if (value.isString() && simple)
    report(Severity::Note, "quoted-number", port,
           "main_process_port is a string", "remove the quotes", false,
           fixNumber(port));
  else if (value.isString() && envInt(value))
    error("quoted-number", port,
          "main_process_port is a string; the launcher's port check stops "
          "with a TypeError",
          "remove the quotes", fixNumber(port));
  else
    error("invalid-value", port,
          "main_process_port must be an integer from 0 to 65535, this is " +
              yaml::shortText(value));
}

void AccelerateReader::readGpuIds() {
  Field field = top("gpu_ids");
  if (!field || field.isNull()) {
    setDefault(config.gpuIds, std::string("all"), field, "all",
               whyDefault(findKey("", "gpu_ids"), version));
    return;
  }
  const yaml::Node &value = field.value();
  if (!value.isString()) {
    error("quoted-number", field,
          "gpu_ids is " + std::string(yaml::describe(value.kind)) +
              ", but Accelerate splits a string and stops with an "
              "AttributeError",
          "write it in quotes: gpu_ids: '" +
              (value.isScalar() ? printable(value.text) : "0,1") + "'",
          value.kind == yaml::Kind::Int ? fixText(field, value.text)
                                        : yaml::Edits());
    return;
  }
  written(config.gpuIds, value.text, field, printable(value.text));
  if (value.text == "all")
    return;
  int64_t ids = std::count(value.text.begin(), value.text.end(), ',') + 1;
  DistributedType type = *config.distributedType;
  bool multi =
      type >= DistributedType::MultiGpu && type <= DistributedType::MultiNeuron;
  if (ids < 2 && multi && before(0, 17)) {
    oneProcess = true;
    report(Severity::Warning, "gpu-ids", field,
           "one GPU id: accelerate " + toString(version) +
               " silently starts one process",
           "list one id for each process, or write gpu_ids: all");
    return;
  }
  if (ids < 2 && multi && *config.numMachines <= 1) {
    error("gpu-ids", field,
          "one GPU id with distributed_type " + std::string(toString(type)) +
              ": Accelerate wants at least two, or 'all'");
    return;
  }
  bool gpus = multi || type == DistributedType::Fsdp;
  int64_t perMachine = config.processesPerMachine();
  if (unrecoverable || !gpus || ids == perMachine ||
      config.assumed.numProcesses || config.assumed.numMachines)
    return;
  std::string counts = std::to_string(perMachine) +
                       " processes on each machine "
                       "but " +
                       std::to_string(ids) + " GPU ids";
  if (ids < perMachine)
    error("gpu-ids", field, counts + "; the last ranks find no device",
          "list one id for each process, or write gpu_ids: all");
  else
    report(Severity::Warning, "gpu-ids", field,
           counts + "; the last GPUs stay idle",
           "list one id for each process");
}

void AccelerateReader::readMixedPrecision() {
  Field field = top("mixed_precision");
  Field old = top("fp16");
  auto &setting = config.mixedPrecision;
  if (!field && old && truthy(old.value())) {
    written(setting, MixedPrecision::Fp16, old, "fp16",
            "the key of accelerate before 0.6");
    return;
  }
  if (old)
    ignored(old, field ? "beside mixed_precision" : "when it is false",
            static_cast<bool>(field));
  if (!field || field.isNull()) {
    if (field && before(0, 16))
      error("yaml-null", field,
            "mixed_precision is null; launch stops with AttributeError: "
            "'NoneType' object has no attribute 'lower'",
            "write 'no' in quotes, or remove the line", fixText(field, "no"));
    setDefault(setting, MixedPrecision::No, field, "no",
               whyDefault(findKey("", "mixed_precision"), version));
    return;
  }
  const yaml::Node &value = field.value();
  if (value.kind == yaml::Kind::Bool && !value.boolean && !before(0, 19) &&
      before(0, 34)) {
    report(Severity::Note, "yaml-boolean", field,
           "unquoted " + value.text +
               " is the boolean false in YAML; accelerate 0.19 to 0.33 take it "
               "for 'no', others do not",
           "write 'no' in quotes", false, fixText(field, "no"));
    return written(setting, MixedPrecision::No, field, "no",
                   "false counts as 'no' from 0.19 to 0.33");
  }
  for (MixedPrecision p : {MixedPrecision::No, MixedPrecision::Fp16,
                           MixedPrecision::Bf16, MixedPrecision::Fp8}) {
    std::string upper = toString(p);
    for (char &c : upper)
      c = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
    bool exists = p != MixedPrecision::Fp8 || !before(0, 17);
    if (exists && value.isString() && equalsUpper(value.text, upper)) {
      written(setting, p, field, toString(p));
      return;
    }
  }
  config.assumed.mixedPrecision = true;
  // `mixed_precision: ''` counts as not given? No: lower() of it is no mode.
  if (value.kind == yaml::Kind::Bool)
    error("yaml-boolean", field,
          "unquoted " + value.text + " is the boolean " +
              (value.boolean ? "true" : "false") +
              " in YAML; launch stops with AttributeError: 'bool' object has "
              "no attribute 'lower'",
          value.boolean ? "write 'no', fp16 or bf16" : "write 'no' in quotes",
          value.boolean ? yaml::Edits() : fixText(field, "no"));
  else
    error("invalid-value", field,
          yaml::shortText(value) + " is not a mixed_precision",
          value.isString()
              ? didYouMean(value.text, {"no", "fp16", "bf16", "fp8"})
              : "write 'no', fp16, bf16 or fp8",
          fixSpelling(field, {"no", "fp16", "bf16", "fp8"}));
}

void AccelerateReader::readIgnoredTopLevel() {
  DistributedType type = *config.distributedType;
  bool several = *config.numMachines > 1;
  const char *hint = "pass the flag of the same name to `accelerate launch`";
  const char *dropped = "in a file: `accelerate launch` takes it from the "
                        "command line only";
  auto drops = [&](const char *name) {
    return !findKey("", name)->readIn(version);
  };
  // Only what would change something is worth a line of its own.
  if (Field f = top("rdzv_backend");
      drops("rdzv_backend") && f && !f.isNull() && f.value().text != "static")
    ignored(f, dropped, several, hint, fixRemoval(f));
  if (Field f = top("same_network");
      drops("same_network") && f && truthy(f.value()) && several)
    ignored(f, dropped, false, hint, fixRemoval(f));
  if (Field f = top("enable_cpu_affinity");
      drops("enable_cpu_affinity") && f && truthy(f.value()))
    ignored(f, dropped, true, hint, fixRemoval(f));
  if (Field f = top("downcast_bf16"); drops("downcast_bf16") && f &&
                                      truthy(f.value()) &&
                                      !equalsUpper(f.value().text, "NO"))
    ignored(f, dropped, type == DistributedType::Xla, hint, fixRemoval(f));
  if (Field f = top("tpu_use_sudo");
      drops("tpu_use_sudo") && f && truthy(f.value()))
    ignored(f, dropped, type == DistributedType::Xla, hint);

  Field cpu = top("use_cpu");
  bool wanted = cpu && truthy(cpu.value());
  bool simple =
      type == DistributedType::No || type == DistributedType::MultiCpu;
  if (type == DistributedType::MultiCpu && wanted)
    written(config.cpu, true, cpu, "true");
  else if (type == DistributedType::MultiCpu)
    setDefault(config.cpu, true, cpu, "true", "distributed_type is MULTI_CPU",
               Origin::Derived);
  else if (!wanted)
    setDefault(config.cpu, false, cpu, "false",
               whyDefault(findKey("", "use_cpu"), version));
  else if (simple && !before(0, 12))
    written(config.cpu, true, cpu, "true");
  else
    ignored(cpu,
            (before(0, 12)
                 ? "in accelerate 0.11"
                 : "with distributed_type " + std::string(toString(type))) +
                ": the job uses GPUs",
            true,
            "write distributed_type: MULTI_CPU for a job on CPUs; accel-run "
            "takes the device of 'target' in job.yaml, whatever is here");
}
