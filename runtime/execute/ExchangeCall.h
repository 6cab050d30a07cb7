//===- ExchangeCall.h - Runs what ranks exchange in a function --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_EXCHANGECALL_H
#define ACCEL_RUNTIME_EXECUTE_EXCHANGECALL_H

#include "runtime/collectives/Groups.h"
#include "runtime/execute/ExpertRows.h"
#include "runtime/plan/Exchanges.h"

#include <ATen/core/Tensor.h>

#include <functional>

namespace accel::run {

/// An exchange of one function on one rank, on the stream of the computation:
/// it is over when `run` returns (Gloo), or later work of the stream waits for
/// it (NCCL).
class ExchangeCall {
public:
  /// Connects the group: all ranks must make their exchanges in the same order.
  /// `inPlace`: the result is the value's memory. Throws CollectiveError.
  ExchangeCall(plan::Exchange exchange, bool inPlace, Groups &groups,
               c10::Device device);

  /// Of a value of the shape that the plan says; undefined for a coordinate.
  /// `ends` are of those that move rows.
  at::Tensor run(const at::Tensor &value, const at::Tensor &ends = {});

  int slot() const { return exchange.value; }
  int endsSlot() const { return exchange.ends; }

private:
  at::Tensor allReduce(const at::Tensor &value);
  at::Tensor allGather(const at::Tensor &value);
  at::Tensor reduceScatter(const at::Tensor &value);
  bool sendsBlocks(int64_t blocks) const;
  void
  sumParts(const at::Tensor &result, int64_t blocks,
           const std::function<at::Tensor(const at::Tensor &, int64_t)> &own,
           const std::function<at::Tensor(int64_t, int64_t)> &sent) const;
  at::Tensor allToAll(const at::Tensor &value);
  at::Tensor permute(const at::Tensor &value);
  at::Tensor slice(const at::Tensor &value) const;
  at::Tensor expertEnds(const at::Tensor &ends) const;
  at::Tensor dispatch(const at::Tensor &value, const at::Tensor &ends);
  at::Tensor combine(const at::Tensor &value, const at::Tensor &ends);
  ExpertRows rowsBy(const at::Tensor &ends) const;
  void exchangeRows(const at::Tensor &to, const at::Tensor &from,
                    const std::vector<int64_t> &received,
                    const std::vector<int64_t> &sent);

  plan::Exchange exchange;
  bool inPlace;
  Communicator *group; // null: no other rank, or none is asked
  int position;        // among the ranks of the axes
  int64_t ranks;
  c10::Device device;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_EXCHANGECALL_H
