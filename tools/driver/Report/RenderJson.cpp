//===- RenderJson.cpp - A plan for programs -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/PipelineSchedule/RenderSchedule.h"
#include "tools/driver/Report/MeshAnswers.h"
#include "tools/driver/Report/MeshJson.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Report/RenderFp8.h"
#include "tools/driver/Report/RenderPhases.h"
#include "tools/driver/Report/SettingJson.h"
#include "tools/driver/Report/UnitBytes.h"

#include <nlohmann/json.hpp>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

Json numberOrNull(bool known, double value) {
  return known ? Json(value) : Json();
}

Json figures(const Advice &advice, const StepPrediction &p) {
  return {{"device_bytes", p.deviceBytes},
          {"peak_bytes", p.peakBytes},
          {"step_s", numberOrNull(advice.hasTime, p.stepSeconds)},
          {"tokens_per_s_per_device",
           numberOrNull(advice.hasTime, p.tokensPerSecondPerDevice)}};
}

Json rangeJson(const std::optional<std::pair<double, double>> &range) {
  return range ? Json{range->first, range->second} : Json();
}

Json yamlLines(const Advice &advice, const std::vector<tune::YamlLine> &lines) {
  Json result = Json::array();
  for (const tune::YamlLine &line : lines)
    result.push_back({{"key", line.key},
                      {"value", line.value},
                      {"file", line.file},
                      {"where", placeOf(*advice.editor, line)},
                      {"written", isWritten(*advice.editor, line)}});
  return result;
}

Json recommendation(const Advice &advice, const tune::Change &c) {
  return {{"change", c.text},
          {"subject", tune::toString(c.knob)},
          {"yaml", c.expression.yaml.empty()
                       ? Json()
                       : yamlLines(advice, c.expression.yaml)},
          {"otherwise", c.expression.notExpressibleInYaml.empty()
                            ? Json()
                            : Json(c.expression.notExpressibleInYaml)},
          {"flags", c.expression.flags},
          {"device_bytes", c.evaluation.bytes},
          {"step_s", numberOrNull(advice.hasTime, c.evaluation.seconds)},
          {"memory", c.bytes},
          {"time", numberOrNull(advice.hasTime, c.seconds)},
          {"fits", c.fits},
          {"caution", c.caution.empty() ? Json() : Json(c.caution)}};
}

Json tunedJson(const Advice &advice, const Tuned &t) {
  Json result;
  result["judged"] = t.result.evaluations;
  result["exact"] = t.result.exact;
  result["complete"] = t.result.complete;
  result["best"] = nullptr;
  if (t.result.best) {
    Json best = figures(advice, t.predicted);
    best["summary"] =
        summary(*advice.space, *advice.editor, t.result.best->point);
    best["setting"] =
        settingJson(*advice.space, *advice.model, t.result.best->point);
    best["yaml"] = yamlLines(advice, t.lines);
    Json notInYaml = Json::array();
    for (tune::Knob knob : t.notInYaml)
      notInYaml.push_back(tune::toString(knob));
    best["not_yaml"] = notInYaml;
    best["peak_where"] = t.predicted.peakWhere;
    result["best"] = best;
  }
  result["leanest_bytes"] = t.result.smallest.evaluation.bytes;
  Json front = Json::array();
  for (const tune::Verdict &v : t.result.front)
    front.push_back(
        {{"device_bytes", v.evaluation.bytes},
         {"step_s", v.evaluation.seconds},
         {"fits", v.evaluation.bytes <= advice.roomBytes},
         {"change", summary(*advice.space, *advice.editor, v.point)},
         {"setting", settingJson(*advice.space, *advice.model, v.point)}});
  result["front"] = front;
  return result;
}

/// The single changes; of a search, what its best setting changes.
Json recommendations(const Advice &advice) {
  Json result = Json::array();
  if (!advice.tuned)
    for (const tune::Change &c : advice.changes)
      result.push_back(recommendation(advice, c));
  else if (advice.tuned->result.best)
    for (const tune::Decided &d : advice.tuned->decisions)
      if (d.changed)
        result.push_back(recommendation(advice, d.alone));
  return result;
}

void addAdvice(Json &root, const Advice &advice) {
  root["recommendations"] = recommendations(advice);
  if (advice.tuned) {
    Json tune = tunedJson(advice, *advice.tuned);
    if (advice.yaml)
      tune["yaml_alone"] = tunedJson(advice, *advice.yaml);
    Json fixed = Json::array();
    for (const auto &[knob, state] : advice.fixed)
      fixed.push_back({{"subject", tune::toString(knob)},
                       {"by", state.by},
                       {"file", state.file.empty() ? Json() : Json(state.file)},
                       {"line", state.line ? Json(state.line) : Json()}});
    tune["fixed"] = fixed;
    tune["solved_checkpointing"] =
        advice.solved ? recommendation(advice, *advice.solved) : Json();
    if (advice.mesh)
      tune["mesh"] = meshAnswerJson(advice);
    root["tune"] = tune;
  }
  if (advice.runMeshes)
    root["meshes"] = runMeshesJson(advice);
  if (advice.maxBatch) {
    const MaxBatch &m = *advice.maxBatch;
    root["max_batch"] = {
        {"micro_batch", m.fits},
        {"fits", m.fits ? figures(advice, m.at) : Json()},
        {"next", m.next.deviceBytes ? figures(advice, m.next) : Json()},
        {"next_over_bytes", m.next.deviceBytes
                                ? Json(m.next.deviceBytes - advice.roomBytes)
                                : Json()},
        {"next_peak_where",
         m.next.deviceBytes ? Json(m.next.peakWhere) : Json()}};
  }
}

} // namespace

std::string renderPlanJson(const plan::Plan *plan, const PlanReport &report,
                           const DiagnosticEngine &engine) {
  Json root;
  if (plan) {
    const StepPrediction &p = report.prediction;
    bool own = report.executor == FrameworkKind::AccelRun;
    const plan::Predicted &program = plan->predicted;
    Json breakdown;
    for (int h = 0; h < numHoldings; ++h)
      breakdown[toString(static_cast<Holding>(h))] = p.atPeak[h];
    root["memory"] = {
        {"peak_bytes", p.peakBytes},
        {"own_peak_bytes", own ? Json(program.ownPeakBytes) : Json()},
        {"persistent_bytes", p.persistentBytes},
        {"reserved_bytes", p.reservedBytes},
        {"reserved_by", p.replayed && p.replayedBytes == p.reservedBytes
                            ? "replay"
                            : "estimate"},
        {"replayed_reserved_bytes",
         p.replayed ? Json(p.replayedBytes) : Json()},
        {"estimated_reserved_bytes",
         p.replayed ? Json(p.estimatedReservedBytes) : Json()},
        {"replayed_allocated_bytes", p.replayedAllocatedBytes > 0
                                         ? Json(p.replayedAllocatedBytes)
                                         : Json()},
        {"allocator_retries",
         p.replayed && !own ? Json(p.allocatorRetries) : Json()},
        {"device_bytes", p.deviceBytes},
        {"host_bytes", p.hostBytes},
        {"disk_bytes", p.diskBytes},
        {"paged_bytes", p.pagedBytes},
        {"smallest_rank_device_bytes",
         report.smallestRank ? Json(report.smallestRank->deviceBytes) : Json()},
        {"breakdown", breakdown},
        {"budget_bytes",
         report.budgetBytes ? Json(*report.budgetBytes) : Json()},
        {"room_bytes", report.roomBytes ? Json(*report.roomBytes) : Json()},
        {"host_budget_bytes",
         report.hostBytes ? Json(*report.hostBytes) : Json()},
        {"host_fits", report.hostFits ? Json(*report.hostFits) : Json()},
        {"fits", report.fits ? Json(*report.fits) : Json()},
        {"confidence", report.confidence ? Json(*report.confidence) : Json()},
        {"device_bytes_90", rangeJson(report.likelyBytes)},
        {"measured_alike", report.measuredAlike},
        {"peak_program", own ? Json(program.peakProgram) : Json()},
        {"peak_instruction", own ? Json(program.peakInstruction) : Json()},
        {"peak_where", p.peakWhere}};
    root["phases"] = phasesJson(report.phases);
    root["phase_bounds"] = phaseBoundsJson(report.phases);
    if (report.hasTime) {
      Json exposed = Json::array();
      for (const Exposed &e : p.exposed)
        exposed.push_back({{"cause", e.cause}, {"seconds", e.seconds}});
      root["time"] = {{"step_s", p.stepSeconds},
                      {"step_s_90", rangeJson(report.likelySeconds)},
                      {"compute_s", p.computeSeconds},
                      {"recompute_s", p.recomputeSeconds},
                      {"optimizer_s", p.optimizerSeconds},
                      {"exposed_comm_s", p.exposedSeconds},
                      {"exposed", exposed},
                      {"tokens_per_s", p.tokensPerSecondPerDevice *
                                           static_cast<double>(plan->ranks())},
                      {"tokens_per_s_per_device", p.tokensPerSecondPerDevice},
                      {"mfu", report.mfu ? Json(*report.mfu) : Json()}};
      if (report.advice && !report.advice->model->fp8.empty())
        root["time"]["fp8"] =
            fp8Json(*report.advice->model, report.advice->candidate);
    } else {
      root["time"] = nullptr;
    }
    Json units = Json::array();
    const std::vector<UnitBytes> bytes = unitBytes(*plan, report);
    for (size_t u = 0; u < plan->units.size(); ++u) {
      const plan::Unit &unit = plan->units[u];
      Json names = Json::array();
      for (int i : unit.parameters)
        names.push_back(plan->parameters[i].fqn);
      const PartOfUnit part = partOf(*plan, unit, report.splits);
      units.push_back({{"name", unit.name},
                       {"parameters", names},
                       {"numel", unit.numel},
                       {"padded", unit.padded},
                       {"shard_axes", unit.shardAxes},
                       {"replicate_axes", unit.replicateAxes},
                       {"storage", bytes[u].dtypes},
                       {"gather", toString(unit.gather)},
                       {"reduce", toString(unit.reduce)},
                       {"shard_bytes", part.of(bytes[u].kept)},
                       {"gathered_bytes", part.of(bytes[u].gathered)}});
    }
    root["mesh"] = meshJson(*plan, report);
    root["pipeline"] =
        report.pipeline ? scheduleJson(*report.pipeline) : Json();
    root["units"] = units;
    Json decisions = Json::array();
    for (const plan::Decision &d : plan->decisions)
      decisions.push_back({{"what", d.what},
                           {"where", d.where},
                           {"choice", d.choice},
                           {"why", d.why},
                           {"file", d.file.empty() ? Json() : Json(d.file)},
                           {"line", d.line ? Json(d.line) : Json()},
                           {"column", d.column ? Json(d.column) : Json()},
                           {"alternatives", d.alternatives}});
    root["decisions"] = decisions;
  } else {
    root["memory"] = nullptr;
    root["time"] = nullptr;
    root["mesh"] = nullptr;
    root["pipeline"] = nullptr;
    root["units"] = Json::array();
    root["decisions"] = Json::array();
  }
  root["modelled"] =
      report.advice && report.advice->model
          ? candidateJson(*report.advice->model, report.advice->candidate)
          : Json();
  root["recommendations"] = Json::array();
  if (report.advice)
    addAdvice(root, *report.advice);
  root["executor"] = toString(report.executor);
  root["diagnostics"] = Json::parse(renderJson(engine));
  root["planning_s"] = report.planningSeconds;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace accel
