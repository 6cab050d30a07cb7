//===- Compile.cpp - From a configuration to a plan -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Compile.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Schema.h"
#include "passes/Export/BuildPlan.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Simulate/Time.h"
#include "passes/Targets/Target.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "tools/accel-opt/AdviceText.h"
#include "tools/accel-opt/EmitRemarks.h"
#include "tools/accel-opt/FrozenParts.h"
#include "tools/accel-opt/ImportModule.h"
#include "tools/accel-opt/LossChunks.h"
#include "tools/accel-opt/OwnPrediction.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/SourceMgr.h"

#include <filesystem>

using namespace mlir;

namespace accel {
namespace {

/// Caps in bytes at which --tune solves each segment: what is between them is
/// made up of layers of both kinds.
constexpr int solvedPoints = 12;

/// The first file position inside a location, if there is any.
FileLineColLoc filePosition(mlir::Location location) {
  FileLineColLoc found;
  location->walk([&](mlir::Location inner) {
    if (auto position = dyn_cast<FileLineColLoc>(inner)) {
      found = position;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return found;
}

class Compiler {
public:
  Compiler(const PlanOptions &options, DiagnosticEngine &engine)
      : options(options), engine(engine), context(makeContext(), threading()) {
    context.loadAllAvailableDialects();
  }

  CompileResult run() {
    ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &d) { return report(d); });
    bool ready = options.compileFrom.empty() ? import() : parse();
    if (!ready || engine.hasErrors())
      return std::move(result);
    warnOpaque();
    Phase from = options.compileFrom.empty() ? Phase::Model
                                             : *parsePhase(options.compileFrom);
    Phase to = options.compileTo.empty() ? Phase::Scheduled
                                         : *parsePhase(options.compileTo);
    if (!runPhasesBetween(from, to))
      return std::move(result);
    if (!options.compileTo.empty()) {
      result.report.mlir = print();
      result.valid = true;
      return std::move(result);
    }
    result.valid = predict() && judge() && compileChosen();
    if (result.valid && !options.remarks.empty())
      result.valid =
          emitRemarks(context, result.plan.decisions, options.remarks, engine);
    result.hasPlan = result.valid;
    return std::move(result);
  }

private:
  static DialectRegistry makeContext() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
  static MLIRContext::Threading threading() {
    return MLIRContext::Threading::DISABLED;
  }

  bool import() {
    inputs = readPlanInputs(options, engine);
    if (!inputs || !checkAdapterDtypes(*inputs, engine))
      return false;
    if (!loadTarget(inputs->targetName))
      return false;
    result.report.title = inputs->modelName;
    ranksPerNode = options.nodes ? inputs->job.accelerate.numProcesses.value /
                                       options.nodes
                                 : inputs->job.accelerate.processesPerMachine();
    result.report.strategy = strategyName(inputs->job.accelerate);
    importing = importOptions(*inputs, options, targetOrNone());
    if (importing.lossChunks == 0 &&
        inputs->executor != ExecutorKind::AccelRun && options.emit.empty() &&
        options.compileTo.empty())
      importing.lossChunks = -1; // nobody asks for the program's own loss
    if (importing.lossChunks == 0 && !chooseChunks())
      return false;
    FailureOr<OwningOpRef<mlir::ModuleOp>> imported =
        importModule(context, *inputs, importing, engine);
    if (failed(imported))
      return false;
    module = std::move(*imported);
    return true;
  }

  bool chooseChunks() {
    std::optional<int64_t> budget;
    if (!options.memoryBudget.empty())
      budget = parseBytes(options.memoryBudget);
    else if (target)
      budget = target->memoryBytes;
    const Target machine = target ? *target : standIn();
    return chooseLossChunks(context, *inputs, {machine, ranksPerNode, budget},
                            importing, engine);
  }

  const Target *targetOrNone() const { return target ? &*target : nullptr; }

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

  bool parse() {
    module = parseSourceFile<mlir::ModuleOp>(options.config, &context);
    if (!module) {
      if (!engine.hasErrors())
        engine.error("bad-mlir", options.config,
                     "cannot be read as MLIR of the phase '" +
                         options.compileFrom + "'");
      return false;
    }
    std::string missing =
        missingForPhase(*module, *parsePhase(options.compileFrom));
    if (!missing.empty()) {
      engine.error("bad-mlir", options.config,
                   "is no module of the phase '" + options.compileFrom +
                       "': " + missing);
      return false;
    }
    result.report.title =
        std::filesystem::path(options.config).filename().string();
    result.report.strategy = "a compiled module";
    return loadTarget(options.target);
  }

  /// Names each operator that is not modelled, once.
  void warnOpaque() {
    llvm::MapVector<StringRef, SmallVector<aten::OpaqueOp>> found;
    module->walk(
        [&](aten::OpaqueOp op) { found[op.getCallee()].push_back(op); });
    for (auto &[callee, ops] : found) {
      std::string where = aten::modulePath(ops.front().getLoc());
      engine.warning(
          "opaque-operator", options.config,
          "'" + callee.str() + "' is not modelled" +
              (where.empty() ? "" : " (in " + where + ")") + ", " +
              std::to_string(ops.size()) +
              (ops.size() == 1 ? " operation" : " operations") +
              ": LibTorch runs and differentiates it; its memory is bounded "
              "from above, its time is that of its bytes",
          "the plan is valid; predictions are rougher the more of them there "
          "are");
    }
  }

  bool loadTarget(const std::string &name) {
    if (name.empty())
      return true;
    target = accel::loadTarget(name, engine);
    return target.has_value();
  }

  bool runPhasesBetween(Phase from, Phase to) {
    if (!dump(from))
      return false;
    for (Phase phase = from; phase < to;) {
      Phase next = static_cast<Phase>(static_cast<int>(phase) + 1);
      if (failed(runPhases(*module, phase, next))) {
        if (!engine.hasErrors())
          engine.error("internal", options.config,
                       std::string("the phase '") + toString(next) +
                           "' failed without a message");
        return false;
      }
      phase = next;
      if (!dump(phase))
        return false;
      if (wants(phase == Phase::Sharded ? "mlir" : "schedule"))
        (phase == Phase::Sharded ? result.sharded : result.scheduled) = print();
    }
    return true;
  }

  bool wants(const std::string &kind) const {
    return std::find(options.emit.begin(), options.emit.end(), kind) !=
           options.emit.end();
  }

  bool dump(Phase phase) {
    if (options.dumpPhases.empty())
      return true;
    std::error_code error;
    std::filesystem::create_directories(options.dumpPhases, error);
    std::string path = options.dumpPhases + "/" +
                       std::to_string(static_cast<int>(phase)) + "." +
                       toString(phase) + ".mlir";
    std::string message;
    if (plan::writeFileAtomically(path, print(), message))
      return true;
    engine.error("write-failed", path, message);
    return false;
  }

  std::string print() {
    std::string text;
    llvm::raw_string_ostream out(text);
    module->print(out, OpPrintingFlags().enableDebugInfo(true, false));
    return text;
  }

  bool predict() {
    plan::Plan &plan = result.plan;
    plan.generator = std::string("accel-opt ") + ACCEL_VERSION;
    if (failed(buildPlan(*module, plan)))
      return false;
    plan::predictMemory(plan);
    if (target) {
      plan.target = target->name;
      plan.predicted.reservedBytes =
          target->reservedBytes(plan.predicted.peakBytes);
      predictTime(plan, *target, ranksPerNode);
      plan.predicted.deviceBytes =
          plan.predicted.reservedBytes + target->contextBytes;
      result.report.budgetBytes = options.memoryBudget.empty()
                                      ? target->memoryBytes
                                      : parseBytes(options.memoryBudget);
      result.report.mfu = modelFlopsUtilisation(plan, *target);
    } else {
      plan.predicted.reservedBytes = plan.predicted.deviceBytes =
          plan.predicted.peakBytes;
      if (!options.memoryBudget.empty())
        result.report.budgetBytes = parseBytes(options.memoryBudget);
    }
    if (result.report.budgetBytes)
      result.report.fits =
          plan.predicted.deviceBytes <= *result.report.budgetBytes;
    result.report.prediction =
        ownPrediction(plan, targetOrNone(), ranksPerNode);
    result.report.hasTime = target.has_value();
    if (!plan.units.empty()) {
      result.report.compute = plan.units[0].gather;
      result.report.reduce = plan.units[0].reduce;
    }
    for (const std::string &problem : plan::verify(plan))
      engine.error("internal", options.config, "the plan is wrong: " + problem);
    return !engine.hasErrors();
  }

  /// The configuration under its executor, and what would be better.
  bool judge() {
    if (inputs && !reportFrozen(result.plan, *inputs, engine))
      return false;
    if (!inputs)
      return true; // a compiled module has no configuration
    AdviceInputs in = {*inputs,
                       options,
                       inputs->executor,
                       targetOrNone(),
                       standIn(),
                       ranksPerNode ? ranksPerNode : 1,
                       result.report.budgetBytes,
                       askedLossChunks(),
                       {}};
    const Target &machine = target ? *target : in.device;
    // Without seconds there is nothing to be solved.
    SolvedWays ways(!options.tune.empty() && target ? solvedPoints : 0);
    in.source = [&](int64_t microBatch, int recipe, int64_t chunks) {
      ImportOptions with = importing;
      DiagnosticEngine tried;
      // A graph that cannot be cut is no error here.
      trying = chunks > 0;
      if (trying) {
        with.lossChunks = chunks;
        with.lossWhy = "tried";
      }
      DiagnosticEngine &to = trying ? tried : engine;
      std::shared_ptr<const StepModel> model;
      if (!recipe) {
        model = stepModelOf(context, *inputs, with, microBatch,
                            inputs->executor, &machine, &ways, to);
      } else {
        PlanInputs other = *inputs;
        other.job = inputs->precisions[recipe - 1].job;
        model = stepModelOf(context, other, with, microBatch, inputs->executor,
                            &machine, &ways, to);
      }
      trying = false;
      return model;
    };
    result.report.advice = advise(in, engine);
    if (!result.report.advice)
      return false;
    useExecutorsFigures(*result.report.advice);
    return !engine.hasErrors();
  }

  /// 0: executors other than accel-run cut the loss as a fused kernel does.
  int64_t askedLossChunks() const {
    const int64_t resolved = std::max<int64_t>(1, importing.lossChunks);
    return inputs->executor != ExecutorKind::AccelRun && asksAuto() ? 0
                                                                    : resolved;
  }
  bool asksAuto() const {
    return options.lossChunks.empty() ? inputs->job.lossChunks.value == 0
                                      : options.lossChunks == "auto";
  }

  /// accel-run's figures are those of its program; other executors' those of
  /// their model.
  void useExecutorsFigures(const Advice &advice) {
    PlanReport &r = result.report;
    r.executor = advice.executor;
    r.compute = advice.candidate.recipe.compute;
    r.reduce = advice.candidate.recipe.reduce;
    if (r.executor == ExecutorKind::AccelRun) {
      r.prediction.recomputeSeconds = advice.configured.recomputeSeconds;
      return;
    }
    r.prediction = advice.configured;
    if (r.budgetBytes)
      r.fits = r.prediction.deviceBytes <= *r.budgetBytes;
    if (target && target->host.memoryBytes > 0)
      r.hostBytes = target->host.memoryBytes;
    if (r.hostBytes && r.prediction.hostBytes > *r.hostBytes)
      r.fits = false;
    r.smallestRank = advice.smallestRank;
    if (r.mfu && r.prediction.stepSeconds > 0)
      *r.mfu *= result.plan.predicted.stepSeconds / r.prediction.stepSeconds;
  }

  /// The plan becomes that of the setting that a search chose; where accel-run
  /// is what was judged, its exact figures take the place of the model's.
  bool compileChosen() {
    std::optional<Advice> &advice = result.report.advice;
    if (!advice)
      return true;
    if (!advice->tuned) {
      // Else the plan would not be that of its own phases.
      if (options.remarks.empty())
        return true;
      for (plan::Decision &decision : recordedDecisions(*advice))
        result.plan.decisions.push_back(std::move(decision));
      return true;
    }
    bool own = advice->executor == ExecutorKind::AccelRun;
    if (own)
      advice->configured = result.report.prediction;
    if (!advice->tuned->result.best)
      return true;
    plan::Plan configured = result.plan;
    PlanReport report = result.report;
    if (advice->tuned->result.best->point != advice->space->configured) {
      PlanInputs chosen = *inputs;
      ImportOptions importOptions = importing;
      choose(*advice, chosen, importOptions);
      FailureOr<OwningOpRef<mlir::ModuleOp>> imported =
          importModule(context, chosen, importOptions, engine);
      if (failed(imported))
        return false;
      module = std::move(*imported);
      result.plan = plan::Plan();
      if (!runPhasesBetween(Phase::Model, Phase::Scheduled) || !predict())
        return false;
    }
    if (own)
      certify(*advice->tuned);
    for (plan::Decision &decision : recordedDecisions(*advice))
      result.plan.decisions.push_back(std::move(decision));
    result.report.prediction = report.prediction;
    result.report.fits = report.fits;
    result.report.mfu = report.mfu;
    result.report.compute = report.compute;
    result.report.reduce = report.reduce;
    result.configured = std::move(configured);
    return true;
  }

  /// What the search was told against the program itself.
  void certify(Tuned &tuned) {
    double recomputation = tuned.predicted.recomputeSeconds;
    StepPrediction exact = result.report.prediction;
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

  /// What bytes are predicted on where no target is given: any machine of the
  /// kind does, since its speed and memory are not used.
  Target standIn() {
    DiagnosticEngine ignored;
    bool cpu = importing.device == "cpu";
    return accel::loadTarget(cpu ? "cpu" : "a100-80gb", ignored)
        .value_or(Target());
  }

  LogicalResult report(mlir::Diagnostic &d) {
    if (trying)
      return success();
    Diagnostic diagnostic;
    switch (d.getSeverity()) {
    case DiagnosticSeverity::Error:
      diagnostic.severity = Severity::Error;
      break;
    case DiagnosticSeverity::Warning:
      diagnostic.severity = Severity::Warning;
      break;
    default:
      diagnostic.severity = Severity::Note;
    }
    diagnostic.code = "plan";
    diagnostic.message = d.str();
    diagnostic.file = options.config;
    if (auto position = filePosition(d.getLocation())) {
      diagnostic.file = position.getFilename().str();
      diagnostic.line = static_cast<int>(position.getLine());
      diagnostic.column = static_cast<int>(position.getColumn());
    }
    for (mlir::Diagnostic &note : d.getNotes())
      diagnostic.hint += (diagnostic.hint.empty() ? "" : "; ") + note.str();
    engine.report(std::move(diagnostic));
    return success();
  }

  const PlanOptions &options;
  DiagnosticEngine &engine;
  MLIRContext context;
  OwningOpRef<mlir::ModuleOp> module;
  std::optional<Target> target;
  std::optional<PlanInputs> inputs;
  ImportOptions importing;
  int64_t ranksPerNode = 0; // 0: the target's own
  bool trying = false;      // what fails is left out, not reported
  CompileResult result;
};

} // namespace

CompileResult compile(const PlanOptions &options, DiagnosticEngine &engine) {
  return Compiler(options, engine).run();
}

} // namespace accel
