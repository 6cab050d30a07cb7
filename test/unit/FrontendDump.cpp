//===- FrontendDump.cpp - What the text frontends understood --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For comparisons with Accelerate and PyYAML in test/parity:
//   frontend-dump FILES...          one JSON object per accelerate file
//   frontend-dump --keys VERSION    one JSON object per key of that accelerate
//   frontend-dump --env VERSION FILES...   what launch would set, one JSON
//                                   object per file
//   frontend-dump --yaml FILES...   one JSON string per file (Python's str() of
//                                   the document), or null if it is refused
//   frontend-dump --values LIST     the value of each text in a JSON list of
//                                   [file name, text], with types; or null
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Job/JobConfig.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace accel;
using Json = nlohmann::ordered_json;

static Json dtype(const std::optional<plan::DType> &d) {
  return d ? Json(plan::toString(*d)) : Json(nullptr);
}

static Json describe(const AccelerateConfig &c) {
  Json out;
  out["distributed_type"] = toString(*c.distributedType);
  out["strategy"] = toString(*c.strategy);
  out["num_processes"] = *c.numProcesses;
  out["mixed_precision"] = toString(*c.mixedPrecision);
  out["dp_replicate"] = c.mesh->size("dp_replicate");
  out["dp_shard"] = c.mesh->size("dp_shard");
  out["sharding"] = toString(*c.sharding);
  out["reshard"] = *c.reshardAfterForward;
  out["wrap_policy"] = toString(*c.wrapPolicy);
  out["wrap_classes"] = *c.wrapClasses ? Json(**c.wrapClasses) : Json(nullptr);
  out["min_num_params"] = *c.minNumParams;
  out["ignored_modules"] = *c.ignoredModules;
  out["activation_checkpointing"] = *c.activationCheckpointing;
  out["activation_checkpointing_offload"] = *c.activationCheckpointingOffload;
  out["offload_params"] = *c.offloadParams;
  out["backward_prefetch"] = static_cast<int>(*c.backwardPrefetch);
  out["forward_prefetch"] = *c.forwardPrefetch;
  out["state_dict_type"] = toString(*c.stateDictType);
  out["use_orig_params"] = *c.useOrigParams;
  out["sync_module_states"] = *c.syncModuleStates;
  out["cpu_ram_efficient_loading"] = *c.cpuRamEfficientLoading;
  out["param_dtype"] = dtype(c.precision->param);
  out["reduce_dtype"] = dtype(c.precision->reduce);
  out["output_dtype"] = dtype(c.precision->output);
  out["dynamo"] = {{"backend", *c.dynamo.backend},
                   {"mode", *c.dynamo.mode},
                   {"fullgraph", *c.dynamo.fullGraph},
                   {"dynamic", *c.dynamo.dynamic},
                   {"regional", *c.dynamo.regional}};
  if (c.deepspeed) {
    const DeepspeedSettings &d = *c.deepspeed;
    const auto &steps = *d.gradientAccumulation;
    const auto &clip = *d.gradientClipping;
    out["deepspeed"] = {
        {"zero_stage", *d.zeroStage},
        {"offload_optimizer_device", toString(*d.offloadOptimizer)},
        {"offload_param_device", toString(*d.offloadParameters)},
        {"gradient_accumulation_steps", steps ? Json(*steps) : Json("auto")},
        {"gradient_clipping", clip ? Json(*clip) : Json("auto")},
        {"zero3_init_flag", *d.zero3Init},
        {"zero3_save_16bit_model", *d.save16BitModel}};
  }
  if (c.megatron) {
    const MegatronSettings &m = *c.megatron;
    out["megatron"] = {{"tp_degree", *m.tensorParallel},
                       {"pp_degree", *m.pipelineParallel},
                       {"num_micro_batches", *m.microBatches},
                       {"context_parallel_size", *m.contextParallel},
                       {"expert_model_parallel_size", *m.expertParallel},
                       {"expert_tensor_parallel_size", *m.expertTensorParallel},
                       {"sequence_parallelism", *m.sequenceParallelism},
                       {"recompute_activations", *m.recomputeActivations},
                       {"use_distributed_optimizer", *m.distributedOptimizer},
                       {"optimizer_cpu_offload", *m.optimizerCpuOffload},
                       {"use_custom_fsdp", *m.customFsdp},
                       {"gradient_clipping", *m.gradientClipping},
                       {"recompute_granularity", *m.recomputeGranularity},
                       {"recompute_method", *m.recomputeMethod},
                       {"recompute_num_layers", *m.recomputeLayers}};
  }
  return out;
}

static int printKeys(const char *text) {
  std::optional<AccelerateVersion> version = parseAccelerateVersion(text);
  if (!version)
    return 1;
  for (const KeyInfo &key : allKeys()) {
    if (!key.in(*version))
      continue;
    Json line;
    line["section"] = key.section;
    line["name"] = key.name;
    line["type"] = toString(key.type);
    line["choices"] =
        key.choices ? Json(valuesOf(*key.choices, *version)) : Json(nullptr);
    const DefaultValue *byDefault = key.defaultIn(*version);
    line["default"] = byDefault ? Json(byDefault->value) : Json(nullptr);
    line["owner"] =
        byDefault ? Json(toString(byDefault->owner)) : Json(nullptr);
    line["read"] = key.readIn(*version);
    line["misnomer"] = key.rules.instead != nullptr;
    line["nullable"] = key.rules.nullable;
    std::puts(line.dump().c_str());
  }
  return 0;
}

static int printEnvironments(const char *text, int count, char **files) {
  std::optional<AccelerateVersion> version = parseAccelerateVersion(text);
  if (!version)
    return 1;
  for (int i = 0; i < count; ++i) {
    DiagnosticEngine engine;
    auto document = yaml::parseFile(files[i], engine);
    Json line;
    LaunchEnvironment launch;
    if (document && document->root() && document->root()->isMapping())
      launch = simulateLaunch(*document->root(), *version);
    else
      launch.refused = "not a mapping";
    line["launcher"] = toString(launch.launcher);
    line["refused"] = launch.refused;
    line["variables"] = Json::object();
    line["when"] = Json::object();
    for (const EnvironmentVariable &v : launch.variables) {
      line["variables"][v.name] = v.value ? Json(*v.value) : Json(nullptr);
      if (!v.when.empty())
        line["when"][v.name] = v.when;
    }
    std::puts(
        line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}

/// A value with its type: numbers as Python prints them, strings as code
/// points (half surrogate pairs have no UTF-8), sets sorted.
static Json typed(const yaml::Node &n) {
  auto list = [](const auto &from, auto make) {
    Json out = Json::array();
    for (const auto &element : from)
      out.push_back(make(element));
    return out;
  };
  auto pair = [](const yaml::Entry &e) {
    return Json::array({typed(*e.key), typed(*e.value)});
  };
  switch (n.kind) {
  case yaml::Kind::Null:
    return nullptr;
  case yaml::Kind::Bool:
    return n.boolean;
  case yaml::Kind::Int:
    return {{"int", yaml::pythonText(n)}};
  case yaml::Kind::Float:
    return {{"float", yaml::pythonText(n)}};
  case yaml::Kind::String: {
    std::string bytes;
    char hex[4];
    for (unsigned char c : n.text) {
      std::snprintf(hex, sizeof hex, "%02x", c);
      bytes += hex;
    }
    return {{"str", bytes}};
  }
  case yaml::Kind::Sequence:
    return {{"list", list(n.items, [](auto *item) { return typed(*item); })}};
  case yaml::Kind::Mapping:
    return {{"dict", list(n.entries, pair)}};
  case yaml::Kind::Other:
    break;
  }
  if (n.other == yaml::Other::Set) {
    std::vector<std::string> elements;
    for (const yaml::Entry &entry : n.entries)
      elements.push_back(typed(*entry.key).dump());
    std::sort(elements.begin(), elements.end());
    return {{"set", elements}};
  }
  if (n.other == yaml::Other::Pairs)
    return {{"list", list(n.entries,
                          [&](auto &e) { return Json{{"tuple", pair(e)}}; })}};
  return {{"other", n.python ? n.python->second : n.text}};
}

static int dumpValues(const char *path) {
  std::ifstream stream(path);
  for (const Json &item : Json::parse(stream)) {
    DiagnosticEngine engine;
    std::string text;
    for (const Json &byte : item[1]) // bytes need not be UTF-8
      text += static_cast<char>(byte.get<int>());
    auto document = yaml::parseText(item[0], text, engine);
    Json line = Json::object();
    if (document)
      line["value"] = document->root() ? typed(*document->root()) : Json();
    else
      line["error"] = engine.sorted()[0].message;
    std::puts(
        line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 3 && !std::strcmp(argv[1], "--env"))
    return printEnvironments(argv[2], argc - 3, argv + 3);
  if (argc == 3 && !std::strcmp(argv[1], "--values"))
    return dumpValues(argv[2]);
  if (argc == 3 && !std::strcmp(argv[1], "--keys"))
    return printKeys(argv[2]);
  bool yamlOnly = argc > 1 && !std::strcmp(argv[1], "--yaml");
  for (int i = yamlOnly ? 2 : 1; i < argc; ++i) {
    DiagnosticEngine engine;
    Json line;
    if (yamlOnly) {
      auto document = yaml::parseFile(argv[i], engine);
      if (document)
        line = document->root() ? yaml::pythonText(*document->root()) : "None";
    } else {
      LoadOptions options;
      options.accelerate.forPlanning = false;
      LoadedConfig loaded = loadConfig(argv[i], options, engine);
      line["outcome"] = static_cast<int>(loaded.outcome);
      line["diagnostics"] = Json::parse(renderJson(engine));
      line["effective"] =
          loaded.job ? describe(loaded.job->accelerate) : Json(nullptr);
    }
    std::puts(
        line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}
