//===- ScriptDump.cpp - What was understood of scripts' arguments ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For comparisons with transformers, TRL and Accelerate in test/parity:
//   script-dump --arguments FILE   one JSON object per item of a JSON list of
//                                  {reader, words} or {reader, file}
//   script-dump --jobs FILE        the same of {config, trainer, command,
//                                  options, processes, model, transformers}
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/Command.h"
#include "frontends/Scripts/ScriptJob.h"
#include "test/unit/DescribeAccelerate.h"

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace accel;
using namespace accel::scripts;

static Json valueOf(const yaml::Node &n) {
  switch (n.kind) {
  case yaml::Kind::Null:
    return nullptr;
  case yaml::Kind::Bool:
    return n.boolean;
  case yaml::Kind::Int:
    return n.integer;
  case yaml::Kind::Float:
    return n.number;
  case yaml::Kind::Sequence: {
    Json list = Json::array();
    for (const yaml::Node *item : n.items)
      list.push_back(valueOf(*item));
    return list;
  }
  case yaml::Kind::Mapping: {
    Json object = Json::object();
    for (const yaml::Entry &entry : n.entries)
      object[entry.key->text] = valueOf(*entry.value);
    return object;
  }
  default:
    return n.text;
  }
}

static Reader readerNamed(const std::string &name) {
  for (int i = 0; i <= static_cast<int>(Reader::LlamaFactory); ++i)
    if (name == toString(static_cast<Reader>(i)))
      return static_cast<Reader>(i);
  return Reader::Trainer;
}

static std::vector<std::string> texts(const Json &list) {
  std::vector<std::string> result;
  for (const Json &item : list)
    result.push_back(item.get<std::string>());
  return result;
}

static Json argumentsOf(const Json &item) {
  DiagnosticEngine engine;
  NodeStore nodes;
  Recipe recipe(readerNamed(item.value("reader", "")), {}, true, nodes, engine);
  if (item.contains("file")) {
    auto document = yaml::parseFile(item["file"], engine);
    if (document && document->root())
      recipe.addFile(item["file"], *document->root());
    if (document)
      nodes.keep(std::move(document));
  } else {
    recipe.addWords(placeWords(texts(item["words"]), commandLineName, engine),
                    [](const Word &) { return false; });
  }
  Json given = Json::object();
  for (const auto &[name, argument] : recipe.given().all())
    given[name] = valueOf(*argument.value);
  return {{"given", given}, {"diagnostics", Json::parse(renderJson(engine))}};
}

template <typename T> static Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

static Json describe(const ScriptSettings &s) {
  Json out;
  out["trainer"] = toString(s.trainer);
  out["owner"] = s.owner;
  out["model"] = *s.model;
  out["micro_batch"] = orNull(*s.microBatch);
  out["accumulation"] = orNull(*s.accumulation);
  out["sequence_length"] = orNull(*s.sequenceLength);
  out["sequences_per_sample"] = s.sequencesPerSample;
  out["optim"] = *s.optim;
  out["learning_rate"] = orNull(*s.learningRate);
  out["weight_decay"] = orNull(*s.weightDecay);
  out["max_grad_norm"] = orNull(*s.maxGradNorm);
  out["layer_checkpointing"] = *s.layerCheckpointing;
  out["fused_loss"] = *s.fusedLoss;
  out["loss_chunk_rows"] = *s.lossChunkRows;
  out["attention"] =
      *s.attention ? Json(toString(**s.attention)) : Json(nullptr);
  out["load_dtype"] =
      *s.loadDtype ? Json(plan::toString(**s.loadDtype)) : Json(nullptr);
  out["quantization"] = *s.quantization;
  out["adapter"] = s.adapter ? Json{{"rank", s.adapter->rank},
                                    {"alpha", s.adapter->alpha},
                                    {"all_linear", s.adapter->allLinear},
                                    {"targets", s.adapter->target.names}}
                             : Json(nullptr);
  return out;
}

static Json jobOf(const Json &item) {
  ScriptInputs inputs;
  inputs.config = item.value("config", "");
  inputs.trainerFiles = texts(item.value("trainer", Json::array()));
  inputs.command = texts(item.value("command", Json::array()));
  for (const Json &option : item.value("options", Json::array()))
    inputs.options.push_back({option[0], option[1], option[0]});
  if (item.contains("processes"))
    inputs.processes = item["processes"].get<int64_t>();
  inputs.model = item.value("model", "");
  if (item.contains("transformers"))
    inputs.versions.transformers = item["transformers"];
  DiagnosticEngine engine;
  LoadedConfig loaded = loadScriptJob(inputs, {}, engine);
  Json line;
  line["outcome"] = static_cast<int>(loaded.outcome);
  line["diagnostics"] = Json::parse(renderJson(engine));
  line["script"] = loaded.job ? describe(loaded.job->script) : Json(nullptr);
  line["accelerate"] =
      loaded.job ? describe(loaded.job->accelerate) : Json(nullptr);
  if (loaded.job) {
    line["micro_batch"] = orNull(*loaded.job->data.microBatch);
    line["accumulation"] = *loaded.job->accumulation;
  }
  return line;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 64;
  std::ifstream stream(argv[2]);
  const bool jobs = !std::strcmp(argv[1], "--jobs");
  for (const Json &item : Json::parse(stream))
    std::puts((jobs ? jobOf(item) : argumentsOf(item))
                  .dump(-1, ' ', false, Json::error_handler_t::replace)
                  .c_str());
  return 0;
}
