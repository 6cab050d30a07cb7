//===- Verifiers.cpp - Verifiers of the schedule dialect --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What one operation can know. What takes the whole program (lifetimes,
// awaits, peaks) is the verify-schedule pass's.
//
//===----------------------------------------------------------------------===//
#include "dialects/Schedule/Schedule.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel::schedule;

static LogicalResult verifyBytes(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t bytes) {
  if (bytes < 0 || bytes % 64)
    return emitError() << bytes << " bytes are not a multiple of 64";
  return success();
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t bytes, Type tensor) {
  if (failed(verifyBytes(emitError, bytes)))
    return failure();
  if (!tensor)
    return success();
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  if (!ranked || !ranked.hasStaticShape())
    return emitError() << "an activation is a tensor of static shape, not "
                       << tensor;
  return success();
}

LogicalResult InflightType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> bytes) {
  if (bytes.empty())
    return emitError() << "a collective works on at least one buffer";
  for (int64_t each : bytes)
    if (failed(verifyBytes(emitError, each)))
      return failure();
  return success();
}

/// The sharding dialect's collectives.
static bool canStart(Operation *op) {
  return llvm::is_contained({"sharding.all_reduce", "sharding.all_gather",
                             "sharding.reduce_scatter", "sharding.all_to_all",
                             "sharding.permute", "sharding.dispatch",
                             "sharding.combine"},
                            op->getName().getStringRef());
}

LogicalResult ScheduleDialect::verifyOperationAttribute(Operation *op,
                                                        NamedAttribute attr) {
  if (attr.getName() != startAttr)
    return success();
  if (!isa<StringAttr>(attr.getValue()))
    return op->emitOpError() << startAttr << " is " << attr.getValue()
                             << ", expected the reason as text";
  if (!canStart(op))
    return op->emitOpError()
           << "cannot be awaited later; " << startAttr
           << " is for all_reduce, all_gather, reduce_scatter, all_to_all, "
              "permute, dispatch and combine of the sharding dialect";
  if (!op->hasOneUse() || !isa<AwaitExchangeOp>(*op->user_begin()))
    return op->emitOpError() << "is started, and something else than one "
                                "schedule.await_exchange reads it";
  return success();
}

LogicalResult AwaitExchangeOp::verify() {
  Operation *start = getExchange().getDefiningOp();
  if (!start || !start->hasAttr(startAttr))
    return emitOpError() << "awaits a value that no exchange with " << startAttr
                         << " makes";
  if (start->getBlock() != (*this)->getBlock())
    return emitOpError() << "awaits an exchange of another block";
  const bool ofCopy =
      llvm::is_contained({"sharding.all_reduce", "sharding.combine"},
                         start->getName().getStringRef());
  if (getValue() ? getValue() != start->getOperand(0) : !ofCopy)
    return emitOpError() << "must name the value that the exchange reads, "
                            "unless it is an all_reduce or a combine";
  return success();
}

static int64_t bytesOf(Value value) {
  return cast<BufferType>(value.getType()).getBytes();
}

/// `value` must be a buffer of a unit, not an activation.
static LogicalResult verifyUnitBuffer(Operation *op, Value value,
                                      StringRef what) {
  if (cast<BufferType>(value.getType()).getTensor())
    return op->emitOpError("takes an activation as ")
           << what << ", expected a unit's buffer";
  return success();
}

static LogicalResult verifyInflight(Operation *op, InflightType type,
                                    ArrayRef<Value> buffers) {
  SmallVector<int64_t> bytes = llvm::map_to_vector(buffers, bytesOf);
  if (type.getBytes() != ArrayRef<int64_t>(bytes)) {
    InFlightDiagnostic diagnostic = op->emitOpError("gives ") << type;
    diagnostic << ", but its buffers have ";
    llvm::interleave(
        bytes, [&](int64_t n) { diagnostic << n; },
        [&] { diagnostic << ", "; });
    return diagnostic << " bytes";
  }
  return success();
}

static LogicalResult verifyAxes(Operation *op, ArrayAttr axes) {
  llvm::StringSet<> seen;
  for (auto axis : axes.getAsValueRange<StringAttr>())
    if (!seen.insert(axis).second)
      return op->emitOpError("names the mesh axis '") << axis << "' twice";
  return success();
}

LogicalResult ProgramOp::verify() {
  const int64_t persistent = getPersistentBytes(), peak = getPeakBytes();
  if (persistent < 0 || peak < persistent)
    return emitOpError("has a peak of ")
           << peak << " bytes, below its persistent " << persistent;
  const int64_t step = getPeakInstruction();
  if (step < -1)
    return emitOpError("has its peak at the impossible instruction ") << step;
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  Block &block = getBody().front();
  const size_t inputs = getInputs().size();
  if (block.getNumArguments() != inputs + getCarried().size())
    return emitOpError("has ")
           << block.getNumArguments() << " arguments but names "
           << inputs + getCarried().size();
  llvm::StringSet<> names;
  for (auto name : getInputs().getAsValueRange<StringAttr>())
    if (!names.insert(name).second)
      return emitOpError("has two inputs '") << name << "'";
  llvm::DenseSet<Attribute> carried;
  for (Attribute each : getCarried())
    if (!carried.insert(each).second)
      return emitOpError("is carried the same buffer twice: ") << each;
  for (BlockArgument argument : block.getArguments()) {
    auto type = dyn_cast<BufferType>(argument.getType());
    if (!type)
      return emitOpError("has an argument that is no buffer: ")
             << argument.getType();
    if ((argument.getArgNumber() < inputs) !=
        static_cast<bool>(type.getTensor()))
      return emitOpError("argument ")
             << argument.getArgNumber()
             << (type.getTensor()
                     ? " is an activation, expected a unit's buffer"
                     : " is a unit's buffer, expected an activation");
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  if (getLoss()) {
    auto type = dyn_cast_or_null<RankedTensorType>(
        cast<BufferType>(getLoss().getType()).getTensor());
    if (!type || type.getRank() != 0 || !type.getElementType().isF32())
      return emitOpError("expects a 0-d f32 as the loss, not ")
             << getLoss().getType();
  }
  if (getPredictions()) {
    auto type = dyn_cast_or_null<RankedTensorType>(
        cast<BufferType>(getPredictions().getType()).getTensor());
    if (!type || type.getRank() != 1 || !type.getElementType().isInteger(64))
      return emitOpError("expects a 1-d i64 as the predictions, not ")
             << getPredictions().getType();
  }
  for (Value kept : getKept())
    if (failed(verifyUnitBuffer(*this, kept, "what it keeps")))
      return failure();
  return success();
}

LogicalResult AllocOp::verify() {
  return verifyUnitBuffer(*this, getBuffer(), "its result");
}

LogicalResult FreeOp::verify() {
  if (getBuffers().empty())
    return emitOpError("frees nothing");
  if (getBuffers().size() == 1)
    return success();
  for (Value buffer : getBuffers())
    if (!cast<BufferType>(buffer.getType()).getTensor())
      return emitOpError("frees a unit's buffer together with others");
  return success();
}

LogicalResult AllGatherStartOp::verify() {
  if (failed(verifyAxes(*this, getAxes())) ||
      failed(verifyUnitBuffer(*this, getBuffer(), "its buffer")))
    return failure();
  return verifyInflight(*this, getInflight().getType(), {getBuffer()});
}

LogicalResult ReduceScatterStartOp::verify() {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  SmallVector<Value> buffers = {getGradient(), getShard()};
  if (getReceive())
    buffers.push_back(getReceive());
  for (Value buffer : buffers)
    if (failed(verifyUnitBuffer(*this, buffer, "its buffer")))
      return failure();
  if (getAlgorithm() != "direct" && getAlgorithm() != "all_to_all")
    return emitOpError("has the unknown algorithm '")
           << getAlgorithm() << "', expected direct or all_to_all";
  if (getReceive() && getAlgorithm() == "direct")
    return emitOpError("by \"direct\" needs no buffer to receive into");
  if (getReceive() && bytesOf(getReceive()) >= bytesOf(getGradient()))
    return emitOpError("receives into ")
           << bytesOf(getReceive())
           << " bytes, the pieces of the other ranks are less than the "
           << bytesOf(getGradient()) << " of all gradients";
  return verifyInflight(*this, getInflight().getType(), buffers);
}

LogicalResult AllReduceStartOp::verify() {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  SmallVector<Value> buffers = {getShard()};
  if (getReceive())
    buffers.push_back(getReceive());
  for (Value buffer : buffers)
    if (failed(verifyUnitBuffer(*this, buffer, "its buffer")))
      return failure();
  return verifyInflight(*this, getInflight().getType(), buffers);
}

LogicalResult OffloadStartOp::verify() {
  if (failed(verifyUnitBuffer(*this, getShard(), "its buffer")))
    return failure();
  return verifyInflight(*this, getInflight().getType(), {getShard()});
}

LogicalResult SaveStartOp::verify() {
  if (getValues().empty())
    return emitOpError("copies nothing");
  for (Value value : getValues())
    if (!cast<BufferType>(value.getType()).getTensor())
      return emitOpError("copies a unit's buffer, expected an activation");
  if (getInflight().getType().getBytes().size() != getValues().size())
    return emitOpError("gives ") << getInflight().getType() << " for "
                                 << getValues().size() << " values";
  return success();
}

SaveStartOp FetchStartOp::getSave() {
  return getSaved().getDefiningOp<SaveStartOp>();
}

LogicalResult FetchStartOp::verify() {
  if (!getSave())
    return emitOpError("fetches what no schedule.save_start has copied");
  if (getSaved().getType() != getInflight().getType())
    return emitOpError("gives ") << getInflight().getType() << ", on the host "
                                 << "are " << getSaved().getType();
  return success();
}

LogicalResult AwaitFetchOp::verify() {
  auto start = getInflight().getDefiningOp<FetchStartOp>();
  if (!start)
    return emitOpError("awaits something else than a schedule.fetch_start");
  SaveStartOp save = start.getSave();
  if (!save || save.getValues().size() != getValues().size())
    return emitOpError("gives ")
           << getValues().size() << " values, another number was saved";
  for (auto [saved, value] : llvm::zip(save.getValues(), getValues()))
    if (cast<BufferType>(saved.getType()).getTensor() !=
        cast<BufferType>(value.getType()).getTensor())
      return emitOpError("gives ")
             << value.getType() << " for a saved " << saved.getType();
  return verifyInflight(*this, getInflight().getType(),
                        llvm::to_vector_of<Value>(getValues()));
}

/// One stage further, or one back.
static LogicalResult verifyMessage(Operation *op, Value value, int64_t shift) {
  if (!cast<BufferType>(value.getType()).getTensor())
    return op->emitOpError("moves a unit's buffer, expected an activation");
  if (shift != 1 && shift != -1)
    return op->emitOpError("moves an activation by ")
           << shift << " stages, expected 1 or -1";
  return success();
}

LogicalResult SendStartOp::verify() {
  if (failed(
          verifyMessage(*this, getValue(), static_cast<int64_t>(getShift()))))
    return failure();
  return verifyInflight(*this, getInflight().getType(), {getValue()});
}

LogicalResult HandOverOp::verify() {
  return verifyMessage(*this, getValue(), static_cast<int64_t>(getShift()));
}

LogicalResult ReceiveOp::verify() {
  return verifyMessage(*this, getValue(), static_cast<int64_t>(getShift()));
}

LogicalResult AwaitOp::verify() {
  SmallVector<Value> buffers(getBuffers().begin(), getBuffers().end());
  for (Value buffer : buffers)
    if (failed(verifyUnitBuffer(*this, buffer, "its result")))
      return failure();
  return verifyInflight(*this, getInflight().getType(), buffers);
}

LogicalResult CallOp::verify() {
  const int64_t numInputs = getInputs().size();
  const int64_t numOutputs = getOutputs().size();
  for (ValueRange values : {ValueRange(getInputs()), ValueRange(getOutputs())})
    for (Value value : values)
      if (!cast<BufferType>(value.getType()).getTensor())
        return emitOpError("passes a unit's buffer as an activation");
  for (ValueRange values : {ValueRange(getReads()), ValueRange(getWrites())})
    for (Value value : values)
      if (failed(verifyUnitBuffer(*this, value, "what it reads or writes")))
        return failure();
  llvm::SmallSet<int64_t, 8> positions;
  for (int64_t position : getConsumes())
    if (position < 0 || position >= numInputs)
      return emitOpError("consumes input ")
             << position << ", it has " << numInputs;
    else if (!positions.insert(position).second)
      return emitOpError("consumes input ") << position << " twice";
  positions.clear();
  for (int64_t position : getDrops())
    if (position < 0 ||
        position >= numOutputs + static_cast<int64_t>(getDrops().size()) ||
        !positions.insert(position).second)
      return emitOpError("drops the impossible result ") << position;
  if (static_cast<int64_t>(getNames().size()) != numOutputs)
    return emitOpError("has ")
           << numOutputs << " results but names " << getNames().size();
  if (!getAliases().empty() &&
      static_cast<int64_t>(getAliases().size()) != numOutputs)
    return emitOpError("has ")
           << numOutputs << " results but aliases for " << getAliases().size();
  for (auto [i, alias] : llvm::enumerate(getAliases())) {
    if (alias < -1 || alias >= numInputs + numOutputs ||
        alias == numInputs + static_cast<int64_t>(i))
      return emitOpError("result ")
             << i << " shares the storage of the impossible value " << alias;
    if (alias == -1)
      continue;
    if (bytesOf(getOutputs()[i]) != 0)
      return emitOpError("result ") << i << " shares a storage but owns "
                                    << bytesOf(getOutputs()[i]) << " bytes";
    if (alias >= numInputs && getAliases()[alias - numInputs] != -1)
      return emitOpError("result ")
             << i << " shares the storage of a result that owns none";
  }
  if (getParams().empty() && !getReads().empty())
    return emitOpError("reads buffers without parameters");
  if (getGradients().empty() != getWrites().empty())
    return emitOpError(getWrites().empty()
                           ? "has gradients but nothing to write them to"
                           : "writes buffers without gradients");
  const int64_t ownPeak = getOwnPeak(), peak = getPeak();
  if (ownPeak < 0 || peak < ownPeak)
    return emitOpError("has a peak of ")
           << peak << " bytes and one of " << ownPeak << " without workspaces";
  return success();
}
