//===- Trainer.cpp - A rank's training run --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Trainer.h"

#include "runtime/checkpoint/Files.h"
#include "runtime/checkpoint/Initialize.h"
#include "runtime/checkpoint/Merge.h"
#include "runtime/checkpoint/NotFinite.h"
#include "runtime/checkpoint/Weights.h"
#include "runtime/collectives/Progress.h"
#include "runtime/collectives/StopSignal.h"
#include "runtime/plan/LearningRate.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-run/Meeting.h"
#include "tools/accel-run/Profile.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace accel::run {

namespace {
/// The step that is profiled: caches are warm, memory is settled.
constexpr int64_t profiledStep = 2;
constexpr size_t warmSteps = 3;

/// Attention's own kernels drop weights: each rank of tp those of its heads, by
/// its place.
bool dropsByRank(const plan::Plan &plan) {
  auto drops = [](const plan::Instruction &instruction) {
    return instruction.op.starts_with("accel::flash_attention") ||
           instruction.op.starts_with("accel::efficient_attention");
  };
  return std::any_of(plan.functions.begin(), plan.functions.end(),
                     [&](const plan::Function &function) {
                       return std::any_of(function.instructions.begin(),
                                          function.instructions.end(), drops);
                     });
}

} // namespace

Trainer::Trainer(const Input &input, const Options &options, const Start &begin,
                 RunLocks &locks, Device &device, Groups &groups)
    : input(input), options(options), begin(begin), locks(locks),
      job(input.plan.job), device(device), groups(groups),
      executor(input.plan, device, groups, options.diskIo),
      data(openData(input, false)),
      buffers(input.plan, input.archive, input.weightFiles) {
  if (Evaluation::isWanted(input.plan))
    evaluation.emplace(input, executor, buffers, &locks.predictions);
  if (job.checkpoint.background && !input.outDir.empty())
    writer.emplace(executor, buffers, input.outDir, job.checkpoint.keep,
                   [this] { recordRun(this->input.outDir, this->begin); });
}

void Trainer::start() {
  Progress::get().enter("the first weights");
  const std::string &from = begin.checkpoint;
  if (!from.empty()) {
    TrainState state = loadCheckpoint(executor, from, buffers);
    firstStep = state.step;
    lastSaved = state.step;
    firstMicroBatch = state.microBatch;
    evaluationDue = evaluation && state.evaluationDue;
    if (groups.rank() == 0)
      for (const std::string &difference :
           differences(state.samples,
                       sampleOrder(job, input.baseDir, data.epochSamples())))
        std::fprintf(stderr, "accel-run: note: %s\n", difference.c_str());
    const auto &functions = input.plan.functions;
    if (groups.rank() == 0 && state.device != input.plan.device &&
        std::any_of(functions.begin(), functions.end(),
                    [](const plan::Function &f) { return f.draws(); }))
      std::fprintf(
          stderr,
          "accel-run: warning: the checkpoint is of a run on '%s', and "
          "dropout draws other numbers on '%s': from step %lld on "
          "other elements are dropped than there\n",
          state.device.c_str(), input.plan.device.c_str(),
          static_cast<long long>(firstStep + 1));
    const int64_t tensorRanks = input.plan.axisSize("tp");
    if (groups.rank() == 0 && state.tensorRanks > 0 &&
        state.tensorRanks != tensorRanks && state.device == input.plan.device &&
        dropsByRank(input.plan))
      std::fprintf(
          stderr,
          "accel-run: warning: the checkpoint is of a run with tp %lld, and "
          "attention's kernels drop by a rank's heads: with tp %lld other "
          "weights of attention are dropped from step %lld on than there\n",
          static_cast<long long>(state.tensorRanks),
          static_cast<long long>(tensorRanks),
          static_cast<long long>(firstStep + 1));
  } else if (!input.weightFiles.empty()) {
    std::vector<std::string> warnings;
    const std::vector<bool> absent =
        loadWeights(executor, input.weightFiles, warnings);
    initialize(executor, job.seed, &absent);
    for (const std::string &warning : warnings)
      std::fprintf(stderr, "accel-run: warning: %s\n", warning.c_str());
  } else {
    initialize(executor, job.seed);
  }
  if (evaluation)
    evaluation->continueAfter(evaluationDue ? firstStep - 1 : firstStep);
  executor.skipNotFinite(options.onNan ? *options.onNan == OnNan::Skip
                                       : job.onNan == "skip");
  executor.searchNotFinite(options.debugNan);
  lastStep = options.steps.value_or(job.schedule.steps);
  const Mesh &mesh = groups.mesh();
  // A rank's second chunk may read what its first one read some frames ago.
  const int64_t behind = input.plan.numChunks() > 1
                             ? input.plan.stages[executor.stage()].frames
                             : 0;
  ahead.emplace(data, firstMicroBatch + mesh.dataIndex(), mesh.dataSize(),
                std::max<int64_t>(lastStep - firstStep, 0) * job.accumulation,
                behind);
  if (groups.rank() == 0) {
    log = std::make_unique<Log>(options.log, &locks.log, !from.empty(),
                                firstStep, lastStep,
                                job.sequenceLength > 0 ? "tokens" : "samples");
    if (!from.empty())
      std::printf("continues from %s\n", from.c_str());
    if (!begin.note.empty())
      std::printf("%s\n", begin.note.c_str());
    if (!from.empty() && firstStep >= lastStep && !evaluationDue)
      std::printf("the checkpoint is of step %lld, and training ends at step "
                  "%lld: no step is left to do; --steps, or schedule.steps in "
                  "job.yaml, sets a later end\n",
                  static_cast<long long>(firstStep),
                  static_cast<long long>(lastStep));
    std::fflush(stdout);
  }
  groups.barrier();
  Allocator::get().trim();
  device.resetPeak();
}

void Trainer::queueStep(int64_t step) {
  const bool isBehind = !inFlight.empty();
  InFlight &flight = inFlight.emplace_back();
  flight.isBehind = isBehind;
  StepRecord &record = flight.record;
  record.step = step + 1;
  flight.isLine = endsLine(step + 1);
  flight.isSaved = saves(step + 1);
  Progress::get().setStep(step + 1); // as the log counts
  flight.before = Usage::now();
  flight.begin = hostSeconds();
  const std::vector<double> rates = ratesAfter(executor.optimizerSteps());
  record.lr = rates.empty() ? 0 : rates.front();
  const Mesh &mesh = groups.mesh();
  const int64_t ranks = mesh.dataSize();
  // Micro-batch k = (step * A + slot) * N + r of the run, from where the
  // checkpoint stopped.
  const int64_t base =
      firstMicroBatch + (step - firstStep) * job.accumulation * ranks;
  auto load = [&](int64_t slot, const std::string &name) {
    return buffers.has(name)
               ? buffers.load(name)
               : ahead->load(name, base + slot * ranks + mesh.dataIndex());
  };
  const bool profiled =
      !options.profile.empty() && profile.empty() &&
      (step - firstStep == profiledStep || step + 1 == lastStep);
  if (profiled && profilesTogether(input.plan)) {
    device.synchronize();
    groups.barrier();
  }
  executor.queue(load, rates, base + mesh.dataIndex(),
                 profiled ? &profile : nullptr);
  flight.queued = hostSeconds();
  flight.after = Usage::now();
}

std::vector<double> Trainer::ratesAfter(double taken) const {
  return plan::learningRates(job, static_cast<int64_t>(taken));
}

bool Trainer::awaitsDecision() const {
  const double taken = executor.optimizerSteps();
  return executor.decidesLater() &&
         ratesAfter(taken) != ratesAfter(std::max(taken - 1, 0.0));
}

double Trainer::lossRanks() const {
  return static_cast<double>(groups.size() / input.plan.numStages());
}

void Trainer::agree(StepRecord &record, double loss) {
  std::vector<double> sums = {loss};
  std::vector<double> maxima = {static_cast<double>(device.memory().peak),
                                static_cast<double>(stopAsked()),
                                writer && writer->works() ? 1.0 : 0.0};
  groups.combine(sums, maxima);
  record.loss = sums[0] / lossRanks();
  record.peakBytes = static_cast<int64_t>(maxima[0]);
  stopSignal = std::max(stopSignal, static_cast<int>(maxima[1]));
  othersWrite = maxima[2] > 0;
}

bool Trainer::saves(int64_t done) const {
  const int64_t every = job.checkpoint.every;
  return !input.outDir.empty() &&
         (done == lastStep || (every > 0 && done % every == 0));
}

bool Trainer::evaluates(int64_t done) const {
  return evaluation && evaluation->isDue(done, lastStep);
}

bool Trainer::endsLine(int64_t done) const {
  return done % job.loggingSteps == 0 || done == lastStep || evaluates(done);
}

bool Trainer::agreesAfter(const InFlight &flight,
                          const StepResult &result) const {
  // What is saved is sound on all ranks; a checkpoint on its way goes on once
  // all have written; and a norm, which is that of all ranks, that is not
  // finite has its cause on one of them.
  return flight.isLine || flight.isSaved || stopSignal ||
         (writer && writer->pending()) || options.debugNan ||
         (result.hasGradNorm && !std::isfinite(result.gradNorm));
}

std::optional<StepRecord> Trainer::finishStep() {
  Progress::get().enter("the end of the step");
  const StepResult result = executor.finish();
  InFlight flight = std::move(inFlight.front());
  inFlight.pop_front();
  StepRecord &record = flight.record;
  const bool agrees = agreesAfter(flight, result);
  line.add(result.loss, result.skipped);
  record.loss = line.meanLoss();
  if (agrees)
    agree(record, record.loss);
  if (result.hasGradNorm)
    record.gradNorm = result.gradNorm;
  record.skipped = result.skipped;
  // A step that was queued behind another one begins when that one ends. Where
  // the host updates, a step is queued when it is updated: what was queued
  // since is the next step's.
  const bool endsQueued = input.plan.offload.states && !inFlight.empty();
  const double end = endsQueued ? flight.queued : hostSeconds();
  const Usage after = endsQueued ? flight.after : Usage::now();
  const double seconds = end - (flight.isBehind ? lastEnd : flight.begin);
  const Usage before = flight.isBehind ? lastUsage : flight.before;
  const double items = static_cast<double>(
      job.itemsPerMicroBatch() * job.accumulation * groups.mesh().dataSize());
  ++measured.steps;
  measured.skippedSteps += result.skipped;
  stepSeconds.push_back(seconds);
  stepTokens.push_back(items / seconds);
  stepCpu.push_back(after.cpuSeconds - before.cpuSeconds);
  stepFaults.push_back(after.pageFaults - before.pageFaults);
  lastEnd = end;
  lastUsage = after;
  checkFinite(record, result.loss, agrees);
  // A search waits for each operator: one more look does not count.
  if (options.debugNan && !record.skipped)
    checkWeights(record.step);
  if (writer && writer->pending() && !othersWrite) {
    Progress::get().enter("the checkpoint");
    writer->advance();
  }
  line.addSeconds(seconds);
  // A run that a signal ends has a line of its last step.
  if (!flight.isLine && !(stopSignal && inFlight.empty()))
    return std::nullopt;
  record.skipped = line.skipped();
  record.seconds = line.meanSeconds();
  record.tokensPerSecond = items / record.seconds;
  line = LineSteps();
  return record;
}

void Trainer::checkFinite(const StepRecord &record, double ownLoss,
                          bool agreed) {
  // A skipped step has changed nothing.
  if (record.skipped)
    return;
  const std::string stops = " at step " + std::to_string(record.step) +
                            ": training stops, and nothing is saved after the "
                            "last checkpoint; --on-nan skip leaves such steps "
                            "out";
  // The others hear of it from this rank, and wait for it before they save.
  if (!agreed && !std::isfinite(ownLoss))
    throw std::runtime_error("the loss is " + std::to_string(ownLoss) + stops +
                             ", --debug-nan names the operator");
  std::string what;
  if (agreed && !std::isfinite(record.loss)) {
    // All ranks see that the mean is not finite, and look for the rank.
    const std::vector<double> losses = groups.gather({ownLoss});
    for (size_t rank = 0; rank < losses.size() && what.empty(); ++rank)
      if (!std::isfinite(losses[rank]))
        what = "the loss is " + std::to_string(losses[rank]) +
               (losses.size() > 1 ? " on rank " + std::to_string(rank) : "");
    if (what.empty())
      what = "the mean of the losses is " + std::to_string(record.loss);
  }
  if (what.empty() && record.gradNorm && !std::isfinite(*record.gradNorm))
    what = "the norm of the gradients is " + std::to_string(*record.gradNorm);
  if (what.empty())
    return;
  sayFirstNotFinite();
  throw AgreedError(
      what + stops +
      (executor.notFinite() ? "" : ", --debug-nan names the operator"));
}

void Trainer::sayFirstNotFinite() {
  if (const std::string *first = executor.notFinite(); first && !first->empty())
    std::fprintf(stderr, "accel-run: rank %d: note: first at %s\n",
                 groups.rank(), first->c_str());
}

void Trainer::checkWeights(int64_t done) {
  if (soundStep == done)
    return;
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  const NotFinite own = findNotFinite(executor);
  const std::vector<double> all = groups.gather(
      {static_cast<double>(own.parameter), own.ofState ? 1.0 : 0.0});
  for (size_t rank = 0; 2 * rank < all.size(); ++rank) {
    const auto parameter = static_cast<int64_t>(all[2 * rank]);
    if (parameter < 0)
      continue;
    if (own.parameter >= 0)
      sayFirstNotFinite();
    throw AgreedError(
        input.plan.parameters[parameter].fqn +
        (all[2 * rank + 1] > 0 ? ": an optimizer state" : ": the weight") +
        " has values that are not finite" +
        (groups.size() > 1 ? " on rank " + std::to_string(rank) : "") +
        " after step " + std::to_string(done) +
        ": training stops, and nothing is saved " +
        (lastSaved ? "after the last checkpoint, that of step " +
                         std::to_string(*lastSaved)
                   : std::string("(there is no earlier checkpoint)")) +
        "; on_nan: skip in job.yaml leaves steps with such gradients out" +
        (executor.notFinite() ? "" : ", --debug-nan names the operator"));
  }
  soundStep = done;
}

std::optional<EvalRecord> Trainer::evaluate(int64_t done) {
  Progress::get().enter("the evaluation");
  const std::optional<EvalRecord> record = evaluation->run(done);
  evaluationDue = !record;
  stopSignal = std::max(stopSignal, evaluation->stopSignal());
  return record;
}

void Trainer::evaluateBefore() {
  const std::optional<EvalRecord> record = evaluate(firstStep);
  if (record && log)
    log->amend(firstStep, *record);
}

void Trainer::completeSave() {
  Progress::get().enter("the checkpoint");
  writer->finish();
}

void Trainer::save(int64_t done, bool behind) {
  if (writer && writer->pending())
    completeSave();
  Progress::get().enter("the checkpoint");
  checkWeights(done);
  lastSaved = done;
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  TrainState state;
  state.run = begin.run;
  state.step = done;
  state.microBatch = firstMicroBatch + (done - firstStep) * job.accumulation *
                                           groups.mesh().dataSize();
  state.optimizerSteps = executor.optimizerSteps();
  if (groups.rank() == 0) // which writes it
    state.samples = sampleOrder(job, input.baseDir, data.epochSamples());
  state.scaler = executor.scaler().get();
  state.evaluationDue = evaluationDue;
  if (writer && behind)
    return writer->begin(state);
  std::function<void(const std::string &)> extra;
  if (job.checkpoint.stateDict == "full")
    extra = [&](const std::string &folder) {
      writeModelFolder(executor, buffers, folder + "/model",
                       input.modelSource(), options.shardLimitBytes, begin.run,
                       done);
    };
  saveCheckpoint(executor, input.outDir, job.checkpoint.keep, state, buffers,
                 extra);
  if (groups.rank() == 0)
    recordRun(input.outDir, begin);
}

void Trainer::finish() {
  if (writer && writer->pending())
    completeSave();
  Progress::get().enter("the model's folder");
  if (!input.outDir.empty()) {
    const int64_t done = std::max(firstStep, lastStep);
    checkWeights(done);
    at::AutoDispatchBelowADInplaceOrView below;
    at::NoGradGuard noGrad;
    writeModelFolder(executor, buffers,
                     (std::filesystem::path(input.outDir) / "model").string(),
                     input.modelSource(), options.shardLimitBytes, begin.run,
                     done);
  }
  auto after = [&](std::vector<double> &values) {
    if (values.size() > warmSteps)
      values.erase(values.begin(), values.begin() + warmSteps);
    return median(values);
  };
  measured.stepSeconds = after(stepSeconds);
  // Tokens per second are those of the median step: two medians of their own
  // would not multiply to a step's tokens.
  after(stepTokens);
  const auto middle =
      std::find(stepSeconds.begin(), stepSeconds.end(), measured.stepSeconds);
  if (middle != stepSeconds.end())
    measured.tokensPerSecond = stepTokens[middle - stepSeconds.begin()];
  measured.cpuSecondsPerStep = after(stepCpu);
  measured.pageFaultsPerStep = after(stepFaults);
  const std::vector<double> all =
      groups.gather({static_cast<double>(executor.ownPeak().bytes),
                     static_cast<double>(maxRssBytes()),
                     static_cast<double>(device.reservedPeak()),
                     static_cast<double>(device.allocatedPeak())});
  measured.hostBytes = device.hostBytes();
  if (const DiskStates *disk = executor.diskStates()) {
    measured.diskBytes = disk->bytes();
    measured.diskIo = disk->io();
    measured.diskDirect = disk->isDirect();
  }
  std::vector<InstructionTimes> profiles = {profile};
  if (!options.profile.empty() && !input.plan.stages.empty()) {
    profiles = ofStages(groups, input.plan, profile);
    measured.stageUse = useOfStages(input.plan, profiles);
  }
  const size_t ofStage = all.size() / input.plan.numStages();
  measured.stageOwnPeakBytes.resize(input.plan.stages.size());
  for (size_t i = 0; i < all.size(); i += 4) {
    if (!input.plan.stages.empty()) {
      int64_t &most = measured.stageOwnPeakBytes[i / ofStage];
      most = std::max(most, static_cast<int64_t>(all[i]));
    }
    measured.ownPeakBytes =
        std::max(measured.ownPeakBytes, static_cast<int64_t>(all[i]));
    measured.maxRssBytes =
        std::max(measured.maxRssBytes, static_cast<int64_t>(all[i + 1]));
    measured.reservedPeakBytes =
        std::max(measured.reservedPeakBytes, static_cast<int64_t>(all[i + 2]));
    measured.allocatedPeakBytes =
        std::max(measured.allocatedPeakBytes, static_cast<int64_t>(all[i + 3]));
  }
  if (groups.rank() != 0)
    return;
  log->clear();
  std::string error;
  if (!options.profile.empty() && !profile.empty() &&
      !plan::writeFileAtomically(options.profile, toTrace(input.plan, profiles),
                                 error))
    throw FileError(error);
  if (measured.steps == 0 &&
      (!options.summary.empty() || !options.profile.empty()))
    std::fprintf(stderr, "accel-run: note: no step was left to train, so that "
                         "nothing is measured: the files of --summary and "
                         "--profile stay as they are\n");
  if (!options.summary.empty() && measured.steps > 0 &&
      !plan::writeFileAtomically(options.summary,
                                 summaryJson(input.plan, measured), error))
    throw FileError(error);
  if (writer && writer->begun() > 0)
    std::printf("each of %lld checkpoints beside training held it up for %.1f "
                "ms\n",
                static_cast<long long>(writer->begun()),
                1e3 * writer->waitedSeconds() /
                    static_cast<double>(writer->begun()));
  if (measured.steps > 0)
    std::fputs(summaryText(input.plan, measured).c_str(), stdout);
  if (!input.outDir.empty())
    std::printf("the trained model is in %s\n",
                (std::filesystem::path(input.outDir) / "model").c_str());
  std::fflush(stdout);
}

int Trainer::stop(int64_t done, bool saved) {
  const bool keeps = !input.outDir.empty();
  if (keeps && !saved)
    save(done, /*behind=*/false);
  else if (writer && writer->pending())
    completeSave();
  if (groups.rank() == 0) {
    log->clear();
    const std::string what = done == firstStep
                                 ? "before the first step"
                                 : "after step " + std::to_string(done);
    std::string how = "nothing is saved: the job has no checkpoint folder";
    if (keeps && done == firstStep)
      how = "nothing is lost: start it again as before";
    else if (keeps)
      how = (std::filesystem::path(input.outDir) / checkpointName(done))
                .string() +
            " holds it: continue with --resume auto" +
            (evaluationDue ? ", which begins with its evaluation" : "");
    // Its agent takes exit code 75 for a failure like any other.
    if (keeps && std::getenv("TORCHELASTIC_RUN_ID"))
      how += " (torchrun itself ends with 1, and with --max-restarts it starts "
             "the ranks again)";
    std::printf("stops %s, as %s asked; %s\n", what.c_str(),
                signalName(stopSignal).c_str(), how.c_str());
    std::fflush(stdout);
  }
  return keeps ? exitResume : 128 + stopSignal;
}

int Trainer::run() {
  deferStopSignals();
  {
    at::AutoDispatchBelowADInplaceOrView below;
    at::NoGradGuard noGrad;
    start();
  }
  // One that has come while weights were loaded need not wait for a step.
  if (firstStep < lastStep) {
    std::vector<double> none, maxima = {static_cast<double>(stopAsked())};
    groups.combine(none, maxima);
    stopSignal = static_cast<int>(maxima[0]);
    if (stopSignal)
      return stop(firstStep, /*saved=*/true);
  }
  beginTraining();
  if (evaluationDue) {
    evaluateBefore();
    if (stopSignal)
      return stop(firstStep, /*saved=*/true);
  }
  // A GPU gets the next step before the host looks at the last one.
  const size_t stepsAhead =
      device.device().is_cpu() || options.debugNan ? 0 : 1;
  for (int64_t step = firstStep; step < lastStep; ++step) {
    queueStep(step);
    const bool last = step + 1 == lastStep;
    const bool due = saves(step + 1);
    const bool evaluated = evaluates(step + 1);
    // What is saved or evaluated is known to be sound.
    const size_t kept =
        last || due || evaluated || awaitsDecision() ? 0 : stepsAhead;
    while (inFlight.size() > kept) {
      std::optional<StepRecord> record = finishStep();
      if (evaluated && inFlight.empty())
        record->eval = evaluate(step + 1);
      if (record)
        note(*record);
    }
    if (due)
      save(step + 1, /*behind=*/!last);
    if (stopSignal && (!last || evaluationDue)) {
      while (!inFlight.empty())
        if (const std::optional<StepRecord> record = finishStep())
          note(*record);
      return stop(step + 1, due);
    }
  }
  finish();
  return 0;
}

void Trainer::note(const StepRecord &record) {
  if (!hasLines)
    measured.firstLoss = record.loss;
  hasLines = true;
  measured.lastLoss = record.loss;
  measured.peakBytes = record.peakBytes;
  if (log)
    log->write(record);
}

} // namespace accel::run
