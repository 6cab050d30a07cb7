//===- Outputs.cpp - The files that plan writes ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/Outputs.h"

#include "runtime/plan/OutputModel.h"
#include "runtime/plan/PlanJson.h"
#include "tools/driver/Emit/EmitAdvice.h"
#include "tools/driver/Emit/EmitDot.h"
#include "tools/driver/Emit/EmitPerfetto.h"
#include "tools/driver/Emit/EmitSnapshot.h"
#include "tools/driver/Emit/PlanPaths.h"
#include "tools/driver/Output/OutputFile.h"

#include <filesystem>
#include <utility>
#include <vector>

namespace accel {
namespace {

/// By which an earlier output to `path` is recognised; what --emit accelerate
/// and job write are a user's files with other lines.
FileForm formOf(EmitKind kind) {
  switch (kind) {
  case EmitKind::Plan:
    return FileForm::Plan;
  case EmitKind::Mlir:
  case EmitKind::Schedule:
    return FileForm::Mlir;
  case EmitKind::Dot:
    return FileForm::Dot;
  case EmitKind::Perfetto:
    return FileForm::Trace;
  case EmitKind::Python:
    return FileForm::Python;
  case EmitKind::Torchtitan:
    return FileForm::Torchtitan;
  case EmitKind::MemorySnapshot:
    return FileForm::Snapshot;
  case EmitKind::Accelerate:
  case EmitKind::Job:
  case EmitKind::Megatron:
    break;
  }
  return FileForm::Other;
}

/// The step as configured, which needs a machine with a speed.
std::optional<yaml::FileTexts> traceText(EmitKind kind, const std::string &path,
                                         const PlanOptions &options,
                                         const CompileResult &result,
                                         DiagnosticEngine &engine) {
  const std::optional<Advice> &advice = result.report.advice;
  const std::string name =
      options.target.empty() ? result.shown->target : options.target;
  if (name.empty()) {
    engine.error("emit-perfetto", options.config,
                 "a step has no seconds without a device",
                 "pass --target; accel-opt targets lists them");
    return std::nullopt;
  }
  const std::optional<Target> target = loadTarget(name, engine);
  if (!target)
    return std::nullopt;
  if (!advice || !advice->model) {
    engine.error("emit-perfetto", options.config,
                 "there is no model of the step of this configuration");
    return std::nullopt;
  }
  const PlanReport &report = result.report;
  const StepTrace trace = traceStep(*advice->model, *target, advice->candidate);
  if (kind == EmitKind::MemorySnapshot)
    return yaml::FileTexts{
        {path, snapshotPickle(trace, report.prediction.reservedBytes)}};
  return yaml::FileTexts{
      {path, perfettoText(trace,
                          report.title + ", " + report.strategy + " on " +
                              std::to_string(result.shown->ranks()) + " x " +
                              target->name + ": a rank",
                          report.budgetBytes)}};
}

/// The job file has the fastest mesh with all else as written, and a program
/// what --tune chose within the job's own mesh: each is an answer by itself.
void noteOtherMesh(const Advice &advice, const PlanOptions &options,
                   DiagnosticEngine &engine) {
  if (!options.emitsProgram() && !options.emits(EmitKind::Mlir))
    return;
  const RunMesh &mesh = advice.runMeshes->planned.front();
  if (mesh.edit.yaml.empty())
    return;
  engine.note("other-mesh", options.config,
              "the new job file is of the mesh " + mesh.sizes +
                  ", and the program that is written beside it keeps the job's",
              "plan the new job file for its program");
}

/// What other programs read, or accel-run, of what was planned.
std::optional<yaml::FileTexts> textsForOthers(EmitKind kind,
                                              const std::string &path,
                                              const PlanOptions &options,
                                              const CompileResult &result,
                                              DiagnosticEngine &engine) {
  const std::optional<Advice> &advice = result.report.advice;
  if (!advice || !advice->model || !advice->job) {
    engine.error("not-tuned", options.config,
                 "there is no model of the step of this configuration");
    return std::nullopt;
  }
  if (kind == EmitKind::Job) {
    auto texts = emitJob(*advice, path, engine);
    if (texts)
      noteOtherMesh(*advice, options, engine);
    return texts;
  }
  const plan::Plan &plan = *result.shown;
  auto text = kind == EmitKind::Torchtitan
                  ? emitTorchtitan(*advice, plan, options, engine)
                  : emitMegatron(*advice, plan, options, engine);
  return text ? std::optional(yaml::FileTexts{{path, *text}}) : std::nullopt;
}

/// The texts of one kind of output to the file `path`, by path; nothing if it
/// cannot be made, which is reported.
std::optional<yaml::FileTexts> textsOf(EmitKind kind, const std::string &path,
                                       const PlanOptions &options,
                                       const CompileResult &result,
                                       DiagnosticEngine &engine) {
  switch (kind) {
  case EmitKind::Plan: {
    plan::Plan plan = *result.program;
    // Both are absent before the first run.
    if (!plan.job.evalPredictions.empty() && path != "-" &&
        plan::isSameFile(path, plan.job.evalPredictions)) {
      engine.error("predictions-file", path,
                   "the run's predictions (eval.predictions) would replace the "
                   "plan",
                   "write the plan to another file");
      return std::nullopt;
    }
    makePathsRelative(plan, path, options.config);
    return yaml::FileTexts{{path, plan::toJson(plan)}};
  }
  case EmitKind::Schedule:
    return yaml::FileTexts{{path, result.scheduled}};
  case EmitKind::Dot:
    return yaml::FileTexts{{path, dotText(*result.program)}};
  case EmitKind::Mlir:
    return yaml::FileTexts{{path, result.sharded}};
  case EmitKind::Perfetto:
  case EmitKind::MemorySnapshot:
    return traceText(kind, path, options, result, engine);
  case EmitKind::Job:
  case EmitKind::Torchtitan:
  case EmitKind::Megatron:
    return textsForOthers(kind, path, options, result, engine);
  case EmitKind::Accelerate:
  case EmitKind::Python:
    break;
  }
  const std::optional<Advice> &advice = result.report.advice;
  if (!advice || !advice->tuned) {
    engine.error("not-tuned", options.config,
                 "there is no setting to emit: the layout of the units is none "
                 "that the search knows");
    return std::nullopt;
  }
  if (kind == EmitKind::Accelerate)
    return emitAccelerate(*advice, path, engine);
  auto text = emitPython(*advice, *result.chosen, engine);
  return text ? std::optional(yaml::FileTexts{{path, *text}}) : std::nullopt;
}

} // namespace

bool writeOutputs(const PlanOptions &options, const CompileResult &result,
                  DiagnosticEngine &engine) {
  if (options.compileTo)
    return options.output.empty() ||
           writeOutputFile({options.output, options.overwrite}, FileForm::Mlir,
                           result.report.mlir, engine);
  const bool folder = options.emit.size() > 1;
  if (folder) {
    std::error_code error;
    std::filesystem::create_directories(options.output, error);
    if (error) {
      engine.error("write-failed", options.output, error.message());
      return false;
    }
  }
  // All or nothing is replaced.
  std::vector<std::pair<FileForm, yaml::FileTexts>> outputs;
  for (EmitKind kind : options.emit) {
    const std::string path =
        folder ? options.output + "/" + fileName(kind) : options.output;
    auto texts = textsOf(kind, path, options, result, engine);
    if (!texts)
      return false;
    for (const auto &[file, text] : *texts)
      if (!mayWrite({file, options.overwrite}, formOf(kind), text, engine))
        return false;
    outputs.emplace_back(formOf(kind), std::move(*texts));
  }
  for (const auto &[form, texts] : outputs)
    for (const auto &[file, text] : texts)
      if (!writeOutputFile({file, options.overwrite}, form, text, engine))
        return false;
  return true;
}

} // namespace accel
