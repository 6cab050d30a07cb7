//===- TorchStage.cpp - What torch's pipeline stages hold -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch/distributed/pipelining/stage.py and schedules.py, Schedule1F1B, by
// release. Until 2.14 a stage makes a tensor for every micro-batch's input and
// gradient when it starts (args_recv_info, grad_recv_info), and keeps outputs
// until their backward (fwd_cache); since 2.15 (pull request 193872) it makes
// them when it receives, and lets outputs go when they are sent. Until 2.7
// every stage keeps the outputs of all (output_chunks, pull request 153383);
// the last one does until 2.9, and joins them at the end, which torchtitan does
// not ask for since (return_outputs, 165822). Until 2.9 gradients of inputs
// stay in the inputs' .grad (164329).
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StageRun.h"

namespace accel {

void holdAsTorch(StageCost &stage, const std::string &torch,
                 int64_t microBatches, int64_t logits) {
  MicroBatchCost &micro = stage.micro;
  StageHeld &held = stage.held;
  const int64_t sent = held.sentBytes, received = held.receivedBytes;
  auto hold = [&](Holding holding, int64_t bytes) { // forward to backward
    micro.frameBytes += bytes;
    micro.frame[static_cast<int>(holding)] += bytes;
    micro.peakBytes += bytes;
    micro.peak[static_cast<int>(holding)] += bytes;
  };
  if (atLeast(torch, "2.15")) {
    // backward_one_chunk refers to the gradients that it was sent until it
    // ends.
    micro.peakBytes += sent;
    micro.peak[static_cast<int>(Holding::Activations)] += sent;
    held.sending = sent;
    // Each loss stays, and by its graph the leaf that was received.
    if (logits > 0)
      held.keptByBackward = received;
  } else {
    held.buffers = microBatches * (sent + received);
    hold(Holding::Activations, -received);
    micro.forwardPeakBytes -= received;
    if (atLeast(torch, "2.8"))
      hold(Holding::Activations, sent);
    else
      held.keptByForward = sent;
  }
  // The list of what was sent back last refers to it until the next one.
  if (atLeast(torch, "2.10"))
    held.lastGradient = received;
  else
    held.keptByBackward = received;
  // The loss has read them; the schedule has not let them go.
  hold(Holding::Logits, logits);
  if (!atLeast(torch, "2.10"))
    held.returned = logits;
}

void TorchStageTensors::drop(std::vector<int> &tensors) {
  for (int &tensor : tensors)
    recorder->drop(tensor);
  tensors.clear();
}

void TorchStageTensors::beginStep() {
  drop(untilNextStep);
  if (started || atLeast(sizes.torch, "2.15"))
    return;
  started = true; // they stay
  for (int64_t bytes : {sizes.received, sizes.sent})
    for (int64_t m = 0; m < sizes.microBatches; ++m)
      recorder->make(bytes, Pool::Compute);
}

void TorchStageTensors::afterForward(int microBatch) {
  const int output = recorder->make(sizes.sent, Pool::Compute);
  if (atLeast(sizes.torch, "2.15")) {
    recorder->drop(sending);
    sending = output;
  } else if (atLeast(sizes.torch, "2.8")) {
    outputs[microBatch] = output;
  } else {
    untilNextStep.push_back(output);
  }
  logits[microBatch] = recorder->make(sizes.logits, Pool::Compute);
}

void TorchStageTensors::beforeBackward() {
  recorder->drop(sending);
  if (atLeast(sizes.torch, "2.15"))
    arrived = recorder->make(sizes.sent, Pool::Compute);
}

void TorchStageTensors::afterBackward(int microBatch) {
  recorder->drop(arrived);
  recorder->drop(outputs[microBatch]);
  if (atLeast(sizes.torch, "2.15") && sizes.logits > 0)
    keep(sizes.received);
  if (!atLeast(sizes.torch, "2.10")) {
    keep(sizes.received);
    returned.push_back(std::exchange(logits[microBatch], -1));
    return;
  }
  const int gradient = recorder->make(sizes.received, Pool::Compute);
  recorder->drop(lastGradient);
  lastGradient = gradient;
  recorder->drop(logits[microBatch]);
}

void TorchStageTensors::leaveOthers() {
  for (int64_t m = sizes.recorded; m < sizes.microBatches; ++m) {
    if (!atLeast(sizes.torch, "2.8"))
      keep(sizes.sent);
    if (!atLeast(sizes.torch, "2.10")) {
      keep(sizes.received);
      returned.push_back(recorder->make(sizes.logits, Pool::Compute));
    } else if (atLeast(sizes.torch, "2.15") && sizes.logits > 0) {
      keep(sizes.received);
    }
  }
}

void TorchStageTensors::joinOutputs() {
  if (!atLeast(sizes.torch, "2.10"))
    joined = recorder->make(sizes.microBatches * sizes.logits, Pool::Compute);
}

void TorchStageTensors::endStep() {
  drop(returned);
  recorder->drop(joined);
}

} // namespace accel
