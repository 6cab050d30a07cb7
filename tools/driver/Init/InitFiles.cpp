//===- InitFiles.cpp - The files that init writes -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Init/InitFiles.h"

#include <algorithm>

namespace accel::init {

std::string accelerateText(FrameworkKind executor, const InitOptions &options,
                           bool onCpu) {
  std::string text = "compute_environment: LOCAL_MACHINE\ndistributed_type: ";
  text += executor == FrameworkKind::Fsdp2 ? "FSDP\n"
          : executor != FrameworkKind::Ddp ? "'NO'\n"
          : onCpu                          ? "MULTI_CPU\n"
                                           : "MULTI_GPU\n";
  if (onCpu)
    text += "use_cpu: true\n";
  text += "num_machines: " + std::to_string(options.plan.nodes.value_or(1)) +
          "\nnum_processes: " + std::to_string(options.processes) +
          "\nmixed_precision: " +
          (options.precision == "no" ? "'no'" : options.precision) + "\n";
  if (executor == FrameworkKind::Fsdp2)
    text += "fsdp_config:\n"
            "  fsdp_version: 2\n"
            "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  fsdp_reshard_after_forward: true\n"
            "  fsdp_activation_checkpointing: false\n"
            "  fsdp_offload_params: false\n"
            "  fsdp_cpu_ram_efficient_loading: true\n"
            "  fsdp_state_dict_type: FULL_STATE_DICT\n";
  return text;
}

std::string argumentsText(FrameworkKind executor, const InitOptions &options,
                          int64_t batchOfRank, bool onCpu) {
  std::string text = "output_dir: out\n";
  // Without it TrainingArguments refuses bf16 where there is no GPU.
  if (onCpu)
    text += "use_cpu: true\n";
  text += "per_device_train_batch_size: " + std::to_string(batchOfRank) +
          "\ngradient_accumulation_steps: 1\n";
  if (options.precision != "no")
    text += options.precision + ": true\n";
  text += std::string("optim: ") +
          (options.plan.optim ? options.plan.optim->name : "adamw_torch") +
          "\n";
  // FSDP recomputes by its own key; both at once would do it twice.
  if (executor != FrameworkKind::Fsdp2)
    text += "activation_checkpointing: false\n";
  return text + "use_liger_kernel: false\n";
}

std::string launchCommand(const InitOptions &options, bool onCpu,
                          const std::string &accelerateFile) {
  const std::string launch =
      "accelerate launch --config_file " + accelerateFile;
  if (!onCpu || options.processes == 1)
    return launch;
  // MULTI_CPU is one process of accelerate launch, which hands the ranks of its
  // own environment on, and writes this port over torchrun's.
  const int64_t nodes = options.plan.nodes.value_or(1);
  const std::string meeting = nodes > 1
                                  ? " --nnodes " + std::to_string(nodes) +
                                        " --node-rank RANK --master-addr HOST"
                                  : "";
  return "torchrun --nproc-per-node " +
         std::to_string(options.processes / nodes) + meeting +
         " --master-port 29500 --no-python " + launch +
         (nodes > 1 ? " --main_process_ip HOST --main_process_port 29500" : "");
}

Reasons plainReasons(const InitOptions &options, bool onCpu) {
  Reasons reasons = {
      {"compute_environment", onCpu ? "no cluster service"
                                    : "accelerate launch starts the ranks "
                                      "itself"},
      {"use_cpu", "the target is a CPU"},
      {"num_machines", options.plan.nodes ? "as asked"
                                          : "one, as nothing else "
                                            "was asked"},
      {"num_processes", "ranks, as asked"},
      {"fsdp_version", "parameters are sharded one by one; version 1 is going "
                       "away"},
      {"fsdp_auto_wrap_policy", "each layer is a unit: one is gathered while "
                                "another computes"},
      {"fsdp_cpu_ram_efficient_loading",
       "rank 0 alone sends the weights; since transformers 5 each rank reads "
       "them all the same"},
      {"fsdp_state_dict_type", "save_model writes whole weights, which "
                               "from_pretrained reads"},
      {"output_dir", "yours to name"},
      {"optim", options.plan.optim ? "as asked"
                                   : "the default of "
                                     "TrainingArguments"},
  };
  const std::string why =
      options.precision == "no"
          ? "as asked: everything is computed as it is loaded"
      : options.precision == "bf16"
          ? "matmuls at the device's rate for 16 bits, with the range of fp32"
          : "as asked: 16 bits, with a loss that is scaled";
  reasons["mixed_precision"] = why;
  reasons[options.precision] = "the same as mixed_precision";
  return reasons;
}

std::string commented(const std::string &text, const Reasons &reasons) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t begin = line.find_first_not_of(' ');
    const size_t colon = line.find(':');
    out += line;
    if (begin != std::string::npos && line[begin] != '#' &&
        colon != std::string::npos) {
      auto reason = reasons.find(line.substr(begin, colon - begin));
      if (reason != reasons.end() && !reason->second.empty())
        out += "  # " + reason->second;
    }
    out += "\n";
    at = end + 1;
  }
  return out;
}

} // namespace accel::init
