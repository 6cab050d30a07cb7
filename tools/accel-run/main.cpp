//===- main.cpp - accel-run: trains as a plan says ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Files.h"
#include "runtime/collectives/LocalLauncher.h"
#include "runtime/collectives/PeerMemory.h"
#include "runtime/collectives/RankNames.h"
#include "runtime/collectives/StopSignal.h"
#include "runtime/collectives/Watchdog.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-run/Calibrate.h"
#include "tools/accel-run/FitTarget.h"
#include "tools/accel-run/Meeting.h"
#include "tools/accel-run/Threads.h"
#include "tools/accel-run/Trainer.h"
#include "tools/options/StandardOutput.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <torch/version.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

using namespace accel;
using namespace accel::run;

namespace {

/// Rank 0 speaks for an error that every rank meets alike; the others' lines
/// are notes, so that a log has one error.
int complain(int rank, const std::string &message, int code) {
  if (rank == 0)
    std::fprintf(stderr, "accel-run: error: %s\n", message.c_str());
  else
    std::fprintf(stderr, "accel-run: rank %d stops: %s\n", rank,
                 message.c_str());
  return code;
}

/// Throws FileError.
void fitTarget(const std::string &path, const plan::Plan &plan,
               const std::string &figures) {
  const Fitted measured = fitted(figures);
  char day[16] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(day, sizeof day, "%F", std::gmtime(&now));
  std::string error;
  const std::string text = withMeasured(
      readTarget(path, plan.device), measured,
      "accel-run --fit, " + std::string(day) + ", torch " TORCH_VERSION ", " +
          std::to_string(plan.ranks()) + " ranks of " +
          std::to_string(at::get_num_threads()) + " threads",
      error);
  if (text.empty())
    throw FileError(path + ": " + error);
  if (!accel::plan::writeFileAtomically(path, text, error))
    throw FileError(error);
  std::printf("%zu operators and %zu collectives are measured in %s\n",
              measured.operators.size(), measured.collectives.size(),
              path.c_str());
}

int calibrateRank(const Input &input, const Options &options, Device &device,
                  Groups &groups, bool sharesCpus) {
  const std::string text = calibrate(input, device, groups, sharesCpus);
  if (groups.rank() != 0)
    return 0;
  std::string error;
  if (!options.calibrate.empty() &&
      !accel::plan::writeFileAtomically(options.calibrate, text, error))
    throw FileError(error);
  if (!options.calibrate.empty())
    std::printf("the seconds of operators and collectives are in %s\n",
                options.calibrate.c_str());
  if (!options.fit.empty())
    fitTarget(options.fit, input.plan, text);
  return 0;
}

/// One rank, from the meeting of the ranks to the end.
int runRank(const Input &input, const Options &options,
            const Environment &environment) {
  bool sharesCpus = false;
  try {
    sharesCpus = placeThreads(environment, options.bind);
  } catch (const std::exception &failure) {
    return complain(environment.rank, failure.what(), exitInvalid);
  }
  setLeastPeerBytes(environment.leastPeerBytes);
  if (environment.collectiveTimeout)
    setCollectiveTimeout(*environment.collectiveTimeout);
  else if (input.plan.job.collectiveTimeout > 0)
    setCollectiveTimeout(
        std::chrono::seconds(input.plan.job.collectiveTimeout));
  if (options.deterministic || input.plan.job.deterministic)
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  std::string error;
  auto device = makeDevice(input.plan.device, environment.localRank, error);
  if (!device)
    return complain(environment.rank, error, exitInvalid);
  RunLocks locks;
  if (environment.worldSize == 1 && options.calibrates()) {
    Groups groups(input.plan);
    return calibrateRank(input, options, *device, groups, sharesCpus);
  }
  if (environment.worldSize == 1) {
    const Start start = beginRun(input, options, locks);
    Groups groups(input.plan);
    return Trainer(input, options, start, locks, *device, groups).run();
  }
  Rendezvous rendezvous(environment, std::chrono::minutes(5));
  Watchdog watchdog(environment, rendezvous);
  const std::string self = rankName(environment.rank);
  int code = exitInvalid;
  std::string reason;
  bool known = false; // to the other ranks
  try {
    const Start start = meet(input, options, environment, rendezvous, locks);
    Groups groups(input.plan, environment, rendezvous);
    code = options.calibrates()
               ? calibrateRank(input, options, *device, groups, sharesCpus)
               : Trainer(input, options, start, locks, *device, groups).run();
    groups.barrier();
    watchdog.finish();
    return code;
  } catch (const CollectiveError &failure) {
    watchdog.findCulprit(); // ends the process if it finds one
    endIfAskedBefore();
    if (const int signal = stopAsked()) {
      std::fprintf(stderr,
                   "accel-run: %s stops: another rank has gone, and %s asks "
                   "this one to end\n",
                   self.c_str(), signalName(signal).c_str());
      std::fflush(nullptr);
      _exit(exitInvalid);
    }
    reason = failure.what();
  } catch (const PeerFileError &failure) {
    // The rank that failed says why.
    std::fflush(nullptr);
    _exit(exitInvalid);
  } catch (const AgreedError &failure) {
    if (environment.rank == 0)
      complain(0, failure.what(), exitInvalid);
    std::fflush(nullptr);
    _exit(exitInvalid);
  } catch (const InputError &failure) {
    reason = failure.what();
    code = failure.code;
  } catch (const AgreedFileError &failure) {
    reason = failure.what();
    known = true;
  } catch (const std::exception &failure) {
    reason = plainMessage(failure);
  }
  std::fprintf(stderr, "accel-run: error: %s: %s\n", self.c_str(),
               reason.c_str());
  if (!known)
    watchdog.report(reason);
  // Threads of collectives may hang: nothing is destroyed.
  std::fflush(nullptr);
  _exit(code);
}

/// A process with these options: a rank, or one that is to start ranks and has
/// found nothing wrong, for which `starts` is set.
int runProcess(const Options &options, bool &starts) {
  // A reader of our output that goes away is no reason to stop training.
  std::signal(SIGPIPE, SIG_IGN);
  // A file size limit is an error of the write, with a message.
  std::signal(SIGXFSZ, SIG_IGN);
  // c10d's warnings about lost connections come with backtraces; what they
  // mean is said by the watchdog.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL"))
    FLAGS_caffe2_log_level = 2; // errors
  // One heap for all threads: Gloo's would each keep their own.
  mallopt(M_ARENA_MAX, 1);
  Environment environment;
  std::string error;
  if (!readEnvironment(
          [](const char *name) -> const char * { return std::getenv(name); },
          environment, error)) {
    std::fprintf(stderr, "accel-run: error: %s\n", error.c_str());
    return exitInvalid;
  }
  // For ranks of --nproc, which has read the plan, they wait a little longer:
  // the exit code depends on the plan.
  if (!environment.localOnly)
    catchStopSignals();
  const bool launches = options.nproc.has_value();
  if (launches && environment.launcher != "none") {
    std::fprintf(stderr,
                 "accel-run: error: --nproc starts ranks itself, and %s has "
                 "started this one\n",
                 environment.launcher.c_str());
    return exitUsage;
  }
  try {
    const Input input = readInput(options);
    if (!input.plan.stages.empty())
      nameStages(input.plan.ranks() / input.plan.numStages());
    // What --nproc has checked need not be checked by each rank.
    if (launches || !environment.localOnly)
      checkInput(input, options,
                 launches ? static_cast<int>(*options.nproc)
                          : environment.worldSize);
    // Of ranks that --nproc has started, the first one speaks.
    std::string who = "accel-run";
    if (environment.localOnly && environment.rank > 0)
      who.clear();
    else if (environment.worldSize > 1 && !environment.localOnly)
      who += ": " + rankName(environment.rank);
    setStopBefore(who, !input.outDir.empty() && !options.calibrates());
    catchStopSignals();
    starts = launches && *options.nproc > 1;
    if (starts)
      return 0;
    Allocator::install();
    return runRank(input, options, environment);
  } catch (const InputError &failure) {
    return complain(environment.rank, failure.what(), failure.code);
  } catch (const std::exception &failure) {
    return complain(environment.rank, plainMessage(failure), exitInvalid);
  }
}

} // namespace

/// A reader that goes away is no failure of the training; a full disk is one
/// of what was to be printed.
static int checkOutput(int code) {
  return checkStandardOutput("accel-run", code, BrokenPipe::Ignored);
}

/// A file that is opened while one of them is closed would get what is said.
static void openStandardDescriptors() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0) [[maybe_unused]]
      const int opened = open("/dev/null", O_RDWR);
}

int main(int argc, char **argv) {
  openStandardDescriptors();
  Options options;
  int exitCode = 0;
  if (!parseOptions({argv + 1, argv + argc}, options, exitCode))
    return checkOutput(exitCode);
  bool starts = false;
  const int code = runProcess(options, starts);
  if (!starts)
    endProcess(checkOutput(code));
  // What the launcher has read of the job is gone; ranks read it anew.
  const int failed = runLocally(static_cast<int>(*options.nproc), [&options] {
    Options own = options;
    own.nproc.reset();
    bool never = false;
    return checkOutput(runProcess(own, never));
  });
  endProcess(failed);
}
