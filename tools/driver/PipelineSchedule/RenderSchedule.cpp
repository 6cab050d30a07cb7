//===- RenderSchedule.cpp - A pipeline schedule to look at ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/PipelineSchedule/RenderSchedule.h"
#include "tools/driver/Text/Format.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace accel {

using namespace pipeline;
using Json = nlohmann::ordered_json;

namespace {

/// The letters of torch.distributed.pipelining.
char letterOf(Pass pass) {
  switch (pass) {
  case Pass::Forward:
    return 'F';
  case Pass::Backward:
    return 'B';
  case Pass::BackwardInput:
    return 'I';
  case Pass::BackwardWeight:
    return 'W';
  }
  return '?';
}

const char *colourOf(Pass pass) {
  switch (pass) {
  case Pass::Forward:
    return "\033[34m";
  case Pass::Backward:
  case Pass::BackwardInput:
    return "\033[32m";
  case Pass::BackwardWeight:
    return "\033[33m";
  }
  return "";
}

class Drawing {
public:
  Drawing(const SimulatedStep &what, const DrawOptions &options)
      : what(what), options(options) {}

  std::string text() {
    const size_t ranks = what.schedule.ranks.size();
    margin = int64_t(("rank " + std::to_string(ranks - 1) + "  ").size());
    if (!chooseScale())
      return "  the drawing needs more than " + std::to_string(options.width) +
             " columns: " + options.wider + "\n";
    std::string out;
    for (size_t rank = 0; rank < ranks; ++rank)
      out += padRight("rank " + std::to_string(rank), size_t(margin)) +
             row(rank) + "\n";
    return out + legend();
  }

private:
  /// Columns of a second, so that the shortest action holds its whole label, or
  /// else its letter.
  bool chooseScale() {
    double shortest = what.simulation.makespan;
    for (const auto &spans : what.simulation.ranks)
      for (const Span &span : spans)
        if (span.end > span.start)
          shortest = std::min(shortest, span.end - span.start);
    if (shortest <= 0)
      return false;
    size_t longest = 1;
    for (const auto &actions : what.schedule.ranks)
      for (const Action &action : actions)
        longest = std::max(longest, label(action, true).size());
    for (bool whole : {true, false}) {
      numbered = whole;
      // A column more keeps neighbours apart.
      scale = double((whole ? longest : 1) + 1) / shortest;
      if (std::ceil(what.simulation.makespan * scale) + double(margin) <=
          double(options.width))
        return true;
    }
    return false;
  }

  std::string label(const Action &action, bool whole) const {
    const std::string letter(1, letterOf(action.pass));
    if (!whole)
      return letter;
    return (what.problem.chunks > 1 ? std::to_string(action.stage) : "") +
           letter + std::to_string(action.microBatch);
  }

  int64_t column(double seconds) const { return std::llround(seconds * scale); }

  std::string row(size_t rank) const {
    std::string out;
    int64_t at = 0;
    const std::vector<Action> &actions = what.schedule.ranks[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const Span &span = what.simulation.ranks[rank][i];
      const int64_t begin = std::max(at, column(span.start));
      const int64_t end = column(span.end);
      out += std::string(size_t(begin - at), '.');
      at = std::max(begin, end);
      if (at == begin)
        continue; // takes no time
      std::string cell = label(actions[i], numbered);
      cell.resize(size_t(at - begin), '-');
      cell.back() = ' ';
      out +=
          options.colour ? colourOf(actions[i].pass) + cell + "\033[0m" : cell;
    }
    const int64_t all = column(what.simulation.makespan);
    return out + std::string(size_t(std::max<int64_t>(0, all - at)), '.');
  }

  std::string legend() const {
    bool split = false, whole = false;
    for (const auto &actions : what.schedule.ranks)
      for (const Action &action : actions) {
        split |= action.pass == Pass::BackwardInput;
        whole |= action.pass == Pass::Backward;
      }
    const std::string number = !numbered ? ""
                               : what.problem.chunks > 1
                                   ? ", stage before it and micro-batch behind"
                                   : ", micro-batch behind";
    return std::string("  F forward") + (whole ? ", B backward" : "") +
           (split ? ", I and W the backward's parts for inputs and for weights"
                  : "") +
           number + "; . bubble\n";
  }

  const SimulatedStep &what;
  const DrawOptions &options;
  int64_t margin = 0;
  double scale = 0;
  bool numbered = false;
};

std::string framesOf(const SimulatedStep &what, size_t rank) {
  std::string text;
  for (int stage = 0; stage < what.problem.stages; ++stage)
    if (what.problem.rankOf(stage) == int(rank))
      text += (text.empty() ? "" : " + ") +
              std::to_string(what.schedule.frames[size_t(stage)]);
  return text;
}

} // namespace

std::string renderSchedule(const SimulatedStep &what,
                           const DrawOptions &options) {
  const Problem &p = what.problem;
  const Simulation &s = what.simulation;
  std::string out =
      std::string(describe(p.kind).name) + " | " + std::to_string(p.ranks()) +
      " ranks, " + std::to_string(p.stages) + " stages | " +
      std::to_string(p.microBatches) + " micro-batches\n\n" +
      Drawing(what, options).text() + "\n  a step " +
      formatSeconds(s.makespan) + ", of which " +
      formatPercent(s.bubbleShare()) + " of all ranks' time is bubble\n\n" +
      "  rank      busy    bubble   in gaps   frames at once     bytes\n";
  for (size_t rank = 0; rank < s.totals.size(); ++rank) {
    const RankTotals &t = s.totals[rank];
    out += "  " + padLeft(std::to_string(rank), 4) + "  " +
           padLeft(formatSeconds(t.busy), 8) + "  " +
           padLeft(formatSeconds(t.bubble), 8) + "  " +
           padLeft(t.gaps > 0 ? formatSeconds(t.gaps) : "-", 8) + "  " +
           padLeft(framesOf(what, rank), 15) + "  " +
           padLeft(t.peakBytes ? formatBytes(t.peakBytes) : "-", 8) + "\n";
  }
  return out;
}

Json scheduleJson(const SimulatedStep &what) {
  const Problem &p = what.problem;
  Json json = {{"schedule", describe(p.kind).name},
               {"ranks", p.ranks()},
               {"stages", p.stages},
               {"chunks", p.chunks},
               {"micro_batches", p.microBatches},
               {"makespan_s", what.simulation.makespan},
               {"bubble_share", what.simulation.bubbleShare()},
               {"frames", what.schedule.frames},
               {"holds", what.holds},
               {"per_rank", Json::array()}};
  for (size_t rank = 0; rank < what.schedule.ranks.size(); ++rank) {
    const RankTotals &t = what.simulation.totals[rank];
    Json actions = Json::array();
    for (size_t i = 0; i < what.schedule.ranks[rank].size(); ++i) {
      const Action &action = what.schedule.ranks[rank][i];
      const Span &span = what.simulation.ranks[rank][i];
      actions.push_back({{"stage", action.stage},
                         {"micro_batch", action.microBatch},
                         {"pass", std::string(1, letterOf(action.pass))},
                         {"start_s", span.start},
                         {"end_s", span.end}});
    }
    json["per_rank"].push_back({{"rank", rank},
                                {"busy_s", t.busy},
                                {"bubble_s", t.bubble},
                                {"gap_s", t.gaps},
                                {"peak_bytes", t.peakBytes},
                                {"actions", std::move(actions)}});
  }
  return json;
}

} // namespace accel
