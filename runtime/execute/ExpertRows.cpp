//===- ExpertRows.cpp - Rows that go to experts of other ranks ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/ExpertRows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace accel::run {

ExpertRows::ExpertRows(const at::Tensor &ends, int position)
    : ends(ends.contiguous()), table(this->ends.const_data_ptr<int32_t>()),
      ranks(ends.size(0)), experts(ends.size(1)), own(experts / ranks),
      position(position) {}

int64_t ExpertRows::count(int64_t from, int64_t begin, int64_t end) const {
  const int32_t *row = table + from * experts;
  return (end ? row[end - 1] : 0) - (begin ? row[begin - 1] : 0);
}

int64_t ExpertRows::rowsOf(int64_t to) const {
  int64_t rows = 0;
  for (int64_t from = 0; from < ranks; ++from)
    rows += count(from, to * own, (to + 1) * own);
  return rows;
}

std::vector<int64_t> ExpertRows::received() const {
  std::vector<int64_t> rows;
  for (int64_t from = 0; from < ranks; ++from)
    rows.push_back(count(from, position * own, (position + 1) * own));
  return rows;
}

std::vector<int64_t> ExpertRows::sent() const {
  std::vector<int64_t> rows;
  for (int64_t to = 0; to < ranks; ++to)
    rows.push_back(count(position, to * own, (to + 1) * own));
  return rows;
}

at::Tensor ExpertRows::ownEnds(int64_t most, const std::string &axes) const {
  int64_t fullest = 0;
  for (int64_t to = 1; to < ranks; ++to)
    if (rowsOf(to) > rowsOf(fullest))
      fullest = to;
  if (const int64_t rows = rowsOf(fullest); rows > most) {
    const int64_t even = std::max<int64_t>(1, count(position, 0, experts));
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.2f",
                  std::ceil(100.0 * static_cast<double>(rows) /
                            static_cast<double>(even)) /
                      100);
    throw RowsError(std::to_string(rows) + " rows go to the experts of rank " +
                    std::to_string(fullest) + " of '" + axes +
                    "', and the plan has a place for " + std::to_string(most) +
                    "; plan with expert_imbalance of at least " + factor);
  }
  at::Tensor result = at::empty({own}, ends.options());
  int32_t *to = result.mutable_data_ptr<int32_t>();
  int64_t at = 0;
  for (int64_t expert = 0; expert < own; ++expert) {
    const int64_t first = position * own + expert;
    for (int64_t from = 0; from < ranks; ++from)
      at += count(from, first, first + 1);
    to[expert] = static_cast<int32_t>(at);
  }
  return result;
}

void ExpertRows::copy(const at::Tensor &sorted, const at::Tensor &byRank,
                      bool toSorted) const {
  std::vector<int64_t> next(ranks, 0); // rows before those of each rank
  for (int64_t rank = 1; rank < ranks; ++rank)
    next[rank] =
        next[rank - 1] + count(rank - 1, position * own, (position + 1) * own);
  int64_t at = 0;
  for (int64_t expert = position * own; expert < (position + 1) * own; ++expert)
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t rows = count(rank, expert, expert + 1);
      if (rows) {
        const at::Tensor a = sorted.narrow(0, at, rows);
        const at::Tensor b = byRank.narrow(0, next[rank], rows);
        (toSorted ? a : b).copy_(toSorted ? b : a);
      }
      at += rows;
      next[rank] += rows;
    }
}

} // namespace accel::run
