//===- BuildModel.cpp - The model phase of a configuration ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/FunctionWriter.h"
#include "frontends/HuggingFace/Positions.h"

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

/// The longest row of an activation; a token's rows for its experts are one.
static double widest(const LlamaConfig &c) {
  const Mixture &m = c.mixture;
  double experts =
      double(m.chosen) * double(std::max(c.hiddenSize, 2 * m.intermediateSize));
  return std::max(
      {double(c.vocabSize), double(c.hiddenSize), double(c.intermediateSize),
       double(c.heads) * double(c.headDim), double(m.experts), experts});
}
static double widest(const DecoderConfig &c) {
  int64_t most = 0;
  for (const ParameterInfo &parameter : c.info.parameters)
    for (int64_t size : parameter.shape)
      most = std::max(most, size);
  return double(most);
}
static double widest(const Gpt2Config &c) {
  return double(std::max({c.vocabSize, 3 * c.hiddenSize, c.intermediateSize}));
}
static double widest(const BertConfig &c) {
  return double(std::max({c.vocabSize, c.hiddenSize, c.intermediateSize}));
}
/// Of a sample: its tokens are patches.
static double widest(const VitConfig &c) {
  return double(
      std::max({c.hiddenSize, c.intermediateSize, c.heads * c.headDim}) *
      (c.patches() + 1));
}
static double widest(const T5Config &c) {
  return double(
      std::max({c.vocabSize, c.hiddenSize, c.intermediateSize, c.inner()}));
}
static double widest(const WhisperConfig &c) {
  return double(
      std::max({c.vocabSize, c.encoder.intermediateSize * c.sourcePositions,
                c.decoder.intermediateSize}));
}

static bool checkSizes(const ModelConfig &config, const BuildOptions &options,
                       DiagnosticEngine &diagnostics) {
  std::string sizes = "micro-batch " + std::to_string(options.microBatch) +
                      " and sequence length " +
                      std::to_string(options.sequenceLength);
  if (options.microBatch < 1 ||
      options.sequenceLength < (config.hasTokens() ? 1 : 0)) {
    diagnostics.error("invalid-size", "", sizes + " must both be at least 1");
    return false;
  }
  const double width =
      std::visit([](const auto &c) { return widest(c); }, config.family);
  const int64_t rows = positionRows(config);
  if (rows && options.sequenceLength > rows) {
    diagnostics.error("sequence-too-long", "",
                      "sequences of " + std::to_string(options.sequenceLength) +
                          " tokens do not fit the model's table of " +
                          std::to_string(rows) + " positions");
    return false;
  }
  if (const DecoderConfig *decoder = decoderOf(&config);
      decoder && options.hasDocuments() &&
      (decoder->decoder.mamba.heads || decoder->decoder.delta.heads)) {
    const bool mamba = decoder->decoder.mamba.heads != 0;
    diagnostics.error("not-supported", "",
                      std::string("several documents in a sequence are not "
                                  "supported with ") +
                          (mamba ? "Mamba layers" : "gated delta rules") +
                          ", whose states would pass from one to the "
                          "next");
    return false;
  }
  double elements =
      double(options.microBatch) *
      double(std::max(std::max(options.sequenceLength, options.targetLength),
                      int64_t(1))) *
      width;
  if (elements < maxElements)
    return true;
  diagnostics.error("invalid-size", "",
                    sizes + " make activations of more than 1e15 elements");
  return false;
}

static void build(OpBuilder &builder, const LlamaConfig &config,
                  const ModelInfo &info, const BuildOptions &options) {
  buildSegments(builder, decoderOf(config), info, options);
}
static void build(OpBuilder &builder, const DecoderConfig &config,
                  const ModelInfo &info, const BuildOptions &options) {
  buildSegments(builder, config.decoder, info, options,
                config.tower ? &*config.tower : nullptr);
}
template <typename Config>
static void build(OpBuilder &builder, const Config &config, const ModelInfo &,
                  const BuildOptions &options) {
  buildSegments(builder, config, options);
}

static sharding::InitKind kindOf(plan::Initializer::Kind kind) {
  using Kind = plan::Initializer::Kind;
  switch (kind) {
  case Kind::Normal:
    return sharding::InitKind::Normal;
  case Kind::Ones:
    return sharding::InitKind::Ones;
  case Kind::Zeros:
    return sharding::InitKind::Zeros;
  case Kind::TruncatedNormal:
    return sharding::InitKind::TruncatedNormal;
  case Kind::Uniform:
    return sharding::InitKind::Uniform;
  case Kind::Constant:
    return sharding::InitKind::Constant;
  case Kind::Sinusoids:
    return sharding::InitKind::Sinusoids;
  }
  llvm_unreachable("covered switch");
}

static sharding::InitAttr initOf(OpBuilder &builder,
                                 const plan::Initializer &init) {
  using Kind = plan::Initializer::Kind;
  const bool ranged =
      init.kind == Kind::TruncatedNormal || init.kind == Kind::Uniform;
  const bool valued = init.kind != Kind::Ones && init.kind != Kind::Zeros &&
                      init.kind != Kind::Uniform;
  return sharding::InitAttr::get(
      builder.getContext(), kindOf(init.kind),
      valued ? builder.getF64FloatAttr(init.value) : mlir::FloatAttr(),
      ranged ? builder.getDenseF64ArrayAttr({init.low, init.high})
             : mlir::DenseF64ArrayAttr(),
      init.zeroRow);
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
        initOf(builder, parameter.init), mlir::ArrayAttr(), parameter.frozen,
        mlir::StringAttr(), /*group=*/0, mlir::ArrayAttr());
    auto names = [&](const std::vector<std::string> &list) {
      return builder.getStrArrayAttr(
          llvm::SmallVector<llvm::StringRef>(list.begin(), list.end()));
    };
    if (!parameter.aliases.empty())
      op.setAliasesAttr(names(parameter.aliases));
    if (!parameter.stored.empty())
      op.setStoredAttr(names(parameter.stored));
  }
  for (const BufferInfo &buffer : model.buffers)
    sharding::BufferOp::create(builder, at(buffer.fqn), buffer.fqn,
                               mlir::RankedTensorType::get(buffer.shape, f32),
                               /*persistent=*/true);
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

void accel::huggingface::addModel(OpBuilder &builder, mlir::ModuleOp module,
                                  const ModelInfo &info) {
  module->setAttr(sharding::anatomyAttr, anatomyOf(builder, info.anatomy));
  addTree(builder, info);
}

/// [micro-batch, sequence] int64.
static mlir::RankedTensorType tokensType(OpBuilder &builder,
                                         const BuildOptions &options) {
  return mlir::RankedTensorType::get(
      {options.microBatch, options.sequenceLength}, builder.getI64Type());
}

bool BuildOptions::hasDocuments() const { return inputs.count(positionsInput); }

/// What decoders read.
static llvm::SmallVector<GraphWriter::Input>
decoderInputs(OpBuilder &builder, const BuildOptions &options,
              const std::vector<BufferInfo> &buffers,
              llvm::ArrayRef<GraphWriter::Input> images) {
  const mlir::RankedTensorType type = tokensType(builder, options);
  llvm::SmallVector<GraphWriter::Input> inputs = {{"input_ids", type},
                                                  {"labels", type}};
  if (options.hasDocuments())
    inputs.push_back({positionsInput, type});
  inputs.append(images.begin(), images.end());
  for (const BufferInfo &buffer : buffers)
    inputs.push_back({buffer.fqn, mlir::RankedTensorType::get(
                                      buffer.shape, builder.getF32Type())});
  return inputs;
}

GraphWriter::GraphWriter(OpBuilder &outer, const BuildOptions &options,
                         const std::vector<BufferInfo> &buffers,
                         llvm::ArrayRef<Input> images)
    : GraphWriter(outer, decoderInputs(outer, options, buffers, images)) {}

GraphWriter::GraphWriter(OpBuilder &outer, llvm::ArrayRef<Input> batch)
    : builder(outer) {
  Location location = mlir::NameLoc::get(builder.getStringAttr("model"));
  llvm::SmallVector<llvm::StringRef> names;
  for (const Input &input : batch)
    names.push_back(input.first);
  auto graph = sharding::GraphOp::create(builder, location,
                                         builder.getStringAttr("model"),
                                         builder.getStrArrayAttr(names));
  mlir::Block *body = graph.getBody().empty() ? &graph.getBody().emplaceBlock()
                                              : &graph.getBody().front();
  for (const Input &input : batch)
    inputs.push_back(
        {input.first.str(), body->addArgument(input.second, location)});
  builder.setInsertionPointToEnd(body);
}

Value GraphWriter::input(llvm::StringRef name) const {
  for (const auto &[known, value] : inputs)
    if (known == name)
      return value;
  return {};
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

mlir::func::FuncOp accel::huggingface::attentionMask(
    OpBuilder &builder, llvm::StringRef path, int64_t hiddenSize,
    const BuildOptions &options, int64_t window, bool ordered) {
  const int64_t batch = options.microBatch, sequence = options.sequenceLength;
  auto floats = [&](llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  };
  const std::string name =
      std::string(options.hasDocuments() ? "DocumentMask" : "CausalMask") +
      (window ? "." + std::to_string(window) : "");
  FunctionWriter f(builder, name, path);
  f.input(floats({batch, sequence, hiddenSize}));
  if (options.hasDocuments())
    f.input(tokensType(builder, options));
  auto function = f.begin({floats({batch, 1, sequence, sequence})});
  auto count = [&](mlir::Type type) {
    return f.op<aten::ArangeOp>(uint64_t(0), uint64_t(sequence), uint64_t(1),
                                type);
  };
  Value seen;
  auto only = [&](Value more) {
    seen = seen ? Value(f.op<aten::LogicalAndOp>(seen, more)) : more;
  };
  if (options.hasDocuments()) {
    // Tokens are of one document where that starts at the same place.
    Value start = f.op<aten::SubTensorOp>(count(f.i64()), f.argument(1));
    Value ofQuery = f.op<aten::UnsqueezeOp>(start, uint64_t(2));
    Value ofKey = f.op<aten::UnsqueezeOp>(start, uint64_t(1));
    only(f.op<aten::EqTensorOp>(ofQuery, ofKey));
  }
  if (window || ordered) {
    Value query = f.op<aten::UnsqueezeOp>(count(f.i64()), uint64_t(1));
    Value behind = f.op<aten::SubTensorOp>(query, count(f.i64()));
    if (ordered)
      only(f.op<aten::GtScalarOp>(behind, int64_t(-1)));
    if (window)
      only(f.op<aten::LtScalarOp>(behind, window));
  }
  if (!options.hasDocuments()) // transformers makes it for each sample
    seen = f.op<aten::ExpandOp>(
        seen, llvm::ArrayRef<int64_t>{batch, sequence, sequence});
  // A number that every dtype has, and beside which no score is anything.
  constexpr double hidden = 30000;
  Value added = f.op<aten::ToCopyOp>(seen, f.f32());
  added = f.op<aten::TypeAsOp>(added, f.argument(0));
  added = f.op<aten::MulScalarOp>(f.op<aten::SubScalarOp>(added, 1.0), hidden);
  f.end(f.view(added, {batch, 1, sequence, sequence}));
  return function;
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
  addModel(builder, *module, info);
  std::visit([&](const auto &c) { build(builder, c, info, options); },
             config.family);
  if (options.eagerAttention)
    module->walk([&](aten::ScaledDotProductAttentionOp op) {
      op->setAttr(op.getByPartsAttrName(), builder.getUnitAttr());
    });
  return module;
}
