//===- Prefetch.cpp - Micro-batches read ahead ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Prefetch.h"

#include <algorithm>
#include <stdexcept>

namespace accel::run {

namespace {
constexpr size_t ahead = 2; // micro-batches
}

Prefetch::Prefetch(Loader &loader, int64_t first, int64_t stride, int64_t count,
                   int64_t behind)
    : loader(loader), kept(behind * stride), newest(first),
      thread([=, this] { work(first, stride, count); }) {}

Prefetch::~Prefetch() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  thread.join();
}

void Prefetch::work(int64_t first, int64_t stride, int64_t count) {
  const std::vector<std::string> names = loader.names();
  for (int64_t i = 0; i < count; ++i) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] {
        const auto old =
            std::count_if(ready.begin(), ready.end(),
                          [&](const Batch &batch) { return batch.k < newest; });
        return ends || ready.size() - old < ahead;
      });
      if (ends)
        return;
    }
    Batch batch;
    batch.k = first + i * stride;
    try {
      for (const std::string &name : names)
        batch.inputs[name] = loader.read(name, batch.k);
    } catch (...) {
      batch.failure = std::current_exception();
    }
    const bool failed = batch.failure != nullptr;
    {
      std::lock_guard lock(mutex);
      ready.push_back(std::move(batch));
    }
    changed.notify_all();
    if (failed)
      break;
  }
  {
    std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_all();
}

at::Tensor Prefetch::load(const std::string &name, int64_t k) {
  std::unique_lock lock(mutex);
  newest = std::max(newest, k);
  changed.notify_all();
  auto batch = ready.end();
  while (true) {
    // The last one that is read may be the failure that ends the thread.
    while (!ready.empty() && ready.front().k < newest - kept &&
           !ready.front().failure)
      ready.pop_front();
    batch = std::find_if(ready.begin(), ready.end(), [&](const Batch &one) {
      return one.k >= k || one.failure;
    });
    if (batch != ready.end() || done)
      break;
    changed.wait(lock);
  }
  if (batch != ready.end() && batch->failure)
    std::rethrow_exception(batch->failure);
  if (batch == ready.end() || batch->k != k)
    throw std::logic_error("micro-batch " + std::to_string(k) +
                           " is asked for out of order");
  return loader.toTensor(name, batch->inputs.at(name));
}

} // namespace accel::run
