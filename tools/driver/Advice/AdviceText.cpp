//===- AdviceText.cpp - Phrases of an advice ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/AdviceText.h"
#include "frontends/Scripts/TrlConfigs.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace accel {

static const EffectiveValue *find(const tune::ConfigEditor &editor,
                                  const tune::YamlLine &line) {
  // Values of DeepSpeed's JSON have its name before their key.
  const std::string inJson =
      std::filesystem::path(line.file).filename().string() + ":" + line.key;
  for (const EffectiveValue &value :
       editor.configuration().accelerate.effective)
    if (value.key == line.key || value.key == inJson)
      return &value;
  return nullptr;
}

std::string placeOf(const tune::ConfigEditor &editor,
                    const tune::YamlLine &line) {
  const JobConfig &job = editor.configuration();
  const EffectiveValue *value = find(editor, line);
  int at = value && value->origin == Origin::Written ? value->at.line : 0;
  auto look = [&](const auto &setting) {
    if (setting.key == line.key && setting.written() &&
        setting.at.file == line.file)
      at = setting.at.line;
  };
  look(job.accumulation);
  look(job.lossChunks);
  look(job.awaitReductions);
  look(job.data.microBatch);
  look(job.script.layerCheckpointing);
  look(job.script.fusedLoss);
  look(job.script.optim);
  look(job.activationCheckpointing);
  // TRL's own files are changed in a copy, which has the same lines.
  const std::string file = scripts::trlConfigCopy(line.file).value_or(
      std::filesystem::path(line.file).filename().string());
  return at ? file + ":" + std::to_string(at) : file + " (new)";
}

std::string textOf(const tune::YamlLine &line) {
  size_t begin = line.key.rfind('.');
  // "device" says nothing without its section of DeepSpeed's JSON.
  if (begin != std::string::npos && begin > 0 && line.file.ends_with(".json"))
    if (size_t section = line.key.rfind('.', begin - 1);
        section != std::string::npos)
      begin = section;
  return line.key.substr(begin + 1) + ": " + line.value;
}

bool isWritten(const tune::ConfigEditor &editor, const tune::YamlLine &line) {
  const EffectiveValue *value = find(editor, line);
  return value && value->origin == Origin::Written &&
         value->asked == line.value;
}

/// As a key of TrainingArguments.fsdp_config (transformers 5), or "".
static std::string trainingArguments(const tune::YamlLine &line) {
  const std::string prefix = "fsdp_config.fsdp_";
  const size_t at = line.key.find(prefix);
  if (at == std::string::npos)
    return "";
  std::string key = line.key.substr(at + prefix.size());
  for (const char *known :
       {"activation_checkpointing", "reshard_after_forward", "offload_params",
        "auto_wrap_policy", "transformer_layer_cls_to_wrap", "min_num_params"})
    if (key == known)
      return "fsdp_config={\"" +
             (key == "offload_params" ? std::string("cpu_offload") : key) +
             "\": " +
             (line.value == "true"    ? "True"
              : line.value == "false" ? "False"
                                      : "\"" + line.value + "\"") +
             "}";
  return "";
}

/// "TrainingArguments: x=1" as a place and what stands there.
static Edit editOf(const std::string &phrase) {
  for (const char *place :
       {"TrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "axolotl",
        "LLaMA-Factory", "torchtitan", "your script"}) {
    const std::string prefix = std::string(place) + ": ";
    if (phrase.rfind(prefix, 0) == 0)
      return {place, phrase.substr(prefix.size()), ""};
  }
  const std::string command = "accel-opt plan ";
  if (phrase.rfind(command, 0) == 0)
    return {"accel-opt plan", phrase.substr(command.size()), ""};
  const std::string job = "a job.yaml with ";
  if (phrase.rfind(job, 0) == 0)
    return {"job.yaml", phrase.substr(job.size()), ""};
  return {phrase, "", ""};
}

std::vector<Edit> editsOf(const tune::ConfigEditor &editor,
                          const tune::ConfigEdit &expression) {
  std::vector<Edit> edits;
  for (const tune::YamlLine &line : expression.yaml)
    if (!isWritten(editor, line))
      edits.push_back(
          {placeOf(editor, line), textOf(line), trainingArguments(line)});
  for (size_t at = 0; at < expression.notExpressibleInYaml.size();) {
    size_t end = expression.notExpressibleInYaml.find("; ", at);
    end =
        end == std::string::npos ? expression.notExpressibleInYaml.size() : end;
    edits.push_back(
        editOf(expression.notExpressibleInYaml.substr(at, end - at)));
    at = end + 2;
  }
  return edits;
}

std::string summary(const tune::Space &space, const tune::ConfigEditor &editor,
                    const tune::Point &point) {
  std::string text;
  for (tune::Knob knob : editor.differences(space.configured, point))
    text += (text.empty() ? "" : "; ") + editor.describe(knob, point);
  return text.empty() ? "as configured" : text;
}

std::string lacking(const Advice &advice, int64_t deviceBytes) {
  return deviceBytes > advice.roomBytes ? tooMuch(deviceBytes, advice.roomBytes)
                                        : "too much on the host";
}

std::string judgedBy(const Advice &advice) {
  return advice.roomBytes < advice.budgetBytes
             ? "what --confidence leaves of the budget"
             : "the budget";
}

std::string over(const Advice &advice, int64_t deviceBytes,
                 const std::string &peakWhere) {
  return formatBytes(deviceBytes - advice.roomBytes) + " over " +
         judgedBy(advice) + ", at the peak in " + peakWhere;
}

std::string refusal(const Advice &advice, const tune::Decided &d) {
  const tune::Change &r = *d.refused;
  const std::string slower = formatSecondsChange(r.seconds) + " a step";
  if (r.fits)
    return r.text + ": " + slower + ", " + formatBytesChange(r.bytes);
  if (r.evaluation.bytes <= advice.roomBytes)
    return r.text + ": does not fit (" + slower + ")";
  return r.text + ": " + over(advice, r.evaluation.bytes, d.refusedAt) + " (" +
         slower + ")";
}

std::vector<plan::Decision> recordedDecisions(const Advice &advice) {
  std::vector<plan::Decision> result;
  const bool tuned = advice.tuned && advice.tuned->result.best;
  if (!tuned && advice.refused.empty())
    return result;
  const StepPrediction &predicted =
      tuned ? advice.tuned->predicted : advice.configured;
  for (const tune::Decided &d :
       tuned ? advice.tuned->decisions : advice.refused) {
    plan::Decision decision;
    decision.what = toString(d.knob);
    decision.where = "job";
    decision.choice = d.choice;
    decision.why = d.changed
                       ? "alone it takes " + formatBytesChange(d.alone.bytes) +
                             " and " + formatSecondsChange(d.alone.seconds) +
                             " a step"
                   : tuned ? "as configured: no other option fits and is faster"
                           : "as configured";
    if (d.refused)
      decision.alternatives.push_back(refusal(advice, d));
    result.push_back(std::move(decision));
  }
  for (const auto &[knob, state] : advice.fixed) {
    plan::Decision decision;
    decision.what = toString(knob);
    decision.where = "job";
    decision.choice = advice.editor->describe(knob, advice.space->configured);
    decision.why = "not searched: " + state.by;
    decision.file = state.file;
    decision.line = state.line;
    decision.column = state.column;
    if (!decision.choice.empty())
      result.push_back(std::move(decision));
  }
  plan::Decision memory;
  memory.what = "limit";
  memory.where = "memory";
  memory.choice = "the peak in " + predicted.peakWhere;
  memory.why = formatBytes(predicted.deviceBytes) + " per rank";
  if (advice.budgetBytes != std::numeric_limits<int64_t>::max())
    memory.why += " of " + formatBytes(advice.budgetBytes);
  result.push_back(memory);
  plan::Decision link;
  link.what = "limit";
  link.where = "time";
  link.choice =
      predicted.exposed.empty() ? "computation" : predicted.exposed[0].cause;
  link.why = predicted.exposed.empty()
                 ? "no communication is waited for"
                 : formatSeconds(predicted.exposed[0].seconds) +
                       " of a step wait for it";
  result.push_back(link);
  return result;
}

} // namespace accel
