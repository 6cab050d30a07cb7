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
#include <optional>

namespace accel::run {

/// An exchange of one function on one rank. `run` is on the stream of the
/// computation: it is over when that returns (Gloo), or later work of the
/// stream waits for it (NCCL).
class ExchangeCall {
public:
  /// Connects the group: all ranks must make their exchanges in the same order.
  /// `inPlace`: the result is the value's memory. Throws CollectiveError.
  ExchangeCall(plan::Exchange exchange, bool inPlace, Groups &groups,
               c10::Device device);

  /// Of a value of the shape that the plan says; undefined for a coordinate.
  /// `ends`, on the host, are of those that go by rows.
  at::Tensor run(const at::Tensor &value, const at::Tensor &ends = {});

  /// Queues a collective on a stream of its own, which waits for what the
  /// computation has queued.
  using OnStream = std::function<void(const std::function<void()> &collective)>;
  /// Starts what `finish` ends; until then the value, the result and the
  /// buffers stay as they are. The result, and behind it buffers of `sizes`
  /// elements (plan::exchangeBuffers). Copies that come first are on the stream
  /// of the computation.
  /// `ends`, on the host, are of those that move rows.
  std::vector<at::Tensor> start(const at::Tensor &value,
                                const std::vector<int64_t> &sizes,
                                const OnStream &onStream,
                                const at::Tensor &ends = {});
  /// Waits, and does what is left; `made` is what `start` gave. On a GPU the
  /// current stream must wait for the other one before.
  void finish(const at::Tensor &value, const std::vector<at::Tensor> &made);

  const plan::Exchange &description() const { return exchange; }
  int slot() const { return exchange.value; }
  /// Of what the host reads before; -1: of nothing.
  int endsSlot() const {
    return exchange.kind == plan::ExchangeKind::ExpertEnds ? exchange.value
                                                           : exchange.ends;
  }

private:
  /// A dimension that the ranks share, between those before and behind it.
  struct Split;
  /// The tensors of one start, by what they are for; undefined where the
  /// exchange needs none.
  struct Flight {
    at::Tensor result, own, sent, received;
  };
  Flight flightOf(const at::Tensor &value,
                  const std::vector<at::Tensor> &made) const;
  Split splitOf(const Flight &flight) const;
  at::Tensor resultOf(const at::Tensor &value) const;
  void post(const Flight &flight);
  void postParts(const Flight &flight, const Split &split);
  void sumParts(const Flight &flight, const Split &split);
  at::Tensor sentTo(int64_t rank, int64_t block, const Flight &flight,
                    const Split &split) const;
  at::Tensor receivedFrom(int64_t rank, int64_t block, const Flight &flight,
                          const Split &split) const;
  bool sendsBlocks(const Split &split) const;
  at::Tensor allToAll(const at::Tensor &value);
  at::Tensor slice(const at::Tensor &value) const;
  at::Tensor expertEnds(const at::Tensor &value, const at::Tensor &ends) const;
  at::Tensor dispatch(const at::Tensor &value, const at::Tensor &ends);
  at::Tensor combine(const at::Tensor &value, const at::Tensor &ends);
  ExpertRows rowsBy(const at::Tensor &ends) const;
  void postRows(const at::Tensor &to, const at::Tensor &from,
                const std::vector<int64_t> &received,
                const std::vector<int64_t> &sent);
  void wait();

  plan::Exchange exchange;
  bool inPlace;
  Communicator *group; // null: no other rank, or none is asked
  int position;        // among the ranks of the axes
  int64_t ranks;
  c10::Device device;
  std::vector<Pending> pending;     // of what was started
  std::optional<ExpertRows> moving; // where its rows go, on the host
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_EXCHANGECALL_H
