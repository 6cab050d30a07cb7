//===- Calibrate.cpp - Times each operator of a plan ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Calibrate.h"

#include "runtime/checkpoint/Buffers.h"
#include "runtime/checkpoint/Initialize.h"
#include "runtime/execute/Executor.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/InstructionKey.h"
#include "runtime/storage/DriveRates.h"
#include "tools/accel-run/StepSeconds.h"
#include "tools/accel-run/TimeCollectives.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>

namespace accel::run {

using nlohmann::ordered_json;

namespace {

/// Optimizer steps that count, after some that do not; fewer where they take
/// longer than `enoughSeconds` together. The cores of a CPU are shared with
/// others, so that steps differ by more than those of a GPU.
constexpr int warmSteps = 2, fewestSteps = 3;
constexpr int mostSteps = 10, mostStepsOnCpu = 30;
constexpr double enoughSeconds = 30;
/// Beyond it the machine has done something else.
constexpr double mostOverhead = 9;

struct Sample {
  int function = 0, instruction = 0; // the first that is so
  std::vector<int64_t> calls;        // in an optimizer step, by stage
  std::vector<double> seconds;       // of calls
};
using Samples = std::map<std::string, Sample>;

bool isView(const plan::Function &function,
            const plan::Instruction &instruction) {
  return !instruction.results.empty() &&
         std::all_of(instruction.results.begin(), instruction.results.end(),
                     [&](int slot) {
                       return slot < 0 || function.slots[slot].base != slot;
                     });
}

Samples samplesOf(const plan::Plan &plan) {
  Samples samples;
  for (int stage = 0; stage < plan.numStages(); ++stage)
    for (const auto &[index, repeat] : plan.stepsOf(stage))
      for (const plan::ProgramInstruction &call :
           plan.programs[index].instructions) {
        if (call.kind != plan::ProgramInstructionKind::Call)
          continue;
        const plan::Function &function = plan.functions[call.function];
        for (size_t i = 0; i < function.instructions.size(); ++i) {
          const plan::Instruction &instruction = function.instructions[i];
          if (isView(function, instruction) || plan::isExchange(instruction))
            continue;
          auto [at, isNew] =
              samples.emplace(plan::instructionKey(function, instruction),
                              Sample{call.function,
                                     static_cast<int>(i),
                                     std::vector<int64_t>(plan.numStages()),
                                     {}});
          at->second.calls[stage] += repeat;
        }
      }
  return samples;
}

std::vector<int> tensorsOf(const plan::Instruction &instruction) {
  std::vector<int> slots;
  for (const plan::Arg &arg : instruction.args) {
    if (arg.kind == plan::Arg::Kind::Tensor)
      slots.push_back(arg.slot);
    if (arg.kind == plan::Arg::Kind::Tensors)
      for (int64_t slot : arg.ints)
        if (slot >= 0)
          slots.push_back(static_cast<int>(slot));
  }
  return slots;
}

/// On a CPU the seconds that the thread has computed: what else the machine
/// does is not in them.
double threadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

/// The mean of all but the slowest tenth: interrupts and cold caches of a
/// process that ran between. Of several threads on CPUs that of the fastest
/// quarter: one that waits computes all the while, so that its seconds have in
/// them what another process does on the core of a thread that it waits for.
double typical(std::vector<double> seconds, bool onDevice) {
  std::sort(seconds.begin(), seconds.end());
  seconds.resize(onDevice || at::get_num_threads() == 1
                     ? (seconds.size() * 9 + 9) / 10
                     : (seconds.size() + 3) / 4);
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
         static_cast<double>(seconds.size());
}

/// Times instructions where they stand: between the ends of two, with the views
/// in front of the second, which take the host a moment.
class Stopwatch final : public InstructionObserver {
public:
  Stopwatch(const plan::Plan &plan, Device &device, Samples &samples)
      : device(device), isCpu(device.device().is_cpu()) {
    for (const plan::Function &function : plan.functions)
      for (const plan::Instruction &instruction : function.instructions)
        if (auto at = samples.find(plan::instructionKey(function, instruction));
            at != samples.end() && !isView(function, instruction) &&
            !plan::isExchange(instruction))
          places[&instruction] = &at->second;
  }

  void begin(const plan::Function &) override {
    last = isCpu ? threadSeconds() : device.mark();
  }
  void end(const plan::Function &function, size_t index) override {
    const plan::Instruction &instruction = function.instructions[index];
    if (plan::isExchange(instruction))
      return begin(function);
    auto place = places.find(&instruction);
    if (place == places.end())
      return;
    if (isCpu) {
      const double now = threadSeconds();
      place->second->seconds.push_back(now - last);
      last = now;
      return;
    }
    InstructionTime time;
    time.beginMark = static_cast<int>(last);
    time.endMark = device.mark();
    last = time.endMark;
    marked.push_back({place->second, time});
  }
  /// Once the device has done what is marked.
  void resolve() {
    InstructionTimes times(1);
    for (const auto &[sample, time] : marked)
      times[0].push_back(time);
    if (!marked.empty())
      device.resolve(times);
    for (size_t i = 0; i < marked.size(); ++i)
      marked[i].first->seconds.push_back(times[0][i].end - times[0][i].begin);
    marked.clear();
  }

private:
  Device &device;
  const bool isCpu;
  std::map<const plan::Instruction *, Sample *> places;
  double last = 0;
  std::vector<std::pair<Sample *, InstructionTime>> marked;
};

double processSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

/// The seconds that the thread has waited for a core, less what the process'
/// other threads have computed meanwhile.
double lostSeconds() {
  double computed = 0, waited = 0; // nanoseconds
  std::ifstream("/proc/thread-self/schedstat") >> computed >> waited;
  return 1e-9 * waited - (processSeconds() - threadSeconds());
}

/// Rank 0's progress, on a terminal.
class ProgressLine {
public:
  explicit ProgressLine(bool speaks)
      : shows(speaks && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shows)
      std::fprintf(stderr, "\r\033[K");
  }
  void show(int done, int all) const {
    if (shows)
      std::fprintf(stderr, "\r\033[Kmeasuring: step %d of at most %d", done,
                   all);
  }

private:
  const bool shows;
};

/// Runs optimizer steps that change no weight, since nothing is learnt at a
/// rate of 0, and times what they do. Alternately operators are timed, and a
/// step as a whole: the clocks of the former take time too.
StepSeconds timeSteps(const Input &input, Device &device, Groups &groups,
                      Samples &samples, bool sharesCpus) {
  const plan::Plan &plan = input.plan;
  Executor executor(plan, device, groups);
  initialize(executor, plan.job.seed);
  Loader data = openData(input, false);
  Buffers buffers(plan, input.archive, input.weightFiles);
  Stopwatch stopwatch(plan, device, samples);
  auto observe = [&](InstructionObserver *observer) {
    for (size_t i = 0; i < plan.functions.size(); ++i)
      if (executor.calls(static_cast<int>(i)))
        executor.function(static_cast<int>(i)).observe(observer);
  };
  const std::vector<double> rates(plan.job.optimizer.groups.size(), 0.0);
  const Mesh &mesh = groups.mesh();
  std::vector<StepSeconds> steps;
  double sum = 0;
  const ProgressLine progress(groups.rank() == 0);
  const int allSteps =
      warmSteps + 2 * (device.device().is_cpu() ? mostStepsOnCpu : mostSteps);
  for (int step = 0; step < allSteps; ++step) {
    progress.show(step + 1, allSteps);
    const bool counts = step >= warmSteps, single = counts && step % 2 == 0;
    observe(single ? &stopwatch : nullptr);
    groups.barrier();
    InstructionTimes times;
    const double begin = hostSeconds(), before = lostSeconds(),
                 computed = processSeconds();
    executor.queue(
        [&](int64_t slot, const std::string &name) {
          return buffers.has(name) ? buffers.load(name)
                                   : data.load(name, slot * mesh.dataSize() +
                                                         mesh.dataIndex());
        },
        rates, mesh.dataIndex(), single ? nullptr : &times);
    if (single)
      stopwatch.resolve();
    executor.finish();
    device.synchronize();
    const double seconds = hostSeconds() - begin;
    if (counts && !single) {
      StepSeconds &own = steps.emplace_back();
      own.whole = seconds;
      own.computed = processSeconds() - computed;
      // What other ranks have of the core, steps of later runs have not either.
      if (!sharesCpus)
        own.lost = std::max(0.0, lostSeconds() - before);
      addParts(plan, executor.stage(), times, own);
    }
    // All ranks take as many steps, and wait for one that is disturbed.
    double lost = counts && !single ? steps.back().lost : 0;
    const std::vector<double> all = groups.gather({sum + seconds, lost});
    sum = all.front();
    for (size_t i = 1; i < all.size(); i += 2)
      lost = std::max(lost, all[i]);
    if (counts && !single)
      steps.back().lost = lost;
    if (step >= warmSteps + 2 * fewestSteps && single && sum > enoughSeconds)
      break;
  }
  observe(nullptr);
  return typicalStep(steps);
}

ordered_json describe(const plan::Plan &plan, const std::string &key,
                      const Sample &sample, double seconds) {
  const plan::Function &function = plan.functions[sample.function];
  const plan::Instruction &instruction =
      function.instructions[sample.instruction];
  ordered_json types = ordered_json::array();
  for (int slot : tensorsOf(instruction))
    types.push_back(plan::typeText(function, slot));
  ordered_json result = {
      {"op", instruction.op},
      {"key", key},
      {"where", instruction.where},
      {"function", sample.function},
      {"instruction", sample.instruction},
      {"calls",
       std::accumulate(sample.calls.begin(), sample.calls.end(), int64_t(0))},
      {"tensors", std::move(types)},
      {"seconds", seconds}};
  if (!plan.stages.empty())
    result["calls_by_stage"] = sample.calls;
  return result;
}

/// What stands for the seconds of a CPU's step that are neither those of
/// operators nor of updates.
struct Remainder {
  std::optional<double> overlap; // Target::overlap
  bool contradicts = false;      // collectives alone took longer than in a step
  double overhead = 0;           // Target::measuredOverheads
};

/// As passes/Simulate counts it: the first gather and the last reduction have
/// nothing beside them and are waited for whole. What the collectives do not
/// take even where all of them are waited for is overhead: ranks reach a
/// collective at different times, and operators find colder caches than in a
/// step that times each.
std::optional<Remainder> remainderOf(const plan::Plan &plan,
                                     const ordered_json &collectives,
                                     double seconds, double operators) {
  if (operators <= 0)
    return std::nullopt;
  std::vector<double> all;
  for (const auto &[index, repeat] : plan.step)
    for (int64_t i = 0; i < repeat; ++i)
      for (const plan::ProgramInstruction &instruction :
           plan.programs[index].instructions) {
        const std::string key = collectiveOf(plan, instruction);
        for (const auto &each : collectives)
          if (!key.empty() && each.at("key") == key)
            all.push_back(each.at("seconds").get<double>());
      }
  const double whole = std::accumulate(all.begin(), all.end(), 0.0);
  Remainder result;
  result.contradicts = all.size() >= 2 && seconds < all.front() + all.back();
  if (seconds > whole)
    result.overhead = std::min((seconds - whole) / operators, mostOverhead);
  if (all.size() >= 3) {
    const double alone = all.front() + all.back();
    result.overlap =
        std::clamp(1 - (seconds - alone) / (whole - alone), 0.0, 1.0);
  }
  return result;
}

/// What a rank of each stage has measured, on all ranks.
struct OfStages {
  std::map<std::string, double> seconds; // of instructions, by key
  std::map<std::string, double> alone;   // of collectives, by name
  std::vector<StepSeconds> steps;        // by stage
};

/// What several stages run counts as their mean. The rank of a stage is that
/// whose place along all other axes is 0.
OfStages gatherStages(const plan::Plan &plan, Groups &groups,
                      const Samples &samples, const Collectives &collectives,
                      const StepSeconds &own) {
  // By name the seconds and how many stages have measured them, then steps.
  std::vector<double> sums;
  const bool speaks = groups.mesh().speaksForStage();
  auto add = [&](double seconds, bool known) {
    sums.push_back(known && speaks ? seconds : 0);
    sums.push_back(known && speaks ? 1 : 0);
  };
  for (const auto &[key, sample] : samples)
    add(sample.seconds.empty() ? 0
                               : typical(sample.seconds, plan.device != "cpu"),
        !sample.seconds.empty());
  for (const auto &[name, timed] : collectives)
    add(timed.seconds, timed.seconds >= 0);
  const int stage = groups.mesh().position({plan::pipelineAxis});
  for (int other = 0; other < plan.numStages(); ++other)
    for (double number :
         {own.whole, own.computed, own.updates, own.copies, own.lost})
      sums.push_back(speaks && other == stage ? number : 0);
  std::vector<double> maxima;
  groups.combine(sums, maxima);
  OfStages result;
  const double *at = sums.data();
  auto take = [&](const std::string &name,
                  std::map<std::string, double> &into) {
    if (at[1] > 0)
      into[name] = at[0] / at[1];
    at += 2;
  };
  for (const auto &[key, sample] : samples)
    take(key, result.seconds);
  for (const auto &[name, timed] : collectives)
    take(name, result.alone);
  for (int other = 0; other < plan.numStages(); ++other, at += 5)
    result.steps.push_back({at[0], at[1], at[2], at[3], at[4], {}});
  return result;
}

ordered_json describe(const plan::Plan &plan, const Collectives &collectives,
                      const OfStages &measured) {
  ordered_json result = ordered_json::array();
  for (const auto &[name, timed] : collectives) {
    const auto seconds = measured.alone.find(name);
    if (seconds == measured.alone.end())
      continue;
    using Axes = std::vector<std::string>;
    const Axes axes =
        timed.first ? timed.first->axes : Axes{plan::pipelineAxis};
    result.push_back(
        {{"kind",
          plan::toString(timed.first ? timed.first->kind
                                     : plan::ProgramInstructionKind::Send)},
         {"key", timed.key},
         {"axes", axes},
         {"bytes", timed.bytes},
         {"ranks", timed.first ? plan.groupSize(axes) : 2},
         {"seconds", seconds->second}});
  }
  return result;
}

/// All ranks at once, since they share the machine's drives; of the slowest.
ordered_json timeDrive(const plan::Plan &plan, Groups &groups) {
  const plan::Disk &disk = plan.offload.disk;
  const int64_t bytes =
      std::min(plan::diskBytes(plan), int64_t(2) << 30); // seconds of a drive
  groups.barrier();
  const DriveRates own = measureDrive(
      disk.folder, groups.rank(), bytes,
      {DiskIo::Auto, disk.blockBytes, disk.queueDepth, disk.threads});
  const std::vector<double> all = groups.gather({own.read, own.written});
  double read = own.read, written = own.written;
  for (size_t i = 0; i + 1 < all.size(); i += 2) {
    read = std::min(read, all[i]);
    written = std::min(written, all[i + 1]);
  }
  return {{"read_bytes_per_s", read},
          {"write_bytes_per_s", written},
          {"io", own.io},
          {"direct", own.direct}};
}

ordered_json describe(const StepSeconds &step, double computed) {
  return {{"step_seconds", step.whole},       {"operator_seconds", computed},
          {"update_seconds", step.updates},   {"copy_seconds", step.copies},
          {"process_seconds", step.computed}, {"lost_seconds", step.lost}};
}

/// Of plans without stages; rank 0's, as those of its step.
ordered_json describe(const std::map<std::string, Moved> &moves) {
  ordered_json result = ordered_json::array();
  for (const auto &[key, moved] : moves)
    if (moved.bytes > 0)
      result.push_back(
          {{"key", key}, {"bytes", moved.bytes}, {"seconds", moved.seconds}});
  return result;
}

} // namespace

std::string calibrate(const Input &input, Device &device, Groups &groups,
                      bool sharesCpus) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  const plan::Plan &plan = input.plan;
  Collectives timed = collectivesOf(plan);
  timeCollectives(plan, device, groups, timed);
  Samples samples = samplesOf(plan);
  const StepSeconds own = timeSteps(input, device, groups, samples, sharesCpus);
  const OfStages measured = gatherStages(plan, groups, samples, timed, own);
  ordered_json instructions = ordered_json::array();
  std::vector<double> computed(plan.numStages());
  for (const auto &[key, sample] : samples) {
    const auto seconds = measured.seconds.find(key);
    if (seconds == measured.seconds.end())
      continue;
    instructions.push_back(describe(plan, key, sample, seconds->second));
    for (size_t stage = 0; stage < computed.size(); ++stage)
      computed[stage] +=
          seconds->second * static_cast<double>(sample.calls[stage]);
  }
  const ordered_json collectives = describe(plan, timed, measured);
  // Of a pipeline the stage that computes longest.
  const size_t slowest =
      std::max_element(computed.begin(), computed.end()) - computed.begin();
  const StepSeconds &step = measured.steps[slowest];
  ordered_json result = {
      {"format", 2}, {"device", plan.device}, {"ranks", plan.ranks()}};
  result.update(describe(step, computed[slowest]));
  for (const StepSeconds &each : measured.steps)
    result["step_seconds"] =
        std::max(result["step_seconds"].get<double>(), each.whole);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    result["stages"].push_back({{"stage", stage}});
    result["stages"].back().update(
        describe(measured.steps[stage], computed[stage]));
  }
  if (device.device().is_cpu()) {
    // Between other processes a step takes at least what its threads compute.
    const double seconds = (step.isDisturbed() ? step.computed : step.whole) -
                           computed[slowest] - step.updates - step.copies;
    const auto key = plan::overheadKey(plan);
    const auto remainder =
        key ? remainderOf(plan, collectives, seconds, computed[slowest])
            : std::nullopt;
    if (remainder) {
      if (remainder->contradicts && groups.rank() == 0)
        std::fprintf(
            stderr, "accel-run: warning: collectives took longer alone than in "
                    "a step, so that plans would be told too slow: other "
                    "processes had the cores; measure again on idle ones\n");
      if (remainder->overlap)
        result["overlap"] = *remainder->overlap;
      result["step_overhead"] = remainder->overhead;
      result["step_overhead_of"] = *key;
    }
    if (sharesCpus && groups.rank() == 0)
      std::fprintf(stderr,
                   "accel-run: note: ranks share CPUs: what a step "
                   "takes is measured for as many ranks of a machine\n");
    if (step.isDisturbed() && groups.rank() == 0)
      std::fprintf(stderr,
                   "accel-run: note: other processes had a core for %.0f %% of "
                   "the fastest step: a step is taken to be as long as its "
                   "threads compute\n",
                   100 * step.lost / step.whole);
  }
  if (plan.offload.onDisk() && plan::diskBytes(plan) > 0)
    result["drive"] = timeDrive(plan, groups);
  result["instructions"] = std::move(instructions);
  result["collectives"] = collectives;
  result["moves"] = describe(own.moves);
  groups.barrier();
  return result.dump(1) + "\n";
}

Fitted fitted(const std::string &figures) {
  Fitted result;
  const auto json = ordered_json::parse(figures);
  for (const auto &each : json.at("instructions"))
    result.operators[each.at("key").get<std::string>()] =
        each.at("seconds").get<double>();
  for (const auto &each : json.at("collectives"))
    result.collectives[each.at("key").get<std::string>()] =
        each.at("seconds").get<double>();
  for (const auto &each : json.at("moves"))
    result.moves[each.at("key").get<std::string>()] =
        each.at("seconds").get<double>() / each.at("bytes").get<double>();
  if (json.contains("overlap"))
    result.overlap = json.at("overlap").get<double>();
  if (json.contains("step_overhead"))
    result.overheads[json.at("step_overhead_of").get<std::string>()] =
        json.at("step_overhead").get<double>();
  if (json.contains("drive")) {
    const auto &drive = json.at("drive");
    result.drive = {drive.at("read_bytes_per_s").get<double>(),
                    drive.at("write_bytes_per_s").get<double>()};
  }
  return result;
}

} // namespace accel::run
