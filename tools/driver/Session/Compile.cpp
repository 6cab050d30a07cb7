//===- Compile.cpp - From a configuration to a plan -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Compile.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Frameworks/Fp8Layers.h"
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Inputs/Fp8Inputs.h"
#include "tools/driver/Inputs/FrozenParts.h"
#include "tools/driver/Inputs/OffloadInputs.h"
#include "tools/driver/Session/AccelRunPrediction.h"
#include "tools/driver/Session/CompilePhases.h"
#include "tools/driver/Session/DecidedSteps.h"
#include "tools/driver/Session/EmitRemarks.h"
#include "tools/driver/Session/ImportModule.h"
#include "tools/driver/Session/PhaseOutputs.h"
#include "tools/driver/Session/ReportFigures.h"
#include "tools/driver/Text/Format.h"

using namespace mlir;

namespace accel {
namespace {

/// A whole plan of a loaded session.
class Compiler {
public:
  Compiler(Session &session, CompileResult &result)
      : session(session), options(session.options), engine(session.engine),
        result(result), outputs(options, engine, result), steps(session) {}

  bool run() {
    describeInputs(session, result.report);
    Session::Module module = session.import(session.importing);
    if (!module)
      return false;
    session.warnOpaque(*module);
    if (!outputs.dump(*module, Phase::Model) ||
        failed(runDecisions(*module, session.verification())))
      return outputs.internal("the decisions");
    plan::Plan configured;
    if (!session.own()) {
      warnUnconverted(*module);
      if (!skeleton(*module, configured))
        return false;
    }
    if (failed(runDifferentiation(*module, session.verification())))
      return outputs.internal("the differentiation");
    describeSplits(*module, result.report);
    if (session.own()) {
      // What accel-run's functions save is decided after the step model, which
      // has all the ways.
      Session::Module copy = module->clone();
      if (!steps.keep(*copy))
        return false;
      steps.decideWaits(*module);
      if (!save(*module) || !schedule(*module, configured))
        return outputs.internal("the schedule");
      useProgramFigures(session, configured, result.report);
    } else {
      if (!outputs.reached(*module, Phase::Sharded) || !steps.keep(*module))
        return outputs.internal("the sharded phase");
    }
    module.release()->erase();
    if (!reportFrozen(configured, *session.inputs, engine) ||
        !evaluate(configured))
      return false;
    return finish(std::move(configured));
  }

private:
  /// Units and decisions without a program.
  bool skeleton(mlir::ModuleOp module, plan::Plan &plan) {
    plan.generator = "accel-opt " ACCEL_VERSION;
    if (failed(buildSkeleton(module, plan)))
      return outputs.internal("the decisions");
    if (session.target)
      plan.target = session.target->name;
    return true;
  }

  /// Libraries convert layers of the class nn.Linear whose dimensions divide;
  /// GPT-2's are of a class of its own.
  void warnUnconverted(mlir::ModuleOp module) {
    const auto asked = fp8Training(*session.inputs);
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!asked || !job || !job.getFp8Attr())
      return;
    const auto [converted, all] = countFp8Layers(module);
    if (converted == 0)
      engine.report(diagnosticAt(*asked, Severity::Warning, "fp8-unconverted",
                                 "fp8 converts 0 of " + std::to_string(all) +
                                     " linear layer" + (all == 1 ? "" : "s") +
                                     ": the model computes in 16 bits",
                                 "write mixed_precision: bf16"));
  }

  /// From a differentiated module to the phase `sharded`.
  bool save(mlir::ModuleOp module) {
    return succeeded(runSaves(module, session.verification())) &&
           outputs.reached(module, Phase::Sharded);
  }

  /// From the phase `sharded` to accel-run's plan with its figures.
  bool schedule(mlir::ModuleOp module, plan::Plan &plan) {
    if (failed(runPhases(module, Phase::Sharded, Phase::Scheduled,
                         session.verification(), options.target,
                         !options.noOverlap)) ||
        !outputs.reached(module, Phase::Scheduled) ||
        failed(buildPredictedPlan(module, session.targetOrNone(),
                                  session.ranksPerNode, session.ownAllocator(),
                                  plan)) ||
        !checkPlan(plan, options.config, engine))
      return false;
    warnIdleOffload(*session.inputs, plan, engine);
    return true;
  }

  /// The configuration under its framework, and what would be better.
  bool evaluate(const plan::Plan &configured) {
    AdviceInputs in = {
        *session.inputs,
        options,
        session.inputs->executor,
        session.targetOrNone(),
        session.machine(),
        session.ranksPerNode ? session.ranksPerNode : 1,
        result.report.budgetBytes,
        result.report.roomBytes,
        session.importing.lossChunks
            ? session.importing.lossChunks->count.value_or(1)
            : 1,
        session.own() ? &result.report.prediction : nullptr,
        [&](const std::vector<tune::ConfigEdit> &edits) {
          return steps.planAgain(edits);
        },
        [&](const Advice &advice, const tune::Point &point) {
          PlanInputs inputs = *session.inputs;
          ImportOptions import = session.importing;
          choose(advice, point, inputs, import);
          return steps.planProgram(inputs, import);
        },
        [&](const tune::ConfigEdit &edit) { return steps.modelOf(edit); },
        [&](int64_t microBatch, int precision, int64_t chunks) {
          return steps.at(microBatch, precision, chunks);
        }};
    result.report.advice = advise(in, engine);
    if (!result.report.advice)
      return false;
    useFrameworkFigures(session, configured, *result.report.advice,
                        result.report);
    if (!session.own())
      reportPhases(
          session, *result.report.advice,
          [&](int64_t batch) { return steps.unsolvedAt(batch); },
          result.report);
    addErrorBars(session, result.report);
    return !engine.hasErrors();
  }

  //===--- What a search chose --------------------------------------------===//

  bool finish(plan::Plan configured) {
    Advice &advice = *result.report.advice;
    const bool searched = advice.tuned && advice.tuned->result.best;
    const bool differs = searched && advice.tuned->result.best->point !=
                                         advice.space->configured;
    plan::Plan chosen = configured;
    if (differs) {
      chosen = plan::Plan();
      if (!compileChosen(advice, chosen))
        return false;
    }
    if (session.own() && searched)
      certify(advice, chosen);
    if (searched || !options.remarks.empty())
      record(advice, chosen);
    if (session.own()) {
      result.program = chosen;
    } else if (session.asksForProgram() && !compileProgram(advice, differs)) {
      return false;
    }
    configured.decisions = chosen.decisions;
    result.shown = std::move(configured);
    result.chosen = std::move(chosen);
    return options.remarks.empty() ||
           emitRemarks(session.context, result.chosen->decisions,
                       {options.remarks, options.overwrite}, engine);
  }

  static void record(const Advice &advice, plan::Plan &plan) {
    for (plan::Decision &decision : recordedDecisions(advice))
      plan.decisions.push_back(std::move(decision));
  }

  bool compileChosen(const Advice &advice, plan::Plan &plan) {
    PlanInputs inputs = *session.inputs;
    ImportOptions import = session.importing;
    const tune::Point &point = advice.tuned->result.best->point;
    if (advice.space->mesh(point).whole() && point[tune::Knob::Mesh])
      if (auto edited =
              steps.edited(advice.editor->express(tune::Knob::Mesh, point))) {
        inputs = std::move(edited->inputs);
        import = edited->importing;
      }
    choose(advice, point, inputs, import);
    Session::Module module = session.import(inputs, import, engine);
    if (!module || failed(runDecisions(*module, session.verification())))
      return outputs.internal("the decisions of the recommended setting");
    if (!session.own())
      return skeleton(*module, plan);
    return (succeeded(runDifferentiation(*module, session.verification())) &&
            save(*module) && schedule(*module, plan)) ||
           outputs.internal("the recommended setting");
  }

  /// accel-run's program of a job that another framework runs.
  bool compileProgram(const Advice &advice, bool searched) {
    PlanInputs inputs = *session.inputs;
    ImportOptions import = session.programImport;
    if (searched)
      choose(advice, advice.tuned->result.best->point, inputs, import);
    Session::Module module = session.import(inputs, import, engine);
    plan::Plan plan;
    if (!module || failed(runDecisions(*module, session.verification())) ||
        failed(runDifferentiation(*module, session.verification())) ||
        failed(runSaves(*module, session.verification())) ||
        !schedule(*module, plan))
      return outputs.internal("accel-run's program");
    if (advice.tuned)
      record(advice, plan);
    result.program = std::move(plan);
    return true;
  }

  /// What the search was told against the program itself.
  void certify(Advice &advice, const plan::Plan &program) {
    Tuned &tuned = *advice.tuned;
    StepPrediction exact = accelRunPrediction(program, session.targetOrNone(),
                                              session.ranksPerNode);
    exact.recomputeSeconds = recomputeSecondsOf(
        program, *advice.model,
        expand(*advice.space, *advice.model, tuned.result.best->point),
        tuned.predicted.recomputeSeconds);
    if (exact.deviceBytes > advice.roomBytes)
      engine.warning("not-certified", options.config,
                     "the program of the recommended setting takes " +
                         formatBytes(exact.deviceBytes) + ", which is over " +
                         judgedBy(advice) + "; the search was told " +
                         formatBytes(tuned.predicted.deviceBytes),
                     "give a smaller --memory-budget");
    tuned.predicted = exact;
  }

  Session &session;
  const PlanOptions &options;
  DiagnosticEngine &engine;
  CompileResult &result;
  PhaseOutputs outputs;
  DecidedSteps steps;
};

} // namespace

CompileResult compile(const PlanOptions &options, DiagnosticEngine &engine) {
  CompileResult result;
  Session session(options, engine);
  if (options.compileFrom || options.compileTo)
    compilePhases(session, result);
  else if (session.load())
    result.valid = Compiler(session, result).run();
  return result;
}

} // namespace accel
