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
  std::string shown;
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
    shown += (shown.empty() ? "" : ", ") + name + " " + entry.value->text;
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
  refuse("model_init_kwargs",
         "transformers itself shards the model while it loads it "
         "(DistributedConfig: " +
             (shown.empty() ? std::string("one rank") : shown) +
             "), whose units and dtypes are not modelled yet",
         "fsdp in TrainingArguments, or an accelerate file, shards it by "
         "Accelerate, which is modelled");
}

} // namespace accel::scripts
