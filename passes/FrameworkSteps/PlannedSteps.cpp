//===- PlannedSteps.cpp - Steps predicted as plan predicts them -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/PlannedSteps.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace accel {

class StepPredictions::Queue {
public:
  explicit Queue(const DeviceRoom &room) : room(room) {}
  ~Queue() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      next = steps.size();
    }
    close();
  }

  void start(PlannedStep step) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      steps.push_back(std::move(step));
      results.emplace_back();
    }
    more.notify_one();
    // The caller's core is the one that is missing.
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    if (threads.size() + 1 < std::min(cores, steps.size() + 1))
      threads.emplace_back([this] { work(/*waits=*/true); });
  }

  std::vector<StepPrediction> take() {
    work(/*waits=*/false);
    close();
    return {std::make_move_iterator(results.begin()),
            std::make_move_iterator(results.end())};
  }

private:
  /// Predicts what no other thread has taken; `waits`: until it is closed.
  void work(bool waits) {
    // An evaluator is for one thread.
    std::map<const StepModel *, std::unique_ptr<StepEvaluator>> evaluators;
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      while (next < steps.size()) {
        const PlannedStep &step = steps[next];
        StepPrediction &result = results[next++];
        lock.unlock();
        predict(step, evaluators[step.model.get()], result);
        lock.lock();
      }
      if (!waits || closed)
        return;
      more.wait(lock, [&] { return closed || next < steps.size(); });
    }
  }

  void predict(const PlannedStep &step,
               std::unique_ptr<StepEvaluator> &evaluator,
               StepPrediction &result) const {
    if (!evaluator)
      evaluator = std::make_unique<StepEvaluator>(*step.model, room.target);
    result = evaluator->evaluate(step.candidate, /*detail=*/true);
    if (room.replays)
      replayInto(result, *evaluator, step.candidate, step.allocator,
                 room.contextBytes, room.budgetBytes, step.onDevice);
  }

  void close() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      closed = true;
    }
    more.notify_all();
    for (std::thread &thread : threads)
      thread.join();
    threads.clear();
  }

  const DeviceRoom room;
  std::mutex mutex; // of all that follows but `threads`
  std::condition_variable more;
  // Entries stay where they are while others are added.
  std::deque<PlannedStep> steps;
  std::deque<StepPrediction> results;
  size_t next = 0;
  bool closed = false;
  std::vector<std::thread> threads;
};

StepPredictions::StepPredictions(const DeviceRoom &room)
    : queue(std::make_unique<Queue>(room)) {}
StepPredictions::StepPredictions(StepPredictions &&) noexcept = default;
StepPredictions::~StepPredictions() = default;

void StepPredictions::start(PlannedStep step) { queue->start(std::move(step)); }

std::vector<StepPrediction> StepPredictions::take() { return queue->take(); }

std::vector<StepPrediction> predictSteps(const std::vector<PlannedStep> &steps,
                                         const DeviceRoom &room) {
  StepPredictions predictions(room);
  for (const PlannedStep &step : steps)
    predictions.start(step);
  return predictions.take();
}

} // namespace accel
