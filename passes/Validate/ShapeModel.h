//===- ShapeModel.h - Step models from shapes and frameworks ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_SHAPEMODEL_H
#define ACCEL_PASSES_VALIDATE_SHAPEMODEL_H

#include "passes/Executors/StepModel.h"
#include "passes/Targets/Target.h"
#include "passes/Validate/SegmentBuilder.h"

namespace accel::validate {

/// Sizes of a decoder-only transformer.
struct ModelShape {
  int64_t layers = 0, hidden = 0, heads = 0, keyValueHeads = 0, ffn = 0,
          vocab = 0;
  int64_t headSize() const { return hidden / heads; }
};

/// How a framework writes the model: what differs in operators, saved values
/// and parameters.
struct ModelStyle {
  bool llama = true; // RMSNorm, rotary, SwiGLU; else LayerNorm, positions, GELU
  bool biases = false;
  bool tied = false; // one table for embedding and head
  enum class Norm { Fused, InPython, InPythonFloatWeight } norm = Norm::Fused;
  enum class Rope { Complex, RotateHalf, Fused } rope = Rope::Complex;
  bool repeatHeads = true; // keys and values are copied for each query head
  bool lossInFloat = true; // logits are converted to fp32 before the loss
  SegmentBuilder::Loss loss = SegmentBuilder::Loss::Eager;
  bool holdsLogits = false; // a variable refers to them during the backward
  /// The embedding and the head are units of their own, else the root's.
  bool splitRoot = false;
  /// The root is told to reshard, which torch's default is not.
  bool reshardsRoot = false;
  bool keepsLastLayer = false; // gathered from its forward to its backward
  bool compiled = false;       // blocks under torch.compile
  bool compiledLoss = false;
};

/// What of each layer is computed again in the backward.
enum class Recompute {
  None,
  SelectiveOps, // every second product and attention are saved (torchtitan)
  Attention,    // the attention module (KempnerForge)
  Layers        // whole layers
};

struct ModelRecipe {
  ModelStyle style;
  Recompute recompute = Recompute::None;
  /// Layers of which `recompute` is true; the others save everything.
  double recomputedShare = 1;
  plan::DType parameters = plan::DType::F32; // as stored
  plan::DType compute = plan::DType::BF16;
  bool fp8 = false; // products of the layers
  /// Rate of the attention kernels against those the target was measured with.
  double attentionRate = 1;
  int64_t microBatch = 1, sequenceLength = 1;
};

/// One segment's cost in this recipe.
struct StepShape {
  StepModel model;
  /// Variant of each call of `model`.
  std::vector<int> variants;
  /// CPU seconds to launch the operators of one micro-batch eagerly.
  double dispatchSeconds = 0;
  /// What the allocator cannot reuse in the loss: of its segments at the peak,
  /// beside what is allocated (bytes).
  int64_t lossFragmentBytes = 0;
};

/// The step model of `shape` on `target` (null: no seconds).
StepShape buildShapeModel(const ModelShape &shape, const ModelRecipe &recipe,
                          const Target *target);

/// All parameters, a tied table once.
int64_t parameterCount(const ModelShape &shape, const ModelStyle &style,
                       int64_t positions);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_SHAPEMODEL_H
