//===- IdleBlocks.h - Idle blocks by size, then address ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A replay puts a block in or takes one out for almost every tensor of a step.
// A sorted list that is cut into short runs does that by moving a few entries
// that lie side by side; a balanced tree allocates a node each time and follows
// pointers.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_REPLAY_IDLEBLOCKS_H
#define ACCEL_PASSES_REPLAY_IDLEBLOCKS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace accel::replay {

class IdleBlocks {
public:
  struct Entry {
    int64_t bytes = 0, address = 0;
    int block = -1;
    /// Numbers of blocks are reused: two are alike where they are.
    bool operator==(const Entry &other) const {
      return bytes == other.bytes && address == other.address;
    }
    bool operator<(const Entry &other) const {
      return bytes < other.bytes ||
             (bytes == other.bytes && address < other.address);
    }
  };
  /// Valid until the next insertion or removal.
  struct Position {
    size_t run = 0, index = 0;
  };

  bool empty() const { return runs.empty(); }
  const Entry &largest() const { return runs.back().back(); }

  void insert(const Entry &entry) {
    if (runs.empty()) {
      runs.emplace_back().reserve(longest);
      runs.back().push_back(entry);
      return;
    }
    size_t r = std::min(runOf(entry), runs.size() - 1);
    if (runs[r].size() == longest) {
      std::vector<Entry> upper;
      upper.reserve(longest);
      upper.assign(runs[r].begin() + longest / 2, runs[r].end());
      runs[r].resize(longest / 2);
      runs.insert(runs.begin() + r + 1, std::move(upper));
      if (runs[r].back() < entry)
        ++r;
    }
    std::vector<Entry> &run = runs[r];
    run.insert(std::lower_bound(run.begin(), run.end(), entry), entry);
  }

  /// `entry` is there.
  Position find(const Entry &entry) const {
    const size_t r = runOf(entry);
    const std::vector<Entry> &run = runs[r];
    const auto at = std::lower_bound(run.begin(), run.end(), entry);
    return {r, static_cast<size_t>(at - run.begin())};
  }
  void erase(const Entry &entry) { erase(find(entry)); }
  void erase(Position at) {
    std::vector<Entry> &run = runs[at.run];
    run.erase(run.begin() + at.index);
    if (run.empty())
      runs.erase(runs.begin() + at.run);
  }

  /// What grows or shrinks mostly keeps its place: the rest of the largest
  /// block is the largest again.
  void replace(Position at, const Entry &entry) {
    std::vector<Entry> &run = runs[at.run];
    const bool behind = at.index > 0 ? run[at.index - 1] < entry : at.run == 0;
    const bool before = at.index + 1 < run.size() ? entry < run[at.index + 1]
                                                  : at.run + 1 == runs.size();
    if (behind && before) {
      run[at.index] = entry;
      return;
    }
    erase(at);
    insert(entry);
  }

  /// The first of at least `bytes`; check with `has`.
  Position atLeast(int64_t bytes) const {
    const Entry least{bytes, -1, -1};
    const size_t r = runOf(least);
    if (r == runs.size())
      return {r, 0};
    const std::vector<Entry> &run = runs[r];
    const auto at = std::lower_bound(run.begin(), run.end(), least);
    return {r, static_cast<size_t>(at - run.begin())};
  }
  bool has(Position at) const { return at.run < runs.size(); }
  Position next(Position at) const {
    return at.index + 1 < runs[at.run].size() ? Position{at.run, at.index + 1}
                                              : Position{at.run + 1, 0};
  }
  const Entry &operator[](Position at) const { return runs[at.run][at.index]; }

private:
  static constexpr size_t longest = 64;

  /// The first run that ends at `entry` or behind it.
  size_t runOf(const Entry &entry) const {
    return std::lower_bound(runs.begin(), runs.end(), entry,
                            [](const std::vector<Entry> &run, const Entry &e) {
                              return run.back() < e;
                            }) -
           runs.begin();
  }

  std::vector<std::vector<Entry>> runs; // none is empty
};

} // namespace accel::replay

#endif // ACCEL_PASSES_REPLAY_IDLEBLOCKS_H
