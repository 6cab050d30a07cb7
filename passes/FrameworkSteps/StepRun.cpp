//===- StepRun.cpp - One step, issued to the engine -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"

namespace accel {

void StepRun::begin() {
  if (records()) {
    tensors.own.assign(model.calls.size(), {});
    tensors.copies.assign(model.calls.size(), -1);
    tensors.value.assign(model.values.size(), -1);
    tensors.valueGradient = tensors.value;
    tensors.gradient.assign(model.parameters.size(), -1);
    tensors.waiting.assign(model.parameters.size(), -1);
  }
  // What of a quantised base is an attribute of its parameters or buffers: no
  // wrapper shards it, and it is there before the optimizer is.
  for (const StepParameter &parameter : model.parameters)
    if (parameter.replicatedBytes > 0)
      engine.alloc(Holding::Parameters, parameter.replicatedBytes);
  allocatePersistent();
  for (const StepValue &value : model.values)
    if (value.buffer)
      engine.alloc(Holding::Buffers, value.bytes);
  allocateReference();
  persistent = engine.total();
  const int64_t count = candidate.accumulation;
  for (size_t c = 0; c < model.calls.size(); ++c) {
    const SegmentVariant &v = layout.variant(static_cast<int>(c));
    recomputed += count * layout.calls[c].recompute;
    hostBytes += offloadedBytes(static_cast<int>(c));
    if (!v.savesParameterCopies)
      copiesHeld += v.parameterCopyBytes;
  }
}

void StepRun::computeGradients() {
  const int64_t count = candidate.accumulation;
  microBatch = {true, count == 1};
  runMicroBatch();
  microBatch = {false, false};
  engine.repeat(
      count - 2, [&](int64_t) { runMicroBatch(); }, /*samePlaces=*/true);
  if (count > 1) {
    microBatch = {false, true};
    runMicroBatch();
  }
}

void StepRun::updateWeights() {
  engine.at(-1, Place::Part::Update);
  const Picoseconds start = engine.computed();
  if (records())
    engine.recorder->makeStates();
  update();
  optimizer = engine.computed() - start;
  warm = true;
  if (records())
    engine.recorder->endStep();
}

void StepRun::runMicroBatch() {
  runForward();
  runBackward();
}

void StepRun::runForward() {
  const std::vector<Block> &blocks = layout.blocks;
  const int count = static_cast<int>(blocks.size());
  // The batch itself; the next one replaces it.
  for (const StepValue &value : model.values)
    if (value.producer < 0 && !value.buffer)
      engine.alloc(Holding::Buffers, value.bytes);
  scoreCompletions();
  engine.at(-1, Place::Part::Forward);
  beginForward();
  for (int b = 0; b < count;) {
    const int run = std::max(1, blocks[b].alike - reachForward());
    engine.repeat(run, [&](int64_t i) { forwardBlock(blocks[b + i]); });
    b += run;
  }
  endForward();
  {
    const RecordingPause quiet(engine);
    engine.free(Holding::Activations, copiesHeld);
    if (records())
      dropCopies();
  }
  outputs = returnOutputs();
  lossForward();
}

void StepRun::runBackward() {
  const std::vector<Block> &blocks = layout.blocks;
  const int count = static_cast<int>(blocks.size());
  beginBackward();
  for (int b = count - 1; b >= 0;) {
    // Blocks down to the first of this run of equal ones.
    int first = b;
    while (first > 0 && blocks[first - 1].alike == blocks[first].alike + 1)
      --first;
    int run = b - first + 1 - reachBackward();
    if (run < 1 || !foldsBackward())
      run = 1;
    engine.repeat(run, [&](int64_t i) { backwardBlock(blocks[b - i]); });
    b -= run;
  }
  engine.at(-1, Place::Part::Reduce);
  endBackward();
  engine.free(Holding::Logits, outputs);
  for (const StepValue &value : model.values) {
    if (value.buffer)
      continue; // it stays
    if (value.producer < 0) {
      engine.free(Holding::Buffers, value.bytes);
    } else if (model.kinds[model.calls[value.producer].kind].loss) {
      const RecordingPause quiet(engine);
      const auto index = static_cast<int>(&value - model.values.data());
      engine.free(Holding::Activations, value.bytes, poolOfValue(index));
      if (records())
        engine.recorder->drop(tensors.value[index]);
    }
  }
}

/// The model returns its logits beside the loss; wrappers convert them to
/// fp32. Bytes that the training loop keeps.
int64_t StepRun::returnOutputs() {
  const int64_t logits = candidate.lossChunks == 1 ? logitsBytes() : 0;
  if (candidate.preference.logProbabilities)
    return 0; // the loss reads them, and its figures have them
  int64_t kept = logits;
  if (returnsWideLogits()) {
    kept = 2 * logits; // the wrapper finds nothing to convert
  } else if (candidate.dtypes.outputFloat &&
             plan::itemSize(candidate.dtypes.compute) == 2) {
    kept = 2 * logits;
    // Two tensors, each of which may take a block that the loss has freed.
    engine.alloc(Holding::Logits, logits);
    engine.transient(Holding::Logits, kept);
    engine.free(Holding::Logits, logits);
  }
  if (!candidate.holdsOutputs)
    return 0;
  engine.alloc(Holding::Logits, kept);
  return kept;
}

void StepRun::forwardBlock(const Block &block) {
  engine.at(block.begin, Place::Part::Forward);
  beforeForward(block);
  for (int c = block.begin; c < block.end; ++c) {
    engine.at(c, Place::Part::Forward);
    beforeForwardCall(c);
    forwardCall(c);
    afterForwardCall(c);
  }
  engine.at(block.end - 1, Place::Part::Forward);
  afterForward(block);
}

void StepRun::backwardBlock(const Block &block) {
  const int last = block.end - 1;
  engine.at(last, Place::Part::Backward);
  const int64_t peak = lossPeak(last);
  const bool lossFirst =
      candidate.lossOutside || hooksLogits() || takesLogProbabilities(last);
  if (!lossFirst)
    beforeBackward(block);
  {
    const RecordingPause quiet(engine);
    engine.transient(holdingOf(last), peak, poolOf(last));
    if (records())
      recordLoss(last, peak);
  }
  if (lossFirst)
    beforeBackward(block);
  for (int c = block.end - 1; c >= block.begin; --c) {
    engine.at(c, Place::Part::Backward);
    beforeBackwardCall(c);
    backwardCall(c);
    gradientsReady(c);
  }
  engine.at(block.begin, Place::Part::Backward);
  afterBackward(block);
}

/// What a head saves of its norm: all but the copies of the logits.
int64_t StepRun::besideLogits(int call) const {
  const int64_t logits = layout.kind(call).logitsBytes;
  return logits > 0 ? layout.variant(call).savedBytes % logits : 0;
}

int64_t StepRun::offloadedBytes(int call) const {
  if (!candidate.offloadActivations[call])
    return 0;
  int64_t bytes = 0;
  for (int i : layout.kind(call).inputGradients) {
    const int value = model.calls[call].inputs[i];
    if (layout.variant(call).savesInput[i] && layout.savedUntil[value] == call)
      bytes += model.values[value].bytes;
  }
  return bytes;
}

/// The value stays after its last reader in the forward.
bool StepRun::staysOnDevice(int call, int value) const {
  if (layout.savedUntil[value] < 0)
    return false;
  return !(candidate.offloadActivations[call] &&
           layout.savedUntil[value] == call && model.values[value].gradient);
}

void StepRun::forwardCall(int c) {
  const StepCall &call = model.calls[c];
  const SegmentVariant &v = layout.variant(c);
  const Holding holding = holdingOf(c);
  engine.at(c, Place::Part::Forward);
  const RecordingPause quiet(engine);
  const bool chunked = candidate.lossChunks > 1 && layout.kind(c).loss;
  int64_t peak = forwardPeak(c);
  if (chunked) {
    // A part's logits become their own gradient, in place, beside the gradients
    // of the head's weight and of the input.
    engine.alloc(Holding::Activations, besideLogits(c), poolOf(c));
    peak = layout.kind(c).logitsBytes / candidate.lossChunks +
           layout.kind(c).inputGradientBytes + layout.calls[c].freshGradients +
           layout.headCastBytes(c);
  }
  const Pool pool = poolOf(c);
  const GraphCopies copies = copiesOf(c);
  engine.transient(holding, peak + copies.held + copies.passing, pool);
  engine.alloc(Holding::Activations, copies.held, pool);
  if (!chunked)
    engine.alloc(holding, savedBytes(c), pool);
  if (records())
    recordForward(c, peak);
  engine.call(layout.calls[c].forward, layout.calls[c].forwardExchange);
  // Autocast's cache keeps copies of parameters that nobody saves.
  if (!v.savesParameterCopies)
    engine.alloc(Holding::Activations, v.parameterCopyBytes);
  for (int value : call.outputs)
    engine.alloc(Holding::Activations, model.values[value].bytes, pool);
  if (const int64_t bytes = offloadedBytes(c)) {
    // save_on_cpu copies on the compute stream.
    engine.overhead(layout.hostTime(static_cast<double>(bytes)),
                    Cause::HostOut);
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int value = call.inputs[i];
    if (model.values[value].producer >= 0 && layout.lastReader[value] == c &&
        !staysOnDevice(c, value))
      freeValue(value);
  }
  for (int value : call.outputs)
    if (layout.lastReader[value] < 0 && layout.savedUntil[value] < 0 &&
        !layout.kind(c).loss)
      freeValue(value);
}

void StepRun::freeValue(int value) {
  engine.free(Holding::Activations, model.values[value].bytes,
              poolOfValue(value));
  if (records())
    engine.recorder->drop(tensors.value[value]);
}

void StepRun::backwardCall(int c) {
  const StepCall &call = model.calls[c];
  const SegmentKind &kind = layout.kind(c);
  engine.at(c, Place::Part::Backward);
  const RecordingPause quiet(engine);
  const bool chunked = candidate.lossChunks > 1 && kind.loss;
  const bool differentiated =
      kind.parameterGradientBytes > 0 || kind.inputGradientBytes > 0;
  const Pool pool = poolOf(c);
  const GraphCopies copies = copiesOf(c);
  if (const int64_t bytes = offloadedBytes(c)) {
    for (int i : kind.inputGradients)
      if (const int value = call.inputs[i];
          layout.variant(c).savesInput[i] && layout.savedUntil[value] == c)
        engine.alloc(Holding::Activations, model.values[value].bytes,
                     poolOfValue(value));
    engine.overhead(layout.hostTime(static_cast<double>(bytes)), Cause::HostIn);
  }
  int64_t peak = 0;
  if (differentiated) {
    peak = backwardPeak(c);
    if (chunked)
      peak = kind.inputGradientBytes + layout.calls[c].freshGradients;
    if (const int64_t sums = layout.calls[c].summedGradients) {
      // The node that made the last one has released what it read.
      int64_t read = 0;
      for (int value : call.outputs)
        read += model.values[value].gradient ? model.values[value].gradientBytes
                                             : 0;
      peak = std::max(peak, kind.inputGradientBytes + 2 * sums - read);
    }
    engine.transient(holdingOf(c), peak + copies.tangents, pool);
    engine.call(layout.calls[c].backward, layout.calls[c].backwardExchange);
  }
  if (records())
    recordBackward(c, peak);
  // What it released is gone before what it leaves is counted: the peak in
  // between is the variant's.
  if (chunked)
    engine.free(Holding::Activations, besideLogits(c), pool);
  else
    engine.free(holdingOf(c), savedBytes(c), pool);
  engine.free(Holding::Activations, copies.held, pool);
  for (int value : call.outputs) {
    if (model.values[value].gradient)
      engine.free(Holding::Activations, model.values[value].gradientBytes,
                  poolOfGradient(value));
    if (layout.savedUntil[value] == c && !kind.loss)
      engine.free(Holding::Activations, model.values[value].bytes,
                  poolOfValue(value));
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int value = call.inputs[i];
    if (layout.savedUntil[value] == c && model.values[value].producer >= 0)
      engine.free(Holding::Activations, model.values[value].bytes,
                  poolOfValue(value));
  }
  for (int i : kind.inputGradients)
    if (layout.firstGradient[call.inputs[i]] == c)
      engine.alloc(Holding::Activations,
                   model.values[call.inputs[i]].gradientBytes, pool);
  if (differentiated && !gradientsStay()) {
    engine.alloc(Holding::Gradients, layout.calls[c].freshGradients, pool);
  } else if (differentiated) {
    engine.alloc(Holding::Gradients, layout.calls[c].waitingGradients, pool);
    engine.free(Holding::Gradients, layout.calls[c].awaitedGradients, pool);
  }
}

void StepRun::runOptimizer(bool onHost) {
  double parameters = 0, gradients = 0;
  int64_t states = 0, trained = 0, updates = 0, coded = 0;
  for (const UnitSizes &unit : layout.units) {
    if (unit.trainablePadded == 0)
      continue;
    parameters += static_cast<double>(unit.trainedStored);
    gradients += static_cast<double>(unit.shardGradient ? unit.shardGradient
                                                        : unit.reduceOutput);
    states += unit.stateBytes + unit.pagedBytes;
    trained += unit.trainedBytes;
    updates += unit.updates;
    coded += unit.codedStates;
  }
  const auto stateBytes = static_cast<double>(states);
  if (candidate.clipGradients)
    engine.compute(layout.copyTime(3 * gradients));
  if (onHost || candidate.offloadOptimizer) {
    const double rate = layout.target.host.updateBytesPerSecond;
    // The host's kernels are fused.
    const plan::UpdateCost cost;
    const double moved = cost.parameters * parameters +
                         cost.gradients * gradients + cost.states * stateBytes;
    if (!onHost)
      engine.overhead(layout.hostTime(gradients) + layout.hostTime(parameters),
                      Cause::HostOut);
    if (rate > 0)
      engine.overhead(toPicoseconds(moved / rate), Cause::HostUpdate);
    return;
  }
  const auto lists =
      static_cast<int64_t>(layout.updateLists() * static_cast<double>(trained));
  if (const int64_t temporary = lists + layout.updateTemporary) {
    std::vector<int64_t> parts;
    if (records() || engine.trace)
      parts = partsOfLists(temporary);
    engine.transient(Holding::Optimizer, temporary, Pool::Compute,
                     parts.empty() ? nullptr : &parts);
  }
  if (candidate.update->habits.oneByOne)
    engine.compute(
        toPicoseconds(plan::oneByOneOperators * static_cast<double>(updates) *
                      layout.target.dispatchSeconds));
  engine.compute(std::max(layout.updateTime(parameters, gradients, stateBytes),
                          layout.codingTime(coded)));
}

std::vector<int64_t> StepRun::partsOfLists(int64_t bytes) const {
  std::vector<int64_t> parts;
  for (double lists = layout.updateLists(); lists >= 1; --lists)
    for (const UnitParts &unit : layout.parts)
      for (int64_t own : unit.own) {
        if (own <= 0 || own > bytes)
          continue;
        parts.push_back(own);
        bytes -= own;
      }
  // What one parameter's update takes is tensors of its size.
  const UpdateRule &rule = candidate.update;
  const plan::UpdateCost &cost = rule->cost(candidate.optimizer);
  int64_t largest = 0;
  for (const UnitParts &unit : layout.parts)
    for (size_t i = 0; i < unit.own.size(); ++i) {
      const int64_t item = plan::itemSize(
          layout.dtypes().gradient(model.parameters[unit.trained[i]]));
      largest = std::max(
          largest, cost.inF32 && item < plan::itemSize(plan::DType::F32)
                       ? unit.own[i] / item * plan::itemSize(plan::DType::F32)
                       : unit.own[i]);
    }
  if (!rule->description || !rule->description->matmulBytes)
    for (; largest > 0 && bytes >= largest; bytes -= largest)
      parts.push_back(largest);
  if (bytes > 0)
    parts.push_back(bytes);
  return parts;
}

} // namespace accel
