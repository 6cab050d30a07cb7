//===- OptCommand.cpp - accel-opt opt -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Phases.h"
#include "runtime/plan/OutputModel.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Session/Nesting.h"
#include "tools/options/ExitCode.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

#include <filesystem>
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
  // Opening the output empties it, and the input is mapped, not copied.
  std::error_code code;
  if (std::filesystem::is_regular_file(output, code) &&
      plan::isSameFile(input, output))
    problem = output + ": error: the command reads this file, and its output "
                       "would replace it; write to another file "
                       "[output-is-input]";
  if (problem.empty() && text &&
      mlirNesting(text->getBuffer()) > maxMlirNesting)
    problem = input + ": error: is nested more than " +
              std::to_string(maxMlirNesting) + " levels deep [bad-mlir]";
  auto to = problem.empty() ? mlir::openOutputFile(output, &problem) : nullptr;
  if (!to) {
    llvm::errs() << problem << "\n";
    return exitInvalid;
  }
  const mlir::LogicalResult done =
      mlir::MlirOptMain(to->os(), std::move(text), registry, config);
  // A stream that ends with an error would end the process instead.
  bool written = true;
  for (llvm::raw_fd_ostream *stream : {&to->os(), &llvm::outs()}) {
    stream->flush();
    if (!stream->has_error())
      continue;
    const bool named = output != "-" && stream == &to->os();
    llvm::errs() << "accel-opt: error: cannot write to "
                 << (named ? output : "standard output") << ": "
                 << stream->error().message() << "\n";
    stream->clear_error();
    written = false;
  }
  if (!written)
    return exitInvalid;
  if (mlir::succeeded(done))
    to->keep();
  return mlir::asMainReturnCode(done);
}
