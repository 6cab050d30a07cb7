//===- Ddp.cpp - DistributedDataParallel, and one process -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Buckets.h"
#include "passes/FrameworkSteps/StepRun.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace accel {

std::vector<Bucket> assignBuckets(const std::vector<int64_t> &bytes,
                                  int64_t firstLimit, int64_t limit) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (size_t i = 0; i < bytes.size(); ++i) {
    open.tensors.push_back(static_cast<int>(i));
    open.bytes += bytes[i];
    const int64_t cap = buckets.empty() ? firstLimit : limit;
    if (open.bytes < cap)
      continue;
    buckets.push_back(std::move(open));
    open = Bucket();
  }
  if (!open.tensors.empty())
    buckets.push_back(std::move(open));
  return buckets;
}

std::vector<int> gradientOrder(const StepModel &model) {
  std::vector<int> firstUser(model.parameters.size(), -1), order;
  for (size_t c = model.calls.size(); c-- > 0;)
    for (int p : model.calls[c].parameters)
      firstUser[p] = static_cast<int>(c);
  for (size_t c = model.calls.size(); c-- > 0;) {
    const std::vector<int> &own = model.calls[c].parameters;
    for (size_t i = own.size(); i-- > 0;)
      if (model.parameters[own[i]].trainable &&
          firstUser[own[i]] == static_cast<int>(c))
        order.push_back(own[i]);
  }
  // torch's reducer has a place for all that require a gradient.
  for (size_t p = model.parameters.size(); p-- > 0;)
    if (model.parameters[p].trainable && firstUser[p] < 0)
      order.push_back(static_cast<int>(p));
  return order;
}

namespace {

class DdpRun : public StepRun {
public:
  using StepRun::StepRun;

protected:
  bool distributed() const {
    return candidate.executor == FrameworkKind::Ddp &&
           layout.replicas.ranks * layout.shards.ranks > 1;
  }
  /// Buckets cut through layers.
  bool foldsBackward() const override { return !distributed(); }

  plan::DType gradientDtype(int parameter) const {
    return layout.dtypes().gradient(model.parameters[parameter]);
  }
  int64_t gradientBytes(int parameter) const {
    return model.parameters[parameter].numel() *
           plan::itemSize(gradientDtype(parameter));
  }

  void allocatePersistent() override {
    for (int u = 0; u < static_cast<int>(layout.units.size()); ++u) {
      engine.alloc(Holding::Parameters, layout.units[u].shardStored,
                   Pool::Compute, partsOf(u, &UnitParts::stored));
      allocateStates(u);
    }
    if (distributed())
      makeBuckets();
  }

  /// A bucket has one dtype; each dtype has limits of its own
  /// (compute_bucket_assignment_by_size).
  void makeBuckets() {
    std::map<plan::DType, std::vector<int>> byDtype;
    for (int p : gradientOrder(model))
      byDtype[gradientDtype(p)].push_back(p);
    bucketOf.assign(model.parameters.size(), -1);
    for (const auto &[dtype, order] : byDtype) {
      std::vector<int64_t> bytes;
      for (int p : order)
        bytes.push_back(gradientBytes(p));
      for (Bucket &bucket : assignBuckets(bytes, candidate.firstBucketBytes,
                                          candidate.bucketBytes)) {
        for (int &tensor : bucket.tensors) {
          tensor = order[tensor];
          bucketOf[tensor] = static_cast<int>(buckets.size());
        }
        engine.alloc(candidate.gradientAsBucketView ? Holding::Gradients
                                                    : Holding::Buffers,
                     layout.round(bucket.bytes));
        buckets.push_back(std::move(bucket));
      }
    }
    if (candidate.commHook == "powersgd")
      for (const Bucket &bucket : buckets) // error feedback
        engine.alloc(Holding::Buffers, layout.round(bucket.bytes));
  }

  bool viewsBuckets() const {
    return distributed() && candidate.gradientAsBucketView;
  }
  /// Gradients are there already: the bucket's views, or earlier
  /// micro-batches'.
  bool gradientsStay() const override {
    return viewsBuckets() || !microBatch.first;
  }

  void beforeForward(const Block &) override {}
  void afterForward(const Block &) override {}
  void beforeBackward(const Block &) override {
    if (waiting.size() != buckets.size())
      resetBuckets();
  }
  void afterBackward(const Block &) override {}

  void resetBuckets() {
    waiting.clear();
    for (const Bucket &bucket : buckets)
      waiting.push_back(static_cast<int>(
          std::count_if(bucket.tensors.begin(), bucket.tensors.end(),
                        [&](int p) { return layout.isRead(p); })));
  }

  bool synchronizes() const {
    return distributed() && (microBatch.last || candidate.reduceEachMicroBatch);
  }

  void gradientsReady(int call) override {
    if (!synchronizes())
      return;
    const std::vector<int> &own = model.calls[call].parameters;
    for (size_t i = own.size(); i-- > 0;) {
      const int p = own[i];
      if (bucketOf[p] < 0 || layout.firstUser[p] != call)
        continue;
      // Each gradient is divided and copied into its place.
      engine.overhead(layout.copyTime(2.0 * gradientBytes(p)),
                      Cause::AllReduce);
      if (--waiting[bucketOf[p]] == 0)
        reduce(buckets[bucketOf[p]]);
    }
  }

  void reduce(const Bucket &bucket) {
    double bytes = static_cast<double>(bucket.bytes);
    const plan::AxisGroup &group = layout.replicas;
    Picoseconds hook = 0;
    if (candidate.commHook == "fp16" || candidate.commHook == "bf16") {
      // A copy in 16 bits travels; it is copied back when it arrives.
      const int64_t half =
          layout.round(bucket.bytes * 2 /
                       plan::itemSize(gradientDtype(bucket.tensors.front())));
      engine.alloc(Holding::Buffers, half);
      compressed.push_back(half);
      bytes = static_cast<double>(half);
      hook = layout.copyTime(static_cast<double>(bucket.bytes + half));
    } else if (candidate.commHook == "powersgd") {
      // Rank 1: a row and a column of a square matrix.
      const double side = std::sqrt(bytes / 4);
      hook = layout.copyTime(6 * bytes);
      bytes = 8 * side;
    }
    engine.overhead(hook, Cause::AllReduce);
    const Picoseconds done = engine.transfer(
        Lane::AllReduce, Wire::Replicate,
        toPicoseconds(collectiveSeconds(layout.target, Collective::AllReduce,
                                        group, bytes)),
        engine.clock(Lane::Compute), bytes);
    engine.event(0) = std::max(engine.event(0), done + hook);
  }

  void endBackward() override {
    if (!synchronizes())
      return;
    // Of parameters without a gradient alone: zeros, in their turn.
    for (const Bucket &bucket : buckets)
      if (std::none_of(bucket.tensors.begin(), bucket.tensors.end(),
                       [&](int p) { return layout.isRead(p); }))
        reduce(bucket);
    engine.wait(engine.event(0), Cause::AllReduce);
    for (int64_t half : compressed)
      engine.free(Holding::Buffers, half);
    compressed.clear();
    waiting.clear();
    if (viewsBuckets())
      return;
    // Averages are copied back into the gradients.
    double bytes = 0;
    for (const Bucket &bucket : buckets)
      bytes += static_cast<double>(bucket.bytes);
    engine.overhead(layout.copyTime(2 * bytes), Cause::AllReduce);
  }

  void update() override {
    runOptimizer(false);
    if (!viewsBuckets())
      freeAllGradients();
  }

  std::vector<Bucket> buckets;
  std::vector<int> bucketOf, waiting;
  std::vector<int64_t> compressed;
};

} // namespace

std::unique_ptr<StepRun> makeDdpRun(const StepLayout &layout, Engine &engine) {
  return std::make_unique<DdpRun>(layout, engine);
}

} // namespace accel
