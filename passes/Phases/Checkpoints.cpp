//===- Checkpoints.cpp - Saving, resuming and merging ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Phases/PhaseBuilder.h"

#include "runtime/plan/Optimizers.h"

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
  const bool states = savedStates() > 0;
  if (in.saved == SavedState::Sharded)
    return add(PhaseKind::Save, persistent, step.hostBytes + copiedShards(),
               step.hostBytes + copiedShards(),
               std::string("each rank writes its own shards of ") +
                   (adapted ? "the adapter" : "the model") +
                   (states ? ", and after them the optimizer's" : "") +
                   ", copied to host memory");
  if (fsdp()) {
    // save_model of Trainer gathers the base too, and writes the adapter of it.
    const bool many = !adapted || states;
    return add(
        PhaseKind::Save, persistent + largestPiece(),
        std::max(storedBytes, savedStates()) + step.hostBytes, step.hostBytes,
        std::string(adapted ? "the whole model" : "parameters") +
            afterIt(" the optimizer's states,") + (many ? " are" : " is") +
            " gathered piece by piece to rank 0's host memory" +
            (adapted ? "; of the model the adapter alone is written"
                     : " (rank0_only, offload_to_cpu)"),
        storedBytes + savedStates());
  }
  if (adapted)
    return saveAdapter();
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
                   (savesStates()
                        ? std::string(", and each rank ") + partitionText()
                        : ""),
               storedBytes);
  // torch.save copies one storage at a time.
  add(PhaseKind::Save, persistent,
      std::max(file, states ? largestState : 0) + step.hostBytes,
      step.hostBytes,
      std::string("rank 0 writes the model file by file") +
          (states ? ", and the optimizer's states one by one" : ""),
      storedBytes + savedStates());
}

/// save_pretrained of a PeftModel writes the adapter alone; the states are
/// saved as those of a whole model.
void PhaseBuilder::saveAdapter() {
  std::string why = "the adapter is written";
  if (deepspeed() && savesStates())
    why += std::string(", and each rank writes ") + partitionText();
  else if (savedStates() > 0)
    why += ", and after it the optimizer's states one by one";
  const int64_t own = deepspeed() ? copiedPartition() : 0;
  const int64_t one = savedStates() > 0 ? largestState : 0;
  add(PhaseKind::Save, step.persistentBytes,
      std::max(trainedBytes, deepspeed() ? own : one) + step.hostBytes,
      own + step.hostBytes, std::move(why),
      trainedBytes + (deepspeed() ? 0 : savedStates()));
}

/// Of ZeRO the fp32 weights are the optimizer's, which may have no more.
const char *PhaseBuilder::partitionText() const {
  return candidate.update->states.empty()
             ? "its own partition of fp32 weights"
             : "its own partition of fp32 weights and states";
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
/// FSDP2's are there already where it offloads, and FSDP1 makes new ones, of a
/// base too: PEFT picks the adapter out of the whole state dict.
int64_t PhaseBuilder::copiedShards() const {
  return candidate.executor == FrameworkKind::Fsdp2 &&
                 candidate.offloadParameters
             ? 0
             : std::max(
                   shardOf(adapted && candidate.executor == FrameworkKind::Fsdp2
                               ? ownTrainedBytes
                               : ownStoredBytes),
                   partition());
}

/// What comes after the model or the adapter, where there are states.
std::string PhaseBuilder::afterIt(const char *states) const {
  return savedStates() == 0
             ? ""
             : std::string(adapted ? ", and after it" : ", and after them") +
                   states;
}

/// Of a whole model, what a checkpoint has: an adapter's leaves out the base.
int64_t PhaseBuilder::writtenBytes() const {
  return adapted ? trainedBytes : storedBytes;
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
  if (in.saved == SavedState::Sharded)
    resumeShards();
  else if (fsdp())
    resumeFull();
  else if (deepspeed())
    resumeDeepspeed();
  else
    resumeReplicated();
  if (adapted)
    afterBase(phases.back());
}

void PhaseBuilder::resumeShards() {
  const int64_t host = offloaded() + copiedShards();
  add(PhaseKind::Resume, step.persistentBytes, host, host,
      std::string("each rank reads its own shards of ") +
          (adapted ? "the adapter" : "the model") +
          (savedStates() > 0 ? ", and after them the optimizer's," : "") +
          " into host memory");
}

/// load_fsdp_model and load_fsdp_optimizer: each rank of FSDP1 reads the model,
/// rank 0 alone does under FSDP2 and the optimizer's states. All wait between
/// them. FSDP2 sends of a model with an adapter what is trained.
void PhaseBuilder::resumeFull() {
  const bool each = candidate.executor == FrameworkKind::Fsdp1;
  const bool states = savedStates() > 0;
  const int64_t read = writtenBytes() + offloadedBefore();
  const std::string what = adapted ? "the adapter" : "the whole model";
  const int64_t piece = adapted && !each ? largestTrained : largestPiece();
  add(PhaseKind::Resume, step.persistentBytes + piece,
      std::max(read, savedStates() + offloaded()), offloaded(),
      each ? "each rank reads " + what + " into host memory" +
                 (states ? ", and rank 0 after it the optimizer's states, "
                           "which it sends piece by piece"
                         : "")
           : std::string("rank 0 reads ") +
                 (adapted ? "the adapter" : "the parameters") +
                 afterIt(" the optimizer's states,") +
                 " and sends them piece by piece");
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
      offloaded() + std::max(whole ? writtenBytes() : 0, partition());
  const std::string part = partitionText();
  add(PhaseKind::Resume, step.persistentBytes, host, host,
      "each rank reads " +
          (!whole    ? part
           : adapted ? "the adapter, and after it " + part + ","
                     : "the whole module, and after it " + part + ",") +
          " into host memory" +
          (offloaded() > 0 ? ", beside what is offloaded" : ""));
}

/// Accelerator.load_state reads the model's file onto the device, beside the
/// model, where there are several processes. Trainer maps it on the host
/// (_load_from_checkpoint), and so does load_state in one process. After that
/// the states are read, which a new optimizer has none of, and
/// Optimizer.load_state_dict keeps the tensors that it is given. An adapter is
/// read onto the device however many processes there are (load_adapter of
/// peft/peft_model.py), by Trainer before the model is prepared.
void PhaseBuilder::resumeReplicated() {
  const bool onDevice = ranks() > 1;
  const bool beside = adapted || (onDevice && !in.byTrainer);
  const bool states = savedStates() > 0;
  const int64_t weights =
      step.persistentBytes - statesOnDevice() + (beside ? writtenBytes() : 0);
  const int64_t host = offloadedBefore() + (onDevice ? 0 : savedStates());
  std::string why = adapted  ? "the adapter's file is read onto the device"
                    : beside ? "the weights are read onto the device beside "
                               "the model's"
                             : "the weights are read from a mapped file";
  why += afterIt(onDevice ? " the optimizer's states, which stay on the device"
                          : " the optimizer's states into host memory");
  add(PhaseKind::Resume,
      states ? std::max(step.persistentBytes, weights) : weights, host, host,
      std::move(why));
}

/// The base and the wrapper take what they took at first, before a checkpoint
/// of the adapter is read.
void PhaseBuilder::afterBase(JobPhase &resumed) const {
  const auto load =
      std::find_if(phases.begin(), phases.end(), [](const JobPhase &phase) {
        return phase.kind == PhaseKind::Load;
      });
  resumed.deviceBytes = std::max(load->deviceBytes, resumed.deviceBytes);
  resumed.hostBytes = std::max(load->hostBytes, resumed.hostBytes);
  resumed.nodeHostBytes = std::max(load->nodeHostBytes, resumed.nodeHostBytes);
  resumed.why = "the base is loaded as before; then " + resumed.why;
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
