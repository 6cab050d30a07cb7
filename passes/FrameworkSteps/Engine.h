//===- Engine.h - Streams, links and bytes of a step ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What executor models issue their actions to, in the order in which the
// framework's CPU thread issues them. Memory is counted in that order, as the
// caching allocator does; time is simulated over streams, the wires of the
// communicators (which carry one collective at a time) and events. Seconds are
// integer picoseconds, so that a repeated part of a step that has settled can
// be skipped with the very result of running it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_ENGINE_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_ENGINE_H

#include "passes/FrameworkSteps/Recorder.h"
#include "passes/FrameworkSteps/StepEvaluator.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace accel {

using Picoseconds = int64_t;
/// Rounded; what would not fit a step of 100 days is cut there.
Picoseconds toPicoseconds(double seconds);

/// The drive is traced alone: what it does last is part of no step.
enum class Lane {
  Compute,
  CopyIn,
  Gather,
  Reduce,
  AllReduce,
  HostIn,
  HostOut,
  Drive
};
constexpr int numLanes = 7; // with a clock
/// A communicator: its collectives run one after the other.
enum class Wire { Shard, Replicate };
constexpr int numWires = 2;
/// Streams whose freed memory is reused by the same stream alone.
/// Graphs: the private pool of CUDA graphs.
enum class Pool { Compute, Gather, Reduce, AllReduce, Graphs };
constexpr int numPools = 5;
/// What the compute stream waits for.
enum class Cause {
  Gather,
  Reduce,
  AllReduce,
  HostIn,
  HostOut,
  HostUpdate,
  Overlap,
  Exchange // inside of functions
};
constexpr int numCauses = 8;
/// What Exchange is told as: the axes whose ranks exchange.
std::string exchangesOf(const Candidate &candidate);

/// Where a step is: what the peak and exposed seconds are told by.
struct Place {
  int call = -1; // StepModel::calls
  enum class Part {
    Start,
    Forward,
    Reference, // a forward of frozen weights, for the loss
    Backward,
    Reduce,
    Update
  } part = Part::Start;
};

/// What a step does and holds, one thing after the other, for people to look
/// at (StepTrace.h).
struct EngineTrace {
  struct Slice {
    Lane lane = Lane::Compute;
    Picoseconds begin = 0, end = 0;
    bool collective = false;
    int64_t bytes = 0;          // of a collective
    std::optional<Cause> waits; // nothing is computed
    Place place;
    std::string what;    // beside the place
    bool before = false; // of the step before
  };
  struct Change {
    Picoseconds at = 0; // of the compute stream
    Holding holding{};
    int64_t bytes = 0; // negative: freed
  };
  std::vector<Slice> slices;
  std::vector<Change> changes;
};

class Engine {
public:
  /// Forgets everything; `folding` false runs all repetitions.
  void reset(bool folding);

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// `parts`: the tensors that the bytes are, where that is recorded.
  void alloc(Holding holding, int64_t bytes, Pool pool = Pool::Compute,
             Recorder::Parts parts = nullptr) {
    if (recorder)
      recorder->allocate(holding, bytes, pool, parts);
    now.level[static_cast<int>(holding)] += bytes;
    now.pool[static_cast<int>(pool)] += bytes;
    now.total += bytes;
    if (trace)
      trace->changes.push_back({now.lane[0], holding, bytes});
    note(0, holding, pool);
  }
  void free(Holding holding, int64_t bytes, Pool pool = Pool::Compute) {
    if (recorder)
      recorder->free(holding, bytes, pool);
    uncount(holding, bytes, pool);
  }
  /// Freed, but the pool cannot give it away yet (record_stream).
  void deferFree(Holding holding, int64_t bytes, Pool pool = Pool::Compute) {
    if (recorder)
      recorder->deferFree(holding, bytes, pool);
    uncount(holding, bytes, pool);
  }
  void uncount(Holding holding, int64_t bytes, Pool pool) {
    now.level[static_cast<int>(holding)] -= bytes;
    now.pool[static_cast<int>(pool)] -= bytes;
    now.total -= bytes;
    if (trace)
      trace->changes.push_back({now.lane[0], holding, -bytes});
  }
  /// `bytes` more than now, of `parts`, are held for a moment.
  void transient(Holding holding, int64_t bytes, Pool pool = Pool::Compute,
                 Recorder::Parts parts = nullptr) {
    if (recorder) {
      recorder->allocate(holding, bytes, pool, parts);
      recorder->free(holding, bytes, pool);
    }
    if (trace && bytes) {
      const std::vector<int64_t> whole = {bytes};
      for (int sign : {1, -1})
        for (int64_t part : parts ? *parts : whole)
          trace->changes.push_back({now.lane[0], holding, sign * part});
    }
    note(bytes, holding, pool);
  }
  /// The pool cannot give back `bytes` yet that are no longer counted
  /// (record_stream).
  void retainUntilEvent(Pool pool, int64_t bytes) {
    const int p = static_cast<int>(pool);
    window.pool[p] = std::max(window.pool[p], now.pool[p] + bytes);
  }
  int64_t total() const { return now.total; }
  const std::array<int64_t, numHoldings> &levels() const { return now.level; }

  //===--------------------------------------------------------------------===//
  // Time
  //===--------------------------------------------------------------------===//

  /// The step begins `after` the first of what other streams do for it, beside
  /// the end of the step before.
  void beginLater(Picoseconds after) {
    if (trace && after > 0)
      trace->slices.push_back({Lane::Compute, 0, after, false, 0, std::nullopt,
                               now.place, "updates of the step before", true});
    began = now.lane[0] = after;
  }
  Picoseconds clock(Lane lane) const {
    return now.lane[static_cast<int>(lane)];
  }
  void compute(Picoseconds duration) {
    slice(Lane::Compute, now.lane[0], duration);
    now.lane[0] += duration;
    now.computed += duration;
  }
  /// A function, which waits for `exchange` of its duration.
  void call(Picoseconds duration, Picoseconds exchange) {
    compute(duration - exchange);
    overhead(exchange, Cause::Exchange);
  }
  /// Work on a stream, not before `after`; returns its end.
  Picoseconds run(Lane lane, Picoseconds duration, Picoseconds after) {
    Picoseconds &own = now.lane[static_cast<int>(lane)];
    own = std::max(own, after) + duration;
    slice(lane, own - duration, duration);
    return own;
  }
  /// A collective of `bytes`: it waits for its stream, the wire and `after`.
  /// The part that computation cannot hide is taken from the compute stream.
  Picoseconds transfer(Lane lane, Wire wire, Picoseconds duration,
                       Picoseconds after, double bytes) {
    Picoseconds &own = now.lane[static_cast<int>(lane)];
    Picoseconds &line = now.wire[static_cast<int>(wire)];
    own = std::max({own, line, after}) + duration;
    line = own;
    if (trace && duration > 0)
      trace->slices.push_back({lane, own - duration, own, true,
                               static_cast<int64_t>(bytes), std::nullopt,
                               now.place, ""});
    const auto taken =
        static_cast<Picoseconds>(static_cast<double>(duration) * overlapTax);
    slice(Lane::Compute, now.lane[0], taken, Cause::Overlap);
    now.lane[0] += taken;
    expose(Cause::Overlap, taken);
    return own;
  }
  /// The compute stream waits until `until`.
  void wait(Picoseconds until, Cause cause) {
    if (until <= now.lane[0])
      return;
    slice(Lane::Compute, now.lane[0], until - now.lane[0], cause);
    expose(cause, until - now.lane[0]);
    now.lane[0] = until;
  }
  /// What the drive did.
  void transferred(Picoseconds begin, Picoseconds end, int64_t bytes,
                   std::string what) {
    if (trace)
      trace->slices.push_back({Lane::Drive, begin, end, false, bytes,
                               std::nullopt, now.place, std::move(what)});
  }
  /// Work on the compute stream that is not the model's (copies of a
  /// collective, offloading): exposed.
  void overhead(Picoseconds duration, Cause cause) {
    slice(Lane::Compute, now.lane[0], duration, cause);
    now.lane[0] += duration;
    expose(cause, duration);
  }

  /// Events that outlive an action, kept here so that skipping moves them.
  Picoseconds &event(int index) { return now.events[index]; }
  static constexpr int numEvents = 8;
  /// Events that are awaited in the order in which they were made.
  void push(Picoseconds time) { now.queue.push_back(time); }
  Picoseconds pop() {
    const Picoseconds time = now.queue.front();
    now.queue.erase(now.queue.begin());
    return time;
  }
  bool hasPending() const { return !now.queue.empty(); }
  size_t pending() const { return now.queue.size(); }

  //===--------------------------------------------------------------------===//
  // Repetition
  //===--------------------------------------------------------------------===//

  /// Runs `body(i)` for i in [0, count), or until two iterations in a row
  /// change nothing but what grows by the same amounts: then the rest is added
  /// at once. `body` must do the same for every i but for the places it names.
  /// Where exposed seconds are kept by place, only what always runs at the same
  /// places (`samePlaces`: micro-batches) is added at once.
  template <typename Body>
  void repeat(int64_t count, Body body, bool samePlaces = false) {
    if (!(folding || (detail && samePlaces)) || count < 3) {
      for (int64_t i = 0; i < count; ++i)
        body(i);
      return;
    }
    const Window outer = window;
    Window all = outer;
    State before;
    std::map<ExposedAt, Picoseconds> exposedBefore;
    std::array<int64_t, numHoldings + numPools> growth{};
    int lastPeakCall = -1;
    for (int64_t i = 0; i < count; ++i) {
      before = now;
      exposedBefore = exposedAt;
      window = Window();
      window.start(now);
      body(i);
      const auto grown = difference(before);
      const bool settled = i > 0 && grown == growth && sameShape(before);
      const int stride = window.peak.place.call - lastPeakCall;
      if (settled) {
        merge(all, window);
        skip(before, count - 1 - i, stride);
        for (auto &[at, time] : exposedAt)
          time += (time - exposedBefore[at]) * (count - 1 - i);
        merge(all, window);
        break;
      }
      growth = grown;
      lastPeakCall = window.peak.place.call;
      merge(all, window);
    }
    window = all;
  }

  void at(int call, Place::Part part) { now.place = {call, part}; }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  struct Peak {
    int64_t total = -1;
    std::array<int64_t, numHoldings> level{};
    Place place;
  };
  const Peak &peak() const { return window.peak; }
  /// What follows has a peak of its own.
  void restartPeak() {
    window = Window();
    window.start(now);
  }
  int64_t poolPeak(Pool pool) const {
    return window.pool[static_cast<int>(pool)];
  }
  Picoseconds computed() const { return now.computed; }
  Picoseconds exposed(Cause cause) const {
    return now.exposed[static_cast<int>(cause)];
  }
  /// From the step's begin until everything is done.
  Picoseconds duration() const {
    return *std::max_element(now.lane.begin(), now.lane.end()) - began;
  }

  /// Writes down each tensor; null: nobody does.
  Recorder *recorder = nullptr;
  /// Writes down what is done; null: nobody does.
  EngineTrace *trace = nullptr;
  /// The part of a collective that computation cannot hide.
  double overlapTax = 0;
  /// Seconds by cause and call are kept too.
  bool detail = false;
  struct ExposedAt {
    Cause cause;
    int call;
    auto operator<=>(const ExposedAt &) const = default;
  };
  std::map<ExposedAt, Picoseconds> exposedAt;

private:
  struct State {
    std::array<int64_t, numHoldings> level{};
    std::array<int64_t, numPools> pool{};
    int64_t total = 0;
    std::array<Picoseconds, numLanes> lane{};
    std::array<Picoseconds, numWires> wire{};
    std::array<Picoseconds, numEvents> events{};
    std::vector<Picoseconds> queue;
    Picoseconds computed = 0;
    std::array<Picoseconds, numCauses> exposed{};
    Place place;
  };
  /// Highest levels since some moment.
  struct Window {
    Peak peak;
    std::array<int64_t, numPools> pool{};
    void start(const State &state) { pool = state.pool; }
  };

  void note(int64_t more, Holding holding, Pool pool) {
    const int p = static_cast<int>(pool);
    window.pool[p] = std::max(window.pool[p], now.pool[p] + more);
    if (now.total + more <= window.peak.total)
      return;
    window.peak.total = now.total + more;
    window.peak.level = now.level;
    window.peak.level[static_cast<int>(holding)] += more;
    window.peak.place = now.place;
  }
  void slice(Lane lane, Picoseconds begin, Picoseconds duration,
             std::optional<Cause> waits = std::nullopt) {
    if (trace && duration > 0)
      trace->slices.push_back(
          {lane, begin, begin + duration, false, 0, waits, now.place, ""});
  }
  void expose(Cause cause, Picoseconds time) {
    now.exposed[static_cast<int>(cause)] += time;
    if (detail && time > 0)
      exposedAt[{cause, now.place.call}] += time;
  }
  std::array<int64_t, numHoldings + numPools>
  difference(const State &before) const;
  bool sameShape(const State &before) const;
  void skip(const State &before, int64_t times, int stride);
  static void merge(Window &into, const Window &from);

  bool folding = true;
  Picoseconds began = 0;
  State now;
  Window window;
};

/// While one lives, sums of bytes are counted and not recorded.
class RecordingPause {
public:
  explicit RecordingPause(Engine &engine)
      : recorder(engine.recorder), before(recorder && recorder->silent) {
    if (recorder)
      recorder->silent = true;
  }
  ~RecordingPause() {
    if (recorder)
      recorder->silent = before;
  }
  RecordingPause(const RecordingPause &) = delete;
  RecordingPause &operator=(const RecordingPause &) = delete;

private:
  Recorder *recorder;
  bool before;
};

/// What the caching allocator holds at the end (Target's overhead and
/// granularity).
int64_t reservedBytes(const Engine &engine, const Target &target);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_ENGINE_H
