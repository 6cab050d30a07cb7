//===- ScriptLines.cpp - Advice in a script's own words -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/ScriptLines.h"

#include <algorithm>

namespace accel::tune {
namespace {

/// "SFTConfig: use_liger_kernel=True".
std::string words(const ScriptSettings &script,
                  const ScriptArguments &arguments) {
  std::string text = script.owner + ": ";
  for (const auto &[name, value] : arguments) {
    std::string shown = value;
    if (value == "true" || value == "false")
      shown = value == "true" ? "True" : "False";
    text +=
        (&name == &arguments.front().first ? "" : ", ") + name + "=" + shown;
  }
  return text;
}

/// The command line says this argument, so that no file does.
bool onCommandLine(const ScriptSettings &script, const std::string &name) {
  auto stands = [&](const auto &setting) {
    return setting.written() && setting.at.file != script.file &&
           (setting.key == name || setting.key == "--" + name);
  };
  return stands(script.microBatch) || stands(script.accumulation) ||
         stands(script.layerCheckpointing) || stands(script.fusedLoss) ||
         stands(script.optim);
}

/// A key of fsdp_config as transformers reads it; false where it reads none.
bool fsdpArgument(std::string &name) {
  if (name == "fsdp_sharding_strategy")
    return false; // Trainer cannot say it
  if (name == "fsdp_offload_params") {
    name = "cpu_offload";
    return true;
  }
  if (!name.starts_with("fsdp_"))
    return false;
  name = name.substr(5);
  return true;
}

} // namespace

ConfigEdit sayByCall(FrameworkKind executor, const std::string &call) {
  if (executor == FrameworkKind::AccelRun)
    return {{}, "a setting of --tune alone (--emit plan)"};
  return {{},
          executor == FrameworkKind::Fsdp2 ? call + " in your script"
                                           : "your script"};
}

ConfigEdit sayToScript(const ScriptSettings &script,
                       const ScriptArguments &arguments, Flags flags) {
  const bool inFile =
      !script.file.empty() &&
      std::none_of(arguments.begin(), arguments.end(), [&](const auto &a) {
        return onCommandLine(script, a.first);
      });
  ConfigEdit e;
  if (!inFile) {
    e.notExpressibleInYaml = words(script, arguments);
    e.flags = std::move(flags);
    return e;
  }
  for (const auto &[name, value] : arguments)
    e.yaml.push_back({name, value, script.file});
  return e;
}

ConfigEdit sayCheckpointing(const ScriptSettings &script, bool everyLayer) {
  const ScriptNames &names = script.names;
  // The argument as it was written, which may be a deprecated alias.
  const Setting<bool> &written = script.layerCheckpointing;
  const std::string name =
      written.written() && written.at.file == script.file &&
              written.key.find("checkpointing") != std::string::npos
          ? written.key
          : names.checkpointing;
  const std::string without = names.checkpoints == "true" ? "false" : "true";
  return sayToScript(script, {{name, everyLayer ? names.checkpoints : without}},
                     everyLayer ? Flags{{"--gradient-checkpointing", ""}}
                                : Flags{});
}

/// DeepSpeed stops where its file and the script disagree, so what the file
/// says changes too.
std::vector<YamlLine> ConfigEditor::batchLines(const SplitOption &split) const {
  std::vector<YamlLine> lines;
  if (!accelerate.deepspeed)
    return lines;
  const DeepspeedSettings &d = *accelerate.deepspeed;
  auto add = [&](const Setting<std::optional<int64_t>> &setting,
                 int64_t value) {
    if (setting.written() && *setting)
      lines.push_back({setting.key, std::to_string(value), setting.at.file});
  };
  add(d.microBatch, split.microBatch);
  add(d.gradientAccumulation, split.accumulation);
  const int64_t ranks = *accelerate.numProcesses /
                        std::max<int64_t>(1, *accelerate.sequenceParallel);
  add(d.trainBatch, split.microBatch * split.accumulation * ranks);
  return lines;
}

ConfigEdit ConfigEditor::expressOptimizer(const Point &point) const {
  const std::string &name = space.optimizers[point[Knob::Optimizer]].name;
  const Flags flags = {{"--optim", name}};
  if (job.script.trainer != TrainerKind::None && !given.optimizer)
    return sayToScript(job.script, {{job.script.names.optim, name}}, flags);
  return {{}, "TrainingArguments: optim=" + name, flags};
}

std::string ConfigEditor::caution(Knob knob, const Point &point) const {
  return knob == Knob::Optimizer && !space.optimizers.empty()
             ? space.optimizers[point[knob]].caution
             : "";
}

ConfigEdit linesOfScript(const JobConfig &job, ConfigEdit expression) {
  const ScriptSettings &script = job.script;
  if (script.trainer == TrainerKind::None)
    return expression;
  const std::string &base = job.accelerate.file;
  const bool hasBase = !base.empty() && base != script.file;
  std::vector<YamlLine> lines;
  ScriptArguments said;
  std::string flags;
  for (YamlLine &line : expression.yaml) {
    const size_t dot = line.key.find('.');
    const std::string section =
        dot == std::string::npos ? "" : line.key.substr(0, dot);
    std::string name =
        dot == std::string::npos ? line.key : line.key.substr(dot + 1);
    if (!line.file.empty()) { // of the script, or of a JSON
      lines.push_back(std::move(line));
      continue;
    }
    std::string value = line.value;
    const bool fsdp =
        section == "fsdp_config" && script.shards && fsdpArgument(name);
    if (fsdp && !script.file.empty())
      lines.push_back({"fsdp_config." + name, value, script.file});
    else if (fsdp)
      said.emplace_back("fsdp_config." + name, value);
    else if (line.key == "mixed_precision" && !script.file.empty())
      lines.push_back({"bf16", value == "bf16" ? "true" : "false",
                       script.file}); // goes before an accelerate file
    else if (line.key == "mixed_precision")
      said.emplace_back("bf16", value == "bf16" ? "true" : "false");
    else if (hasBase)
      lines.push_back(std::move(line));
    else
      flags += " --" + name + " " + value;
  }
  expression.yaml = std::move(lines);
  if (said.empty() && flags.empty())
    return expression;
  // Half of a change is none.
  expression.yaml.clear();
  expression.notExpressibleInYaml =
      said.empty() ? "accelerate launch" + flags : words(script, said);
  return expression;
}

std::string besideFullyShard(const plan::Mesh &mesh) {
  std::string axes;
  for (const plan::Axis &axis : mesh.axes)
    if (axis.size > 1 && axis.name != "dp_replicate" && axis.name != "dp_shard")
      axes += (axes.empty() ? "" : " and ") + axis.name + " " +
              std::to_string(axis.size);
  return axes;
}

} // namespace accel::tune
