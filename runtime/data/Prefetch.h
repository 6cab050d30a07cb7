//===- Prefetch.h - Micro-batches read ahead --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Pages of files that are not in memory, and elements of other types, are what
// a step would wait for. A thread reads a rank's next micro-batches into plain
// memory, so that the executor's bytes are those of its tensors alone.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_PREFETCH_H
#define ACCEL_RUNTIME_DATA_PREFETCH_H

#include "runtime/data/Loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace accel::run {

class Prefetch {
public:
  /// Reads micro-batches `first`, `first` + `stride`, ..., `count` of them, and
  /// is at most two ahead. Nobody else may use `loader` from now on. The last
  /// one that was asked for and the `behind` before it may be asked for again.
  Prefetch(Loader &loader, int64_t first, int64_t stride, int64_t count,
           int64_t behind = 0);
  ~Prefetch();
  Prefetch(const Prefetch &) = delete;
  Prefetch &operator=(const Prefetch &) = delete;

  /// As Loader::load. Micro-batches are asked for in their order, or from those
  /// that are kept, each of their inputs as often as needed; what comes before
  /// is dropped.
  at::Tensor load(const std::string &name, int64_t k);

private:
  struct Batch {
    int64_t k = 0;
    std::map<std::string, std::vector<char>> inputs;
    std::exception_ptr failure;
  };
  void work(int64_t first, int64_t stride, int64_t count);

  Loader &loader;
  const int64_t kept; // how far behind `newest`
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> ready; // oldest first
  int64_t newest;          // of those that were asked for
  bool ends = false;       // it is to
  bool done = false;       // nothing more comes
  std::thread thread;      // last: it uses the others
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_PREFETCH_H
