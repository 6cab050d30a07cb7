//===- UnitStorage.cpp - A unit's flat buffers on one rank ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/UnitStorage.h"

#include "runtime/tensors/Tensors.h"

#include <cstring>

namespace accel::run {

FlatBuffer::FlatBuffer(Device &device, plan::DType dtype, int64_t numel,
                       bool onHost)
    : device(&device), onHost(onHost), dtype(dtype),
      bytes(numel * plan::itemSize(dtype)),
      storage(c10::Storage::use_byte_size_t(), bytes,
              c10::DataPtr(nullptr, place())) {
  flat = viewOf(storage, dtype, 0, {numel});
}

c10::Device FlatBuffer::place() const {
  return onHost ? c10::Device(c10::DeviceType::CPU) : device->device();
}

void FlatBuffer::allocate() {
  memory =
      onHost ? device->allocateHost(bytes) : device->allocate(bytes, stream);
  storage.set_data_ptr_noswap(c10::DataPtr(memory.get(), place()));
}

void FlatBuffer::borrow(void *from) {
  storage.set_data_ptr_noswap(c10::DataPtr(from, place()));
}

void FlatBuffer::free() {
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, place()));
  memory = c10::DataPtr();
}

at::Tensor FlatBuffer::view(int64_t offset, c10::IntArrayRef shape) const {
  return viewOf(storage, dtype, offset, shape);
}

void FlatBuffer::zero(int64_t begin, int64_t end) {
  if (begin >= end)
    return;
  const int64_t size = plan::itemSize(dtype);
  if (flat.is_cpu())
    std::memset(static_cast<char *>(memory.get()) + begin * size, 0,
                (end - begin) * size);
  else
    view(begin, {end - begin}).zero_();
}

UnitStorage::UnitStorage(const plan::Plan &plan, int unit, int position,
                         Device &device)
    : plan(plan), index(unit), position(position),
      ranks(plan.shardRanks(plan.units[unit])),
      shardNumel(plan::shardNumel(plan, plan.units[unit])) {
  const plan::Unit &u = plan.units[unit];
  const bool parametersOnHost = plan.offload.parameters;
  auto hold = [&](FlatBuffer &buffer, plan::DType dtype, int64_t numel,
                  bool onHost, bool onDisk = false) {
    buffer = FlatBuffer(device, dtype, numel, onHost);
    if (onDisk) // new records are zeros
      return;
    buffer.allocate();
    buffer.zero(0, numel);
  };
  record = plan::diskTensors(plan, u);
  const bool shardOnDisk = plan::shardOnDisk(plan, u);
  hold(shardBuffer, u.storage, shardNumel, parametersOnHost,
       parametersOnHost && shardOnDisk);
  if (parametersOnHost && u.gather != u.storage)
    hold(castBuffer, u.gather, shardNumel, true);
  if (updatesOnHost()) {
    if (!parametersOnHost)
      hold(hostShard, u.storage, shardNumel, true, shardOnDisk);
    hold(gradientOnHost, u.storage, shardNumel, true);
  }
  if (u.trainable)
    layouts = plan::stateLayouts(plan, u);
  for (const plan::StateLayout &state : layouts)
    hold(states.emplace_back(), state.dtype, state.elements, updatesOnHost(),
         !record.empty());
  auto make = [&](plan::Role role, plan::DType dtype, int64_t numel) {
    FlatBuffer &buffer = roles[static_cast<int>(role)];
    buffer = FlatBuffer(device, dtype, numel, plan::memoryOf(u, role));
    pieces[static_cast<int>(role)] =
        numel == shardNumel ? buffer.flat
                            : buffer.view(shardBegin(), {shardNumel});
  };
  make(plan::Role::Gathered, u.gather, u.padded);
  if (u.whole)
    buffer(plan::Role::Gathered).allocate();
  make(plan::Role::Gradient, u.reduce, u.padded);
  if (u.hook.empty())
    make(plan::Role::Receive, u.reduce, u.padded - shardNumel);
  else
    make(plan::Role::Receive, plan::hookDType(u), shardNumel);
  make(plan::Role::ShardGradient, u.storage, shardNumel);
}

Pending UnitStorage::gather(Communicator *group) {
  at::Tensor &piece = ownPiece(plan::Role::Gathered);
  piece.copy_(gatherSource(), /*non_blocking=*/true);
  return group ? group->allGather(buffer(plan::Role::Gathered).flat, piece)
               : Pending();
}

void UnitStorage::publish() {
  if (castBuffer.allocated())
    castBuffer.flat.copy_(shardBuffer.flat);
  if (hostShard.flat.defined())
    shardBuffer.flat.copy_(hostShard.flat, /*non_blocking=*/true);
}

void UnitStorage::attach(char *memory) {
  for (const plan::DiskTensor &tensor : record)
    onDisk(tensor).borrow(memory + tensor.offset);
}

void UnitStorage::detach() {
  for (const plan::DiskTensor &tensor : record)
    onDisk(tensor).free();
}

plan::Role UnitStorage::gradientRole() const {
  return plan::writesShardGradient(plan, unit()) ? plan::Role::ShardGradient
                                                 : plan::Role::Gradient;
}

at::Tensor UnitStorage::parameterView(int parameter) const {
  const plan::Parameter &p = plan.parameters[parameter];
  const FlatBuffer &from = plan::readsShard(plan, unit())
                               ? shardBuffer
                               : roles[static_cast<int>(plan::Role::Gathered)];
  return from.view(p.offset, plan::ownShape(plan, p));
}

at::Tensor UnitStorage::gradientView(int parameter) const {
  const plan::Parameter &p = plan.parameters[parameter];
  return roles[static_cast<int>(gradientRole())].view(p.offset,
                                                      plan::ownShape(plan, p));
}

} // namespace accel::run
