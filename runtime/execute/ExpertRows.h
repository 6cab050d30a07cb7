//===- ExpertRows.h - Rows that go to experts of other ranks ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each rank has rows that are sorted by expert, and knows of every rank where
// the rows of each expert end. The ranks have equally many experts each, in
// their order. What a rank receives is sorted by expert, and then by rank.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_EXPERTROWS_H
#define ACCEL_RUNTIME_EXECUTE_EXPERTROWS_H

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace accel::run {

/// More rows go to a rank's experts than the plan has a place for; what would
/// have sufficed is said. Every rank of the axis finds it.
struct RowsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ExpertRows {
public:
  /// `ends` [ranks, experts], i32, on the host; `position` is this rank's.
  ExpertRows(const at::Tensor &ends, int position);

  /// Rows of each rank that come here, and of this rank that go to each.
  std::vector<int64_t> received() const;
  std::vector<int64_t> sent() const;
  /// The rows that rank `to` receives.
  int64_t rowsOf(int64_t to) const;
  /// Where the rows of each of this rank's experts end; throws RowsError where
  /// a rank receives more than `most`.
  at::Tensor ownEnds(int64_t most, const std::string &axes) const;

  /// Between rows in the order in which they are received, rank by rank, and
  /// the order of the experts; [rows, features].
  void sort(const at::Tensor &sorted, const at::Tensor &byRank) const {
    copy(sorted, byRank, /*toSorted=*/true);
  }
  void unsort(const at::Tensor &byRank, const at::Tensor &sorted) const {
    copy(sorted, byRank, /*toSorted=*/false);
  }

private:
  /// Rows of rank `from` for the experts [begin, end).
  int64_t count(int64_t from, int64_t begin, int64_t end) const;
  void copy(const at::Tensor &sorted, const at::Tensor &byRank,
            bool toSorted) const;

  at::Tensor ends; // keeps `table`
  const int32_t *table;
  int64_t ranks, experts, own, position;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_EXPERTROWS_H
