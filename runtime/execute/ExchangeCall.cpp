//===- ExchangeCall.cpp - Runs what ranks exchange in a function ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/ExchangeCall.h"

#include "runtime/execute/Allocator.h"
#include "runtime/tensors/Kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <functional>
#include <numeric>
#include <utility>

namespace accel::run {

namespace {

/// The elements of `tensor`, without its memory: a communication thread that
/// still holds the tensor after the exchange keeps no bytes alive.
at::Tensor borrowed(const at::Tensor &tensor) {
  return at::from_blob(tensor.mutable_data_ptr(), {tensor.numel()},
                       tensor.options());
}

std::vector<int64_t> with(c10::IntArrayRef shape, int64_t dim, int64_t size) {
  std::vector<int64_t> result = shape.vec();
  result[dim] = size;
  return result;
}

} // namespace

/// Those before and behind it are merged: it is `pieces` pieces of `ranks`
/// parts.
struct ExchangeCall::Split {
  int64_t before = 1, pieces, ranks, part, behind = 1;
  bool mirrored;

  Split(c10::IntArrayRef whole, int64_t dim, int64_t pieces, int64_t ranks,
        bool mirrored = false)
      : pieces(pieces), ranks(ranks), part(whole[dim] / pieces / ranks),
        mirrored(mirrored) {
    for (int64_t i = 0; i < static_cast<int64_t>(whole.size()); ++i)
      (i < dim ? before : behind) *= i == dim ? 1 : whole[i];
  }
  /// Rank after rank is how the whole lies in memory.
  bool isBuffer() const { return blocks() == 1; }
  /// Of each rank, in its part and in the whole.
  int64_t blocks() const { return before * pieces; }
  /// A rank's block of its own part, and of the whole, both flat.
  at::Tensor own(const at::Tensor &part, int64_t block) const {
    return part.narrow(0, block * this->part * behind, this->part * behind);
  }
  at::Tensor inWhole(const at::Tensor &whole, int64_t block,
                     int64_t rank) const {
    const bool reversed = mirrored && block % pieces % 2 == 1;
    return own(whole, block * ranks + (reversed ? ranks - 1 - rank : rank));
  }
  std::vector<int64_t> whole() const {
    return {before, pieces, ranks, part, behind};
  }
  /// As collectives have it: rank after rank.
  std::vector<int64_t> buffer() const {
    return {ranks, before, pieces, part, behind};
  }
  /// A rank's part of `tensor`, the whole, in memory of its own.
  at::Tensor partOf(const at::Tensor &tensor, int64_t rank,
                    c10::IntArrayRef shape) const {
    at::Tensor made = at::empty(shape, tensor.options());
    const at::Tensor to = made.view({before, pieces, part, behind});
    const at::Tensor from = tensor.contiguous().view(whole());
    copyPart(to, from, rank, /*toWhole=*/false);
    return made;
  }
  /// Between the whole and what collectives have of it.
  void copy(const at::Tensor &tensor, const at::Tensor &ofRanks,
            bool toWhole) const {
    const at::Tensor all = tensor.view(whole()), parts = ofRanks.view(buffer());
    if (mirrored) {
      for (int64_t rank = 0; rank < ranks; ++rank)
        copyPart(parts.select(0, rank), all, rank, toWhole);
    } else if (toWhole) {
      all.copy_(parts.permute({1, 2, 0, 3, 4}));
    } else {
      parts.copy_(all.permute({2, 0, 1, 3, 4}));
    }
  }

private:
  /// `own` is [before, pieces, part, behind].
  void copyPart(const at::Tensor &own, const at::Tensor &all, int64_t rank,
                bool toWhole) const {
    const int64_t step = mirrored ? 2 : 1;
    for (int64_t first = 0; first < step; ++first) {
      const at::Tensor a = own.slice(1, first, pieces, step);
      const at::Tensor b = all.slice(1, first, pieces, step)
                               .select(2, first ? ranks - 1 - rank : rank);
      if (toWhole)
        b.copy_(a);
      else
        a.copy_(b);
    }
  }
};

ExchangeCall::ExchangeCall(plan::Exchange exchange, bool inPlace,
                           Groups &groups, c10::Device device)
    : exchange(std::move(exchange)), inPlace(inPlace),
      group(this->exchange.communicates()
                ? groups.over(this->exchange.axes, "function")
                : nullptr),
      position(groups.mesh().position(this->exchange.axes)),
      ranks(groups.mesh().size(this->exchange.axes)), device(device) {}

at::Tensor ExchangeCall::run(const at::Tensor &value, const at::Tensor &ends) {
  using Kind = plan::ExchangeKind;
  switch (exchange.kind) {
  case Kind::AllReduce:
  case Kind::AllGather:
  case Kind::ReduceScatter:
  case Kind::Permute: {
    const std::vector<at::Tensor> made =
        start(value,
              plan::exchangeBuffers(exchange, value.sizes().vec(), ranks,
                                    value.is_contiguous(), device.is_cpu()),
              [](const std::function<void()> &collective) { collective(); });
    finish(value, made);
    return made.front();
  }
  case Kind::AllToAll:
    return allToAll(value);
  case Kind::Slice:
    return slice(value);
  case Kind::FirstRank:
    return position == 0 ? value.clone(at::MemoryFormat::Contiguous)
                         : at::zeros_like(value, value.options(),
                                          at::MemoryFormat::Contiguous);
  case Kind::ExpertEnds:
    return expertEnds(value, ends);
  case Kind::Dispatch:
    return dispatch(value, ends);
  case Kind::Combine:
    return combine(value, ends);
  case Kind::Coordinate:
    return at::full({}, position * exchange.step,
                    at::TensorOptions(at::ScalarType::Long).device(device));
  case Kind::Await: // of another exchange: `finish`
    break;
  }
  return {};
}

std::vector<at::Tensor> ExchangeCall::start(const at::Tensor &value,
                                            const std::vector<int64_t> &sizes,
                                            const OnStream &onStream,
                                            const at::Tensor &ends) {
  std::vector<at::Tensor> made = {resultOf(value)};
  for (int64_t size : sizes)
    made.push_back(at::empty({size}, value.options()));
  const Flight flight = flightOf(value, made);
  if (flight.own.defined() && !flight.own.is_same(value))
    flight.own.copy_(value);
  if (exchange.kind == plan::ExchangeKind::AllToAll ||
      exchange.kind == plan::ExchangeKind::ReduceScatter) {
    if (!flight.sent.is_same(flight.own))
      splitOf(flight).copy(flight.own, flight.sent, /*toWhole=*/false);
  }
  if (exchange.movesRows()) {
    moving.emplace(rowsBy(ends));
    if (exchange.kind == plan::ExchangeKind::Combine)
      moving->unsort(flight.sent, flight.own);
  }
  onStream([&] {
    Allocator::Foreign libraries;
    post(flight);
  });
  return made;
}

at::Tensor ExchangeCall::resultOf(const at::Tensor &value) const {
  std::vector<int64_t> shape = value.sizes().vec();
  switch (exchange.kind) {
  case plan::ExchangeKind::AllReduce:
    return inPlace ? value : value.clone(at::MemoryFormat::Contiguous);
  case plan::ExchangeKind::AllGather:
    shape[exchange.dim] *= ranks;
    break;
  case plan::ExchangeKind::ReduceScatter:
    shape[exchange.dim] /= ranks;
    break;
  case plan::ExchangeKind::AllToAll:
    shape[exchange.dim] /= ranks;
    shape[exchange.concat] *= ranks;
    break;
  case plan::ExchangeKind::Dispatch:
  case plan::ExchangeKind::Combine:
    shape.front() = exchange.rows;
    break;
  default:
    break;
  }
  return at::empty(shape, value.options());
}

/// In the order of plan::exchangeBuffers.
ExchangeCall::Flight
ExchangeCall::flightOf(const at::Tensor &value,
                       const std::vector<at::Tensor> &made) const {
  using Kind = plan::ExchangeKind;
  Flight flight;
  flight.result = made.front();
  if (exchange.kind == Kind::AllReduce)
    return flight;
  size_t next = 1;
  flight.own =
      value.is_contiguous() ? value : made.at(next++).view(value.sizes());
  if (exchange.kind == Kind::Permute)
    return flight;
  if (exchange.movesRows()) {
    (exchange.kind == Kind::Dispatch ? flight.received : flight.sent) =
        made.at(next).view({-1, value.size(1)});
    return flight;
  }
  if (exchange.kind == Kind::AllToAll) {
    flight.sent = made.at(next++);
    flight.received = made.at(next);
    return flight;
  }
  const int64_t blocks = splitOf(flight).blocks();
  const bool copies = blocks > (device.is_cpu() ? plan::mostMessages : 1);
  if (exchange.kind == Kind::AllGather) {
    flight.received = copies ? made.at(next) : flight.result;
    return flight;
  }
  flight.sent = copies ? made.at(next++) : flight.own;
  if (device.is_cpu())
    flight.received = made.at(next);
  return flight;
}

/// Of the dimension that is whole before or after the exchange.
ExchangeCall::Split ExchangeCall::splitOf(const Flight &flight) const {
  const bool gathers = exchange.kind == plan::ExchangeKind::AllGather;
  return {(gathers ? flight.result : flight.own).sizes(), exchange.dim,
          exchange.pieces, ranks, exchange.mirrored};
}

/// What was made for it is there; no other rank is waited for.
void ExchangeCall::post(const Flight &flight) {
  using Kind = plan::ExchangeKind;
  if (exchange.kind == Kind::Dispatch)
    return postRows(flight.received, flight.own, moving->received(),
                    moving->sent());
  if (exchange.kind == Kind::Combine)
    return postRows(flight.result, flight.sent, moving->sent(),
                    moving->received());
  if (!group)
    return;
  if (exchange.kind == Kind::AllReduce) {
    at::Tensor flat = borrowed(flight.result);
    pending.push_back(group->allReduce(flat, exchange.max));
    return;
  }
  if (exchange.kind == Kind::AllGather || exchange.kind == Kind::ReduceScatter)
    return postParts(flight, splitOf(flight));
  at::Tensor from = borrowed(flight.own), to = borrowed(flight.result);
  if (exchange.kind == Kind::AllToAll) {
    from = borrowed(flight.sent);
    to = borrowed(flight.received);
    pending.push_back(group->exchangeParts(to, from));
    return;
  }
  pending.push_back(group->permute(to, from, static_cast<int>(exchange.shift)));
}

/// Gloo's reduce-scatter copies what it is given, for as long as a thread of
/// its own likes, and takes twice the time of messages and a local sum.
void ExchangeCall::postParts(const Flight &flight, const Split &split) {
  const bool gathers = exchange.kind == plan::ExchangeKind::AllGather;
  if (gathers && !sendsBlocks(split)) {
    at::Tensor to = borrowed(flight.received), from = borrowed(flight.own);
    pending.push_back(group->allGather(to, from));
    return;
  }
  if (!gathers && !device.is_cpu()) {
    at::Tensor to = borrowed(flight.result), from = borrowed(flight.sent);
    pending.push_back(group->reduceScatter(to, from));
    return;
  }
  const at::Tensor whole = borrowed(flight.result),
                   part = gathers ? borrowed(flight.own) : at::Tensor();
  const int64_t blocks = sendsBlocks(split) ? split.blocks() : 1;
  for (int64_t block = 0; block < blocks; ++block)
    pending.push_back(
        gathers
            ? group->exchange(
                  "all-gather", [&](int) { return split.own(part, block); },
                  [&](int from) { return split.inWhole(whole, block, from); })
            : group->exchange(
                  "reduce-scatter",
                  [&](int to) { return sentTo(to, block, flight, split); },
                  [&](int from) {
                    return receivedFrom(from, block, flight, split);
                  }));
  for (int64_t block = 0; gathers && block < blocks; ++block)
    split.inWhole(whole, block, position).copy_(split.own(part, block));
}

void ExchangeCall::finish(const at::Tensor &value,
                          const std::vector<at::Tensor> &made) {
  using Kind = plan::ExchangeKind;
  if (exchange.kind == Kind::Combine) { // its value may be gone
    wait();
    moving.reset();
    return;
  }
  const Flight flight = flightOf(value, made);
  if (exchange.kind == Kind::ReduceScatter && group && device.is_cpu())
    return sumParts(flight, splitOf(flight));
  wait();
  if (exchange.kind == Kind::Dispatch)
    moving->sort(flight.result, flight.received);
  moving.reset();
  if (exchange.kind == Kind::AllGather) {
    const Split split = splitOf(flight);
    if (!group)
      split.copy(flight.result, flight.own, /*toWhole=*/true);
    else if (!flight.received.is_same(flight.result))
      split.copy(flight.result, flight.received, /*toWhole=*/true);
  } else if (exchange.kind == Kind::AllToAll) {
    const Split to(flight.result.sizes(), exchange.concat, 1, ranks);
    to.copy(flight.result, group ? flight.received : flight.sent,
            /*toWhole=*/true);
  } else if (!group && exchange.kind == Kind::ReduceScatter) {
    flight.result.view(-1).copy_(flight.sent.view(-1));
  } else if (!group && exchange.kind == Kind::Permute) {
    flight.result.copy_(flight.own);
  }
}

void ExchangeCall::wait() {
  Allocator::Foreign libraries;
  for (Pending &each : pending)
    each.wait();
  pending.clear();
}

/// Sums of one block while the next is on its way.
void ExchangeCall::sumParts(const Flight &flight, const Split &split) {
  for (size_t i = 0; i < pending.size(); ++i) {
    pending[i].wait();
    const auto block = static_cast<int64_t>(i);
    std::vector<at::Tensor> slices;
    for (int64_t rank = 0; rank < ranks; ++rank)
      slices.push_back(rank == position
                           ? sentTo(rank, block, flight, split)
                           : receivedFrom(rank, block, flight, split));
    const at::Tensor flat = flight.result.view(-1);
    sumSlices(sendsBlocks(split) ? split.own(flat, block) : flat, slices,
              /*accumulate=*/false);
  }
  pending.clear();
}

/// A block of a reduce-scatter that goes to `rank`; all that does where blocks
/// are not sent one by one.
at::Tensor ExchangeCall::sentTo(int64_t rank, int64_t block,
                                const Flight &flight,
                                const Split &split) const {
  if (sendsBlocks(split))
    return split.inWhole(borrowed(flight.sent), block, rank);
  const int64_t length = flight.result.numel();
  return borrowed(flight.sent).narrow(0, rank * length, length);
}

at::Tensor ExchangeCall::receivedFrom(int64_t rank, int64_t block,
                                      const Flight &flight,
                                      const Split &split) const {
  const int64_t length = flight.result.numel();
  const at::Tensor all =
      borrowed(flight.received)
          .narrow(0, (rank - (rank > position)) * length, length);
  return sendsBlocks(split) ? split.own(all, block) : all;
}

/// A message for each block needs no copy of all of them.
bool ExchangeCall::sendsBlocks(const Split &split) const {
  return group && device.is_cpu() && split.blocks() > 1 &&
         split.blocks() <= plan::mostMessages;
}

at::Tensor ExchangeCall::allToAll(const at::Tensor &value) {
  // Part i of dimension `dim` goes to rank i; what comes from rank i is part i
  // of dimension `concat`.
  const Split from(value.sizes(), exchange.dim, 1, ranks);
  std::vector<int64_t> part =
      with(value.sizes(), exchange.dim, value.size(exchange.dim) / ranks);
  at::Tensor sent = at::empty({value.numel()}, value.options());
  from.copy(value.contiguous(), sent, /*toWhole=*/false);
  at::Tensor received = at::empty({value.numel()}, value.options());
  if (group) {
    Allocator::Foreign libraries;
    at::Tensor to = borrowed(received), from = borrowed(sent);
    group->exchangeParts(to, from).wait();
  } else {
    received.copy_(sent);
  }
  sent.reset(); // before the result is allocated
  at::Tensor result =
      at::empty(with(part, exchange.concat, part[exchange.concat] * ranks),
                value.options());
  const Split to(result.sizes(), exchange.concat, 1, ranks);
  to.copy(result, received, /*toWhole=*/true);
  return result;
}

/// From pinned memory, since a copy of other memory waits for the device.
at::Tensor ExchangeCall::expertEnds(const at::Tensor &value,
                                    const at::Tensor &ends) const {
  at::Tensor own = at::empty({value.size(1) / ranks}, value.options());
  Allocator::Foreign libraries;
  std::string axes;
  for (const std::string &axis : exchange.axes)
    axes += (axes.empty() ? "" : " x ") + axis;
  const at::Tensor host =
      ExpertRows(ends, position).ownEnds(exchange.rows, axes);
  own.copy_(device.is_cpu() ? host : host.pin_memory(), /*non_blocking=*/true);
  return own;
}

at::Tensor ExchangeCall::dispatch(const at::Tensor &value,
                                  const at::Tensor &ends) {
  at::Tensor result =
      at::empty({exchange.rows, value.size(1)}, value.options());
  const at::Tensor arrived = at::empty_like(result);
  const at::Tensor own = value.contiguous();
  const ExpertRows rows = rowsBy(ends);
  postRows(arrived, own, rows.received(), rows.sent());
  wait();
  rows.sort(result, arrived);
  return result;
}

at::Tensor ExchangeCall::combine(const at::Tensor &value,
                                 const at::Tensor &ends) {
  at::Tensor result =
      at::empty({exchange.rows, value.size(1)}, value.options());
  const at::Tensor own = value.contiguous();
  const at::Tensor byRank = at::empty_like(own);
  const ExpertRows rows = rowsBy(ends);
  rows.unsort(byRank, own);
  postRows(result, byRank, rows.sent(), rows.received());
  wait();
  return result;
}

/// Of a copy, so that it keeps no bytes of the function alive.
ExpertRows ExchangeCall::rowsBy(const at::Tensor &ends) const {
  Allocator::Foreign libraries;
  return ExpertRows(device.is_cpu() ? ends.clone() : ends, position);
}

/// Whole rows: `received[i]` of them come from rank i, `sent[i]` go to it.
void ExchangeCall::postRows(const at::Tensor &to, const at::Tensor &from,
                            const std::vector<int64_t> &received,
                            const std::vector<int64_t> &sent) {
  const int64_t features = from.size(1);
  auto elements = [&](const std::vector<int64_t> &rows) {
    std::vector<int64_t> result;
    for (int64_t count : rows)
      result.push_back(count * features);
    return result;
  };
  auto part = [](const at::Tensor &tensor, const std::vector<int64_t> &sizes) {
    return borrowed(tensor).narrow(
        0, 0, std::accumulate(sizes.begin(), sizes.end(), int64_t(0)));
  };
  const std::vector<int64_t> into = elements(received), out = elements(sent);
  Allocator::Foreign libraries;
  at::Tensor arrives = part(to, into), leaves = part(from, out);
  if (group)
    pending.push_back(group->exchangeUneven(arrives, leaves, into, out));
  else
    arrives.copy_(leaves);
}

at::Tensor ExchangeCall::slice(const at::Tensor &value) const {
  const Split split(value.sizes(), exchange.dim, exchange.pieces, ranks,
                    exchange.mirrored);
  return split.partOf(
      value, position,
      with(value.sizes(), exchange.dim, value.size(exchange.dim) / ranks));
}

} // namespace accel::run
