//===- CheckProblem.cpp - Numbers that make no schedule -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Schedule.h"

#include <algorithm>

namespace accel::pipeline {
namespace {

/// Actions of one forward each; what is drawn and searched stays far below.
constexpr int64_t mostForwards = 1 << 20;

std::string counted(int n, const std::string &noun) {
  return std::to_string(n) + " " + noun +
         (n == 1                ? ""
          : noun.ends_with("h") ? "es"
                                : "s");
}

/// "4", "4 or 6": multiples of `of` beside `n`.
std::string multiplesBeside(int n, int of) {
  const int below = n / of * of;
  return (below > 0 ? std::to_string(below) + " or " : "") +
         std::to_string(below + of);
}

/// Interleaved schedules go in rounds of as many micro-batches as there are
/// ranks, or slightly more, all of one size.
bool fitsRounds(int microBatches, int ranks) {
  return microBatches % std::max(1, microBatches / ranks) == 0;
}

std::string fittingMicroBatches(const Problem &problem) {
  int below = problem.microBatches, above = problem.microBatches;
  while (!fitsRounds(below, problem.ranks()))
    --below;
  while (!fitsRounds(above, problem.ranks()))
    ++above;
  return std::to_string(below) + " or " + std::to_string(above);
}

} // namespace

const std::vector<KindDescription> &kinds() {
  static const std::vector<KindDescription> all = {
      {Kind::GPipe, "gpipe", 1},
      {Kind::OneFOneB, "1f1b", 1},
      {Kind::Interleaved, "interleaved-1f1b", 2},
      {Kind::ZbH1, "zb-h1", 1},
      {Kind::ZbV, "zb-v", 2}};
  return all;
}

const KindDescription &describe(Kind kind) {
  return kinds()[static_cast<size_t>(kind)];
}

const KindDescription *findKind(const std::string &name) {
  for (const KindDescription &kind : kinds())
    if (kind.name == name)
      return &kind;
  return nullptr;
}

std::string check(const Problem &problem) {
  const std::string name = describe(problem.kind).name;
  if (problem.stages < 1 || problem.chunks < 1 || problem.microBatches < 1)
    return "stages, chunks and micro-batches are positive integers";
  switch (problem.kind) {
  case Kind::GPipe:
  case Kind::OneFOneB:
    if (problem.chunks != 1)
      return name + " has one stage on each rank, this is " +
             std::to_string(problem.chunks) +
             "; interleaved-1f1b takes several";
    break;
  case Kind::Interleaved:
    if (problem.chunks == 1)
      return name + " has at least 2 stages on each rank, this is 1; 1f1b "
                    "takes one";
    break;
  case Kind::ZbV:
    if (problem.chunks != 2)
      return name + " has 2 stages on each rank, this is " +
             std::to_string(problem.chunks);
    break;
  case Kind::ZbH1:
    break;
  }
  if (problem.stages % problem.chunks != 0)
    return name + " with " + counted(problem.chunks, "stage") +
           " on each rank takes a multiple of " +
           std::to_string(problem.chunks) + " stages, this is " +
           std::to_string(problem.stages) + "; " +
           multiplesBeside(problem.stages, problem.chunks) + " fit";
  if (problem.stages > mostForwards)
    return "at most " + std::to_string(mostForwards) + " stages fit, this is " +
           std::to_string(problem.stages);
  if (int64_t(problem.stages) * problem.microBatches > mostForwards)
    return counted(problem.stages, "stage") + " times " +
           counted(problem.microBatches, "micro-batch") + " are above " +
           std::to_string(mostForwards) + " forwards; at most " +
           std::to_string(mostForwards / problem.stages) +
           (mostForwards / problem.stages == 1 ? " fits" : " fit");
  if ((problem.kind == Kind::Interleaved || problem.kind == Kind::ZbH1) &&
      problem.chunks > 1 && !fitsRounds(problem.microBatches, problem.ranks()))
    return name + " deals micro-batches in " +
           counted(problem.microBatches / problem.ranks(), "round") +
           " of one size on " + counted(problem.ranks(), "rank") + ", and " +
           std::to_string(problem.microBatches) + " do not divide; " +
           fittingMicroBatches(problem) + " fit";
  return "";
}

} // namespace accel::pipeline
