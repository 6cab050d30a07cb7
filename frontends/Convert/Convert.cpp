//===- Convert.cpp - One kind of job to another ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Convert.h"
#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Convert/Converter.h"
#include "frontends/Convert/Differences.h"

#include <algorithm>
#include <climits>

using namespace accel;
using namespace accel::convert;

static const std::string fsdp = "fsdp_config";

const char *accel::convert::toString(Executor executor) {
  constexpr const char *names[] = {"fsdp1", "fsdp2", "deepspeed", "ddp"};
  return names[static_cast<int>(executor)];
}

const char *accel::convert::title(Executor executor) {
  constexpr const char *names[] = {"FSDP1", "FSDP2", "DeepSpeed", "DDP"};
  return names[static_cast<int>(executor)];
}

std::optional<Executor> accel::convert::parseExecutor(std::string_view name) {
  for (Executor executor :
       {Executor::Fsdp1, Executor::Fsdp2, Executor::Deepspeed, Executor::Ddp})
    if (name == toString(executor))
      return executor;
  return std::nullopt;
}

namespace {

/// A text as the launch reads it.
struct Reading {
  DiagnosticEngine engine;
  std::optional<AccelerateConfig> config;
  bool countsRanks = true; // num_processes is there

  bool hasError(std::string_view code) const {
    for (const Diagnostic &d : engine.all())
      if (d.severity == Severity::Error && d.code == code)
        return true;
    return false;
  }
};

void read(Reading &reading, const std::string &file, std::string text,
          const std::string &version) {
  // A template gets its number of ranks from the command line. Two on each
  // machine stand for it where nothing depends on the number.
  Rewriter complete(file, text);
  const yaml::Node *count = complete.find({"num_processes"});
  const yaml::Node *machines = complete.find({"num_machines"});
  if (!count || count->isNull() ||
      (count->kind == yaml::Kind::Int && count->integer == -1)) {
    int64_t per = machines && machines->kind == yaml::Kind::Int &&
                          machines->integer > 0 && machines->integer < 1 << 20
                      ? machines->integer
                      : 1;
    Value ranks = Value::integer(2 * per);
    if (count ? complete.set({"num_processes"}, ranks)
              : complete.insert({}, "num_processes", ranks)) {
      text = complete.text();
      reading.countsRanks = false;
    }
  }
  auto document = yaml::parseText(file, text, reading.engine);
  if (document && document->root())
    reading.config =
        parseAccelerate(file, *document->root(), "", {},
                        AccelerateOptions{version, false}, reading.engine);
}

class Run {
public:
  Run(const std::string &file, const std::string &text,
      const ConvertOptions &options, DiagnosticEngine &engine)
      : file(file), source(text), options(options), engine(engine) {}

  std::optional<Conversion> run(std::string &internal);

private:
  const std::string &file, &source;
  const ConvertOptions &options;
  DiagnosticEngine &engine;
  Conversion result;
  Reading before;
  /// The section that FSDP1 refuses, which only means something in FSDP2.
  bool meshWasRefused = false;

  bool checkDocument();
  bool gatherScattered();
  bool readSource(const std::string &text);
  bool unchanged(const std::string &message);
  std::string check();
  std::string compareValues(const AccelerateConfig &after) const;
  std::string compareRest() const;
};

bool Run::checkDocument() {
  auto document = yaml::parseText(file, source, engine);
  if (!document)
    return false;
  const yaml::Node *root = document->root();
  if (!root || !root->isMapping()) {
    engine.error("not-a-mapping", file,
                 !root || root->isNull()
                     ? std::string("the file is empty")
                     : std::string("the file holds ") +
                           yaml::describe(root->kind) + ", not keys and values",
                 "write one with `accelerate config`");
    return false;
  }
  for (const char *key : {"model", "accelerate"})
    if (const yaml::Entry *entry = root->findEntry(key)) {
      Diagnostic d;
      d.code = notSupportedCode;
      d.file = file;
      d.key = key;
      d.line = entry->key->range.begin.line;
      d.column = entry->key->range.begin.column;
      d.message = "this is a job.yaml; only accelerate files are converted";
      d.hint = "convert the file that its key 'accelerate' names";
      engine.report(std::move(d));
      return false;
    }
  return true;
}

/// Keys of fsdp_config that stand at the top level, where launch refuses them.
bool Run::gatherScattered() {
  std::optional<AccelerateVersion> version =
      parseAccelerateVersion(options.version);
  Rewriter rewriter(file, source);
  const Rewriter original(file, source);
  for (const yaml::Entry &entry : original.root().entries) {
    const std::string &key = entry.key->text;
    const KeyInfo *top = findKey("", key);
    bool scattered = entry.key->isString() && entry.value->isScalar() &&
                     key.starts_with("fsdp_") && !entry.merged && version &&
                     !(top && top->in(*version)) && findKey(fsdp, key);
    if (!scattered)
      continue;
    const yaml::Node &value = *entry.value;
    Value moved = value.kind == yaml::Kind::Bool ? Value::boolean(value.boolean)
                  : value.kind == yaml::Kind::Int && !value.huge
                      ? Value::integer(value.integer)
                      : Value::string(value.text);
    const yaml::Node *section = rewriter.find({fsdp});
    Change change{entry.key->range.begin.line, key, key, fsdp + "." + key,
                  "launch refuses it at the top level"};
    if (section && section->find(key)) {
      if (!equal(*section->find(key), value)) {
        Diagnostic d;
        d.code = "no-equivalent";
        d.file = file;
        d.key = key;
        d.line = entry.key->range.begin.line;
        d.column = entry.key->range.begin.column;
        d.message = "'" + key + "' has one value here and another in " + fsdp;
        d.hint = "remove one of the two";
        engine.report(std::move(d));
        return false;
      }
      change.to.clear();
    } else if (!(section ? rewriter.insert({fsdp}, key, moved)
                         : rewriter.insertSection(fsdp, {{key, moved}}))) {
      continue; // launch's own message follows
    }
    if (rewriter.remove({key}))
      result.changes.push_back(std::move(change));
  }
  result.text = rewriter.text();
  return true;
}

bool Run::readSource(const std::string &text) {
  read(before, file, text, options.version);
  meshWasRefused =
      options.to == Executor::Fsdp2 && before.hasError("mesh-needs-fsdp2");
  bool good = before.config.has_value();
  for (const Diagnostic &d : before.engine.sorted()) {
    if (d.severity != Severity::Error ||
        (meshWasRefused && d.code == "mesh-needs-fsdp2"))
      continue;
    good = false;
    engine.report(d);
  }
  if (!good && !engine.hasErrors())
    engine.error("cannot-edit", file, "this file cannot be read");
  return good;
}

bool Run::unchanged(const std::string &message) {
  engine.note("nothing-to-convert", file, message);
  result.text = source;
  result.changes.clear();
  return true;
}

std::optional<Conversion> Run::run(std::string &internal) {
  result.to = options.to;
  if (!checkDocument() || !gatherScattered() || !readSource(result.text))
    return std::nullopt;
  const AccelerateConfig &config = *before.config;
  if (*config.strategy == Strategy::Fsdp1)
    result.from = Executor::Fsdp1;
  else if (*config.strategy == Strategy::Fsdp2)
    result.from = Executor::Fsdp2;
  if (!result.from) {
    unchanged(std::string("distributed_type is ") +
              toString(*config.distributedType) +
              ", not FSDP: there is nothing to convert");
    return std::move(result);
  }
  if (*result.from == options.to && result.changes.empty()) {
    unchanged(std::string("the file is for ") + title(options.to) + " already");
    return std::move(result);
  }

  Converter converter(file, result.text, config, before.countsRanks, engine);
  bool done = *result.from == options.to;
  if (!done)
    switch (options.to) {
    case Executor::Fsdp1:
      done = converter.toFsdp1();
      break;
    case Executor::Fsdp2:
      done = converter.toFsdp2();
      break;
    case Executor::Deepspeed:
      done = converter.toDeepspeed();
      break;
    case Executor::Ddp:
      done = converter.toDdp();
      break;
    }
  if (!done)
    return std::nullopt;
  result.text = converter.text();
  result.changes.insert(result.changes.end(), converter.changes.begin(),
                        converter.changes.end());
  // As the file reads; new lines last.
  std::stable_sort(result.changes.begin(), result.changes.end(),
                   [](const Change &a, const Change &b) {
                     return (a.line ? a.line : INT_MAX) <
                            (b.line ? b.line : INT_MAX);
                   });
  if (*result.from != options.to)
    result.differences = differencesOf(config, *result.from, options.to);
  internal = check();
  if (!internal.empty() || engine.hasErrors())
    return std::nullopt;
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Reading the result again
//===----------------------------------------------------------------------===//

std::string Run::check() {
  Reading after;
  read(after, file, result.text, options.version);
  for (const Diagnostic &d : after.engine.sorted()) {
    if (d.severity != Severity::Error)
      continue;
    if (!meshWasRefused || !d.code.starts_with("mesh-"))
      return "the new file has an error: " + d.message + " [" + d.code + "]";
    // FSDP1 never looked at the sizes.
    Diagnostic mesh = d;
    const Rewriter original(file, source);
    if (const yaml::Entry *section = original.findEntry({"parallelism_config"}))
      mesh.setRange(section->key->range);
    mesh.fix.clear();
    mesh.ranges.clear();
    mesh.message = "this does not fit FSDP2: " + d.message;
    engine.report(std::move(mesh));
    return "";
  }
  if (!after.config)
    return "the new file cannot be read";
  std::string problem = compareValues(*after.config);
  return problem.empty() ? compareRest() : problem;
}

/// What both executors have must be the same.
std::string Run::compareValues(const AccelerateConfig &after) const {
  const AccelerateConfig &a = *before.config, &b = after;
  std::string wrong;
  auto same = [&](bool equal, const char *what) {
    if (!equal && wrong.empty())
      wrong = std::string("the new file has another ") + what;
  };
  same(*a.numProcesses == *b.numProcesses, "num_processes");
  same(*a.numMachines == *b.numMachines, "num_machines");
  same(*a.machineRank == *b.machineRank, "machine_rank");
  same(*a.mainProcessIp == *b.mainProcessIp, "main_process_ip");
  same(*a.mainProcessPort == *b.mainProcessPort, "main_process_port");
  same(*a.gpuIds == *b.gpuIds, "gpu_ids");
  same(*a.mixedPrecision == *b.mixedPrecision, "mixed_precision");
  Executor to = options.to;
  auto wanted = [&](Strategy strategy) {
    same(*b.strategy == strategy, "executor");
  };
  if (to == Executor::Ddp) {
    wanted(Strategy::Ddp);
    same(b.mesh->size("dp_replicate") == *a.numProcesses, "mesh");
    return wrong;
  }
  if (to == Executor::Deepspeed) {
    same(*b.distributedType == DistributedType::Deepspeed, "distributed_type");
    return wrong;
  }
  wanted(to == Executor::Fsdp1 ? Strategy::Fsdp1 : Strategy::Fsdp2);
  // One rank shards and replicates alike.
  if (!meshWasRefused && *a.numProcesses > 1) {
    same(a.mesh->size("dp_replicate") == b.mesh->size("dp_replicate"),
         "dp_replicate");
    same(a.mesh->size("dp_shard") == b.mesh->size("dp_shard"), "dp_shard");
  }
  same(*a.reshardAfterForward == *b.reshardAfterForward,
       "fsdp_reshard_after_forward");
  bool bySize = *a.wrapPolicy == WrapPolicy::Size && *a.minNumParams > 0;
  if (!bySize) {
    same(*a.wrapPolicy == *b.wrapPolicy, "fsdp_auto_wrap_policy");
    same(*a.wrapClasses == *b.wrapClasses,
         "fsdp_transformer_layer_cls_to_wrap");
    same(*a.minNumParams == *b.minNumParams, "fsdp_min_num_params");
  }
  same(*a.ignoredModules == *b.ignoredModules, "fsdp_ignored_modules");
  same(*a.activationCheckpointing == *b.activationCheckpointing,
       "fsdp_activation_checkpointing");
  same(*a.offloadParams == *b.offloadParams, "fsdp_offload_params");
  same(*a.cpuRamEfficientLoading == *b.cpuRamEfficientLoading,
       "fsdp_cpu_ram_efficient_loading");
  same(*a.stateDictType == *b.stateDictType ||
           (*a.stateDictType == StateDictType::Local &&
            *b.stateDictType == StateDictType::Sharded),
       "fsdp_state_dict_type");
  return wrong;
}

/// Keys that no conversion is about are as they were.
std::string Run::compareRest() const {
  Rewriter a(file, source), b(file, result.text);
  auto isOurs = [&](const yaml::Entry &entry) {
    for (const char *name : {"distributed_type", "fsdp_config",
                             "parallelism_config", "deepspeed_config"})
      if (entry.key->text == name)
        return true;
    return std::any_of(
        result.changes.begin(), result.changes.end(),
        [&](const Change &change) { return change.key == entry.key->text; });
  };
  auto covers = [&](const Rewriter &from, const Rewriter &to) {
    for (const yaml::Entry &entry : from.root().entries) {
      const yaml::Entry *twin =
          entry.key->isString() ? to.findEntry({entry.key->text}) : nullptr;
      if (entry.key->isString() && !isOurs(entry) &&
          !(twin && equal(*entry.value, *twin->value)))
        return entry.key->text;
    }
    return std::string();
  };
  std::string wrong = covers(a, b);
  if (wrong.empty())
    wrong = covers(b, a);
  return wrong.empty() ? "" : "'" + printable(wrong) + "' has another value";
}

} // namespace

std::optional<Conversion>
accel::convert::convertConfig(const std::string &file, const std::string &text,
                              const ConvertOptions &options,
                              DiagnosticEngine &engine, std::string &internal) {
  return Run(file, text, options, engine).run(internal);
}
