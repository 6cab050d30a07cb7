//===- JobPhases.cpp - What a job holds outside its steps -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Phases/JobPhases.h"

#include "passes/FrameworkSteps/ParameterDtypes.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>

namespace accel {
namespace {

/// A Python process that imported torch, transformers and accelerate (measured
/// on Linux, torch 2.15: 0.74 GiB resident), and what a CUDA context pins.
constexpr int64_t processBytes = int64_t(775) << 20;
constexpr int64_t cudaHostBytes = int64_t(1) << 30;
/// A shard of a checkpoint (save_pretrained's max_shard_size), before and from
/// transformers 5 on.
constexpr int64_t oldShardBytes = 5'000'000'000, newShardBytes = 50'000'000'000;

std::string shown(int64_t bytes) {
  const bool large = bytes >= int64_t(10) << 30;
  return std::to_string(bytes >> (large ? 30 : 20)) + (large ? " GiB" : " MiB");
}

class Phases {
public:
  Phases(const StepModel &model, const Candidate &candidate,
         const StepPrediction &step, const PhaseInputs &inputs)
      : model(model), candidate(candidate), step(step), in(inputs),
        dtypes(candidate) {
    measure();
  }

  std::vector<JobPhase> run() {
    start();
    load();
    // Ranks of a node share the file cache.
    move(PhaseKind::Load, checkpointBytes,
         fsdp() && !in.rankZeroLoads ? shardBytes() : loadedBytes);
    steps();
    eval();
    save();
    resume();
    if (adapted) {
      const bool gathers = fsdp() && in.saved == SavedState::Full;
      move(PhaseKind::Save, trainedBytes, gathers ? storedBytes : trainedBytes);
      move(PhaseKind::Resume, checkpointBytes + trainedBytes, loadedBytes);
      move(PhaseKind::Merge, checkpointBytes + loadedBytes, 0);
      return std::move(phases);
    }
    const bool own =
        in.saved == SavedState::Sharded || (deepspeed() && !in.gathers16Bit);
    const int64_t all = storedBytes + savedStates();
    const int64_t part = all / shards();
    for (PhaseKind kind : {PhaseKind::Save, PhaseKind::Resume})
      move(kind, own ? part * std::max<int64_t>(1, in.ranksPerNode) : all,
           own ? part : all);
    move(PhaseKind::Merge, 2 * storedBytes, 0);
    return std::move(phases);
  }

private:
  bool deepspeed() const {
    return candidate.executor == FrameworkKind::Deepspeed;
  }
  bool fsdp() const {
    return candidate.executor == FrameworkKind::Fsdp1 ||
           candidate.executor == FrameworkKind::Fsdp2;
  }
  int64_t ranks() const {
    return candidate.shards().ranks * candidate.replicas().ranks;
  }
  int64_t base() const {
    return processBytes + (model.device == "cuda" ? cudaHostBytes : 0);
  }
  /// Weights are read into the model file by file, of which one is at hand;
  /// before 4.49 a whole state dict beside an initialised model.
  bool readsWholeStateDict() const { return !atLeast(in.transformers, "4.49"); }

  void measure() {
    std::vector<int64_t> units(candidate.numUnits());
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const StepParameter &parameter = model.parameters[p];
      const int64_t numel = parameter.numel();
      // What is packed and no parameter is among the replicated bytes.
      const int64_t packed =
          parameter.packedIsParameter ? parameter.packedBytes : 0;
      const int64_t held =
          parameter.quantized() ? packed : numel * plan::itemSize(in.loaded);
      loadedBytes += held + parameter.replicatedBytes;
      checkpointBytes += parameter.quantized()
                             ? held + parameter.replicatedBytes
                             : numel * plan::itemSize(in.checkpoint);
      largest = std::max(largest, numel * plan::itemSize(in.loaded));
      // Mixtral's and Qwen3's checkpoints have each expert by itself.
      if (parameter.shape.size() == 3)
        expertBytes += numel * plan::itemSize(in.loaded);
      quantized |= parameter.quantized();
      const int64_t stored =
          parameter.storedNumel() * plan::itemSize(dtypes.storage(parameter));
      storedBytes += stored + parameter.replicatedBytes;
      units[candidate.unitOf[p]] += stored;
      largestStored = std::max(largestStored, stored);
      if (!parameter.trainable)
        continue;
      trainedBytes += stored;
      for (const plan::StateRule &state : candidate.update->states) {
        const int64_t bytes =
            plan::OptimizerRule::elements(
                state, parameter.shape,
                parameter.shape.empty() ? 1 : parameter.shape.front()) *
            plan::itemSize(
                plan::OptimizerRule::dtypeOf(state, dtypes.state(parameter)));
        stateBytes += bytes;
        largestState = std::max(largestState, bytes);
      }
      // Of ZeRO the fp32 weights are the optimizer's.
      if (deepspeed() && candidate.dtypes.masterCopy)
        stateBytes += numel * plan::itemSize(plan::DType::F32);
      trainedNumel += numel;
    }
    // Its partitions are flat, and each is one storage.
    if (deepspeed())
      largestState = trainedNumel / shards() * plan::itemSize(plan::DType::F32);
    for (int64_t bytes : units)
      largestUnit = std::max(largestUnit, bytes);
    adapted = trainedBytes * 10 < storedBytes;
  }

  /// `device` and `host` of the rank with most, `others` of the other ranks'
  /// hosts; the process itself is added.
  void add(PhaseKind kind, int64_t device, int64_t host, int64_t others,
           std::string why, int64_t serial = 0) {
    JobPhase phase;
    phase.kind = kind;
    phase.deviceBytes = device + in.contextBytes;
    phase.hostBytes = host + base();
    phase.nodeHostBytes =
        phase.hostBytes +
        std::max<int64_t>(0, in.ranksPerNode - 1) * (others + base());
    phase.why = std::move(why);
    phase.serialBytes = serial;
    phases.push_back(std::move(phase));
  }

  void move(PhaseKind kind, int64_t storage, int64_t copied) {
    for (JobPhase &phase : phases)
      if (phase.kind == kind) {
        phase.storageBytes = storage;
        phase.copiedBytes = model.device == "cuda" ? copied : 0;
      }
  }

  void start() {
    add(PhaseKind::Start, 0, 0, 0,
        "a process that has imported torch, transformers and accelerate");
  }

  //===--- Load -----------------------------------------------------------===//

  void load() {
    const int64_t file = std::min(
        checkpointBytes,
        atLeast(in.transformers, "5.0") ? newShardBytes : oldShardBytes);
    const int64_t reading = readsWholeStateDict() ? checkpointBytes : 0;
    // Memory-mapped safetensors are file cache; one tensor is converted.
    // TRL's trainers load a second model before the first is prepared.
    const bool second =
        candidate.preference.reference == PreferenceStep::Reference::Second;
    const int64_t whole = (second ? 2 : 1) * loadedBytes +
                          std::max(reading, largest) + readAhead();
    const int64_t kept = step.hostBytes; // what stays on the host in training
    if (quantized)
      return loadQuantized();
    if (deepspeed() && candidate.zeroStage == 3)
      return loadZero3(whole, file, kept);
    if (fsdp() && in.rankZeroLoads)
      return add(PhaseKind::Load, shardBytes() + largestPiece(),
                 std::max(whole, kept), kept,
                 "rank 0 reads the model and sends it unit by unit; the others "
                 "have empty tensors");
    const bool sharded = fsdp();
    add(PhaseKind::Load,
        sharded ? shardBytes() + largestPiece()
                : std::max(loadedBytes, step.persistentBytes),
        whole + kept, whole + kept,
        std::string("each rank reads the whole model into host memory") +
            besideWhole());
  }

  /// From 5 on transformers has threads that read and convert tensors ahead of
  /// the one that stacks experts (convert_and_load_state_dict_in_model,
  /// core_model_loading.py), with no bound between them, and the C library's
  /// heap keeps what blocks below 32 MiB took: at most the experts once more.
  /// Tensors of the checkpoint's own dtype are views of its mapped file.
  int64_t readAhead() const {
    return atLeast(in.transformers, "5.0") && in.loaded != in.checkpoint
               ? expertBytes
               : 0;
  }
  std::string besideWhole() const {
    if (readAhead() > 0)
      return ", beside its experts one by one, which are converted ahead of "
             "being stacked";
    return readsWholeStateDict() ? ", beside its state dict" : "";
  }

  /// Each layer is quantised on the device as it is read, or read packed.
  void loadQuantized() {
    const int64_t wide = largest;
    // fsdp2_prepare_model sends nothing where a parameter is bitsandbytes'.
    if (candidate.executor == FrameworkKind::Fsdp1 && in.rankZeroLoads)
      return add(PhaseKind::Load, shardBytes() + largestUnit,
                 loadedBytes + wide, 0,
                 "rank 0 quantises the model layer by layer and sends it unit "
                 "by unit");
    add(PhaseKind::Load, loadedBytes + wide, wide, wide,
        fsdp() ? "each rank holds the whole quantised model on its device "
                 "before FSDP shards it"
               : "each layer is quantised on the device as it is read");
  }

  void loadZero3(int64_t whole, int64_t file, int64_t kept) {
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

  /// Parameters of a rank.
  int64_t shardBytes() const {
    return step.persistentBytes > 0
               ? std::min(step.persistentBytes,
                          (storedBytes + candidate.shards().ranks - 1) /
                              candidate.shards().ranks)
               : 0;
  }
  /// What is whole on the device at a time: FSDP1 moves a unit, FSDP2 sends a
  /// parameter.
  int64_t largestPiece() const {
    return candidate.executor == FrameworkKind::Fsdp1 ? largestUnit
                                                      : largestStored;
  }

  //===--- Steps ----------------------------------------------------------===//

  void steps() {
    const int64_t device = step.deviceBytes - in.contextBytes;
    add(PhaseKind::FirstStep, device, step.hostBytes, step.hostBytes,
        "the optimizer's states appear at the first update, beside all "
        "gradients");
    add(PhaseKind::Step, device, step.hostBytes, step.hostBytes,
        "at its peak: " + step.peakWhere);
  }

  /// What an evaluation holds, in bytes of a rank.
  struct Evaluated {
    int64_t batch = 1;    // sequences
    int64_t forward = 0;  // of a batch, beside what persists
    int64_t gathered = 0; // a batch's logits as they are returned, of all ranks
    int64_t sample = 0;   // a sequence's logits in fp32, as the host has them
  };

  /// The model's forward without saved values, and logits that the loss
  /// converts to fp32.
  void eval() {
    int64_t logits = 0;
    for (const StepCall &call : model.calls)
      logits += model.kinds[call.kind].logitsBytes;
    const int64_t trained = std::max<int64_t>(1, model.microBatch);
    Evaluated e;
    e.batch = in.evalBatch.value_or(trained);
    logits = logits / trained * e.batch;
    if (logits == 0 || !in.evaluates)
      return;
    const int64_t item = plan::itemSize(candidate.dtypes.compute);
    const int64_t wide = logits / std::max<int64_t>(item, 1) * 4;
    // Where the loss alone is asked for, Trainer tells a fused one to leave out
    // the logits (skip_logits); those of a part are there.
    const int64_t parts = !in.keptLogits && atLeast(in.transformers, "5.23")
                              ? std::max<int64_t>(1, candidate.lossChunks)
                              : 1;
    // A loss of preferences runs its reference beside the logits.
    const PreferenceStep &preference = candidate.preference;
    const bool compares =
        preference.logProbabilities &&
        preference.reference != PreferenceStep::Reference::None;
    // Of 16 bits the loss makes an fp32 copy; of that it takes a log-softmax.
    const int64_t inLoss = logits + (item < 4 ? wide : 0) + wide;
    e.forward = weightsInEval(item) + inLoss / parts + (compares ? wide : 0);
    e.gathered = (candidate.dtypes.outputFloat ? wide : logits) * ranks();
    e.sample = wide / e.batch;
    const std::string batch = in.evalBatch
                                  ? "a batch of " + std::to_string(e.batch) +
                                        " (per_device_eval_batch_size)"
                                  : std::string("one batch of the step's size");
    if (in.keptLogits)
      return evalKeeps(e, *in.keptLogits, batch);
    add(PhaseKind::Eval, step.persistentBytes + e.forward, step.hostBytes,
        step.hostBytes,
        batch + " whose loss alone is kept" +
            (compares ? ", and the reference's logits beside the model's"
                      : "") +
            "; with compute_metrics the logits of all ranks stay on the "
            "device, " +
            shown(e.gathered) +
            " for each batch until eval_accumulation_steps (--eval-samples N "
            "counts them)");
  }

  /// Each batch's logits are gathered from all ranks and joined to those before
  /// by a copy of all (nested_concat), on the device and, once they go there,
  /// on every rank's host.
  void evalKeeps(const Evaluated &e, const KeptLogits &kept,
                 const std::string &batch) {
    const int64_t ofAll = e.batch * ranks();
    const int64_t batches = kept.samples ? (*kept.samples + ofAll - 1) / ofAll
                                         : kept.batches.value_or(1);
    const int64_t there =
        kept.eachBatch ? 1 : std::min(batches, kept.batches.value_or(batches));
    const bool joins = kept.joins && !kept.eachBatch;
    // The last batch's are there under a name of their own while the next
    // one's are computed, and so are all before and after being joined.
    const int64_t before =
        (there - 1) * e.gathered + (joins && there > 2 ? e.gathered : 0);
    const int64_t after = (joins && there > 1 ? 2 : 1) * there * e.gathered;
    const int64_t device =
        step.persistentBytes + std::max(e.forward + before, after);
    const int64_t total =
        kept.samples && !kept.eachBatch ? *kept.samples * e.sample : 0;
    const int64_t host = total * (joins && batches > there ? 2 : 1);
    std::string why =
        batch + " whose logits compute_metrics gets: those of " +
        (there == 1 ? std::string("one batch")
                    : std::to_string(there) + " batches") +
        " of all ranks stay on the device, " + shown(e.gathered) + " each" +
        (joins && there > 1 ? ", twice while they are joined" : "");
    if (total > 0)
      why += "; then all are in the host memory of each rank, " + shown(total) +
             (host > total ? ", twice while they are joined" : "");
    else if (!kept.eachBatch)
      why += "; those on the host are not counted without --eval-samples N";
    why += kept.batches || kept.eachBatch
               ? "; preprocess_logits_for_metrics can reduce them before"
               : "; eval_accumulation_steps moves them to the host, and "
                 "preprocess_logits_for_metrics can reduce them before";
    add(PhaseKind::Eval, device, step.hostBytes + host, step.hostBytes + host,
        std::move(why));
  }

  /// What a forward without gradients holds of weights, beside what persists: a
  /// gathered unit, or autocast's copies, which its cache keeps until the end.
  int64_t weightsInEval(int64_t item) const {
    if (fsdp() || (deepspeed() && candidate.zeroStage == 3))
      return gatheredInEval(item);
    int64_t copies = 0;
    for (const StepParameter &parameter : model.parameters)
      if (candidate.dtypes.autocast && parameter.trainable &&
          parameter.shape.size() > 1 &&
          plan::itemSize(dtypes.storage(parameter)) > item)
        copies += parameter.numel() * item;
    return copies;
  }

  /// A second model is one unit under FSDP2, whose forward holds the output of
  /// its collective and the parameters that are copied out of it.
  int64_t gatheredInEval(int64_t item) const {
    if (candidate.executor != FrameworkKind::Fsdp2 ||
        candidate.preference.reference != PreferenceStep::Reference::Second)
      return largestUnit;
    const int64_t stored =
        std::max<int64_t>(1, plan::itemSize(candidate.dtypes.storage));
    return std::max(largestUnit, 2 * (storedBytes / stored * item));
  }

  //===--- Checkpoints ----------------------------------------------------===//

  void save() {
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
                 (in.gathers16Bit ? half : 0) + step.hostBytes, step.hostBytes,
                 in.gathers16Bit ? "16-bit weights are gathered to rank 0's "
                                   "host memory"
                                 : "each rank writes its own partition",
                 in.gathers16Bit ? half : 0);
    }
    const int64_t file =
        std::min(storedBytes, atLeast(in.transformers, "5.0") ? newShardBytes
                                                              : oldShardBytes);
    if (deepspeed())
      return add(PhaseKind::Save, persistent,
                 std::max(file, in.savesStates ? largestState : 0) +
                     step.hostBytes,
                 (in.savesStates ? largestState : 0) + step.hostBytes,
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
  int64_t savedStates() const { return in.savesStates ? stateBytes : 0; }

  /// Accelerator.load_state.
  void resume() {
    const int64_t shard = shardBytes();
    const int64_t states = stateBytes / shards();
    if (adapted) {
      add(PhaseKind::Resume, step.persistentBytes + trainedBytes + stateBytes,
          loadedBytes, loadedBytes,
          "the base is loaded as before, and the "
          "adapter's file");
      // peft's merge_and_unload: layer by layer, B times A beside the weight,
      // which a quantised layer dequantises first.
      add(PhaseKind::Merge, 0, loadedBytes + (quantized ? 3 : 2) * largest, 0,
          quantized ? "merge_and_unload in one process dequantises a weight, "
                      "adds the adapter's product and quantises it again; "
                      "merge into a base loaded in 16 bits to keep its digits"
                    : "merge_and_unload in one process adds the adapter's "
                      "product to one weight at a time");
      return;
    }
    if (in.saved == SavedState::Sharded) {
      add(PhaseKind::Resume, step.persistentBytes, shard + states,
          shard + states, "each rank reads its own shards into host memory");
      // merge-weights reads all shards into one state dict.
      add(PhaseKind::Merge, 0,
          storedBytes + std::min(storedBytes, newShardBytes), 0,
          "accelerate merge-weights holds the whole state dict in one "
          "process");
      return;
    }
    if (fsdp())
      return add(PhaseKind::Resume, step.persistentBytes + largestPiece(),
                 std::max(storedBytes, savedStates()), 0,
                 std::string("rank 0 reads the parameters") +
                     (in.savesStates
                          ? ", and after them the optimizer's states,"
                          : "") +
                     " and sends them piece by piece");
    if (deepspeed()) {
      // load_checkpoint: the module's file, whose parameters are elsewhere in
      // stage 3, and the rank's own partition of fp32 weights and states.
      const int64_t host =
          (candidate.zeroStage == 3 ? 0 : storedBytes) + states;
      return add(
          PhaseKind::Resume, step.persistentBytes, host, host,
          candidate.zeroStage == 3
              ? "each rank reads its own partition of fp32 weights and "
                "states into host memory"
              : "each rank reads the whole module, and its own partition "
                "of fp32 weights and states, into host memory");
    }
    // map_location is "on_device" for several processes.
    const bool onDevice = ranks() > 1;
    add(PhaseKind::Resume, step.persistentBytes + (onDevice ? stateBytes : 0),
        onDevice ? 0 : storedBytes + stateBytes,
        onDevice ? 0 : storedBytes + stateBytes,
        onDevice ? "optimizer states are read onto the device beside those "
                   "that are there"
                 : "the state is read into host memory");
  }

  int64_t shards() const {
    return deepspeed() || fsdp()
               ? std::max<int64_t>(candidate.shards().ranks, 1)
               : 1;
  }

  const StepModel &model;
  const Candidate &candidate;
  const StepPrediction &step;
  const PhaseInputs &in;
  ParameterDtypes dtypes;
  std::vector<JobPhase> phases;
  int64_t loadedBytes = 0, checkpointBytes = 0, storedBytes = 0;
  int64_t trainedBytes = 0, stateBytes = 0, largestState = 0;
  int64_t trainedNumel = 0;
  int64_t largest = 0, largestStored = 0, largestUnit = 0;
  int64_t expertBytes = 0; // as they are loaded
  bool quantized = false, adapted = false;
};

} // namespace

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

std::vector<JobPhase> jobPhases(const StepModel &model,
                                const Candidate &candidate,
                                const StepPrediction &step,
                                const PhaseInputs &inputs) {
  return Phases(model, candidate, step, inputs).run();
}

} // namespace accel
