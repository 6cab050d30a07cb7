//===- BuildProgram.cpp - The model phase of a .pt2 -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/BuildProgram.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/TorchExport/Describe.h"
#include "frontends/TorchExport/Patterns.h"
#include "frontends/TorchExport/Segments.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;

FailureOr<OwningOpRef<mlir::ModuleOp>>
torchexport::buildProgram(MLIRContext &context, const Program &program,
                          const Sizes &sizes, DiagnosticEngine &diagnostics) {
  std::optional<Symbols> symbols = Symbols::bind(program, sizes, diagnostics);
  if (!symbols)
    return failure();
  context.loadDialect<func::FuncDialect, aten::AtenDialect,
                      sharding::ShardingDialect>();
  OpBuilder b(&context);
  OwningOpRef<mlir::ModuleOp> scratch =
      mlir::ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(scratch->getBody());
  auto flat = func::FuncOp::create(b, b.getUnknownLoc(), "flat",
                                   b.getFunctionType({}, {}));
  Lowering lowering(program, *symbols, flat, diagnostics);
  if (failed(lowering.run()))
    return failure();
  eraseDead(flat);
  recognize(flat);
  eraseDead(flat);
  huggingface::ModelInfo info = describe(program);
  OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(module->getBody());
  huggingface::addModel(b, *module, info);
  if (failed(writeSegments(b, program, info, flat, lowering.arguments())))
    return failure();
  return module;
}
