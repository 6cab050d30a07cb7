//===- OptCommand.cpp - accel-opt opt -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Phases.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Session/Nesting.h"
#include "tools/options/ExitCode.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

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
  const int count = static_cast<int>(all.size());
  const auto [input, output] = mlir::registerAndParseCLIOptions(
      count, all.data(), "accel-opt modular optimizer driver\n", registry);
  const auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses() || config.shouldShowDialects())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(count, all.data(), input, output, registry));
  std::string problem;
  auto text = mlir::openInputFile(input, &problem);
  if (text && mlirNesting(text->getBuffer()) > maxMlirNesting)
    problem = input + ": error: is nested more than " +
              std::to_string(maxMlirNesting) + " levels deep [bad-mlir]";
  auto to = problem.empty() ? mlir::openOutputFile(output, &problem) : nullptr;
  if (!to) {
    llvm::errs() << problem << "\n";
    return exitInvalid;
  }
  const mlir::LogicalResult done =
      mlir::MlirOptMain(to->os(), std::move(text), registry, config);
  if (mlir::succeeded(done))
    to->keep();
  return mlir::asMainReturnCode(done);
}
