//===- Stages.cpp - Where a model is cut into stages ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Stages.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace accel::pipeline {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// What consecutive calls are together.
class Ranges {
public:
  explicit Ranges(const StageProblem &problem) : problem(problem) {
    for (const Call &call : problem.calls) {
      seconds.push_back(seconds.back() + call.seconds);
      held.push_back(held.back() + call.heldBytes);
      perFrame.push_back(perFrame.back() + call.perFrameBytes);
    }
  }
  double secondsOf(int begin, int end) const {
    return seconds[end] - seconds[begin];
  }
  int64_t bytesOf(int stage, int begin, int end) const {
    return held[end] - held[begin] +
           problem.stages[stage].frames * (perFrame[end] - perFrame[begin]);
  }
  int64_t heldOf(int begin, int end) const { return held[end] - held[begin]; }
  int64_t perFrameOf(int begin, int end) const {
    return perFrame[end] - perFrame[begin];
  }
  bool fits(int stage, int begin, int end) const {
    return bytesOf(stage, begin, end) <= problem.stages[stage].bytes;
  }

private:
  const StageProblem &problem;
  std::vector<double> seconds = {0};
  std::vector<int64_t> held = {0}, perFrame = {0};
};

/// The cut whose stages cost least together by `together` (of what the stages
/// before cost, and the seconds and bytes of this one), each at most `limit`
/// seconds; the earliest of several. {} if there is none.
template <typename Together>
std::vector<int> cheapest(const StageProblem &problem, const Ranges &ranges,
                          double limit, Together together) {
  const int calls = static_cast<int>(problem.calls.size());
  const int stages = static_cast<int>(problem.stages.size());
  std::vector<double> before(calls + 1, infinite); // up to a call
  before[0] = 0;
  // By stage and by the call behind it: its first call.
  std::vector<std::vector<int>> begins(stages, std::vector<int>(calls + 1, -1));
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<double> upTo(calls + 1, infinite);
    for (int end = stage + 1; end <= calls; ++end)
      for (int begin = stage; begin < end; ++begin) {
        const double seconds = ranges.secondsOf(begin, end);
        if (before[begin] == infinite || seconds > limit ||
            !ranges.fits(stage, begin, end))
          continue;
        const double cost =
            together(before[begin], seconds,
                     static_cast<double>(ranges.bytesOf(stage, begin, end)));
        if (cost < upTo[end]) {
          upTo[end] = cost;
          begins[stage][end] = begin;
        }
      }
    before = std::move(upTo);
  }
  if (before[calls] == infinite)
    return {};
  std::vector<int> cut(stages);
  for (int stage = stages - 1, end = calls; stage >= 0; --stage)
    end = cut[stage] = begins[stage][end];
  return cut;
}

double slowest(const Ranges &ranges, const std::vector<int> &begins,
               int calls) {
  double seconds = 0;
  for (size_t stage = 0; stage < begins.size(); ++stage)
    seconds = std::max(seconds,
                       ranges.secondsOf(begins[stage], stage + 1 < begins.size()
                                                           ? begins[stage + 1]
                                                           : calls));
  return seconds;
}

/// What a rank's stages hold together, at most.
int64_t rankBytes(const StageProblem &problem, const Ranges &ranges,
                  const std::vector<int> &begins, int rank) {
  const int stages = static_cast<int>(begins.size());
  const int calls = static_cast<int>(problem.calls.size());
  std::vector<int> frames(stages);
  for (int stage = 0; stage < stages; ++stage)
    frames[stage] = problem.stages[stage].frames;
  const std::vector<std::vector<int>> all = {frames};
  const auto &moments = problem.moments.empty() ? all : problem.moments[rank];
  int64_t most = 0;
  for (const std::vector<int> &moment : moments) {
    int64_t bytes = 0;
    for (int stage = 0; stage < stages; ++stage) {
      const int end = stage + 1 < stages ? begins[stage + 1] : calls;
      if (problem.ranks[stage] == rank)
        bytes += ranges.heldOf(begins[stage], end) +
                 moment[stage] * ranges.perFrameOf(begins[stage], end);
    }
    most = std::max(most, bytes);
  }
  return most;
}

/// By how much ranks are over their bytes, all together.
double excessOf(const StageProblem &problem, const Ranges &ranges,
                const std::vector<int> &begins) {
  double excess = 0;
  std::vector<bool> seen(problem.stages.size());
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    const int rank = problem.ranks[stage];
    if (seen[rank] ||
        problem.stages[stage].bytes == std::numeric_limits<int64_t>::max())
      continue;
    seen[rank] = true;
    excess += std::max<double>(
        0, static_cast<double>(rankBytes(problem, ranges, begins, rank) -
                               problem.stages[stage].bytes));
  }
  return excess;
}

using Pace = std::array<double, 4>;

/// What ranks hold above their bytes, what the slowest rank computes of a
/// micro-batch, then the slowest stage, and how unlike ranks are.
Pace paceOf(const StageProblem &problem, const Ranges &ranges,
            const std::vector<int> &begins, int calls) {
  std::vector<double> seconds(problem.stages.size());
  for (size_t stage = 0; stage < begins.size(); ++stage)
    seconds[problem.ranks[stage]] += ranges.secondsOf(
        begins[stage], stage + 1 < begins.size() ? begins[stage + 1] : calls);
  double squares = 0;
  for (double one : seconds)
    squares += one * one;
  return {excessOf(problem, ranges, begins),
          *std::max_element(seconds.begin(), seconds.end()),
          slowest(ranges, begins, calls), squares};
}

/// Sums of the same seconds differ by rounding.
bool isLess(const Pace &a, const Pace &b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] - b[i]) > 1e-9 * b[i])
      return a[i] < b[i];
  return false;
}

/// A rank of several stages keeps others waiting by what they take together:
/// moves calls from stage to stage, those between the two along with them, as
/// long as that makes ranks fit their bytes, or the slowest rank faster.
Pace evenRanks(const StageProblem &problem, const Ranges &ranges,
               std::vector<int> &begins, int calls) {
  const int stages = static_cast<int>(begins.size());
  auto isCut = [&](const std::vector<int> &cut) {
    for (int stage = 0; stage < stages; ++stage) {
      const int end = stage + 1 < stages ? cut[stage + 1] : calls;
      if (cut[stage] >= end || !ranges.fits(stage, cut[stage], end))
        return false;
    }
    return true;
  };
  Pace best = paceOf(problem, ranges, begins, calls);
  for (bool moved = true; moved;) {
    moved = false;
    const std::vector<int> from = begins;
    for (int first = 1; first < stages; ++first)
      for (int last = first; last < stages; ++last)
        for (int by : {-1, 1}) {
          std::vector<int> cut = from;
          for (int stage = first; stage <= last; ++stage)
            cut[stage] += by;
          if (!isCut(cut))
            continue;
          if (const auto pace = paceOf(problem, ranges, cut, calls);
              isLess(pace, best)) {
            best = pace;
            begins = std::move(cut);
            moved = true;
          }
        }
  }
  return best;
}

std::string stagesOf(size_t n) {
  return std::to_string(n) + (n == 1 ? " stage" : " stages");
}

/// Why no cut keeps each stage within its bytes.
std::string whyNone(const StageProblem &problem, const Ranges &ranges) {
  // A call that no stage has room for says most.
  for (size_t call = 0; call < problem.calls.size(); ++call) {
    const int at = static_cast<int>(call);
    int64_t lacks = std::numeric_limits<int64_t>::max();
    for (size_t stage = 0; stage < problem.stages.size(); ++stage)
      lacks =
          std::min(lacks, ranges.bytesOf(static_cast<int>(stage), at, at + 1) -
                              problem.stages[stage].bytes);
    if (lacks > 0)
      return "'" + problem.calls[call].name + "' alone is " +
             std::to_string(lacks) + " bytes above what any stage has";
  }
  return "no cut into " + stagesOf(problem.stages.size()) +
         " keeps each within its bytes";
}

} // namespace

StageCut cutStages(const StageProblem &problem) {
  StageCut cut;
  const int calls = static_cast<int>(problem.calls.size());
  const Ranges ranges(problem);
  if (!problem.begins.empty()) {
    cut.begins = problem.begins;
    // What the user wrote is not summed up before it is a cut.
    if (std::is_sorted(cut.begins.begin(), cut.begins.end()) &&
        cut.begins.front() >= 0 && cut.begins.back() <= calls)
      cut.seconds = slowest(ranges, cut.begins, calls);
    cut.problem = verify(problem, cut);
    return cut;
  }
  if (problem.stages.empty() || problem.stages.size() > problem.calls.size()) {
    cut.problem = std::to_string(calls) + " calls make at most " +
                  stagesOf(problem.calls.size()) + ", this is " +
                  std::to_string(problem.stages.size());
    return cut;
  }
  cut.begins = cheapest(problem, ranges, infinite,
                        [](double before, double seconds, double /*bytes*/) {
                          return std::max(before, seconds);
                        });
  if (cut.begins.empty()) {
    cut.problem = whyNone(problem, ranges);
    return cut;
  }
  cut.seconds = slowest(ranges, cut.begins, calls);
  // The same pace, stages most alike.
  cut.begins = cheapest(problem, ranges, cut.seconds,
                        [](double before, double seconds, double /*bytes*/) {
                          return before + seconds * seconds;
                        });
  if (!problem.ranks.empty()) {
    Pace pace = evenRanks(problem, ranges, cut.begins, calls);
    // Ranks that do not fit may from where all hold alike.
    if (pace.front() > 0) {
      std::vector<int> even =
          cheapest(problem, ranges, infinite,
                   [](double before, double /*seconds*/, double bytes) {
                     return before + bytes * bytes;
                   });
      if (const Pace other = evenRanks(problem, ranges, even, calls);
          isLess(other, pace)) {
        pace = other;
        cut.begins = std::move(even);
      }
    }
    if (pace.front() > 0)
      cut.problem = whyNone(problem, ranges);
    cut.seconds = slowest(ranges, cut.begins, calls);
  }
  return cut;
}

std::string verify(const StageProblem &problem, const StageCut &cut) {
  const int calls = static_cast<int>(problem.calls.size());
  if (cut.begins.size() != problem.stages.size())
    return "expected " + stagesOf(problem.stages.size()) + ", got " +
           std::to_string(cut.begins.size());
  const Ranges ranges(problem);
  for (size_t stage = 0; stage < cut.begins.size(); ++stage) {
    const int begin = cut.begins[stage];
    const int end =
        stage + 1 < cut.begins.size() ? cut.begins[stage + 1] : calls;
    const std::string name = "stage " + std::to_string(stage);
    if (stage == 0 && begin != 0)
      return name + " begins with call " + std::to_string(begin) +
             ", expected 0";
    if (begin < 0 || begin >= calls || end > calls)
      return name + " begins with call " + std::to_string(begin) +
             ", expected one below " + std::to_string(calls);
    if (end <= begin)
      return name + " has no call: the next begins with call " +
             std::to_string(end) + ", expected one above " +
             std::to_string(begin);
    const int at = static_cast<int>(stage);
    if (!ranges.fits(at, begin, end))
      return name + " ('" + problem.calls[begin].name + "' to '" +
             problem.calls[end - 1].name + "') holds " +
             std::to_string(ranges.bytesOf(at, begin, end)) +
             " bytes, it has " + std::to_string(problem.stages[stage].bytes);
  }
  if (!problem.ranks.empty() && excessOf(problem, ranges, cut.begins) > 0)
    for (size_t stage = 0; stage < cut.begins.size(); ++stage)
      if (const int64_t bytes =
              rankBytes(problem, ranges, cut.begins, problem.ranks[stage]);
          bytes > problem.stages[stage].bytes)
        return "rank " + std::to_string(problem.ranks[stage]) + " holds " +
               std::to_string(bytes) + " bytes, it has " +
               std::to_string(problem.stages[stage].bytes);
  if (cut.seconds != slowest(ranges, cut.begins, calls))
    return "the slowest stage takes " +
           std::to_string(slowest(ranges, cut.begins, calls)) + " s, not " +
           std::to_string(cut.seconds);
  return "";
}

} // namespace accel::pipeline
