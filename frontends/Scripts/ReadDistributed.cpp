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
#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>

namespace accel::scripts {
namespace {

/// Of these families the plan names the embedding, each layer, the last norm
/// and the head.
constexpr std::string_view typesWithPlan[] = {
    "llama",       "mistral", "qwen2",     "qwen3", "gemma", "gemma2",
    "gemma3_text", "mixtral", "qwen3_moe", "phi3",  "olmo2"};

/// Those of them with experts, for which base_model_ep_plan has rules.
constexpr std::string_view typesWithExperts[] = {"mixtral", "qwen3_moe"};

} // namespace

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
        entry.value->integer < 1) {
      // It is compared with 1, which Python does with numbers alone.
      const yaml::Kind kind = entry.value->kind;
      const bool fraction = kind == yaml::Kind::Float ||
                            (kind == yaml::Kind::Bool && entry.value->boolean);
      return error("invalid-value", "model_init_kwargs",
                   name + " of distributed_config is " +
                       yaml::shortText(*entry.value) +
                       (fraction ? ", which is no whole number"
                        : kind == yaml::Kind::Int || kind == yaml::Kind::Bool
                            ? "; transformers stops with a ValueError"
                            : "; transformers stops with a TypeError"),
                   "write a number of ranks, 1 or more");
    }
    ranks[name] = entry.value->integer;
  }
  auto of = [&](std::string_view name) {
    auto found = ranks.find(name);
    return found == ranks.end() ? int64_t(1) : found->second;
  };
  auto asked = [&](const char *name) {
    const yaml::Node *node = config->find(name);
    return node && !node->isNull() &&
           !(node->kind == yaml::Kind::Bool && !node->boolean) &&
           !(node->isMapping() && node->entries.empty());
  };
  if (asked("enable_sequence_parallel"))
    note("ignored-key", "model_init_kwargs",
         "enable_sequence_parallel of distributed_config has no effect: "
         "transformers reserves it",
         "leave it out");
  // Of before ep_size: `ep_size=tp_size, tp_plan={}` (_resolve_parallelism).
  const yaml::Node *tensorPlan = config->find("tp_plan");
  if (tensorPlan && tensorPlan->isNull())
    tensorPlan = nullptr;
  const bool former =
      asked("enable_expert_parallel") && !ranks.contains("ep_size");
  if (former && of("tp_size") > 1)
    ranks["ep_size"] = of("tp_size");
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
  if (experts > 1 && of("pp_size") > 1)
    return error("invalid-value", "model_init_kwargs",
                 "ep_size and pp_size do not go together yet; transformers "
                 "stops with a ValueError",
                 "keep one of them");
  if (const yaml::Node *way = config->find("ep_implementation");
      way && !way->isNull() &&
      !readExpertExchange(*way, experts, of("tp_size")))
    return;
  // The family's plan over tp_size ranks, which is what tp_size alone means.
  auto isDefault = [&](std::string_view name) {
    return name == "tp_plan" && of("tp_size") > 1 && tensorPlan->isString() &&
           tensorPlan->text == "auto";
  };
  struct Axis {
    const char *name, *what, *hint;
  };
  constexpr Axis axes[] = {
      {"tp_size",
       "splits layers over ranks (tensor parallelism) without fsdp_size",
       "write fsdp_size 2 or more beside it"},
      {"pp_size", "gives layers to ranks in turn (pipeline parallelism)",
       "fsdp in TrainingArguments shards them instead"},
      {"ep_size",
       "gives experts to ranks (expert parallelism) without fsdp_size",
       "write fsdp_size 2 or more beside it"}};
  // Beside shards they are axes of the mesh.
  auto beside = [&](std::string_view name) {
    return of("fsdp_size") > 1 && (name == "tp_size" || name == "ep_size");
  };
  bool refused = false;
  for (const Axis &axis : axes)
    if (of(axis.name) > 1 && !beside(axis.name)) {
      refuse("model_init_kwargs",
             std::string("distributed_config: ") + axis.name + " " +
                 std::to_string(of(axis.name)) + " " + axis.what +
                 ", which is not modelled yet",
             axis.hint);
      refused = true;
    }
  constexpr Axis plans[] = {
      {"tp_plan",
       "splits layers by rules of its own, or over the ranks that are left",
       "write tp_size alone"},
      {"fsdp_plan", "names units of its own", "leave it out"},
      {"ep_plan", "shards experts by rules of its own",
       "leave it out; the family's plan gives whole experts to ranks"}};
  for (const Axis &plan : plans)
    if (!refused && asked(plan.name) && !isDefault(plan.name)) {
      refuse("model_init_kwargs",
             std::string("distributed_config: ") + plan.name + " " + plan.what +
                 ", which is not modelled for transformers' own sharding yet",
             plan.hint);
      refused = true;
    }
  // No rule is applied then.
  const bool none =
      tensorPlan ? tensorPlan->isMapping() && tensorPlan->entries.empty() &&
                       (of("tp_size") > 1 || !ranks.contains("tp_size"))
                 : former && of("tp_size") > 1;
  if (!refused && none) {
    refuse("model_init_kwargs",
           std::string("distributed_config: ") +
               (tensorPlan ? "tp_plan: {} leaves layers"
                           : "enable_expert_parallel without ep_size gives "
                             "experts to the ranks of tp_size and leaves "
                             "other layers") +
               " whole on the ranks of tp_size, which is not modelled yet",
           tensorPlan
               ? "leave tp_plan out; the family's plan splits layers over "
                 "tp_size"
               : "write ep_size: " + std::to_string(of("tp_size")) +
                     " instead; the family's plan then splits other layers "
                     "over tp_size");
    refused = true;
  }
  const OwnShards shards{of("fsdp_size"), of("dp_replicate_size"),
                         of("tp_size"), experts, asked("fsdp_mixed_precision")};
  if (!refused && shards.shards * shards.copies > 1)
    readOwnShards(shards, asked("fsdp_cpu_offload"));
}

/// ep_implementation (EPImplementationInterface of
/// transformers/distributed/expert_parallel.py). In training "auto" exchanges
/// rows by all-to-all.
bool SettingsReader::readExpertExchange(const yaml::Node &way, int64_t experts,
                                        int64_t tensor) {
  const char *name = "model_init_kwargs";
  const std::string text = way.isString() ? way.text : yaml::shortText(way);
  if (text == "auto" || text == "all_to_all" || experts == 1)
    return true;
  if (text == "all_reduce" && experts != tensor)
    error("invalid-value", name,
          "ep_implementation all_reduce sums what ranks of one batch computed, "
          "and ep_size " +
              std::to_string(experts) + " is not tp_size " +
              std::to_string(tensor) + "; transformers stops with a ValueError",
          "write ep_implementation: all_to_all, or leave it out");
  else if (text == "deepgemm_megamoe")
    error("invalid-value", name,
          "ep_implementation deepgemm_megamoe is of a kernel that has no "
          "backward",
          "write ep_implementation: all_to_all, or leave it out");
  else
    refuse(name,
           "distributed_config: ep_implementation '" + printable(text) +
               "' is not modelled",
           "write ep_implementation: all_to_all, or leave it out");
  return false;
}

/// What Accelerate's FSDP2 does by other keys: units of the embedding, of each
/// layer, and of the last norm with the head (base_model_fsdp_plan and
/// _fsdp_plan); no policy of dtypes unless fsdp_mixed_precision; Trainer has
/// Accelerate prepare autocast alone (prepare_model with evaluation_mode).
void SettingsReader::readOwnShards(const OwnShards &shards, bool offloads) {
  const char *name = "model_init_kwargs";
  auto isOn = [&](const char *argument) {
    const yaml::Node *node = value(argument);
    return node && !(node->kind == yaml::Kind::Bool && !node->boolean) &&
           !(node->isString() && node->text.empty());
  };
  const std::string base = accelerate.type();
  if (base == "FSDP" || base == "DEEPSPEED" || isOn("fsdp") ||
      isOn("deepspeed"))
    return refuse(name,
                  "distributed_config shards the model that FSDP or DeepSpeed "
                  "of Accelerate is to shard, which is not modelled",
                  "keep one of them");
  if (settings.adapter || settings.reference.value != ReferenceModel::None)
    return refuse(name,
                  std::string("distributed_config: ") +
                      (settings.adapter
                           ? "an adapter stays whole on every rank beside the "
                             "sharded model"
                           : "the reference model is sharded like the first") +
                      ", which is not modelled yet",
                  "fsdp in TrainingArguments shards it by Accelerate");
  const std::string type = typeOf(*settings.model);
  if (!type.empty() &&
      std::find(std::begin(typesWithPlan), std::end(typesWithPlan), type) ==
          std::end(typesWithPlan))
    return refuse(name,
                  "distributed_config: transformers' plan for " +
                      printable(type) +
                      " does not name its embedding, last norm and head, so "
                      "that they stay in the root's unit, which is not "
                      "modelled for this family yet",
                  "fsdp in TrainingArguments shards it by Accelerate");
  if (shards.experts > 1 && !type.empty() &&
      std::find(std::begin(typesWithExperts), std::end(typesWithExperts),
                type) == std::end(typesWithExperts))
    return error("invalid-value", name,
                 "ep_size " + std::to_string(shards.experts) + " of " +
                     printable(type) +
                     ", which has no experts that ranks could share (no "
                     "ep_plan); transformers stops with a ValueError",
                 "leave ep_size out; fsdp_size shards all parameters");
  const bool saves = recipe.reader() != Reader::Axolotl &&
                     isAtLeast(recipe.versions().transformers, "5.23") &&
                     text("save_strategy") != "no" && !truth("save_only_model");
  if (saves)
    error("conflicting-arguments", name,
          "a model that is sharded by distributed_config cannot be resumed; "
          "Trainer stops with a ValueError",
          "write save_only_model: true or save_strategy: 'no'");
  const Given &place = *given(name);
  auto put = [&](const char *key, const char *text) {
    accelerate.set("fsdp_config", key,
                   nodes.plain(place.file, place.value->range, text));
  };
  accelerate.set("", "distributed_type",
                 nodes.text(place.file, place.value->range, "FSDP"));
  put("fsdp_version", "2");
  put("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
  put("fsdp_reshard_after_forward", "true");
  put("fsdp_cpu_ram_efficient_loading", "false");
  put("fsdp_state_dict_type", "FULL_STATE_DICT");
  put("fsdp_offload_params", offloads ? "true" : "false");
  set(settings.ownShards, std::optional(shards), name,
      std::to_string(shards.shards) + " shards, " +
          std::to_string(shards.copies) +
          (shards.copies == 1 ? " copy" : " copies") +
          (shards.tensor > 1 ? ", tp " + std::to_string(shards.tensor) : "") +
          (shards.experts > 1 ? ", ep " + std::to_string(shards.experts) : ""),
      "distributed_config: transformers shards the model while it loads it");
}

} // namespace accel::scripts
