//===- EstimateCommand.cpp - accel-opt estimate-memory --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Estimate/AccelerateTable.h"
#include "frontends/Estimate/Sizes.h"
#include "frontends/Yaml/Yaml.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Inputs/OptimizerInputs.h"
#include "tools/driver/Options/Arguments.h"
#include "tools/driver/Session/Compile.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace accel;
using namespace accel::estimate;
using Json = nlohmann::ordered_json;

namespace {

/// What a step needs beside the weights, from a plan.
struct Activations {
  int64_t microBatch = 1, sequenceLength = 0;
  int64_t saved = 0, logits = 0; // bytes at the peak
  int64_t total() const { return saved + logits; }
};

struct Estimate {
  std::string model; // as on the command line
  ModuleTree base, full;
  ModelSizes table;
  std::vector<Row> rows;
  TrueSizes sizes;
  std::string optimizer = "AdamW";
  std::optional<Activations> activations;
  std::string whyNoActivations;
};

struct EstimateOptions {
  std::string library = "transformers", format = "text";
  std::string optim = "adamw_torch";
  std::vector<std::string> dtypes;
  bool trustRemoteCode = false;
  int64_t microBatch = 1, sequenceLength = 0;
};

/// Accelerate takes `-` for `_` in options, and several values for --dtypes.
std::vector<std::string> normalized(int argc, char **argv) {
  std::vector<std::string> words;
  bool dtypes = false;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    if (word.starts_with("--")) {
      size_t end = std::min(word.find('='), word.size());
      std::string name = word.substr(0, end);
      for (const char *known : {"--library-name", "--trust-remote-code"})
        if (name == known)
          for (size_t at = 2; at < end; ++at)
            if (word[at] == '-')
              word[at] = '_';
      dtypes = name == "--dtypes" && end == word.size();
      if (dtypes)
        continue; // each of its values gets the option
    } else if (dtypes && !word.starts_with("-")) {
      words.push_back("--dtypes");
    } else {
      dtypes = false;
    }
    words.push_back(std::move(word));
  }
  if (dtypes && (words.empty() || argv[argc - 1] == std::string("--dtypes")))
    words.push_back("--dtypes"); // without a value: a usage error
  return words;
}

class Estimator {
public:
  Estimator(const EstimateOptions &options, DiagnosticEngine &engine)
      : options(options), engine(engine) {}

  std::optional<Estimate> run(const std::string &model) {
    estimate.model = model;
    std::error_code failed;
    std::filesystem::path path = model;
    if (std::filesystem::is_directory(path, failed))
      path /= "config.json";
    file = path.string();
    if (options.library != "transformers") {
      engine.error(notSupportedCode, file,
                   "models of the library '" + options.library +
                       "' are not supported yet, only those of transformers");
      return std::nullopt;
    }
    if (!std::filesystem::exists(path, failed)) {
      engine.error("no-model", file, "there is no such model here",
                   "accel-opt reads folders: put the model's config.json into "
                   "one");
      return std::nullopt;
    }
    if (path.extension() == ".pt2") {
      engine.error(notSupportedCode, file,
                   "exported programs are not supported here, only folders "
                   "with a config.json",
                   "accel-opt plan --model " + file +
                       " says what training it takes");
      return std::nullopt;
    }
    if (!readTrees())
      return std::nullopt;
    estimate.table = modelSizes(estimate.base);
    for (const std::string &name : options.dtypes)
      estimate.rows.push_back(row(estimate.table, *parseDtype(name)));
    const auto *named = plan::findTransformersOptimizer(options.optim);
    plan::Optimizer optimizer;
    optimizer.name = named->optimizer;
    estimate.sizes = trueSizes(
        estimate.full, plan::OptimizerRule(optimizer, named->stateDtype));
    if (options.optim != "adamw_torch")
      estimate.optimizer = options.optim;
    planActivations();
    return std::move(estimate);
  }

private:
  const EstimateOptions &options;
  DiagnosticEngine &engine;
  std::string file;
  Estimate estimate;

  /// The class that Accelerate makes: AutoModel's, or that of the first
  /// AutoModelFor... that the file maps to code of its own. `text` becomes the
  /// file as Accelerate reads it: in float32.
  bool chooseBase(ModuleTreeOptions &base, std::string &text) {
    std::string error;
    if (!yaml::readWholeFile(file, 64 << 20, text, error)) {
      engine.error("no-model", file, "cannot be read: " + error);
      return false;
    }
    base.architecture = "base";
    Json config = Json::parse(text, nullptr, false);
    if (!config.is_object())
      return true; // reported where it is read
    Json single = config;
    single.erase("dtype");
    single.erase("torch_dtype");
    text = single.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (!config.contains("auto_map") || !config["auto_map"].is_object())
      return true;
    if (options.trustRemoteCode) {
      engine.error(notSupportedCode, file,
                   "the model comes with Python code of its own, which "
                   "accel-opt does not run",
                   "leave out --trust_remote_code to take the class of "
                   "transformers");
      return false;
    }
    for (const auto &[key, value] : config["auto_map"].items())
      if (key.starts_with("AutoModelFor")) {
        // The class of the same task in transformers.
        base.architecture.clear();
        std::string task = key.substr(std::string("AutoModel").size());
        if (config.contains("architectures") &&
            config["architectures"].is_array())
          for (const Json &name : config["architectures"])
            if (name.is_string() && name.get<std::string>().ends_with(task))
              base.architecture = name.get<std::string>();
        if (base.architecture.empty()) {
          engine.error(notSupportedCode, file,
                       "the file maps " + printable(key) +
                           ", and 'architectures' names no class for it");
          return false;
        }
        break;
      }
    return true;
  }

  bool readTrees() {
    ModuleTreeOptions base;
    std::string text;
    if (!chooseBase(base, text))
      return false;
    DiagnosticEngine own, again;
    std::optional<ModuleTree> small = readModuleTree(file, base, own);
    std::optional<ModuleTree> full;
    if (small) {
      full = readModuleTree(file, {}, own);
      small = parseModuleTree(text, file, base, again);
    }
    for (Diagnostic d : own.all()) {
      // Here the tree is all there is.
      if (d.code == "unknown-model" && !small) {
        d.severity = Severity::Error;
        d.code = notSupportedCode;
        d.message = d.message.substr(0, d.message.find(", so"));
      }
      engine.report(std::move(d));
    }
    if (!small)
      return false;
    estimate.base = std::move(*small);
    estimate.full = full ? std::move(*full) : estimate.base;
    return true;
  }

  void planActivations() {
    PlanOptions plan;
    plan.config = "one process";
    plan.configText = "distributed_type: 'NO'\nmixed_precision: bf16\n";
    plan.executor = "accel-run";
    plan.model = file;
    plan.microBatch = options.microBatch;
    plan.sequenceLength = options.sequenceLength;
    DiagnosticEngine own;
    CompileResult result = compile(plan, own);
    if (result.shown) {
      auto atPeak = [&](Holding holding) {
        return result.report.prediction.atPeak[static_cast<size_t>(holding)];
      };
      estimate.activations = Activations{
          result.shown->job.microBatch, result.shown->job.sequenceLength,
          atPeak(Holding::Activations), atPeak(Holding::Logits)};
      return;
    }
    for (const Diagnostic &d : own.all())
      if (d.severity == Severity::Error && estimate.whyNoActivations.empty())
        estimate.whyNoActivations = d.message;
  }
};

std::string millions(int64_t n) {
  char text[64];
  std::snprintf(text, sizeof text, n >= 1000000000 ? "%.2f B" : "%.3g M",
                static_cast<double>(n) / (n >= 1000000000 ? 1e9 : 1e6));
  return n < 100000 ? std::to_string(n) : text;
}

/// What Accelerate's table leaves out or gets wrong for this model.
std::vector<std::string> missing(const Estimate &e) {
  std::vector<std::string> out;
  auto lacks = missingParameters(e.full, e.base);
  int64_t elements = 0;
  for (const TreeParameter *p : lacks)
    elements += p->numel();
  if (elements)
    out.push_back(
        lacks[0]->fqn +
        (lacks.size() > 1 ? " and " + std::to_string(lacks.size() - 1) + " more"
                          : "") +
        ": " + millions(elements) + " parameters, " +
        formatBytes(4 * elements) + " in float32; it makes " +
        e.base.architecture + ", the file names " + e.full.architecture);
  int64_t again = 0;
  for (const TreeParameter &p : e.base.parameters)
    again += p.tiedTo >= 0 ? p.numel() : 0;
  if (again)
    out.push_back("tied weights: " + formatBytes(4 * again) +
                  " in float32 that it counts again");
  out.push_back("bfloat16: the same as float16");
  out.push_back("training in float16: it prints the larger of its parts, not "
                "their sum, 8 B per parameter instead of 16 and 2 while a step "
                "computes");
  if (e.activations)
    out.push_back(
        "activations: " + formatBytes(e.activations->saved) + " and logits " +
        formatBytes(e.activations->logits) + " at the peak of a step of " +
        std::to_string(e.activations->microBatch) + " x " +
        std::to_string(e.activations->sequenceLength) +
        " tokens in bf16 (a plan for accel-run, which recomputes pointwise "
        "operators)");
  else
    out.push_back("activations: not known here (" + e.whyNoActivations + ")");
  out.push_back(
      "int8 and int4: embeddings, norms and the head stay in 16 bits, "
      "and scales are added");
  if (e.sizes.bufferBytes)
    out.push_back("buffers: " + formatBytes(e.sizes.bufferBytes) +
                  " that it divides as if they were parameters");
  if (!e.full.quantization.empty())
    out.push_back("the checkpoint is quantized (" + e.full.quantization +
                  "); it counts float32 weights");
  out.push_back("what the device takes besides: context, libraries, allocator; "
                "and what sharding saves: accel-opt plan CONFIG.yaml --model " +
                e.model + " --target NAME");
  return out;
}

void printText(const Estimate &e) {
  std::fputs(table(e.model, e.rows).c_str(), stdout);
  const TrueSizes &s = e.sizes;
  std::printf("\n%s, %s parameters (%lld)\n\n", e.full.architecture.c_str(),
              millions(s.parameters).c_str(),
              static_cast<long long>(s.parameters));
  std::printf("  to load it                            bytes\n");
  for (const LoadedSize &l : s.loaded)
    std::printf("    %-24s %14s   %s\n", l.name.c_str(),
                formatBytes(l.bytes).c_str(), l.how.c_str());
  std::printf("\n  to train it with %-18s weights  gradients  "
              "optimizer     copies        sum\n",
              e.optimizer.c_str());
  for (const TrainingSize &t : s.training)
    std::printf("    %-32s %10s %10s %10s %10s %10s\n", t.name.c_str(),
                formatBytes(t.weights).c_str(),
                formatBytes(t.gradients).c_str(),
                formatBytes(t.optimizer).c_str(),
                t.casts ? formatBytes(t.casts).c_str() : "-",
                formatBytes(t.total()).c_str());
  if (e.activations)
    std::printf("    and activations of %lld x %lld tokens in bf16 %s\n",
                static_cast<long long>(e.activations->microBatch),
                static_cast<long long>(e.activations->sequenceLength),
                formatBytes(e.activations->total()).c_str());
  std::printf("\n  what Accelerate's table leaves out\n");
  for (const std::string &line : missing(e))
    std::printf("    - %s\n", line.c_str());
}

Json toJson(const Estimate &e) {
  Json rows = Json::array(), loaded = Json::array(), training = Json::array();
  for (const Row &r : e.rows)
    rows.push_back(
        {{"dtype", toString(r.dtype)},
         {"largest_layer_bytes", r.largestLayer},
         {"total_bytes", r.total},
         {"training_bytes", r.training ? Json(*r.training) : Json(nullptr)}});
  for (const LoadedSize &l : e.sizes.loaded)
    loaded.push_back({{"dtype", l.name}, {"bytes", l.bytes}, {"how", l.how}});
  for (const TrainingSize &t : e.sizes.training)
    training.push_back({{"precision", t.name},
                        {"bytes_per_parameter", t.bytesPerParameter},
                        {"weights_bytes", t.weights},
                        {"gradients_bytes", t.gradients},
                        {"optimizer_bytes", t.optimizer},
                        {"copies_bytes", t.casts},
                        {"total_bytes", t.total()},
                        {"how", t.how}});
  Json activations = nullptr;
  if (e.activations)
    activations = {{"micro_batch", e.activations->microBatch},
                   {"sequence_length", e.activations->sequenceLength},
                   {"saved_bytes", e.activations->saved},
                   {"logits_bytes", e.activations->logits}};
  return {{"model", e.model},
          {"model_type", e.full.modelType},
          {"accelerate",
           {{"class", e.base.architecture},
            {"largest_layers", e.table.largestLayers},
            {"rows", rows}}},
          {"class", e.full.architecture},
          {"parameters", e.sizes.parameters},
          {"buffer_bytes", e.sizes.bufferBytes},
          {"loaded", loaded},
          {"training", training},
          {"activations", activations},
          {"missing", missing(e)}};
}

} // namespace

int accel::estimateCommand(int argc, char **argv) {
  EstimateOptions options;
  Arguments arguments(
      "estimate-memory", "MODEL",
      "Prints what `accelerate estimate-memory` prints for a model folder, "
      "and\n"
      "what the model really takes. Nothing is downloaded or loaded.");
  arguments.addChoice("--library_name", {"timm", "transformers"},
                      options.library, "where the model comes from");
  arguments.addList("--dtypes", "float32 float16 int8 int4", options.dtypes,
                    "rows of the table");
  arguments.addFlag("--trust_remote_code", options.trustRemoteCode,
                    "as for Accelerate; accel-opt runs no code of models");
  arguments.addText("--optim", "NAME", options.optim,
                    "the optimizer to train with, as "
                    "TrainingArguments.optim names it");
  arguments.addCount("--micro-batch", "N", options.microBatch,
                     "sequences of the step whose activations are counted");
  arguments.addCount("--seq-len", "N", options.sequenceLength,
                     "tokens of each (default: the model's, at most 4096)");
  arguments.addChoice("--format", {"text", "json"}, options.format,
                      "text for people, json for programs");
  std::vector<std::string> words = normalized(argc, argv);
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  int exitCode = 0;
  if (!arguments.parse(static_cast<int>(pointers.size()), pointers.data(),
                       exitCode))
    return exitCode;
  if (arguments.positional.size() != 1) {
    std::fprintf(stderr,
                 "accel-opt estimate-memory: error: expected one MODEL, got "
                 "%zu\n",
                 arguments.positional.size());
    return exitUsage;
  }
  for (const std::string &name : options.dtypes)
    if (!parseDtype(name)) {
      std::string hint =
          didYouMean(name, {"float32", "float16", "int8", "int4"});
      std::fprintf(stderr,
                   "accel-opt estimate-memory: error: '--dtypes %s': expected "
                   "float32, float16, int8 or int4%s%s\n",
                   printable(name).c_str(), hint.empty() ? "" : "; ",
                   hint.c_str());
      return exitUsage;
    }
  if (const auto *named = plan::findTransformersOptimizer(options.optim);
      !named || !named->optimizer) {
    std::fprintf(stderr, "accel-opt estimate-memory: error: '--optim %s': %s\n",
                 printable(options.optim).c_str(),
                 expectedOptimizer(options.optim).c_str());
    return exitUsage;
  }
  if (options.dtypes.empty())
    options.dtypes = {"float32", "float16", "int8", "int4"};
  DiagnosticEngine engine;
  std::optional<Estimate> estimate =
      Estimator(options, engine).run(arguments.positional[0]);
  if (options.format == "json") {
    Json out = estimate ? toJson(*estimate) : Json::object();
    std::string text = out.dump(1, ' ', false, Json::error_handler_t::replace);
    text.pop_back();
    if (text.ends_with('\n'))
      text.pop_back();
    std::printf("%s%s\n \"diagnostics\": %s}\n", text.c_str(),
                estimate ? "," : "", renderJson(engine).c_str());
  } else {
    if (estimate)
      printText(*estimate);
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  return static_cast<int>(engine.outcome());
}
