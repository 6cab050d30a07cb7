//===- Plan.cpp - The plan artifact ---------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Plan.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/Saturating.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

namespace accel::plan {

namespace {
constexpr int64_t maxInt64 = std::numeric_limits<int64_t>::max();

int64_t product(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t dim : shape) {
    if (dim == 0)
      return 0;
    n = saturatingMul(n, dim);
  }
  return n;
}

constexpr const char *dtypeNames[] = {"f64", "f32", "bf16", "f16", "i64",
                                      "i32", "i16", "u8",   "i1"};
} // namespace

int64_t itemSize(DType dtype) {
  switch (dtype) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::BF16:
  case DType::F16:
  case DType::I16:
    return 2;
  case DType::U8:
  case DType::I1:
    return 1;
  }
  std::abort();
}

const char *toString(DType dtype) {
  return dtypeNames[static_cast<int>(dtype)];
}

std::optional<std::vector<StoredPart>>
storedParts(const std::string &fqn, const std::vector<std::string> &stored,
            const std::vector<int64_t> &shape) {
  if (stored.empty())
    return std::vector<StoredPart>{{fqn, shape, 0}};
  const auto starred = [](const std::string &name) {
    return name.find('*') != name.npos;
  };
  if (stored.size() == 1 && !starred(stored.front()))
    return std::vector<StoredPart>{{stored.front(), shape, 0}};
  const auto parts = static_cast<int64_t>(stored.size());
  constexpr int64_t maxParts = int64_t(1) << 24;
  if (shape.size() < 2 || shape[1] % parts || shape.front() > maxParts / parts)
    return std::nullopt;
  std::vector<int64_t> part(shape.begin() + 1, shape.end());
  part.front() /= parts;
  std::vector<StoredPart> result;
  int64_t begin = 0;
  for (int64_t i = 0; i < shape.front(); ++i)
    for (const std::string &pattern : stored) {
      const size_t star = pattern.find('*');
      if (star == pattern.npos)
        return std::nullopt;
      std::string name = pattern;
      name.replace(star, 1, std::to_string(i));
      result.push_back({std::move(name), part, begin});
      begin += product(part);
    }
  return result;
}

std::optional<DType> parseDType(const std::string &text) {
  for (int i = 0; i <= static_cast<int>(DType::I1); ++i)
    if (text == dtypeNames[i])
      return static_cast<DType>(i);
  return std::nullopt;
}

int64_t alignedBytes(int64_t bytes) {
  if (bytes > maxInt64 - alignmentBytes)
    return maxInt64 / alignmentBytes * alignmentBytes;
  return (bytes + alignmentBytes - 1) / alignmentBytes * alignmentBytes;
}

int64_t Parameter::numel() const { return product(shape); }

bool Function::draws() const {
  for (const Instruction &instruction : instructions)
    for (const Arg &arg : instruction.args)
      if (arg.kind == Arg::Kind::Key)
        return true;
  return false;
}

int64_t Function::slotBytes(int i) const {
  const Slot &slot = slots[i];
  if (slot.base != i && slot.base >= 0)
    return 0;
  return alignedBytes(saturatingMul(product(slot.shape), itemSize(slot.dtype)));
}

int64_t defaultBytes(const Value &value) {
  return value.alias >= 0 ? 0 : denseBytes(value);
}

bool isBuffer(const Plan &plan, const std::string &name) {
  return std::any_of(plan.buffers.begin(), plan.buffers.end(),
                     [&](const Buffer &buffer) { return buffer.fqn == name; });
}

std::vector<const Value *> buffersOf(const Plan &plan, int stage) {
  std::vector<const Value *> result;
  if (plan.buffers.empty())
    return result;
  std::set<std::string> seen;
  for (const Program &program : plan.programs)
    if (program.stage == stage)
      for (int value : program.inputs)
        if (const Value &input = program.values[value];
            isBuffer(plan, input.name) && seen.insert(input.name).second)
          result.push_back(&input);
  return result;
}

int64_t denseBytes(const Value &value) {
  return alignedBytes(
      saturatingMul(product(value.shape), itemSize(value.dtype)));
}

const char *toString(Instruction::Kind kind) {
  return kind == Instruction::Kind::Aten ? "aten" : "opaque";
}

const char *toString(Role role) {
  switch (role) {
  case Role::Gathered:
    return "gathered";
  case Role::Gradient:
    return "gradient";
  case Role::Receive:
    return "receive";
  case Role::ShardGradient:
    return "shard_gradient";
  }
  std::abort();
}

const char *toString(Stream stream) {
  switch (stream) {
  case Stream::Compute:
    return "compute";
  case Stream::Gather:
    return "gather";
  case Stream::Reduce:
    return "reduce";
  case Stream::Send:
    return "send";
  case Stream::HostOut:
    return "host_out";
  case Stream::HostIn:
    return "host_in";
  case Stream::Host:
    return "host";
  }
  std::abort();
}

const char *toString(ProgramInstructionKind kind) {
  switch (kind) {
  case ProgramInstructionKind::Alloc:
    return "alloc";
  case ProgramInstructionKind::Free:
    return "free";
  case ProgramInstructionKind::AllGather:
    return "all_gather";
  case ProgramInstructionKind::ReduceScatter:
    return "reduce_scatter";
  case ProgramInstructionKind::AllReduce:
    return "all_reduce";
  case ProgramInstructionKind::Await:
    return "await";
  case ProgramInstructionKind::Call:
    return "call";
  case ProgramInstructionKind::GradNorm:
    return "grad_norm";
  case ProgramInstructionKind::Optimizer:
    return "optimizer";
  case ProgramInstructionKind::Send:
    return "send";
  case ProgramInstructionKind::Receive:
    return "receive";
  case ProgramInstructionKind::Pause:
    return "pause";
  case ProgramInstructionKind::Offload:
    return "offload";
  case ProgramInstructionKind::Fetch:
    return "fetch";
  }
  std::abort();
}

Stream defaultStream(ProgramInstructionKind kind) {
  switch (kind) {
  case ProgramInstructionKind::AllGather:
    return Stream::Gather;
  case ProgramInstructionKind::ReduceScatter:
  case ProgramInstructionKind::AllReduce:
    return Stream::Reduce;
  case ProgramInstructionKind::Send:
    return Stream::Send;
  case ProgramInstructionKind::Offload:
    return Stream::HostOut;
  case ProgramInstructionKind::Fetch:
    return Stream::HostIn;
  default:
    return Stream::Compute;
  }
}

const char *toString(Part part) {
  switch (part) {
  case Part::Forward:
    return "forward";
  case Part::Backward:
    return "backward";
  case Part::Settle:
    return "settlement";
  case Part::Update:
    return "update";
  case Part::Weights:
    return "weights' backward";
  }
  return "";
}

const std::vector<Part> &partsBy(const std::string &schedule) {
  static const std::vector<Part> twoParts = {Part::Forward, Part::Backward},
                                 chunked = {Part::Forward, Part::Backward,
                                            Part::Settle, Part::Update},
                                 split = {Part::Forward, Part::Backward,
                                          Part::Weights},
                                 both = {Part::Forward, Part::Backward,
                                         Part::Weights, Part::Settle,
                                         Part::Update};
  return schedule == zeroBubbleH1      ? split
         : schedule == zeroBubbleV     ? both
         : schedule == interleaved1F1B ? chunked
                                       : twoParts;
}

const char *scheduleOf(bool splitBackward, int64_t chunks, bool forwardsFirst) {
  if (forwardsFirst)
    return allForwardsFirst;
  if (splitBackward)
    return chunks > 1 ? zeroBubbleV : zeroBubbleH1;
  return chunks > 1 ? interleaved1F1B : oneFOneB;
}

bool splitsBackward(const std::string &schedule) {
  return schedule == zeroBubbleH1 || schedule == zeroBubbleV;
}

size_t Plan::positionOf(Part part) const {
  const std::vector<Part> &parts = partsBy(schedule);
  return std::find(parts.begin(), parts.end(), part) - parts.begin();
}

std::string chunkName(int stage, int chunk) {
  return "stage " + std::to_string(stage) +
         (chunk > 0 ? ", chunk " + std::to_string(chunk) : "");
}

size_t endOfForward(const Program &program) {
  size_t i = 0;
  while (i < program.instructions.size() &&
         program.instructions[i].kind != ProgramInstructionKind::Pause)
    ++i;
  return i;
}

std::vector<size_t> partsOf(const Program &program) {
  std::vector<size_t> begins = {0};
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].kind == ProgramInstructionKind::Pause)
      begins.push_back(i);
  begins.push_back(program.instructions.size());
  return begins;
}

int64_t storageBytes(const Program &program, const std::vector<int> &values) {
  std::set<int> storages;
  int64_t bytes = 0;
  for (int value : values)
    if (const int root = rootOf(program, value); storages.insert(root).second)
      bytes += program.values[root].bytes;
  return bytes;
}

Role defaultRole(ProgramInstructionKind kind) {
  switch (kind) {
  case ProgramInstructionKind::ReduceScatter:
    return Role::Gradient;
  case ProgramInstructionKind::AllReduce:
  case ProgramInstructionKind::GradNorm:
  case ProgramInstructionKind::Optimizer:
  case ProgramInstructionKind::Offload:
    return Role::ShardGradient;
  default:
    return Role::Gathered;
  }
}

int64_t Plan::ranks() const {
  int64_t n = 1;
  for (const Axis &axis : axes)
    n = saturatingMul(n, axis.size);
  return n;
}

int64_t Plan::axisSize(const std::string &name) const {
  for (const Axis &axis : axes)
    if (axis.name == name)
      return axis.size;
  return 1;
}

int64_t Plan::groupSize(const std::vector<std::string> &names) const {
  int64_t n = 1;
  for (const std::string &name : names)
    n = saturatingMul(n, axisSize(name));
  return n;
}

int64_t Plan::shardRanks(const Unit &unit) const {
  return groupSize(unit.shardAxes);
}

int Plan::numStages() const {
  return std::max<int>(1, static_cast<int>(stages.size()));
}

int Plan::numChunks() const {
  return stages.empty() ? 1 : static_cast<int>(stages[0].further.size()) + 1;
}

ChunkLayout chunkLayoutOf(const Plan &plan) {
  return {plan.numStages(), plan.numChunks(), plan.schedule};
}

static const Chunk &chunkOf(const Stage &stage, int chunk) {
  return chunk == 0 ? stage : stage.further[chunk - 1];
}

const std::vector<std::pair<int, int64_t>> &Plan::stepOf(int stage,
                                                         int chunk) const {
  return stages.empty() ? step : chunkOf(stages[stage], chunk).step;
}

int Plan::evalOf(int stage, int chunk) const {
  return stages.empty() ? eval : chunkOf(stages[stage], chunk).eval;
}

std::vector<std::pair<int, int64_t>> Plan::stepsOf(int stage) const {
  std::vector<std::pair<int, int64_t>> all;
  for (int chunk = 0; chunk < numChunks(); ++chunk)
    for (const auto &part : stepOf(stage, chunk))
      all.push_back(part);
  return all;
}

ChunkPlace placeBeside(const Plan &plan, const Program &program, int shift) {
  const ChunkLayout layout = chunkLayoutOf(plan);
  const int at = layout.numberOf(program.stage, program.chunk) + shift;
  if (at < 0 || at >= layout.count())
    return {};
  const int chunk = layout.chunkOf(at);
  return {layout.stageOf(at), chunk,
          layout.returns ? chunk == program.chunk && chunk % 2 == 1
                         : chunk != program.chunk,
          true};
}

bool staysInStage(const Plan &plan, const Program &program,
                  const ProgramInstruction &instruction) {
  const bool receives = instruction.kind == ProgramInstructionKind::Receive;
  if (!receives && instruction.kind != ProgramInstructionKind::Send)
    return false;
  const ChunkPlace other = placeBeside(
      plan, program, receives ? -instruction.shift : instruction.shift);
  return other.exists && other.stage == program.stage;
}

int Plan::programOf(int stage, int chunk, int64_t microBatch) const {
  for (const auto &[program, repeat] : stepOf(stage, chunk)) {
    if (microBatch < repeat)
      return program;
    microBatch -= repeat;
  }
  return -1;
}

std::vector<int64_t> ownShape(const Plan &plan, const Parameter &parameter) {
  std::vector<int64_t> shape = parameter.shape;
  for (const AxisSplit &split : parameter.split)
    shape[split.dim] /= plan.axisSize(split.axis);
  return shape;
}

int64_t ownNumel(const Plan &plan, const Parameter &parameter) {
  return product(ownShape(plan, parameter));
}

bool isSplitOver(const Plan &plan, const Unit &unit, const std::string &axis) {
  return !unit.parameters.empty() &&
         std::all_of(
             unit.parameters.begin(), unit.parameters.end(), [&](int p) {
               const std::vector<AxisSplit> &split = plan.parameters[p].split;
               return std::any_of(
                   split.begin(), split.end(),
                   [&](const AxisSplit &s) { return s.axis == axis; });
             });
}

int ownerOf(const Plan &plan, int unit) {
  return plan.units[unit].copyOf < 0 ? unit : plan.units[unit].copyOf;
}

int unitIn(const Plan &plan, int parameter, int stage) {
  const int owner = plan.parameters[parameter].unit;
  if (plan.units[owner].stage == stage)
    return owner;
  for (size_t i = 0; i < plan.units.size(); ++i)
    if (plan.units[i].copyOf == owner && plan.units[i].stage == stage)
      return static_cast<int>(i);
  return -1;
}

std::vector<int64_t> stagesWith(const Plan &plan, int unit) {
  const int owner = ownerOf(plan, unit);
  std::vector<int64_t> stages = {plan.units[owner].stage};
  for (const Unit &other : plan.units)
    if (other.copyOf == owner)
      stages.push_back(other.stage);
  std::sort(stages.begin(), stages.end());
  return stages;
}

bool isTied(const Unit &unit) {
  return std::find(unit.replicateAxes.begin(), unit.replicateAxes.end(),
                   pipelineAxis) != unit.replicateAxes.end();
}

int64_t shardNumel(const Plan &plan, const Unit &unit) {
  return unit.padded / plan.shardRanks(unit);
}

int64_t roleBytes(const Plan &plan, const Unit &unit, Role role) {
  switch (role) {
  case Role::Gathered:
    return alignedBytes(saturatingMul(unit.padded, itemSize(unit.gather)));
  case Role::Gradient:
    return alignedBytes(saturatingMul(unit.padded, itemSize(unit.reduce)));
  case Role::Receive:
    if (!unit.hook.empty())
      return alignedBytes(
          saturatingMul(shardNumel(plan, unit), itemSize(hookDType(unit))));
    return alignedBytes(saturatingMul(unit.padded - shardNumel(plan, unit),
                                      itemSize(unit.reduce)));
  case Role::ShardGradient:
    return alignedBytes(
        saturatingMul(shardNumel(plan, unit), itemSize(unit.storage)));
  }
  std::abort();
}

Stream memoryOf(const Unit &unit, Role role) {
  return role == Role::Gathered && !unit.whole ? Stream::Gather
                                               : Stream::Compute;
}

DType hookDType(const Unit &unit) {
  return unit.hook == "fp16" ? DType::F16 : DType::BF16;
}

bool readsShard(const Plan &plan, const Unit &unit) {
  return plan.shardRanks(unit) == 1 && unit.gather == unit.storage &&
         !plan.offload.parameters;
}

bool writesShardGradient(const Plan &plan, const Unit &unit) {
  return plan.shardRanks(unit) == 1 && unit.reduce == unit.storage;
}

} // namespace accel::plan
