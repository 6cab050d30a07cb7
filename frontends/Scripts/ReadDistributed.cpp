//===- ReadDistributed.cpp - transformers' DistributedConfig --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// transformers/distributed/configuration_utils.py of 5.23: a model that is
// sharded while it is loaded, by transformers instead of Accelerate.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

#include <algorithm>

namespace accel::scripts {

void SettingsReader::readDistributedConfig() {
  const yaml::Node *init = value("model_init_kwargs");
  const yaml::Node *config =
      init && init->isMapping() ? init->find("distributed_config") : nullptr;
  if (!config || !config->isMapping())
    return;
  constexpr std::string_view sizes[] = {
      "tp_size", "fsdp_size", "dp_replicate_size", "pp_size", "ep_size"};
  constexpr std::string_view others[] = {"tp_plan",
                                         "enable_sequence_parallel",
                                         "enable_expert_parallel",
                                         "fsdp_plan",
                                         "fsdp_cpu_offload",
                                         "fsdp_mixed_precision",
                                         "ep_implementation",
                                         "ep_plan"};
  std::map<std::string_view, int64_t> ranks;
  for (const yaml::Entry &entry : config->entries) {
    const std::string &name = entry.key->text;
    const bool size =
        std::find(std::begin(sizes), std::end(sizes), name) != std::end(sizes);
    if (!size && std::find(std::begin(others), std::end(others), name) ==
                     std::end(others)) {
      // DistributedConfig.from_dict drops what it does not know.
      note("unknown-argument", "model_init_kwargs",
           "DistributedConfig has no '" + printable(name) + "', and drops it");
      continue;
    }
    if (!size || entry.value->isNull())
      continue;
    if (entry.value->kind != yaml::Kind::Int || entry.value->huge ||
        entry.value->integer < 1)
      return error("invalid-value", "model_init_kwargs",
                   name + " of distributed_config is " +
                       yaml::shortText(*entry.value) +
                       "; transformers stops with a ValueError",
                   "write a number of ranks, 1 or more");
    ranks[name] = entry.value->integer;
  }
  auto of = [&](std::string_view name) {
    auto found = ranks.find(name);
    return found == ranks.end() ? int64_t(1) : found->second;
  };
  const int64_t experts = of("ep_size");
  if (experts > 1 &&
      (experts % of("tp_size") || (of("fsdp_size") * of("tp_size")) % experts))
    return error("invalid-value", "model_init_kwargs",
                 "ep_size " + std::to_string(experts) +
                     " must be a multiple of tp_size and divide fsdp_size x "
                     "tp_size; transformers stops with a ValueError",
                 "");
  if (of("fsdp_size") * of("dp_replicate_size") > 1 && of("pp_size") > 1)
    return error("invalid-value", "model_init_kwargs",
                 "fsdp_size and pp_size do not go together yet; transformers "
                 "stops with a ValueError",
                 "keep one of them");
  struct Axis {
    const char *name, *what, *hint;
  };
  constexpr Axis axes[] = {
      {"tp_size", "splits layers over ranks (tensor parallelism)",
       "fsdp in TrainingArguments shards them instead"},
      {"pp_size", "gives layers to ranks in turn (pipeline parallelism)",
       "fsdp in TrainingArguments shards them instead"},
      {"ep_size", "gives experts to ranks (expert parallelism)",
       "fsdp in TrainingArguments shards them instead"}};
  bool refused = false;
  for (const Axis &axis : axes)
    if (of(axis.name) > 1) {
      refuse("model_init_kwargs",
             std::string("distributed_config: ") + axis.name + " " +
                 std::to_string(of(axis.name)) + " " + axis.what +
                 ", which is not modelled yet",
             axis.hint);
      refused = true;
    }
  auto given = [&](const char *name) {
    const yaml::Node *node = config->find(name);
    return node && !node->isNull() &&
           !(node->kind == yaml::Kind::Bool && !node->boolean);
  };
  constexpr Axis plans[] = {
      {"tp_plan", "derives tp_size from the ranks that are left", ""},
      {"fsdp_plan", "names units of its own", "leave it out"},
      {"fsdp_cpu_offload", "keeps shards on the host", "leave it out"}};
  for (const Axis &plan : plans)
    if (!refused && given(plan.name)) {
      refuse("model_init_kwargs",
             std::string("distributed_config: ") + plan.name + " " + plan.what +
                 ", which is not modelled for transformers' own sharding yet",
             plan.hint);
      refused = true;
    }
  const int64_t shards = of("fsdp_size"), copies = of("dp_replicate_size");
  if (refused || shards * copies == 1)
    return;
  refuse("model_init_kwargs",
         "distributed_config: transformers itself shards the model over " +
             std::to_string(shards) + " ranks" +
             (copies > 1 ? ", " + std::to_string(copies) + " times" : "") +
             " while it loads it, in units of its own (embedding; each layer; "
             "norm and head), which is not modelled yet",
         "fsdp in TrainingArguments, or an accelerate file, shards it by "
         "Accelerate, which is modelled");
}

} // namespace accel::scripts
