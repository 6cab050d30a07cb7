//===- CompilePhases.cpp - From one phase to another ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/CompilePhases.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "passes/Frameworks/JobFramework.h"
#include "tools/driver/Session/AccelRunPrediction.h"
#include "tools/driver/Session/EmitRemarks.h"
#include "tools/driver/Session/Nesting.h"
#include "tools/driver/Session/PhaseOutputs.h"
#include "tools/driver/Session/ReportFigures.h"
#include "tools/driver/Session/Session.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <filesystem>

using namespace mlir;

namespace accel {
namespace {

class PhaseCompiler {
public:
  PhaseCompiler(Session &session, CompileResult &result)
      : session(session), options(session.options), engine(session.engine),
        result(result), outputs(options, engine, result) {}

  void run() {
    const Phase from = options.compileFrom.value_or(Phase::Model);
    const Phase to = options.compileTo.value_or(Phase::Scheduled);
    OwningOpRef<mlir::ModuleOp> module =
        options.compileFrom ? parse(from) : import(to);
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
    if (!runPasses(*module, from, to))
      return;
    result.valid = true;
    if (options.compileTo) {
      result.report.mlir = PhaseOutputs::print(*module);
      return;
    }
    plan::Plan plan;
    if (failed(buildPredictedPlan(*module, session.targetOrNone(),
                                  session.ranksPerNode, session.ownAllocator(),
                                  plan)))
      result.valid = outputs.internal("the plan");
    else
      result.valid =
          checkPlan(plan, options.config, engine) &&
          (options.remarks.empty() ||
           emitRemarks(session.context, plan.decisions,
                       {options.remarks, options.overwrite}, engine));
    useProgramFigures(session, plan, result.report);
    result.program = plan;
    result.shown = std::move(plan);
  }

  /// Programs are accel-run's; other phases are of whoever runs the job.
  OwningOpRef<mlir::ModuleOp> import(Phase to) {
    if (!session.load())
      return {};
    describeInputs(session, result.report);
    return session.import(to == Phase::Scheduled ? session.programImport
                                                 : session.importing);
  }

  OwningOpRef<mlir::ModuleOp> parse(Phase phase) {
    const std::string name = toString(phase);
    noteInputFile(options.config);
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
                     "cannot be read as MLIR of the phase '" + name + "'");
      return {};
    }
    std::string missing = missingForPhase(*module, phase);
    if (!missing.empty()) {
      engine.error("bad-mlir", options.config,
                   "is no module of the phase '" + name + "': " + missing);
      return {};
    }
    result.report.title =
        std::filesystem::path(options.config).filename().string();
    result.report.strategy = "a compiled module";
    if (!session.loadTarget(options.target))
      return {};
    return module;
  }

  bool runPasses(mlir::ModuleOp module, Phase from, Phase to) {
    if (!outputs.dump(module, from))
      return false;
    for (Phase phase = from; phase < to;) {
      Phase next = static_cast<Phase>(static_cast<int>(phase) + 1);
      if (failed(runPhases(module, phase, next, Verification::AfterEachPass,
                           options.target, !options.noOverlap)))
        return outputs.internal(std::string("the phase '") + toString(next) +
                                "'");
      phase = next;
      if (!outputs.reached(module, phase))
        return false;
    }
    return true;
  }

  Session &session;
  const PlanOptions &options;
  DiagnosticEngine &engine;
  CompileResult &result;
  PhaseOutputs outputs;
};

} // namespace

void compilePhases(Session &session, CompileResult &result) {
  PhaseCompiler(session, result).run();
}

} // namespace accel
