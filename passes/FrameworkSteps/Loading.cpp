//===- Loading.cpp - What loading leaves in the allocator -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A wrapper moves whole parameters to the device before it cuts them. They are
// gone when the first step starts, but their blocks are idle ones, which steps
// use: a checkpointed layer's input, say, lies in the block of an embedding.
// Only recordings have them; sums of bytes are those of the shards.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"
#include "runtime/plan/ModulePath.h"

#include <algorithm>
#include <numeric>

namespace accel {

void StepRun::allocateShards(const std::vector<int64_t> &flats) {
  {
    const RecordingPause quiet(engine);
    for (size_t u = 0; u < layout.units.size(); ++u)
      engine.alloc(Holding::Parameters,
                   flats.empty() ? layout.units[u].shardStored : flats[u]);
  }
  if (!records())
    return;
  if (flats.empty() && candidate.loading == Candidate::Loading::ByParameter)
    return recordBroadcasts();
  for (int unit : loadingOrder())
    recordUnit(unit, flats);
}

/// In which a wrapper shards units: layers, then what is around them, the root
/// last.
std::vector<int> StepRun::loadingOrder() const {
  std::vector<bool> isLayer(layout.units.size(), false);
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const std::string &name = model.parameters[p].fqn;
    if (plan::withoutLayerNumbers(name) != name)
      isLayer[candidate.unitOf[p]] = true;
  }
  auto rank = [&](int unit) {
    return unit == candidate.rootUnit ? 2 : isLayer[unit] ? 0 : 1;
  };
  std::vector<int> order(layout.units.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return rank(a) < rank(b); });
  return order;
}

/// 0 of a quantised weight, and where shards are loaded as such.
int64_t StepRun::wholeBytes(int parameter) const {
  const StepParameter &one = model.parameters[parameter];
  return one.quantized() || candidate.loading == Candidate::Loading::AsShards
             ? 0
             : one.numel() * plan::itemSize(layout.dtypes().storage(one));
}

/// Each rank's copy of a unit is on the device until the unit is sharded:
/// fully_shard moves all of its parameters there and makes the shards one after
/// the other (_move_states_to_device; FSDPParam._init_sharded_param, new_zeros
/// and a copy). FSDP1 broadcasts them, makes the flat parameter of them and of
/// that the shard, and only then lets the originals go (FlatParamHandle.shard
/// and _use_sharded_views of torch/distributed/fsdp/_flat_param.py).
void StepRun::recordUnit(int unit, const std::vector<int64_t> &flats) {
  Recorder &recorder = *engine.recorder;
  std::vector<int64_t> sizes;
  std::vector<int> whole;
  for (size_t p = 0; p < model.parameters.size(); ++p)
    if (const int64_t bytes = wholeBytes(static_cast<int>(p));
        bytes > 0 && candidate.unitOf[p] == unit) {
      sizes.push_back(bytes);
      whole.push_back(recorder.make(bytes, Pool::Compute));
    }
  if (flats.empty()) {
    for (int64_t bytes : layout.parts[unit].stored)
      recorder.make(bytes, Pool::Compute);
  } else {
    recordBuckets(sizes);
    int flat = whole.empty() ? -1
                             : recorder.make(flats[unit] * layout.shards.ranks,
                                             Pool::Compute);
    recorder.make(flats[unit], Pool::Compute);
    recorder.drop(flat);
  }
  for (int &tensor : whole)
    recorder.drop(tensor);
}

/// Several tensors of a bucket are flattened (_sync_module_params_and_buffers
/// with PARAM_BROADCAST_BUCKET_SIZE of torch/distributed/fsdp/_init_utils.py);
/// two buckets are on their way (broadcast_coalesced,
/// torch/csrc/distributed/c10d/comm.cpp).
void StepRun::recordBuckets(const std::vector<int64_t> &tensors) {
  constexpr int64_t limit = 250 << 20;
  Recorder &recorder = *engine.recorder;
  std::vector<int> buckets;
  int64_t bytes = 0;
  int count = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    bytes += tensors[i];
    ++count;
    if (bytes < limit && i + 1 < tensors.size())
      continue;
    buckets.push_back(count > 1 ? recorder.make(bytes, Pool::Compute) : -1);
    bytes = count = 0;
    if (buckets.size() > 1)
      recorder.drop(buckets[buckets.size() - 2]);
  }
  if (!buckets.empty())
    recorder.drop(buckets.back());
}

/// What rank 0 alone has loaded comes parameter by parameter: on the other
/// ranks the next one is there before the last is gone
/// (fsdp2_load_full_state_dict of accelerate/utils/fsdp_utils.py).
void StepRun::recordBroadcasts() {
  Recorder &recorder = *engine.recorder;
  std::vector<size_t> next(layout.units.size(), 0);
  int last = -1;
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    int whole = recorder.make(wholeBytes(static_cast<int>(p)), Pool::Compute);
    recorder.drop(last);
    last = whole;
    const size_t unit = static_cast<size_t>(candidate.unitOf[p]);
    recorder.make(layout.parts[unit].stored[next[unit]++], Pool::Compute);
  }
  recorder.drop(last);
}

void StepRun::allocateStates(int unit) {
  const UnitSizes &sizes = layout.units[unit];
  pagedBytes += sizes.pagedBytes;
  if (candidate.offloadOptimizer)
    hostBytes += sizes.stateBytes;
  else
    engine.alloc(Holding::Optimizer, sizes.stateBytes, Pool::Compute,
                 partsOf(unit, &UnitParts::states));
}

} // namespace accel
