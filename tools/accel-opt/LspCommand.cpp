//===- LspCommand.cpp - accel-opt lsp -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Phases.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Editor/Server.h"
#include "tools/options/Arguments.h"
#include "tools/options/ExitCode.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

using namespace accel;

/// mlir-lsp-server over our dialects.
static int serveMlir() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  char name[] = "accel-opt lsp --mlir";
  char *arguments[] = {name, nullptr};
  return mlir::succeeded(mlir::MlirLspServerMain(1, arguments, registry))
             ? exitOk
             : exitInvalid;
}

int accel::lspCommand(int argc, char **argv) {
  FirstLine settings;
  bool mlir = false;
  Arguments arguments("accel-opt lsp", "",
                      "Speaks the Language Server Protocol on stdin and "
                      "stdout, for editors.");
  arguments.option("--model", settings.model, textValue("PATH"),
                   "of files that do not name theirs, until the editor's "
                   "settings do");
  arguments.option("--target", settings.target, textValue("NAME"),
                   "likewise (accel-opt targets)");
  arguments.flag("--mlir", mlir, "for .mlir files of our dialects instead");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode) || !arguments.none(exitCode))
    return exitCode;
  if (mlir && !(settings.model.empty() && settings.target.empty()))
    return arguments.usageError("--mlir reads modules, which take no --model "
                                "and no --target");
  if (mlir)
    return serveMlir();
  return serveEditor(stdin, std::move(settings)) ? exitOk : exitInvalid;
}
