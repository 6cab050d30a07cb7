//===- Checkpoints.cpp - Saving, resuming and merging ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Phases/PhaseBuilder.h"

namespace accel {

void PhaseBuilder::save() {
  const int64_t persistent = step.persistentBytes;
  const int64_t shard = shardBytes();
  if (adapted) {
    // save_pretrained of a PeftModel writes the adapter alone.
    const bool gathers = fsdp() && in.saved == SavedState::Full;
    return add(PhaseKind::Save, persistent + (gathers ? largestUnit : 0),
               gathers ? storedBytes : trainedBytes, 0,
               gathers ? "the whole model is gathered unit by unit to rank "
                         "0's host memory, and the adapter is written"
                       : "the adapter is written",
               gathers ? storedBytes : trainedBytes);
  }
  if (in.saved == SavedState::Sharded)
    return add(PhaseKind::Save, persistent, shard + stateBytes / shards(),
               shard + stateBytes / shards(),
               "each rank writes its own shards, copied to host memory");
  if (fsdp())
    return add(
        PhaseKind::Save, persistent + largestPiece(),
        std::max(storedBytes, savedStates()) + step.hostBytes, step.hostBytes,
        std::string("parameters") +
            (in.savesStates ? ", and after them the optimizer's states, are"
                            : " are") +
            " gathered piece by piece to rank 0's host memory "
            "(rank0_only, offload_to_cpu)",
        storedBytes + savedStates());
  if (deepspeed() && candidate.zeroStage == 3) {
    const int64_t half =
        storedBytes /
        std::max<int64_t>(1, plan::itemSize(candidate.dtypes.storage)) * 2;
    return add(PhaseKind::Save, persistent + largest,
               std::max(in.gathers16Bit ? half : 0, copiedPartition()) +
                   step.hostBytes,
               copiedPartition() + step.hostBytes,
               std::string(in.gathers16Bit
                               ? "16-bit weights are gathered to rank 0's host "
                                 "memory, and each rank writes its own "
                                 "partition"
                               : "each rank writes its own partition") +
                   (copiedPartition() > 0 ? ", copied to host memory" : ""),
               in.gathers16Bit ? half : 0);
  }
  const int64_t file = fileBytes(storedBytes);
  if (deepspeed())
    return add(PhaseKind::Save, persistent,
               std::max(file, copiedPartition()) + step.hostBytes,
               copiedPartition() + step.hostBytes,
               std::string("rank 0 writes the model file by file") +
                   (in.savesStates ? ", and each rank its own partition of "
                                     "fp32 weights and states"
                                   : ""),
               storedBytes);
  // torch.save copies one storage at a time.
  add(PhaseKind::Save, persistent,
      std::max(file, in.savesStates ? largestState : 0) + step.hostBytes,
      step.hostBytes,
      std::string("rank 0 writes the model file by file") +
          (in.savesStates ? ", and the optimizer's states one by one" : ""),
      storedBytes + savedStates());
}

/// Of all ranks, where a checkpoint has them.
int64_t PhaseBuilder::savedStates() const {
  return in.savesStates ? stateBytes : 0;
}

/// torch.save copies a storage to the host; an offloaded one is there.
int64_t PhaseBuilder::copiedPartition() const {
  return in.savesStates && !candidate.offloadOptimizer ? largestState : 0;
}

/// Accelerator.load_state.
void PhaseBuilder::resume() {
  const int64_t shard = shardBytes();
  const int64_t states = stateBytes / shards();
  if (adapted) {
    resumeAdapted();
    return mergeAdapted();
  }
  if (in.saved == SavedState::Sharded) {
    add(PhaseKind::Resume, step.persistentBytes, shard + states, shard + states,
        "each rank reads its own shards into host memory");
    // merge-weights reads all shards into one state dict.
    add(PhaseKind::Merge, 0, storedBytes + std::min(storedBytes, newShardBytes),
        0,
        "accelerate merge-weights holds the whole state dict in one "
        "process");
    return;
  }
  if (fsdp())
    return add(
        PhaseKind::Resume, step.persistentBytes + largestPiece(),
        std::max(storedBytes, savedStates()), 0,
        std::string("rank 0 reads the parameters") +
            (in.savesStates ? ", and after them the optimizer's states," : "") +
            " and sends them piece by piece");
  if (deepspeed()) {
    // load_checkpoint: the module's file, whose parameters are elsewhere in
    // stage 3, and the rank's own partition of fp32 weights and states.
    const int64_t host = (candidate.zeroStage == 3 ? 0 : storedBytes) + states;
    return add(PhaseKind::Resume, step.persistentBytes, host, host,
               candidate.zeroStage == 3
                   ? "each rank reads its own partition of fp32 weights and "
                     "states into host memory"
                   : "each rank reads the whole module, and its own partition "
                     "of fp32 weights and states, into host memory");
  }
  // map_location is "on_device" for several processes: the model's file is
  // there beside the model. After that the states are read, which a new
  // optimizer has none of, and Optimizer.load_state_dict keeps the tensors that
  // it is given.
  const bool onDevice = ranks() > 1;
  add(PhaseKind::Resume,
      std::max(step.persistentBytes,
               step.persistentBytes - statesOnDevice() +
                   (onDevice && replicated() ? storedBytes : 0)),
      onDevice ? 0 : storedBytes + stateBytes,
      onDevice ? 0 : storedBytes + stateBytes,
      onDevice ? "the weights are read onto the device beside the model's, and "
                 "after them the optimizer's states, which stay"
               : "the state is read into host memory");
}

/// The base and the wrapper take what they took at first; the adapter's file,
/// and after it its states, are read beside them.
void PhaseBuilder::resumeAdapted() {
  const auto load =
      std::find_if(phases.begin(), phases.end(), [](const JobPhase &phase) {
        return phase.kind == PhaseKind::Load;
      });
  JobPhase resumed = *load;
  const int64_t read = base() + trainedBytes + savedStates();
  resumed.kind = PhaseKind::Resume;
  resumed.deviceBytes = std::max(
      load->deviceBytes, step.persistentBytes + trainedBytes + in.contextBytes);
  resumed.hostBytes = std::max(load->hostBytes, read);
  resumed.nodeHostBytes = std::max(
      load->nodeHostBytes, read * std::max<int64_t>(1, in.ranksPerNode));
  resumed.why = "the base is loaded as before, and the adapter's file";
  phases.push_back(std::move(resumed));
}

/// LoraModel._check_merge_allowed and AwqLoraLinear, which has no merge
/// (peft/tuners/lora/model.py and awq.py, 0.21).
const char *PhaseBuilder::whyNotMerged() const {
  if (in.format == plan::WeightFormat::Gptq)
    return "merge_and_unload stops with a ValueError: PEFT merges into no base "
           "that is quantised with GPTQ; merge into the base in 16 bits";
  if (in.format == plan::WeightFormat::Awq)
    return "merge_and_unload stops with a NotImplementedError: PEFT merges "
           "into no base that is quantised with AWQ; merge into the base in 16 "
           "bits";
  return nullptr;
}

/// peft's merge_and_unload, layer by layer, B times A beside the weight. The
/// base is where from_pretrained puts it: on the host, or, quantised by
/// bitsandbytes, on the device, where a layer is dequantised first; the sum
/// goes through the host to be quantised again (peft/tuners/lora/bnb.py).
void PhaseBuilder::mergeAdapted() {
  if (const char *why = whyNotMerged()) {
    JobPhase stopped;
    stopped.kind = PhaseKind::Merge;
    stopped.why = why;
    phases.push_back(std::move(stopped));
  } else if (quantized) {
    add(PhaseKind::Merge, loadedBytes + 3 * largest, largest, 0,
        "merge_and_unload in one process dequantises a weight on the device, "
        "adds the adapter's product and quantises it again; merge into a base "
        "loaded in 16 bits to keep its digits");
  } else {
    add(PhaseKind::Merge, 0, loadedBytes + 2 * largest, 0,
        "merge_and_unload in one process adds the adapter's product to one "
        "weight at a time");
  }
}

} // namespace accel
