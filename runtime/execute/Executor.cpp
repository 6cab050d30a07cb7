//===- Executor.cpp - A rank's job in memory ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Executor.h"

#include "runtime/collectives/Progress.h"
#include "runtime/plan/Timeline.h"
#include "runtime/tensors/Kernels.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>
#include <utility>

namespace accel::run {

/// DDP and FSDP2 divide by the ranks when they reduce, not before the backward,
/// which is at GradScaler's scale. Only sums in 16 bits need the division
/// before, since they would overflow.
static double summedRanks(const plan::Plan &plan, const Mesh &mesh) {
  for (const plan::Unit &unit : plan.units)
    if (unit.reduce == plan::DType::F16 ||
        (!unit.hook.empty() && plan::hookDType(unit) == plan::DType::F16))
      return 1;
  return static_cast<double>(mesh.dataSize());
}

Executor::Executor(const plan::Plan &plan, Device &device, Groups &groups,
                   DiskIo diskIo)
    : job(plan), hardware(device), communicators(groups),
      lossScaler(plan.job.lossScaling, plan.job.gradScaler,
                 summedRanks(plan, groups.mesh())) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  const Mesh &mesh = groups.mesh();
  ownStage = mesh.position({plan::pipelineAxis});
  // Stages make their programs in different orders: what connects them is
  // connected first.
  if (!plan.stages.empty())
    for (const char *way : {"forward", "backward"}) {
      groups.over({plan::pipelineAxis}, way);
      if (plan.numChunks() > 1)
        groups.over({plan::pipelineAxis}, std::string(way) + " around");
    }
  for (size_t i = 0; i < plan.units.size(); ++i)
    if (holds(static_cast<int>(i)) && plan::isTied(plan.units[i]))
      replicasOf(static_cast<int>(i));
  std::vector<Optimizer::Unit> updated;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const plan::Unit &unit = plan.units[i];
    if (!holds(static_cast<int>(i))) {
      units.emplace_back();
      updated.emplace_back();
      continue;
    }
    units.push_back(std::make_unique<UnitStorage>(
        plan, i, mesh.position(unit.shardAxes), device));
    UnitStorage &storage = *units.back();
    Optimizer::Unit slot;
    if (unit.trainable) {
      slot.shard = storage.shard();
      slot.gradient = gradientOf(static_cast<int>(i));
      for (int state = 0; state < storage.numStates(); ++state)
        slot.states.push_back(storage.state(state));
      slot.shardBegin = storage.shardBegin();
      slot.ranges = &unit.groupRanges;
      addWorkspace(unit, slot);
    }
    updated.push_back(std::move(slot));
  }
  int64_t before = device.ownBytes();
  optimizer =
      makeOptimizer(plan.job.optimizer, updated,
                    plan.offload.states ? c10::Device(c10::DeviceType::CPU)
                                        : device.device());
  onHost.assign(plan.units.size(), -1);
  lastGather = onHost;
  writers.assign(plan.units.size(), Writer::Load);
  if (!optimizer)
    throw PlanError("optimizer '" + plan.job.optimizer.name +
                    "' is predicted only, accel-run does not execute it");
  device.discount(device.ownBytes() - before);
  std::vector<bool> called(plan.functions.size());
  for (const plan::Program &program : plan.programs)
    for (const plan::ProgramInstruction &at : program.instructions) {
      if (program.stage == ownStage &&
          at.kind == plan::ProgramInstructionKind::Call)
        called[at.function] = true;
      mostTimepoints = std::max(mostTimepoints, at.timepoint + 1);
    }
  afterHost = mostTimepoints;
  // Without states, and with the shard read in memory, there are no records.
  if (plan.offload.onDisk() && plan::diskBytes(plan, ownStage) > 0)
    disk = std::make_unique<DiskStates>(plan, ownStage, groups.rank(), device,
                                        units, afterHost + 1, diskIo);
  int64_t hostBytes = 0;
  for (const plan::Program &program : plan.programs)
    hostBytes = std::max(hostBytes, plan::hostBytes(program));
  if (hostBytes > 0) {
    valuesOnHost =
        FlatBuffer(device, plan::DType::U8, hostBytes, /*onHost=*/true);
    valuesOnHost.allocate();
  }
  for (size_t i = 0; i < plan.functions.size(); ++i)
    functions.push_back(called[i] ? std::make_unique<FunctionRunner>(
                                        plan.functions[i], device, groups)
                                  : nullptr);
  for (const plan::Program &program : plan.programs)
    programs.push_back(program.stage == ownStage
                           ? std::make_unique<ProgramRunner>(*this, program)
                           : nullptr);

  before = device.ownBytes();
  addSquareSets();
  auto onDevice = [&](double value) {
    at::Tensor scalar = hostScalar(value, c10::ScalarType::Double);
    return device.device().is_cpu() ? scalar : scalar.to(device.device());
  };
  for (size_t set = 0; set < squareGroups.size(); ++set)
    squareSums.push_back(onDevice(0));
  coefficient = plan.offload.states ? hostScalar(1, c10::ScalarType::Double)
                                    : onDevice(1);
  seed = onDevice(1);
  if (!device.device().is_cpu()) {
    deviceScaler = DeviceScaler(device.device());
    numbers = at::zeros(
        {3},
        at::TensorOptions(c10::ScalarType::Double).device(device.device()));
  }
  device.discount(device.ownBytes() - before);
  late = stepsOnDevice();
}

void Executor::addWorkspace(const plan::Unit &unit, Optimizer::Unit &slot) {
  const plan::OptimizerRule rule(job.job.optimizer);
  workspaces.resize(units.size());
  if (!rule.description ||
      rule.description->reads == plan::UpdateReads::Elements)
    return;
  slot.shape = plan::updateShape(job, unit);
  slot.layouts = units.back()->stateLayouts();
  // Muon needs none of a unit that has vectors alone.
  if (const int64_t bytes =
          plan::updateWork(rule, slot.shape, job.device).workspaceBytes) {
    workspaces.back() = FlatBuffer(hardware, plan::DType::U8, bytes);
    slot.workspace = workspaces.back().flat;
  }
  Communicator *group = communicators.over(unit.shardAxes, "reduce");
  slot.sum = [group](at::Tensor &sums) {
    if (group && sums.numel() > 0)
      group->allReduce(sums).wait();
  };
  slot.exchange = [group](at::Tensor &into, at::Tensor &from,
                          const std::vector<int64_t> &intoElements,
                          const std::vector<int64_t> &fromElements) {
    if (group)
      group->exchangeUneven(into, from, intoElements, fromElements).wait();
    else
      into.copy_(from);
  };
}

/// The host must see the norm where it decides whether a step is left out.
bool Executor::stepsOnDevice() const {
  return !hardware.device().is_cpu() &&
         ((optimizer->isSteered() && !job.offload.states) || !leavesOut());
}

/// The norm's sums are reduced over the axes that shard a unit or split a
/// parameter, one sum for each such set of axes: what ranks of an axis hold
/// alike is counted once. What a stage holds no other stage has; all ranks make
/// the sets of all units.
void Executor::addSquareSets() {
  std::map<std::string, int> sets;
  for (size_t i = 0; i < job.units.size(); ++i) {
    const plan::Unit &unit = job.units[i];
    std::vector<Squares> &ranges = squares.emplace_back();
    // What stages share is counted in the first of them.
    if (!unit.trainable || unit.copyOf >= 0)
      continue;
    const bool held = holds(static_cast<int>(i));
    const int64_t from = held ? units[i]->shardBegin() : 0;
    const int64_t to = held ? units[i]->shardEnd() : 0;
    for (int parameter : unit.parameters) {
      std::vector<std::string> axes = unit.shardAxes;
      for (const plan::AxisSplit &split : job.parameters[parameter].split)
        axes.push_back(split.axis);
      axes.push_back(plan::pipelineAxis);
      auto [at, isNew] =
          sets.emplace(communicators.mesh().groupName(axes), sets.size());
      if (isNew)
        squareGroups.push_back(
            communicators.over(axes, job.stages.empty() ? "reduce" : "norm"));
      if (!held)
        continue;
      // Gaps between parameters are zero.
      const int64_t begin = job.parameters[parameter].offset;
      if (!ranges.empty())
        ranges.back().end = std::clamp(begin, from, to) - from;
      if (ranges.empty() || ranges.back().set != at->second)
        ranges.push_back(
            {ranges.empty() ? 0 : std::clamp(begin, from, to) - from, to - from,
             at->second});
    }
    if (!ranges.empty())
      ranges.back().end = to - from;
  }
}

Communicator *Executor::replicasOf(int unit) {
  const std::vector<std::string> &axes = job.units[unit].replicateAxes;
  return plan::isTied(job.units[unit])
             ? communicators.among(plan::stagesWith(job, unit), axes, "reduce")
             : communicators.over(axes, "reduce");
}

at::Tensor &Executor::gradientOf(int unit) {
  return job.offload.states
             ? units[unit]->hostGradient()
             : units[unit]->buffer(plan::Role::ShardGradient).flat;
}

void Executor::awaitGradients(int unit) {
  if (onHost[unit] < 0)
    return;
  Progress::Waiting waiting;
  hardware.awaitOnHost(onHost[unit]);
  onHost[unit] = -1;
}

void Executor::countStep() {
  if (!counted)
    optimizer->beginStep();
  counted = true;
}

void Executor::update(int unit, InstructionTime *time) {
  if (steps.back().result.skipped)
    return;
  if (updateHook)
    updateHook(unit);
  countStep();
  if (job.offload.states)
    updateOnHost(unit, time);
  else
    updateOnDevice(unit);
  hardware.updated(unit);
  writers[unit] = Writer::Update;
}

void Executor::updateOnDevice(int unit) {
  FlatBuffer *workspace = nullptr;
  if (static_cast<size_t>(unit) < workspaces.size() &&
      workspaces[unit].flat.defined())
    workspace = &workspaces[unit];
  if (workspace) {
    workspace->allocate();
    peak.sample(hardware);
  }
  optimizer->update(unit);
  if (workspace)
    workspace->free();
}

/// What a gather fills is its stream's own memory, which waits when it is
/// freed. What every rank keeps is freed by nobody, and read until it is
/// gathered anew.
void Executor::enterGather(int unit, plan::Stream stream) {
  if (job.units[unit].whole || stream != plan::Stream::Gather)
    return hardware.enter(stream);
  switch (std::exchange(writers[unit], Writer::None)) {
  case Writer::Load:
    return hardware.enter(stream);
  case Writer::Update:
    return hardware.enterAfterUpdate(stream, unit);
  case Writer::None: // the stream has waited for it before
    return hardware.enter(stream, /*timepoint=*/-1);
  }
}

/// The device goes on with what it was given before; what it is given from now
/// on waits for the copy.
void Executor::updateOnHost(int unit, InstructionTime *time) {
  awaitGradients(unit);
  // Where another call has gathered the unit since.
  if (job.offload.parameters && lastGather[unit] >= 0)
    hardware.awaitOnHost(lastGather[unit]);
  const bool onDisk = disk && plan::recordBytes(job, job.units[unit]) > 0;
  if (onDisk)
    disk->begin(unit);
  const int copied = onDisk ? disk->timepoint() : afterHost;
  optimizer->update(unit);
  // The host has seen the unit's gradients, and so the end of what was computed
  // with its shard; a gather may have come after them.
  if (plan::readsShard(job, job.units[unit]))
    hardware.enter(plan::Stream::HostIn);
  else
    hardware.enter(plan::Stream::HostIn, lastGather[unit]);
  const bool isTimed = time && !job.offload.parameters; // it copies
  if (isTimed)
    time->streamBeginMark = hardware.mark();
  units[unit]->publish();
  if (isTimed)
    time->streamEndMark = hardware.mark();
  hardware.leave(copied);
  hardware.await(copied);
  if (onDisk)
    disk->end();
}

void Executor::publish() {
  if (published)
    return;
  published = true;
  for (const std::unique_ptr<UnitStorage> &unit : units) {
    if (!unit)
      continue;
    if (disk && plan::recordBytes(job, unit->unit()) > 0) {
      hardware.synchronize(); // the buffer is the last unit's until then
      hold(static_cast<int>(&unit - units.data()), /*changes=*/false);
    }
    unit->publish();
    if (!unit->unit().whole)
      continue;
    hardware.enter(plan::Stream::Gather);
    Pending gathered =
        unit->gather(communicators.over(unit->unit().shardAxes, "gather"));
    hardware.leave(afterHost);
    gathered.wait();
    hardware.await(afterHost);
  }
  if (disk)
    hardware.synchronize();
}

at::Tensor Executor::onDevice(const std::string &name,
                              const plan::Value &description,
                              const MakeInput &input) {
  const c10::Device device = hardware.device();
  at::Tensor from = input(name);
  if (from.sizes() != c10::IntArrayRef(description.shape))
    throw PlanError("input '" + name + "' has another shape than the data's");
  if (device.is_cpu())
    return from.to(device, scalarType(description.dtype));
  // Through pinned memory: a copy from anywhere else stops the host.
  at::Tensor pinned = at::empty(
      from.sizes(),
      at::TensorOptions(scalarType(description.dtype)).pinned_memory(true));
  pinned.copy_(from);
  at::Tensor result = at::empty_like(pinned, pinned.options().device(device));
  result.copy_(pinned, /*non_blocking=*/true);
  return result;
}

void Executor::holdBuffers(const MakeInput &input) {
  if (holdsBuffers)
    return;
  for (const plan::Value *buffer : plan::buffersOf(job, ownStage))
    held[buffer->name] = onDevice(buffer->name, *buffer, input);
  holdsBuffers = true;
}

std::vector<at::Tensor> Executor::inputsOf(const plan::Program &program,
                                           const MakeInput &input) {
  std::vector<at::Tensor> inputs;
  for (int value : program.inputs) {
    const plan::Value &description = program.values[value];
    if (description.name == "loss_seed") {
      at::Tensor tensor =
          at::empty({}, at::TensorOptions(scalarType(description.dtype))
                            .device(hardware.device()));
      tensor.copy_(seed);
      inputs.push_back(std::move(tensor));
      continue;
    }
    if (const auto buffer = held.find(description.name); buffer != held.end()) {
      inputs.push_back(buffer->second);
      continue;
    }
    try {
      inputs.push_back(onDevice(description.name, description, input));
    } catch (const PlanError &error) {
      throw PlanError("program '" + program.name + "': " + error.what());
    }
  }
  return inputs;
}

ProgramResults Executor::runProgram(ProgramRunner &program,
                                    const MakeInput &input,
                                    std::vector<InstructionTime> *times) {
  return program.run(inputsOf(program.program(), input), times);
}

void Executor::queue(
    const std::function<at::Tensor(int64_t, const std::string &)> &input,
    const std::vector<double> &learningRates, int64_t microBatch,
    InstructionTimes *times) {
  RECORD_USER_SCOPE("accel-run step");
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  publish();
  holdBuffers([&](const std::string &name) { return input(0, name); });
  if (disk)
    disk->readAhead();
  optimizer->setLearningRates(learningRates);
  firstNotFinite.clear();
  if (late) {
    if (steps.empty())
      deviceScaler.set(lossScaler);
    numbers.zero_();
  }
  steps.emplace_back().times = times;
  try {
    queueSlots(input, microBatch);
  } catch (...) {
    steps.pop_back();
    throw;
  }
}

void Executor::queueSlots(
    const std::function<at::Tensor(int64_t, const std::string &)> &input,
    int64_t microBatch) {
  Queued &step = steps.back();
  counted = false;
  arrivals.clear();
  const double parts = static_cast<double>(communicators.mesh().dataSize() *
                                           job.job.accumulation);
  if (late)
    seed.copy_(deviceScaler.scale()).div_(parts);
  else
    seed.fill_(lossScaler.scale() / parts);
  int64_t slot = 0;
  for (const auto &[index, repeat] : job.step)
    for (int64_t i = 0; i < repeat; ++i, ++slot) {
      std::vector<InstructionTime> *into = nullptr;
      if (step.times)
        into = &step.times->emplace_back();
      setDraw(microBatch, slot);
      addLoss(runProgram(
                  *programs[index],
                  [&](const std::string &name) { return input(slot, name); },
                  into)
                  .loss);
    }
  if (!job.stages.empty()) {
    queueFrames(input, microBatch);
    slot = job.job.accumulation;
  }
  step.result.loss /= std::max<int64_t>(slot, 1);
  // A stage that trains nothing counts as the others do.
  if (!step.result.skipped)
    countStep();
  if (!late) {
    lossScaler.update(step.result.skipped);
    return;
  }
  if (lossScaler.enabled())
    deviceScaler.update();
  numbers.select(0, 0).div_(std::max<int64_t>(slot, 1));
  step.late.emplace(numbers);
}

void Executor::setDraw(int64_t microBatch, int64_t slot) {
  drawn = {static_cast<uint64_t>(job.job.randomSeed),
           microBatch + slot * communicators.mesh().dataSize()};
}

void Executor::addLoss(const at::Tensor &loss) {
  if (!loss.defined())
    return;
  if (late)
    numbers.select(0, 0).add_(loss);
  else
    steps.back().result.loss += loss.item<double>();
}

void Executor::queueFrames(
    const std::function<at::Tensor(int64_t, const std::string &)> &input,
    int64_t microBatch) {
  const plan::Stage &stage = job.stages[ownStage];
  // By chunk and micro-batch.
  std::map<std::pair<int, int64_t>, ProgramRunner::Frame> frames;
  std::vector<bool> taken(stage.frames);
  InstructionTimes *times = steps.back().times;
  if (times)
    hardware.mark(); // all seconds are from here
  for (const plan::StageAction &action : stage.order) {
    const int64_t slot = action.microBatch;
    const std::pair key(action.chunk, slot);
    ProgramRunner &program =
        *programs[job.programOf(ownStage, action.chunk, slot)];
    setDraw(microBatch, slot);
    if (action.part == plan::Part::Forward) {
      const auto number = std::find(taken.begin(), taken.end(), false);
      *number = true;
      frames[key] = program.start(
          inputsOf(program.program(),
                   [&](const std::string &name) { return input(slot, name); }),
          static_cast<int>(number - taken.begin()));
    }
    const auto frame = frames.find(key);
    const size_t part = job.positionOf(action.part);
    program.run(frame->second, part, times ? &times->emplace_back() : nullptr);
    if (!program.isLast(part))
      continue;
    taken[frame->second.number] = false;
    addLoss(program.finish(frame->second).loss);
    frames.erase(frame);
  }
}

StepResult Executor::finish() {
  Queued &step = steps.front();
  StepResult result = step.result;
  if (step.late) {
    const std::vector<double> values = step.late->get();
    result.loss = values[0];
    if (!job.offload.states) { // else the host has seen them
      result.gradNorm = values[1];
      result.skipped = values[2] != 0;
    }
    if (result.skipped)
      optimizer->takeBack();
    lossScaler.update(result.skipped);
  }
  if (step.times)
    hardware.resolve(*step.times);
  steps.pop_front();
  return result;
}

EvalResult Executor::evaluate(const MakeInput &input) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  publish();
  holdBuffers(input);
  seed.fill_(1);
  // The last chunk has the loss.
  ProgramResults results;
  for (int chunk = 0; chunk < job.numChunks(); ++chunk)
    results =
        runProgram(*programs[job.evalOf(ownStage, chunk)], input, nullptr);
  EvalResult result;
  result.hasLoss = results.loss.defined();
  if (result.hasLoss)
    result.loss = results.loss.item<double>();
  if (results.predictions.defined()) {
    const at::Tensor host = results.predictions.to(at::kCPU).contiguous();
    const int64_t *data = host.const_data_ptr<int64_t>();
    result.predictions.assign(data, data + host.numel());
  }
  return result;
}

} // namespace accel::run
