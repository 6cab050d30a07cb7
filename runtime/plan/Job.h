//===- Job.h - The job, as the runtime needs it -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What accel-run does beside running programs: where samples and weights come
// from, how parameters are updated, what is written when. None of it changes
// what a program computes or holds.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_JOB_H
#define ACCEL_RUNTIME_PLAN_JOB_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace accel::plan {

/// Parameters that are updated with the same rates (Parameter::group).
struct OptimizerGroup {
  double lr = 1e-3; // before the schedule
  double weightDecay = 0.01;
  bool operator==(const OptimizerGroup &) const = default;
};

/// How parameters are updated.
struct Optimizer {
  std::string name = "adamw"; // a description's (Optimizers.h)
  /// The description's hyperparameters one after the other, a flag as 0 or 1;
  /// empty: its defaults. Read through valueOf.
  std::vector<double> values;
  double maxGradNorm = 0.0; // 0: no clipping
  std::vector<OptimizerGroup> groups;
  bool operator==(const Optimizer &) const = default;
};

/// The factor of every group's lr: a linear warmup, then the decay
/// (runtime/plan/LearningRate.h).
struct LrSchedule {
  int64_t steps = 0;                 // optimizer steps of the job
  int64_t warmupSteps = 0;           // the first of them
  std::string decay = "constant";    // decayNames of Fields/Job.h
  double minLr = 0.0;                // where a decay of the first group ends
  int64_t cycles = 1;                // of cosine_with_restarts
  double power = 1.0;                // of polynomial
  int64_t decaySteps = 0;            // of warmup_stable_decay: the last of them
  std::string decayShape = "cosine"; // of these: linear, cosine, 1-sqrt
  int64_t timescale = 0; // of inverse_sqrt; 0: warmupSteps, or 10,000 without
  bool operator==(const LrSchedule &) const = default;
};

/// torch.amp.GradScaler: the scale of the loss in fp16.
struct GradScaler {
  double initScale = 65536;
  double growthFactor = 2.0, backoffFactor = 0.5;
  int64_t growthInterval = 2000; // good steps in a row before it grows
  bool operator==(const GradScaler &) const = default;
};

/// A file of tokens, one of several.
struct DataFile {
  std::string path;
  double weight = 0; // share of the samples; 0: as many as it has
  /// A .npy of the positions of documents' first tokens, ascending; or empty.
  std::string starts;
  bool operator==(const DataFile &) const = default;
};

/// Where samples come from; paths are absolute or relative to the plan file.
struct Data {
  std::string kind;                          // "", tokens, text, npy, arrays
  std::string path;                          // a file, unless there are others
  std::map<std::string, std::string> arrays; // input to .npy file
  std::vector<DataFile> files;               // of tokens, in place of `path`
  std::string dtype = "uint16";              // of tokens
  bool shuffle = false;                      // anew for each epoch
  int64_t seed = 0;                          // of the order
  /// Documents end with this token, and no token sees another document; -1:
  /// no token ends one.
  int64_t endOfDocument = -1;
  /// Where an epoch's last micro-batches are not whole: "" takes samples of the
  /// next epoch, "drop" leaves them out, "repeat" fills them up with the
  /// epoch's first samples.
  std::string epochEnd;
  bool hasDocuments() const {
    for (const DataFile &file : files)
      if (!file.starts.empty())
        return true;
    return endOfDocument >= 0;
  }
  bool operator==(const Data &) const = default;
};

/// Texts that the model writes at an evaluation: the first samples of its data,
/// of which it is shown `promptTokens`, continued greedily.
struct Sampling {
  int64_t count = 0; // of texts; 0: none
  int64_t promptTokens = 16, newTokens = 32;
  bool operator==(const Sampling &) const = default;
};

/// What is written for a later start.
struct Checkpoint {
  std::string dir;                   // empty: nothing is written
  int64_t every = 0;                 // optimizer steps; 0: at the end alone
  int64_t keep = 0;                  // the newest so many; 0: all
  std::string stateDict = "sharded"; // or full
  /// Files are written from a copy in host memory while training goes on.
  bool background = false;
  bool operator==(const Checkpoint &) const = default;
};

/// Integers of an input are in [0, limit).
struct InputLimit {
  std::string name;
  int64_t limit = 0;
  bool operator==(const InputLimit &) const = default;
};

struct Job {
  /// Whether the update waits for the norm of all gradients: to clip them, or
  /// to leave out a step whose gradients are not finite.
  bool needsGradNorm() const {
    return optimizer.maxGradNorm > 0 || lossScaling || onNan == "skip";
  }
  /// Tokens of a micro-batch on one rank; samples where there are no tokens.
  int64_t itemsPerMicroBatch() const {
    return microBatch * (sequenceLength > 0 ? sequenceLength : 1);
  }
  std::string modelName, modelPath; // HF folder with config.json
  /// What to start from, or empty: safetensors, or the .pt2 of the model.
  std::vector<std::string> weightFiles;
  /// Text of the adapter_config.json beside the adapter's weights; empty: the
  /// model has no adapter, and whole models are exported.
  std::string adapterConfig;
  std::string archive;    // .pt2 with the values of `Plan::buffers`; or empty
  int64_t seed = 0;       // of initial values
  int64_t randomSeed = 0; // of what random operators draw
  std::string precision = "no"; // no, bf16, fp16
  bool lossScaling = false;     // fp16
  GradScaler gradScaler;        // of it
  /// At a step whose loss or gradients are not finite: stop, or skip it.
  std::string onNan = "stop";
  bool deterministic = false; // kernels that give the same bits each time
  int64_t microBatch = 1, accumulation = 1;
  int64_t sequenceLength = 0; // tokens of a sample; 0: samples have no tokens
  int64_t vocab = 0;
  /// Integers of this input are in [0, limit); labels may be -100 too. Of
  /// "input_ids" and "labels" the limit is `vocab` unless one is here.
  std::vector<InputLimit> inputLimits;
  Optimizer optimizer;
  LrSchedule schedule;
  Data data, evalData;
  int64_t evalEvery = 0;   // optimizer steps; 0: at the end alone
  int64_t evalBatches = 0; // micro-batches of a rank; 0: all of the data
  std::vector<std::string> evalMetrics; // accuracy, perplexity
  std::string evalPredictions;          // a file of JSON lines; or empty
  Sampling sampling;                    // at each evaluation
  /// Seconds after which a collective that a rank did not enter ends the job;
  /// 0: accel-run's default.
  int64_t collectiveTimeout = 0;
  /// Optimizer steps between lines of the log, for which alone ranks reduce
  /// the loss and other numbers.
  int64_t loggingSteps = 1;
  Checkpoint checkpoint;
  bool operator==(const Job &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JOB_H
