//===- JobReader.cpp - Reading one job.yaml -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobReader.h"
#include "frontends/Diagnostics/Regex.h"

#include "runtime/plan/OutputModel.h"

#include <filesystem>

using namespace accel;

namespace {

constexpr int64_t most = int64_t(1) << 40;

const std::vector<std::string> &jobKeys() {
  static const std::vector<std::string> keys = {"accelerate",
                                                "model",
                                                "init",
                                                "trainable",
                                                "adapter",
                                                "data",
                                                "eval",
                                                "gradient_accumulation_steps",
                                                "optimizer",
                                                "schedule",
                                                "checkpoint",
                                                "target",
                                                "mesh",
                                                "pipeline",
                                                "precision",
                                                "activation_checkpointing",
                                                "activation_budget",
                                                "dropout_seed",
                                                "on_nan",
                                                "deterministic",
                                                "torch_version",
                                                "ddp",
                                                "reduce_gradients",
                                                "await_reductions",
                                                "hold_gathers",
                                                "offload",
                                                "loss_chunks",
                                                "sequence_parallel",
                                                "expert_imbalance",
                                                "seed",
                                                "sample",
                                                "grad_scaler",
                                                "collective_timeout",
                                                "logging_steps"};
  return keys;
}

std::optional<plan::DType> parsePrecision(const std::string &text) {
  for (auto [name, dtype] : {std::pair{"bf16", plan::DType::BF16},
                             {"fp16", plan::DType::F16},
                             {"fp32", plan::DType::F32}})
    if (text == name)
      return dtype;
  return std::nullopt;
}

} // namespace

std::optional<JobConfig> JobReader::read() {
  Setting<std::string> torch = readTorch();
  auto accelerate = std::make_unique<AccelerateConfig>();
  bool complete = readAccelerate(*accelerate);
  // Without an accelerate part the rest is still read, to report all of it.
  JobConfig job = defaultJob(std::move(*accelerate));
  job.file = file;
  job.isJob = true;
  job.torchVersion = std::move(torch);
  readModel(job);
  readInit(job);
  readTrainable(job);
  readAdapter(job);
  readData(job);
  readEval(job);
  top.integer("gradient_accumulation_steps", job.accumulation, 1, 1 << 30);
  readOptimizer(job);
  readSchedule(job);
  readCheckpoint(job);
  readTarget(job);
  readMesh(job);
  readPipeline(job);
  readPrecision(job);
  readCheckpointing(job);
  readOffload(job);
  readDdp(job);
  readReduction(job);
  readSampling(job);
  readGradScaler(job);
  top.integer("collective_timeout", job.collectiveTimeout, 1, 1 << 30);
  top.integer("logging_steps", job.loggingSteps, 1, 1 << 30);
  readSeed(job);
  if (!complete)
    return std::nullopt;
  splitBatches(job);
  checkSamples(job);
  checkPredictions(job);
  return job;
}

Setting<std::string> JobReader::readTorch() {
  constexpr const char *key = "torch_version";
  Setting<std::string> version{"", Origin::Default, key, {}, ""};
  const yaml::Entry *entry = top.find(key);
  if (!entry)
    return version;
  const yaml::Node &value = *entry->value;
  const std::optional<AccelerateVersion> release =
      value.isScalar() ? parseAccelerateVersion(value.text) : std::nullopt;
  if (!release) {
    top.error("invalid-version", key,
              yaml::shortText(value) + " is not a version of torch",
              "write it as 2.15.0");
    return version;
  }
  if (*release < oldestTorch || *release > newestTorch) {
    top.error(notSupportedCode, key,
              "torch " + toString(*release) + " is not known, only " +
                  toString(oldestTorch) + " to " + toString(newestTorch) +
                  " are");
    return version;
  }
  version = {value.text, Origin::Written, key, top.locate(key), ""};
  if (!reads.torchGiven)
    reads.torchVersion = value.text;
  return version;
}

/// What other tools call a key of a job file, or a key without its section.
constexpr std::pair<const char *, const char *> elsewhere[] = {
    {"requires_grad",
     "write trainable: a regex, or a list of them, of the parameters that are "
     "trained"},
    {"steps", "write schedule: {steps: N}"},
    {"max_steps", "write schedule: {steps: N}"},
    {"lr", "write optimizer: {lr: X}"},
    {"learning_rate", "write optimizer: {lr: X}"},
    {"weight_decay", "write optimizer: {weight_decay: X}"},
    {"max_grad_norm", "write optimizer: {max_grad_norm: X}"},
    {"batch_size", "write data: {micro_batch: N}, the samples of a rank"},
    {"micro_batch", "write data: {micro_batch: N}"},
    {"micro_batch_size", "write data: {micro_batch: N}"},
    {"per_device_train_batch_size", "write data: {micro_batch: N}"},
    {"sequence_length", "write data: {sequence_length: N}"},
    {"seq_len", "write data: {sequence_length: N}"},
    {"max_length", "write data: {sequence_length: N}"},
    {"tokens", "write data: {tokens: FILE}"},
    {"gradient_checkpointing", "write activation_checkpointing"},
    {"output_dir", "write checkpoint: {dir: FOLDER}"},
    {"train", "steps are in schedule, batches in data"},
    {"training", "steps are in schedule, batches in data"},
};

void JobReader::checkTopKeys() const {
  std::vector<std::string> known = jobKeys();
  for (const auto &[key, hint] : elsewhere)
    if (top.find(key)) {
      top.error("unknown-key", key,
                std::string("a job file has no '") + key + "'", hint, true);
      known.emplace_back(key); // said once
    }
  top.checkKeys(known);
}

bool JobReader::readAccelerate(AccelerateConfig &config) {
  auto take = [&](std::optional<AccelerateConfig> parsed) {
    if (parsed)
      config = std::move(*parsed);
    return parsed.has_value();
  };
  const yaml::Entry *entry = top.find("accelerate");
  const std::string &version = reads.version;
  if (!entry) {
    // The keys stand at the top level, among ours.
    for (const std::string &key : accelerateTopLevelKeys(version))
      if (top.find(key.c_str()))
        return take(parseAccelerate(file, top.mappingNode(), "", jobKeys(),
                                    reads, engine));
    checkTopKeys();
    top.error("missing-key", "accelerate",
              "the accelerate configuration is missing",
              "write accelerate: FILE.yaml, or its keys here");
    return false;
  }
  checkTopKeys();
  const yaml::Node &value = *entry->value;
  if (value.isMapping())
    return take(parseAccelerate(file, value, "accelerate", {}, reads, engine));
  Setting<std::string> path;
  top.pathTo("accelerate", path);
  if (!path.written())
    return false;
  std::error_code failed;
  if (!std::filesystem::exists(path.value, failed)) {
    top.error("file-not-found", "accelerate",
              "no such file: '" + printablePath(path.value) + "'",
              "paths are relative to the folder of this file");
    return false;
  }
  return take(parseAccelerate(path.value, reads, engine));
}

void JobReader::readModel(JobConfig &job) {
  if (!top.find("model")) {
    if (options.modelRequired)
      top.error("missing-key", "model", "model is missing",
                "write model: FOLDER with a config.json");
    return;
  }
  top.pathTo("model", job.model);
  // Another model was named on the command line: this one is not opened.
  if (!job.model.written() || !options.checkFiles || !options.modelRequired)
    return;
  namespace fs = std::filesystem;
  std::error_code failed;
  const std::string &path = job.model.value;
  std::string name = "'" + printablePath(path) + "'";
  fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status))
    top.error("file-not-found", "model", "no such model: " + name,
              "paths are relative to the folder of this file");
  else if (fs::is_directory(status) &&
           !fs::exists(fs::path(path) / "config.json", failed) &&
           !fs::exists(fs::path(path) / "adapter_config.json", failed))
    top.error("file-not-found", "model",
              "folder " + name + " has no config.json");
}

/// A regex, or a list of them: then any may match.
void JobReader::readTrainable(JobConfig &job) {
  const yaml::Entry *entry = top.find("trainable");
  if (!entry || !entry->value->isSequence())
    return top.regex("trainable", job.trainable);
  std::string all;
  for (const yaml::Node *item : entry->value->items) {
    std::string part = item->isString() ? item->text : "";
    if (part.empty() || part.size() > 2000 || !Regex::compile(part))
      return top.error("invalid-regex", "trainable",
                       "trainable must be a regex or a list of them; " +
                           yaml::shortText(*item) + " is not one");
    all += (all.empty() ? "(?:" : "|(?:") + part + ")";
    job.trainableParts.push_back(part);
  }
  if (all.empty())
    return top.error("invalid-value", "trainable",
                     "trainable lists nothing: nothing would be trained");
  job.trainable.key = "trainable";
  job.trainable.at = top.locate("trainable");
  job.trainable.value = std::move(all);
  job.trainable.origin = Origin::Written;
}

void JobReader::readAdapter(JobConfig &job) {
  const yaml::Entry *entry = top.find("adapter");
  if (!entry)
    return;
  if (entry->value->isMapping()) {
    job.adapter = accel::readAdapter(file, *entry->value, "adapter",
                                     /*strict=*/true,
                                     options.accelerate.forPlanning, engine);
    return;
  }
  top.pathTo("adapter", job.adapterPath);
  std::error_code failed;
  if (job.adapterPath.written() && options.checkFiles &&
      !std::filesystem::exists(job.adapterPath.value, failed))
    top.error("file-not-found", "adapter",
              "no such adapter: '" + printable(job.adapterPath.value, 400) +
                  "'",
              "paths are relative to the folder of this file; or write r, "
              "lora_alpha and target_modules here");
}

void JobReader::readInit(JobConfig &job) {
  const yaml::Entry *entry = top.find("init");
  if (!entry)
    return;
  job.init.key = "init";
  job.init.at = top.locate("init");
  if (entry->value->isString() && entry->value->text == "pretrained") {
    job.init.value.kind = InitConfig::Kind::Pretrained;
    job.init.origin = Origin::Written;
    return;
  }
  if (!entry->value->isMapping()) {
    top.error("invalid-value", "init",
              "init must be pretrained or {seed: N}, this is " +
                  yaml::shortText(*entry->value));
    return;
  }
  Fields fields = *top.mapping("init");
  fields.checkKeys({"seed"});
  Setting<int64_t> seed;
  fields.integer("seed", seed, 0, most);
  if (!fields.find("seed"))
    top.error("missing-key", "init", "init names no seed",
              "write init: {seed: 0}");
  job.init.value = {InitConfig::Kind::Seed, seed.value};
  job.init.origin = Origin::Written;
}

void JobReader::readCheckpoint(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("checkpoint");
  if (!fields)
    return;
  fields->checkKeys({"dir", "every", "keep", "state_dict", "background"});
  CheckpointConfig &checkpoint = job.checkpoint;
  fields->pathTo("dir", checkpoint.dir);
  if (!fields->find("dir"))
    fields->errorHere("missing-key", "checkpoint names no folder",
                      "write dir: out");
  fields->integer("every", checkpoint.every, 0, most);
  fields->integer("keep", checkpoint.keep, 0, most);
  fields->choice("state_dict", checkpoint.stateDict, {"sharded", "full"});
  fields->flag("background", checkpoint.background);
  if (checkpoint.background.value && checkpoint.stateDict.value == "full")
    fields->error("invalid-value", "background",
                  "with state_dict: full all ranks write the model together, "
                  "which cannot be done behind the step",
                  "write state_dict: sharded; the model is written at the end");
  if (!checkpoint.dir.written() || !options.checkFiles)
    return;
  // The trained model replaces this folder.
  const std::filesystem::path output =
      std::filesystem::path(checkpoint.dir.value) / plan::outputModel;
  const std::string name = "'" + printablePath(output.string()) + "'";
  if (job.model.written() && plan::isWithin(job.model.value, output))
    fields->error("checkpoint-folder", "dir",
                  "the trained model would replace the model that training "
                  "starts from, " +
                      name,
                  "write another folder, such as dir: out");
  else if (!plan::mayReplace(output))
    fields->error("checkpoint-folder", "dir",
                  "the trained model would replace " + name +
                      ", which accel-run has not written",
                  "write another folder, such as dir: out, or move that one");
}

void JobReader::readTarget(JobConfig &job) {
  top.text("target", job.target);
  std::string &target = job.target.value;
  bool isFile = target.find('/') != std::string::npos ||
                target.ends_with(".yaml") || target.ends_with(".yml");
  if (!job.target.written() || !isFile)
    return;
  target = resolvePath(file, target);
  std::error_code failed;
  if (options.checkFiles && !std::filesystem::exists(target, failed))
    top.error("file-not-found", "target",
              "no such file: '" + printable(target, 400) + "'",
              "paths are relative to the folder of this file");
}

void JobReader::readPrecision(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("precision");
  if (!fields)
    return;
  fields->checkKeys({"param", "reduce", "output"});
  PrecisionPolicy &policy = job.precision.value;
  job.precision.origin = Origin::Written;
  job.precision.key = "precision";
  job.precision.at = top.locate("precision");
  job.precision.why = "precision of the job file";
  auto read = [&](const char *key, std::optional<plan::DType> &dtype) {
    Setting<std::string> text;
    fields->choice(key, text, {"bf16", "fp16", "fp32"});
    if (text.written())
      dtype = parsePrecision(text.value);
  };
  read("param", policy.param);
  read("reduce", policy.reduce);
  read("output", policy.output);
  policy.lossScaling = policy.param == plan::DType::F16;
  // A policy that is spelt out is FSDP2's kind: explicit casts.
  policy.castInputs = policy.param.has_value();
  policy.autocast = false;
}

void JobReader::readOffload(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("offload");
  if (!fields)
    return;
  fields->checkKeys({"states", "parameters", "activations", "nvme"});
  auto read = [&](const char *key, Setting<bool> &into,
                  const std::vector<std::string> &places) {
    Setting<std::string> where;
    fields->choice(key, where, places);
    if (where.written())
      into = {where.value != "none", Origin::Written, where.key, where.at, ""};
    return where.value;
  };
  const Setting<bool> parameters = job.accelerate.offloadParams,
                      inputs = job.accelerate.activationCheckpointingOffload;
  const bool nvme =
      read("states", job.offloadStates, {"cpu", "nvme", "none"}) == "nvme";
  read("parameters", job.accelerate.offloadParams, {"cpu", "none"});
  read("activations", job.offloadActivations, {"cpu", "none"});
  readDisk(*fields, nvme, job);
  // The job may offload more than the accelerate file, not less.
  auto contradicts = [&](const char *key, const Setting<bool> &own,
                         const Setting<bool> &other) {
    if (!own.written() || *own || !*other)
      return false;
    fields->error("offload-mismatch", key,
                  "'" + std::string(key) + "' is none, and " + other.key +
                      " is true (" + printablePath(other.at.file) + ":" +
                      std::to_string(other.at.line) + ")",
                  "leave one of them out");
    return true;
  };
  contradicts("activations", job.offloadActivations, inputs);
  if (contradicts("parameters", job.accelerate.offloadParams, parameters) ||
      contradicts("states", job.offloadStates, parameters))
    return;
  if (job.accelerate.offloadParams.value && job.offloadStates.written() &&
      !job.offloadStates.value)
    fields->error("invalid-value", "states",
                  "parameters on the host are updated there, with their states",
                  "write states: cpu, or leave parameters out");
}

void JobReader::readDisk(const Fields &offload, bool asked, JobConfig &job) {
  std::optional<Fields> fields = offload.mapping("nvme");
  if (!fields) {
    if (asked && !offload.find("nvme"))
      offload.error("missing-key", "states",
                    "states on a drive need a folder there",
                    "add nvme: {path: /local_nvme}");
    return;
  }
  fields->checkKeys({"path", "buffers", "read_ahead", "write_behind",
                     "block_size", "queue_depth", "threads"});
  if (!asked)
    return fields->errorHere("invalid-value",
                             "nothing is on a drive: states say no nvme",
                             "write states: nvme, or leave nvme out");
  DiskConfig &disk = job.disk;
  fields->pathTo("path", disk.folder);
  if (!fields->find("path"))
    fields->errorHere("missing-key", "'offload.nvme' needs the key 'path'",
                      "write the folder where each rank makes its file");
  fields->integer("buffers", disk.buffers, 1, 1 << 16);
  fields->flag("read_ahead", disk.readAhead);
  fields->flag("write_behind", disk.writeBehind);
  fields->integer("block_size", disk.blockBytes, 4096, 1 << 30);
  fields->integer("queue_depth", disk.queueDepth, 1, 1 << 12);
  fields->integer("threads", disk.threads, 1, 1 << 8);
}

void JobReader::readDdp(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("ddp");
  if (!fields)
    return;
  fields->checkKeys({"comm_hook", "bucket_cap_mb", "gradient_as_bucket_view",
                     "find_unused_parameters"});
  DdpConfig &ddp = job.ddp;
  fields->choice("comm_hook", ddp.commHook,
                 {"no", "fp16", "bf16", "power_sgd"});
  if (*ddp.commHook == "no")
    ddp.commHook.value.clear();
  else if (*ddp.commHook == "power_sgd")
    ddp.commHook.value = "powersgd";
  fields->integer("bucket_cap_mb", ddp.bucketBytes, 1, 1 << 20);
  if (*ddp.bucketBytes)
    ddp.bucketBytes.value = **ddp.bucketBytes << 20;
  fields->flag("gradient_as_bucket_view", ddp.gradientAsBucketView);
  fields->flag("find_unused_parameters", ddp.findUnusedParameters);
}

void JobReader::readReduction(JobConfig &job) {
  Setting<std::string> when;
  top.choice("reduce_gradients", when, {"each", "once"});
  if (when.written())
    job.reducesOnce = {*when == "once", Origin::Written, when.key, when.at, ""};
  for (auto *waits : {&job.awaitReductions, &job.holdGathers}) {
    const std::string name = waits->key;
    const char *key = name.c_str();
    const yaml::Entry *entry = top.find(key);
    if (entry && entry->value->isString() && entry->value->text == "auto")
      *waits = {{}, Origin::Written, key, top.locate(key), ""};
    else
      top.integer(key, *waits, 0, int64_t(1) << 20);
  }
}

void JobReader::readCheckpointing(JobConfig &job) {
  top.integer("dropout_seed", job.dropoutSeed, 0, most);
  top.choice("on_nan", job.onNan, {"stop", "skip"});
  top.flag("deterministic", job.deterministic);
  top.flag("sequence_parallel", job.sequenceParallel);
  top.number("expert_imbalance", job.expertImbalance, 1, 1e6);
  const yaml::Entry *chunks = top.find("loss_chunks");
  Setting<std::optional<int64_t>> count;
  if (chunks && chunks->value->isString() && chunks->value->text == "auto")
    count = {{}, Origin::Written, "loss_chunks", top.locate("loss_chunks"), ""};
  else
    top.integer("loss_chunks", count, 1, int64_t(1) << 20);
  if (count.written())
    job.lossChunks = {{count.value}, count.origin, count.key, count.at, ""};
  top.integer("activation_budget", job.activationBudget, 0, int64_t(1) << 52);
  Setting<std::string> text;
  top.choice("activation_checkpointing", text, {"pointwise", "full", "none"});
  if (!text.written())
    return;
  Checkpointing kind = text.value == "full"   ? Checkpointing::Full
                       : text.value == "none" ? Checkpointing::None
                                              : Checkpointing::Pointwise;
  job.activationCheckpointing = {kind, Origin::Written, text.key, text.at,
                                 "activation_checkpointing of the job file"};
}
