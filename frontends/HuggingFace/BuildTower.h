//===- BuildTower.h - Segments of a tower -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_BUILDTOWER_H
#define ACCEL_FRONTENDS_HUGGINGFACE_BUILDTOWER_H

#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/Tower.h"

#include <memory>

namespace accel::huggingface {

/// The functions of a tower, and their calls.
class TowerSegments {
public:
  virtual ~TowerSegments() = default;
  /// The input of the batch that holds images: its name and type.
  virtual GraphWriter::Input input() const = 0;
  /// Writes the calls: pixels -> features [rows, outputSize], of all samples
  /// one after the other.
  virtual mlir::Value call(GraphWriter &graph) = 0;
};

/// CLIP and LLaVA's projector (BuildClip.cpp).
std::unique_ptr<TowerSegments> buildClip(mlir::OpBuilder &builder,
                                         const Tower &tower,
                                         const BuildOptions &options);
/// Qwen2-VL's and Qwen2.5-VL's (BuildQwenTower.cpp).
std::unique_ptr<TowerSegments> buildQwen(mlir::OpBuilder &builder,
                                         const Tower &tower,
                                         const BuildOptions &options);

/// A tower beside a language model, and what puts its features among the
/// embedded tokens; nothing where the options have no images.
class ImageReader {
public:
  /// Writes the functions. `tower` may be null without images.
  ImageReader(mlir::OpBuilder &builder, const Tower *tower,
              const BuildOptions &options);
  /// Of the batch, beside those of the language model.
  llvm::SmallVector<GraphWriter::Input> inputs() const;
  /// Writes the calls: embedded tokens [B, S, hidden] -> the same with features
  /// in place of the tokens of images.
  mlir::Value read(GraphWriter &graph, mlir::Value embedded);

private:
  std::unique_ptr<TowerSegments> tower;
  mlir::func::FuncOp merge;
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_BUILDTOWER_H
