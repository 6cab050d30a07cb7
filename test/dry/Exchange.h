//===- Exchange.h - Data between processes of one machine -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_EXCHANGE_H
#define ACCEL_TEST_DRY_EXCHANGE_H

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace accel::dry {

enum class Collective { AllGather, ReduceScatter, AllReduce, AllToAll };

/// A group's collectives through files of DRY_EXCHANGE, a folder in memory.
/// Sums are made in f32 (f64 for f64) in the order of ranks and rounded once.
class Exchange {
public:
  /// `name` is the same on every rank of the group, and its own.
  Exchange(int rank, int size, const std::string &name);
  int rank() const { return ownRank; }
  int size() const { return ranks; }
  /// `sent` and `received` are elements of this rank. Blocks until all ranks
  /// are here.
  void run(Collective kind, const void *from, size_t sent, void *to,
           size_t received, c10::ScalarType type, bool max);

  /// Messages between two ranks, which arrive in the order in which they are
  /// sent. `receive` blocks until there is one.
  void send(const void *from, size_t bytes, int to);
  void receive(void *to, size_t bytes, int from);

private:
  std::string path(int rank, int64_t number) const;
  std::string message(int from, int to, int64_t number) const;

  int ownRank, ranks;
  std::string prefix;
  int64_t next = 0;                      // collective
  std::map<int, int64_t> sent, received; // messages, by the other rank
};

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_EXCHANGE_H
