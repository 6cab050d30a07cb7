//===- EstimateCommand.cpp - accel-opt estimate-memory --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Estimate/Estimate.h"
#include "tools/driver/Options/OptimizerOption.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;
using namespace accel::estimate;

namespace {

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

/// An optimizer that is modelled.
ValueKind<const plan::TransformersOptimizer *> modelledOptimizer() {
  ValueKind<const plan::TransformersOptimizer *> kind = optimizerValue();
  return {kind.placeholder,
          [read = kind.read](const std::string &word,
                             const plan::TransformersOptimizer *&value) {
            const plan::TransformersOptimizer *named = nullptr;
            std::string wrong = read(word, named);
            if (wrong.empty() && !named->optimizer)
              return std::string("is not modelled; accel-opt optimizers lists "
                                 "those that are");
            if (wrong.empty())
              value = named;
            return wrong;
          }};
}

bool parse(int argc, char **argv, EstimateOptions &options,
           ReportFormat &format, int &exitCode) {
  Arguments arguments(
      "accel-opt estimate-memory", "MODEL",
      "Prints what `accelerate estimate-memory` prints for a model folder, "
      "and\n"
      "what the model really takes. Nothing is downloaded or loaded.");
  std::vector<std::pair<std::string, Dtype>> dtypes;
  for (const char *name : {"float32", "float16", "int8", "int4"})
    dtypes.emplace_back(name, *parseDtype(name));
  arguments.option("--library_name", options.library,
                   choiceValue<std::string>(
                       {{"timm", "timm"}, {"transformers", "transformers"}}),
                   "where the model comes from");
  arguments.list("--dtypes", options.dtypes, choiceValue(dtypes),
                 "rows of the table; several may follow");
  arguments.flag("--trust_remote_code", options.trustRemoteCode,
                 "as for Accelerate; accel-opt runs no code of models");
  arguments.option("--optim", options.optim, modelledOptimizer(),
                   "the optimizer to train with, as "
                   "TrainingArguments.optim names it");
  arguments.option("--micro-batch", options.microBatch, countValue(),
                   "sequences of the step whose activations are counted");
  arguments.option("--seq-len", options.sequenceLength, countValue(),
                   "tokens of each (default: the model's, at most 4096)");
  arguments.option("--format", format, formatValue(),
                   "text for people, json for programs");
  if (!arguments.parse(normalized(argc, argv), exitCode) ||
      !arguments.one("MODEL", options.model, exitCode))
    return false;
  if (options.dtypes.empty())
    for (const auto &[name, dtype] : dtypes)
      options.dtypes.push_back(dtype);
  return true;
}

} // namespace

int accel::estimateCommand(int argc, char **argv) {
  EstimateOptions options;
  ReportFormat format = ReportFormat::Text;
  int exitCode = exitOk;
  if (!parse(argc, argv, options, format, exitCode))
    return exitCode;
  DiagnosticEngine engine;
  std::optional<Estimate> estimate = estimateMemory(options, engine);
  if (format == ReportFormat::Json) {
    using Json = nlohmann::ordered_json;
    Json out = estimate ? estimateJson(*estimate) : Json::object();
    std::string text = out.dump(1, ' ', false, Json::error_handler_t::replace);
    text.pop_back();
    if (text.ends_with('\n'))
      text.pop_back();
    std::printf("%s%s\n \"diagnostics\": %s}\n", text.c_str(),
                estimate ? "," : "", renderJson(engine).c_str());
  } else {
    if (estimate)
      std::fputs(renderEstimate(*estimate).c_str(), stdout);
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  return static_cast<int>(engine.outcome());
}
