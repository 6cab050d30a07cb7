//===- TensorExchanges.cpp - What ranks of tp exchange in a layer ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/TensorExchanges.h"

#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/StepModel/StorageUses.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Operands.h"

#include <algorithm>
#include <map>

namespace accel {
namespace {

using plan::Arg;
using plan::ExchangeKind;
using plan::Instruction;

class TensorExchanges {
public:
  TensorExchanges(SegmentGraph &graph, TensorOverlap how, const Target *target)
      : graph(graph), function(graph.function), how(how), target(target) {
    findUses();
  }

  void overlap() {
    std::vector<double> usual = hiddenWaits(/*repeated=*/false);
    if (how == TensorOverlap::SymmetricMemory)
      graph.repeatWaits = hiddenWaits(/*repeated=*/true);
    graph.waits = std::move(usual);
  }

  /// From the last exchange to the first, so that positions stay true.
  void copy() {
    for (int i = count() - 1; i >= 0; --i) {
      const auto exchange = exchangeAt(i);
      if (!exchange)
        continue;
      const bool fused = how == TensorOverlap::SymmetricMemory &&
                         !beside(i, *exchange).empty();
      const bool copies = exchange->pieces > 1 || exchange->dim > 0;
      // Of the collective's own copies, which are instructions here.
      if (copies)
        function.instructions[i].workspaceBytes = 0;
      if (exchange->kind == ExchangeKind::ReduceScatter) {
        if (fused)
          sumParts(i);
        else if (copies)
          cutBefore(i, *exchange);
      } else if (copies && !fused) {
        joinAfter(i, *exchange);
      }
    }
  }

private:
  int base(int slot) const { return function.slots[slot].base; }
  int count() const { return static_cast<int>(function.instructions.size()); }

  void findUses() {
    uses = StorageUses(graph);
    turned.assign(function.slots.size(), false);
    for (int i = 0; i < count(); ++i)
      if (graph.view[i])
        noteTurned(function.instructions[i]);
  }
  /// Slots that are the transposes of their storages.
  void noteTurned(const Instruction &view) {
    if (view.args.empty() || view.results.empty() ||
        view.args.front().kind != Arg::Kind::Tensor)
      return;
    const bool turns = view.op == "aten::t" || view.op == "aten::transpose.int";
    turned[view.results.front()] = turned[view.args.front().slot] != turns;
  }

  /// A gather or scatter over tp; a sum too where whole collectives run beside
  /// matmuls.
  std::optional<plan::Exchange> exchangeAt(int i) const {
    const Instruction &instruction = function.instructions[i];
    if (!plan::isExchange(instruction))
      return std::nullopt;
    auto exchange = plan::exchangeOf(instruction);
    if (!exchange || exchange->axes.size() != 1 ||
        exchange->axes.front() != "tp" ||
        (exchange->kind != ExchangeKind::AllGather &&
         exchange->kind != ExchangeKind::ReduceScatter &&
         (how != TensorOverlap::WeightGradients ||
          exchange->kind != ExchangeKind::AllReduce)))
      return std::nullopt;
    return exchange;
  }

  /// `repeated`: beside the matmuls that `pointwise` does not keep.
  std::vector<double> hiddenWaits(bool repeated) const {
    std::vector<double> waits = graph.waits;
    waits.resize(function.instructions.size(), -1);
    std::map<int, double> left; // seconds of a matmul that hide nothing yet
    // Chunked exchanges expose their first or last chunk.
    const auto pieces =
        static_cast<double>(std::max<int64_t>(1, graph.mesh.size("tp")));
    const double exposed =
        how == TensorOverlap::WeightGradients ? 0 : 1 / pieces;
    for (int i = 0; i < count(); ++i) {
      const auto exchange = exchangeAt(i);
      if (!exchange)
        continue;
      const double all = waitOf(i);
      double hidden = 0;
      for (int matmul : beside(i, *exchange)) {
        if (repeated && graph.pointwiseKeeps[matmul])
          continue;
        double &free =
            left.try_emplace(matmul, secondsOf(matmul)).first->second;
        const double part = std::min(free, all * (1 - exposed) - hidden);
        if (part <= 0)
          continue;
        free -= part;
        hidden += part;
      }
      waits[i] = all - hidden * target->overlap;
    }
    return waits;
  }
  double secondsOf(int i) const {
    return opSeconds(function, function.instructions[i], *target);
  }
  double waitOf(int i) const {
    return !graph.waits.empty() && graph.waits[i] >= 0
               ? graph.waits[i]
               : exchangeSeconds(function, function.instructions[i], graph.mesh,
                                 graph.ranksPerNode, *target);
  }

  /// The matmuls that an exchange runs beside.
  std::vector<int> beside(int i, const plan::Exchange &exchange) const {
    if (how == TensorOverlap::WeightGradients)
      return graph.forward[i] ? std::vector<int>()
                              : besideGradients(i, exchange);
    if (exchange.kind == ExchangeKind::AllGather)
      return readersOf(i, base(exchange.result));
    if (how == TensorOverlap::UserBuffers)
      return makersOf(i, base(exchange.value));
    const int made = uses.maker[base(exchange.value)];
    const bool alone = made >= 0 && isMatmul(graph, made) &&
                       graph.forward[made] == graph.forward[i];
    return alone ? std::vector<int>{made} : std::vector<int>();
  }
  /// An all-gather of the backward is read by the matmul of the weight's
  /// gradient; an all-reduce or reduce-scatter sums what the matmul of the
  /// input's gradient makes. Each overlaps with the other matmul of the same
  /// linear layer, which reads the same gradient of the output.
  std::vector<int> besideGradients(int i,
                                   const plan::Exchange &exchange) const {
    const bool gathers = exchange.kind == ExchangeKind::AllGather;
    const std::vector<int> own = gathers ? readersOf(i, base(exchange.result))
                                         : makersOf(i, base(exchange.value));
    std::vector<int> found;
    for (int matmul : own) {
      // A gathered output's gradient is read by both.
      if (uses.readsParameter(graph, matmul) == gathers)
        return {};
      forEachSlot(function.instructions[matmul], [&](int slot) {
        if (uses.parameter[base(slot)] ||
            (gathers && base(slot) == base(exchange.result)))
          return;
        for (int other : uses.readers[base(slot)])
          if (isMatmul(graph, other) && !graph.forward[other] &&
              uses.readsParameter(graph, other) == gathers)
            found.push_back(other);
      });
    }
    return found;
  }
  std::vector<int> readersOf(int i, int root) const {
    std::vector<int> found;
    for (int reader : uses.readers[root]) {
      if (!isMatmul(graph, reader) || graph.forward[reader] != graph.forward[i])
        continue;
      const Arg &leftOperand = function.instructions[reader].args.front();
      if (how != TensorOverlap::SymmetricMemory ||
          (base(leftOperand.slot) == root && !turned[leftOperand.slot]))
        found.push_back(reader);
    }
    return found;
  }
  /// Through sums of several layers' gradients.
  std::vector<int> makersOf(int i, int root) const {
    std::vector<int> found, open = {root};
    while (!open.empty()) {
      const int made = uses.maker[open.back()];
      open.pop_back();
      if (made < 0 || graph.forward[made] != graph.forward[i])
        continue;
      if (isMatmul(graph, made))
        found.push_back(made);
      else if (function.instructions[made].op.starts_with("aten::add"))
        forEachSlot(function.instructions[made],
                    [&](int slot) { open.push_back(base(slot)); });
    }
    return found;
  }

  int newSlotLike(int slot) {
    const int copy = static_cast<int>(function.slots.size());
    plan::Slot like = function.slots[slot];
    like.base = copy;
    function.slots.push_back(std::move(like));
    return copy;
  }
  Instruction move(const char *op, int from, int to, int where) const {
    Instruction instruction;
    instruction.op = op;
    instruction.where = function.instructions[where].where;
    instruction.args = {plan::tensorArg(from)};
    instruction.results = {to};
    instruction.movedBytes = plan::movedBytesOf(function.slots[from]) +
                             plan::movedBytesOf(function.slots[to]);
    return instruction;
  }

  /// The exchange at `i + 1` is now at `i`.
  void swapWaits(int i) {
    for (auto *seconds : {&graph.waits, &graph.repeatWaits})
      if (!seconds->empty())
        std::swap((*seconds)[i], (*seconds)[i + 1]);
  }

  void joinAfter(int i, const plan::Exchange &exchange) {
    const int parts = newSlotLike(exchange.result);
    Instruction gather = function.instructions[i];
    gather.results = {parts};
    const Instruction join = move("aten::cat", parts, exchange.result, i);
    graph.insert(static_cast<size_t>(i), gather, graph.forward[i],
                 /*isView=*/false);
    function.instructions[i + 1] = join;
    swapWaits(i);
  }

  void cutBefore(int i, const plan::Exchange &exchange) {
    const int parts = newSlotLike(exchange.value);
    const Instruction cut = move("aten::cat", exchange.value, parts, i);
    function.instructions[i].args.front().slot = parts;
    graph.insert(static_cast<size_t>(i), cut, graph.forward[i],
                 /*isView=*/false);
  }

  /// Every rank sends its pieces of the product to their owners, which add up
  /// what they have been sent (stacked_partials of
  /// _fused_matmul_reduce_scatter_impl).
  void sumParts(int i) {
    const auto exchange = exchangeAt(i);
    const int result = exchange->result, sent = newSlotLike(exchange->value);
    const Instruction sum = move("aten::sum.dim_IntList", sent, result, i);
    Instruction scatter = function.instructions[i];
    scatter.results = {sent};
    graph.insert(static_cast<size_t>(i), scatter, graph.forward[i],
                 /*isView=*/false);
    function.instructions[i + 1] = sum;
    swapWaits(i);
  }

  SegmentGraph &graph;
  plan::Function &function;
  const TensorOverlap how;
  const Target *target;
  StorageUses uses;
  std::vector<bool> turned; // by slot
};

} // namespace

void overlapTensor(SegmentGraph &graph, TensorOverlap how,
                   const Target &target) {
  if (how != TensorOverlap::None)
    TensorExchanges(graph, how, &target).overlap();
}

void useDtensorExchanges(SegmentGraph &graph,
                         const frameworks::Kernels &kernels, bool layer,
                         const Target *target) {
  if (!kernels.dtensor)
    return;
  const TensorOverlap overlap = kernels.asyncTensor && layer
                                    ? TensorOverlap::SymmetricMemory
                                    : TensorOverlap::None;
  if (target)
    overlapTensor(graph, overlap, *target);
  TensorExchanges(graph, overlap, target).copy();
}

} // namespace accel
