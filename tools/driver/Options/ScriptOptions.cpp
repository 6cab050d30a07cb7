//===- ScriptOptions.cpp - A script's arguments on our command line -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/ScriptOptions.h"

#include "tools/options/Arguments.h"

#include <algorithm>
#include <charconv>

namespace accel {
namespace {

constexpr uint64_t mostLengthBytes = 64u << 20;

/// The longest of the numbers in a text; false where something else stands
/// there.
bool readLengths(const std::string &text, int64_t &longest) {
  longest = 0;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    if (std::string_view(" \t\r\n,[]").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    int64_t value = 0;
    auto [stop, bad] = std::from_chars(at, end, value);
    if (bad != std::errc() || value < 1 || value > int64_t(1) << 30)
      return false;
    at = stop;
    longest = std::max(longest, value);
  }
  return longest > 0;
}

/// A file of --lengths: its longest sample.
ValueKind<int64_t> lengthsValue() {
  return {"FILE", [](const std::string &path, int64_t &longest) {
            std::string text, error;
            if (!yaml::readWholeFile(path, mostLengthBytes, text, error))
              return "'" + printablePath(path) + "' cannot be read: " + error;
            return readLengths(text, longest)
                       ? std::string()
                       : std::string("expected a file of positive numbers, the "
                                     "tokens of each sample");
          }};
}

} // namespace

void addScriptArguments(Arguments &a, ScriptOptions &o) {
  a.section("the script's arguments");
  a.list("--trainer", o.trainerFiles, textValue("FILE"),
         "YAML or JSON of TrainingArguments, or a recipe of TRL, axolotl or "
         "LLaMA-Factory; may be repeated");
  a.rest(o.command);
  a.option("--num-processes", o.processes, countValue(),
           "ranks, instead of what files and the command say");
  a.flag("--liger", o.liger,
         "Liger Kernel: the loss is fused with the output layer "
         "(use_liger_kernel)");
  a.option(
      "--attn", o.attention,
      choiceValue<std::string>({{"eager", "eager"},
                                {"sdpa", "sdpa"},
                                {"flash_attention_2", "flash_attention_2"},
                                {"flash_attention_3", "flash_attention_3"}}),
      "the model's attention (attn_implementation)");
  a.flag("--compile", o.compiles, "the script compiles the model");
  a.flag("--compile-regions", o.compilesRegions,
         "the script compiles each repeated layer by itself (Accelerate's "
         "compile_regions)");
  a.flag("--tf32", o.tf32,
         "fp32 matmuls round their operands to TF32 (tf32, or "
         "torch.backends.cuda.matmul.allow_tf32)");
  a.option(
      "--fp8", o.fp8,
      choiceValue<std::string>({{"tensorwise", "tensorwise"},
                                {"rowwise", "rowwise"},
                                {"rowwise_with_gw_hp", "rowwise_with_gw_hp"},
                                {"te", "te"}}),
      "linear layers compute in fp8 by torchao's recipe of that name "
      "(AORecipeKwargs), or by TransformerEngine");
  a.option("--lora-r", o.loraRank, countValue("N", 1, 65536),
           "train a LoRA of this rank at every linear layer; --adapter takes "
           "any other");
  a.flag("--packing", o.packs,
         "samples are packed to the length of a sequence");
  a.option("--lengths", o.longestSample, lengthsValue(),
           "tokens of each sample; a sequence is as long as the longest");
  a.option("--generation-memory", o.generationBytes,
           bytesValue("20GiB", /*mayBeZero=*/true),
           "of GRPO: what generates completions keeps on each device while a "
           "step trains");
  a.option("--transformers-version", o.versions.transformers, textValue("V"),
           "read arguments as this release of transformers (default 5.23.0)");
  a.option("--trl-version", o.versions.trl, textValue("V"),
           "read arguments as this release of TRL (default 1.10.0)");
  a.option("--peft-version", o.versions.peft, textValue("V"),
           "make adapters as this release of PEFT (default 0.21.2)");
  a.option("--deepspeed-version", o.versions.deepspeed, textValue("V"),
           "judge DeepSpeed's JSON as this release (default: the newest)");
}

std::vector<scripts::OwnOption> ScriptOptions::arguments() const {
  std::vector<scripts::OwnOption> result;
  if (liger)
    result.push_back({"use_liger_kernel", "true", "--liger"});
  if (!attention.empty())
    result.push_back({"attn_implementation", attention, "--attn=" + attention});
  const char *compile = compilesRegions ? "--compile-regions" : "--compile";
  if (compiles || compilesRegions)
    result.push_back({"torch_compile", "true", compile});
  if (compilesRegions)
    result.push_back({"compile_regions", "true", compile});
  if (tf32)
    result.push_back({"tf32", "true", "--tf32"});
  if (!fp8.empty())
    result.push_back({"fp8", fp8, "--fp8=" + fp8});
  if (offloadsCheckpoints) {
    const char *typed = "--gradient-checkpointing=offload";
    result.push_back({"activation_checkpointing", "true", typed});
    result.push_back(
        {"activation_checkpointing_kwargs", "{\"offload\": true}", typed});
  }
  if (loraRank) {
    const std::string rank = std::to_string(*loraRank);
    result.push_back({"lora_r", rank, "--lora-r=" + rank});
  }
  if (generationBytes) {
    const std::string bytes = std::to_string(*generationBytes);
    result.push_back(
        {"generation_memory", bytes, "--generation-memory=" + bytes});
  }
  if (packs)
    result.push_back({"packing", "true", "--packing"});
  if (longestSample) {
    const std::string tokens = std::to_string(*longestSample);
    result.push_back(
        {"max_length", tokens, "--lengths (longest: " + tokens + ")"});
  }
  return result;
}

bool takeConfig(const Arguments &arguments, const ScriptOptions &options,
                std::string &config, bool &hasConfig, int &exitCode) {
  hasConfig = !arguments.positional.empty();
  if (hasConfig)
    return arguments.one("CONFIG.yaml", config, exitCode);
  if (!options.describeJob() && !options.processes) {
    exitCode = arguments.usageError(
        "expected CONFIG.yaml, --trainer FILE, --num-processes N, or the job's "
        "command behind --");
    return false;
  }
  config = !options.trainerFiles.empty() ? options.trainerFiles.front()
           : options.command.empty()     ? "<options>"
                                         : "<command line>";
  return true;
}

LoadedConfig loadJob(const std::string &config, bool hasConfig,
                     const std::string &model, const ScriptOptions &options,
                     const LoadOptions &load, DiagnosticEngine &engine) {
  if (hasConfig && config.ends_with(".toml")) {
    engine.error(notSupportedCode, config,
                 "TOML, as torchtitan reads it, is not read",
                 "write the same job as an accelerate YAML with "
                 "parallelism_config, or as a job.yaml where it has stages, "
                 "and pass --executor torchtitan");
    return {std::nullopt, engine.outcome()};
  }
  if (!options.given() && !scripts::isRecipeFile(config, load.accelerate.texts))
    return loadConfig(config, load, engine);
  scripts::ScriptInputs inputs;
  if (hasConfig)
    inputs.config = config;
  inputs.trainerFiles = options.trainerFiles;
  inputs.command = options.command;
  inputs.options = options.arguments();
  inputs.processes = options.processes;
  inputs.versions = options.versions;
  inputs.model = model;
  return scripts::loadScriptJob(inputs, load, engine);
}

} // namespace accel
