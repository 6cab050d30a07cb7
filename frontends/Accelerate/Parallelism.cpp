//===- Parallelism.cpp - parallelism_config and the mesh ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// accelerate/parallelism_config.py, which runs in every rank.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"

#include <algorithm>

using namespace accel;

int64_t AccelerateReader::meshSize(const char *name) {
  std::string key = std::string("parallelism_config_") + name + "_size";
  Field field = in(parallelism, key);
  if (!field)
    return 1;
  const yaml::Node &value = field.value();
  bool compared = name[0] == 'c' || name[0] == 's'; // launch: size > 1
  if (compared && value.isString()) {
    error("quoted-number", field,
          key + " is a string, which launch compares with 1: it stops with a "
                "TypeError",
          "remove the quotes", fixNumber(field));
    config.assumed.mesh = true;
    return envInt(value).value_or(1);
  }
  std::optional<int64_t> number = envInt(value);
  if (!number || *number < 1 || *number > 1 << 24) {
    error(field.isNull() ? "yaml-null" : "invalid-value", field,
          key + " must be a positive integer, this is " +
              yaml::shortText(value));
    config.assumed.mesh = true;
    return 1;
  }
  remember(field, std::to_string(*number), "", Origin::Written);
  return *number;
}

void AccelerateReader::checkExchange(const char *axis, const char *name,
                                     const std::vector<std::string> &values) {
  std::string key = std::string("parallelism_config_") + axis + "_" + name;
  Field field = in(parallelism, key);
  if (!field)
    return;
  std::string text = yaml::pythonText(field.value());
  if (std::find(values.begin(), values.end(), text) != values.end())
    return;
  // A kernel of the Hub.
  if (key.ends_with("attn_implementation") &&
      text.find('/') != std::string::npos &&
      text.find("flash-attn") != std::string::npos)
    return;
  error(field.isNull() ? "yaml-null" : "invalid-value", field,
        std::string(axis) + "_" + name + " must be " + oneOf(values) +
            ", this is " + yaml::shortText(field.value()) +
            "; every rank stops with a ValueError",
        didYouMean(text, values), fixSpelling(field, values));
}

/// The same product, with ranks to shard over.
static std::string shardAll(int64_t copies) {
  return "write dp_shard_size " + std::to_string(copies) +
         " with dp_replicate_size 1";
}

/// The same where no copies are, but a size of tp.
static std::string shardSome(int64_t tensor) {
  int64_t part = 2;
  while (tensor % part != 0)
    ++part;
  return "write tp_size " + std::to_string(tensor / part) +
         " with dp_shard_size " + std::to_string(part);
}

std::string accel::needsDeepspeed(DistributedType type) {
  return std::string("sp_size above 1 is DeepSpeed's sequence parallelism, "
                     "which distributed_type ") +
         toString(type) + " does not have";
}

std::string accel::unusedParallelism(const AccelerateConfig &config) {
  const DistributedType type = *config.distributedType;
  const std::string without =
      "parallelism_config has no effect with distributed_type " +
      std::string(toString(type));
  if (*config.strategy == Strategy::Single || type == DistributedType::MultiCpu)
    return without;
  // prepare_deepspeed_cmd_env of accelerate/utils/launch.py
  const auto version = parseAccelerateVersion(config.version);
  if (type == DistributedType::Deepspeed && version &&
      *version < AccelerateVersion{1, 12})
    return without + " before accelerate 1.12: launch hands it to no rank";
  return "";
}

void AccelerateReader::readParallelism() {
  if (before(1, 10))
    return; // an unknown top-level key
  checkSectionKeys(parallelism);
  auto &mesh = config.mesh;
  if (!parallelism.present() || unrecoverable)
    return;
  Field whole{parallelism.entry, prefix + parallelism.name};
  Strategy strategy = *config.strategy;
  DistributedType type = *config.distributedType;
  if (const std::string unused = unusedParallelism(config); !unused.empty()) {
    report(Severity::Warning, "unused-section", whole, unused,
           "remove the section", true);
    return;
  }
  const bool deepspeed = type == DistributedType::Deepspeed,
             megatron = type == DistributedType::MegatronLm;
  if (strategy == Strategy::Other && !deepspeed && !megatron)
    return;
  int64_t replicate = meshSize("dp_replicate"), shard = meshSize("dp_shard"),
          tp = meshSize("tp"), cp = meshSize("cp"), sp = meshSize("sp");
  // ParallelismConfig._validate_accelerator; sizes that are all 1 pass.
  if (megatron) {
    if (std::max({replicate, shard, tp, cp, sp}) > 1)
      report(Severity::Error, "mesh-needs-fsdp2", whole,
             "parallelism_config is not for distributed_type MEGATRON_LM: "
             "every rank stops with a ValueError",
             "remove the section; megatron_lm_config has the sizes", true);
    return;
  }
  auto key = [&](const char *name) {
    return in(parallelism, std::string("parallelism_config_") + name);
  };
  auto axis = [&](Setting<int64_t> &setting, const char *name, int64_t size) {
    if (Field f = key(name))
      setting = {size, Origin::Written, f.key, locate(f), ""};
  };
  axis(config.tensorParallel, "tp_size", tp);
  axis(config.contextParallel, "cp_size", cp);
  axis(config.sequenceParallel, "sp_size", sp);
  for (auto [name, only] :
       {std::pair{"cp_backend", "torch"}, {"sp_backend", "deepspeed"}})
    if (Field f = key(name); f && yaml::pythonText(f.value()) != only)
      error("invalid-value", f,
            std::string(name) + " must be " + only + ", this is " +
                yaml::shortText(f.value()));
  if (cp > 1 && sp > 1)
    error("mesh-axes", key("sp_size"),
          "context parallelism (cp_size " + std::to_string(cp) +
              ") and sequence parallelism (sp_size " + std::to_string(sp) +
              ") exclude each other",
          "leave one of the two at 1");
  if (cp > 1)
    checkExchange("cp", "comm_strategy", {"allgather", "alltoall"});
  if (Field f = key("cp_comm_strategy"))
    config.contextSends = {yaml::pythonText(f.value()) == "alltoall",
                           Origin::Written, f.key, locate(f), ""};
  if (sp > 1)
    checkExchange("sp", "attn_implementation",
                  {"flash_attention_2", "flash_attention_3", "sdpa"});
  if ((tp > 1 || cp > 1) && replicate > 1 && shard == 1)
    error("mesh-axes", key("dp_replicate_size"),
          "tp_size or cp_size above 1 cannot be used with dp_replicate_size "
          "above 1 and dp_shard_size 1",
          shardAll(replicate));
  // DeepSpeed's sequence parallelism is its own; tensor and context
  // parallelism are planned beside FSDP2.
  const bool inner = strategy == Strategy::Fsdp2;
  const int64_t processes = *config.numProcesses;
  if (sp > 1 && !deepspeed && options.forPlanning)
    error("sp-needs-deepspeed", key("sp_size"), needsDeepspeed(type),
          deepspeedForSequences);
  // initialize_sequence_parallel of DeepSpeed's parallel_state_sp.py
  const bool sequences = sp > 1 && deepspeed,
             divided = config.assumed.numProcesses || processes % sp == 0;
  if (sequences && !divided)
    error("mesh-product", key("sp_size"),
          "num_processes " + std::to_string(processes) +
              " cannot be divided among sp_size " + std::to_string(sp) +
              " ranks; every rank stops with a RuntimeError",
          "write a divisor of " + std::to_string(processes));
  // AcceleratorState of accelerate/state.py
  const bool alone = cp > 1 && strategy == Strategy::Ddp;
  if (alone)
    error("cp-needs-fsdp", key("cp_size"),
          "context parallelism (cp_size " + std::to_string(cp) +
              ") needs FSDP2, and distributed_type is " +
              std::string(toString(type)) +
              "; every rank stops with a ValueError",
          "write distributed_type: FSDP and fsdp_version: 2");
  // Its documentation has context parallelism with FSDP2 alone; nothing of it
  // stops. 1.12 does none (cp-skipped).
  if (cp > 1 && deepspeed && !before(1, 13))
    report(Severity::Warning, "cp-needs-fsdp", key("cp_size"),
           "context parallelism (cp_size " + std::to_string(cp) +
               ") is for FSDP2 alone, and distributed_type is DEEPSPEED: "
               "Accelerate does not stop, ranks of cp_size share sequences as "
               "torch does it, and ZeRO shards over them too",
           "write sp_size, which is DeepSpeed's, or distributed_type: FSDP and "
           "fsdp_version: 2");
  for (auto [name, size] :
       {std::pair{"tp", inner ? 1 : tp}, {"cp", inner || alone ? 1 : cp}})
    if (size > 1)
      notSupported(key((std::string(name) + "_size").c_str()),
                   std::string(name) + "_size above 1 is not supported yet",
                   "plans shard and replicate data-parallel ranks, and split "
                   "layers by tp_size and sequences by cp_size under FSDP2");

  if (replicate > 1 << 20 || shard > 1 << 20 || tp > 1 << 20 || cp > 1 << 20 ||
      sp > 1 << 20)
    return checkMesh(replicate, shard, 1 << 20);
  // From 1.13 on what Accelerate compares is train_batch_size, which has the
  // data-parallel sizes (_prepare_deepspeed).
  if (sequences && !before(1, 13)) {
    if (divided && !config.assumed.mesh && !config.assumed.numProcesses &&
        replicate * shard * sp != processes)
      report(Severity::Error, "mesh-product", whole,
             "dp_replicate_size " + std::to_string(replicate) +
                 " x dp_shard_size " + std::to_string(shard) + " x sp_size " +
                 std::to_string(sp) + " is not num_processes " +
                 std::to_string(processes) +
                 ": DeepSpeed stops every rank with an AssertionError about "
                 "train_batch_size",
             "dp_replicate_size x dp_shard_size must be " +
                 std::to_string(processes / sp),
             true);
    return;
  }
  checkMesh(replicate, shard, tp * cp * sp);
  // Sizes that are all 1 say nothing: FSDP then takes all ranks.
  if (replicate * shard * tp * cp * sp == 1 || deepspeed)
    return;
  Field from = key("dp_shard_size") ? key("dp_shard_size") : whole;
  plan::Mesh sizes = plan::Mesh::dataParallel();
  sizes.resize("dp_replicate", replicate);
  sizes.resize("dp_shard", shard);
  if (cp > 1)
    sizes.resize("cp", cp);
  if (tp > 1)
    sizes.resize("tp", tp);
  mesh = {sizes, Origin::Written, from.key, locate(from), ""};
}

void AccelerateReader::checkMesh(int64_t replicate, int64_t shard,
                                 int64_t others) {
  Field whole{parallelism.entry, prefix + parallelism.name};
  int64_t total = replicate * shard * others;
  int64_t processes = *config.numProcesses;
  Strategy strategy = *config.strategy;
  if (total == 1 || config.assumed.mesh)
    return;
  if (config.assumed.fsdpVersion)
    return;
  if (strategy == Strategy::Fsdp1) {
    report(Severity::Error, "mesh-needs-fsdp2", whole,
           "parallelism_config needs fsdp_version 2; with version 1 every "
           "rank stops with a ValueError",
           "write fsdp_version: 2, or remove the section", true);
    return;
  }
  // sp-needs-deepspeed says what is wrong with it elsewhere.
  Field sp = in(parallelism, "parallelism_config_sp_size");
  bool otherSp =
      strategy != Strategy::Other && sp && envInt(sp.value()).value_or(1) > 1;
  if (total != processes && !otherSp && !config.assumed.numProcesses) {
    std::string text = std::to_string(replicate) + " x " +
                       std::to_string(shard) +
                       (others > 1 ? " x " + std::to_string(others) : "");
    report(Severity::Error, "mesh-product", whole,
           "the sizes of parallelism_config multiply to " +
               std::to_string(total) + " (" + text + "), num_processes is " +
               std::to_string(processes),
           "the product of all sizes must be num_processes", true);
    return;
  }
  Field cp = in(parallelism, "parallelism_config_cp_size");
  bool hasCp = cp && envInt(cp.value()).value_or(1) > 1;
  if (strategy == Strategy::Fsdp2 && shard == 1 && !hasCp) {
    Field size = in(parallelism, "parallelism_config_dp_shard_size");
    report(Severity::Error, "mesh-no-shard", size ? size : whole,
           "FSDP has no ranks to shard over: dp_shard_size and cp_size are 1; "
           "every rank stops with a ValueError",
           config.assumed.numProcesses  ? "write dp_shard_size above 1"
           : replicate > 1              ? shardAll(replicate)
           : *config.tensorParallel > 1 ? shardSome(*config.tensorParallel)
                                        : "write dp_shard_size above 1",
           !size);
  }
  Field size = in(parallelism, "parallelism_config_dp_shard_size");
  if (strategy == Strategy::Ddp && shard > 1)
    report(Severity::Warning, "ignored-key", size,
           "dp_shard_size shards nothing with distributed_type " +
               std::string(toString(*config.distributedType)) +
               ": every rank holds the whole model",
           "write distributed_type: FSDP and fsdp_version: 2", true);
}
