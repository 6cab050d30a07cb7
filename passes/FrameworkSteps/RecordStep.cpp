//===- RecordStep.cpp - A step's tensors, one by one ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What StepRun counts as sums, as tensors: a segment's storages in the order
// in which its operators make and release them, values between calls, their
// gradients and those of parameters. A segment without a list of storages is
// one block for its peak and one for what it saves.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"

#include "passes/Frameworks/Framework.h"
#include "passes/Segments/InnerBytes.h"

namespace accel {

bool StepRun::traced(int call) const {
  const bool chunked = candidate.lossChunks > 1 && layout.kind(call).loss;
  // Its list is that of the model's own loss.
  return !chunked && !takesLogProbabilities(call) &&
         !layout.variant(call).trace.forward.empty();
}

int StepRun::parameterOf(int call, size_t gradient) const {
  const std::vector<int> &map = layout.kind(call).gradientOf;
  const std::vector<int> &all = model.calls[call].parameters;
  const size_t at = map.empty() ? gradient : static_cast<size_t>(map[gradient]);
  return at < all.size() ? all[at] : -1;
}

/// Runs `events` from `from` on; to the moment when the logits have a gradient
/// if `toLossEnd`.
void StepRun::play(int call, const std::vector<StorageEvent> &events,
                   size_t from, bool toLossEnd) {
  Recorder &recorder = *engine.recorder;
  std::vector<int> &own = tensors.own[call];
  const StepCall &c = model.calls[call];
  const StorageTrace &trace = layout.variant(call).trace;
  for (size_t i = from; i < events.size(); ++i) {
    const StorageEvent &event = events[i];
    switch (event.kind) {
    case StorageEvent::Kind::Allocate:
      if (static_cast<size_t>(event.storage) >= own.size())
        own.resize(static_cast<size_t>(event.storage) + 1, -1);
      recorder.drop(own[event.storage]);
      own[event.storage] = recorder.make(event.bytes, poolOf(call));
      break;
    case StorageEvent::Kind::Free:
      if (static_cast<size_t>(event.storage) < own.size())
        recorder.drop(own[event.storage]);
      break;
    case StorageEvent::Kind::FreeInput:
      if (const int value = c.inputs[event.storage];
          layout.savedUntil[value] == call && model.values[value].producer >= 0)
        recorder.drop(tensors.value[value]);
      break;
    case StorageEvent::Kind::FreeTangent:
      // Beyond the outputs: the gradient so far of an input that other calls
      // read too, which stays.
      if (static_cast<size_t>(event.storage) < c.outputs.size())
        recorder.drop(tensors.valueGradient[c.outputs[event.storage]]);
      break;
    case StorageEvent::Kind::FreeGradient:
      for (size_t g = 0; g < trace.parameterGradients.size(); ++g)
        if (trace.parameterGradients[g] == event.storage)
          if (const int p = parameterOf(call, g);
              gradientsStay() || p < 0 || tensors.gradient[p] >= 0)
            takeGradient(call, p, own[event.storage]);
      break;
    case StorageEvent::Kind::Library:
      keepWorkspaces(&events == &trace.backward, event.bytes, poolOf(call));
      break;
    case StorageEvent::Kind::LossEnd:
      if (toLossEnd) {
        tensors.played = i + 1;
        return;
      }
      break;
    }
  }
}

/// Until torch 2.11 a handle of cuBLAS has its workspace from its first call on
/// (getCUDABlasWorkspace of aten/src/ATen/cuda/CublasHandlePool.cpp), and
/// cuBLASLt, which asks for that handle first, one of its own. Handles are of
/// threads, and autograd's computes the backward.
void StepRun::keepWorkspaces(bool backward, int64_t bytes, Pool pool) {
  if (!frameworks::keepsWorkspaces(candidate.torchVersion))
    return;
  for (int64_t each : {gemmWorkspace(layout.target.capability), bytes})
    if (tensors.workspaces.emplace(backward, each).second)
      engine.recorder->make(each, pool);
}

void StepRun::recordForward(int call, int64_t peak) {
  Recorder &recorder = *engine.recorder;
  const SegmentVariant &v = layout.variant(call);
  const StepCall &c = model.calls[call];
  std::vector<int> &own = tensors.own[call];
  const Pool pool = poolOf(call);
  const GraphCopies copies = copiesOf(call);
  recorder.drop(tensors.copies[call]);
  tensors.copies[call] = recorder.make(copies.held, pool);
  int passing = recorder.make(copies.passing, pool);
  if (traced(call)) {
    play(call, v.trace.forward, 0, false);
  } else {
    const bool chunked = candidate.lossChunks > 1 && layout.kind(call).loss;
    own.assign(2, -1);
    if (chunked)
      own[0] = recorder.make(besideLogits(call), pool);
    int block = recorder.make(peak, pool);
    recorder.drop(block);
    if (!chunked)
      own[0] = recorder.make(savedBytes(call), pool);
    if (!v.savesParameterCopies)
      own[1] = recorder.make(v.parameterCopyBytes, Pool::Compute);
  }
  recorder.drop(passing);
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const int storage =
        traced(call) && i < v.trace.outputs.size() ? v.trace.outputs[i] : -1;
    int &value = tensors.value[c.outputs[i]];
    recorder.drop(value);
    if (storage >= 0 && own[storage] >= 0)
      std::swap(value, own[storage]);
    else
      value = recorder.make(model.values[c.outputs[i]].bytes, pool);
  }
}

/// The forward of the whole model is done: autocast forgets its copies.
void StepRun::dropCopies() {
  for (size_t c = 0; c < model.calls.size(); ++c) {
    const SegmentVariant &v = layout.variant(static_cast<int>(c));
    if (v.savesParameterCopies)
      continue;
    std::vector<int> &own = tensors.own[c];
    if (!traced(static_cast<int>(c)))
      engine.recorder->drop(own[1]);
    else
      for (int storage : v.trace.parameterCopies)
        engine.recorder->drop(own[storage]);
  }
}

void StepRun::recordLoss(int call, int64_t peak) {
  tensors.played = 0;
  if (!layout.kind(call).loss)
    return;
  if (traced(call)) {
    play(call, layout.variant(call).trace.backward, 0, true);
    return;
  }
  int block = engine.recorder->make(peak, poolOf(call));
  engine.recorder->drop(block);
}

void StepRun::recordBackward(int call, int64_t peak) {
  Recorder &recorder = *engine.recorder;
  const SegmentKind &kind = layout.kind(call);
  const StepCall &c = model.calls[call];
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (candidate.offloadActivations[call] && tensors.value[c.inputs[i]] < 0 &&
        layout.savedUntil[c.inputs[i]] == call &&
        model.values[c.inputs[i]].gradient)
      tensors.value[c.inputs[i]] = recorder.make(
          model.values[c.inputs[i]].bytes, poolOfValue(c.inputs[i]));
  int tangents = recorder.make(copiesOf(call).tangents, poolOf(call));
  if (traced(call)) {
    play(call, layout.variant(call).trace.backward,
         kind.loss ? tensors.played : 0, false);
  } else {
    int block = recorder.make(peak, poolOf(call));
    recorder.drop(block);
  }
  recorder.drop(tangents);
  recorder.drop(tensors.copies[call]);
  tensors.played = 0;
  placeGradients(call);
}

void StepRun::takeGradient(int call, int parameter, int &tensor) {
  Recorder &recorder = *engine.recorder;
  if (tensor < 0 || parameter < 0 ||
      (gradientsStay() && !layout.waits(parameter)))
    return recorder.drop(tensor);
  int &kept = gradientsStay() ? tensors.waiting[parameter]
                              : tensors.gradient[parameter];
  if (kept < 0) {
    kept = std::exchange(tensor, -1);
  } else {
    int sum = -1;
    // Autograd sums on the stream of who takes the sum: views of FSDP1's flat
    // parameter, which are made where it is gathered (InputBuffer::add).
    if (layout.sumsApart(parameter))
      sum = recorder.make(layout.freshGradientBytes(parameter),
                          candidate.executor == FrameworkKind::Fsdp1
                              ? Pool::Gather
                              : poolOf(call));
    recorder.drop(tensor);
    if (sum >= 0) {
      recorder.drop(kept);
      kept = sum;
    }
  }
  if (gradientsStay() && layout.firstUser[parameter] == call)
    recorder.drop(kept);
}

/// The gradients that a backward leaves; everything else is released.
void StepRun::placeGradients(int call) {
  Recorder &recorder = *engine.recorder;
  const SegmentKind &kind = layout.kind(call);
  const StorageTrace &trace = layout.variant(call).trace;
  const StepCall &c = model.calls[call];
  std::vector<int> &own = tensors.own[call];
  std::vector<std::pair<int, int>> made; // parameter, tensor
  std::vector<int> inputs(kind.inputGradients.size(), -1);
  if (traced(call)) {
    for (size_t g = 0; g < trace.parameterGradients.size(); ++g)
      if (const int s = trace.parameterGradients[g];
          s >= 0 && static_cast<size_t>(s) < own.size() && own[s] >= 0)
        made.emplace_back(parameterOf(call, g), std::exchange(own[s], -1));
    for (size_t k = 0; k < std::min(inputs.size(), trace.inputGradients.size());
         ++k) {
      const GradientPlace &place = trace.inputGradients[k];
      if (place.storage >= 0 && static_cast<size_t>(place.storage) < own.size())
        inputs[k] = std::exchange(own[place.storage], -1);
      else if (place.tangent >= 0 &&
               static_cast<size_t>(place.tangent) < c.outputs.size())
        inputs[k] =
            std::exchange(tensors.valueGradient[c.outputs[place.tangent]], -1);
    }
  }
  for (int &tensor : own)
    recorder.drop(tensor);
  for (int value : c.outputs) {
    recorder.drop(tensors.valueGradient[value]);
    if (layout.savedUntil[value] == call && !kind.loss)
      recorder.drop(tensors.value[value]);
  }
  for (int value : c.inputs)
    if (layout.savedUntil[value] == call && model.values[value].producer >= 0)
      recorder.drop(tensors.value[value]);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int value = c.inputs[kind.inputGradients[k]];
    if (layout.firstGradient[value] != call) {
      recorder.drop(inputs[k]); // added to what is there
      continue;
    }
    recorder.drop(tensors.valueGradient[value]);
    tensors.valueGradient[value] =
        inputs[k] >= 0
            ? inputs[k]
            : recorder.make(model.values[value].gradientBytes, poolOf(call));
  }
  for (auto &[parameter, tensor] : made)
    takeGradient(call, parameter, tensor);
  if (gradientsStay() ||
      (kind.parameterGradientBytes == 0 && kind.inputGradientBytes == 0))
    return;
  for (int p : c.parameters)
    if (model.parameters[p].trainable && layout.lastUser[p] == call &&
        tensors.gradient[p] < 0)
      tensors.gradient[p] =
          recorder.make(layout.freshGradientBytes(p), poolOf(call));
}

void StepRun::freeGradientsOf(int unit, int64_t bytes) {
  const RecordingPause quiet(engine);
  freeFresh(unit, bytes);
  if (records())
    for (int p : layout.parts[unit].trained)
      engine.recorder->drop(tensors.gradient[p]);
}

void StepRun::castGradientsOf(int unit, int64_t from, int64_t to) {
  const RecordingPause quiet(engine);
  engine.alloc(Holding::Gradients, to);
  freeFresh(unit, from);
  if (!records())
    return;
  const UnitParts &parts = layout.parts[unit];
  std::vector<int> cast;
  for (int64_t bytes : parts.held)
    cast.push_back(engine.recorder->make(bytes, Pool::Compute));
  for (size_t i = 0; i < cast.size(); ++i) {
    engine.recorder->drop(tensors.gradient[parts.trained[i]]);
    tensors.gradient[parts.trained[i]] = cast[i];
  }
}

std::vector<int> StepRun::takeGradientsOf(int unit) {
  std::vector<int> recorded;
  if (records())
    for (int p : layout.parts[unit].trained)
      recorded.push_back(std::exchange(tensors.gradient[p], -1));
  return recorded;
}

void StepRun::putGradientsOf(int unit, const std::vector<int> &recorded) {
  for (size_t i = 0; i < recorded.size(); ++i)
    tensors.gradient[layout.parts[unit].trained[i]] = recorded[i];
}

void StepRun::exchange(Frame &frame) {
  if (frame.own.empty()) {
    frame.own.resize(model.calls.size());
    frame.copies.assign(model.calls.size(), -1);
    frame.value.assign(model.values.size(), -1);
    frame.valueGradient = frame.value;
  }
  std::swap(frame.own, tensors.own);
  std::swap(frame.copies, tensors.copies);
  std::swap(frame.value, tensors.value);
  std::swap(frame.valueGradient, tensors.valueGradient);
  std::swap(frame.played, tensors.played);
  std::swap(frame.outputs, outputs);
}

void StepRun::freeAllGradients() {
  const RecordingPause quiet(engine);
  for (size_t c = 0; c < layout.calls.size(); ++c)
    engine.free(Holding::Gradients, layout.calls[c].freshGradients,
                poolOf(static_cast<int>(c)));
  if (records())
    for (int &tensor : tensors.gradient)
      engine.recorder->drop(tensor);
}

} // namespace accel
