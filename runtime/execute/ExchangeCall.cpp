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

/// A dimension between those before and behind it, which are merged: it is
/// `pieces` pieces of `ranks` parts.
struct Split {
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
    return allReduce(value);
  case Kind::AllGather:
    return allGather(value);
  case Kind::ReduceScatter:
    return reduceScatter(value);
  case Kind::AllToAll:
    return allToAll(value);
  case Kind::Permute:
    return permute(value);
  case Kind::Slice:
    return slice(value);
  case Kind::FirstRank:
    return position == 0 ? value.clone(at::MemoryFormat::Contiguous)
                         : at::zeros_like(value, value.options(),
                                          at::MemoryFormat::Contiguous);
  case Kind::ExpertEnds:
    return expertEnds(value);
  case Kind::Dispatch:
    return dispatch(value, ends);
  case Kind::Combine:
    return combine(value, ends);
  case Kind::Coordinate:
    return at::full({}, position * exchange.step,
                    at::TensorOptions(at::ScalarType::Long).device(device));
  }
  return {};
}

at::Tensor ExchangeCall::allReduce(const at::Tensor &value) {
  at::Tensor result =
      inPlace ? value : value.clone(at::MemoryFormat::Contiguous);
  if (!group)
    return result;
  Allocator::Foreign libraries;
  at::Tensor flat = borrowed(result);
  group->allReduce(flat, exchange.max).wait();
  return result;
}

at::Tensor ExchangeCall::allGather(const at::Tensor &value) {
  at::Tensor result = at::empty(
      with(value.sizes(), exchange.dim, value.size(exchange.dim) * ranks),
      value.options());
  const Split split(result.sizes(), exchange.dim, exchange.pieces, ranks,
                    exchange.mirrored);
  const at::Tensor own = value.contiguous();
  if (sendsBlocks(split.blocks())) {
    Allocator::Foreign libraries;
    const at::Tensor whole = borrowed(result), part = borrowed(own);
    std::vector<Pending> pending;
    for (int64_t block = 0; block < split.blocks(); ++block)
      pending.push_back(group->exchange(
          "all-gather", [&](int) { return split.own(part, block); },
          [&](int from) { return split.inWhole(whole, block, from); }));
    for (int64_t block = 0; block < split.blocks(); ++block)
      split.inWhole(whole, block, position).copy_(split.own(part, block));
    for (Pending &each : pending)
      each.wait();
    return result;
  }
  const at::Tensor buffer =
      split.isBuffer() ? result : at::empty({result.numel()}, value.options());
  if (group) {
    Allocator::Foreign libraries;
    at::Tensor to = borrowed(buffer), from = borrowed(own);
    group->allGather(to, from).wait();
  } else {
    buffer.view(-1).copy_(own.view(-1));
  }
  if (!split.isBuffer())
    split.copy(result, buffer, /*toWhole=*/true);
  return result;
}

at::Tensor ExchangeCall::reduceScatter(const at::Tensor &value) {
  const Split split(value.sizes(), exchange.dim, exchange.pieces, ranks,
                    exchange.mirrored);
  at::Tensor result = at::empty(
      with(value.sizes(), exchange.dim, value.size(exchange.dim) / ranks),
      value.options());
  if (sendsBlocks(split.blocks())) {
    const at::Tensor whole = value.contiguous();
    sumParts(
        result, split.blocks(),
        [&](const at::Tensor &part, int64_t block) {
          return split.own(part, block);
        },
        [&](int64_t block, int64_t rank) {
          return split.inWhole(borrowed(whole), block, rank);
        });
    return result;
  }
  at::Tensor buffer;
  if (split.isBuffer()) {
    buffer = value.contiguous();
  } else {
    buffer = at::empty({value.numel()}, value.options());
    split.copy(value.contiguous(), buffer, /*toWhole=*/false);
  }
  if (group && device.is_cpu()) {
    const int64_t length = result.numel();
    const at::Tensor parts = borrowed(buffer);
    sumParts(
        result, 1, [](const at::Tensor &part, int64_t) { return part; },
        [&](int64_t, int64_t rank) {
          return parts.narrow(0, rank * length, length);
        });
  } else if (group) {
    Allocator::Foreign libraries;
    at::Tensor to = borrowed(result), from = borrowed(buffer);
    group->reduceScatter(to, from).wait();
  } else {
    result.view(-1).copy_(buffer.view(-1));
  }
  return result;
}

/// A message for each block needs no copy of all of them.
bool ExchangeCall::sendsBlocks(int64_t blocks) const {
  return group && device.is_cpu() && blocks > 1 && blocks <= plan::mostMessages;
}

/// Gloo's reduce-scatter copies what it is given, for as long as a thread of
/// its own likes, and takes twice the time of messages and a local sum.
/// `own(part, block)` is a block of a rank's part, `sent(block, rank)` what
/// goes there, all flat.
void ExchangeCall::sumParts(
    const at::Tensor &result, int64_t blocks,
    const std::function<at::Tensor(const at::Tensor &, int64_t)> &own,
    const std::function<at::Tensor(int64_t, int64_t)> &sent) const {
  const int64_t length = result.numel();
  const at::Tensor received =
      at::empty({(ranks - 1) * length}, result.options());
  auto from = [&](int64_t rank) {
    return borrowed(received).narrow(0, (rank - (rank > position)) * length,
                                     length);
  };
  std::vector<Pending> pending;
  {
    Allocator::Foreign libraries;
    for (int64_t block = 0; block < blocks; ++block)
      pending.push_back(group->exchange(
          "reduce-scatter", [&](int to) { return sent(block, to); },
          [&](int rank) { return own(from(rank), block); }));
  }
  // Sums of one block while the next is on its way.
  for (int64_t block = 0; block < blocks; ++block) {
    pending[static_cast<size_t>(block)].wait();
    std::vector<at::Tensor> slices;
    for (int64_t rank = 0; rank < ranks; ++rank)
      slices.push_back(rank == position ? sent(block, rank)
                                        : own(from(rank), block));
    sumSlices(own(result.view(-1), block), slices, /*accumulate=*/false);
  }
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

/// Counts are read on the host: on a GPU each exchange of rows waits for them.
at::Tensor ExchangeCall::expertEnds(const at::Tensor &ends) const {
  at::Tensor own = at::empty({ends.size(1) / ranks}, ends.options());
  Allocator::Foreign libraries;
  own.copy_(
      ExpertRows(ends, position).ownEnds(exchange.rows, exchange.axes.front()));
  return own;
}

at::Tensor ExchangeCall::dispatch(const at::Tensor &value,
                                  const at::Tensor &ends) {
  at::Tensor result =
      at::empty({exchange.rows, value.size(1)}, value.options());
  const at::Tensor arrived = at::empty_like(result);
  const at::Tensor own = value.contiguous();
  const ExpertRows rows = rowsBy(ends);
  exchangeRows(arrived, own, rows.received(), rows.sent());
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
  exchangeRows(result, byRank, rows.sent(), rows.received());
  return result;
}

ExpertRows ExchangeCall::rowsBy(const at::Tensor &ends) const {
  Allocator::Foreign libraries;
  return ExpertRows(ends, position);
}

/// Whole rows: `received[i]` of them come from rank i, `sent[i]` go to it.
void ExchangeCall::exchangeRows(const at::Tensor &to, const at::Tensor &from,
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
    group->exchangeUneven(arrives, leaves, into, out).wait();
  else
    arrives.copy_(leaves);
}

at::Tensor ExchangeCall::permute(const at::Tensor &value) {
  at::Tensor result = at::empty(value.sizes(), value.options());
  const at::Tensor own = value.contiguous();
  if (!group) {
    result.copy_(own);
    return result;
  }
  Allocator::Foreign libraries;
  at::Tensor to = borrowed(result), from = borrowed(own);
  group->permute(to, from, static_cast<int>(exchange.shift)).wait();
  return result;
}

at::Tensor ExchangeCall::slice(const at::Tensor &value) const {
  const Split split(value.sizes(), exchange.dim, exchange.pieces, ranks,
                    exchange.mirrored);
  return split.partOf(
      value, position,
      with(value.sizes(), exchange.dim, value.size(exchange.dim) / ranks));
}

} // namespace accel::run
