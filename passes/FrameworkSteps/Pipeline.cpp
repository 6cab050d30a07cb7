//===- Pipeline.cpp - Steps whose ranks have stages of the model ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/FrameworkSteps/StageModel.h"
#include "passes/PipelineSchedules/Verify.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {

namespace {

using Range = std::pair<int, int>;

pipeline::Problem problemOf(const Candidate &candidate) {
  pipeline::Problem problem;
  problem.chunks = candidate.megatron.chunks;
  problem.stages = candidate.stages() * problem.chunks;
  problem.kind = problem.chunks > 1 ? pipeline::Kind::Interleaved
                                    : pipeline::Kind::OneFOneB;
  problem.microBatches = static_cast<int>(candidate.accumulation);
  return problem;
}

/// What the rank that holds most holds, and when everybody does what.
struct Evaluated {
  pipeline::Problem problem;
  pipeline::Schedule schedule;
  pipeline::Simulation simulation;
  std::vector<MicroBatchCost> stages;
  int rank = 0; // that holds most
  int64_t persistentBytes = 0, peakBytes = -1, reservedBytes = 0;
  std::array<int64_t, numHoldings> persistent{}, peak{};
  std::string peakWhere;
  int peakCall = -1;
  int64_t hostBytes = 0;
  double step = 0, compute = 0, bubble = 0, recompute = 0, exchange = 0;
  double reduce = 0, gather = 0, update = 0; // exposed, exposed, all
};

std::string nameOf(const StepModel &model, int c) {
  const StepCall &call = model.calls[c];
  return call.path.empty() ? model.kinds[call.kind].name : call.path;
}

double seconds(Picoseconds time) { return static_cast<double>(time) * 1e-12; }

/// What a part of a micro-batch holds at its peak, beside what its rank holds
/// before it: a backward has the frame then.
std::array<int64_t, numHoldings> atMost(const MicroBatchCost &cost,
                                        bool forward) {
  std::array<int64_t, numHoldings> most = cost.peak;
  // A forward's own peak is known as a sum.
  if (forward)
    most[static_cast<int>(Holding::Activations)] +=
        cost.forwardPeakBytes - cost.peakBytes;
  else
    for (int h = 0; h < numHoldings; ++h)
      most[h] -= cost.frame[h];
  return most;
}

class PipelineEvaluator {
public:
  PipelineEvaluator(const StepModel &model, const Target &target,
                    const Candidate &candidate)
      : model(model), target(target), candidate(candidate) {
    result.problem = problemOf(candidate);
  }

  Evaluated run() {
    ranges = stagesOf(model, candidate);
    for (int s = 0; s < result.problem.stages; ++s)
      result.stages.push_back(stage(s));
    result.schedule = pipeline::makeSchedule(result.problem);
    simulate();
    holdMost();
    finish();
    return std::move(result);
  }

private:
  /// Stages that compute the same are evaluated once.
  MicroBatchCost stage(int s) {
    const Range range = ranges[s];
    std::vector<int64_t> key;
    for (int c = range.first; c < range.second; ++c)
      for (int64_t part :
           {int64_t(model.calls[c].kind), int64_t(candidate.variants[c]),
            int64_t(candidate.offloadActivations[c])})
        key.push_back(part);
    const bool inner = s > 0 && s + 1 < result.problem.stages;
    if (inner) {
      auto [at, isNew] = evaluated.try_emplace(key, s);
      if (!isNew) {
        MicroBatchCost cost = result.stages[at->second];
        if (cost.place.call >= 0)
          cost.place.call += range.first - ranges[at->second].first;
        heldBy.push_back(heldBy[at->second]);
        return cost;
      }
    }
    const StageModel own(model, candidate, range);
    StepLayout layout(own.model, target);
    layout.prepare(own.candidate, RankClass::First);
    Engine engine;
    engine.reset(/*folding=*/true);
    engine.overlapTax = 1 - target.overlap;
    StageCost alone = candidate.executor == FrameworkKind::Fsdp2
                          ? runFsdp2Stage(layout, engine)
                          : runMegatronStage(layout, engine);
    MicroBatchCost &cost = alone.micro;
    // Calls of the whole model.
    if (cost.place.call >= 0)
      cost.place.call = std::clamp(
          cost.place.call - static_cast<int>(own.received.size()) + range.first,
          range.first, range.second - 1);
    alone.held.exchange = engine.exposed(Cause::Exchange);
    alone.held.sentBytes = own.sentBytes;
    alone.held.receivedBytes = own.receivedBytes;
    if (candidate.executor == FrameworkKind::Fsdp2) {
      const bool last = s + 1 == result.problem.stages;
      const int kind = model.calls[range.second - 1].kind;
      holdAsTorch(alone, candidate.torchVersion, candidate.accumulation,
                  last ? model.kinds[kind].logitsBytes : 0);
    }
    for (const StepValue &value : own.model.values)
      if (value.buffer)
        alone.held.buffers += value.bytes;
    heldBy.push_back(alone.held);
    return cost;
  }

  std::string describe(const Place &place) const {
    if (place.call < 0)
      return "end of the backward";
    return std::string(place.part == Place::Part::Forward ? "forward of "
                                                          : "backward of ") +
           nameOf(model, place.call);
  }

  /// From a stage to the next: between the ranks that are as far apart as a
  /// stage has ranks.
  double transferSeconds() const {
    int64_t bytes = 0;
    for (const StageHeld &held : heldBy)
      bytes = std::max(bytes, held.sentBytes);
    const int64_t apart = candidate.mesh.ranks() / candidate.stages();
    const Link &link = apart >= candidate.ranksPerNode ? target.betweenNodes
                                                       : target.insideNode;
    return link.bytesPerSecond > 0
               ? link.latencySeconds +
                     static_cast<double>(bytes) / link.bytesPerSecond
               : 0;
  }

  void simulate() {
    pipeline::Costs costs;
    const double transfer = transferSeconds();
    // Without chunks a rank sends and receives between what it computes, and
    // waits for both (send_forward_recv_backward); chunks overlap.
    const bool waits = result.problem.chunks == 1;
    for (int s = 0; s < result.problem.stages; ++s) {
      pipeline::StageCost cost;
      cost.forward = seconds(result.stages[s].forward);
      cost.backwardInput = seconds(result.stages[s].backward);
      if (waits && s + 1 < result.problem.stages)
        cost.forward += transfer;
      if (waits && s > 0)
        cost.backwardInput += transfer;
      costs.stages.push_back(cost);
    }
    costs.transfer = waits ? 0 : transfer;
    if (auto made = pipeline::simulate(result.problem, result.schedule, costs))
      result.simulation = std::move(*made);
  }

  /// The allocator's segments of a rank whose peak is in a call.
  int64_t reserved(int rank, int64_t peak, int call) const {
    int64_t bytes = target.reservedBytes(peak);
    if (candidate.lossOutside && call >= 0)
      bytes += model.kinds[model.calls[call].kind].lossFragmentBytes;
    for (int s = 0; s < result.problem.stages; ++s)
      if (result.problem.rankOf(s) == rank)
        bytes += heldBy[s].pools;
    return bytes;
  }

  /// The level of each rank, action by action.
  void holdMost() {
    std::vector<pipeline::RankTotals> &ranks = result.simulation.totals;
    for (int r = 0; r < result.problem.ranks(); ++r) {
      std::array<int64_t, numHoldings> level{};
      int64_t placeholders = 0; // chunks share them
      for (int s = 0; s < result.problem.stages; ++s)
        if (result.problem.rankOf(s) == r) {
          placeholders = std::max(placeholders, heldBy[s].placeholders);
          level[static_cast<int>(Holding::Parameters)] += heldBy[s].parameters;
          level[static_cast<int>(Holding::Gradients)] += heldBy[s].gradients;
          level[static_cast<int>(Holding::Buffers)] += heldBy[s].buffers;
          if (!candidate.offloadOptimizer)
            level[static_cast<int>(Holding::Optimizer)] += heldBy[s].states;
        }
      level[static_cast<int>(Holding::Gradients)] += placeholders;
      const auto persistent = level;
      int64_t total = 0;
      for (int64_t bytes : level)
        total += bytes;
      const int64_t stays = total;
      auto add = [&](Holding holding, int64_t bytes) {
        level[static_cast<int>(holding)] += bytes;
        total += bytes;
      };
      for (int s = 0; s < result.problem.stages; ++s)
        if (result.problem.rankOf(s) == r)
          add(Holding::Gathered, heldBy[s].gathered);
      std::set<int> accumulated; // stages
      int64_t rankPeak = 0;
      int rankCall = -1;
      bool afterForward = false;
      for (const pipeline::Action &action : result.schedule.ranks[r]) {
        const MicroBatchCost &cost = result.stages[action.stage];
        const bool forward = action.pass == pipeline::Pass::Forward;
        const StageHeld &held = heldBy[action.stage];
        const int64_t sending = forward && afterForward ? held.sending : 0;
        const int64_t peak = total + sending +
                             (forward ? cost.forwardPeakBytes
                                      : cost.peakBytes - cost.frameBytes);
        afterForward = forward;
        ranks[r].peakBytes = std::max(ranks[r].peakBytes, peak);
        if (peak > rankPeak) {
          rankPeak = peak;
          rankCall = cost.place.call;
        }
        if (peak > result.peakBytes) {
          result.peakBytes = peak;
          result.rank = r;
          result.persistentBytes = stays;
          result.persistent = persistent;
          result.peakWhere = describe(cost.place);
          result.peakCall = cost.place.call;
          result.peak = level;
          const auto most = atMost(cost, forward);
          for (int h = 0; h < numHoldings; ++h)
            result.peak[h] += most[h];
          result.peak[static_cast<int>(Holding::Activations)] += sending;
        }
        total += (forward ? 1 : -1) * cost.frameBytes;
        for (int h = 0; h < numHoldings; ++h)
          level[h] += (forward ? 1 : -1) * cost.frame[h];
        if (forward) {
          add(Holding::Activations, held.keptByForward);
          continue;
        }
        if (accumulated.insert(action.stage).second) {
          add(Holding::Gradients, held.accumulated);
          add(Holding::Activations, held.lastGradient);
        }
        add(Holding::Activations, held.keptByBackward);
        add(Holding::Logits, held.returned);
      }
      result.reservedBytes =
          std::max(result.reservedBytes, reserved(r, rankPeak, rankCall));
      int64_t update = 0, kept = 0, outputs = 0;
      for (int s = 0; s < result.problem.stages; ++s)
        if (result.problem.rankOf(s) == r) {
          update += heldBy[s].update;
          kept += candidate.accumulation *
                  (heldBy[s].keptByForward + heldBy[s].keptByBackward);
          outputs += candidate.accumulation * heldBy[s].returned;
        }
      // The last stage joins its outputs beside them, before the update.
      const int64_t end = stays + update + kept + 2 * outputs;
      ranks[r].peakBytes = std::max(ranks[r].peakBytes, end);
      if (end > result.peakBytes) {
        result.peakBytes = end;
        result.rank = r;
        result.persistentBytes = stays;
        result.persistent = result.peak = persistent;
        result.peak[static_cast<int>(Holding::Gradients)] += update;
        result.peak[static_cast<int>(Holding::Activations)] += kept;
        result.peak[static_cast<int>(Holding::Logits)] += 2 * outputs;
        result.peakWhere =
            outputs > 0 ? "outputs of the last stage" : "optimizer update";
        result.peakCall = -1;
      }
    }
  }

  /// Gradients are reduced when a rank has computed its last; then all update.
  void finish() {
    double longest = 0;
    for (int r = 0; r < result.problem.ranks(); ++r) {
      StageHeld sum;
      double own = 0, first = 0;
      for (int s = 0; s < result.problem.stages; ++s)
        if (result.problem.rankOf(s) == r) {
          sum.reduce += heldBy[s].reduce;
          sum.gather += heldBy[s].gather;
          sum.updateTime += heldBy[s].updateTime;
          sum.recompute += heldBy[s].recompute;
          sum.exchange += heldBy[s].exchange;
          sum.states += heldBy[s].states;
          own += seconds(result.stages[s].backward);
          first += seconds(result.stages[s].forward);
        }
      const auto count = static_cast<double>(candidate.accumulation);
      const auto &spans = result.simulation.ranks[r];
      const double end = spans.empty() ? 0 : spans.back().end;
      auto exposed = [](double all, double hiding, bool overlaps) {
        return overlaps ? std::max(0.0, all - hiding) : all;
      };
      const double reduce = exposed(seconds(sum.reduce), own,
                                    candidate.megatron.overlapsGradients);
      const double gather =
          exposed(seconds(sum.gather), first,
                  candidate.megatron.overlapsParameters ||
                      candidate.executor == FrameworkKind::Fsdp2);
      longest = std::max(longest, end + reduce);
      result.gather = std::max(result.gather, gather);
      result.update = std::max(result.update, seconds(sum.updateTime));
      if (r == result.rank) {
        result.recompute = seconds(sum.recompute) * count;
        result.exchange = seconds(sum.exchange) * count;
        result.compute =
            (own + first) * count - result.exchange + seconds(sum.updateTime);
        if (candidate.offloadOptimizer)
          result.hostBytes = sum.states;
      }
    }
    result.reduce = std::max(0.0, longest - result.simulation.makespan);
    result.step = longest + result.update + result.gather;
    result.bubble =
        std::max(0.0, result.step - result.compute - result.exchange -
                          result.reduce - result.gather);
  }

  const StepModel &model;
  const Target &target;
  const Candidate &candidate;
  Evaluated result;
  std::vector<Range> ranges;
  std::vector<StageHeld> heldBy;
  std::map<std::vector<int64_t>, int> evaluated; // the first stage
};

} // namespace

std::string verifyPipeline(const StepModel &model, const Candidate &candidate) {
  const pipeline::Problem problem = problemOf(candidate);
  if (std::string wrong = pipeline::check(problem); !wrong.empty())
    return wrong;
  const auto layers = std::count_if(model.calls.begin(), model.calls.end(),
                                    [](const StepCall &c) { return c.layer; });
  const int last = candidate.megatron.lastLayers;
  const std::vector<Range> ranges = stagesOf(model, candidate);
  if (ranges.empty())
    return std::to_string(layers) + " layers cannot be divided among " +
           std::to_string(problem.stages) + " stages" +
           (last ? ", of which the last has " + std::to_string(last) : "");
  // What a stage reads comes from the one before it, or is no layer's.
  for (size_t s = 0; s < ranges.size(); ++s)
    for (int c = ranges[s].first; c < ranges[s].second; ++c)
      for (int value : model.calls[c].inputs) {
        const int from = model.values[value].producer;
        if (!model.values[value].gradient || from >= ranges[s].first)
          continue;
        if (s == 0 || from < ranges[s - 1].first)
          return "a tensor goes from call " + std::to_string(from) +
                 " over more than one stage, which no pipeline sends";
      }
  return "";
}

StepPrediction evaluatePipeline(const StepModel &model, const Target &target,
                                const Candidate &candidate, bool detail) {
  const Evaluated e = PipelineEvaluator(model, target, candidate).run();
  StepPrediction result;
  result.peakBytes = e.peakBytes;
  result.atPeak = e.peak;
  result.peakWhere = e.peakWhere;
  result.peakAction = e.peakCall;
  result.persistentBytes = result.endBytes = e.persistentBytes;
  result.hostBytes = e.hostBytes;
  result.reservedBytes =
      std::max(e.reservedBytes, target.reservedBytes(e.peakBytes));
  result.deviceBytes = result.reservedBytes + target.contextBytes;
  result.stepSeconds = e.step;
  result.computeSeconds = e.compute;
  result.exposedSeconds = e.step - e.compute;
  result.recomputeSeconds = e.recompute;
  result.optimizerSeconds = e.update;
  result.tokensPerSecondPerDevice =
      static_cast<double>(model.tokens() * candidate.accumulation) /
      static_cast<double>(model.ranksPerSample) / e.step;
  if (detail) {
    for (const auto &[cause, time] :
         {std::pair(std::string("pipeline bubble and transfers"), e.bubble),
          std::pair(exchangesOf(candidate), e.exchange),
          std::pair(std::string("reduce"), e.reduce),
          std::pair(std::string("gather"), e.gather)})
      if (time > 0)
        result.exposed.push_back({cause, time});
    std::stable_sort(result.exposed.begin(), result.exposed.end(),
                     [](const Exposed &a, const Exposed &b) {
                       return a.seconds > b.seconds;
                     });
  }
  return result;
}

pipeline::SimulatedStep simulateStages(const StepModel &model,
                                       const Target &target,
                                       const Candidate &candidate) {
  Evaluated e = PipelineEvaluator(model, target, candidate).run();
  std::vector<std::string> holds;
  for (const auto &[first, end] : stagesOf(model, candidate))
    holds.push_back(nameOf(model, first) + " to " + nameOf(model, end - 1));
  return {e.problem, std::move(e.schedule), std::move(e.simulation),
          std::move(holds)};
}

StageRank busiestRank(const StepModel &model, const Target &target,
                      const Candidate &candidate) {
  const Evaluated e = PipelineEvaluator(model, target, candidate).run();
  StageRank rank;
  rank.calls = stagesOf(model, candidate)[e.rank];
  rank.last = e.rank + 1 == e.problem.stages;
  pipeline::Problem few = e.problem;
  few.microBatches = std::min(few.microBatches, 2 * few.stages + 2);
  rank.microBatches = few.microBatches;
  const pipeline::Schedule schedule = pipeline::makeSchedule(few);
  for (const pipeline::Action &action : schedule.ranks[e.rank])
    rank.order.push_back(
        {action.pass == pipeline::Pass::Forward, action.microBatch});
  return rank;
}

StepTrace tracePipeline(const StepModel &model, const Target &target,
                        const Candidate &candidate) {
  const Evaluated e = PipelineEvaluator(model, target, candidate).run();
  StepTrace trace;
  std::array<int64_t, numHoldings> held{};
  // What is less goes first: what changes at once is no peak between.
  auto become = [&](double at, const std::array<int64_t, numHoldings> &levels) {
    for (bool more : {false, true})
      for (int h = 0; h < numHoldings; ++h)
        if (levels[h] != held[h] && levels[h] > held[h] == more)
          trace.changes.push_back(
              {at, static_cast<Holding>(h), levels[h] - held[h]});
    held = levels;
  };
  auto sum = [](std::array<int64_t, numHoldings> levels,
                const std::array<int64_t, numHoldings> &other, int sign) {
    for (int h = 0; h < numHoldings; ++h)
      levels[h] += sign * other[h];
    return levels;
  };
  become(0, e.persistent);
  const auto &actions = e.schedule.ranks[e.rank];
  const auto &spans = e.simulation.ranks[e.rank];
  double last = 0;
  auto add = [&](TraceSlice::Kind kind, const std::string &name, double begin,
                 double end) {
    if (end <= begin)
      return;
    TraceSlice slice;
    slice.kind = kind;
    slice.stream = "compute";
    slice.name = slice.where = name;
    slice.begin = begin;
    slice.end = end;
    trace.slices.push_back(std::move(slice));
  };
  for (size_t i = 0; i < actions.size(); ++i) {
    add(TraceSlice::Kind::Wait, "wait: pipeline bubble", last, spans[i].start);
    add(TraceSlice::Kind::Compute, pipeline::toString(actions[i]),
        spans[i].start, spans[i].end);
    last = spans[i].end;
    const MicroBatchCost &cost = e.stages[actions[i].stage];
    const bool forward = actions[i].pass == pipeline::Pass::Forward;
    const auto before = held;
    become(spans[i].start, sum(before, atMost(cost, forward), 1));
    become(spans[i].end, sum(before, cost.frame, forward ? 1 : -1));
  }
  const double update = e.step - e.update - e.gather;
  add(TraceSlice::Kind::Wait, "wait: pipeline bubble and gradients", last,
      update);
  add(TraceSlice::Kind::Compute, "optimizer update", update, update + e.update);
  add(TraceSlice::Kind::Wait, "wait: parameters", update + e.update, e.step);
  return trace;
}

} // namespace accel
