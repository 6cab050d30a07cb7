//===- Phases.h - The phases of a compilation -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One table drives --compile-to, --compile-from, --dump-phases, the file names
// of dumps and the help text.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINE_PHASES_H
#define ACCEL_PASSES_PIPELINE_PHASES_H

#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"

namespace accel {

enum class Phase { Model, Sharded, Scheduled };

struct PhaseInfo {
  Phase phase;
  const char *name;
  const char *description;
};
const std::vector<PhaseInfo> &phases();
const char *toString(Phase phase);
std::vector<std::string> phaseNames();
/// The phase of that name, or nothing.
std::optional<Phase> parsePhase(llvm::StringRef name);

/// The dialects that a module of any phase uses.
void registerDialects(mlir::DialectRegistry &registry);
/// Every pass of the project, for `accel-opt opt`.
void registerPasses();

/// When MLIR's verifier runs on a module, and whether programs are verified
/// (verify-schedule). That what a pass leaves is valid is
/// held by tests, which look after each; a plan looks at what comes out of each
/// pipeline. Settings that are only tried are not looked at, which would take a
/// seventh of their time: what is chosen of them is compiled once more.
enum class Verification { AfterEachPass, AtTheEnd, Never };

/// Runs the passes from the end of phase `from` to the end of phase `to`.
/// Problems go to the context's diagnostic handler. The `target`, by name or
/// file, predicts what stages of a pipeline and exchanges inside of functions
/// take; empty: one for the device. Without `overlap` an exchange is over where
/// it stands.
mlir::LogicalResult
runPhases(mlir::ModuleOp module, Phase from, Phase to,
          Verification verification = Verification::AfterEachPass,
          llvm::StringRef target = {}, bool overlap = true);

/// The steps from `model` to `sharded` one by one (the pipelines `to-decided`
/// and `to-differentiated`, then what accel-run's functions save): step models
/// are read after the second.
mlir::LogicalResult
runDecisions(mlir::ModuleOp module,
             Verification verification = Verification::AfterEachPass);
mlir::LogicalResult
runDifferentiation(mlir::ModuleOp module,
                   Verification verification = Verification::AfterEachPass);
mlir::LogicalResult
runSaves(mlir::ModuleOp module,
         Verification verification = Verification::AfterEachPass);

/// What makes a module one of that phase, checked before a phase is entered
/// with --compile-from: an empty string, or what is missing.
std::string missingForPhase(mlir::ModuleOp module, Phase phase);

} // namespace accel

#endif // ACCEL_PASSES_PIPELINE_PHASES_H
