//===- SinkAwaits.cpp - Awaiting reductions later ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Prefetch/Overlap.h"

#include <deque>

namespace accel::schedule {
namespace {

using plan::Role;
using plan::Step;
using plan::StepKind;

bool isReduction(StepKind kind) {
  return kind == StepKind::ReduceScatter || kind == StepKind::AllReduce;
}

/// Rebuilds the step list, holding back what follows a reduction's start.
class Sinker {
public:
  explicit Sinker(plan::Program &program) : steps(program.steps) {}

  void run() {
    for (size_t s = 0; s < steps.size();) {
      Step &step = steps[s];
      bool receive = step.kind == StepKind::Alloc && step.role == Role::Receive;
      if (receive || (isReduction(step.kind) && !startedWithReceive))
        flushEach();
      startedWithReceive = receive;
      if (step.kind == StepKind::GradNorm || step.kind == StepKind::Optimizer)
        flushAll();
      if (isReduction(step.kind)) {
        startedWithReceive = false;
        s = hold(s);
        continue;
      }
      // Between Alloc Receive and the start stands only the shard gradient.
      if (receive && s + 1 < steps.size() &&
          steps[s + 1].kind == StepKind::Alloc &&
          steps[s + 1].role == Role::ShardGradient) {
        out.push_back(std::move(steps[s++]));
        startedWithReceive = true;
        out.push_back(std::move(steps[s++]));
        continue;
      }
      out.push_back(std::move(steps[s++]));
    }
    flushAll();
    steps = std::move(out);
  }

private:
  /// Emits the start at `s` and holds back its await and what the unit does
  /// next; returns the position after them.
  size_t hold(size_t s) {
    int unit = steps[s].unit;
    out.push_back(std::move(steps[s++]));
    std::vector<Step> tail;
    while (
        s < steps.size() && steps[s].unit == unit &&
        steps[s].kind != StepKind::Call &&
        !(steps[s].kind == StepKind::Alloc) &&
        !(steps[s].role == Role::Gathered && steps[s].kind != StepKind::Await))
      tail.push_back(std::move(steps[s++]));
    held.push_back(std::move(tail));
    return s;
  }

  /// Emits the oldest held tail; a reduction inside it is held again.
  void flushOne() {
    if (held.empty())
      return;
    std::vector<Step> tail = std::move(held.front());
    held.pop_front();
    for (size_t i = 0; i < tail.size(); ++i) {
      bool start = isReduction(tail[i].kind);
      out.push_back(std::move(tail[i]));
      if (start) {
        held.emplace_back(std::make_move_iterator(tail.begin() + i + 1),
                          std::make_move_iterator(tail.end()));
        return;
      }
    }
  }
  /// Once each: of a hybrid mesh, the reduction across replicas of one unit
  /// ends, and that of the next begins.
  void flushEach() {
    for (size_t n = held.size(); n > 0; --n)
      flushOne();
  }
  void flushAll() {
    while (!held.empty())
      flushOne();
  }

  std::vector<Step> &steps;
  std::vector<Step> out;
  std::deque<std::vector<Step>> held;
  bool startedWithReceive = false;
};

} // namespace

void sinkAwaits(plan::Program &program) { Sinker(program).run(); }

} // namespace accel::schedule
