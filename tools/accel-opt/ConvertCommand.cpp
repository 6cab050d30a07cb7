//===- ConvertCommand.cpp - accel-opt to-fsdp2 ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Convert/Convert.h"
#include "frontends/HuggingFace/Quantized.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "frontends/Yaml/Yaml.h"
#include "runtime/plan/OutputModel.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Options/QuantizationOption.h"
#include "tools/driver/Output/OutputFile.h"
#include "tools/driver/Report/ConversionReport.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace accel;
using namespace accel::convert;

/// Reports a base that FSDP2 refuses, where the file is one to convert: what
/// the script asks for with what the checkpoint holds.
static void checkQuantized(const std::optional<QuantizationConfig> &asked,
                           std::optional<QuantizationConfig> ofModel,
                           bool knowsModel, const std::string &file,
                           const std::string &version,
                           DiagnosticEngine &engine) {
  LoadOptions reading;
  reading.accelerate.version = version;
  reading.accelerate.forPlanning = reading.checkFiles = false;
  reading.modelRequired = false;
  DiagnosticEngine silent; // the conversion says what is wrong with the file
  const LoadedConfig loaded = loadConfig(file, reading, silent);
  JobConfig job;
  QuantizedUse use{.strategy = Strategy::Fsdp2, .accelerate = version};
  if (loaded.job) {
    job = *loaded.job;
    const AccelerateConfig &config = job.accelerate;
    if (*config.strategy != Strategy::Fsdp1 &&
        *config.strategy != Strategy::Fsdp2)
      return; // there is nothing to convert
    use.rankZeroLoads = *config.cpuRamEfficientLoading;
  }
  if (asked)
    job.quantization = asked;
  if (!knowsModel && job.quantization && job.quantization->dequantizes)
    return; // what is packed is not known
  if (!settleQuantization(job, std::move(ofModel), file, engine) ||
      !job.quantization)
    return;
  const QuantizationConfig &base = *job.quantization;
  if (const auto why = refusalOf(base, use))
    engine.report(
        diagnosticAt(base.at, base.key, Severity::Error,
                     why->isOurs ? notSupportedCode : quantizedBaseCode,
                     why->message, why->hint, file));
  else
    noteWholeUnderFsdp2(base, {}, file, Severity::Note, engine);
}

int accel::convertCommand(int argc, char **argv) {
  ConvertOptions options;
  std::string output, model;
  std::optional<QuantizationConfig> quantization;
  ReportFormat format = ReportFormat::Text;
  bool overwrite = false;
  std::vector<std::pair<std::string, Executor>> executors;
  for (Executor executor :
       {Executor::Fsdp2, Executor::Fsdp1, Executor::Deepspeed, Executor::Ddp})
    executors.emplace_back(toString(executor), executor);
  Arguments arguments(
      "accel-opt to-fsdp2", "CONFIG.yaml",
      "Rewrites an accelerate file for FSDP2 (or another executor) so that "
      "the\n"
      "job does what it did; comments and order stay. Prints the new file,\n"
      "unless -o or --overwrite names one.");
  arguments.option("--to", options.to, choiceValue(executors),
                   "what the new file is for");
  arguments
      .option("-o", output, textValue("FILE"),
              "write here; an existing file needs --overwrite")
      .once();
  arguments.flag("--overwrite", overwrite,
                 "write over CONFIG.yaml, or over the FILE of -o");
  arguments.option("--accelerate-version", options.version, textValue("V"),
                   "judge as this version of accelerate (default 1.15.0)");
  arguments.option("--model", model, textValue("DIR|NAME"),
                   "the job's model, whose quantization_config FSDP2 may "
                   "refuse");
  arguments.option("--quantize", quantization, quantizationValue(),
                   "how the script quantises the base, as of plan");
  arguments.option("--format", format, formatValue(),
                   "text for people, json for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  std::string file;
  if (!arguments.one("CONFIG.yaml", file, exitCode))
    return exitCode;
  if (output.empty() && overwrite)
    output = file;

  if (output == "-") // standard output, as without -o
    output.clear();
  DiagnosticEngine engine;
  std::optional<Conversion> conversion;
  std::string text, error, internal;
  std::error_code failed;
  std::optional<QuantizationConfig> ofModel;
  if (!model.empty())
    huggingface::readQuantizationNamed(model, ofModel, engine);
  if ((quantization || ofModel) && !engine.hasErrors() &&
      options.to == convert::Executor::Fsdp2)
    checkQuantized(quantization, std::move(ofModel), !model.empty(), file,
                   options.version, engine);
  const bool readable = !engine.hasErrors();
  if (readable && !yaml::readWholeFile(file, yaml::Limits().bytes, text, error))
    yaml::parseFile(file, engine); // reports it
  else if (readable && !output.empty() && !overwrite &&
           std::filesystem::exists(output, failed))
    engine.error("output-exists", output, "the file exists already",
                 "pass --overwrite to replace it");
  else if (readable)
    conversion = convertConfig(file, text, options, engine, internal);
  if (!internal.empty()) {
    std::fprintf(stderr,
                 "accel-opt to-fsdp2: internal error: %s; nothing was written\n"
                 "reproduce with: accel-opt to-fsdp2 %s --to %s\n",
                 internal.c_str(), file.c_str(), toString(options.to));
    return exitInternal;
  }
  // --overwrite is for CONFIG.yaml, and for what is not read.
  if (conversion && !output.empty() && !plan::isSameFile(output, file) &&
      replacesInput(output, engine))
    conversion.reset();
  if (conversion && !output.empty() &&
      !plan::writeFileAtomically(output, conversion->text, error)) {
    engine.error("write-failed", output, error);
    conversion.reset();
  }
  if (format == ReportFormat::Json) {
    std::fputs(
        conversionJson(conversion, conversion ? output : "", engine).c_str(),
        stdout);
    return static_cast<int>(engine.outcome());
  }
  // What was asked for on stdout, everything else beside it.
  if (conversion && output.empty()) {
    std::fputs(conversion->text.c_str(), stdout);
    std::fflush(stdout);
  }
  if (conversion)
    std::fputs(renderConversion(*conversion, file).c_str(),
               output.empty() ? stderr : stdout);
  RenderOptions render;
  render.colour = wantsColour(STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), stderr);
  return static_cast<int>(engine.outcome());
}
