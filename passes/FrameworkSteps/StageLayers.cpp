//===- StageLayers.cpp - Which layers each stage of a pipeline has --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"

#include <algorithm>

namespace accel {

using Range = std::pair<int, int>;

/// Megatron's --account-for-embedding-in-pipeline-split and its twin for the
/// loss count each of them as a layer, where layers alone cannot be divided.
static constexpr int endsAsLayers = 2;

/// How many layers each stage has; empty where they cannot be divided.
static std::vector<int> layersOfStages(int layers, int stages, int last) {
  if (stages < 1 || layers == 0)
    return {};
  if (last > 0) {
    if (stages < 2 || last >= layers || (layers - last) % (stages - 1) != 0)
      return {};
    std::vector<int> own(stages, (layers - last) / (stages - 1));
    own.back() = last;
    return own;
  }
  if (layers % stages == 0)
    return std::vector<int>(stages, layers / stages);
  if ((layers + endsAsLayers) % stages != 0)
    return {};
  // The first stage can be the embedding, and the last one the loss, alone.
  std::vector<int> own(stages, (layers + endsAsLayers) / stages);
  --own.front();
  --own.back();
  return own;
}

/// torchtitan's generate_split_points (pipelining_utils.py): what cannot be
/// divided goes to the stages after the first. Since mid-2025
/// (generate_llm_fqn_per_model_part, distributed/pipeline_parallel.py) the
/// embedding and the head count as layers, and what cannot be divided goes to
/// the first stages.
static std::vector<int> layersOfTorchtitan(int layers, int stages,
                                           const std::string &torch) {
  const bool ends = atLeast(torch, "2.9");
  const int counted = layers + (ends ? endsAsLayers : 0);
  std::vector<int> own(stages, counted / stages);
  for (int i = 0, more = counted % stages; i < more; ++i)
    ++own[ends ? i : i + 1];
  if (ends) {
    --own.front();
    --own.back();
  }
  const bool empty =
      std::any_of(own.begin(), own.end(), [](int n) { return n < 1; });
  return empty ? std::vector<int>() : own;
}

static std::vector<int> layerCalls(const StepModel &model) {
  std::vector<int> layers;
  for (size_t c = 0; c < model.calls.size(); ++c)
    if (model.calls[c].layer)
      layers.push_back(static_cast<int>(c));
  return layers;
}

/// The calls of stages that have `each` layers.
static std::vector<Range> rangesOf(const StepModel &model,
                                   const std::vector<int> &each) {
  const std::vector<int> layers = layerCalls(model);
  const int count = static_cast<int>(layers.size());
  std::vector<Range> result;
  int next = 0; // layer
  int begin = 0;
  for (size_t s = 0; s < each.size(); ++s) {
    next += each[s];
    const int end = s + 1 == each.size() ? static_cast<int>(model.calls.size())
                    : next < count       ? layers[next]
                                         : layers.back() + 1;
    result.emplace_back(begin, end);
    begin = end;
  }
  return result;
}

std::vector<Range> stagesOf(const StepModel &model, int stages,
                            int lastLayers) {
  const auto layers = static_cast<int>(layerCalls(model).size());
  return rangesOf(model, layersOfStages(layers, stages, lastLayers));
}

std::vector<Range> stagesOf(const StepModel &model,
                            const Candidate &candidate) {
  const int stages = candidate.stages() * candidate.megatron.chunks;
  if (candidate.executor == FrameworkKind::Fsdp2)
    return rangesOf(
        model, layersOfTorchtitan(static_cast<int>(layerCalls(model).size()),
                                  stages, candidate.torchVersion));
  return stagesOf(model, stages, candidate.megatron.lastLayers);
}

} // namespace accel
