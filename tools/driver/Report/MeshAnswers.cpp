//===- MeshAnswers.cpp - Why this mesh ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/MeshAnswers.h"

#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Text/Format.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace accel {

using Json = nlohmann::json;

/// What another mesh takes beside the chosen one, and most of all waits for.
static std::string against(const MeshAnswer &answer, const MeshChoice &other) {
  const StepPrediction &best = answer.chosen->predicted;
  std::string text =
      formatSecondsChange(other.predicted.stepSeconds - best.stepSeconds) +
      " a step, " +
      formatBytesChange(other.predicted.deviceBytes - best.deviceBytes);
  const double waits = other.predicted.exposedSeconds - best.exposedSeconds;
  const double computes = other.predicted.computeSeconds - best.computeSeconds;
  if (other.predicted.stepSeconds > best.stepSeconds)
    text += waits > computes
                ? ": it waits " + formatSeconds(waits) + " more for other ranks"
                : ": it computes " + formatSeconds(computes) +
                      " more in its layers";
  return text;
}

static std::string lacks(const Advice &advice, const MeshChoice &other) {
  const int64_t bytes = other.predicted.deviceBytes;
  return bytes <= advice.roomBytes
             ? lacking(advice, bytes)
             : over(advice, bytes, other.predicted.peakWhere);
}

std::string renderMesh(const Advice &advice) {
  const MeshAnswer &answer = *advice.mesh;
  if (!answer.chosen || answer.meshes < 2)
    return "";
  std::string out = "\n  mesh: " + tune::describe(answer.chosen->mesh) + "\n";
  if (answer.next)
    out += "    next: " + tune::describe(answer.next->mesh) + ": " +
           against(answer, *answer.next) + "\n";
  if (answer.lacking)
    out += "    faster, but does not fit: " +
           tune::describe(answer.lacking->mesh) + ": " +
           lacks(advice, *answer.lacking) + "\n";
  if (answer.otherSide)
    out += std::string("    tp ") +
           (answer.otherSide->mesh.mesh.size("tp") > answer.ranksPerNode
                ? "stays in a node of "
                : "leaves the node of ") +
           std::to_string(answer.ranksPerNode) + ": " +
           tune::describe(answer.otherSide->mesh) + ": " +
           against(answer, *answer.otherSide) + "\n";
  return out + "    " + std::to_string(answer.evaluated) + " of " +
         std::to_string(answer.meshes) +
         " meshes judged; the others are too large or too slow by their lower "
         "bounds\n";
}

Json meshAnswerJson(const Advice &advice) {
  const MeshAnswer &answer = *advice.mesh;
  auto choice = [&](const std::optional<MeshChoice> &c) -> Json {
    if (!c)
      return nullptr;
    const plan::Mesh &mesh = c->mesh.mesh;
    return {{"tp", mesh.size("tp")},
            {"pp", mesh.size("pp")},
            {"cp", mesh.size("cp")},
            {"last_stage_layers", c->mesh.lastLayers},
            {"dp", mesh.size("dp_replicate") * mesh.size("dp_shard")},
            {"sequence_parallel", c->mesh.sequence},
            {"micro_batches", c->mesh.accumulation},
            {"device_bytes", c->predicted.deviceBytes},
            {"over_budget_bytes",
             std::max<int64_t>(0, c->predicted.deviceBytes - advice.roomBytes)},
            {"step_s", c->predicted.stepSeconds},
            {"exposed_s", c->predicted.exposedSeconds},
            {"peak_where", c->predicted.peakWhere}};
  };
  return {{"meshes", answer.meshes},
          {"judged", answer.evaluated},
          {"ranks_per_node", answer.ranksPerNode},
          {"chosen", choice(answer.chosen)},
          {"next", choice(answer.next)},
          {"lacking", choice(answer.lacking)},
          {"other_side_of_node", choice(answer.otherSide)}};
}

std::string renderRunMeshes(const Advice &advice) {
  constexpr size_t told = 5;
  const RunMeshes &meshes = *advice.runMeshes;
  if (meshes.meshes == 0)
    return "";
  std::string out = "\n  meshes, each planned with all else as written\n";
  auto row = [&](const RunMesh &mesh) {
    out += "    " + padRight(mesh.sizes, 28) +
           padLeft(formatBytes(mesh.predicted.deviceBytes), 10) +
           padLeft(formatSeconds(mesh.predicted.stepSeconds), 11) +
           (mesh.fits ? "  " : "  DOES NOT FIT  ");
    if (mesh.edit.yaml.empty())
      out += "as configured";
    for (const tune::YamlLine &line : mesh.edit.yaml)
      out += (&line == &mesh.edit.yaml.front() ? "" : ", ") + line.key + ": " +
             line.value;
    for (const auto &[flag, value] : mesh.edit.flags)
      out += ", " + flag + " " + value;
    out += "\n";
  };
  for (size_t i = 0; i < meshes.planned.size(); ++i)
    if (i < told || meshes.planned[i].edit.yaml.empty())
      row(meshes.planned[i]);
  out += "    " + std::to_string(meshes.planned.size() - 1) + " planned, " +
         std::to_string(meshes.refused) + " refused by plan";
  if (meshes.tried < meshes.meshes)
    out += "; " + std::to_string(meshes.meshes - meshes.tried) +
           " in which more ranks share a sample are not planned";
  return out + "\n";
}

Json runMeshesJson(const Advice &advice) {
  const RunMeshes &meshes = *advice.runMeshes;
  Json planned = Json::array();
  for (const RunMesh &mesh : meshes.planned) {
    Json lines = Json::array();
    for (const tune::YamlLine &line : mesh.edit.yaml)
      lines.push_back({{"key", line.key}, {"value", line.value}});
    Json flags = Json::array();
    for (const auto &[flag, value] : mesh.edit.flags)
      flags.push_back(flag + " " + value);
    planned.push_back({{"mesh", mesh.sizes},
                       {"accumulation_steps", mesh.accumulation},
                       {"device_bytes", mesh.predicted.deviceBytes},
                       {"peak_bytes", mesh.predicted.peakBytes},
                       {"step_s", mesh.predicted.stepSeconds},
                       {"fits", mesh.fits},
                       {"yaml", lines},
                       {"flags", flags}});
  }
  return {{"meshes", meshes.meshes},
          {"tried", meshes.tried},
          {"refused", meshes.refused},
          {"planned", planned}};
}

} // namespace accel
