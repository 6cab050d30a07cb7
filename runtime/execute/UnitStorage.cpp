//===- UnitStorage.cpp - A unit's flat buffers on one rank ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/UnitStorage.h"

#include "runtime/tensors/Tensors.h"

#include <cstring>

namespace accel::run {

FlatBuffer::FlatBuffer(Device &device, plan::DType dtype, int64_t numel)
    : device(&device), dtype(dtype), bytes(numel * plan::itemSize(dtype)),
      storage(c10::Storage::use_byte_size_t(), bytes,
              c10::DataPtr(nullptr, device.device())) {
  flat = viewOf(storage, dtype, 0, {numel});
}

void FlatBuffer::allocate() {
  memory = device->allocate(bytes);
  storage.set_data_ptr_noswap(c10::DataPtr(memory.get(), device->device()));
}

void FlatBuffer::free() {
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, device->device()));
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
  shardBuffer = FlatBuffer(device, u.storage, shardNumel);
  shardBuffer.allocate();
  shardBuffer.zero(0, shardNumel);
  if (u.trainable)
    layouts = plan::stateLayouts(plan, u);
  for (const plan::StateLayout &state : layouts) {
    states.emplace_back(device, state.dtype, state.elements);
    states.back().allocate();
    states.back().zero(0, state.elements);
  }
  auto make = [&](plan::Role role, plan::DType dtype, int64_t numel) {
    FlatBuffer &buffer = roles[static_cast<int>(role)];
    buffer = FlatBuffer(device, dtype, numel);
    pieces[static_cast<int>(role)] =
        numel == shardNumel ? buffer.flat
                            : buffer.view(shardBegin(), {shardNumel});
  };
  make(plan::Role::Gathered, u.gather, u.padded);
  make(plan::Role::Gradient, u.reduce, u.padded);
  make(plan::Role::Receive, u.reduce, u.padded - shardNumel);
  make(plan::Role::ShardGradient, u.storage, shardNumel);
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
