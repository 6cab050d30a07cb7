//===- SegmentBuilder.h - Joint graphs from shapes --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes the forward of a segment operator by operator and derives its
// backward as autograd does: nodes in reverse order, each reading what its
// derivative needs. The published runs that predictions are compared with have
// shapes and frameworks, no config.json, and their models are not
// transformers'; this is how their operator lists are stated.
//
// Compiled models recompute: a value that is marked so is made again in the
// backward where it is first read, as torch.compile's partitioner does it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_SEGMENTBUILDER_H
#define ACCEL_PASSES_VALIDATE_SEGMENTBUILDER_H

#include "passes/Executors/SegmentGraph.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace accel::validate {

/// A slot of the function that is being written.
using Tensor = int;
using Shape = std::vector<int64_t>;

class SegmentBuilder {
public:
  explicit SegmentBuilder(std::string name, int64_t rounding = 512);

  Tensor input(const Shape &shape, plan::DType dtype, bool gradient);
  Tensor param(const std::string &name, const Shape &shape, plan::DType dtype);
  const Shape &shape(Tensor t) const { return graph.function.slots[t].shape; }
  plan::DType dtype(Tensor t) const { return graph.function.slots[t].dtype; }
  double numel(Tensor t) const;
  double bytes(Tensor t) const;

  /// Whether results from now on survive where something is recomputed: in
  /// the variant `pointwise`, and where the builder is lazy.
  void keep(bool on) { keeping = on; }
  bool isKeeping() const { return keeping; }

  Tensor view(Tensor t, const Shape &shape);
  /// x [.., K] times w [N, K] transposed, plus a bias.
  Tensor linear(Tensor x, Tensor w, Tensor bias = -1);
  Tensor add(Tensor a, Tensor b);
  Tensor mul(Tensor a, Tensor b);
  /// An elementwise operator whose derivative reads its input, its output or
  /// neither, in one kernel each way.
  enum class Saves { Nothing, Input, Output };
  Tensor unary(const std::string &op, Tensor x, Saves saves,
               std::optional<plan::DType> result = std::nullopt);
  Tensor cast(Tensor x, plan::DType dtype);
  /// silu(gate) * up in one kernel.
  Tensor swiglu(Tensor gate, Tensor up);
  /// A norm in one kernel; LayerNorm with bias and mean, else RMSNorm.
  Tensor norm(Tensor x, Tensor weight, Tensor bias = -1);
  /// RMSNorm as it is written in Python, in fp32.
  Tensor decomposedNorm(Tensor x, Tensor weight, bool weightInFloat);
  /// Rotary embedding by complex products in fp32, three kernels.
  Tensor complexRope(Tensor x);
  /// x cos + rotate_half(x) sin, five kernels.
  Tensor rotateHalfRope(Tensor x);
  /// Rotary embedding in one kernel.
  Tensor fusedRope(Tensor x);
  /// [B, h, S, D] -> [B, heads, S, D], copied.
  Tensor repeatHeads(Tensor x, int64_t heads);
  /// A part of a projection that holds queries, keys and values; their
  /// gradients are parts of one tensor as well.
  Tensor third(Tensor projected, const Shape &shape);
  /// Causal fused attention of [B, H, S, D].
  Tensor attention(Tensor q, Tensor k, Tensor v);
  Tensor embedding(Tensor table, Tensor ids);
  /// Means over tokens of the cross entropy of `logits` [T, V].
  enum class Loss {
    Eager,       // log_softmax and nll_loss, in the dtype of the logits
    Compiled,    // one kernel each way, fp32 inside
    InPlaceFused // flash-attn's: gradients overwrite the logits
  };
  Tensor crossEntropy(Tensor logits, Loss loss);

  /// A variable of the training loop refers to `t` while the loss is computed,
  /// and, if `toTheEnd`, during the backward.
  void hold(Tensor t, bool toTheEnd);

  /// From now on values that are not kept are recomputed where the backward
  /// reads them.
  void setLazy(bool on) { lazy = on; }

  /// Writes the backward.
  SegmentGraph finish(const std::vector<Tensor> &outputs);

private:
  struct Node {
    std::vector<Tensor> outputs;
    std::function<void()> backward;
  };

  Tensor slot(const Shape &shape, plan::DType dtype);
  Tensor alias(Tensor base, const Shape &shape);
  int emit(const std::string &op, const std::vector<Tensor> &args,
           const std::vector<Tensor> &results, double flops, double moved = -1,
           bool isView = false);
  void node(const std::vector<Tensor> &outputs, std::function<void()> fn);
  bool needsGradient(Tensor t) const;
  /// The forward's value as the backward has it.
  Tensor use(Tensor t);
  Tensor gradient(Tensor t);
  void addGradient(Tensor t, Tensor gradient);
  double moved(const std::vector<Tensor> &args,
               const std::vector<Tensor> &results) const;

  SegmentGraph graph;
  std::vector<Node> nodes;
  std::vector<Tensor> inputs, params, held;
  std::vector<bool> differentiable; // by slot
  std::map<Tensor, Tensor> gradients, again;
  std::map<Tensor, std::vector<Tensor>> thirds; // gradients that wait
  std::vector<int> producers; // by base slot: instruction, or -1
  bool forward = true, keeping = true, lazy = false;
  bool holdsToTheEnd = false;
  int currentNode = 0;
};

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_SEGMENTBUILDER_H
