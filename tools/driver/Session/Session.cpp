//===- Session.cpp - One run of the compiler ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Session.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Sharding/Sharding.h"
#include "frontends/TorchExport/BuildProgram.h"
#include "frontends/TorchExport/Describe.h"
#include "passes/Executors/BuildStepModel.h"
#include "passes/Executors/DecidedCandidate.h"
#include "passes/Pipeline/Phases.h"
#include "tools/driver/Emit/EmitAdvice.h"
#include "tools/driver/Inputs/FrozenParts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

#include <fstream>
#include <iterator>

using namespace mlir;

namespace accel {
namespace {

/// Caps in bytes at which --tune solves each segment: what is between them is
/// made up of layers of both kinds.
constexpr int solvedPoints = 12;

DialectRegistry dialects() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

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

} // namespace

Session::Session(const PlanOptions &options, DiagnosticEngine &engine)
    : options(options), engine(engine),
      context(dialects(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  handler = std::make_unique<ScopedDiagnosticHandler>(
      &context, [this](mlir::Diagnostic &d) { return report(d); });
}

bool Session::loadTarget(const std::string &name) {
  if (name.empty())
    return true;
  target = accel::loadTarget(name, engine);
  return target.has_value();
}

Target Session::machine() const {
  if (target)
    return *target;
  DiagnosticEngine ignored;
  return accel::loadTarget(importing.device == "cpu" ? "cpu" : "a100-80gb",
                           ignored)
      .value_or(Target());
}

bool Session::load() {
  inputs = readPlanInputs(options, engine);
  if (!inputs || !checkAdapterDtypes(*inputs, engine) ||
      !loadTarget(inputs->targetName))
    return false;
  ranksPerNode = options.nodes
                     ? inputs->job.accelerate.numProcesses.value / options.nodes
                     : inputs->job.accelerate.processesPerMachine();
  importing = importOptions(*inputs, options, targetOrNone());
  importing.ranksPerNode = ranksPerNode;
  programImport = importing;
  programImport.framework = ExecutorKind::AccelRun;
  programImport.fusedLoss = false;
  // Without seconds there is nothing to be solved.
  solved = std::make_unique<SolvedWays>(
      !options.tune.empty() && target ? solvedPoints : 0);
  return true;
}

std::shared_ptr<const DecidedStep> Session::read(mlir::ModuleOp module) {
  StepModelOptions modelOptions;
  const Target on = machine();
  modelOptions.target = &on;
  modelOptions.solved = solved.get();
  FailureOr<StepModel> model = buildStepModel(module, modelOptions);
  if (failed(model))
    return nullptr;
  auto step = std::make_shared<DecidedStep>();
  step->model = std::make_shared<const StepModel>(std::move(*model));
  FailureOr<Candidate> candidate = decidedCandidate(module, *step->model);
  if (failed(candidate))
    return nullptr;
  step->candidate = std::move(*candidate);
  return step;
}

bool Session::keep(mlir::ModuleOp module) {
  auto step = read(module);
  if (!step)
    return false;
  auto precision = sharding::findRequest(module, "precision");
  models[{precision ? precision.getValue().getAsOpaquePointer() : nullptr,
          inputs->training.microBatch}] = step->model;
  steps[{inputs->training.microBatch, 0, 0}] = std::move(step);
  return true;
}

std::shared_ptr<const DecidedStep> Session::step(int64_t microBatch, int recipe,
                                                 int64_t lossChunks) {
  auto [known, isNew] = steps.try_emplace({microBatch, recipe, lossChunks});
  if (!isNew)
    return known->second;
  // A program whose batch is fixed has no model at another one.
  if (const torchexport::Program *program = inputs->model.program()) {
    torchexport::ExportedSizes sizes = torchexport::exportedSizes(*program);
    if (!sizes.openBatch && sizes.microBatch != microBatch)
      return nullptr;
  }
  ImportOptions with = importing;
  with.microBatch = microBatch;
  if (lossChunks > 0) {
    with.lossChunks = lossChunks;
    with.lossWhy = "tried";
  }
  PlanInputs other = *inputs;
  if (recipe)
    other.job = inputs->precisions[recipe - 1].job;
  // A graph that cannot be cut is no error here.
  trying = lossChunks > 0;
  DiagnosticEngine tried;
  auto module = importModule(context, other, with, trying ? tried : engine);
  if (succeeded(module) && succeeded(runDecisions(**module)) &&
      succeeded(runDifferentiation(**module)))
    known->second = read(**module);
  trying = false;
  return known->second;
}

StepPrediction Session::predict(const StepModel &model,
                                const Candidate &candidate,
                                const replay::AllocatorRules &rules,
                                bool detail) const {
  const Target on = machine();
  StepEvaluator evaluator(model, on);
  StepPrediction p = evaluator.evaluate(candidate, detail);
  int64_t budget = 0; // no end
  if (!options.memoryBudget.empty())
    budget = parseBytes(options.memoryBudget);
  else if (target)
    budget = target->memoryBytes.value_or(0);
  if (target)
    replayInto(p, evaluator, candidate, rules, on.contextBytes, budget);
  return p;
}

mlir::OwningOpRef<mlir::ModuleOp>
Session::signatures(const PlanInputs &from, const ImportOptions &with) {
  OwningOpRef<mlir::ModuleOp> &known = templates[with.microBatch];
  if (!known) {
    auto module = importModel(context, from, with, engine);
    if (failed(module))
      return {};
    for (auto function : (*module)->getOps<func::FuncOp>()) {
      function.eraseBody();
      function.setPrivate();
    }
    known = std::move(*module);
  }
  return known->clone();
}

/// Options of one `plan` for another.
static bool setFlags(PlanOptions &options, const tune::Flags &flags) {
  for (const auto &[name, value] : flags) {
    if (name == "--micro-batch")
      options.microBatch = std::stoll(value);
    else if (name == "--grad-accum")
      options.accumulation = std::stoll(value);
    else if (name == "--loss-chunks")
      options.lossChunks = value;
    else if (name == "--accumulation")
      options.accumulationMode = value;
    else if (name == "--gradient-checkpointing")
      options.gradientCheckpointing = true;
    else if (name == "--ddp-kwargs")
      options.ddpKwargs += (options.ddpKwargs.empty() ? "" : ",") + value;
    else
      return false;
  }
  return true;
}

std::optional<StepPrediction>
Session::replan(const std::vector<tune::YamlLine> &lines,
                const tune::Flags &flags) {
  if (inputs->executor == ExecutorKind::AccelRun || inputs->job.isJob)
    return std::nullopt;
  PlanOptions changed = options;
  changed.emit.clear();
  changed.remarks.clear();
  changed.tune.clear();
  changed.globalBatch = 0;
  changed.tunePrecision = false;
  if (options.globalBatch) {
    changed.microBatch = inputs->training.microBatch;
    changed.accumulation = inputs->training.accumulation;
  }
  if (!setFlags(changed, flags))
    return std::nullopt;
  if (!lines.empty()) {
    if (!configText) {
      std::ifstream in(options.config, std::ios::binary);
      configText = options.configText.value_or(
          std::string((std::istreambuf_iterator<char>(in)),
                      std::istreambuf_iterator<char>()));
    }
    changed.configText = applyLines(options.config, *configText, lines);
    if (!changed.configText)
      return std::nullopt;
  }
  DiagnosticEngine quiet;
  auto other = readPlanInputs(changed, quiet, &*inputs);
  if (!other || other->executor == ExecutorKind::AccelRun)
    return std::nullopt;
  ImportOptions with = importOptions(*other, changed, targetOrNone());
  with.ranksPerNode =
      options.nodes ? other->job.accelerate.numProcesses.value / options.nodes
                    : other->job.accelerate.processesPerMachine();
  trying = true;
  auto module = signatures(*other, with);
  std::optional<StepPrediction> result;
  if (module &&
      succeeded(importJob(*module, other->job, other->training, with, quiet)) &&
      succeeded(runDecisions(*module)))
    if (auto model = modelFor(*module, *other, with)) {
      auto candidate = decidedCandidate(*module, *model);
      if (succeeded(candidate) && verifyCandidate(*model, *candidate).empty())
        result = predict(*model, *candidate, other->allocator, true);
    }
  trying = false;
  return result;
}

std::shared_ptr<const StepModel> Session::modelFor(mlir::ModuleOp module,
                                                   const PlanInputs &from,
                                                   const ImportOptions &with) {
  // What the functions compute depends on these; attributes are unique.
  auto precision = sharding::findRequest(module, "precision");
  auto key =
      std::pair{precision ? precision.getValue().getAsOpaquePointer() : nullptr,
                with.microBatch};
  if (from.executor == inputs->executor) {
    auto known = models.find(key);
    if (known != models.end())
      return known->second;
  }
  auto whole = importModule(context, from, with, engine);
  if (failed(whole) || failed(runDecisions(**whole)) ||
      failed(runDifferentiation(**whole)))
    return nullptr;
  auto step = read(**whole);
  if (!step)
    return nullptr;
  if (from.executor == inputs->executor)
    models[key] = step->model;
  return step->model;
}

void Session::warnOpaque(mlir::ModuleOp module) {
  llvm::MapVector<StringRef, SmallVector<aten::OpaqueOp>> found;
  module.walk([&](aten::OpaqueOp op) { found[op.getCallee()].push_back(op); });
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

LogicalResult Session::report(mlir::Diagnostic &d) {
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

} // namespace accel
