//===- BuildLlama.cpp - The model phase of the Llama family ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildLlama.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/LlamaSegments.h"
#include <algorithm>

using namespace accel;
using namespace accel::huggingface;
using mlir::Location;
using mlir::OpBuilder;
using mlir::Value;
using mlir::ValueRange;

/// The largest activation must have fewer elements than this, so that its bytes
/// and their sums stay far inside int64_t.
static constexpr double maxElements = 1e15;

static bool checkSizes(const LlamaConfig &config, const BuildOptions &options,
                       DiagnosticEngine &diagnostics) {
  if (options.microBatch < 1 || options.sequenceLength < 1) {
    diagnostics.error("invalid-size", "",
                      "micro-batch " + std::to_string(options.microBatch) +
                          " and sequence length " +
                          std::to_string(options.sequenceLength) +
                          " must both be at least 1");
    return false;
  }
  int64_t widest =
      std::max({config.vocabSize, config.hiddenSize, config.intermediateSize,
                config.heads * config.headDim});
  double elements = double(options.microBatch) *
                    double(options.sequenceLength) * double(widest);
  if (elements < maxElements)
    return true;
  diagnostics.error("invalid-size", "",
                    "micro-batch " + std::to_string(options.microBatch) +
                        " times sequence length " +
                        std::to_string(options.sequenceLength) +
                        " makes activations of more than 1e15 elements");
  return false;
}

static sharding::InitAttr initOf(OpBuilder &builder,
                                 const plan::Initializer &init) {
  mlir::MLIRContext *context = builder.getContext();
  switch (init.kind) {
  case plan::Initializer::Kind::Normal:
    return sharding::InitAttr::get(context, sharding::InitKind::Normal,
                                   builder.getF64FloatAttr(init.stddev));
  case plan::Initializer::Kind::Ones:
    return sharding::InitAttr::get(context, sharding::InitKind::Ones,
                                   mlir::FloatAttr());
  case plan::Initializer::Kind::Zeros:
    return sharding::InitAttr::get(context, sharding::InitKind::Zeros,
                                   mlir::FloatAttr());
  }
  llvm_unreachable("covered switch");
}

static void addTree(OpBuilder &builder, const ModelInfo &model) {
  auto at = [&](llvm::StringRef fqn) -> Location {
    return mlir::NameLoc::get(builder.getStringAttr(fqn));
  };
  for (const ModuleInfo &module : model.modules)
    sharding::ModuleOp::create(builder, at(module.fqn), module.fqn,
                               module.className);
  mlir::Type f32 = builder.getF32Type();
  for (const ParameterInfo &parameter : model.parameters) {
    auto op = sharding::ParamOp::create(
        builder, at(parameter.fqn), parameter.fqn,
        mlir::RankedTensorType::get(parameter.shape, f32),
        initOf(builder, parameter.init), mlir::ArrayAttr(),
        /*frozen=*/false, mlir::StringAttr());
    if (parameter.aliases.empty())
      continue;
    llvm::SmallVector<llvm::StringRef> aliases(parameter.aliases.begin(),
                                               parameter.aliases.end());
    op.setAliasesAttr(builder.getStrArrayAttr(aliases));
  }
}

/// @train: the calls of one forward pass, down to the loss.
static void addGraph(OpBuilder &builder, const LlamaConfig &config,
                     LlamaSegments segments) {
  Location location = mlir::NameLoc::get(builder.getStringAttr("model"));
  auto graph = sharding::GraphOp::create(
      builder, location, builder.getStringAttr("model"),
      builder.getStrArrayAttr({"input_ids", "labels"}));
  mlir::Block *body = graph.getBody().empty() ? &graph.getBody().emplaceBlock()
                                              : &graph.getBody().front();
  mlir::Type ids = segments.embedding.getArgumentTypes().front();
  Value inputIds = body->addArgument(ids, location);
  Value labels = body->addArgument(ids, location);
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(body);

  auto call = [&](mlir::func::FuncOp callee, ValueRange operands,
                  llvm::StringRef path) {
    return sharding::CallOp::create(
        builder, mlir::NameLoc::get(builder.getStringAttr(path)),
        callee.getResultTypes(), callee.getSymName(), operands, path,
        sharding::CheckpointAttr());
  };
  Value hidden =
      call(segments.embedding, inputIds, "model.embed_tokens").getResult(0);
  ValueRange tables =
      call(segments.rotary, hidden, "model.rotary_emb").getResults();
  for (int64_t i = 0; i < config.layers; ++i)
    hidden = call(segments.layer, {hidden, tables[0], tables[1]},
                  "model.layers." + std::to_string(i))
                 .getResult(0);
  Value loss = call(segments.head, {hidden, labels}, "").getResult(0);
  sharding::ReturnOp::create(builder, location, ValueRange(loss));
}

mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
accel::huggingface::buildModel(mlir::MLIRContext &context,
                               const LlamaConfig &config,
                               const BuildOptions &options,
                               DiagnosticEngine &diagnostics) {
  if (!checkSizes(config, options, diagnostics))
    return mlir::failure();
  context.loadDialect<mlir::func::FuncDialect, aten::AtenDialect,
                      sharding::ShardingDialect>();
  OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  addTree(builder, describeModel(config));
  LlamaSegments segments = buildSegments(builder, config, options);
  addGraph(builder, config, segments);
  return module;
}
