//===- Evaluator.cpp - What a candidate holds and takes -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/FrameworkSteps/StepTrace.h"
#include "runtime/plan/ModulePath.h"

#include <map>

namespace accel {

struct StepEvaluator::State {
  State(const StepModel &model, const Target &target) : layout(model, target) {}
  StepLayout layout;
  Engine engine;
  replay::Problem events; // memory for the next recording
};

StepEvaluator::StepEvaluator(const StepModel &model, const Target &target)
    : state(new State(model, target)) {}
StepEvaluator::~StepEvaluator() { delete state; }

std::unique_ptr<StepRun> makeStepRun(const StepLayout &layout, Engine &engine) {
  switch (layout.candidate->executor) {
  case FrameworkKind::AccelRun:
    return makeAccelRunStep(layout, engine);
  case FrameworkKind::Fsdp2:
    return makeFsdp2Run(layout, engine);
  case FrameworkKind::Fsdp1:
    return makeFsdp1Run(layout, engine);
  case FrameworkKind::Deepspeed:
    return makeDeepspeedRun(layout, engine);
  case FrameworkKind::Megatron:
    return makeMegatronRun(layout, engine);
  case FrameworkKind::Ddp:
  case FrameworkKind::Single:
    break;
  }
  return makeDdpRun(layout, engine);
}

namespace {

double seconds(Picoseconds time) { return static_cast<double>(time) * 1e-12; }

const char *toString(Cause cause) {
  switch (cause) {
  case Cause::Gather:
    return "gather";
  case Cause::Reduce:
    return "reduce";
  case Cause::AllReduce:
    return "all-reduce";
  case Cause::HostIn:
    return "copy from the host";
  case Cause::HostOut:
    return "copy to the host";
  case Cause::HostUpdate:
    return "update on the host";
  case Cause::Overlap:
    return "collectives on the compute units";
  case Cause::Exchange:
    return "exchanges between ranks";
  }
  return "";
}

std::string nameOf(const StepModel &model, int call) {
  if (call < 0 || call >= static_cast<int>(model.calls.size()))
    return "";
  const StepCall &c = model.calls[call];
  return c.path.empty() ? model.kinds[c.kind].name : c.path;
}

std::string describe(const StepModel &model, const Place &place) {
  switch (place.part) {
  case Place::Part::Start:
    return "between steps";
  case Place::Part::Forward:
    return "forward of " + nameOf(model, place.call);
  case Place::Part::Reference:
    return place.call < 0
               ? "reference's forward and loss"
               : "reference's forward of " + nameOf(model, place.call);
  case Place::Part::Backward:
    return "backward of " + nameOf(model, place.call);
  case Place::Part::Reduce:
    return "end of the backward";
  case Place::Part::Update:
    return "optimizer update";
  }
  return "";
}

void listExposed(const StepModel &model, const Candidate &candidate,
                 const Engine &engine, StepPrediction &result) {
  std::map<std::string, Picoseconds> sums;
  for (const auto &[at, time] : engine.exposedAt) {
    if (at.cause == Cause::Exchange) {
      sums[exchangesOf(candidate)] += time;
      continue;
    }
    const std::string where = plan::withoutLayerNumbers(nameOf(model, at.call));
    sums[std::string(toString(at.cause)) +
         (where.empty() ? "" : " " + where)] += time;
  }
  for (const auto &[cause, time] : sums)
    result.exposed.push_back({cause, seconds(time)});
  std::stable_sort(
      result.exposed.begin(), result.exposed.end(),
      [](const Exposed &a, const Exposed &b) { return a.seconds > b.seconds; });
}

} // namespace

StepPrediction StepEvaluator::evaluate(const Candidate &candidate,
                                       const EvaluateOptions &options) {
  StepLayout &layout = state->layout;
  if (isPipelined(candidate))
    return evaluatePipeline(layout.model, layout.target, candidate,
                            options.detail);
  Engine &engine = state->engine;
  layout.prepare(candidate,
                 options.lastRank ? RankClass::Last : RankClass::First);
  engine.reset(!options.detail && !options.expanded);
  engine.detail = options.detail;
  engine.overlapTax = 1 - layout.target.overlap;
  const std::unique_ptr<StepRun> run = makeStepRun(layout, engine);
  run->begin();
  run->step();

  StepPrediction result;
  const Engine::Peak &peak = engine.peak();
  result.peakBytes = peak.total;
  result.atPeak = peak.level;
  result.peakWhere = describe(layout.model, peak.place);
  result.peakAction = peak.place.call;
  result.persistentBytes = run->persistentBytes();
  result.endBytes = engine.total();
  result.hostBytes = run->hostBytes;
  result.diskBytes = run->diskBytes;
  result.pagedBytes = run->pagedBytes;
  result.reservedBytes = reservedBytes(engine, layout.target);
  if (candidate.lossOutside && peak.place.call >= 0)
    result.reservedBytes += layout.kind(peak.place.call).lossFragmentBytes;
  result.deviceBytes = result.reservedBytes + layout.target.contextBytes;
  result.stepSeconds = seconds(engine.duration());
  result.computeSeconds = seconds(engine.computed());
  result.exposedSeconds = seconds(engine.duration() - engine.computed());
  result.recomputeSeconds = seconds(run->recomputeTime());
  result.optimizerSeconds = seconds(run->optimizerTime());
  if (result.stepSeconds > 0)
    result.tokensPerSecondPerDevice =
        static_cast<double>(layout.model.tokens() * candidate.accumulation) /
        static_cast<double>(layout.model.ranksPerSample) / result.stepSeconds;
  if (options.detail)
    listExposed(layout.model, candidate, engine, result);
  return result;
}

StepTrace traceStep(const StepModel &model, const Target &target,
                    const Candidate &candidate) {
  constexpr const char *lanes[] = {"compute",     "copy in",    "gather",
                                   "reduce",      "all-reduce", "from the host",
                                   "to the host", "drive"};
  constexpr const char *collectives[] = {"", "", "all-gather", "reduce-scatter",
                                         "all-reduce"};
  if (isPipelined(candidate))
    return tracePipeline(model, target, candidate);
  StepLayout layout(model, target);
  layout.prepare(candidate, RankClass::First);
  layout.listParts(RankClass::First);
  Engine engine;
  EngineTrace seen;
  engine.reset(false);
  engine.overlapTax = 1 - target.overlap;
  engine.trace = &seen;
  const std::unique_ptr<StepRun> run = makeStepRun(layout, engine);
  run->begin();
  run->step();
  StepTrace trace;
  for (const EngineTrace::Slice &slice : seen.slices) {
    const int lane = static_cast<int>(slice.lane);
    const std::string where = describe(model, slice.place);
    TraceSlice out;
    out.stream = lanes[lane];
    // What is reduced over the ranks that do not shard is reduced whole.
    const bool whole = neverShards(candidate.executor);
    out.name = slice.waits ? std::string("wait: ") + toString(*slice.waits)
               : slice.collective
                   ? std::string(whole && lane == 3 ? "all-reduce"
                                                    : collectives[lane]) +
                         " in " + where
               : slice.what.empty() ? where
                                    : slice.what;
    out.where = where;
    out.kind = slice.before       ? TraceSlice::Kind::Before
               : slice.waits      ? TraceSlice::Kind::Wait
               : slice.collective ? TraceSlice::Kind::Collective
               : lane == 0        ? TraceSlice::Kind::Compute
                                  : TraceSlice::Kind::Copy;
    out.begin = seconds(slice.begin);
    out.end = seconds(slice.end);
    out.bytes = slice.bytes;
    trace.slices.push_back(std::move(out));
  }
  for (const EngineTrace::Change &change : seen.changes)
    trace.changes.push_back({seconds(change.at), change.holding, change.bytes});
  return trace;
}

/// Micro-batches between the first and the last are alike.
static Candidate withFewMicroBatches(Candidate candidate) {
  candidate.accumulation = std::min<int64_t>(candidate.accumulation, 3);
  return candidate;
}

struct StepEvaluator::Recording::Run {
  Run(StepEvaluator::State &state, const Candidate &whole, RankClass rank)
      : state(state), candidate(withFewMicroBatches(whole)) {
    state.layout.prepare(candidate, rank);
    state.layout.listParts(rank);
    engine.reset(false);
    recorder.reuse(std::move(state.events));
    // DeepSpeed fills its states when it starts.
    recorder.defersStates = candidate.executor != FrameworkKind::Deepspeed;
    engine.recorder = &recorder;
    run = makeStepRun(state.layout, engine);
    run->begin();
  }
  ~Run() { state.events = recorder.release(); }

  StepEvaluator::State &state;
  Candidate candidate; // what the layout refers to
  Engine engine;
  Recorder recorder;
  std::unique_ptr<StepRun> run;
};

StepEvaluator::Recording::Recording(StepEvaluator &evaluator,
                                    const Candidate &candidate, bool lastRank) {
  const bool cuda = evaluator.state->layout.target.kind == TargetKind::Cuda;
  if (cuda && recordsStages(candidate))
    stage = std::make_unique<StageRecording>(evaluator.state->layout.model,
                                             evaluator.state->layout.target,
                                             candidate);
  if (candidate.executor != FrameworkKind::AccelRun &&
      !isPipelined(candidate) && cuda)
    run = std::make_unique<Run>(*evaluator.state, candidate,
                                lastRank ? RankClass::Last : RankClass::First);
}

StepEvaluator::Recording::~Recording() = default;

bool StepEvaluator::Recording::step() {
  if (stage) {
    stage->step();
    ++made;
    return stage->recorder().broken().empty();
  }
  if (!run)
    return false;
  run->run->step();
  ++made;
  return run->recorder.broken().empty();
}

const replay::Problem &StepEvaluator::Recording::problem() const {
  return stage ? stage->recorder().problem() : run->recorder.problem();
}

void StepEvaluator::Recording::dropEvents() {
  (stage ? stage->recorder() : run->recorder).dropEvents();
}

std::optional<replay::Problem> StepEvaluator::record(const Candidate &candidate,
                                                     int steps, bool lastRank) {
  Recording recording(*this, candidate, lastRank);
  while (recording.steps() < steps)
    if (!recording.step())
      return std::nullopt;
  return recording.problem();
}

} // namespace accel
