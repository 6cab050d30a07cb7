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

#include <set>

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;

/// The arguments of `flat` that the loss depends on by floating-point values.
static llvm::DenseSet<Value> differentiated(func::FuncOp flat) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work(
      flat.getBody().front().getTerminator()->getOperands());
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!isa<FloatType>(aten::tensorType(value).getElementType()) ||
        !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    auto opaque = dyn_cast_or_null<aten::OpaqueOp>(op);
    if (op && !(opaque && opaque.getCallee() == "aten::detach"))
      llvm::append_range(work, op->getOperands());
  }
  return seen;
}

/// PyTorch leaves parameters without a gradient as they are, without decay too.
static void freezeUnused(const Program &program, func::FuncOp flat,
                         const Lowering &lowering, huggingface::ModelInfo &info,
                         accel::DiagnosticEngine &diagnostics) {
  const llvm::DenseSet<Value> used = differentiated(flat);
  const auto canonical = canonicalNames(program);
  std::set<std::string> trained;
  for (auto [number, input] : lowering.arguments())
    if (input->kind == InputSpec::Kind::Parameter &&
        used.contains(flat.getArgument(number)))
      trained.insert(canonical.at(input->fqn));
  std::string names;
  size_t count = 0;
  for (huggingface::ParameterInfo &parameter : info.parameters) {
    if (parameter.frozen || trained.count(parameter.fqn))
      continue;
    parameter.frozen = true;
    if (++count <= 3)
      names += (names.empty() ? "" : ", ") + printable(parameter.fqn);
  }
  if (count)
    diagnostics.warning(
        "unused-parameters", program.path,
        "the loss does not depend on " + std::to_string(count) +
            " parameters (" + names + (count > 3 ? ", ..." : "") +
            "): they are kept as they are",
        "without them the model is smaller; DDP refuses such parameters unless "
        "find_unused_parameters is set");
}

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
  freezeUnused(program, flat, lowering, info, diagnostics);
  OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(module->getBody());
  huggingface::addModel(b, *module, info);
  if (failed(writeSegments(b, program, info, flat, lowering.arguments())))
    return failure();
  return module;
}
