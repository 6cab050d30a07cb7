//===- OptCommand.cpp - accel-opt opt -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Phases.h"
#include "tools/accel-opt/Commands.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include <vector>

int accel::optCommand(const char *program, int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  std::string name = std::string(program) + " opt";
  std::vector<char *> all = {name.data()};
  all.insert(all.end(), argv, argv + argc);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(static_cast<int>(all.size()), all.data(),
                        "accel-opt modular optimizer driver\n", registry));
}
