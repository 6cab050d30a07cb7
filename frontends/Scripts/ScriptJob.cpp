//===- ScriptJob.cpp - A job as people start it ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ScriptJob.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/Scripts/Command.h"
#include "frontends/Scripts/ReadSettings.h"
#include "frontends/Scripts/RemovedArguments.h"
#include "frontends/Scripts/TrainerRules.h"
#include "frontends/Scripts/TrlConfigs.h"
#include "frontends/Scripts/TrlLaunch.h"

#include <algorithm>
#include <filesystem>

namespace accel::scripts {
namespace {

namespace fs = std::filesystem;

/// What messages call the options of accel-opt.
constexpr const char *optionsName = "<options>";

bool looksLikeFile(const std::string &text) {
  const std::string suffix = fs::path(text).extension().string();
  return suffix == ".yaml" || suffix == ".yml" || suffix == ".json";
}

class JobAssembler {
public:
  JobAssembler(const ScriptInputs &inputs, const LoadOptions &options,
               DiagnosticEngine &engine)
      : inputs(inputs), options(options), engine(engine), accelerate(nodes) {}

  std::optional<JobConfig> run() {
    if (!readCommandLine() || !readFiles() || !readConfig() || !readLaunch() ||
        !readBase() || !areModelled())
      return std::nullopt;
    Recipe recipe(reader(), inputs.versions, options.accelerate.forPlanning,
                  nodes, engine);
    if (command && command->program == Program::Trl &&
        readerOfTask(command->task) && // whose arguments are known
        isAtLeast(inputs.versions.trl, "1.10"))
      recipe.stopAtUnknown();
    for (const auto &[path, root] : recipes)
      recipe.addFile(path, *root);
    if (command)
      recipe.addWords(arguments, [](const Word &) { return false; });
    addOptions(recipe);
    if (engine.hasErrors() && recipe.given().all().empty() && !hasScript())
      return std::nullopt;
    SettingsReader settingsReader(
        recipe, hasScript(), accelerate,
        [&](const std::string &model) {
          return huggingface::modelTypeOf(inputs.model.empty() ? model
                                                               : inputs.model);
        },
        nodes, engine);
    ScriptSettings settings = settingsReader.read();
    completeMapping();
    if (failed)
      return std::nullopt;
    auto config = parseAccelerate(baseFile(settings), accelerate.root(), "", {},
                                  options.accelerate, engine);
    if (!config)
      return std::nullopt;
    JobConfig job = defaultJob(std::move(*config));
    apply(std::move(settings), job);
    settingsReader.addEffective(job.accelerate.effective);
    settleCheckpointForm(recipe, job);
    checkTrainerRules(job, recipe, hasScript(), fallbackFile(), options,
                      engine);
    return job;
  }

private:
  const ScriptInputs &inputs;
  const LoadOptions &options;
  DiagnosticEngine &engine;
  NodeStore nodes;
  AccelerateMapping accelerate;
  std::optional<Command> command;
  std::vector<Word> arguments; // of the script, without the files it reads
  std::vector<std::pair<std::string, const yaml::Node *>> recipes;
  std::string accelerateFile;
  TrlLaunch launch;
  bool failed = false;

  bool fail(const char *code, const std::string &file,
            const std::string &message, const std::string &hint = "",
            const SourceRange &at = {}) {
    Diagnostic d;
    d.code = code;
    d.file = file;
    d.message = message;
    d.hint = hint;
    d.setRange(at);
    engine.report(std::move(d));
    failed = true;
    return false;
  }

  bool hasScript() const { return command || !recipes.empty(); }

  //===--- What is read ---------------------------------------------------===//

  bool readCommandLine() {
    if (inputs.command.empty())
      return true;
    command = readCommand(placeWords(inputs.command, commandLineName, engine),
                          nodes, engine);
    if (!command)
      return false;
    if (options.accelerate.forPlanning &&
        (command->task == "kto" || command->task == "reward" ||
         command->program == Program::Trl) &&
        !readerOfTask(command->task))
      return fail(notSupportedCode, commandLineName,
                  "training by '" + printable(command->task) +
                      "' is not modelled yet",
                  "sft, dpo and grpo are modelled", command->scriptRange);
    return true;
  }

  const yaml::Node *parse(const std::string &path) {
    const yaml::FileTexts &texts = options.accelerate.texts;
    const std::optional<std::string> own = trlConfigText(path);
    auto document = own && !texts.count(path)
                        ? yaml::parseText(path, *own, engine)
                        : yaml::parseFile(path, texts, engine);
    if (!document)
      return nullptr;
    const yaml::Node *root = document->root();
    if (!root || !root->isMapping()) {
      fail("not-a-mapping", path,
           !root || root->isNull()
               ? std::string("the file is empty")
               : std::string("the file holds ") + yaml::describe(root->kind) +
                     ", not keys and values",
           "write arguments as 'name: value' (YAML) or an object (JSON)");
      return nullptr;
    }
    nodes.keep(std::move(document));
    return root;
  }

  bool readFiles() {
    for (const std::string &path : inputs.trainerFiles) {
      const yaml::Node *root = parse(path);
      if (!root)
        return false;
      if (root->find("compute_environment") || root->find("distributed_type"))
        return fail("wrong-file", path,
                    "is an accelerate file, not a file of a script's arguments",
                    "pass it as CONFIG.yaml, without --trainer");
      recipes.emplace_back(path, root);
    }
    if (!command)
      return true;
    // Files that the script reads itself.
    const std::vector<Word> &words = command->arguments;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string &text = words[i].text;
      std::string path;
      yaml::Range at = words[i].range;
      const bool before = i > 0 && words[i - 1].text.starts_with("--") &&
                          words[i - 1].text.find('=') == std::string::npos;
      if (text == "--config" && i + 1 < words.size()) {
        path = words[++i].text;
        at = words[i].range;
      } else if (text.starts_with("--config=")) {
        path = text.substr(9);
      } else if (!text.starts_with("-") && looksLikeFile(text) && !before &&
                 text.find('=') == std::string::npos) {
        path = text;
      } else {
        arguments.push_back(words[i]);
        continue;
      }
      std::error_code ignored;
      if (!fs::exists(path, ignored))
        return fail("file-not-found", commandLineName,
                    "'" + printablePath(path) + "' is not there",
                    "the script would read its arguments from it", at);
      const yaml::Node *root = parse(path);
      if (!root)
        return false;
      recipes.emplace_back(path, root);
    }
    return true;
  }

  bool areModelled() {
    for (const auto &[path, root] : recipes)
      if (const yaml::Node *key = llamaFactoryV1Key(*root))
        return fail(notSupportedCode, path,
                    "'" + key->text +
                        "' is a key of LLaMA-Factory v1, whose recipes start "
                        "a training loop of its own that is not modelled yet",
                    "write a recipe of llamafactory-cli train without USE_V1: "
                    "model_name_or_path, stage, finetuning_type",
                    key->range);
    return true;
  }

  /// CONFIG.yaml: an accelerate YAML, or one more file of arguments.
  bool readConfig() {
    if (inputs.config.empty())
      return true;
    const yaml::Node *root = parse(inputs.config);
    if (!root)
      return false;
    if (readerOf(*root)) {
      recipes.emplace_back(inputs.config, root);
      return true;
    }
    if (isJobFile(*root))
      return fail("wrong-file", inputs.config,
                  "a job.yaml says itself how it is trained; a script's "
                  "arguments do not go with it",
                  "write them as keys of the job.yaml, or pass an "
                  "accelerate YAML");
    accelerateFile = inputs.config;
    accelerate.start(*root, accelerateFile);
    return true;
  }

  /// What recipes tell the launcher: trl's, which a recipe alone is for too.
  bool readLaunch() {
    if (command ? command->program != Program::Trl : !isTrl(reader()))
      return true;
    const size_t errors = engine.errors();
    const Recipe script(reader(), inputs.versions,
                        options.accelerate.forPlanning, nodes, engine);
    for (auto &[path, root] : recipes)
      root = takeLaunchKeys(path, *root, script, launch, nodes, engine);
    return engine.errors() == errors;
  }

  /// The accelerate YAML that the command names, and the launcher's flags.
  bool readBase() {
    const size_t errors = engine.errors();
    const NamedFile named = accelerateFileOf(command ? &*command : nullptr,
                                             launch, inputs.versions, engine);
    if (engine.errors() > errors)
      return false;
    if (!named.name.empty()) {
      if (!accelerateFile.empty())
        return fail("wrong-file", named.file,
                    std::string("the ") +
                        (named.file == commandLineName ? "command" : "recipe") +
                        " names an accelerate file beside " +
                        printablePath(accelerateFile),
                    "leave one of them out", named.at);
      const yaml::Node *root = parse(named.name);
      if (!root)
        return false;
      accelerateFile = named.name;
      accelerate.start(*root, accelerateFile);
    }
    GivenArguments flags = launch.flags;
    if (command)
      for (const auto &[name, flag] : command->flags.all())
        flags.add(flag);
    accelerate.addFlags(flags, engine);
    return true;
  }

  Reader reader() const {
    if (command) {
      if (command->program == Program::Axolotl)
        return Reader::Axolotl;
      if (command->program == Program::LlamaFactory)
        return Reader::LlamaFactory;
      if (auto named = readerOfTask(command->task))
        return *named;
    }
    for (const auto &[path, root] : recipes)
      if (auto known = readerOf(*root))
        return *known;
    return Reader::Trainer;
  }

  void addOptions(Recipe &recipe) {
    std::vector<std::string> words;
    for (const OwnOption &option : inputs.options)
      words.push_back(option.typed);
    const std::vector<Word> placed = placeWords(words, optionsName, engine);
    for (size_t i = 0; i < placed.size(); ++i) {
      const auto &[name, value, typed] = inputs.options[i];
      Given given;
      given.name = name;
      given.written = typed;
      given.file = optionsName;
      given.key = placed[i].range;
      DiagnosticEngine ignored;
      if (value.starts_with('{')) {
        auto document = yaml::parseText("option.json", value, ignored);
        if (!document || !document->root())
          continue;
        given.value =
            nodes.copy(*document->root(), optionsName, &placed[i].range);
        nodes.keep(std::move(document));
      } else {
        given.value = nodes.plain(optionsName, placed[i].range, value);
      }
      recipe.addOwn(std::move(given));
    }
  }

  //===--- What Accelerate is told ----------------------------------------===//

  std::string baseFile(const ScriptSettings &settings) const {
    return !accelerateFile.empty()   ? accelerateFile
           : !settings.file.empty()  ? settings.file
           : !inputs.command.empty() ? commandLineName
                                     : optionsName;
  }

  /// Ranks and paradigm, where no YAML says them.
  void completeMapping() {
    auto at = [&](const Location &place) {
      yaml::Range range;
      range.begin = {std::max(place.line, 1), std::max(place.column, 1), 0};
      range.end = range.begin;
      return range;
    };
    const bool withoutFile = accelerateFile.empty();
    std::optional<int64_t> machines;
    if (command && command->machines) {
      machines = **command->machines;
      accelerate.set(
          "", "num_machines",
          nodes.integer(commandLineName, at(command->machines->at), *machines));
    }
    // A recipe's `env` goes before the shell's.
    std::optional<Setting<int64_t>> perMachine = launch.devices;
    if (!perMachine && command)
      perMachine = command->processesPerMachine;
    const Launcher launcher =
        command ? command->launcher : Launcher::Accelerate;
    if (perMachine &&
        (launcher != Launcher::Accelerate ||
         !accelerate.find("", "num_processes")) &&
        launcher != Launcher::Python)
      accelerate.set("", "num_processes",
                     nodes.integer(perMachine->at.file, at(perMachine->at),
                                   **perMachine * machines.value_or(1)));
    if (inputs.processes)
      accelerate.set("", "num_processes",
                     nodes.integer(optionsName, {}, *inputs.processes));
    const char *standard = command           ? commandLineName
                           : recipes.empty() ? optionsName
                                             : recipes[0].first.c_str();
    if (command && command->launcher == Launcher::Python && withoutFile)
      accelerate.setDefault("", "num_processes",
                            nodes.integer(standard, {}, 1));
    const yaml::Node *count = accelerate.find("", "num_processes");
    if (!count && withoutFile) {
      fail("no-processes", standard,
           "nothing says how many processes the job has",
           command && command->launcher == Launcher::Torchrun
               ? "write --nproc_per_node N"
               : "pass --num-processes N");
      return;
    }
    const bool several =
        count && count->kind == yaml::Kind::Int && count->integer > 1;
    const yaml::Node *cpu = accelerate.find("", "use_cpu");
    const bool onCpu = cpu && cpu->boolean;
    const char *plain = several ? (onCpu ? "MULTI_CPU" : "MULTI_GPU") : "NO";
    const std::string type = accelerate.type();
    if (type.empty())
      accelerate.set("", "distributed_type", nodes.text(standard, {}, plain));
    else if (inputs.processes && several && type == "NO")
      accelerate.set("", "distributed_type",
                     nodes.text(optionsName, {}, plain));
    else if (inputs.processes && !several &&
             (type == "MULTI_GPU" || type == "MULTI_CPU"))
      accelerate.set("", "distributed_type", nodes.text(optionsName, {}, "NO"));
    if (!withoutFile)
      return;
    accelerate.setDefault("", "compute_environment",
                          nodes.text(standard, {}, "LOCAL_MACHINE"));
    accelerate.setDefault("", "mixed_precision",
                          nodes.text(standard, {}, "no"));
    accelerate.setDefault("", "machine_rank", nodes.integer(standard, {}, 0));
    if (machines.value_or(1) > 1) { // where the launcher's ranks meet
      accelerate.setDefault("", "main_process_ip",
                            nodes.text(standard, {}, "127.0.0.1"));
      accelerate.setDefault("", "main_process_port",
                            nodes.integer(standard, {}, 29500));
    }
  }

  //===--- What the job is ------------------------------------------------===//

  /// Of a default, which stands in no file.
  std::string fallbackFile() const {
    return recipes.empty() ? commandLineName : recipes.front().first;
  }

  template <typename T>
  void at(const Setting<T> &setting, Severity severity, const char *code,
          const std::string &message, const std::string &hint) {
    Diagnostic d = diagnosticAt(setting, severity, code, message, hint);
    if (d.file.empty())
      d.file = fallbackFile();
    engine.report(std::move(d));
  }

  /// BatchSamplerShard with split_batches (accelerate/data_loader.py).
  void splitBatch(ScriptSettings &settings, int64_t ranks) {
    Setting<std::optional<int64_t>> &batch = settings.microBatch;
    if (**batch % ranks != 0)
      return at(settings.splitsBatches, Severity::Error, "invalid-value",
                batch.key + " is " + std::to_string(**batch) +
                    ", which split_batches cannot deal to " +
                    std::to_string(ranks) +
                    " ranks; Accelerate stops with a ValueError",
                "choose a multiple of " + std::to_string(ranks));
    *batch.value /= ranks;
    batch.why = "split_batches deals it to the ranks";
  }

  void apply(ScriptSettings settings, JobConfig &job) {
    const bool zero = job.accelerate.deepspeed.has_value();
    // A JSON of DeepSpeed that says other sizes than the script stops the run.
    auto size = [&](Setting<std::optional<int64_t>> &mine, auto &theirs,
                    auto current) {
      if (!mine.value)
        return;
      if (zero && current && *current != *mine.value &&
          !job.accelerate.deepspeed->configFile.value.empty())
        engine.report(diagnosticAt(
            theirs, Severity::Error, "deepspeed-mismatch",
            theirs.key + " is " + std::to_string(*current) + ", and " +
                mine.key + " " + std::to_string(*mine.value) +
                "; Trainer stops with a ValueError",
            "write \"auto\" in the JSON file"));
    };
    if (zero) {
      size(settings.microBatch, job.data.microBatch,
           job.accelerate.deepspeed->microBatch.written()
               ? *job.accelerate.deepspeed->microBatch
               : std::optional<int64_t>());
      size(settings.accumulation, job.accumulation,
           job.accelerate.deepspeed->gradientAccumulation.written()
               ? *job.accelerate.deepspeed->gradientAccumulation
               : std::optional<int64_t>());
    }
    if (settings.splitsBatches.value && settings.microBatch.value)
      splitBatch(settings, *job.accelerate.numProcesses);
    if (settings.microBatch.value) {
      job.data.microBatch = settings.microBatch;
      *job.data.microBatch.value *= settings.sequencesPerSample;
    }
    if (settings.accumulation.value) {
      const auto &from = settings.accumulation;
      job.accumulation = {**from, from.origin, from.key, from.at, from.why};
    }
    if (settings.sequenceLength.value)
      job.data.sequenceLength = settings.sequenceLength;
    if (!settings.model.value.empty() && job.model.value.empty())
      job.model = settings.model;
    auto rate = [](Setting<double> &into,
                   const Setting<std::optional<double>> &from) {
      if (from.value)
        into = {*from.value, from.origin, from.key, from.at, from.why};
    };
    rate(job.optimizer.lr, settings.learningRate);
    rate(job.optimizer.weightDecay, settings.weightDecay);
    rate(job.optimizer.maxGradNorm, settings.maxGradNorm);
    if (settings.adapter)
      job.adapter = settings.adapter;
    if (!settings.trainable->empty())
      job.trainable = settings.trainable;
    if (settings.ownShards.value)
      applyOwnShards(settings.ownShards, job);
    job.loadDtype = settings.loadDtype;
    job.reentrantCheckpointing = settings.reentrantCheckpointing;
    job.transformersTrainer.value = settings.trainer != TrainerKind::None;
    if (const auto &base = settings.quantization; !base->empty()) {
      std::string problem;
      job.quantization = parseQuantization(*base, problem);
      if (job.quantization) {
        job.quantization->at = base.at;
        job.quantization->key = base.key;
        job.quantization->keepsScalesUnderFsdp2 = settings.owner == "axolotl";
      } else {
        fail("invalid-value", base.at.file, problem);
      }
    }
    job.script = std::move(settings);
  }

  /// fully_shard by transformers: its mesh, and dtypes by autocast alone or by
  /// a policy of its own.
  void applyOwnShards(const Setting<std::optional<OwnShards>> &setting,
                      JobConfig &job) {
    const OwnShards &own = **setting;
    AccelerateConfig &a = job.accelerate;
    const int64_t ranks = *a.numProcesses;
    plan::Mesh mesh = plan::Mesh::dataParallel();
    // Neighbours share experts (mesh dimensions efsdp, ep), and dense layers
    // are sharded over both. Ranks of tp are among those of ep: the axis is of
    // what they leave, which read other samples.
    const int64_t others = own.experts > 1 ? own.experts / own.tensor : 1;
    mesh.resize("dp_shard", own.shards / others);
    mesh.resize("dp_replicate", own.copies);
    if (own.experts > 1)
      mesh.resize(plan::expertAxis, others);
    if (own.tensor > 1)
      mesh.resize("tp", own.tensor);
    if (mesh.ranks() != ranks) {
      const bool splits = own.tensor > 1;
      return at(setting, Severity::Error, "invalid-value",
                "distributed_config asks for " + std::to_string(own.shards) +
                    " x " + std::to_string(own.copies) +
                    (splits ? " x " + std::to_string(own.tensor) : "") +
                    " ranks, and the job has " + std::to_string(ranks) +
                    "; torch stops with a RuntimeError",
                std::string("fsdp_size x dp_replicate_size ") +
                    (splits ? "x tp_size " : "") +
                    "is the number of processes");
    }
    a.mesh = {mesh, Origin::Written, setting.key, setting.at, setting.why};
    a.restUnits.value = RestUnits::EmbeddingAndTail;
    PrecisionPolicy policy;
    if (own.halves) {
      policy.param = plan::DType::BF16;
      policy.reduce = plan::DType::F32;
      policy.castInputs = true;
    }
    policy.autocast = *a.mixedPrecision != MixedPrecision::No;
    policy.lossScaling = *a.mixedPrecision == MixedPrecision::Fp16;
    if (policy.autocast) // Accelerate's convert_outputs_to_fp32
      policy.output = plan::DType::F32;
    job.precision = {policy, Origin::Derived, setting.key, setting.at,
                     own.halves ? "fsdp_mixed_precision"
                                : "distributed_config has no policy of dtypes: "
                                  "shards are gathered and gradients reduced "
                                  "in their own dtype"};
    for (EffectiveValue &row : a.effective) {
      const bool ofMesh = row.key == "mesh";
      if (!ofMesh && row.key != "precision" && row.key != "other parameters")
        continue;
      row.why = "distributed_config";
      if (ofMesh)
        row.effective =
            "dp_replicate " + std::to_string(own.copies) + ", dp_shard " +
            std::to_string(own.shards / others) +
            (own.experts > 1 ? ", ep " + std::to_string(others) : "") +
            (own.tensor > 1 ? ", tp " + std::to_string(own.tensor) : "");
      else if (row.key == "precision")
        row.effective =
            own.halves ? std::string("compute bf16, reduce fp32")
            : policy.autocast
                ? std::string("autocast in ") + toString(*a.mixedPrecision) +
                      ", gather as stored, reduce as stored"
                : std::string("compute as stored, reduce as stored");
    }
  }
};

} // namespace

bool isRecipeFile(const std::string &path, const yaml::FileTexts &texts) {
  DiagnosticEngine quiet;
  auto document = yaml::parseFile(path, texts, quiet);
  return document && document->root() && readerOf(*document->root());
}

LoadedConfig loadScriptJob(const ScriptInputs &inputs,
                           const LoadOptions &options,
                           DiagnosticEngine &engine) {
  LoadedConfig result;
  result.job = JobAssembler(inputs, options, engine).run();
  result.outcome = engine.outcome();
  return result;
}

} // namespace accel::scripts
