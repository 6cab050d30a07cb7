//===- DeepspeedInputs.cpp - DeepSpeed's jobs for accel-run ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ZeRO is a matter of what is sharded: optimizer states (1), gradients (2) and
// parameters (3). accel-run shards all three over the ranks of dp_shard; in
// stages 1 and 2 every rank holds the parameters beside that, and in stage 1
// gradients are whole until the last micro-batch.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/DeepspeedInputs.h"

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/ReadValues.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "runtime/plan/OutputModel.h"
#include "tools/driver/Inputs/DriveKeys.h"

#include <cmath>
#include <type_traits>

namespace accel {
namespace {

/// A key of the JSON that says something of the numbers or the data that
/// accel-run does otherwise.
struct Unlike {
  const char *path;
  const char *off; // values with which nothing is meant, joined by commas
  const char *what;
  const char *fix;
};

constexpr Unlike unlike[] = {
    {"scheduler.type", "null", "rates of accel-run are those of `schedule`",
     "remove \"scheduler\", and write schedule: {warmup_steps, decay} in the "
     "job file"},
    {"optimizer.params.adam_w_mode", "true",
     "accel-run decays weights beside the gradient (AdamW)",
     "write \"adam_w_mode\": true"},
    {"optimizer.params.bias_correction", "true",
     "accel-run's AdamW corrects the bias of its moments",
     "write \"bias_correction\": true"},
    {"optimizer.params.max_grad_norm", "null,0,0.0",
     "the optimizer of accel-run clips nothing by itself",
     "write \"gradient_clipping\""},
    {"fp16.loss_scale", "0,0.0", "accel-run finds the loss scale by itself",
     "write \"loss_scale\": 0"},
    {"fp16.hysteresis", "1",
     "accel-run lowers the loss scale at the first overflow",
     "write \"hysteresis\": 1"},
    {"fp16.consecutive_hysteresis", "false",
     "accel-run lowers the loss scale at the first overflow",
     "write \"consecutive_hysteresis\": false"},
    {"fp16.min_loss_scale", "1,1.0", "the loss scale of accel-run has no least",
     "remove \"min_loss_scale\""},
    {"bf16.check_grad_overflow", "false",
     "accel-run leaves out steps that are not finite where the job says so",
     "remove it, and write on_nan: skip in the job file"},
    {"gradient_allreduce_op", "null,avg,mean",
     "accel-run takes the mean of all ranks' gradients", "remove it"},
    {"dataloader_drop_last", "false",
     "accel-run reads data as the job file says",
     "remove it, and write data: {drop_last: true} in the job file"},
    {"zero_optimization.zero_hpz_partition_size", "0,1",
     "accel-run keeps no second copy of the parameters within a machine",
     "write 1"},
    {"zero_optimization.zero_quantized_weights", "false",
     "accel-run gathers parameters in the dtype that computes", "write false"},
    {"zero_optimization.zero_quantized_gradients", "false",
     "accel-run reduces gradients in the dtype that computes", "write false"},
    {"zero_optimization.mics_shard_size", "-1,0",
     "accel-run shards over all ranks of a DeepSpeed job", "remove it"},
};

/// How DeepSpeed cuts what accel-run gathers, reduces and updates unit by unit:
/// no number of the training depends on it.
constexpr const char *bucketKeys[] = {"overlap_comm",
                                      "contiguous_gradients",
                                      "reduce_bucket_size",
                                      "allgather_bucket_size",
                                      "stage3_prefetch_bucket_size",
                                      "stage3_param_persistence_threshold",
                                      "stage3_max_live_parameters",
                                      "stage3_max_reuse_distance",
                                      "sub_group_size",
                                      "round_robin_gradients"};

class DeepspeedTaker {
public:
  DeepspeedTaker(const PlanOptions &options, PlanInputs &inputs,
                 DiagnosticEngine &engine)
      : options(options), job(inputs.job), zero(*job.accelerate.deepspeed),
        engine(engine) {}

  void run() {
    checkSequences();
    takeStage();
    takePrecision();
    takeOffload();
    takeClipping();
    checkBatches();
    if (zero.fileRead)
      readFile();
  }

private:
  int64_t stage() const { return *zero.zeroStage; }

  template <typename T>
  void refuse(const T &setting, const char *code, std::string what,
              std::string fix) {
    engine.report(diagnosticAt(setting, Severity::Error, code, std::move(what),
                               std::move(fix)));
  }
  /// What follows from a setting of DeepSpeed's.
  template <typename T, typename From>
  static void derive(Setting<T> &setting, T value, const From &from,
                     std::string why) {
    setting = {std::move(value), Origin::Written, from.key, from.at,
               std::move(why)};
  }

  void checkSequences() {
    const auto &ranks = job.accelerate.sequenceParallel;
    if (*ranks > 1)
      refuse(ranks, notSupportedCode,
             "accel-run shares sequences by the mesh of a job of FSDP2, not by "
             "DeepSpeed's sp_size",
             "remove it, or write distributed_type: FSDP, and mesh: {sp: " +
                 std::to_string(*ranks) + "} in the job file");
  }

  void takeStage() {
    AccelerateConfig &a = job.accelerate;
    const auto &from = zero.zeroStage;
    if (stage() == 0)
      return derive(a.strategy, Strategy::Ddp, from,
                    "ZeRO stage 0 shards nothing");
    derive(a.strategy, Strategy::Fsdp2, from, "ZeRO shards over all ranks");
    derive(a.wrapPolicy, WrapPolicy::Transformer, from,
           "each layer is gathered and reduced by itself");
    derive(a.restUnits, RestUnits::EmbeddingAndTail, from, "");
    derive(a.sharding,
           stage() == 3 ? Sharding::FullShard : Sharding::ShardGradOp, from,
           "");
    derive(a.reshardAfterForward, stage() == 3, from,
           "ZeRO stage 3 shards parameters too");
    if (stage() == 3)
      return;
    derive(job.wholeParameters, true, from,
           "every rank holds the parameters; each updates its shard, which is "
           "gathered then");
    if (stage() == 1 && !job.reducesOnce.written())
      derive(job.reducesOnce, true, from,
             "gradients are whole until the last micro-batch, and reduced "
             "once a step");
  }

  /// DeepSpeed casts the model, and its optimizer updates a shard in fp32.
  void takePrecision() {
    auto update = [&](PrecisionPolicy &policy) {
      if (policy.param && stage() > 0)
        policy.upcast = Upcast::Trainable;
    };
    update(job.accelerate.precision.value);
    update(job.precision.value);
    job.accelerate.mixedPrecision.value = *zero.fp16   ? MixedPrecision::Fp16
                                          : *zero.bf16 ? MixedPrecision::Bf16
                                                       : MixedPrecision::No;
  }

  void takeOffload() {
    if (*zero.offloadParameters == OffloadDevice::Nvme)
      return refuse(zero.offloadParameters, notSupportedCode,
                    "accel-run gathers parameters from the device or from the "
                    "host's memory, not from a drive",
                    "write cpu: the optimizer alone goes to nvme");
    const bool states = *zero.offloadOptimizer != OffloadDevice::None,
               parameters = *zero.offloadParameters == OffloadDevice::Cpu;
    const char *own = job.disk.folder->empty() ? "cpu" : "nvme";
    if (states && job.offloadStates.written() &&
        (!*job.offloadStates ||
         own != std::string_view(toString(*zero.offloadOptimizer))))
      return refuseOther(zero.offloadOptimizer, job.offloadStates, "states",
                         *job.offloadStates ? own : "none");
    if (const auto &asked = job.accelerate.offloadParams;
        parameters && asked.key.starts_with("offload") && asked.written() &&
        !*asked)
      return refuseOther(zero.offloadParameters, asked, "parameters", "none");
    if (states && stage() == 0)
      return refuse(zero.offloadOptimizer, "invalid-value",
                    "ZeRO stage 0 has no shard of the optimizer to offload",
                    "write zero_stage 1, 2 or 3, or none");
    if (parameters && stage() < 3)
      return refuse(zero.offloadParameters, "invalid-value",
                    "only ZeRO stage 3 has shards of parameters to offload, "
                    "this is stage " +
                        std::to_string(stage()),
                    "write zero_stage 3, or none");
    if (parameters && !states)
      return refuse(zero.offloadParameters, notSupportedCode,
                    "accel-run updates parameters where their shards are, and "
                    "the optimizer stays on the device",
                    "offload the optimizer to cpu too");
    if (states)
      derive(job.offloadStates, true, zero.offloadOptimizer,
             "the optimizer and its states are on the host");
    if (*zero.offloadOptimizer == OffloadDevice::Nvme && !takeDrive())
      return;
    // Beside whole parameters the shard is the optimizer's alone.
    if (parameters)
      derive(job.accelerate.offloadParams, true, zero.offloadParameters,
             "shards of parameters are on the host");
    else if (states && stage() < 3)
      derive(job.accelerate.offloadParams, true, zero.offloadOptimizer,
             "every rank holds the parameters, so that their shards are the "
             "optimizer's alone");
  }

  /// The job file may offload more than DeepSpeed's, not less or elsewhere.
  template <typename T, typename Own>
  void refuseOther(const Setting<T> &from, const Setting<Own> &own,
                   const std::string &part, const std::string &where) {
    std::string said;
    if constexpr (std::is_same_v<T, std::string>)
      said = printablePath(*from);
    else
      said = toString(*from);
    refuse(from, "deepspeed-mismatch",
           from.key + " is " + said + ", and the job file says " +
               "offload: {" + part + ": " + where + "} (" +
               printablePath(own.at.file) + ":" + std::to_string(own.at.line) +
               ")",
           "leave one of them out");
  }

  bool takeDrive() {
    const auto &from = zero.offloadOptimizer;
    if (stage() != 3) {
      refuse(from, "invalid-value",
             "DeepSpeed has the optimizer on NVMe with ZeRO stage 3 alone, "
             "this is stage " +
                 std::to_string(stage()),
             "write zero_stage 3, or cpu");
      return false;
    }
    if (zero.optimizerNvmePath.value.empty() ||
        *zero.optimizerNvmePath == "none") {
      refuse(from, "nvme-path", "nvme_path is missing beside device nvme",
             "add \"nvme_path\": \"/local_nvme\" to the file that "
             "deepspeed_config_file names");
      return false;
    }
    DiskConfig &disk = job.disk;
    if (const auto &own = disk.folder;
        own.written() && plan::canonicalPath(*own) !=
                             plan::canonicalPath(*zero.optimizerNvmePath)) {
      refuseOther(zero.optimizerNvmePath, own, "nvme",
                  "{path: " + printablePath(*own) + "}");
      return false;
    }
    derive(disk.folder, *zero.optimizerNvmePath, from, "");
    // DeepSpeed's, where neither file says otherwise.
    auto otherwise = [&](auto &setting, auto value) {
      if (!setting.written())
        derive(setting, value, from, "");
    };
    otherwise(disk.readAhead, false);
    otherwise(disk.writeBehind, false);
    otherwise(disk.queueDepth, int64_t(8));
    otherwise(disk.threads, int64_t(1));
    return true;
  }

  /// "auto" is the job's; Accelerate writes 1 where nobody says a number.
  void takeClipping() {
    const auto &from = zero.gradientClipping;
    Setting<double> &norm = job.optimizer.maxGradNorm;
    if (!*from) {
      if (!norm.written())
        norm = {1.0, Origin::Derived, from.key, from.at,
                "Accelerate writes 1.0 for \"auto\""};
      return;
    }
    if (!from.written())
      return;
    if (norm.written() && *norm != **from)
      return refuse(from, "deepspeed-mismatch",
                    "gradient_clipping is " + showNumber(**from) +
                        ", and the job file says max_grad_norm " +
                        showNumber(*norm),
                    "write one number, or \"auto\" here");
    norm = {**from, Origin::Written, from.key, from.at,
            "gradients are clipped"};
  }

  /// The job file goes before DeepSpeed's only where they agree.
  template <typename Own>
  void compare(const Setting<std::optional<int64_t>> &from, const Own &own,
               int64_t value, const char *name) {
    if (from.written() && *from && own.written() && own.key != from.key &&
        **from != value)
      refuse(from, "deepspeed-mismatch",
             from.key + " is " + std::to_string(**from) +
                 ", and the job file says " + name + " " +
                 std::to_string(value),
             "write one number, or \"auto\" here");
  }

  void checkBatches() {
    const auto &micro = job.data.microBatch;
    const auto &steps = job.accumulation;
    compare(zero.gradientAccumulation, steps, *steps,
            "gradient_accumulation_steps");
    if (*micro)
      compare(zero.microBatch, micro, **micro, "micro_batch");
    const auto &all = zero.trainBatch;
    if (!all.written() || !*all || !*micro)
      return;
    const int64_t ranks = *job.accelerate.numProcesses;
    const int64_t own = options.microBatch.value_or(**micro) *
                        options.accumulation.value_or(*steps) * ranks;
    if (**all != own)
      refuse(all, "deepspeed-batch",
             "train_batch_size is " + std::to_string(**all) + ", and " +
                 std::to_string(ranks) + " ranks with micro-batches of " +
                 std::to_string(options.microBatch.value_or(**micro)) +
                 " and accumulation " +
                 std::to_string(options.accumulation.value_or(*steps)) +
                 " have " + std::to_string(own),
             "write " + std::to_string(own) + ", or \"auto\"");
  }

  //===--------------------------------------------------------------------===//
  // The JSON file
  //===--------------------------------------------------------------------===//

  void readFile() {
    DiagnosticEngine silent; // it was read already
    const auto document =
        yaml::parseFile(*zero.configFile, options.texts, silent);
    if (!document || !document->root())
      return;
    std::string prefix;
    root = &deepspeedRoot(*document->root(), prefix);
    for (const Unlike &key : unlike)
      if (const yaml::Node *node = find(key.path);
          node && isRead(key.path) && !isOff(*node, key))
        report(*node, Severity::Error, notSupportedCode, key.path,
               "'" + std::string(key.path) + "': " + key.what, key.fix);
    noteBuckets();
    if (!job.disk.folder.value.empty())
      DriveKeys(root, *zero.configFile, job.disk, engine).take();
    takeCpuCheckpointing();
    takeScaler();
    if (find("optimizer.type"))
      takeOptimizer();
  }

  const yaml::Node *find(std::string_view path) const {
    const yaml::Node *node = root;
    while (node && !path.empty()) {
      const size_t dot = std::min(path.find('.'), path.size());
      node = node->isMapping() ? node->find(path.substr(0, dot)) : nullptr;
      path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return node;
  }
  void report(const yaml::Node &node, Severity severity, const char *code,
              const std::string &key, const std::string &what,
              const std::string &fix) {
    reportInJson(engine, *zero.configFile, severity, code, node, key, what,
                 fix);
  }
  /// Keys of a precision that is off matter to nobody.
  bool isRead(std::string_view path) const {
    return (*zero.fp16 || !path.starts_with("fp16.")) &&
           (*zero.bf16 || !path.starts_with("bf16."));
  }
  static bool isOff(const yaml::Node &node, const Unlike &key) {
    return node.isScalar() && isOneOf(node, key.off);
  }

  void noteBuckets() {
    std::string names;
    const yaml::Node *first = nullptr;
    for (const char *name : bucketKeys)
      if (const yaml::Node *node =
              find("zero_optimization." + std::string(name))) {
        names += (names.empty() ? "" : ", ") + std::string(name);
        first = first ? first : node;
      }
    if (first)
      report(*first, Severity::Note, "deepspeed-by-unit", "zero_optimization",
             "without effect: accel-run gathers, reduces and updates a unit at "
             "a time, and not by " +
                 names,
             "");
  }

  /// What DeepSpeed's own `checkpoint` recomputes from waits on the host.
  void takeCpuCheckpointing() {
    const std::string path = "activation_checkpointing.cpu_checkpointing";
    const yaml::Node *node = find(path);
    if (!node || (node->isScalar() && isOneOf(*node, "false,null")))
      return;
    if (!node->isScalar() || !isOneOf(*node, "true"))
      return report(*node, Severity::Error, "invalid-value", path,
                    "'" + path + "' must be true or false, this is " +
                        yaml::shortText(*node),
                    "");
    if (*job.activationCheckpointing != Checkpointing::Full &&
        !*job.script.layerCheckpointing)
      return report(*node, Severity::Error, notSupportedCode, path,
                    "'" + path +
                        "' moves the inputs of recomputed layers, and the "
                        "job recomputes none",
                    "write activation_checkpointing: full in the job file, or "
                    "offload: {activations: cpu} there instead");
    if (job.offloadActivations.written() && !*job.offloadActivations)
      return report(*node, Severity::Error, "deepspeed-mismatch", path,
                    "'" + path +
                        "' is true, and the job file says "
                        "offload: {activations: none}",
                    "remove one of them");
    job.offloadActivations = {
        true,
        Origin::Written,
        path,
        {*zero.configFile, node->range.begin.line, node->range.begin.column},
        "the inputs of recomputed layers are on the host"};
  }

  static std::optional<double> numberOf(const yaml::Node &node) {
    const std::optional<double> value = parseNumber(yaml::pythonText(node));
    return value && std::isfinite(*value) ? value : std::nullopt;
  }
  /// A finite number of a key, or nothing where that is absent or "auto".
  std::optional<double> number(const std::string &path) {
    const yaml::Node *node = find(path);
    if (!node || jsonText(*node) == "auto")
      return std::nullopt;
    const std::optional<double> value = numberOf(*node);
    if (!value || *value < 0)
      report(*node, Severity::Error, "invalid-value", path,
             "'" + path + "' must be a number that is not negative, this is " +
                 yaml::shortText(*node),
             "");
    return value;
  }

  /// Where the job file has no `grad_scaler`.
  void takeScaler() {
    if (!*zero.fp16 || job.gradScaler.written())
      return;
    plan::GradScaler &scaler = job.gradScaler.value;
    scaler.growthInterval = 1000; // DeepSpeed's defaults
    if (const auto power = number("fp16.initial_scale_power"))
      scaler.initScale = std::exp2(std::min(*power, 100.0));
    if (const auto window = number("fp16.loss_scale_window"))
      scaler.growthInterval =
          std::max<int64_t>(1, static_cast<int64_t>(std::min(*window, 1e9)));
  }

  /// Takes a number of the JSON, or of DeepSpeed where it has none.
  void take(const char *name, Setting<double> &own, double usual) {
    const std::string path = std::string("optimizer.params.") + name;
    const yaml::Node *node = find(path);
    if (node && jsonText(*node) == "auto")
      return;
    const std::optional<double> given = number(path);
    if (!node && !own.written()) {
      own = {usual, Origin::Derived, own.key, {}, "DeepSpeed's default"};
      return;
    }
    if (!given)
      return;
    if (own.written() && *own != *given)
      return report(*node, Severity::Error, "deepspeed-mismatch", path,
                    std::string(name) + " is " + showNumber(*given) +
                        ", and the job file says " + showNumber(*own),
                    "write one number, or \"auto\" here");
    own.value = *given;
    own.origin = Origin::Written;
    own.key = path;
    own.at = {*zero.configFile, node->range.begin.line,
              node->range.begin.column};
  }

  /// That it is AdamW was checked where the file was read.
  void takeOptimizer() {
    OptimizerConfig &optimizer = job.optimizer;
    if (optimizer.name.written() && *optimizer.name != "adamw")
      return report(*find("optimizer.type"), Severity::Error,
                    "deepspeed-mismatch", "optimizer.type",
                    "the optimizer is AdamW, and the job file says " +
                        *optimizer.name,
                    "remove one of them");
    take("lr", optimizer.lr, 1e-3);
    take("weight_decay", optimizer.weightDecay, 0.0);
    takeList("betas", 2);
    takeList("eps", 1);
  }

  /// A hyperparameter of AdamW's description; both have the same defaults.
  void takeList(const char *name, size_t count) {
    const std::string path = std::string("optimizer.params.") + name;
    const yaml::Node *node = find(path);
    if (!node || jsonText(*node) == "auto")
      return;
    std::vector<double> values;
    const bool list = count > 1;
    if (list && node->isSequence())
      for (const yaml::Node *item : node->items)
        values.push_back(numberOf(*item).value_or(-1));
    else if (!list)
      values.push_back(numberOf(*node).value_or(-1));
    if (values.size() != count ||
        std::any_of(values.begin(), values.end(),
                    [](double v) { return v < 0 || v >= 1; }))
      return report(
          *node, Severity::Error, "invalid-value", path,
          "'" + path + "' must be " +
              (list ? std::to_string(count) + " numbers" : "a number") +
              " of at least 0 and below 1, this is " + yaml::shortText(*node),
          "");
    auto [own, added] = job.optimizer.values.try_emplace(name);
    if (!added && own->second.written() && own->second.value != values)
      return report(*node, Severity::Error, "deepspeed-mismatch", path,
                    std::string("the job file says other ") + name,
                    "write them once, or \"auto\" here");
    own->second = {
        values,
        Origin::Written,
        path,
        {*zero.configFile, node->range.begin.line, node->range.begin.column},
        ""};
  }

  const PlanOptions &options;
  JobConfig &job;
  const DeepspeedSettings &zero;
  DiagnosticEngine &engine;
  const yaml::Node *root = nullptr; // of the JSON
};

} // namespace

void noteDeepspeedKeys(const PlanOptions &options, const JobConfig &job,
                       DiagnosticEngine &engine) {
  const auto &zero = job.accelerate.deepspeed;
  if (!zero || !zero->fileRead)
    return;
  DiagnosticEngine silent; // it was read already
  const auto document =
      yaml::parseFile(*zero->configFile, options.texts, silent);
  if (!document || !document->root())
    return;
  std::string prefix;
  const DiskConfig &disk = job.disk;
  std::vector<std::string> read = {
      disk.buffers.key,    disk.readAhead.key,  disk.writeBehind.key,
      disk.blockBytes.key, disk.queueDepth.key, job.offloadActivations.key};
  if (disk.threads.key.starts_with("aio."))
    read.insert(read.end(), {"aio.thread_count", "aio.intra_op_parallelism"});
  noteKeysWithoutBytes(*zero->configFile,
                       deepspeedRoot(*document->root(), prefix), read, engine);
}

void takeDeepspeed(const PlanOptions &options, PlanInputs &inputs,
                   DiagnosticEngine &engine) {
  if (inputs.executor == FrameworkKind::AccelRun) {
    if (inputs.job.accelerate.deepspeed)
      DeepspeedTaker(options, inputs, engine).run();
    // An error ends the reading, so that no key is known to be unread.
    if (engine.hasErrors())
      return;
  }
  noteDeepspeedKeys(options, inputs.job, engine);
}

} // namespace accel
