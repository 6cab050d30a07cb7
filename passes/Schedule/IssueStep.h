//===- IssueStep.h - The order of accel-run's step --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One procedure issues what accel-run does around the calls of a micro-batch:
// gathers, awaits, reductions, updates and frees. It has two receivers: the
// engine, which evaluates a candidate in microseconds
// (passes/FrameworkSteps/AccelRunStep.cpp), and the writer of schedule.programs
// (WritePrograms.cpp). How far units are gathered ahead and whether reductions
// overlap are its parameters.
//
// The engine skips repetitions of equal blocks, so what is remembered from one
// call to the next is the same after each of them (how many gathers and
// reductions are in flight) or follows from the call at hand.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_ISSUESTEP_H
#define ACCEL_PASSES_SCHEDULE_ISSUESTEP_H

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace accel::schedule {

/// What the calls of a micro-batch read and write, unit by unit. Calls are
/// numbered in the order of the forward.
class StepUses {
public:
  struct Unit {
    bool gathered = true; // read from a gathered buffer, not from the shard
    bool whole = false;   // which is there between steps too
    bool reshardAfterForward = true;
    bool writesShard = false; // gradients go into the shard's directly
    bool receives = false;    // the reduce-scatter needs a buffer to receive
    bool replicated = false;  // gradient shards are all-reduced
    bool tied = false;        // with those of other stages too
    bool casts = false;       // in another dtype, in a buffer to receive
    /// Of several chunks of the rank that write gradients of it, whose programs
    /// have one gradient between them: this is the one of several, another
    /// one's backward is the first of a step, another one's program ends it.
    bool shared = false, begun = false, endedElsewhere = false;
    /// Calls that read it, and that write gradients of it, in the order in
    /// which they run; the backward's first is the one with the highest number.
    int firstForward = -1, lastForward = -1;
    int firstBackward = -1, lastBackward = -1;
    int firstGradient = -1, lastGradient = -1;
    /// Positions in `gathers`.
    int forwardGather = -1, backwardGather = -1;

    /// Each micro-batch gathers it and frees it.
    bool comesAndGoes() const { return gathered && !whole; }
    /// Its gradient is whole behind all backwards of the rank alone.
    bool endsLate() const { return tied || shared; }
  };
  struct Gather {
    int unit = 0, call = 0; // the call that needs it
    bool backward = false;  // its backward does
    /// As far ahead as in the backward. Where a backward computes the loss, its
    /// gathers follow those of the forward.
    bool afterLoss = false;
  };

  explicit StepUses(int numUnits) : units(numUnits) {}

  /// Each list is ascending and names a unit once. `backward` false: nothing is
  /// to be differentiated; `forward` false: its backward does everything.
  template <typename List>
  void addCall(const List &reads, const List &backwardReads,
               const List &gradients, bool forward, bool backward) {
    Call call;
    call.begin = static_cast<int>(lists.size());
    if (forward)
      lists.insert(lists.end(), reads.begin(), reads.end());
    call.backward = static_cast<int>(lists.size());
    if (backward)
      lists.insert(lists.end(), backwardReads.begin(), backwardReads.end());
    call.gradients = static_cast<int>(lists.size());
    if (backward)
      lists.insert(lists.end(), gradients.begin(), gradients.end());
    call.end = static_cast<int>(lists.size());
    call.hasForward = forward;
    if (backward)
      lastWithBackward = static_cast<int>(calls.size());
    calls.push_back(call);
  }
  /// Fills what follows from the calls and the units' flags.
  void finish();

  int numCalls() const { return static_cast<int>(calls.size()); }
  bool hasForward(int call) const { return calls[call].hasForward; }
  /// The call whose backward is the first; -1 without any.
  int firstBackwardCall() const { return lastWithBackward; }
  std::span<const int> forward(int call) const {
    return list(calls[call].begin, calls[call].backward);
  }
  std::span<const int> backward(int call) const {
    return list(calls[call].backward, calls[call].gradients);
  }
  std::span<const int> gradients(int call) const {
    return list(calls[call].gradients, calls[call].end);
  }

  std::vector<Unit> units;
  /// In the order in which they are needed, and started.
  std::vector<Gather> gathers;
  /// Position in `gathers` of the first that another backward than the first
  /// one, which is the loss's, needs.
  int afterFirstBackward = 0;
  /// Units in the order in which a forward reads them, then the others. Behind
  /// all backwards they are updated in this order, so that the next step's
  /// first gathers begin beside the updates of what it reads later.
  std::vector<int> asRead;
  std::vector<int> lastToFirst;

private:
  struct Call {
    int begin = 0, backward = 0, gradients = 0, end = 0; // of `lists`
    bool hasForward = true;
  };
  std::span<const int> list(int begin, int end) const {
    return {lists.data() + begin, lists.data() + end};
  }
  std::vector<Call> calls;
  std::vector<int> lists;
  int lastWithBackward = -1;
};

struct IssueOptions {
  int64_t forwardPrefetch = 1, backwardPrefetch = 1; // units gathered ahead
  /// Gathers of a micro-batch's backward, from the first behind the loss's,
  /// that start where they are needed and not ahead.
  int64_t holdGathers = 0;
  /// Reductions of a micro-batch, from the first, that end where they begin;
  /// of the others one is in flight beside the next backward.
  int64_t awaitReductions = 0;
  bool keepUnsharded = false; // gradients stay unsharded between micro-batches
  bool updateInline = false;  // a unit is updated once it is reduced
  bool clip = false;          // updates wait for the norm of all gradients
  bool pauses = false; // other micro-batches run between forward and backward
  /// Gradients of parameters are made behind all others of the micro-batch.
  bool splitBackward = false;
  /// Gradient shards are copied to the host once they are reduced, and units
  /// updated there after everything that the device is given.
  bool hostUpdates = false;
};

/// Issues one micro-batch after the other. A Receiver has, for a unit `u` and
/// the call that it is for (-1: none):
///   startGather, awaitGather, freeGathered: its parameters;
///   startRegather, awaitGather: of a unit that is whole, after its update;
///   allocateGradient: for the first gradient that a call writes;
///   allocateReceive, allocateShardGradient, startReduce(u, accumulate, call);
///   awaitReduce: and frees what only the reduction needed;
///   startAllReduce, awaitAllReduce: of the gradient shard;
///   startOffload, awaitOffload: its copy to the host, which frees it;
///   update: and frees the gradient shard;
///   norm(): of all gradient shards.
template <typename Receiver> class StepIssuer {
public:
  StepIssuer(const StepUses &uses, const IssueOptions &options, Receiver &to)
      : uses(uses), options(options), to(to), kept(uses.units.size()) {}

  void begin(bool firstMicroBatch, bool lastMicroBatch) {
    first = firstMicroBatch;
    last = lastMicroBatch;
    inBackward = false;
    current = -1;
    pending = 0;
    awaited = 0;
    std::fill(kept.begin(), kept.end(), false);
  }

  void beforeForward(int call) {
    for (int u : uses.forward(call))
      if (unit(u).firstForward == call && unit(u).forwardGather >= 0)
        need(unit(u).forwardGather, call);
  }

  void afterForward(int call) {
    for (int u : uses.forward(call)) {
      if (unit(u).lastForward != call || !unit(u).comesAndGoes() ||
          !unit(u).reshardAfterForward)
        continue;
      if (staysGathered(u, call))
        kept[u] = true;
      else
        to.freeGathered(u, call);
      startAhead(call, u);
    }
  }

  void endForward() {
    inBackward = true;
    // What the backward does not read is not kept for it.
    for (size_t u = 0; u < uses.units.size(); ++u)
      if (const StepUses::Unit &at = uses.units[u];
          at.comesAndGoes() && !at.reshardAfterForward &&
          at.firstForward >= 0 && at.firstBackward < 0)
        to.freeGathered(static_cast<int>(u), -1);
  }

  void beforeBackward(int call) {
    for (int u : uses.backward(call))
      if (unit(u).firstBackward == call && unit(u).backwardGather >= 0)
        need(unit(u).backwardGather, call);
    if (!options.splitBackward)
      beforeWeights(call);
  }

  void afterBackward(int call) {
    for (int u : uses.backward(call))
      if (unit(u).lastBackward == call && unit(u).comesAndGoes())
        to.freeGathered(u, call);
    if (!options.splitBackward)
      afterWeights(call);
  }

  /// Of gradients of parameters, which beforeBackward and afterBackward are for
  /// too unless the backward is split.
  void beforeWeights(int call) {
    for (int u : uses.gradients(call))
      if (unit(u).firstGradient == call && !accumulates(u))
        to.allocateGradient(u, call);
  }

  void afterWeights(int call) {
    for (int u : uses.gradients(call))
      if (unit(u).lastGradient == call)
        reduce(u, call);
  }

  /// What is reduced within the stage, where its sums with others follow later.
  void endReductions() { flushAll(); }

  /// What other stages sum too comes last: they may wait for what this one has
  /// sent. Behind all backwards is what several chunks have added to as well.
  void endBackward() {
    flushAll();
    for (size_t u = 0; last && u < uses.units.size(); ++u)
      if (uses.units[u].endsLate() && trains(static_cast<int>(u)))
        endGradient(static_cast<int>(u));
    flushAll();
  }

  /// After the last micro-batch.
  void update() {
    if (options.updateInline)
      return;
    if (options.clip)
      to.norm();
    // The host gives the device nothing while it updates, and goes on in the
    // order in which gradients come.
    for (int u : options.hostUpdates ? uses.lastToFirst : uses.asRead)
      if (trains(u))
        updateUnit(u, -1);
    flushAll();
  }

  /// Gradients of an earlier micro-batch are there to be added to.
  bool accumulates(int u) const {
    return (!first || unit(u).begun) &&
           (options.keepUnsharded || unit(u).writesShard);
  }
  /// The program ends the unit's gradient and updates it.
  bool trains(int u) const {
    return unit(u).lastGradient >= 0 && !unit(u).endedElsewhere;
  }

private:
  const StepUses::Unit &unit(int u) const { return uses.units[u]; }

  //===--------------------------------------------------------------------===//
  // Gathers
  //===--------------------------------------------------------------------===//

  void start(int index) {
    const StepUses::Gather &gather = uses.gathers[index];
    if (gather.backward && updatedBefore(gather.unit))
      flushAll();
    if (!gather.backward || !kept[gather.unit])
      to.startGather(gather.unit, gather.call);
    ++pending;
  }

  /// The call needs this gather now.
  void need(int index, int call) {
    current = index - 1;
    if (pending == 0) {
      start(index);
      startAhead(call, -1);
    }
    --pending;
    const StepUses::Gather &gather = uses.gathers[index];
    if (!gather.backward || !kept[gather.unit])
      to.awaitGather(gather.unit, gather.call);
    current = index;
    startAhead(call, -1);
  }

  /// Starts what may start now that gather `current` has arrived. Of the units
  /// that the forward of `call` reads last, those up to `released` are free.
  void startAhead(int call, int released) {
    for (;;) {
      const int next = current + pending + 1;
      if (next >= static_cast<int>(uses.gathers.size()) ||
          !isNear(next, current) ||
          !mayStart(uses.gathers[next], call, released))
        return;
      start(next);
    }
  }

  /// The prefetch depth lets gather `index` start once `arrived` is there.
  bool isNear(int index, int arrived) const {
    if (isHeld(index))
      return false;
    const int64_t depth = uses.gathers[index].afterLoss
                              ? options.backwardPrefetch
                              : options.forwardPrefetch;
    return depth > 0 && std::max<int64_t>(0, index - depth) <= arrived;
  }

  bool isHeld(int index) const {
    const int64_t position = index - uses.afterFirstBackward;
    return position >= 0 && position < options.holdGathers;
  }

  /// A unit that the backward gathers anew must have been given up before, and
  /// updated where that comes first.
  bool mayStart(const StepUses::Gather &gather, int call, int released) const {
    if (!gather.backward)
      return true;
    if (options.pauses && !inBackward)
      return false;
    const StepUses::Unit &at = unit(gather.unit);
    if (updatedBefore(gather.unit))
      return inBackward && call < at.lastGradient;
    return inBackward || at.lastForward < call ||
           (at.lastForward == call && gather.unit <= released);
  }
  /// It is updated before the backward gathers it: other calls train it.
  bool updatedBefore(int u) const {
    return options.updateInline && last && !options.splitBackward &&
           unit(u).lastGradient > unit(u).firstBackward;
  }

  /// The unit, which `call` is the last of the forward to read, would be
  /// gathered anew before the next call, so that it is not freed.
  bool staysGathered(int u, int call) const {
    if (unit(u).backwardGather < 0 || options.backwardPrefetch == 0 ||
        options.pauses)
      return false;
    int next = call + 1, arrived = current;
    while (next < uses.numCalls() && !uses.hasForward(next))
      ++next;
    const bool forwardEnds = next >= uses.numCalls();
    if (!forwardEnds) {
      for (int v : uses.forward(next))
        if (unit(v).firstForward == next)
          arrived = std::max(arrived, unit(v).forwardGather);
    } else if (uses.firstBackwardCall() >= 0) {
      next = uses.firstBackwardCall();
      for (int v : uses.backward(next))
        if (unit(v).firstBackward == next)
          arrived = std::max(arrived, unit(v).backwardGather);
    }
    for (int i = current + pending + 1; i <= unit(u).backwardGather; ++i) {
      const StepUses::Gather &gather = uses.gathers[i];
      if (gather.backward && updatedBefore(gather.unit))
        return false;
      if (i <= arrived)
        continue;
      if (!isNear(i, arrived) || (gather.backward && !forwardEnds &&
                                  unit(gather.unit).lastForward > call))
        return false;
    }
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Reductions
  //===--------------------------------------------------------------------===//

  enum class Part { Reduce, AllReduce, Offload, Regather };
  struct Held {
    int unit, call;
    Part part;
  };

  void reduce(int u, int call) {
    if (options.keepUnsharded && (!last || unit(u).shared))
      return;
    if (!unit(u).writesShard) {
      const bool fresh = (first && !unit(u).begun) || options.keepUnsharded;
      if (unit(u).receives) {
        flushEach();
        to.allocateReceive(u, call);
      }
      if (fresh)
        to.allocateShardGradient(u, call);
      if (!unit(u).receives)
        flushEach();
      to.startReduce(u, !fresh, call);
      hold({u, call, Part::Reduce});
    } else if (unit(u).endsLate()) {
      return;
    } else if (last && unit(u).replicated) {
      flushEach();
      startAllReduce(u, call);
      hold({u, call, Part::AllReduce});
    } else if (last && options.hostUpdates) {
      flushEach();
      to.startOffload(u, call);
      hold({u, call, Part::Offload});
    } else if (last && options.updateInline) {
      flushAll();
      updateUnit(u, call);
    }
  }

  /// Of a unit whose gradient is whole late: what follows its last backward.
  void endGradient(int u) {
    if (options.keepUnsharded && unit(u).shared && !unit(u).writesShard) {
      if (unit(u).receives)
        to.allocateReceive(u, -1);
      to.allocateShardGradient(u, -1);
      to.startReduce(u, false, -1);
      to.awaitReduce(u, -1);
    }
    if (unit(u).replicated) {
      startAllReduce(u, -1);
      held.push_back({u, -1, Part::AllReduce});
    } else if (options.hostUpdates) {
      to.startOffload(u, -1);
      held.push_back({u, -1, Part::Offload});
    } else if (options.updateInline) {
      updateUnit(u, -1);
    }
  }

  /// What every rank holds of it follows the update. Where nothing is computed
  /// in between, one gather is in flight beside the next unit's update.
  void updateUnit(int u, int call) {
    to.update(u, call);
    if (!unit(u).whole)
      return;
    if (call < 0)
      flushAll();
    to.startRegather(u, call);
    held.push_back({u, call, Part::Regather});
  }

  void startAllReduce(int u, int call) {
    if (unit(u).casts)
      to.allocateReceive(u, call);
    to.startAllReduce(u, call);
  }

  void hold(Held reduction) {
    held.push_back(reduction);
    if (awaited < options.awaitReductions) {
      ++awaited;
      flushAll();
    }
  }

  /// Ends the oldest reduction; that of a hybrid mesh goes on across replicas,
  /// and the last one to the host where the update is.
  void flushOne() {
    const Held done = held.front();
    held.pop_front();
    if (done.part == Part::Offload)
      return to.awaitOffload(done.unit, done.call);
    if (done.part == Part::Regather)
      return to.awaitGather(done.unit, done.call);
    if (done.part == Part::AllReduce) {
      to.awaitAllReduce(done.unit, done.call);
    } else {
      to.awaitReduce(done.unit, done.call);
      if (unit(done.unit).endsLate())
        return;
      if (last && unit(done.unit).replicated) {
        startAllReduce(done.unit, done.call);
        held.push_back({done.unit, done.call, Part::AllReduce});
        return;
      }
    }
    if (last && options.hostUpdates) {
      to.startOffload(done.unit, done.call);
      held.push_back({done.unit, done.call, Part::Offload});
      return;
    }
    if (last && options.updateInline)
      updateUnit(done.unit, done.call);
  }
  /// One stage of each.
  void flushEach() {
    for (size_t n = held.size(); n > 0; --n)
      flushOne();
  }
  void flushAll() {
    while (!held.empty())
      flushOne();
  }

  const StepUses &uses;
  const IssueOptions options;
  Receiver &to;
  bool first = true, last = true, inBackward = false;
  int current = -1;       // the last gather that was awaited
  int pending = 0;        // gathers after it that are started
  int64_t awaited = 0;    // reductions of this micro-batch, where they began
  std::vector<bool> kept; // by unit: from the forward to the backward
  std::deque<Held> held;  // reductions in flight
};

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_ISSUESTEP_H
