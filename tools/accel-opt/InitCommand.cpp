//===- InitCommand.cpp - accel-opt init -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Init/Init.h"
#include "tools/driver/Options/OptimizerOption.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace accel;

namespace {

void addOptions(Arguments &a, InitOptions &o) {
  a.option("--model", o.plan.model, textValue("PATH|NAME"),
           "Hugging Face folder (config.json [+ *.safetensors]), or a name of "
           "the Hub (accel-opt models)");
  a.option("--target", o.plan.target, textValue("NAME|FILE"),
           "device to train on; see accel-opt targets");
  a.option("--num-processes", o.processes, countValue(),
           "ranks: one for each device (default 1)");
  a.option("--nodes", o.plan.nodes, countValue(), "machines (default 1)");
  a.option("--seq-len", o.plan.sequenceLength, countValue(),
           "tokens per sequence (default: the model's, at most 4096)");
  a.option("--global-batch", o.globalBatch, countValue(),
           "sequences of a step over all ranks (default: 8 a rank, as of "
           "TrainingArguments)");
  a.option("--optim", o.plan.optim, optimizerValue(),
           "the optimizer, as TrainingArguments.optim names it");
  a.option("--precision", o.precision,
           choiceValue<std::string>(
               {{"bf16", "bf16"}, {"fp16", "fp16"}, {"no", "no"}}),
           "mixed_precision (default bf16)");
  a.option("--adapter", o.plan.adapter, textValue("PATH"),
           "LoRA of PEFT: a folder with adapter_config.json");
  a.option("--memory-budget", o.plan.memoryBudgetBytes, bytesValue("70GiB"),
           "per rank, e.g. 70GiB (default: the target's memory)");
  a.option("--confidence", o.plan.confidence, percentValue(),
           "with which it has to fit, e.g. 95% (default: the prediction "
           "alone)");
  a.option("--accelerate-version", o.plan.accelerateVersion, textValue("V"),
           "for this version of accelerate (default 1.15.0)");
  a.option("--torch-version", o.plan.torchVersion, textValue("V"),
           "for this version of torch (default 2.15)");
}

/// Writes what does not exist yet, all or nothing.
bool writeFiles(const yaml::FileTexts &texts, bool overwrite,
                DiagnosticEngine &engine) {
  std::error_code failed;
  for (const auto &[file, text] : texts)
    if (!overwrite && std::filesystem::exists(file, failed)) {
      engine.error("output-exists", file, "the file exists already",
                   "pass --overwrite to replace it, or -o another folder");
      return false;
    }
  for (const auto &[file, text] : texts) {
    const std::filesystem::path folder =
        std::filesystem::path(file).parent_path();
    if (!folder.empty())
      std::filesystem::create_directories(folder, failed);
    std::string error;
    if (!plan::writeFileAtomically(file, text, error)) {
      engine.error("write-failed", file, error);
      return false;
    }
  }
  return true;
}

} // namespace

int accel::initCommand(int argc, char **argv) {
  InitOptions options;
  ReportFormat format = ReportFormat::Text;
  bool overwrite = false;
  Arguments arguments(
      "accel-opt init", "",
      "Writes accelerate.yaml and training_arguments.yaml for the fastest "
      "setting that\nfits a model on a target, each line with its reason.");
  addOptions(arguments, options);
  arguments
      .option("-o", options.folder, textValue("DIR"),
              "where the files are written (default: here)")
      .once();
  arguments.flag("--overwrite", overwrite, "replace files that are there");
  arguments.option("--format", format, formatValue(),
                   "text for people; json for programs, with the files in it "
                   "and nothing written");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode) || !arguments.none(exitCode))
    return exitCode;
  if (options.plan.model.empty() || options.plan.target.empty())
    return arguments.usageError(
        options.plan.model.empty()
            ? "expected --model PATH, the folder of the model"
            : "expected --target NAME, the device to train on; accel-opt "
              "targets lists them");
  if (format == ReportFormat::Json && (arguments.given("-o") || overwrite))
    return arguments.usageError("--format json prints the files and writes "
                                "none: leave out -o and --overwrite");
  DiagnosticEngine engine;
  InitResult result = initialise(options, engine);
  const bool made = !result.texts.empty();
  if (format == ReportFormat::Json) {
    std::fputs(renderInitJson(result, engine).c_str(), stdout);
  } else {
    const bool written = made && writeFiles(result.texts, overwrite, engine);
    if (!made || written)
      std::fputs(renderInit(result).c_str(), stdout);
    if (written)
      std::printf("  wrote %s and %s\n", result.accelerateFile.c_str(),
                  result.argumentsFile.c_str());
    std::fflush(stdout);
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
    if (made && !written)
      return exitInvalid;
  }
  if (made)
    return exitOk;
  for (const Diagnostic &d : engine.all())
    if (d.code == "nothing-fits")
      return exitDoesNotFit;
  return engine.hasErrors() ? static_cast<int>(engine.outcome()) : exitInternal;
}
