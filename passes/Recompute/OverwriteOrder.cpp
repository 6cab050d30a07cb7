//===- OverwriteOrder.cpp - Orders in which results reuse storage ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/OverwriteOrder.h"

#include "runtime/plan/Overwriting.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace accel {

namespace {

class Swapper {
public:
  Swapper(const JointGraph &graph, std::vector<int> order)
      : graph(graph), order(std::move(order)) {}

  std::vector<int> run() {
    findLifetimes();
    for (int at = 0; at < size(); ++at)
      if (std::optional<int> next = partner(at)) {
        const int moved = order[*next];
        order.erase(order.begin() + *next);
        order.insert(order.begin() + at, moved);
        findLifetimes();
      }
    return std::move(order);
  }

private:
  int size() const { return static_cast<int>(order.size()); }
  const plan::Instruction &instruction(int at) const {
    return graph.function.instructions[order[at]];
  }
  const plan::Slot &slot(int index) const {
    return graph.function.slots[index];
  }

  /// A view's too.
  int64_t elements(int index) const {
    return std::accumulate(slot(index).shape.begin(), slot(index).shape.end(),
                           int64_t(1), std::multiplies<>());
  }

  void findLifetimes() {
    made.assign(graph.function.slots.size(), -1);
    last.assign(graph.function.slots.size(), -1);
    for (int at = 0; at < size(); ++at) {
      for (const plan::Arg &arg : instruction(at).args)
        last[slot(arg.slot).base] = at;
      for (int result : instruction(at).results)
        made[result] = at;
    }
    for (const JointGradient &gradient : graph.gradients)
      last[slot(gradient.slot).base] = size();
  }

  bool reads(int at, int base) const {
    return std::ranges::any_of(instruction(at).args, [&](const plan::Arg &arg) {
      return slot(arg.slot).base == base;
    });
  }

  /// Whether the operation may write over an operand that is last read at
  /// `lastRead`.
  bool overwrites(int at, int lastRead, int butNotReadAt = -1) const {
    const plan::Instruction &op = instruction(at);
    const plan::OverwritingForm *form = plan::overwritingForm(op.op);
    if (!form || op.results.size() != 1)
      return false;
    const plan::Slot &result = slot(op.results[0]);
    for (const plan::Arg &arg : op.args) {
      const plan::Slot &operand = slot(arg.slot);
      if (made[operand.base] >= 0 && last[operand.base] == lastRead &&
          operand.dtype == result.dtype && operand.shape == result.shape &&
          elements(operand.base) == elements(arg.slot) &&
          (butNotReadAt < 0 || !reads(butNotReadAt, operand.base)))
        return true;
      if (form->overFirst)
        break;
    }
    return false;
  }

  /// Bytes that end with the operation at `at`, and would at `earlier`.
  int64_t freed(int at, int earlier) const {
    std::vector<int> bases;
    for (const plan::Arg &arg : instruction(at).args) {
      const int base = slot(arg.slot).base;
      if (last[base] == at && !(earlier < at && reads(earlier, base)) &&
          std::ranges::find(bases, base) == bases.end())
        bases.push_back(base);
    }
    int64_t bytes = 0;
    for (int base : bases)
      bytes += graph.function.slotBytes(base);
    return bytes;
  }

  /// Where the operation stands that had better be before that at `at`.
  std::optional<int> partner(int at) const {
    const plan::Instruction &first = instruction(at);
    if (first.results.size() != 1 || !plan::overwritingForm(first.op) ||
        overwrites(at, at))
      return std::nullopt;
    int next = at + 1;
    while (next < size() && graph.marks[order[next]].isView())
      ++next;
    if (next == size())
      return std::nullopt;
    const plan::Instruction &second = instruction(next);
    // What stands between reads nothing that the second overwrites, as views
    // of the first's result, and makes nothing that it reads.
    const bool depends =
        std::ranges::any_of(second.args, [&](const plan::Arg &arg) {
          return made[arg.slot] >= at || made[slot(arg.slot).base] >= at;
        });
    bool between = false;
    for (const plan::Arg &arg : second.args)
      for (int view = at + 1; view < next; ++view)
        between = between || reads(view, slot(arg.slot).base);
    if (depends || between || second.results.size() != 1 ||
        elements(second.results[0]) != elements(first.results[0]) ||
        slot(second.results[0]).dtype != slot(first.results[0]).dtype ||
        freed(next, at) < freed(at, at) || !overwrites(next, next, at) ||
        !overwrites(at, next))
      return std::nullopt;
    return next;
  }

  const JointGraph &graph;
  std::vector<int> order;
  std::vector<int> made; // by slot: where in the order, or -1
  std::vector<int> last; // by base: the last read, or the size
};

} // namespace

std::vector<int> orderForOverwriting(const JointGraph &graph,
                                     std::vector<int> order) {
  return Swapper(graph, std::move(order)).run();
}

} // namespace accel
