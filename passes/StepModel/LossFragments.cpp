//===- LossFragments.cpp - What the allocator cannot reuse ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/LossFragments.h"

#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>
#include <map>

namespace accel {

namespace {

/// One expandable segment: blocks by address; the end moves when nothing fits.
class Segment {
public:
  int64_t allocate(int64_t bytes) {
    auto best = holes.end();
    for (auto it = holes.begin(); it != holes.end(); ++it)
      if (it->second >= bytes &&
          (best == holes.end() || it->second < best->second))
        best = it;
    used += bytes;
    peak = std::max(peak, used);
    if (best != holes.end()) {
      const auto [begin, size] = *best;
      holes.erase(best);
      if (size > bytes)
        holes[begin + bytes] = size - bytes;
      return begin;
    }
    // A hole at the end grows into the new part.
    int64_t begin = end;
    if (!holes.empty() &&
        holes.rbegin()->first + holes.rbegin()->second == end) {
      begin = holes.rbegin()->first;
      holes.erase(begin);
    }
    end = begin + bytes;
    return begin;
  }
  void release(int64_t begin, int64_t bytes) {
    used -= bytes;
    auto next = holes.lower_bound(begin);
    if (next != holes.end() && next->first == begin + bytes) {
      bytes += next->second;
      next = holes.erase(next);
    }
    if (next != holes.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == begin) {
        before->second += bytes;
        return;
      }
    }
    holes[begin] = bytes;
  }
  int64_t used = 0, peak = 0, end = 0;

private:
  std::map<int64_t, int64_t> holes;
};

} // namespace

int64_t lossFragments(const SegmentGraph &graph) {
  const plan::Function &function = graph.function;
  const size_t count = function.slots.size();
  std::vector<int> last(count, -1);
  const int instructions = static_cast<int>(function.instructions.size());
  for (int i = 0; i < instructions; ++i) {
    forEachSlot(function.instructions[i],
                [&](int slot) { last[function.slots[slot].base] = i; });
    for (int slot : function.instructions[i].results)
      if (slot >= 0)
        last[function.slots[slot].base] =
            std::max(last[function.slots[slot].base], i);
  }
  for (int slot : function.outputs)
    last[function.slots[slot].base] = instructions;
  auto bytesOf = [&](int slot) {
    int64_t bytes = plan::itemSize(function.slots[slot].dtype);
    for (int64_t size : function.slots[slot].shape)
      bytes *= size;
    return (bytes + graph.rounding - 1) / graph.rounding * graph.rounding;
  };
  Segment segment;
  std::map<int, int64_t> live; // base slot -> address
  for (int i = 0; i < instructions; ++i) {
    const plan::Instruction &op = function.instructions[i];
    if (!graph.view[i])
      for (int slot : op.results)
        if (slot >= 0)
          live[slot] = segment.allocate(bytesOf(slot));
    for (auto it = live.begin(); it != live.end();) {
      if (last[it->first] <= i) {
        segment.release(it->second, bytesOf(it->first));
        it = live.erase(it);
      } else {
        ++it;
      }
    }
  }
  return segment.end - segment.peak;
}

} // namespace accel
