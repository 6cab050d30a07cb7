//===- Checkpoints.cpp - Saving, resuming and merging ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Phases/PhaseBuilder.h"

namespace accel {

/// Without checkpoints a script saves its model at the end; save_model of
/// Trainer writes nothing under FSDP but a whole state dict.
void PhaseBuilder::save() {
  if (in.savesCheckpoints)
    return saveState();
  if (fsdp() && in.saved == SavedState::Sharded)
    return;
  saveState();
  phases.back().why += ", by save_model at the end: save_strategy is no";
}

void PhaseBuilder::saveState() {
  const int64_t persistent = step.persistentBytes;
  if (adapted) {
    // save_pretrained of a PeftModel writes the adapter alone.
    const bool gathers = fsdp() && in.saved == SavedState::Full;
    return add(PhaseKind::Save, persistent + (gathers ? largestUnit : 0),
               (gathers ? storedBytes : trainedBytes) + step.hostBytes,
               step.hostBytes,
               gathers ? "the whole model is gathered unit by unit to rank "
                         "0's host memory, and the adapter is written"
                       : "the adapter is written",
               gathers ? storedBytes : trainedBytes);
  }
  if (in.saved == SavedState::Sharded)
    return add(PhaseKind::Save, persistent, step.hostBytes + copiedShards(),
               step.hostBytes + copiedShards(),
               "each rank writes its own shards of the model, and after them "
               "the optimizer's, copied to host memory");
  if (fsdp())
    return add(
        PhaseKind::Save, persistent + largestPiece(),
        std::max(storedBytes, savedStates()) + step.hostBytes, step.hostBytes,
        std::string("parameters") +
            (savesStates() ? ", and after them the optimizer's states, are"
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
                                 "memory"
                               : "each rank writes its own partition") +
                   (in.gathers16Bit && savesStates()
                        ? ", and each rank writes its own partition"
                        : "") +
                   (copiedPartition() > 0 ? ", copied to host memory" : ""),
               in.gathers16Bit ? half : 0);
  }
  const int64_t file = fileBytes(storedBytes);
  if (deepspeed())
    return add(PhaseKind::Save, persistent,
               std::max(file, copiedPartition()) + step.hostBytes,
               copiedPartition() + step.hostBytes,
               std::string("rank 0 writes the model file by file") +
                   (savesStates() ? ", and each rank its own partition of "
                                    "fp32 weights and states"
                                  : ""),
               storedBytes);
  // torch.save copies one storage at a time.
  add(PhaseKind::Save, persistent,
      std::max(file, savesStates() ? largestState : 0) + step.hostBytes,
      step.hostBytes,
      std::string("rank 0 writes the model file by file") +
          (savesStates() ? ", and the optimizer's states one by one" : ""),
      storedBytes + savedStates());
}

/// A stage 3 that gathers no weights saves all that its engine has, whatever
/// else is asked for (Trainer.save_model).
bool PhaseBuilder::savesStates() const {
  return in.savesStates || (deepspeed() && candidate.zeroStage == 3 &&
                            !in.gathers16Bit && !adapted);
}

/// Of all ranks, where a checkpoint has them.
int64_t PhaseBuilder::savedStates() const {
  return savesStates() ? wholeStateBytes : 0;
}

/// Of a rank that has a part of them.
int64_t PhaseBuilder::partition() const {
  return savesStates() ? shardOf(stateBytes) : 0;
}

/// torch.save copies a storage to the host; an offloaded one is there.
int64_t PhaseBuilder::copiedPartition() const {
  return savesStates() && !candidate.offloadOptimizer ? largestState : 0;
}

/// The model's shards are gone before the optimizer's are made (save_fsdp_model
/// and save_fsdp_optimizer have a state dict each, and so do those that load).
/// FSDP2's are there already where it offloads, and FSDP1 makes new ones.
int64_t PhaseBuilder::copiedShards() const {
  return candidate.executor == FrameworkKind::Fsdp2 &&
                 candidate.offloadParameters
             ? 0
             : std::max(shardOf(ownStoredBytes), partition());
}

int64_t PhaseBuilder::shardOf(int64_t bytes) const {
  return (bytes + shards() - 1) / shards();
}

/// What training keeps on the host, and of it what is there before a new
/// optimizer of torch has states.
int64_t PhaseBuilder::offloaded() const {
  return candidate.offloadParameters || candidate.offloadOptimizer
             ? step.hostBytes
             : 0;
}
int64_t PhaseBuilder::offloadedBefore() const {
  return deepspeed() ? offloaded()
                     : std::max<int64_t>(0, offloaded() - shardOf(stateBytes));
}

/// What Trainer looks for in a checkpoint and save_only_model leaves out
/// (deepspeed_load_checkpoint, and load_fsdp_model, which model.safetensors
/// leads to).
const char *PhaseBuilder::whyNotResumed() const {
  if (savesStates())
    return nullptr;
  if (deepspeed())
    return "Trainer stops with a ValueError: save_only_model writes no "
           "checkpoint of DeepSpeed's (global_step*)";
  if (fsdp() && !adapted)
    return "Trainer resumes nothing that save_only_model writes under FSDP, "
           "which is no pytorch_model_fsdp.bin: it stops";
  return nullptr;
}

void PhaseBuilder::stop(PhaseKind kind, const char *why) {
  JobPhase stopped;
  stopped.kind = kind;
  stopped.why = why;
  phases.push_back(std::move(stopped));
}

void PhaseBuilder::resume() {
  const bool sharded = in.saved == SavedState::Sharded;
  if (in.savesCheckpoints)
    resumeCheckpoint();
  else if (fsdp() && sharded)
    return; // nothing is saved
  if (adapted)
    return mergeAdapted();
  // merge-weights reads all shards into one state dict, one shard of a tensor
  // at a time, and writes from where it is (measured with accelerate 1.15 and
  // safetensors 0.8: 512 MiB of tensors of 64 MiB took 576 MiB).
  if (sharded)
    add(PhaseKind::Merge, 0, storedBytes + shardOf(largestStored), 0,
        "accelerate merge-weights holds the whole state dict in one process");
}

void PhaseBuilder::resumeCheckpoint() {
  if (const char *why = whyNotResumed())
    return stop(PhaseKind::Resume, why);
  if (adapted)
    return resumeAdapted();
  if (in.saved == SavedState::Sharded)
    return add(PhaseKind::Resume, step.persistentBytes,
               offloaded() + copiedShards(), offloaded() + copiedShards(),
               "each rank reads its own shards of the model, and after them "
               "the optimizer's, into host memory");
  if (fsdp())
    return resumeFull();
  if (deepspeed())
    return resumeDeepspeed();
  resumeReplicated();
}

/// load_fsdp_model and load_fsdp_optimizer: each rank of FSDP1 reads the model,
/// rank 0 alone does under FSDP2 and the optimizer's states. All wait between
/// them.
void PhaseBuilder::resumeFull() {
  const bool each = candidate.executor == FrameworkKind::Fsdp1;
  const int64_t read = storedBytes + offloadedBefore();
  add(PhaseKind::Resume, step.persistentBytes + largestPiece(),
      std::max(read, savedStates() + offloaded()), offloaded(),
      each ? "each rank reads the whole model into host memory, and rank 0 "
             "after it the optimizer's states, which it sends piece by piece"
           : "rank 0 reads the parameters, and after them the optimizer's "
             "states, and sends them piece by piece");
  if (each)
    phases.back().nodeHostBytes =
        std::max(phases.back().nodeHostBytes,
                 std::max<int64_t>(1, in.ranksPerNode) * (base() + read));
}

/// load_checkpoint: the module's file, whose parameters are elsewhere in stage
/// 3, and after it the rank's own partition of fp32 weights and states
/// (_load_zero_checkpoint).
void PhaseBuilder::resumeDeepspeed() {
  const bool whole = candidate.zeroStage < 3;
  const int64_t host =
      offloaded() + std::max(whole ? storedBytes : 0, partition());
  add(PhaseKind::Resume, step.persistentBytes, host, host,
      std::string(whole ? "each rank reads the whole module, and after it its "
                          "own partition of fp32 weights and states, into host "
                          "memory"
                        : "each rank reads its own partition of fp32 weights "
                          "and states into host memory") +
          (offloaded() > 0 ? ", beside what is offloaded" : ""));
}

/// Accelerator.load_state reads the model's file onto the device, beside the
/// model, where there are several processes. Trainer maps it on the host
/// (_load_from_checkpoint), and so does load_state in one process. After that
/// the states are read, which a new optimizer has none of, and
/// Optimizer.load_state_dict keeps the tensors that it is given.
void PhaseBuilder::resumeReplicated() {
  const bool onDevice = ranks() > 1;
  const bool beside = onDevice && !in.byTrainer;
  const int64_t weights =
      step.persistentBytes - statesOnDevice() + (beside ? storedBytes : 0);
  const int64_t host = offloadedBefore() + (onDevice ? 0 : savedStates());
  std::string why = beside ? "the weights are read onto the device beside the "
                             "model's"
                           : "the weights are read from a mapped file";
  if (savesStates())
    why += onDevice ? ", and after them the optimizer's states, which stay on "
                      "the device"
                    : ", and after them the optimizer's states into host "
                      "memory";
  add(PhaseKind::Resume,
      savesStates() ? std::max(step.persistentBytes, weights) : weights, host,
      host, std::move(why));
}

/// The base and the wrapper take what they took at first; the adapter's file,
/// and after it its states, are read beside them.
void PhaseBuilder::resumeAdapted() {
  const auto load =
      std::find_if(phases.begin(), phases.end(), [](const JobPhase &phase) {
        return phase.kind == PhaseKind::Load;
      });
  JobPhase resumed = *load;
  const int64_t read = base() + offloaded() + trainedBytes + savedStates();
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
    stop(PhaseKind::Merge, why);
  } else if (quantized) {
    add(PhaseKind::Merge, loadedBytes + 3 * largestAdapted, largestAdapted, 0,
        "merge_and_unload in one process dequantises a weight on the device, "
        "adds the adapter's product and quantises it again; merge into a base "
        "loaded in 16 bits to keep its digits");
  } else {
    add(PhaseKind::Merge, 0, loadedBytes + 2 * largestAdapted, 0,
        "merge_and_unload in one process adds the adapter's product to one "
        "weight at a time");
  }
}

} // namespace accel
