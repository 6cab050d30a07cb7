//===- Exchanges.h - What ranks exchange in a function ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Instructions of a function that are no operators of ATen: collectives over
// mesh axes inside of functions (tp, cp, ep), and what depends on where a rank
// stands. They are the operations of the compiler's sharding dialect
// (dialects/Sharding/CollectiveOps.td), by name: "sharding::all_reduce". Their
// arguments are the tensor (two of some), then numbers, then the axes as text.
//
// "sharding::all_reduce.start" does not wait: the result may be read once
// "sharding::await" has named it, and until then nothing that the exchange
// works on may end. What the exchange needs beside its value and its result are
// further results of the start.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_EXCHANGES_H
#define ACCEL_RUNTIME_PLAN_EXCHANGES_H

#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accel::plan {

enum class ExchangeKind {
  AllReduce,     // of all ranks' values the sum, or the largest
  AllGather,     // the whole of a dimension from the ranks' parts
  ReduceScatter, // a rank's part of the sum
  AllToAll,      // parts of one dimension for parts of another
  Permute,       // the value of the rank that stands `shift` before this one
  Slice,         // a rank's part of a dimension that it has whole
  FirstRank,     // the value on the first rank, zeros on the others
  ExpertEnds,    // where the rows of each of the rank's experts end
  Dispatch,      // each row to the rank that has its expert
  Combine,       // each row back to the rank that it came from
  Coordinate,    // 0-d: where the rank stands, in steps
  Await          // the end of an exchange that was started before
};
const char *toString(ExchangeKind kind);

struct Exchange {
  ExchangeKind kind = ExchangeKind::AllReduce;
  /// Of AllGather, ReduceScatter and Slice: the dimension, which is `pieces`
  /// pieces, of each of which a rank has its part; every second one of
  /// `mirrored` pieces is shared in the reverse order of the ranks. Of
  /// AllToAll: the dimension that is whole before and shared after it.
  int64_t dim = 0;
  int64_t pieces = 1;
  bool mirrored = false;
  int64_t concat = 0; // AllToAll: shared before and whole after it
  int64_t step = 1;   // Coordinate
  int64_t shift = 0;  // Permute: below the number of ranks
  bool max = false;   // AllReduce
  /// ExpertEnds: for as many there is a place. Dispatch and Combine: of the
  /// result.
  int64_t rows = 0;
  int value = -1; // slot; none of Coordinate
  /// Dispatch and Combine, a slot: each rank's ends of each expert's rows, i32
  /// [ranks, experts], as ExpertEnds has them for its value.
  int ends = -1;
  int result = -1; // slot; of Await that of the exchange which it ends
  std::vector<std::string> axes;
  bool started = false; // it is awaited later
  /// Slots of what a started exchange needs beside: those of `exchangeBuffers`.
  std::vector<int> buffers;

  /// Ranks send something to each other.
  bool communicates() const {
    return kind == ExchangeKind::AllReduce || kind == ExchangeKind::AllGather ||
           kind == ExchangeKind::ReduceScatter ||
           kind == ExchangeKind::AllToAll || kind == ExchangeKind::Permute ||
           movesRows();
  }
  /// Between ranks that read other samples and have other experts.
  bool movesRows() const {
    return kind == ExchangeKind::Dispatch || kind == ExchangeKind::Combine;
  }
};

/// What a rank has of `whole`'s dimension `dim` lies in so many blocks of
/// memory, as many of each rank's.
int64_t blocksOf(const std::vector<int64_t> &whole, int64_t dim,
                 int64_t pieces);
/// accel-run on CPUs gathers and scatters so few blocks straight from and into
/// the whole, by a message for each; more are copied to a buffer in which those
/// of a rank lie one behind the other. On GPUs all but one are.
constexpr int64_t mostMessages = 8;

/// Between ranks that exchange something, and nothing is asked of the host.
bool canStart(ExchangeKind kind);

/// What a started exchange needs beside its value, a tensor of `shape`, and its
/// result, in elements of the value's dtype, in the order in which they are
/// used: the value in order where it does not lie so in memory (`contiguous`
/// is false), what is sent, what arrives. `cpu`: by Gloo.
std::vector<int64_t> exchangeBuffers(const Exchange &exchange,
                                     const std::vector<int64_t> &shape,
                                     int64_t ranks, bool contiguous, bool cpu);

/// The instruction is one of these, by its name.
bool isExchange(const Instruction &instruction);

/// What the instruction exchanges; nothing where it has not the arguments of
/// its kind.
std::optional<Exchange> exchangeOf(const Instruction &instruction);

/// Why `instruction`, which is an exchange, cannot be run: unknown kind,
/// arguments, axes that the mesh lacks, shapes that do not fit. Empty if it
/// can. Slots are in range.
std::string exchangeProblem(const Plan &plan, const Function &function,
                            const Instruction &instruction);

/// Why exchanges of `function` that are started cannot be run where they stand:
/// one that is never awaited, or twice, or something that it works on that is
/// read, written or freed before. Empty if they can. Slots are in range.
std::string startProblem(const Function &function);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_EXCHANGES_H
