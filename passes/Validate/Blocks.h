//===- Blocks.h - The segments of a decoder-only transformer ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operator lists of the embedding, a layer (whole, or in the parts that are
// checkpointed apart) and the head with the loss.
//
// What a compiled layer saves follows torch.compile's partitioner
// (torch/_functorch/config.py: ban_recompute_materialized_backward): what the
// backward's products and attention read has to be in memory and is saved;
// what only its fused kernels read is computed again.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_BLOCKS_H
#define ACCEL_PASSES_VALIDATE_BLOCKS_H

#include "passes/Validate/ShapeModel.h"

namespace accel::validate {

enum class LayerPart {
  Whole,
  Before,    // the first norm
  Attention, // from the norm's result to the output projection
  After      // residuals, second norm and MLP
};

class Blocks {
public:
  Blocks(const ModelShape &shape, const ModelRecipe &recipe)
      : shape(shape), recipe(recipe), style(recipe.style),
        tokens(recipe.microBatch * recipe.sequenceLength) {}

  SegmentGraph embedding() const;
  /// `recompute` decides what a compiled layer saves, and what the variant
  /// `pointwise` of an eager one keeps.
  SegmentGraph layer(LayerPart part, Recompute recompute) const;
  /// The last norm and the logits, which frameworks hand to a loss outside of
  /// the model.
  SegmentGraph head() const;
  SegmentGraph loss() const;
  /// Both as one, for what the allocator makes of them.
  SegmentGraph headAndLoss() const;

private:
  Tensor norm(SegmentBuilder &b, Tensor x, const std::string &name) const;
  Tensor linear(SegmentBuilder &b, Tensor x, const std::string &name,
                int64_t out) const;
  Tensor attention(SegmentBuilder &b, Tensor normed) const;
  Tensor mlp(SegmentBuilder &b, Tensor normed) const;
  Tensor rope(SegmentBuilder &b, Tensor x) const;
  Tensor logits(SegmentBuilder &b) const;
  Tensor loss(SegmentBuilder &b, Tensor logits) const;
  /// A product under per-operator checkpointing: every second one is kept.
  Tensor counted(SegmentBuilder &b, Tensor x, const std::string &name,
                 int64_t out) const;

  ModelShape shape;
  ModelRecipe recipe;
  ModelStyle style;
  int64_t tokens;
  mutable int products = 0;
  mutable Recompute mode = Recompute::None;
};

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_BLOCKS_H
