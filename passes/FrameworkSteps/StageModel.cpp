//===- StageModel.cpp - A stage as a model of its own ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StageModel.h"

#include <map>

namespace accel {

/// A call that computes nothing: what a stage receives, or sends.
static SegmentKind nothing(const char *name, bool receives) {
  SegmentKind kind;
  kind.name = name;
  SegmentVariant variant;
  variant.name = "none";
  if (receives)
    variant.savesOutput = {false};
  else
    variant.savesInput = {false};
  kind.variants.push_back(std::move(variant));
  if (!receives)
    kind.inputGradients = {0};
  return kind;
}

StageModel::StageModel(const StepModel &whole, const Candidate &of,
                       std::pair<int, int> range)
    : candidate(of) {
  model = whole;
  model.calls.clear();
  model.parameters.clear();
  candidate.variants.clear();
  candidate.offloadActivations.clear();
  candidate.unitOf.clear();
  candidate.accumulation = 1;
  std::vector<bool> read(whole.values.size(), false);
  for (int c = range.first; c < range.second; ++c)
    for (int value : whole.calls[c].inputs)
      read[value] = true;
  auto inside = [&](int call) {
    return call >= range.first && call < range.second;
  };
  for (size_t v = 0; v < whole.values.size(); ++v) {
    StepValue &value = model.values[v];
    if (inside(whole.values[v].producer)) {
      value.producer -= range.first;
      continue;
    }
    if (!read[v]) { // somebody else's
      value.bytes = value.gradientBytes = 0;
      value.gradient = false;
    }
    if (read[v] && value.gradient)
      received.push_back(static_cast<int>(v));
    value.producer = -1;
  }
  if (!received.empty()) {
    for (StepValue &value : model.values)
      if (value.producer >= 0)
        value.producer += static_cast<int>(received.size());
    model.kinds.push_back(nothing("receive", /*receives=*/true));
    for (int value : received) {
      receivedBytes += model.values[value].bytes;
      StepCall call;
      call.kind = static_cast<int>(model.kinds.size()) - 1;
      call.outputs = {value};
      model.values[value].producer = static_cast<int>(model.calls.size());
      add(std::move(call), 0, false);
    }
  }
  std::map<int, int> parameters;
  for (int c = range.first; c < range.second; ++c) {
    StepCall call = whole.calls[c];
    for (int &p : call.parameters) {
      auto [at, isNew] =
          parameters.try_emplace(p, static_cast<int>(parameters.size()));
      if (isNew) {
        model.parameters.push_back(whole.parameters[p]);
        candidate.unitOf.push_back(of.unitOf[p]);
      }
      p = at->second;
    }
    add(std::move(call), of.variants[c], of.offloadActivations[c]);
  }
  sendOn(whole, range);
}

void StageModel::add(StepCall call, int variant, bool offload) {
  model.calls.push_back(std::move(call));
  candidate.variants.push_back(variant);
  candidate.offloadActivations.push_back(offload);
}

void StageModel::sendOn(const StepModel &whole, std::pair<int, int> range) {
  model.kinds.push_back(nothing("send", /*receives=*/false));
  std::vector<bool> sent(whole.values.size(), false);
  for (size_t c = range.second; c < whole.calls.size(); ++c)
    for (int value : whole.calls[c].inputs) {
      const int from = whole.values[value].producer;
      if (!whole.values[value].gradient || sent[value] || from < range.first ||
          from >= range.second)
        continue;
      sent[value] = true;
      sentBytes += whole.values[value].bytes;
      if (candidate.executor == FrameworkKind::Fsdp2)
        model.values[value].gradientBytes = 0; // holdAsTorch counts it
      StepCall call;
      call.kind = static_cast<int>(model.kinds.size()) - 1;
      call.inputs = {value};
      add(std::move(call), 0, false);
    }
}

} // namespace accel
