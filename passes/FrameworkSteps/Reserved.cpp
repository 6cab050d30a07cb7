//===- Reserved.cpp - What the caching allocator keeps --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Engine.h"

namespace accel {

/// Each stream's pool keeps what it once held; memory freed in one is not
/// reused in another. The compute stream's and that of CUDA graphs are cut into
/// the many sizes of activations and have idle parts; the others hold few large
/// tensors, each a segment of its own rounded to 2 MiB
/// (c10/cuda/CUDACachingAllocator.cpp, kRoundLarge).
int64_t reservedBytes(const Engine &engine, const Target &target) {
  int64_t bytes = target.reservedBytes(engine.poolPeak(Pool::Compute));
  if (const int64_t graphs = engine.poolPeak(Pool::Graphs); graphs > 0)
    bytes += target.reservedBytes(graphs);
  const int64_t grain = std::max<int64_t>(1, target.allocatorGranularity);
  for (Pool pool : {Pool::Gather, Pool::Reduce, Pool::AllReduce}) {
    const int64_t peak = engine.poolPeak(pool);
    bytes += (peak + grain - 1) / grain * grain;
  }
  return bytes;
}

std::optional<ReservedReplay> replayReserved(StepEvaluator &evaluator,
                                             const Candidate &candidate,
                                             replay::AllocatorRules rules,
                                             int64_t capacityBytes,
                                             bool lastRank) {
  ReservedReplay result;
  StepEvaluator::Recording recording(evaluator, candidate, lastRank);
  rules.capacityBytes = 0;
  rules.keptStream = static_cast<int>(Pool::Graphs);
  // On a device without end, and on one of the capacity: the same until more
  // than that is asked for.
  replay::Replay endless(rules);
  std::optional<replay::Replay> full;
  auto step = [&](bool both) {
    std::optional<replay::Replay> before;
    if (capacityBytes > 0 && !full)
      before = endless;
    if (!recording.step())
      return false;
    if (both)
      endless.play(recording.problem());
    if (before && endless.result().statistics.reservedPeak > capacityBytes) {
      full = std::move(before);
      full->setCapacity(capacityBytes);
    }
    if (full)
      full->play(recording.problem());
    recording.dropEvents();
    return true;
  };
  int most = 0;
  for (int steps : {3, 6}) {
    most = steps;
    while (recording.steps() < steps && !endless.settled())
      if (!step(/*both=*/true))
        return std::nullopt;
    const std::vector<int64_t> peaks = endless.result().reservedPeakByStep;
    result.steps = static_cast<int>(
        std::lower_bound(peaks.begin(), peaks.end(), peaks.back()) -
        peaks.begin() + 1);
    if (result.steps < steps)
      break;
  }
  const replay::AllocatorStatistics statistics = endless.result().statistics;
  result.reservedBytes = statistics.reservedPeak;
  result.allocatedBytes = statistics.allocatedPeak;
  if (!full)
    return result;
  while (recording.steps() < most && !full->settled())
    if (!step(/*both=*/false))
      return std::nullopt;
  const replay::Result crowded = full->result();
  result.survives = crowded.failedEvent < 0;
  // Full once in the first steps, or in each.
  if (result.survives)
    result.retries = std::max<int64_t>(crowded.retriesOfLastStep, 1);
  return result;
}

void replayInto(StepPrediction &prediction, StepEvaluator &evaluator,
                const Candidate &candidate, const replay::AllocatorRules &rules,
                int64_t contextBytes, int64_t budgetBytes, bool onDevice) {
  const int64_t capacity =
      onDevice && budgetBytes > 0
          ? std::max<int64_t>(budgetBytes - contextBytes, 1)
          : 0;
  const auto replayed = replayReserved(evaluator, candidate, rules, capacity);
  if (!replayed)
    return;
  prediction.replayed = true;
  prediction.estimatedReservedBytes = prediction.reservedBytes;
  prediction.replayedBytes = replayed->reservedBytes;
  prediction.replayedAllocatedBytes = replayed->allocatedBytes;
  // Without shards it has what 76 GPU jobs reserved; of torchtitan's shards it
  // has stayed below what runs report (docs/accuracy.md).
  const bool oneStream = neverShards(candidate.executor);
  prediction.reservedBytes =
      oneStream ? prediction.replayedBytes
                : std::max(prediction.reservedBytes, prediction.replayedBytes);
  // On the device itself idle segments are returned before anything fails, so
  // that what the replay survives takes no more than there is; a search does
  // not count on it. Where units are gathered on a stream of their own, blocks
  // wait for events of the other streams before they can be returned.
  constexpr double margin = 0.98; // of the device, for tensors
  if (onDevice && oneStream && capacity > 0 && replayed->survives &&
      static_cast<double>(prediction.peakBytes) <=
          margin * static_cast<double>(capacity))
    prediction.reservedBytes = std::min(prediction.reservedBytes, capacity);
  prediction.deviceBytes = prediction.reservedBytes + contextBytes;
  prediction.allocatorRetries = replayed->retries;
}

} // namespace accel
