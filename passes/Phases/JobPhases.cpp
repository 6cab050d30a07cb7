//===- JobPhases.cpp - What a job holds outside its steps -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Phases/PhaseBuilder.h"

#include "passes/FrameworkSteps/HostRoom.h"
#include "runtime/plan/Optimizers.h"

namespace accel {
namespace {

/// PEFT's names: of a parameter of an adapter, and of one that it adds to.
bool isAdapters(const std::string &fqn) {
  return fqn.find(".lora_") != std::string::npos;
}
bool hasAdapter(const std::string &fqn) {
  return fqn.find(".base_layer.") != std::string::npos;
}

/// Of 4 bits each, with a scale of a byte for 32 of them.
int64_t mxfp4Bytes(int64_t numel) { return numel / 2 + numel / 32; }

} // namespace

std::vector<JobPhase> PhaseBuilder::run() {
  start();
  load();
  // Ranks of a node share the file cache.
  const int64_t loaded =
      fsdp() && !in.rankZeroLoads && !split ? shardBytes() : ownLoadedBytes;
  move(PhaseKind::Load, checkpointBytes, loaded);
  steps();
  eval();
  save();
  resume();
  moveCheckpoints(loaded);
  return std::move(phases);
}

/// A checkpoint's bytes, its states' among them; `loaded` are copied of a base.
void PhaseBuilder::moveCheckpoints(int64_t loaded) {
  const bool own = in.saved == SavedState::Sharded ||
                   (deepspeed() && !in.gathers16Bit && !adapted);
  const int64_t part = ((adapted ? ownTrainedBytes : ownStoredBytes) +
                        (in.savesStates ? stateBytes : 0)) /
                       shards();
  const int64_t stored = own ? part * std::max<int64_t>(1, in.ranksPerNode)
                             : writtenBytes() + savedStates();
  // ZeRO's ranks have the adapter each, and their own partitions.
  const int64_t copied = own                      ? part
                         : adapted && deepspeed() ? trainedBytes + partition()
                                                  : stored;
  if (!adapted) {
    move(PhaseKind::Save, stored, copied);
    move(PhaseKind::Resume, stored, copied);
    return move(PhaseKind::Merge, 2 * storedBytes, 0);
  }
  const bool gathers = fsdp() && in.saved == SavedState::Full;
  move(PhaseKind::Save, stored, gathers ? storedBytes + savedStates() : copied);
  move(PhaseKind::Resume, checkpointBytes + stored, loaded + copied);
  if (!whyNotMerged())
    move(PhaseKind::Merge, checkpointBytes + loadedBytes, 0);
}

int64_t PhaseBuilder::base() const {
  return processHostBytes(candidate.executor, model.device == "cuda");
}

/// Weights are read into the model file by file, of which one is at hand;
/// before 4.49 a whole state dict beside an initialised model.
bool PhaseBuilder::readsWholeStateDict() const {
  return !atLeast(in.transformers, "4.49");
}

void PhaseBuilder::measure() {
  std::vector<int64_t> units(candidate.numUnits());
  // Of flat parameters nobody knows what was an embedding.
  const bool flat = deepspeed() || candidate.executor == FrameworkKind::Fsdp1;
  // fsdp2_prepare_model of accelerate/utils/fsdp_utils.py: from 1.14 on before
  // fully_shard, on the host; up to 1.12 after it, on the shards.
  const bool turnsWide = candidate.executor == FrameworkKind::Fsdp2 &&
                         atLeast(candidate.accelerateVersion, "1.14");
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const StepParameter &parameter = model.parameters[p];
    const int64_t numel = parameter.numel();
    // What is packed and no parameter is among the replicated bytes.
    const int64_t packed =
        parameter.packedIsParameter ? parameter.packedBytes : 0;
    const int64_t wide = numel * plan::itemSize(in.loaded);
    const int64_t held = parameter.quantized() ? packed : wide;
    const int64_t parts = in.parts.empty() ? 1 : in.parts[p];
    split |= parts > 1;
    ownLoadedBytes += held + parameter.replicatedBytes;
    loadedBytes += parts * (held + parameter.replicatedBytes);
    const bool experts = parameter.shape.size() == 3;
    checkpointBytes +=
        parts * (parameter.quantized() ? held + parameter.replicatedBytes
                 : experts && in.dequantizesExperts
                     ? mxfp4Bytes(numel)
                     : numel * plan::itemSize(in.checkpoint));
    largest = std::max(largest, parts * wide);
    // Mixtral's and Qwen3's checkpoints have each expert by itself.
    if (experts)
      expertBytes += wide;
    quantized |= parameter.quantized();
    if (parameter.quantized())
      largestQuantized = std::max(largestQuantized, wide);
    adapted |= isAdapters(parameter.fqn);
    if (hasAdapter(parameter.fqn))
      largestAdapted = std::max(largestAdapted, parts * wide);
    const int64_t stored =
        parameter.storedNumel() * plan::itemSize(dtypes.storage(parameter));
    ownStoredBytes += stored + parameter.replicatedBytes;
    storedBytes += parts * (stored + parameter.replicatedBytes);
    units[candidate.unitOf[p]] += stored;
    largestStored = std::max(largestStored, parts * stored);
    if (!parameter.trainable)
      continue;
    trainedBytes += parts * stored;
    ownTrainedBytes += stored;
    largestTrained = std::max(largestTrained, parts * stored);
    if (turnsWide && plan::itemSize(dtypes.storage(parameter)) >
                         plan::itemSize(parameter.dtype))
      upcastBytes += stored;
    for (const plan::StateRule &state : candidate.update->states) {
      const int64_t bytes =
          plan::OptimizerRule::elements(
              state, parameter.shape,
              parameter.shape.empty() ? 1 : parameter.shape.front(),
              !flat && candidate.update->habits.wideEmbeddings &&
                  parameter.embedding) *
          plan::itemSize(
              plan::OptimizerRule::dtypeOf(state, dtypes.state(parameter)));
      stateBytes += bytes;
      wholeStateBytes += parts * bytes;
      largestState = std::max(largestState, bytes);
    }
    // Of ZeRO the fp32 weights are the optimizer's.
    if (deepspeed() && candidate.dtypes.masterCopy) {
      const int64_t bytes = numel * plan::itemSize(plan::DType::F32);
      stateBytes += bytes;
      wholeStateBytes += parts * bytes;
    }
    trainedNumel += numel;
  }
  // Its partitions are flat, and each is one storage; of stage 3 each group of
  // sub_group_size elements.
  if (deepspeed()) {
    const int64_t part = trainedNumel / shards();
    largestState =
        plan::itemSize(plan::DType::F32) *
        (candidate.zeroStage == 3 ? std::min(part, candidate.zero.subGroup)
                                  : part);
  }
  for (int64_t bytes : units)
    largestUnit = std::max(largestUnit, bytes);
}

/// `device` and `host` of the rank with most, `others` of the other ranks'
/// hosts; the process itself is added.
void PhaseBuilder::add(PhaseKind kind, int64_t device, int64_t host,
                       int64_t others, std::string why, int64_t serial) {
  JobPhase phase;
  phase.kind = kind;
  phase.deviceBytes = device + in.contextBytes;
  phase.hostBytes = host + base();
  // A merge is a job of one process.
  const int64_t rest =
      kind == PhaseKind::Merge ? 0 : std::max<int64_t>(0, in.ranksPerNode - 1);
  phase.nodeHostBytes = phase.hostBytes + rest * (others + base());
  phase.why = std::move(why);
  phase.serialBytes = serial;
  phases.push_back(std::move(phase));
}

void PhaseBuilder::move(PhaseKind kind, int64_t storage, int64_t copied) {
  for (JobPhase &phase : phases)
    if (phase.kind == kind && !phase.stops()) {
      phase.storageBytes = storage;
      phase.copiedBytes = model.device == "cuda" ? copied : 0;
    }
}

void PhaseBuilder::start() {
  add(PhaseKind::Start, 0, 0, 0,
      "a process that has imported torch, transformers and accelerate");
}

//===--- Load -----------------------------------------------------------===//

void PhaseBuilder::load() {
  const int64_t reading = readsWholeStateDict() ? checkpointBytes : 0;
  // Memory-mapped safetensors are file cache; one tensor is converted.
  const int64_t whole =
      loadedBytes + beside() + std::max(reading, largest) + readAhead();
  const int64_t kept = step.hostBytes; // what stays on the host in training
  if (quantized)
    return loadQuantized();
  if (deepspeed() && candidate.zeroStage == 3)
    return loadZero3(whole, fileBytes(checkpointBytes), kept);
  if (split && !deepspeed())
    return loadSplit(kept);
  if (fsdp())
    return loadFsdp(whole, kept);
  add(PhaseKind::Load,
      std::max(ownLoadedBytes, step.persistentBytes - statesOnDevice()),
      whole + kept, whole + kept,
      std::string("each rank reads the whole model into host memory") +
          besideWhole());
}

/// transformers before 5.0 reads on rank 0 alone and gives the others tensors
/// whose memory nothing touches (modeling_utils.py). The loader of 5.0
/// (convert_and_load_state_dict_in_model, core_model_loading.py) asks for no
/// rank: measured with 5.23 on two ranks, both have all values on the host.
bool PhaseBuilder::rankZeroReads() const {
  return in.rankZeroLoads && !atLeast(in.transformers, "5.0");
}

/// TRL's trainers load a second model before the first is prepared.
int64_t PhaseBuilder::beside() const {
  return candidate.preference.reference == PreferenceStep::Reference::Second
             ? loadedBytes
             : 0;
}

/// What accelerate turns into fp32 takes the place of the parameters as loaded
/// one by one, and writes to the empty tensors of the other ranks as well
/// (measured with 1.15 on two ranks: 133 M parameters in 265 MB took 506 MiB
/// more of each).
void PhaseBuilder::loadFsdp(int64_t whole, int64_t kept) {
  const bool turns = upcastBytes > 0;
  const int64_t device = shardBytes() + largestPiece();
  const int64_t host = turns ? std::max(whole, storedBytes + beside()) : whole;
  if (rankZeroReads())
    return add(PhaseKind::Load, device, std::max(host, kept),
               std::max(upcastBytes, kept),
               std::string("rank 0 reads the model and sends it unit by unit; "
                           "the others have empty tensors") +
                   (turns ? ", and accelerate turns what is trained into fp32 "
                            "on the host of every rank"
                          : ""));
  std::string why = "each rank reads the whole model into host memory";
  if (in.rankZeroLoads)
    why += ", since transformers 5 with fsdp_cpu_ram_efficient_loading too";
  why += besideWhole();
  if (turns)
    why += "; accelerate turns what is trained into fp32 there, before FSDP2 "
           "shards it";
  const int64_t each = in.rankZeroLoads ? std::max(host, kept) : host + kept;
  add(PhaseKind::Load, device, each, each, std::move(why));
}

/// Under a plan of tensor parallelism from_pretrained reads a rank's slices of
/// the mapped files onto its device (initialize_distributed_mesh of
/// transformers/distributed/utils.py, sharding_utils.py). What accelerate turns
/// into fp32 is turned there, and the whole part stays until FSDP2 has its
/// shards of it (original_sd of fsdp2_prepare_model).
void PhaseBuilder::loadSplit(int64_t kept) {
  const bool turns = upcastBytes > 0;
  const int64_t part = (turns ? ownStoredBytes : ownLoadedBytes) +
                       (beside() > 0 ? ownLoadedBytes : 0);
  add(PhaseKind::Load, part + (fsdp() ? shardBytes() + largestPiece() : 0),
      kept, kept,
      std::string("each rank reads its part of the tensors that are split, and "
                  "the others whole, onto its device") +
          (turns ? "; accelerate turns what is trained into fp32 there" : "") +
          (fsdp() ? ", before FSDP2 shards it" : ""));
}

/// Of Single and DDP, whose optimizers make them at the first update.
/// DeepSpeed's are made by its initialize.
int64_t PhaseBuilder::statesOnDevice() const {
  return replicated() && !candidate.offloadOptimizer &&
                 !candidate.offloadParameters
             ? std::max<int64_t>(0, stateBytes - step.pagedBytes)
             : 0;
}

/// From 5 on transformers has threads that read and convert tensors ahead of
/// the one that stacks experts (convert_and_load_state_dict_in_model,
/// core_model_loading.py), with no bound between them, and the C library's
/// heap keeps what blocks below 32 MiB took: at most the experts once more.
/// Tensors of the checkpoint's own dtype are views of its mapped file.
int64_t PhaseBuilder::readAhead() const {
  return atLeast(in.transformers, "5.0") && in.loaded != in.checkpoint
             ? expertBytes
             : 0;
}
std::string PhaseBuilder::besideWhole() const {
  if (readAhead() > 0)
    return ", beside its experts one by one, which are converted ahead of "
           "being stacked";
  return readsWholeStateDict() ? ", beside its state dict" : "";
}

/// Each layer is quantised on the device as it is read, or read packed. From
/// transformers 5 on that is so on each rank (rankZeroReads). What is quantised
/// is wide beside it; a tensor of another dtype than the model's is converted
/// on the host, and others are views of the mapped file.
void PhaseBuilder::loadQuantized() {
  const int64_t wide = largestQuantized;
  const int64_t read = in.loaded == in.checkpoint ? wide : largest;
  // fsdp2_prepare_model sends nothing where a parameter is bitsandbytes'.
  if (candidate.executor == FrameworkKind::Fsdp1 && rankZeroReads())
    return add(PhaseKind::Load, shardBytes() + largestUnit,
               ownLoadedBytes + read, 0,
               "rank 0 quantises the model layer by layer and sends it unit "
               "by unit");
  add(PhaseKind::Load, ownLoadedBytes + wide, read, read,
      fsdp() ? "each rank holds the whole quantised model on its device "
               "before FSDP shards it"
      : in.readsPacked ? "packed weights are read onto the device as they are"
                       : "each layer is quantised on the device as it is read");
}

void PhaseBuilder::loadZero3(int64_t whole, int64_t file, int64_t kept) {
  if (in.zeroInit)
    return add(PhaseKind::Load, step.persistentBytes + largest,
               std::max(checkpointBytes, file) + kept, kept,
               "zero.Init partitions each parameter as it is made; rank 0 "
               "reads the state dict");
  add(PhaseKind::Load, step.persistentBytes + largest, whole + kept,
      whole + kept,
      std::string("without HfDeepSpeedConfig each rank reads the whole model "
                  "into host memory before DeepSpeed partitions it") +
          besideWhole());
}

/// Of a checkpoint of as many bytes, the largest file.
int64_t PhaseBuilder::fileBytes(int64_t of) const {
  return std::min(of, atLeast(in.transformers, "5.0") ? newShardBytes
                                                      : oldShardBytes);
}

/// Parameters of a rank.
int64_t PhaseBuilder::shardBytes() const {
  return step.persistentBytes > 0
             ? std::min(step.persistentBytes,
                        (ownStoredBytes + candidate.shards().ranks - 1) /
                            candidate.shards().ranks)
             : 0;
}
/// What is whole on the device at a time: FSDP1 moves a unit, FSDP2 sends a
/// parameter.
int64_t PhaseBuilder::largestPiece() const {
  return candidate.executor == FrameworkKind::Fsdp1 ? largestUnit
                                                    : largestStored;
}

//===--- Steps ----------------------------------------------------------===//

void PhaseBuilder::steps() {
  const int64_t device = step.deviceBytes - in.contextBytes;
  // Of the allocator it takes what the others take beyond their tensors.
  const int64_t less =
      first ? std::max<int64_t>(0, step.peakBytes - first->peakBytes) : 0;
  add(PhaseKind::FirstStep, device - less, step.hostBytes, step.hostBytes,
      candidate.update->states.empty() ? "the optimizer keeps no states"
      : deepspeed()
          ? "the optimizer's states are there from initialize on"
          : "the optimizer's states appear at the first update, beside "
            "all gradients");
  add(PhaseKind::Step, device, step.hostBytes, step.hostBytes,
      "at its peak: " + step.peakWhere);
}

const char *toString(PhaseKind kind) {
  switch (kind) {
  case PhaseKind::Start:
    return "start";
  case PhaseKind::Load:
    return "load";
  case PhaseKind::FirstStep:
    return "first step";
  case PhaseKind::Step:
    return "step";
  case PhaseKind::Eval:
    return "eval";
  case PhaseKind::Save:
    return "save";
  case PhaseKind::Resume:
    return "resume";
  case PhaseKind::Merge:
    return "merge";
  }
  return "";
}

double phaseSeconds(const JobPhase &phase, const PhaseRates &rates) {
  double seconds =
      static_cast<double>(phase.storageBytes) / rates.storageBytesPerSecond;
  if (rates.hostBytesPerSecond > 0)
    seconds +=
        static_cast<double>(phase.copiedBytes) / rates.hostBytesPerSecond;
  return seconds;
}

std::vector<JobPhase> jobPhases(const StepModel &model, const Target &target,
                                const Candidate &candidate,
                                const StepPrediction &step,
                                const PhaseInputs &inputs) {
  return PhaseBuilder(model, target, candidate, step, inputs).run();
}

} // namespace accel
