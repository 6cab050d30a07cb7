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

bool fitsByYaml(const Advice &advice, const std::string &file,
                DiagnosticEngine &engine) {
  if (advice.yaml->result.best)
    return true;
  std::string others;
  if (advice.tuned && advice.tuned->result.best)
    for (const tune::Decided &decided : advice.tuned->decisions)
      if (const std::string &said =
              decided.alone.expression.notExpressibleInYaml;
          decided.changed && others.find(said) == std::string::npos)
        others += (others.empty() ? "" : "; ") + said;
  engine.error("nothing-fits", file,
               "no setting that a YAML can say fits, so there is none to write",
               others.empty() ? ""
                              : "without --emit, --tune shows one that fits "
                                "and needs beside the YAML: " +
                                    others);
  return false;
}

std::optional<ChosenStep> chosenStep(const Advice &advice, int64_t microBatch,
                                     DiagnosticEngine &engine) {
  ChosenStep step{advice.candidate, microBatch, {}, {}};
  if (advice.yaml) {
    if (!fitsByYaml(advice, advice.job->file, engine))
      return std::nullopt;
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
