//===- Preflight.cpp - What is checked before a rank starts ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Preflight.h"

#include "runtime/checkpoint/Buffers.h"
#include "runtime/checkpoint/Pt2.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/plan/EarlierOutput.h"
#include "runtime/plan/OutputModel.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Verify.h"
#include "tools/accel-run/Evaluation.h"
#include "tools/accel-run/FitTarget.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

namespace accel::run {

namespace fs = std::filesystem;

namespace {
std::string resolve(const std::string &path, const std::string &baseDir) {
  if (path.empty() || fs::path(path).is_absolute())
    return path;
  return (fs::path(baseDir) / path).lexically_normal().string();
}

/// The inputs that programs read from data.
std::vector<Loader::Input> dataInputs(const plan::Plan &plan, bool eval) {
  std::map<std::string, Loader::Input> inputs;
  std::set<std::string> buffers;
  for (const plan::Buffer &buffer : plan.buffers)
    buffers.insert(buffer.fqn);
  auto add = [&](const plan::Program &program) {
    for (int index : program.inputs) {
      const plan::Value &value = program.values[index];
      if (value.name != "loss_seed" && !buffers.count(value.name))
        inputs[value.name] = {value.name, value.dtype, value.shape};
    }
  };
  if (eval)
    for (int stage = 0; stage < plan.numStages(); ++stage)
      for (int chunk = 0; chunk < plan.numChunks(); ++chunk)
        add(plan.programs[plan.evalOf(stage, chunk)]);
  else
    for (int stage = 0; stage < plan.numStages(); ++stage)
      for (const auto &[program, repeat] : plan.stepsOf(stage))
        add(plan.programs[program]);
  std::vector<Loader::Input> result;
  for (auto &[name, input] : inputs)
    result.push_back(std::move(input));
  return result;
}
} // namespace

Input readInput(const Options &options) {
  Input input;
  std::string error;
  if (!plan::readPlan(options.plan, input.plan, error))
    throw InputError(error);
  std::error_code code;
  input.baseDir = fs::absolute(options.plan, code).parent_path().string();
  const plan::Job &job = input.plan.job;
  input.outDir = !options.out.empty()
                     ? fs::absolute(options.out, code).string()
                     : resolve(job.checkpoint.dir, input.baseDir);
  input.modelPath = resolve(job.modelPath, input.baseDir);
  for (const std::string &file : job.weightFiles)
    input.weightFiles.push_back(resolve(file, input.baseDir));
  if (!job.archive.empty())
    input.archive = resolve(job.archive, input.baseDir);
  return input;
}

Loader openData(const Input &input, bool eval) {
  Loader loader;
  std::string error;
  const plan::Job &job = input.plan.job;
  if (!loader.open(eval ? job.evalData : job.data, job,
                   dataInputs(input.plan, eval), input.baseDir, error,
                   input.plan.groupSize({"dp_replicate", "dp_shard"})))
    throw InputError(error);
  return loader;
}

/// Files and folders that the job reads; some are empty.
static std::vector<std::string> whatIsRead(const Input &input) {
  std::vector<std::string> used = input.weightFiles;
  used.push_back(input.modelPath);
  used.push_back(input.archive);
  for (const plan::Data *data :
       {&input.plan.job.data, &input.plan.job.evalData}) {
    used.push_back(resolve(data->path, input.baseDir));
    for (const plan::DataFile &file : data->files) {
      used.push_back(resolve(file.path, input.baseDir));
      used.push_back(resolve(file.starts, input.baseDir));
    }
    for (const auto &[name, path] : data->arrays)
      used.push_back(resolve(path, input.baseDir));
  }
  return used;
}

/// Nothing but what accel-run has written is replaced by the trained model.
static void checkOutputModel(const Input &input) {
  if (input.outDir.empty())
    return;
  const fs::path output = fs::path(input.outDir) / plan::outputModel;
  const std::string elsewhere = "; give another folder with --out DIR";
  for (const std::string &path : whatIsRead(input))
    if (!path.empty() && plan::isWithin(path, output))
      throw InputError("the trained model would replace " + output.string() +
                       ", which the job reads (" + path + ")" + elsewhere);
  for (const char *suffix : {"", plan::partialSuffix, plan::replacedSuffix}) {
    const std::string folder = output.string() + suffix;
    if (!plan::mayReplace(folder))
      throw InputError("the trained model would replace " + folder +
                       ", which accel-run has not written (it has no " +
                       plan::outputModelMark + ")" + elsewhere +
                       ", or move that one");
  }
}

/// The folder that a run writes to holds nothing that it must not touch.
static void checkFolder(const Input &input, const Options &options) {
  std::error_code code;
  fs::path at = input.outDir;
  while (!input.outDir.empty() && !fs::exists(at, code) &&
         at.has_parent_path() && at != at.parent_path())
    at = at.parent_path();
  if (!input.outDir.empty() && !fs::is_directory(at, code))
    throw InputError(at.string() + ": is not a folder, so nothing can be "
                                   "written to it");
  checkOutputModel(input);
  if (const std::string folder = foreignFolder(input.outDir); !folder.empty())
    throw InputError(folder + ": has a checkpoint's name and is none that "
                              "accel-run has written; move it, or give "
                              "another folder with --out DIR");
  chooseStart(input.outDir, options.resume);
}

/// What stands beside the weights, which the trained model is given. A log or
/// predictions are an earlier run's, which may write the file again.
static std::vector<std::string> filesOfModel(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, code)) {
    const bool ofRun =
        entry.file_size(code) > 0 && (plan::mayHoldLog(entry.path()) ||
                                      plan::mayHoldPredictions(entry.path()));
    if (entry.is_regular_file(code) && !ofRun)
      files.push_back(entry.path().string());
  }
  return files;
}

static const std::string predictions = "eval.predictions";

/// How what an earlier run has written to a file is known, and what to say of
/// another one.
struct Earlier {
  bool (*mayHold)(const fs::path &);
  const char *says;
};
static const std::map<std::string, Earlier> earlier = {
    {"--log", {plan::mayHoldLog, "no run has written its log to"}},
    {"--profile", {plan::mayHoldTrace, "no run has written its profile to"}},
    {"--summary", {plan::mayHoldSummary, "no run has written its summary to"}},
    {"--calibrate", {plan::mayHoldTimes, "no run has written its times to"}},
    {predictions, {plan::mayHoldPredictions, "no evaluation has written"}}};

/// What cannot be written is told before the training or the measurement. A
/// file of lines is added to; others are written anew and renamed.
static void checkWritable(const std::string &name, const std::string &file,
                          const fs::path &folder) {
  std::error_code code;
  std::string error;
  const bool isAddedTo =
      (name == "--log" || name == predictions) && fs::exists(file, code);
  if (isAddedTo && ::access(file.c_str(), W_OK) != 0)
    error = file + ": cannot write the file: " + std::strerror(errno);
  // The run makes its own folder itself.
  if (!isAddedTo && fs::is_directory(folder, code))
    plan::canWriteFile(file, error);
  if (!error.empty())
    throw InputError(name + " " + error + "; make " +
                     (isAddedTo ? "it" : "its folder") +
                     " writable, or give another file" +
                     (name == predictions ? " in job.yaml" : ""));
}

/// No file that is written takes the place of one that is read, of another one
/// that is written, of what the run writes itself, or of a folder, which the
/// end of a training would find out.
static void checkOutputFiles(const Input &input, const Options &options) {
  std::vector<std::pair<std::string, std::string>> written = {
      {"--log", options.log},
      {"--profile", options.profile},
      {"--summary", options.summary},
      {"--calibrate", options.calibrate},
      {"--fit", options.fit}};
  if (!options.calibrates())
    written.emplace_back(
        predictions, resolve(input.plan.job.evalPredictions, input.baseDir));
  std::vector<std::string> read = whatIsRead(input);
  read.push_back(options.plan);
  std::error_code code;
  std::erase_if(read, [&](const std::string &path) {
    return path.empty() || fs::is_directory(path, code);
  });
  std::vector<std::string> beside = filesOfModel(input.modelPath);
  for (const std::string &weights : input.weightFiles)
    beside.push_back((fs::path(weights).parent_path() / "adapter_config.json"));
  const bool hasFolder = !input.outDir.empty() && !options.calibrates();
  for (size_t i = 0; i < written.size(); ++i) {
    const auto &[name, file] = written[i];
    if (file.empty())
      continue;
    const std::string shown = name + " " + file;
    const fs::path parent = fs::absolute(file, code).parent_path();
    // The run makes its own folder before it writes to any file.
    if (!fs::is_directory(parent, code) &&
        !(hasFolder && plan::isWithin(input.outDir, parent)))
      throw InputError(file + ": its folder does not exist");
    if (fs::is_directory(file, code))
      throw InputError(shown + ": is a folder; give a file");
    // What goes to a terminal, a pipe or /dev/null replaces nothing.
    if (fs::exists(file, code) && !fs::is_regular_file(file, code))
      continue;
    for (const auto *files : {&read, &beside}) {
      // What is fitted into is a target, wherever it is.
      if (files == &beside && name == "--fit")
        continue;
      for (const std::string &path : *files)
        if (plan::isSameFile(file, path))
          throw InputError(shown + ": would overwrite what the job reads (" +
                           path + "); give another file");
    }
    if (hasFolder && plan::isWithin(input.outDir, file))
      throw InputError(shown + ": is the run's own folder; give a file");
    const std::string own =
        hasFolder ? plan::ownName(file, input.outDir) : std::string();
    if (!own.empty()) {
      const fs::path replaced = fs::path(input.outDir) / own;
      const bool isItself =
          plan::canonicalPath(file) == plan::canonicalPath(replaced);
      throw InputError(shown + ": is " + (isItself ? "" : "in ") +
                       replaced.string() +
                       ", which the run writes itself; give another file");
    }
    for (size_t other = 0; other < i; ++other)
      if (!written[other].second.empty() &&
          plan::isSameFile(file, written[other].second))
        throw InputError(shown + ": " + written[other].first +
                         " writes the same file; give each its own");
    if (standardStreamOf(file) >= 0) {
      if (name == "--log" || name == predictions)
        continue; // lines are added to what is said
      throw InputError(shown + ": has what accel-run says; give another file");
    }
    // A target is what is fitted into.
    if (const auto at = earlier.find(name);
        at != earlier.end() && !at->second.mayHold(file))
      throw InputError(shown + ": would replace a file that " +
                       at->second.says + "; give another file" +
                       (name == predictions ? " in job.yaml" : "") +
                       ", or move that one");
    checkWritable(name, file, parent);
  }
}

void checkInput(const Input &input, const Options &options, int64_t ranks) {
  const plan::Plan &plan = input.plan;
  if (plan.ranks() != ranks) {
    std::string axes;
    for (const plan::Axis &axis : plan.axes)
      axes += (axes.empty() ? "" : " x ") + axis.name + " " +
              std::to_string(axis.size);
    throw InputError(options.plan + ": the plan is for " +
                     std::to_string(plan.ranks()) + " ranks" +
                     (axes.empty() ? "" : " (" + axes + ")") +
                     ", and this job has " + std::to_string(ranks) +
                     ": give --nproc " + std::to_string(plan.ranks()) +
                     ", or start so many with a launcher (torchrun, srun, "
                     "mpirun)");
  }
  if (plan.stepOf(0).empty())
    throw InputError(options.plan + ": the plan has no program for a step",
                     exitNotSupported);
  if (plan.job.data.kind.empty())
    throw InputError(options.plan +
                     ": the plan has no data; plan a job.yaml with a 'data' "
                     "key to train");
  if (!options.calibrates() && !options.steps && plan.job.schedule.steps <= 0)
    throw InputError(options.plan + ": the plan has no number of steps; give "
                                    "--steps, or schedule.steps in job.yaml");
  if (options.onNan == OnNan::Skip && !plan.job.needsGradNorm())
    throw InputError("--on-nan skip needs the norm of the gradients before the "
                     "update: plan with on_nan: skip in job.yaml, or with "
                     "optimizer.max_grad_norm");
  openData(input, false);
  if (Evaluation::isWanted(plan))
    openData(input, true);
  for (const std::string &path : input.weightFiles)
    readTensors(File(path, File::Mode::Read));
  Buffers(plan, input.archive, input.weightFiles);
  // What times the plan's operators does not train: it writes no folder.
  if (!options.calibrates())
    checkFolder(input, options);
  checkOutputFiles(input, options);
  if (!options.fit.empty())
    readTarget(options.fit, plan.device);
}

} // namespace accel::run
