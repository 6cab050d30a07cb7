//===- JobPhases.h - What a job holds outside its steps ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A job loads, steps, evaluates, saves and resumes; each phase has a peak on
// the device and on the host. What a step holds is the step model's; the others
// follow from how the libraries move whole models: transformers 5.23
// (modeling_utils.py), Accelerate 1.15 (utils/fsdp_utils.py, checkpointing.py),
// torch's FSDP1 state dicts and DeepSpeed's engine.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PHASES_JOBPHASES_H
#define ACCEL_PASSES_PHASES_JOBPHASES_H

#include "passes/FrameworkSteps/StepEvaluator.h"
#include "runtime/plan/QuantizedWeights.h"

#include <functional>

namespace accel {

enum class PhaseKind {
  Start,
  Load,
  FirstStep,
  Step,
  Eval,
  Save,
  Resume,
  Merge
};
const char *toString(PhaseKind kind); // "start", "first step"

/// Bytes are peaks; of the host without the file cache. All 0: it stops.
struct JobPhase {
  PhaseKind kind = PhaseKind::Step;
  int64_t deviceBytes = 0;   // of the rank that holds most, with its context
  int64_t hostBytes = 0;     // of the rank that holds most
  int64_t nodeHostBytes = 0; // of all ranks of the node with rank 0
  /// Bytes that one process copies or writes while the others wait; 0: none.
  int64_t serialBytes = 0;
  /// Bytes that the ranks of a node read from storage or write to it, each file
  /// once; bytes between host and device of the rank with most.
  int64_t storageBytes = 0, copiedBytes = 0;
  std::string why;
  bool stops() const { return hostBytes == 0; } // as `why` says
};

/// What moves the bytes of phases outside the step, and how long others wait.
struct PhaseRates {
  /// torch.distributed's default for NCCL; transformers' Trainer makes it
  /// ddp_timeout, 1800 unless told otherwise.
  double collectiveTimeoutSeconds = 600;
  double storageBytesPerSecond = 1e9; // of a node; an assumption
  double hostBytesPerSecond = 0;      // between host and device; 0: not stated
};
/// 0 for what moves nothing.
double phaseSeconds(const JobPhase &phase, const PhaseRates &rates);

/// How the model is saved.
enum class SavedState { Full, Sharded, Replicated };

/// Logits that an evaluation keeps for compute_metrics
/// (Trainer.evaluation_loop of transformers 5.23). Either number is there.
struct KeptLogits {
  /// Sequences of an evaluation, over all ranks.
  std::optional<int64_t> samples;
  /// Batches of a rank that stay on the device before they go to the host
  /// (eval_accumulation_steps); nothing: all.
  std::optional<int64_t> batches;
  bool joins = true;      // into one tensor (eval_do_concat_batches)
  bool eachBatch = false; // is judged and dropped (batch_eval_metrics)
};

struct PhaseInputs {
  int64_t ranksPerNode = 1;
  int64_t contextBytes = 0; // of a device: context, communicators, libraries
  /// Dtype in which the script loads the model, and that of the checkpoint.
  plan::DType loaded = plan::DType::F32, checkpoint = plan::DType::F32;
  /// How a base is quantised; nothing: it is not. `readsPacked`: its checkpoint
  /// has the packed tensors.
  std::optional<plan::WeightFormat> format;
  bool readsPacked = false;
  /// Experts of an MXFP4 checkpoint are dequantised as they are read.
  bool dequantizesExperts = false;
  /// Rank 0 sends the weights to the others, and before transformers 5 reads
  /// them alone (fsdp_cpu_ram_efficient_loading).
  bool rankZeroLoads = false;
  /// The model is made under HfDeepSpeedConfig, so that zero.Init partitions
  /// each parameter as it is made (zero3_init_flag).
  bool zeroInit = false;
  /// Sequences on a device in evaluation; nothing: as many as in a step.
  std::optional<int64_t> evalBatch;
  bool evaluates = true;
  std::optional<KeptLogits> keptLogits; // nothing: the loss alone is kept
  /// The step with so many sequences on a device; null where there is none.
  std::function<std::shared_ptr<const DecidedStep>(int64_t sequences)> stepOf;
  /// By StepModel::parameters: ranks that hold a part each, as tensor
  /// parallelism splits it; empty: all are whole.
  std::vector<int64_t> parts;
  /// Checkpoints are saved and the wide state is gathered.
  SavedState saved = SavedState::Full;
  /// Checkpoints have the optimizer's states (not with save_only_model), and
  /// there are any (not with save_strategy no).
  bool savesStates = true, savesCheckpoints = true;
  bool byTrainer = false; // transformers' Trainer saves and resumes
  /// stage3_gather_16bit_weights_on_model_save.
  bool gathers16Bit = false;
  std::string transformers = frameworks::Versions().transformers;
  std::string (*bytesText)(int64_t bytes) = nullptr; // for people; needed
};

/// In the order of a job. `step` is what the candidate's step holds on the
/// target.
std::vector<JobPhase> jobPhases(const StepModel &model, const Target &target,
                                const Candidate &candidate,
                                const StepPrediction &step,
                                const PhaseInputs &inputs);

} // namespace accel

#endif // ACCEL_PASSES_PHASES_JOBPHASES_H
