//===- ChosenStep.cpp - The step that is written for others ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/ChosenStep.h"

#include <algorithm>

namespace accel {

std::optional<std::string> ChosenStep::changed(const std::string &key) const {
  for (const tune::YamlLine &line : lines)
    if (line.key.ends_with("." + key))
      return line.value;
  return std::nullopt;
}

int64_t ChosenStep::globalBatch() const {
  const plan::Mesh &mesh = candidate.mesh;
  return microBatch * candidate.accumulation * mesh.ranks() /
         mesh.ranksPerSample();
}

std::optional<std::string> ChosenStep::recomputeOfAll() const {
  if (recompute.empty() ||
      std::adjacent_find(recompute.begin(), recompute.end(),
                         std::not_equal_to<>()) != recompute.end())
    return std::nullopt;
  return recompute.front();
}

std::optional<ChosenStep> chosenStep(const Advice &advice, int64_t microBatch,
                                     DiagnosticEngine &engine) {
  ChosenStep step{advice.candidate, microBatch, {}, {}};
  if (advice.yaml) {
    if (!advice.yaml->result.best) {
      engine.error("nothing-fits", advice.job->file,
                   "no setting that a YAML can say fits, so there is none to "
                   "write");
      return std::nullopt;
    }
    const tune::Point &point = advice.yaml->result.best->point;
    step.candidate = tune::expand(*advice.space, *advice.model, point);
    step.candidate.accumulation = advice.space->accumulationOf(point);
    step.microBatch = advice.space->splits[point[tune::Knob::Split]].microBatch;
    step.lines = advice.yaml->lines;
  }
  for (size_t c = 0; c < advice.model->calls.size(); ++c) {
    const StepCall &call = advice.model->calls[c];
    if (call.layer)
      step.recompute.push_back(advice.model->kinds[call.kind]
                                   .variants[step.candidate.variants[c]]
                                   .name);
  }
  return step;
}

} // namespace accel
