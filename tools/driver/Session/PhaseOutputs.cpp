//===- PhaseOutputs.cpp - Modules as text ---------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/PhaseOutputs.h"

#include "tools/driver/Output/OutputFile.h"

#include "llvm/Support/FormatVariadic.h"

#include <filesystem>

namespace accel {

bool PhaseOutputs::reached(mlir::ModuleOp module, Phase phase) {
  if (phase == Phase::Sharded && options.emits(EmitKind::Mlir))
    result.sharded = print(module);
  if (phase == Phase::Scheduled && options.emits(EmitKind::Schedule))
    result.scheduled = print(module);
  return dump(module, phase);
}

bool PhaseOutputs::dump(mlir::ModuleOp module, Phase phase) {
  if (options.dumpPhases.empty())
    return true;
  std::error_code error;
  std::filesystem::create_directories(options.dumpPhases, error);
  const std::string path =
      llvm::formatv("{0}/{1}.{2}.mlir", options.dumpPhases,
                    static_cast<int>(phase), toString(phase));
  return writeOutputFile({path, options.overwrite}, FileForm::Mlir,
                         print(module), engine);
}

bool PhaseOutputs::internal(const std::string &what) {
  if (!engine.hasErrors())
    engine.error("internal", options.config,
                 what + " failed without a message");
  return false;
}

std::string PhaseOutputs::print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, mlir::OpPrintingFlags().enableDebugInfo(true, false));
  return text;
}

} // namespace accel
