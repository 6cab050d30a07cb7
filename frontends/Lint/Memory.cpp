//===- Memory.cpp - Offloading and host memory ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Subject.h"

namespace accel::lint {

namespace {

constexpr const char *section = "fsdp_config";

void checkOffloadGain(const Subject &subject) {
  const AccelerateConfig &config = *subject.config;
  if (!*config.offloadParams || config.assumed.wrapPolicy)
    return;
  Field field = subject.in(section, "fsdp_offload_params");
  bool one =
      *config.wrapPolicy == WrapPolicy::None ||
      (*config.wrapPolicy == WrapPolicy::Size && *config.minNumParams <= 0);
  if (one)
    subject.report(Severity::Warning, "offload-no-gain", field,
                   "without a wrap policy every step brings the whole model "
                   "to the GPU at once",
                   "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP");
  else if (!*config.reshardAfterForward && config.sharded())
    subject.report(Severity::Warning, "offload-no-gain", field,
                   "parameters that are not resharded after the forward stay "
                   "on the GPU until the backward, all units at once",
                   subject.isFsdp2()
                       ? "write fsdp_reshard_after_forward: true"
                       : "write fsdp_sharding_strategy: FULL_SHARD");
}

/// PartialState compares these two texts, and the plugin reads them more
/// liberally (accelerate/state.py). A job is executed by accel-run, which asks
/// for its groups itself.
void checkCpuBackend(const Subject &subject) {
  const AccelerateConfig &config = *subject.config;
  if (config.assumed.stateDict || subject.job)
    return;
  Field offload = subject.in(section, "fsdp_offload_params"),
        type = subject.in(section, "fsdp_state_dict_type");
  auto lower = [](std::string text) {
    for (char &c : text)
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  };
  bool offloads = *config.offloadParams && offload,
       full = type && *config.stateDictType == StateDictType::Full;
  bool makesGloo = (offloads && lower(offload.text()) == "true") ||
                   (full && type.text() == "FULL_STATE_DICT");
  if (makesGloo || (!offloads && !full))
    return;
  bool wrongOffload = offloads;
  subject.report(
      Severity::Warning, "cpu-backend", wrongOffload ? offload : type,
      wrongOffload
          ? "Accelerate starts a process group for CPU tensors only if this is "
            "the word true; norms of offloaded gradients then fail"
          : "Accelerate starts a process group for CPU tensors only if this is "
            "written FULL_STATE_DICT; gathering the state on CPUs then fails",
      wrongOffload ? "write true" : "write FULL_STATE_DICT");
}

void checkLoading(const Subject &subject) {
  const AccelerateConfig &config = *subject.config;
  if (subject.isFsdp2() && *config.offloadParams &&
      *config.cpuRamEfficientLoading &&
      subject.version < AccelerateVersion{1, 13})
    subject.report(Severity::Warning, "offload-loading",
                   subject.in(section, "fsdp_offload_params"),
                   "accelerate " + toString(subject.version) +
                       " leaves offloaded parameters on the GPU after "
                       "fsdp_cpu_ram_efficient_loading",
                   "write fsdp_cpu_ram_efficient_loading: false, or use "
                   "accelerate 1.13");
  if (!subject.tree)
    return;
  double bytes = 0;
  for (const TreeParameter &p : subject.tree->parameters)
    if (p.tiedTo < 0)
      bytes += static_cast<double>(p.numel()) *
               static_cast<double>(plan::itemSize(p.dtype));
  constexpr double noteworthy = 256.0 * 1024 * 1024 * 1024;
  double copies = static_cast<double>(config.processesPerMachine());
  if (bytes * copies > noteworthy)
    subject.report(Severity::Note, "host-memory",
                   subject.in(section, "fsdp_cpu_ram_efficient_loading"),
                   "loading needs up to " + bytesText(bytes * copies) +
                       " of host memory on each machine: transformers 5 "
                       "allocates the whole model in each of its " +
                       std::to_string(config.processesPerMachine()) +
                       " processes",
                   "build the model on the meta device and load it sharded");
  double saved = static_cast<double>(subject.tree->numel()) * 12;
  if (*config.stateDictType == StateDictType::Full && saved > noteworthy)
    subject.report(Severity::Note, "host-memory",
                   subject.in(section, "fsdp_state_dict_type"),
                   "a full state dict gathers model and optimizer in the host "
                   "memory of rank 0, about " +
                       bytesText(saved),
                   "write fsdp_state_dict_type: SHARDED_STATE_DICT");
}

/// Accelerator.accumulate() enters no_sync between optimizer steps.
void noteAccumulation(const Subject &subject) {
  // Earlier releases reduce every micro-batch under FSDP2 (accumulation-syncs).
  if (!subject.config->sharded() ||
      (subject.isFsdp2() && subject.version < AccelerateVersion{1, 11}))
    return;
  const char *hint = "pass GradientAccumulationPlugin(sync_each_batch=True)";
  std::string what =
      "under `accelerate launch`, Accelerator.accumulate() keeps unsharded "
      "gradients of the whole model between optimizer steps";
  if (subject.tree)
    what += ", " +
            bytesText(static_cast<double>(subject.tree->numel()) *
                      static_cast<double>(subject.gatheredBytes())) +
            " on each rank";
  // DeepSpeed has such a key, FSDP has not.
  Field misplaced = subject.in(section, "fsdp_gradient_accumulation_steps");
  if (misplaced && integer(misplaced).value_or(0) > 1)
    subject.report(Severity::Note, "unsynced-gradients", misplaced,
                   "FSDP takes gradient_accumulation_steps from Accelerator() "
                   "in the script; " +
                       what,
                   hint, At::Key);
  if (subject.job && *subject.job->accumulation > 1)
    subject.report(Severity::Note, "unsynced-gradients",
                   subject.in(section, "fsdp_version"), what, hint);
}

} // namespace

void checkMemory(const Subject &subject) {
  if (!subject.isFsdp())
    return;
  checkOffloadGain(subject);
  checkCpuBackend(subject);
  checkLoading(subject);
  noteAccumulation(subject);
}

} // namespace accel::lint
