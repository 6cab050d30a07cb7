//===- Options.cpp - accel-run's command line -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Options.h"

#include "tools/options/Arguments.h"

#include <torch/version.h>

#include <cstdio>

namespace accel::run {
namespace {

constexpr const char *summary =
    "Trains as a plan says that accel-opt wrote. Ranks come from the "
    "environment that\ntorchrun --no-python, srun, mpirun or a Kubernetes job "
    "set, or from --nproc.";

constexpr const char *ending =
    "Paths in a plan are relative to the plan's folder. OMP_NUM_THREADS sets "
    "the\ncompute threads of a rank (default: the machine's cores divided by "
    "its ranks).\nSIGTERM, SIGINT and SIGUSR1 end the job after the step at "
    "hand, with a\ncheckpoint; a second SIGTERM or SIGINT ends it at once.\n"
    "Exit codes: 0 done, 1 invalid input or a failed run, 4 valid but not "
    "supported,\n64 usage, 75 stopped by a signal: continue with --resume "
    "auto.";

constexpr int64_t mostRanks = 4096, mostSteps = int64_t(1) << 40;

} // namespace

const char *toString(OnNan onNan) {
  return onNan == OnNan::Skip ? "skip" : "stop";
}

std::map<std::string, std::string> sharedOptions(const Options &options,
                                                 bool profilesTogether) {
  // All of them, so that a new one cannot be left out: the plan is compared by
  // what is in it, --nproc has no ranks beside it that were started otherwise.
  [[maybe_unused]] const auto &[plan, nproc, steps, resume, onNan, log, profile,
                                summary, out, calibrate, fit, shardLimitBytes,
                                bind, diskIo, debugNan, deterministic] =
      options;
  std::map<std::string, std::string> shared;
  if (steps)
    shared["--steps"] = std::to_string(*steps);
  if (!resume.empty())
    shared["--resume"] = resume;
  if (!out.empty())
    shared["--out"] = out;
  if (onNan)
    shared["--on-nan"] = toString(*onNan);
  if (debugNan)
    shared["--debug-nan"] = "given";
  if (deterministic)
    shared["--deterministic"] = "given";
  if (options.calibrates())
    shared["--calibrate or --fit"] = "given";
  if (!profile.empty() && profilesTogether)
    shared["--profile"] = "given";
  shared["--max-shard-size"] = std::to_string(shardLimitBytes);
  return shared;
}

bool parseOptions(const std::vector<std::string> &words, Options &options,
                  int &exitCode) {
  bool version = false;
  Arguments arguments("accel-run", "PLAN", summary, ending);
  arguments.option("--nproc", options.nproc, countValue("N", 1, mostRanks),
                   "start N ranks on this machine");
  arguments.option("--steps", options.steps, countValue("N", 0, mostSteps),
                   "stop after optimizer step N (default: the plan's steps)");
  arguments.option("--resume", options.resume, textValue("auto|PATH"),
                   "continue from the newest checkpoint of the job, or from "
                   "this one; auto starts anew where there is none");
  arguments.option("--out", options.out, textValue("DIR"),
                   "checkpoints and the trained model go here instead of the "
                   "job's checkpoint folder");
  arguments.option(
      "--on-nan", options.onNan,
      choiceValue<OnNan>({{"stop", OnNan::Stop}, {"skip", OnNan::Skip}}),
      "at a step whose loss or gradients are not finite: stop, or leave the "
      "step out of the training (default: the plan's on_nan)");
  arguments.flag("--debug-nan", options.debugNan,
                 "name the operator that gave the first number that is not "
                 "finite; each operator is waited for");
  arguments.flag("--deterministic", options.deterministic,
                 "kernels that give the same bits each time (on a GPU some of "
                 "the fastest do not); an operator without such a kernel ends "
                 "the job (default: the plan's deterministic)");
  arguments.option(
      "--bind", options.bind,
      choiceValue<Bind>(
          {{"none", Bind::None}, {"cores", Bind::Cores}, {"numa", Bind::Numa}}),
      "run a rank's threads on an equal part of the machine's CPUs, or on "
      "those "
      "of a NUMA node, and nowhere else (default: none)");
  arguments.option(
      "--disk-io", options.diskIo,
      choiceValue<DiskIo>({{"auto", DiskIo::Auto},
                           {"io_uring", DiskIo::Uring},
                           {"threads", DiskIo::Threads}}),
      "how states on a drive are read and written; auto is io_uring where the "
      "kernel allows it, else threads (default: auto)");
  arguments.option("--log", options.log, textValue("FILE"),
                   "one JSON object a step; truncated unless resuming");
  arguments.option("--profile", options.profile, textValue("FILE"),
                   "a Chrome/Perfetto trace of the third step of rank 0, or of "
                   "a rank of each stage: measured times and bytes beside the "
                   "predicted ones");
  arguments.option("--summary", options.summary, textValue("FILE"),
                   "the final figures as JSON");
  arguments.option("--calibrate", options.calibrate, textValue("FILE"),
                   "do not train: time each distinct operator and collective "
                   "of the plan on this machine, as JSON");
  arguments.option("--fit", options.fit, textValue("TARGET.yaml"),
                   "the same, into the file of a target: plans for it then "
                   "take the measured seconds");
  arguments.option("--max-shard-size", options.shardLimitBytes,
                   bytesValue("5GB"),
                   "split model.safetensors above these bytes (default 5GB)");
  arguments.flag("--version", version, "the version of accel-run");
  if (!arguments.parse(words, exitCode))
    return false;
  if (version) {
    std::puts("accel-run " ACCEL_VERSION ", LibTorch " TORCH_VERSION);
    return false;
  }
  if (!arguments.one("PLAN", options.plan, exitCode))
    return false;
  // Standard output has what accel-run says.
  for (const auto &[name, file] : {std::pair{"--log", &options.log},
                                   std::pair{"--profile", &options.profile},
                                   std::pair{"--summary", &options.summary},
                                   std::pair{"--calibrate", &options.calibrate},
                                   std::pair{"--fit", &options.fit}})
    if (*file == "-") {
      exitCode = arguments.usageError(
          std::string(name) + " - is no file, and standard output has what "
                              "accel-run says; give a file");
      return false;
    }
  if (!options.calibrates())
    return true;
  for (const char *name :
       {"--steps", "--resume", "--out", "--on-nan", "--debug-nan", "--disk-io",
        "--log", "--profile", "--summary", "--max-shard-size"})
    if (arguments.given(name)) {
      exitCode = arguments.usageError(
          std::string(name) + " has no effect with " +
          (options.calibrate.empty() ? "--fit" : "--calibrate") +
          ", which does not train; leave it out");
      return false;
    }
  return true;
}

} // namespace accel::run
