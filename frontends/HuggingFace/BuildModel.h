//===- BuildModel.h - The model phase of a configuration --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Makes MLIR of a configuration: the module tree, the parameters, one function
// of aten operators per distinct segment (embedding, decoder layer, head with
// the loss) and the graph `@train` that calls them. All layers share one
// function. The operators are those that transformers' sdpa path runs, in its
// order, so that fp32 results are equal. Each family has a file Build*.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_BUILDMODEL_H
#define ACCEL_FRONTENDS_HUGGINGFACE_BUILDMODEL_H

#include "frontends/HuggingFace/ModelConfig.h"
#include "frontends/HuggingFace/Positions.h"

#include "dialects/Sharding/Sharding.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>

namespace accel::huggingface {

struct BuildOptions {
  int64_t microBatch = 1;     // sequences
  int64_t sequenceLength = 1; // tokens
  /// Tokens of the labels of an encoder-decoder; 0: sequenceLength.
  int64_t targetLength = 0;
  /// The optional inputs (ModelInput) that the batch has.
  std::set<std::string> inputs;
  /// Attention is transformers' eager_attention_forward, not a kernel.
  bool eagerAttention = false;
  /// Of each sample, for a model with a tower; nothing: text alone.
  std::optional<Images> images;
  /// Samples hold several documents, which do not see each other.
  bool hasDocuments() const;
};

/// Builds the model phase in fp32. `input_ids` and `labels` are [micro-batch,
/// sequence] int64; labels are the next tokens already, and -100 is ignored.
/// Reports sizes that cannot be indexed and fails.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
buildModel(mlir::MLIRContext &context, const ModelConfig &config,
           const BuildOptions &options, DiagnosticEngine &diagnostics);

/// Writes the module tree and the parameters of `info` at `builder`, and the
/// places of the model as an attribute of `module`.
void addModel(mlir::OpBuilder &builder, mlir::ModuleOp module,
              const ModelInfo &info);

/// Writes the calls of one forward pass, down to the loss.
class GraphWriter {
public:
  /// The batch is `input_ids` and `labels`, [micro-batch, sequence] int64, and
  /// positions where samples hold documents, and `images`; behind it the
  /// buffers.
  using Input = std::pair<llvm::StringRef, mlir::RankedTensorType>;
  GraphWriter(mlir::OpBuilder &builder, const BuildOptions &options,
              const std::vector<BufferInfo> &buffers = {},
              llvm::ArrayRef<Input> images = {});
  GraphWriter(mlir::OpBuilder &builder, llvm::ArrayRef<Input> batch);
  mlir::Value inputIds() const { return input("input_ids"); }
  mlir::Value labels() const { return input("labels"); }
  /// Null where the batch has none of this name.
  mlir::Value input(llvm::StringRef name) const;
  mlir::ValueRange call(mlir::func::FuncOp callee, mlir::ValueRange operands,
                        llvm::StringRef path);
  void end(mlir::Value loss);

private:
  mlir::OpBuilder builder;
  llvm::SmallVector<std::pair<std::string, mlir::Value>> inputs;
};

/// (hidden [B, S, hiddenSize], positions [B, S] of documents where the options
/// have them) -> what is added to the scores of attention, so that no token
/// sees another document, nor, with a `window`, more keys than that, nor, where
/// the mask is `ordered` and not the attention, a later token: [B, 1, S, S], in
/// the dtype of hidden.
mlir::func::FuncOp attentionMask(mlir::OpBuilder &builder, llvm::StringRef path,
                                 int64_t hiddenSize,
                                 const BuildOptions &options,
                                 int64_t window = 0, bool ordered = false);

/// The segment functions and the graph of one family.
/// `tower` is read where the options have images.
void buildSegments(mlir::OpBuilder &builder, const Decoder &decoder,
                   const ModelInfo &info, const BuildOptions &options,
                   const Tower *tower = nullptr);
void buildSegments(mlir::OpBuilder &builder, const Gpt2Config &config,
                   const BuildOptions &options);
void buildSegments(mlir::OpBuilder &builder, const BertConfig &config,
                   const BuildOptions &options);
void buildSegments(mlir::OpBuilder &builder, const VitConfig &config,
                   const BuildOptions &options);
void buildSegments(mlir::OpBuilder &builder, const T5Config &config,
                   const BuildOptions &options);
void buildSegments(mlir::OpBuilder &builder, const WhisperConfig &config,
                   const BuildOptions &options);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_BUILDMODEL_H
