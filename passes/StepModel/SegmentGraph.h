//===- SegmentGraph.h - What autograd holds of a segment --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The joint forward and backward of a segment as an operator list, and the
// measurement of its variants under PyTorch's eager rules: every value that a
// derivative reads is saved, a node's saved values are released when the node
// is done, gradients are summed in place where nobody else reads the first,
// and checkpointed segments are recomputed as a whole before their
// backward (torch.utils.checkpoint, non-reentrant, with early stop).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_SEGMENTGRAPH_H
#define ACCEL_PASSES_STEPMODEL_SEGMENTGRAPH_H

#include "passes/Segments/ReductionBytes.h"
#include "passes/StepModel/StepModel.h"
#include "passes/Targets/Target.h"
#include "runtime/plan/Mesh.h"

#include <set>

namespace accel {

/// What the host does for an instruction.
struct HostWork {
  double launches = 1; // kernels; 0 where a CUDA graph has them
  /// The host waits until the device has run it: it reads what it gives.
  bool waits = false;
  /// A CUDA graph has it: neither it nor a view takes time of the host.
  bool replayed = false;
};

/// A joint function without gradient destinations: its outputs are those of
/// the forward, the gradients of inputs and those of parameters, in this order.
struct SegmentGraph {
  plan::Function function;
  int inputs = 0;  // of Function::inputs; the rest are tangents of the outputs
  int outputs = 0; // of Function::outputs
  int inputGradients = 0, parameterGradients = 0;
  /// By input: its gradient is computed and no other segment reads it, so it is
  /// an activation that the backward releases when it has read it.
  std::vector<bool> inputHasGradient;
  std::vector<bool> forward; // by instruction; the others are the backward
  std::vector<bool> view;    // by instruction: allocates nothing
  /// By instruction: the autograd node that it belongs to; instructions of
  /// one node follow each other.
  std::vector<int> node;
  /// By instruction: the child of the layer's module that it belongs to, or
  /// its derivative does; -1 for the layer's own. Empty: not known.
  std::vector<int> child;
  /// By child: what it gives is discarded when its readers of the forward have
  /// read it, and is made again before the first derivative that reads it.
  /// Empty: none is.
  std::vector<bool> discards;
  /// By instruction: `pointwise` keeps its results (passes/Recompute).
  std::vector<bool> pointwiseKeeps;
  /// The segment ends in the loss.
  bool loss = false;
  /// The loss shifts the logits, of which it makes a copy (transformers until
  /// 4.48: `logits[..., :-1, :].contiguous()`); later it shifts the labels.
  bool shiftsLogits = false;
  /// The model's forward names the 16-bit logits until the loss is there: from
  /// transformers 4.46 on it hands them to a loss function, which converts
  /// them; before, `logits = logits.float()` gave them back.
  bool namesNarrowLogits = true;
  /// It also names what the layers return, from which the head computes.
  bool namesHiddenStates = false;
  /// Its modules are transformers', eagerly: what they are given, and what
  /// attention computes from, has names until they return (CallNames.h).
  bool namesArguments = false;
  /// By Function::params: it is not trained, so that autocast's cache does not
  /// keep its copy (aten/src/ATen/autocast_mode.cpp, cached_cast). Empty: all
  /// are trained.
  std::vector<bool> frozenParameters;
  /// Storages that hold two elements in a byte, with a scale of a byte for each
  /// 16 (LinearOperands::Nvfp4).
  std::set<int> fourBits;
  /// Storages that nodes of the forward hold by themselves: checkpoints, unless
  /// they are reentrant, do not drop them.
  std::set<int> heldByNodes;
  bool reentrantCheckpoints = false; // without nodes in the forward
  bool holds(int storage) const {
    return !reentrantCheckpoints && heldByNodes.contains(storage);
  }
  /// Of exchanges inside of the function (sharding::all_reduce, ...): the axes
  /// that they name, and neighbouring ranks on one node.
  plan::Mesh mesh;
  int64_t ranksPerNode = 1;
  /// By instruction: seconds that whoever reads its result waits for what ranks
  /// exchange, where they are others than its axes say (experts' ranks are
  /// none, matmuls hide a part); below 0: as they say. Empty: all are.
  std::vector<double> waits;
  /// The same where the forward is repeated and `pointwise` keeps some of the
  /// matmuls that hide it. Empty: as `waits`.
  std::vector<double> repeatWaits;
  /// What torch.compile would make of it is counted too.
  bool fuses = true;
  /// By instruction; empty: each launches one kernel, views none.
  std::vector<HostWork> host;
  /// What operators of CUDA need inside is counted (passes/Segments): their
  /// executor counts all that torch's allocator gives.
  bool inside = false;
  CudaDevice device;
  /// Allocations are rounded up to this (512 under CUDA, 64 on CPUs).
  int64_t rounding = plan::alignmentBytes;

  /// Puts an instruction before the one at `at`, to whose node and child it
  /// then belongs.
  void insert(size_t at, const plan::Instruction &instruction, bool isForward,
              bool isView);
  /// Takes out all instructions and what is told of each, to be written anew;
  /// returns the graph as it was.
  SegmentGraph takeInstructions();

  /// By instruction of a segment that ends in the loss: it reads or writes a
  /// tensor of as many elements as the logits, which its first matmul makes, or
  /// as they have without the last token.
  std::vector<bool> overLogits() const;
};

/// SegmentKind's seconds of operators over logits.
void measureLogits(const SegmentGraph &graph, const Target &target,
                   SegmentKind &kind);

/// Adds the temporaries of autograd's own formulas where the project's rules
/// need fewer.
void toAutogradForm(SegmentGraph &graph);

/// Lets derivatives of fused kernels write over what they read
/// (frameworks::Kernels::derivativesInPlace).
void writeDerivativesInPlace(SegmentGraph &graph);

/// Children: each child of the layer is a checkpoint of its own.
enum class EagerMode { None, Pointwise, Full, Children };

/// Measures one variant; seconds are 0 without a target. Linear in the number
/// of instructions.
SegmentVariant measureVariant(const SegmentGraph &graph, EagerMode mode,
                              const Target *target);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_SEGMENTGRAPH_H
