//===- JobReader.h - Reading one job.yaml -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_JOBREADER_H
#define ACCEL_FRONTENDS_JOB_JOBREADER_H

#include "frontends/Job/Fields.h"
#include "frontends/Job/JobConfig.h"

namespace accel {

namespace plan {
struct Hyperparameter;
}

class JobReader {
public:
  JobReader(const std::string &file, const yaml::Node &root,
            const LoadOptions &options, DiagnosticEngine &engine)
      : file(file), top(file, root, "", engine), options(options),
        engine(engine), reads(options.accelerate) {}

  std::optional<JobConfig> read();

private:
  const std::string &file;
  Fields top;
  const LoadOptions &options;
  DiagnosticEngine &engine;
  AccelerateOptions reads; // those of `options`, of the job's torch

  // JobReader.cpp
  /// Which torch the accelerate part and the plan are of.
  Setting<std::string> readTorch();
  void checkTopKeys() const;
  /// False (reported) if there is none that makes sense.
  bool readAccelerate(AccelerateConfig &config);
  void readModel(JobConfig &job);
  void readTrainable(JobConfig &job);
  void readAdapter(JobConfig &job);
  void readInit(JobConfig &job);
  void readCheckpoint(JobConfig &job);
  void readTarget(JobConfig &job);
  void readMesh(JobConfig &job);
  void readPipeline(JobConfig &job);
  void readPrecision(JobConfig &job);
  void readCheckpointing(JobConfig &job);
  void readOffload(JobConfig &job);
  void readDisk(const Fields &offload, bool asked, JobConfig &job);
  void readDdp(JobConfig &job);
  void readReduction(JobConfig &job);

  // JobLoop.cpp
  void readSchedule(JobConfig &job);
  void readSampling(JobConfig &job);
  void readGradScaler(JobConfig &job);
  /// `seed` is that of everything which has none of its own.
  void readSeed(JobConfig &job);

  // JobOptimizer.cpp
  void readOptimizer(JobConfig &job);
  /// Reports a name that is no optimizer's.
  void refuseOptimizer(const Fields &fields, const std::string &name);
  void readHyperparameter(const Fields &fields,
                          const plan::Hyperparameter &parameter,
                          OptimizerConfig &optimizer);
  void readGroups(const Fields &fields, OptimizerConfig &optimizer);

  /// Tokens of the training data's file, where its size tells.
  std::optional<int64_t> dataTokens;
  /// Samples of the training data's arrays (rows of the shortest), or of
  /// several files of tokens.
  std::optional<int64_t> dataRows;

  // JobData.cpp
  void readData(JobConfig &job);
  /// Warns where a step takes a sample of the training data twice.
  void checkSamples(const JobConfig &job);
  void readEval(JobConfig &job);
  /// Refuses a file of predictions that would replace another one.
  void checkPredictions(const JobConfig &job);
  void readMetrics(const Fields &fields, EvalConfig &eval);
  void readSource(const Fields &fields, DataConfig &data);
  /// Reads what an epoch's end and a micro-batch mean.
  void readBatches(const Fields &fields, DataConfig &data);
  /// Makes of a micro-batch of all ranks that of one.
  void splitBatches(JobConfig &job);
  void readArrays(const Fields &fields, DataConfig &data);
  /// Reports a named file that is missing, no file, or too short for a sample.
  void checkDataFile(const Fields &fields, const char *key,
                     const std::string &path, const DataConfig &data);
  void countTokens(int64_t tokens, const DataConfig &data);
  /// Counts the samples of a .npy file of rows by its header.
  void countRows(const std::string &path);
  /// Tells where documents of the training data alone are known.
  void noteDocuments(const JobConfig &job);

  // JobFiles.cpp
  /// One file, a pattern of names, or a list of both; `key` is the kind's.
  void readFiles(const Fields &fields, const char *key, DataConfig &data);
  void readFile(const Fields &fields, const yaml::Node &item, int index,
                const char *key, std::vector<DataFileConfig> &files);
  /// Puts the files in place of a pattern of names.
  void expand(const Fields &fields, const char *key,
              std::vector<DataFileConfig> &files);
  void readDocuments(const Fields &fields, DataConfig &data);
  void checkStarts(const Fields &fields, const char *key,
                   const std::string &path);
};

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_JOBREADER_H
