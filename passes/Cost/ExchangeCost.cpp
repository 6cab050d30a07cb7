//===- ExchangeCost.cpp - Seconds of an exchange in a function ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/ExchangeCost.h"

#include "passes/Cost/CollectiveCost.h"

#include <optional>
#include <string_view>

namespace accel {

namespace {

struct Exchange {
  Collective kind;
  bool ofResult; // the buffer of all ranks is the result, else the operand
};

std::optional<Exchange> exchangeOf(std::string_view op) {
  constexpr std::string_view dialect = "sharding::";
  if (!op.starts_with(dialect))
    return std::nullopt;
  op.remove_prefix(dialect.size());
  if (op == "all_reduce")
    return Exchange{Collective::AllReduce, true};
  if (op == "all_gather")
    return Exchange{Collective::AllGather, true};
  if (op == "reduce_scatter")
    return Exchange{Collective::ReduceScatter, false};
  if (op == "all_to_all")
    return Exchange{Collective::AllToAll, true};
  return std::nullopt; // slice, first_rank, coordinate: no other rank
}

double bytesOf(const plan::Slot &slot) {
  double bytes = static_cast<double>(plan::itemSize(slot.dtype));
  for (int64_t size : slot.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

} // namespace

double exchangeSeconds(const plan::Function &function,
                       const plan::Instruction &instruction,
                       const plan::Mesh &mesh, int64_t ranksPerNode,
                       const Target &target) {
  const std::optional<Exchange> exchange = exchangeOf(instruction.op);
  if (!exchange)
    return 0;
  std::vector<std::string> axes;
  for (const plan::Arg &arg : instruction.args)
    if (arg.kind == plan::Arg::Kind::Text)
      axes.push_back(arg.text);
  const int buffer = exchange->ofResult ? instruction.results.front()
                                        : instruction.args.front().slot;
  return collectiveSeconds(target, exchange->kind,
                           mesh.group(mesh.set(axes), ranksPerNode),
                           bytesOf(function.slots[buffer]));
}

} // namespace accel
