//===- Compile.cpp - From a configuration to a plan -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Compile.h"

#include "passes/Export/BuildPlan.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Simulate/Time.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Emit/EmitRemarks.h"
#include "tools/driver/Inputs/FrozenParts.h"
#include "tools/driver/Session/LossChunks.h"
#include "tools/driver/Session/Nesting.h"
#include "tools/driver/Session/OwnPrediction.h"
#include "tools/driver/Session/Session.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <filesystem>

using namespace mlir;

namespace accel {
namespace {

class Compiler {
public:
  Compiler(const PlanOptions &options, DiagnosticEngine &engine)
      : options(options), engine(engine), session(options, engine) {}

  CompileResult run() {
    if (!options.compileFrom.empty() || !options.compileTo.empty())
      runBetweenPhases();
    else if (load())
      result.valid = runWhole();
    return std::move(result);
  }

private:
  //===--- Phases that the command line names -----------------------------===//

  void runBetweenPhases() {
    const bool parsing = !options.compileFrom.empty();
    const Phase from =
        parsing ? *parsePhase(options.compileFrom) : Phase::Model;
    const Phase to = options.compileTo.empty() ? Phase::Scheduled
                                               : *parsePhase(options.compileTo);
    OwningOpRef<mlir::ModuleOp> module = parsing ? parse() : import(to);
    if (!module || engine.hasErrors())
      return;
    session.warnOpaque(*module);
    if (to == Phase::Scheduled && frameworkOf(*module).eager()) {
      engine.error("bad-mlir", options.config,
                   std::string("is decided for ") +
                       frameworkOf(*module).name() +
                       ", and programs are accel-run's",
                   "compile the configuration with --executor accel-run");
      return;
    }
    if (!runPhasesBetween(*module, from, to))
      return;
    result.valid = true;
    if (!options.compileTo.empty()) {
      result.report.mlir = print(*module);
      return;
    }
    plan::Plan plan;
    result.valid = predictProgram(*module, plan) && remark(plan.decisions);
    useProgramFigures(plan);
    result.program = plan;
    result.shown = std::move(plan);
  }

  /// Programs are accel-run's; other phases are of whoever runs the job.
  OwningOpRef<mlir::ModuleOp> import(Phase to) {
    if (!load())
      return {};
    auto module = session.import(to == Phase::Scheduled ? programOptions()
                                                        : session.importing);
    return failed(module) ? OwningOpRef<mlir::ModuleOp>() : std::move(*module);
  }

  OwningOpRef<mlir::ModuleOp> parse() {
    if (auto text = llvm::MemoryBuffer::getFile(options.config);
        text && mlirNesting((*text)->getBuffer()) > maxMlirNesting) {
      engine.error("bad-mlir", options.config,
                   "is nested more than " + std::to_string(maxMlirNesting) +
                       " levels deep");
      return {};
    }
    auto module =
        parseSourceFile<mlir::ModuleOp>(options.config, &session.context);
    if (!module) {
      if (!engine.hasErrors())
        engine.error("bad-mlir", options.config,
                     "cannot be read as MLIR of the phase '" +
                         options.compileFrom + "'");
      return {};
    }
    std::string missing =
        missingForPhase(*module, *parsePhase(options.compileFrom));
    if (!missing.empty()) {
      engine.error("bad-mlir", options.config,
                   "is no module of the phase '" + options.compileFrom +
                       "': " + missing);
      return {};
    }
    result.report.title =
        std::filesystem::path(options.config).filename().string();
    result.report.strategy = "a compiled module";
    if (!session.loadTarget(options.target))
      return {};
    return module;
  }

  bool runPhasesBetween(mlir::ModuleOp module, Phase from, Phase to) {
    if (!dump(module, from))
      return false;
    for (Phase phase = from; phase < to;) {
      Phase next = static_cast<Phase>(static_cast<int>(phase) + 1);
      if (failed(runPhases(module, phase, next)))
        return internal(std::string("the phase '") + toString(next) + "'");
      phase = next;
      if (!reached(module, phase))
        return false;
    }
    return true;
  }

  /// Something failed; without a message that is our own fault.
  bool internal(const std::string &what) {
    if (!engine.hasErrors())
      engine.error("internal", options.config,
                   what + " failed without a message");
    return false;
  }

  /// Writes the module wherever it is asked for.
  bool reached(mlir::ModuleOp module, Phase phase) {
    if (phase == Phase::Sharded && wants("mlir"))
      result.sharded = print(module);
    if (phase == Phase::Scheduled && wants("schedule"))
      result.scheduled = print(module);
    return dump(module, phase);
  }

  bool wants(const std::string &kind) const {
    return std::find(options.emit.begin(), options.emit.end(), kind) !=
           options.emit.end();
  }

  bool dump(mlir::ModuleOp module, Phase phase) {
    if (options.dumpPhases.empty())
      return true;
    std::error_code error;
    std::filesystem::create_directories(options.dumpPhases, error);
    std::string path = options.dumpPhases + "/" +
                       std::to_string(static_cast<int>(phase)) + "." +
                       toString(phase) + ".mlir";
    std::string message;
    if (plan::writeFileAtomically(path, print(module), message))
      return true;
    engine.error("write-failed", path, message);
    return false;
  }

  static std::string print(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream out(text);
    module->print(out, OpPrintingFlags().enableDebugInfo(true, false));
    return text;
  }

  //===--- A whole plan ---------------------------------------------------===//

  bool load() {
    if (!session.load())
      return false;
    const PlanInputs &inputs = *session.inputs;
    result.report.title = inputs.modelName;
    result.report.strategy = strategyName(inputs.job.accelerate);
    result.report.executor = inputs.executor;
    if (options.memoryBudget.empty())
      result.report.budgetBytes =
          session.target ? std::optional(session.target->memoryBytes)
                         : std::nullopt;
    else
      result.report.budgetBytes = parseBytes(options.memoryBudget);
    // Nobody asks for the loss of a program that is not made.
    if (session.importing.lossChunks == 0 && (own() || asksForProgram()))
      return chooseLossChunks(session.context, inputs,
                              {session.machine(), session.ranksPerNode,
                               result.report.budgetBytes},
                              session.programImport, engine) &&
             (!own() || (session.importing = session.programImport, true));
    return true;
  }

  bool own() const {
    return session.inputs->executor == ExecutorKind::AccelRun;
  }
  bool asksForProgram() const {
    return wants("plan") || wants("schedule") ||
           options.compileTo == "scheduled";
  }
  const ImportOptions &programOptions() const { return session.programImport; }

  static std::string strategyName(const AccelerateConfig &config) {
    std::string name;
    switch (config.strategy.value) {
    case Strategy::Single:
      return "one process";
    case Strategy::Ddp:
      return "DDP";
    case Strategy::Fsdp1:
      name = "FSDP";
      break;
    case Strategy::Fsdp2:
      name = "FSDP2";
      break;
    case Strategy::Other:
      return toString(config.distributedType.value);
    }
    if (config.mesh->dpReplicate > 1)
      name += " (" + std::to_string(config.mesh->dpReplicate) + " x " +
              std::to_string(config.mesh->dpShard) + ")";
    return name;
  }

  bool runWhole() {
    auto module = session.import(session.importing);
    if (failed(module))
      return false;
    session.warnOpaque(**module);
    if (!dump(**module, Phase::Model) || failed(runDecisions(**module)))
      return internal("the decisions");
    plan::Plan configured;
    if (!own() && !skeleton(**module, configured))
      return false;
    if (failed(runDifferentiation(**module)))
      return internal("the differentiation");
    if (own()) {
      // What accel-run's functions save is decided after the step model, which
      // has all the ways.
      OwningOpRef<mlir::ModuleOp> copy = (*module)->clone();
      if (!session.keep(*copy))
        return false;
      if (failed(runSaves(**module)) || !reached(**module, Phase::Sharded) ||
          !schedule(**module, configured))
        return internal("the schedule");
      useProgramFigures(configured);
    } else {
      if (!reached(**module, Phase::Sharded) || !session.keep(**module))
        return internal("the sharded phase");
    }
    module->release()->erase();
    if (!reportFrozen(configured, *session.inputs, engine) || !judge())
      return false;
    return finish(std::move(configured));
  }

  /// Units and decisions without a program.
  bool skeleton(mlir::ModuleOp module, plan::Plan &plan) {
    plan.generator = std::string("accel-opt ") + ACCEL_VERSION;
    if (failed(buildSkeleton(module, plan)))
      return internal("the decisions");
    if (session.target)
      plan.target = session.target->name;
    return true;
  }

  /// From the phase `sharded` to a plan with its figures.
  bool schedule(mlir::ModuleOp module, plan::Plan &plan) {
    return succeeded(runPhases(module, Phase::Sharded, Phase::Scheduled)) &&
           reached(module, Phase::Scheduled) && predictProgram(module, plan);
  }

  bool predictProgram(mlir::ModuleOp module, plan::Plan &plan) {
    plan.generator = std::string("accel-opt ") + ACCEL_VERSION;
    if (failed(buildPlan(module, plan)))
      return internal("the plan");
    plan::predictMemory(plan);
    plan.predicted.reservedBytes = plan.predicted.deviceBytes =
        plan.predicted.peakBytes;
    if (const auto &target = session.target) {
      plan.target = target->name;
      plan.predicted.reservedBytes =
          target->reservedBytes(plan.predicted.peakBytes);
      predictTime(plan, *target, session.ranksPerNode);
      plan.predicted.deviceBytes =
          plan.predicted.reservedBytes + target->contextBytes;
    }
    for (const std::string &problem : plan::verify(plan))
      engine.error("internal", options.config, "the plan is wrong: " + problem);
    return !engine.hasErrors();
  }

  void useProgramFigures(const plan::Plan &plan) {
    PlanReport &r = result.report;
    if (session.target && !r.budgetBytes)
      r.budgetBytes = options.memoryBudget.empty()
                          ? session.target->memoryBytes
                          : parseBytes(options.memoryBudget);
    else if (!options.memoryBudget.empty())
      r.budgetBytes = parseBytes(options.memoryBudget);
    if (session.target)
      r.mfu = modelFlopsUtilisation(plan, *session.target);
    if (r.budgetBytes)
      r.fits = plan.predicted.deviceBytes <= *r.budgetBytes;
    r.prediction =
        ownPrediction(plan, session.targetOrNone(), session.ranksPerNode);
    r.hasTime = session.target.has_value();
    if (!plan.units.empty()) {
      r.compute = plan.units[0].gather;
      r.reduce = plan.units[0].reduce;
    }
  }

  /// The configuration under its framework, and what would be better.
  bool judge() {
    AdviceInputs in = {
        *session.inputs,
        options,
        session.inputs->executor,
        session.targetOrNone(),
        session.machine(),
        session.ranksPerNode ? session.ranksPerNode : 1,
        result.report.budgetBytes,
        std::max<int64_t>(1, session.importing.lossChunks),
        [&](const std::vector<tune::YamlLine> &lines,
            const tune::Flags &flags) { return session.replan(lines, flags); },
        [&](int64_t microBatch, int recipe, int64_t chunks) {
          return session.step(microBatch, recipe, chunks);
        }};
    result.report.advice = advise(in, engine);
    if (!result.report.advice)
      return false;
    useFrameworkFigures(*result.report.advice);
    return !engine.hasErrors();
  }

  void useFrameworkFigures(const Advice &advice) {
    PlanReport &r = result.report;
    r.compute = advice.candidate.recipe.compute;
    r.reduce = advice.candidate.recipe.reduce;
    if (own()) {
      r.prediction.recomputeSeconds = advice.configured.recomputeSeconds;
      return;
    }
    r.prediction = advice.configured;
    r.hasTime = session.target.has_value();
    if (r.budgetBytes)
      r.fits = r.prediction.deviceBytes <= *r.budgetBytes;
    if (session.target && session.target->host.memoryBytes > 0)
      r.hostBytes = session.target->host.memoryBytes;
    if (r.hostBytes && r.prediction.hostBytes > *r.hostBytes)
      r.fits = false;
    r.smallestRank = advice.smallestRank;
    if (session.target && r.prediction.stepSeconds > 0) {
      const double peak = session.target->peakFlops(r.compute);
      r.mfu = peak > 0 ? modelFlopsPerToken(*advice.model) *
                             r.prediction.tokensPerSecondPerDevice / peak
                       : 0;
    }
  }

  //===--- What a search chose --------------------------------------------===//

  bool finish(plan::Plan configured) {
    Advice &advice = *result.report.advice;
    const bool searched = advice.tuned && advice.tuned->result.best;
    const bool differs = searched && advice.tuned->result.best->point !=
                                         advice.space->configured;
    plan::Plan chosen = configured;
    if (own() && advice.tuned)
      advice.configured = result.report.prediction;
    PlanInputs inputs = *session.inputs;
    if (differs) {
      ImportOptions import = session.importing;
      choose(advice, inputs, import);
      chosen = plan::Plan();
      if (!compileChosen(inputs, import, chosen))
        return false;
    }
    if (own() && searched)
      certify(*advice.tuned, chosen);
    if (searched || !options.remarks.empty())
      for (plan::Decision &decision : recordedDecisions(advice))
        chosen.decisions.push_back(std::move(decision));
    if (own()) {
      result.program = chosen;
    } else if (asksForProgram() && !compileProgram(advice, differs)) {
      return false;
    }
    configured.decisions = chosen.decisions;
    result.shown = std::move(configured);
    result.chosen = std::move(chosen);
    return remark(result.chosen->decisions);
  }

  bool compileChosen(const PlanInputs &inputs, const ImportOptions &import,
                     plan::Plan &plan) {
    auto module = session.import(inputs, import);
    if (failed(module) || failed(runDecisions(**module)))
      return internal("the decisions of the recommended setting");
    if (!own())
      return skeleton(**module, plan);
    return (succeeded(runDifferentiation(**module)) &&
            succeeded(runSaves(**module)) &&
            reached(**module, Phase::Sharded) && schedule(**module, plan)) ||
           internal("the recommended setting");
  }

  /// accel-run's program of a job that another framework runs.
  bool compileProgram(const Advice &advice, bool searched) {
    PlanInputs inputs = *session.inputs;
    ImportOptions import = programOptions();
    if (searched)
      choose(advice, inputs, import);
    auto module = session.import(inputs, import);
    plan::Plan plan;
    if (failed(module) ||
        failed(runPhases(**module, Phase::Model, Phase::Sharded)) ||
        !schedule(**module, plan))
      return internal("accel-run's program");
    if (advice.tuned)
      for (plan::Decision &decision : recordedDecisions(advice))
        plan.decisions.push_back(std::move(decision));
    result.program = std::move(plan);
    return true;
  }

  bool remark(const std::vector<plan::Decision> &decisions) {
    return options.remarks.empty() ||
           emitRemarks(session.context, decisions, options.remarks, engine);
  }

  /// What the search was told against the program itself.
  void certify(Tuned &tuned, const plan::Plan &program) {
    double recomputation = tuned.predicted.recomputeSeconds;
    StepPrediction exact =
        ownPrediction(program, session.targetOrNone(), session.ranksPerNode);
    exact.recomputeSeconds = recomputation;
    if (result.report.budgetBytes &&
        exact.deviceBytes > *result.report.budgetBytes)
      engine.warning("not-certified", options.config,
                     "the program of the recommended setting takes " +
                         formatBytes(exact.deviceBytes) +
                         ", which is over the budget; the search was told " +
                         formatBytes(tuned.predicted.deviceBytes),
                     "give a smaller --memory-budget");
    tuned.predicted = exact;
  }

  const PlanOptions &options;
  DiagnosticEngine &engine;
  Session session;
  CompileResult result;
};

} // namespace

CompileResult compile(const PlanOptions &options, DiagnosticEngine &engine) {
  return Compiler(options, engine).run();
}

} // namespace accel
