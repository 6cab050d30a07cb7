//===- UnitStorage.h - A unit's flat buffers on one rank --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The shard and the optimizer states live as long as the job; the buffers of a
// role come and go as the program says. Each role's tensors (the flat buffer,
// this rank's piece, a view of every parameter) are made once: allocating only
// exchanges the memory under them. So a step creates no tensor for them, and a
// communication thread that still holds one keeps no bytes alive.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_UNITSTORAGE_H
#define ACCEL_RUNTIME_EXECUTE_UNITSTORAGE_H

#include "runtime/collectives/Backend.h"
#include "runtime/execute/Device.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/UpdateLayout.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <utility>
#include <vector>

namespace accel::run {

/// Flat memory with tensors on it that outlive the memory.
class FlatBuffer {
public:
  FlatBuffer() = default;
  FlatBuffer(Device &device, plan::DType dtype, int64_t numel,
             bool onHost = false);
  /// Its memory is `stream`'s own (Device::allocate).
  FlatBuffer(Device &device, plan::DType dtype, int64_t numel,
             plan::Stream stream)
      : FlatBuffer(device, dtype, numel) {
    this->stream = stream;
  }
  void allocate();
  /// Its tensors are on memory that somebody else keeps, until `free`.
  void borrow(void *from);
  void free();
  bool allocated() const { return memory.get() != nullptr; }
  /// Sets elements [begin, end) to zero.
  void zero(int64_t begin, int64_t end);
  at::Tensor view(int64_t offset, c10::IntArrayRef shape) const;
  /// All elements.
  at::Tensor flat;

private:
  c10::Device place() const;

  Device *device = nullptr;
  bool onHost = false; // pinned
  plan::Stream stream = plan::Stream::Compute;
  plan::DType dtype = plan::DType::F32;
  size_t bytes = 0;
  c10::Storage storage;
  c10::DataPtr memory;
};

class UnitStorage {
public:
  /// `position` is this rank's among the ranks that shard the unit.
  UnitStorage(const plan::Plan &plan, int unit, int position, Device &device);

  const plan::Unit &unit() const { return plan.units[index]; }
  /// Elements of the flat buffer that this rank keeps: [begin, end).
  int64_t shardBegin() const { return position * shardNumel; }
  int64_t shardEnd() const { return shardBegin() + shardNumel; }
  int64_t shardRanks() const { return ranks; }

  FlatBuffer &buffer(plan::Role role) { return roles[static_cast<int>(role)]; }
  /// The piece of a Gathered or Gradient buffer that this rank keeps.
  at::Tensor &ownPiece(plan::Role role) {
    return pieces[static_cast<int>(role)];
  }
  /// What is updated, loaded and written: on the host where the plan has it.
  at::Tensor &shard() { return masterBuffer().flat; }
  /// What a gather copies from: the shard, or on the host what it is cast to.
  at::Tensor &gatherSource() {
    return castBuffer.allocated() ? castBuffer.flat : shardBuffer.flat;
  }
  /// The host's copy of ShardGradient.
  at::Tensor &hostGradient() { return gradientOnHost.flat; }
  /// The unit is updated on the host.
  bool updatesOnHost() const { return plan.offload.states && unit().trainable; }
  /// Starts to fill the gathered buffer, from the shards of `group`; null where
  /// this rank has all of it.
  Pending gather(Communicator *group);
  /// Queues on the current stream what the host's shard is copied to, if
  /// anything; casts on the host.
  void publish();
  /// Of a unit with a record on the disk (plan::diskTensors): its tensors are
  /// on `memory`, which has the record; and are without memory again.
  void attach(char *memory);
  void detach();
  at::Tensor &state(int i) { return states[i].flat; }
  int numStates() const { return states.size(); }
  const std::vector<plan::StateLayout> &stateLayouts() const { return layouts; }

  /// What a call reads or writes for Plan::parameters[parameter].
  at::Tensor parameterView(int parameter) const;
  at::Tensor gradientView(int parameter) const;
  /// The role that gradients are written to.
  plan::Role gradientRole() const;

private:
  const plan::Plan &plan;
  int index;
  int64_t position, ranks, shardNumel;
  FlatBuffer &masterBuffer() {
    return hostShard.flat.defined() ? hostShard : shardBuffer;
  }
  FlatBuffer &onDisk(const plan::DiskTensor &tensor) {
    return tensor.state < 0 ? masterBuffer() : states[tensor.state];
  }
  FlatBuffer shardBuffer;
  // Of plan::Offload: a shard that the device has too, one that is cast for
  // gathers, and gradients.
  FlatBuffer hostShard, castBuffer, gradientOnHost;
  std::vector<plan::StateLayout> layouts; // of `states`
  std::vector<FlatBuffer> states;
  std::vector<plan::DiskTensor> record; // without memory between updates
  FlatBuffer roles[4];
  at::Tensor pieces[4];
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_UNITSTORAGE_H
