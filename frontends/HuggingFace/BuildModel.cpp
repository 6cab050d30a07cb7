//===- BuildModel.cpp - The model phase of a configuration ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildModel.h"

#include "dialects/Aten/Aten.h"

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

/// The longest row of an activation.
static int64_t widest(const LlamaConfig &c) {
  return std::max(
      {c.vocabSize, c.hiddenSize, c.intermediateSize, c.heads * c.headDim});
}
static int64_t widest(const Gpt2Config &c) {
  return std::max({c.vocabSize, 3 * c.hiddenSize, c.intermediateSize});
}

/// Rows of a table of learned positions; 0 where positions are computed.
static int64_t positionRows(const LlamaConfig &) { return 0; }
static int64_t positionRows(const Gpt2Config &c) {
  return c.learnedPositions ? c.maxPositions : 0;
}

static bool checkSizes(const ModelConfig &config, const BuildOptions &options,
                       DiagnosticEngine &diagnostics) {
  std::string sizes = "micro-batch " + std::to_string(options.microBatch) +
                      " and sequence length " +
                      std::to_string(options.sequenceLength);
  if (options.microBatch < 1 || options.sequenceLength < 1) {
    diagnostics.error("invalid-size", "", sizes + " must both be at least 1");
    return false;
  }
  auto [width, rows] = std::visit(
      [](const auto &c) { return std::pair(widest(c), positionRows(c)); },
      config.family);
  if (rows && options.sequenceLength > rows) {
    diagnostics.error("sequence-too-long", "",
                      "sequences of " + std::to_string(options.sequenceLength) +
                          " tokens do not fit the model's table of " +
                          std::to_string(rows) + " positions");
    return false;
  }
  double elements = double(options.microBatch) *
                    double(options.sequenceLength) * double(width);
  if (elements < maxElements)
    return true;
  diagnostics.error("invalid-size", "",
                    sizes + " make activations of more than 1e15 elements");
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

static mlir::DictionaryAttr anatomyOf(OpBuilder &builder,
                                      const Anatomy &anatomy) {
  llvm::SmallVector<mlir::NamedAttribute> places;
  for (auto [name, fqn] : {std::pair("base", &anatomy.base),
                           {"input_embedding", &anatomy.inputEmbedding},
                           {"output_embedding", &anatomy.outputEmbedding}})
    if (!fqn->empty())
      places.push_back(builder.getNamedAttr(name, builder.getStringAttr(*fqn)));
  llvm::SmallVector<llvm::StringRef> classes(anatomy.noSplit.begin(),
                                             anatomy.noSplit.end());
  if (!classes.empty())
    places.push_back(
        builder.getNamedAttr("no_split", builder.getStrArrayAttr(classes)));
  return builder.getDictionaryAttr(places);
}

GraphWriter::GraphWriter(OpBuilder &outer, const BuildOptions &options)
    : builder(outer) {
  Location location = mlir::NameLoc::get(builder.getStringAttr("model"));
  auto graph = sharding::GraphOp::create(
      builder, location, builder.getStringAttr("model"),
      builder.getStrArrayAttr({"input_ids", "labels"}));
  mlir::Block *body = graph.getBody().empty() ? &graph.getBody().emplaceBlock()
                                              : &graph.getBody().front();
  auto type = mlir::RankedTensorType::get(
      {options.microBatch, options.sequenceLength}, builder.getI64Type());
  ids = body->addArgument(type, location);
  targets = body->addArgument(type, location);
  builder.setInsertionPointToEnd(body);
}

ValueRange GraphWriter::call(mlir::func::FuncOp callee, ValueRange operands,
                             llvm::StringRef path) {
  return sharding::CallOp::create(
             builder, mlir::NameLoc::get(builder.getStringAttr(path)),
             callee.getResultTypes(), callee.getSymName(), operands, path,
             sharding::CheckpointAttr())
      .getResults();
}

void GraphWriter::end(Value loss) {
  sharding::ReturnOp::create(builder,
                             mlir::NameLoc::get(builder.getStringAttr("model")),
                             ValueRange(loss));
}

mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
accel::huggingface::buildModel(mlir::MLIRContext &context,
                               const ModelConfig &config,
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
  ModelInfo info = describeModel(config);
  (*module)->setAttr(sharding::anatomyAttr, anatomyOf(builder, info.anatomy));
  addTree(builder, info);
  std::visit([&](const auto &c) { buildSegments(builder, c, options); },
             config.family);
  return module;
}
