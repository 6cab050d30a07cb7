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

/// The factor of every group's lr: a linear warmup, then the decay.
struct LrSchedule {
  int64_t steps = 0;              // optimizer steps of the job
  int64_t warmupSteps = 0;        // the first of them
  std::string decay = "constant"; // constant, linear, cosine
  double minLr = 0.0;             // the rate that a decay ends at
  bool operator==(const LrSchedule &) const = default;
};

/// Where samples come from; paths are absolute or relative to the plan file.
struct Data {
  std::string kind;                          // "", tokens, text, npy, arrays
  std::string path;                          // a file, unless `kind` is arrays
  std::map<std::string, std::string> arrays; // input to .npy file
  std::string dtype = "uint16";              // of tokens
  bool shuffle = false;                      // anew for each epoch
  int64_t seed = 0;                          // of the order
  bool operator==(const Data &) const = default;
};

/// What is written for a later start.
struct Checkpoint {
  std::string dir;                   // empty: nothing is written
  int64_t every = 0;                 // optimizer steps; 0: at the end alone
  int64_t keep = 0;                  // the newest so many; 0: all
  std::string stateDict = "sharded"; // or full
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
  int64_t evalEvery = 0, evalBatches = 0;
  Checkpoint checkpoint;
  bool operator==(const Job &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JOB_H
