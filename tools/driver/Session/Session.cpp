//===- Session.cpp - One run of the compiler ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Session.h"
#include "tools/driver/Inputs/Fp8Inputs.h"

#include "dialects/Aten/OpaqueCalls.h"
#include "dialects/Sharding/Sharding.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Segments/Segments.h"
#include "tools/driver/Inputs/AdapterInputs.h"
#include "tools/driver/Inputs/DeviceInputs.h"
#include "tools/driver/Inputs/FrozenParts.h"
#include "tools/driver/Inputs/OffloadInputs.h"
#include "tools/driver/Inputs/QuantizedInputs.h"
#include "tools/driver/Session/ImportModule.h"
#include "tools/driver/Session/LossChunks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace accel {
namespace {

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

std::optional<int64_t> Session::budgetBytes() const {
  if (options.memoryBudgetBytes || !target)
    return options.memoryBudgetBytes;
  return target->memoryBytes;
}

std::optional<int64_t> Session::roomBytes() const {
  const std::optional<int64_t> budget = budgetBytes();
  // A compiled module does not say what it trains.
  if (!budget || !options.confidence || !inputs)
    return budget;
  return ErrorBars(ErrorBars::Figure::Bytes, predictedRun())
      .largestWithin(*budget, *options.confidence);
}

ErrorBars::Run Session::predictedRun() const {
  ErrorBars::Run run;
  run.kind = importing.fp8Training      ? TrainedKind::Fp8
             : importing.compiledWhole  ? TrainedKind::Compiled
             : inputs->job.quantization ? TrainedKind::Quantised
             : inputs->adapter          ? TrainedKind::Adapter
                                        : TrainedKind::Full;
  run.framework = toString(inputs->executor);
  run.target = inputs->targetName;
  run.tokens = importing.microBatch * importing.sequenceLength;
  return run;
}

RankAllocator Session::ownAllocator() const {
  RankAllocator allocator;
  allocator.rules = inputs && own() && !options.allocatorConf.empty()
                        ? inputs->allocator
                        : accelRunAllocator();
  const auto &torch = inputs ? inputs->torchVersion : options.torchVersion;
  allocator.keepsWorkspaces = torch && frameworks::keepsWorkspaces(*torch);
  return allocator;
}

bool Session::asksForProgram() const { return options.emitsProgram(); }

bool Session::load() {
  inputs = readPlanInputs(options, engine);
  if (!inputs || !checkQuantization(*inputs, options, engine) ||
      !checkMagnitude(*inputs, options, engine) ||
      !checkAdapterDtypes(*inputs, engine) || !loadTarget(inputs->targetName))
    return false;
  if (target && !checkFp8Target(*inputs, *target, engine))
    return false;
  if (target)
    warnOfDevice(*inputs, options, *target, engine);
  if (options.confidence && !budgetBytes())
    engine.report(diagnosticAt(
        {}, "", Severity::Warning, "ignored-key",
        "--confidence has no effect: nothing says what memory the job has to "
        "fit into",
        target ? "pass --memory-budget too"
               : "pass --target or --memory-budget too",
        options.config));
  if (own() && !options.allocatorConf.empty() &&
      (!target || target->kind != TargetKind::Cuda)) {
    engine.error(notSupportedCode, "",
                 "--allocator-conf: accel-run takes memory from torch's "
                 "allocator on CUDA targets alone",
                 "give a CUDA target, or leave it out");
    return false;
  }
  importing = importOptions(*inputs, options, targetOrNone());
  ranksPerNode = importing.ranksPerNode;
  if (!target) {
    DiagnosticEngine ignored;
    standIn = accel::loadTarget(importing.device == "cpu" ? "cpu" : "a100-80gb",
                                ignored)
                  .value_or(Target());
  }
  // Ranks share their node.
  if (options.nodeMemoryBytes)
    (target ? *target : standIn).host.memoryBytes = std::max<int64_t>(
        1, *options.nodeMemoryBytes / std::max<int64_t>(1, ranksPerNode));
  programImport = importing;
  programImport.framework = FrameworkKind::AccelRun;
  programImport.trainer.clear();
  programImport.fusedLoss = false;
  if (!own() && !checkOffload(*inputs, inputs->executor, machine(), engine))
    return false;
  // Nobody asks for the loss of a program that is not made.
  if (!own() && !asksForProgram())
    return true;
  if (!checkOffload(*inputs, FrameworkKind::AccelRun, machine(), engine) ||
      (target && !checkDrive(*inputs, *target, engine)) ||
      !chooseLossChunks(*inputs, programImport, engine))
    return false;
  if (own())
    importing = programImport;
  return true;
}

bool Session::chooseLossChunks(const PlanInputs &from, ImportOptions &with,
                               DiagnosticEngine &problems) {
  if (!with.lossChunks || !with.lossChunks->isAuto())
    return true;
  return accel::chooseLossChunks(
      [&](const ImportOptions &tried) { return import(from, tried, problems); },
      {machine(), with.ranksPerNode, roomBytes(), verification()}, with);
}

Session::Sizes Session::sizesOf(const PlanInputs &from,
                                const ImportOptions &with) {
  return {with.microBatch, with.sequenceLength,
          from.executor == FrameworkKind::Megatron ? from.model.vocabSize() : 0,
          adapterFunctions(from, with).any()};
}

mlir::ModuleOp Session::model(const PlanInputs &from, const ImportOptions &with,
                              DiagnosticEngine &problems) {
  Module &known = models[sizesOf(from, with)];
  if (!known)
    if (auto module = importModel(context, from, with, problems);
        succeeded(module))
      known = std::move(*module);
  return known ? *known : mlir::ModuleOp();
}

/// Stages are cut so that each has room in so many bytes, where they can be.
static void requestStageMemory(mlir::ModuleOp module, int64_t bytes) {
  mlir::OpBuilder b = mlir::OpBuilder::atBlockEnd(module.getBody());
  sharding::RequestOp::create(
      b, module.getLoc(), b.getStringAttr("stage_memory"),
      b.getDictionaryAttr(b.getNamedAttr("bytes", b.getI64IntegerAttr(bytes))),
      sharding::BecauseAttr::get(module.getContext(),
                                 "what a rank may use of its device"));
}

Session::Module Session::import(const PlanInputs &from,
                                const ImportOptions &with,
                                DiagnosticEngine &problems) {
  mlir::ModuleOp whole = model(from, with, problems);
  if (!whole)
    return {};
  Module module = whole.clone();
  if (failed(importJob(*module, from.job, from.training, with, problems)))
    return {};
  if (from.executor == FrameworkKind::AccelRun &&
      from.job.accelerate.mesh->size(plan::pipelineAxis) > 1)
    if (const std::optional<int64_t> bytes = roomBytes())
      requestStageMemory(*module, *bytes);
  return module;
}

Session::Module Session::importSignatures(const PlanInputs &from,
                                          const ImportOptions &with,
                                          DiagnosticEngine &problems) {
  Module &known = signatures[sizesOf(from, with)];
  if (!known) {
    mlir::ModuleOp whole = model(from, with, problems);
    if (!whole)
      return {};
    known = whole.clone();
    for (auto function : known->getOps<func::FuncOp>()) {
      function.eraseBody();
      function.setPrivate();
    }
  }
  Module module = known->clone();
  if (failed(importJob(*module, from.job, from.training, with, problems)))
    return {};
  return module;
}

void Session::warnOpaque(mlir::ModuleOp module) {
  for (const aten::OpaqueCallee &callee : aten::opaqueCallees(module))
    engine.warning(
        "opaque-operator", options.config,
        "'" + callee.name + "' is not modelled" +
            (callee.firstPath.empty() ? "" : " (in " + callee.firstPath + ")") +
            ", " + std::to_string(callee.calls) +
            (callee.calls == 1 ? " operation" : " operations") +
            ": LibTorch runs and differentiates it; its memory is bounded "
            "from above, its time is that of its bytes",
        "the plan is valid; predictions are rougher the more of them there "
        "are");
}

/// Takes the code off the end of a pass's message: "... [mixed-dtypes]". Codes
/// of several words alone are meant, which no type or list looks like.
static std::string takeCode(std::string &message) {
  const llvm::StringRef text = message;
  const size_t open = text.rfind(" [");
  if (open == llvm::StringRef::npos || !text.ends_with("]"))
    return "";
  const llvm::StringRef code = text.substr(open + 2).drop_back();
  const bool isCode = code.contains('-') && llvm::all_of(code, [](char c) {
                        return c == '-' || (c >= 'a' && c <= 'z');
                      });
  if (!isCode)
    return "";
  std::string taken = code.str();
  message.resize(open);
  return taken;
}

LogicalResult Session::report(mlir::Diagnostic &d) {
  if (quiet)
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
  // Remarks on a function's operations are for who works on passes, and
  // accel-opt opt prints them; those on the mesh and on parameters say what
  // the job gets.
  const llvm::StringRef current = "see current operation: ";
  if (d.getSeverity() == DiagnosticSeverity::Remark)
    for (mlir::Diagnostic &note : d.getNotes())
      if (std::string text = note.str();
          llvm::StringRef(text).starts_with(current) &&
          !llvm::StringRef(text).contains("sharding.param \"") &&
          !llvm::StringRef(text).contains("sharding.mesh @"))
        return success();
  diagnostic.message = d.str();
  diagnostic.code = takeCode(diagnostic.message);
  if (diagnostic.code.empty())
    diagnostic.code = "plan";
  diagnostic.file = options.config;
  if (auto position = filePosition(d.getLocation())) {
    diagnostic.file = position.getFilename().str();
    diagnostic.line = static_cast<int>(position.getLine());
    diagnostic.column = static_cast<int>(position.getColumn());
  }
  for (mlir::Diagnostic &note : d.getNotes()) {
    std::string text = note.str();
    // Of a function MLIR prints all; its name is enough where all is well.
    if (diagnostic.severity != Severity::Error &&
        llvm::StringRef(text).starts_with(current)) {
      const llvm::StringRef name =
          llvm::StringRef(text).split('@').second.split('(').first;
      if (d.getSeverity() == DiagnosticSeverity::Remark || name.empty())
        continue;
      text = "in " + name.str();
    }
    diagnostic.hint += (diagnostic.hint.empty() ? "" : "; ") + text;
  }
  engine.report(std::move(diagnostic));
  return success();
}

} // namespace accel
