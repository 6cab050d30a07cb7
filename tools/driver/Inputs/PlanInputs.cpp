//===- PlanInputs.cpp - What a plan is made of ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/PlanInputs.h"

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/HuggingFace/Positions.h"
#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/HuggingFace/Quantized.h"
#include "frontends/HuggingFace/Safetensors.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "frontends/ModuleTree/ModuleTree.h"
#include "frontends/TorchExport/Describe.h"
#include "passes/Frameworks/ExecutorOf.h"
#include "tools/driver/Inputs/AdapterInputs.h"
#include "tools/driver/Inputs/ArrayInputs.h"
#include "tools/driver/Inputs/CheckInputs.h"
#include "tools/driver/Inputs/CompileInputs.h"
#include "tools/driver/Inputs/DdpInputs.h"
#include "tools/driver/Inputs/DeepspeedInputs.h"
#include "tools/driver/Inputs/Fp8Inputs.h"
#include "tools/driver/Inputs/LigerInputs.h"
#include "tools/driver/Inputs/LoopInputs.h"
#include "tools/driver/Inputs/MachineInputs.h"
#include "tools/driver/Inputs/MegatronInputs.h"
#include "tools/driver/Inputs/MeshInputs.h"
#include "tools/driver/Inputs/OpenSizes.h"
#include "tools/driver/Inputs/OptimizerInputs.h"
#include "tools/driver/Inputs/PrecisionInputs.h"
#include "tools/driver/Inputs/TowerInputs.h"

#include <algorithm>
#include <filesystem>

namespace accel {
namespace {

namespace fs = std::filesystem;

class InputReader {
public:
  InputReader(const PlanOptions &options, DiagnosticEngine &engine,
              const PlanInputs *known)
      : options(options), engine(engine), known(known) {}

  std::optional<PlanInputs> run() {
    LoadOptions load;
    load.accelerate.version = options.accelerateVersion;
    load.accelerate.deepspeedVersion = options.script.versions.deepspeed;
    if (options.torchVersion) {
      load.accelerate.torchVersion = *options.torchVersion;
      load.accelerate.torchGiven = true;
    }
    load.modelRequired = options.model.empty();
    load.accelerate.texts = options.texts;
    LoadedConfig loaded = loadJob(options.config, options.hasConfig,
                                  options.model, options.script, load, engine);
    if (!loaded.job)
      return std::nullopt;
    inputs.job = std::move(*loaded.job);
    inputs.torchVersion = options.torchVersion;
    if (!inputs.torchVersion && inputs.job.torchVersion.written())
      inputs.torchVersion = *inputs.job.torchVersion;
    takeScriptOptions();
    if (!readModel() || engine.hasErrors()) {
      if (!job().isJob) // accel-run's reading is not done
        noteDeepspeedKeys(options, job(), engine);
      return std::nullopt;
    }
    // --adapter: the reference is the model without it.
    if (auto &reference = inputs.job.script.reference;
        inputs.adapter && *reference == ReferenceModel::Second)
      reference.value = ReferenceModel::Itself;
    if (!chooseExecutor())
      return std::nullopt;
    if (!known)
      reportMesh(inputs, options, engine);
    if (inputs.executor == FrameworkKind::Megatron &&
        !takeMegatronModel(inputs, known, engine))
      return std::nullopt;
    takeDeepspeed(options, inputs, engine);
    chooseOptimizer(options, inputs, engine);
    chooseSizes();
    checkArrays(inputs, options, engine);
    chooseTarget();
    takeMachines(inputs, options, engine);
    checkInputs(inputs, options, engine);
    checkLiger(inputs, engine);
    checkCompiled(inputs, engine);
    checkFp8(inputs, engine);
    checkDdp(inputs, options, engine);
    takeImages(inputs, options, engine);
    reportTower(inputs, options, engine);
    checkInnerAxes(inputs, options, engine);
    checkLoop(inputs, engine);
    checkMegatron(inputs, engine);
    readAllocator();
    fillTraining();
    if (options.tunePrecision)
      readPrecisions(inputs, options, engine);
    if (engine.hasErrors())
      return std::nullopt;
    return std::move(inputs);
  }

private:
  const JobConfig &job() const { return inputs.job; }

  void report(Severity severity, std::string code, const Location &at,
              std::string key, std::string message, std::string hint = "") {
    engine.report(diagnosticAt(at, std::move(key), severity, std::move(code),
                               std::move(message), std::move(hint),
                               options.config));
  }

  /// What the command line says of the script goes before the file.
  void takeScriptOptions() {
    JobConfig &job = inputs.job;
    if (options.quantization)
      job.quantization = options.quantization;
    auto set = [](auto &setting, auto value, const char *key) {
      setting.value = value;
      setting.key = key;
      setting.origin = Origin::Written;
    };
    if (options.loadDtype)
      set(job.loadDtype, options.loadDtype, "--dtype");
    if (options.trainerScript)
      set(job.transformersTrainer, true, "--trainer-script");
    if (options.reentrant)
      set(job.reentrantCheckpointing, true, "--reentrant");
    if (options.nonReentrant)
      set(job.reentrantCheckpointing, false, "--gradient-checkpointing");
  }

  bool readModel() {
    std::string path =
        options.model.empty() ? job().model.value : options.model;
    if (path.empty()) {
      report(Severity::Error, "no-model", {}, "", "no model is given",
             "pass --model with a Hugging Face folder or a name of the Hub, or "
             "set 'model' in a job.yaml");
      return false;
    }
    if (known) {
      inputs.model = known->model;
      inputs.job.quantization = known->job.quantization;
      inputs.dequantizesExperts = known->dequantizesExperts;
      inputs.adapter = known->adapter;
      inputs.adapterWeights = known->adapterWeights;
      inputs.held = known->held;
      inputs.training = known->training;
      inputs.modelName = known->modelName;
      return true;
    }
    const std::string named = path;
    path = huggingface::modelFolder(named);
    const bool cached = !path.empty() && path != named;
    if (path.empty())
      path = named;
    else if (cached)
      report(Severity::Note, "hub-cache", job().model.at, job().model.key,
             "'" + printable(named) +
                 "' is in the Hub's cache: " + printablePath(path),
             "");
    const std::string given = path;
    path = baseModelPath(path, engine);
    if (path.empty())
      return false;
    inputs.training.randomSeed = job().dropoutSeed.value;
    inputs.training.onNan = job().onNan.value;
    inputs.training.deterministic = job().deterministic.value;
    std::error_code error;
    if (fs::path(path).extension() == ".pt2")
      return readExported(path) &&
             readAdapterInputs(options, given, inputs, engine);
    fs::path config = path;
    if (fs::is_directory(config, error))
      config /= "config.json";
    if (!fs::exists(config, error)) {
      // A job file's reader has said it.
      if (options.model.empty() && job().isJob && engine.hasErrors())
        return false;
      // accel-run wants weights and a tokenizer too.
      if (!job().isJob && !fs::exists(path, error))
        if (auto published = huggingface::publishedModel(path))
          return readPublished(*published, given, path);
      report(Severity::Error, "no-model", job().model.at, "model",
             "there is no '" + printablePath(config.string()) + "'",
             huggingface::isHubName(named) && !fs::exists(named, error)
                 ? "the model is a Hugging Face folder with a config.json; " +
                       huggingface::hubHint(named)
                 : "the model is a Hugging Face folder with a config.json");
      return false;
    }
    auto model = huggingface::readModelConfig(config.string(), engine);
    if (!model)
      return false;
    fs::path folder = fs::path(absolutePath(config.string())).parent_path();
    inputs.modelName = folder.filename().string();
    if (inputs.modelName == "model") // says nothing
      inputs.modelName = folder.parent_path().filename().string();
    if (cached) // the folder is named by its commit
      inputs.modelName = fs::path(named).filename().string();
    inputs.training.modelPath = folder.string();
    std::optional<QuantizationConfig> packed;
    huggingface::readQuantizationFile(config.string(), packed, engine);
    return takeModel(std::move(*model), std::move(packed), given);
  }

  /// A model that is not on this machine, by what is published of it.
  bool readPublished(const huggingface::PublishedModel &published,
                     const std::string &given, const std::string &name) {
    report(Severity::Note, "published-model", job().model.at, job().model.key,
           "the config.json of " + published.name +
               " as it was published is taken: '" + printable(name) +
               "' is not on this machine",
           huggingface::hubHint(name));
    const std::string file = published.name + "/config.json";
    auto model = huggingface::parseModelConfig(published.config, file, engine);
    if (!model)
      return false;
    inputs.modelName = fs::path(published.name).filename().string();
    std::optional<QuantizationConfig> packed;
    huggingface::readQuantization(published.config, file, packed, engine);
    return takeModel(std::move(*model), std::move(packed), given);
  }

  /// A config.json whose name is known, and its folder where it has one; then
  /// what stands beside it.
  bool takeModel(huggingface::ModelConfig model,
                 std::optional<QuantizationConfig> packed,
                 const std::string &given) {
    const bool narrow =
        packed && packed->values.format == plan::WeightFormat::Mxfp4;
    if (!settleQuantization(inputs.job, std::move(packed), options.config,
                            engine))
      return false;
    inputs.dequantizesExperts = narrow && !inputs.job.quantization;
    if (const auto &coefficient = job().script.balancing; *coefficient)
      huggingface::setBalancing(model, **coefficient);
    inputs.model = Model(std::move(model));
    inputs.training.modelName = inputs.modelName;
    return readWeights(inputs.training.modelPath) &&
           readAdapterInputs(options, given, inputs, engine);
  }

  /// A program of torch.export, whose file holds its buffers and perhaps its
  /// weights.
  bool readExported(const std::string &path) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      report(Severity::Error, "no-model", job().model.at, "model",
             "there is no '" + printablePath(path) + "'",
             "tools/export-model writes one");
      return false;
    }
    auto program = torchexport::readProgram(path, engine);
    if (!program)
      return false;
    const bool hasWeights = program->hasWeights;
    inputs.model = Model(std::move(*program), {});
    inputs.modelName = fs::path(path).stem().string();
    inputs.training.modelName = inputs.modelName;
    inputs.training.archive = absolutePath(path);
    const InitConfig &init = job().init.value;
    inputs.training.seed = init.seed; // of what the file does not have
    if (init.kind == InitConfig::Kind::Seed)
      return true;
    if (hasWeights && job().isJob)
      inputs.training.weightFiles = {absolutePath(path)};
    else if (init.kind == InitConfig::Kind::Pretrained) {
      report(Severity::Error, "no-weights", job().init.at, "init",
             "'init: pretrained', but '" + printablePath(path) +
                 "' was exported without values",
             "use 'init: {seed: 0}', or export with --weights");
      return false;
    }
    return true;
  }

  bool readWeights(const std::string &folder) {
    const InitConfig &init = job().init.value;
    inputs.training.seed = init.seed; // of what the weights do not have
    if (init.kind == InitConfig::Kind::Seed)
      return true;
    if (!job().isJob)
      return true; // nothing is loaded: only the plan is asked for
    auto weights = huggingface::readWeights(folder, engine);
    if (!weights)
      return false;
    if (weights->files.empty()) {
      if (init.kind == InitConfig::Kind::Pretrained) {
        report(Severity::Error, "no-weights", job().init.at, "init",
               "'init: pretrained', but '" + printablePath(folder) +
                   "' holds no safetensors",
               "use 'init: {seed: 0}' to start from random values");
        return false;
      }
      return true;
    }
    if (!huggingface::checkWeights(*weights, inputs.model.info(), folder,
                                   engine, &inputs.held))
      return false;
    for (const auto &file : weights->files)
      inputs.training.weightFiles.push_back(absolutePath(file.path));
    return true;
  }

  /// Command line first, then the job file, then a default with a note.
  void chooseSizes() {
    plan::Job &t = inputs.training;
    const DataConfig &data = job().data;
    t.sequenceLength = options.sequenceLength.value_or(0);
    if (!t.sequenceLength && data.sequenceLength.value)
      t.sequenceLength = *data.sequenceLength.value;
    t.microBatch = options.microBatch.value_or(0);
    if (!t.microBatch && data.microBatch.value)
      t.microBatch = *data.microBatch.value;
    takeGivenSizes(inputs, options, engine);
    takeExportedSizes(inputs, options, engine);
    if (!inputs.model.hasTokens()) {
      if (t.sequenceLength)
        report(Severity::Note, "ignored-key", data.sequenceLength.at,
               "data.sequence_length",
               "the sequence length has no effect: the model reads no tokens",
               "remove it");
      t.sequenceLength = 0;
    } else if (!t.sequenceLength) {
      t.sequenceLength = inputs.model.defaultLength();
      report(Severity::Note, "default-sequence-length", {}, "",
             "sequences are taken to be " + std::to_string(t.sequenceLength) +
                 " tokens long",
             "pass --seq-len");
    }
    const int64_t positions = inputs.model.maxPositions();
    // Rotary and ALiBi models compute any position, as transformers lets them.
    const bool table = !inputs.model.config() ||
                       huggingface::positionRows(*inputs.model.config()) > 0;
    if (inputs.model.hasTokens() && t.sequenceLength > positions)
      report(table ? Severity::Error : Severity::Warning, "sequence-too-long",
             data.sequenceLength.at, "data.sequence_length",
             "sequences of " + std::to_string(t.sequenceLength) +
                 " tokens are longer than the model's " +
                 std::to_string(positions) + " positions",
             table
                 ? "--seq-len " + std::to_string(positions) + " is the most: " +
                       std::to_string(t.sequenceLength - positions) + " less"
                 : "positions that it was not trained for are computed; "
                   "rope_scaling in config.json stretches them");
    if (!t.microBatch) {
      t.microBatch = 1;
      if (!options.maxBatch)
        report(Severity::Note, "default-micro-batch", {}, "",
               "each rank is taken to compute 1 sequence at a time",
               "pass --micro-batch");
    }
    fixOpenSizes(inputs, options, engine);
    followDeepspeed();
    t.accumulation = options.accumulation.value_or(job().accumulation.value);
    if (options.globalBatch)
      splitGlobalBatch();
    // The clock of a step counts picoseconds in 63 bits.
    constexpr int64_t mostMicroBatches = 100'000;
    if (t.accumulation > mostMicroBatches)
      report(Severity::Error, "invalid-size",
             options.accumulation || options.globalBatch
                 ? Location()
                 : job().accumulation.at,
             "gradient_accumulation_steps",
             "a step of " + std::to_string(t.accumulation) +
                 " micro-batches is too long to plan",
             "at most " + std::to_string(mostMicroBatches) +
                 " micro-batches a step are planned");
    t.vocab = inputs.model.vocabSize();
  }

  /// A disk has no bytes and no seconds of its own in the predictions.
  void warnOfDisks(const DeepspeedSettings &zero) {
    if (inputs.executor == FrameworkKind::AccelRun)
      return; // refused
    for (const auto *device : {&zero.offloadOptimizer, &zero.offloadParameters})
      if (**device == OffloadDevice::Nvme)
        engine.report(diagnosticAt(
            *device, Severity::Warning, "nvme-offload",
            "what is offloaded to NVMe is counted in the host's memory: the "
            "host holds less, the device what is said, and the time of reading "
            "and writing the disk is not in the step's",
            "measure the disk before relying on seconds or host memory"));
  }

  /// What "auto" of DeepSpeed's file is for this model, and the part of each
  /// sequence that a rank of its sequence parallelism computes.
  void followDeepspeed() {
    AccelerateConfig &accelerate = inputs.job.accelerate;
    if (!accelerate.deepspeed)
      return;
    checkRankGroups(*accelerate.deepspeed, accelerate.mesh->ranks(),
                    options.script.versions.deepspeed, engine);
    // accel-run compares the job's batches (DeepspeedInputs.cpp).
    if (inputs.executor != FrameworkKind::AccelRun &&
        *accelerate.sequenceParallel <= 1)
      checkBatchProduct(*accelerate.deepspeed, accelerate.mesh->ranks(),
                        engine);
    warnOfDisks(*accelerate.deepspeed);
    if (!inputs.model.config())
      return;
    resolveAuto(*accelerate.deepspeed,
                huggingface::hiddenSize(*inputs.model.config()));
    plan::Job &t = inputs.training;
    const auto &ranks = accelerate.sequenceParallel;
    if (*ranks <= 1 || !t.sequenceLength)
      return;
    const bool exchanged = sharesSequences();
    const std::string tokens = std::to_string(t.sequenceLength) + " tokens";
    if (t.sequenceLength % *ranks) {
      report(Severity::Error, "sequence-split", ranks.at, ranks.key,
             "sequences of " + tokens + " cannot be divided among sp_size " +
                 std::to_string(*ranks) + " ranks",
             "choose a multiple of " + std::to_string(*ranks));
      return;
    }
    if (exchanged) {
      plan::Mesh mesh = accelerate.mesh->onto("dp_shard");
      mesh.resize("dp_shard", mesh.ranks() / *ranks);
      mesh.resize("sp", *ranks);
      accelerate.mesh = {mesh, Origin::Written, ranks.key, ranks.at, ""};
      return;
    }
    t.sequenceLength /= *ranks;
    report(Severity::Note, "sequence-parallel", ranks.at, ranks.key,
           "each rank computes " + std::to_string(t.sequenceLength) + " of " +
               tokens + "; attention is counted over these alone",
           "");
  }

  /// Whether functions are made of ranks that exchange tokens for heads, as
  /// DeepSpeed's sequence parallelism does.
  bool sharesSequences() const {
    const DeepspeedSettings &zero = *job().accelerate.deepspeed;
    if (inputs.executor != FrameworkKind::Deepspeed || job().quantization ||
        compiledWhole(inputs) ||
        (inputs.adapter && inputs.adapter->magnitude) ||
        *zero.secondaryRanks > 1 || *zero.micsRanks > 1)
      return false;
    const std::optional<ModuleTree> tree = moduleTreeOf(inputs, options);
    return tree && !tree->attention.empty();
  }

  /// The sequences of a step, dealt to ranks and micro-batches.
  void splitGlobalBatch() {
    plan::Job &t = inputs.training;
    int64_t ranks =
        std::max<int64_t>(1, job().accelerate.mesh->size("dp_replicate") *
                                 job().accelerate.mesh->size("dp_shard"));
    int64_t each = ranks * t.microBatch;
    if (*options.globalBatch % each) {
      report(
          Severity::Error, "global-batch", {}, "",
          "--global-batch " + std::to_string(*options.globalBatch) +
              " is no multiple of " + std::to_string(ranks) + " ranks with " +
              std::to_string(t.microBatch) + " sequences each",
          "the nearest is " +
              std::to_string(std::max<int64_t>(
                                 1, (*options.globalBatch + each / 2) / each) *
                             each));
      return;
    }
    t.accumulation = *options.globalBatch / each;
  }

  /// The executor that the options name, or the one that would run the file.
  bool chooseExecutor() {
    inputs.executor = executorOf(job());
    if (!options.executor)
      return true;
    const FrameworkKind asked = *options.executor, launched = launchedBy(job());
    inputs.executor = asked;
    inputs.trainer = options.trainer;
    // Units, precision and prefetches were read as the file's executor has
    // them, whose keys are others; accel-run takes those of each.
    if (asked == FrameworkKind::AccelRun || asked == launched ||
        (asked == FrameworkKind::Ddp && launched == FrameworkKind::Single))
      return true;
    const AccelerateConfig &a = job().accelerate;
    const bool sharded = a.sharded();
    const auto [why, hint] = [&]() -> std::pair<std::string, std::string> {
      switch (asked) {
      case FrameworkKind::Fsdp1:
      case FrameworkKind::Fsdp2: {
        const std::string version = asked == FrameworkKind::Fsdp1 ? "1" : "2";
        if (launched == FrameworkKind::Fsdp1 ||
            launched == FrameworkKind::Fsdp2)
          return {std::string("the file is for ") + toString(launched),
                  "write fsdp_version: " + version +
                      "; 'accel-opt to-fsdp2 --to fsdp" + version +
                      "' rewrites an accelerate file with its other keys"};
        return {"the file does not ask for FSDP",
                "'distributed_type: FSDP' shards the model"};
      }
      case FrameworkKind::Deepspeed:
        return {"the file does not ask for DeepSpeed",
                "'distributed_type: DEEPSPEED' does"};
      case FrameworkKind::Megatron:
        return {"the file does not ask for Megatron-LM",
                "'distributed_type: MEGATRON_LM' does"};
      default:
        return {sharded ? "the file shards parameters, which ddp cannot"
                        : "the file does not ask for DDP",
                sharded ? "'distributed_type: MULTI_GPU' replicates them"
                        : "'distributed_type: MULTI_GPU' does"};
      }
    }();
    report(Severity::Error, "executor-choice", a.distributedType.at,
           a.distributedType.key,
           "--executor " +
               (options.trainer.empty() ? toString(asked) : options.trainer) +
               ": " + why,
           hint);
    return false;
  }

  void chooseTarget() {
    if (!options.target.empty())
      inputs.targetName = options.target;
    else if (!job().target.value.empty())
      inputs.targetName = job().target.value;
    else if (job().accelerate.cpu.value)
      inputs.targetName = "cpu";
    if (inputs.targetName.empty() && options.tune)
      report(Severity::Error, "no-target", {}, "",
             "a search for the fastest setting needs a device",
             "pass --target; 'accel-opt targets' lists them");
  }

  /// The allocator is torch's.
  void readAllocator() {
    if (options.allocatorConf.empty())
      return;
    bool unsupported = false;
    const std::string wrong = replay::readAllocatorRules(
        options.allocatorConf, inputs.allocator, unsupported);
    if (!wrong.empty())
      report(Severity::Error,
             unsupported ? notSupportedCode : "invalid-allocator-conf", {}, "",
             "--allocator-conf: " + printable(wrong, 200),
             unsupported ? "leave it out, for the default"
                         : "write it as PYTORCH_CUDA_ALLOC_CONF has it: "
                           "expandable_segments:True,max_split_size_mb:128");
  }

  void fillTraining() {
    plan::Job &t = inputs.training;
    const JobConfig &j = job();
    t.precision = toString(j.accelerate.mixedPrecision.value);
    t.lossScaling = j.precision.value.lossScaling;
    t.optimizer = j.optimizer.resolved();
    fillLoop(j, t);
  }

  const PlanOptions &options;
  DiagnosticEngine &engine;
  const PlanInputs *known;
  PlanInputs inputs;
};

} // namespace

std::optional<PlanInputs> readPlanInputs(const PlanOptions &options,
                                         DiagnosticEngine &engine,
                                         const PlanInputs *known) {
  return InputReader(options, engine, known).run();
}

} // namespace accel
