//===- Buffers.cpp - Whose buffer a value is ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/Buffers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::schedule {

std::optional<UnitBuffer> unitBufferOf(Value value) {
  if (isActivation(value))
    return std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto program = cast<ProgramOp>(argument.getOwner()->getParentOp());
    auto carried =
        cast<CarriedAttr>(program.getCarried()[argument.getArgNumber() -
                                               program.getInputs().size()]);
    return UnitBuffer{StringAttr::get(value.getContext(), carried.getUnit()),
                      carried.getRole()};
  }
  Operation *op = value.getDefiningOp();
  if (auto alloc = dyn_cast<AllocOp>(op))
    return UnitBuffer{alloc.getUnitAttr(), alloc.getRole()};
  auto await = cast<AwaitOp>(op);
  Operation *start = startOf(await);
  Role role = Role::ShardGradient; // of an offload
  const unsigned result = cast<OpResult>(value).getResultNumber();
  if (isa<AllGatherStartOp>(start))
    role = Role::Gathered;
  else if (isa<ReduceScatterStartOp>(start))
    role =
        std::array{Role::Gradient, Role::ShardGradient, Role::Receive}[result];
  else if (isa<AllReduceStartOp>(start))
    role = std::array{Role::ShardGradient, Role::Receive}[result];
  return UnitBuffer{unitOf(start), role};
}

StringAttr unitOf(Operation *op) {
  return TypeSwitch<Operation *, StringAttr>(op)
      .Case<AllocOp, AllGatherStartOp, ReduceScatterStartOp, AllReduceStartOp,
            OffloadStartOp, OptimizerStepOp, HostStepOp>(
          [](auto op) { return op.getUnitAttr(); })
      .Case([](AwaitOp op) { return unitOf(startOf(op)); })
      .Case([](FreeOp op) {
        std::optional<UnitBuffer> buffer = unitBufferOf(op.getBuffers()[0]);
        return buffer ? buffer->unit : StringAttr();
      })
      .Default([](Operation *) { return StringAttr(); });
}

Operation *startOf(AwaitOp await) {
  return await.getInflight().getDefiningOp();
}

AwaitOp awaitOf(Operation *start) {
  Value inflight = start->getResult(0);
  return inflight.use_empty() ? AwaitOp()
                              : cast<AwaitOp>(*inflight.getUsers().begin());
}

bool startsReduction(Operation *op) {
  return isa<ReduceScatterStartOp, AllReduceStartOp>(op);
}

} // namespace accel::schedule
