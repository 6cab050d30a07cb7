//===- StepModel.h - A training step, reduced to its costs ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The input of every framework's step and of the search: the distinct segments
// of a model with the costs of each of their variants (what is saved, what is
// recomputed), the calls of a forward in order, and the parameters. Built once
// from the joint graphs (FrameworkSteps/BuildStepModel.h). A Candidate
// (FrameworkSteps/StepEvaluator.h) says how the step is run. No MLIR:
// evaluating a candidate must cost microseconds.
//
// Bytes are per rank and of one micro-batch unless a name says otherwise;
// seconds are of the target that the model was built for.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_STEPMODEL_H
#define ACCEL_PASSES_STEPMODEL_STEPMODEL_H

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace accel {

/// What a call does to one storage. Storage numbers are local to the variant; a
/// saved storage has the same number in forward and backward.
struct StorageEvent {
  enum class Kind : uint8_t {
    Allocate,     // a storage of `bytes`
    Free,         // a storage
    FreeInput,    // the last reader of an input has run
    FreeTangent,  // the last reader of an output's gradient has run
    FreeGradient, // a parameter gradient was added to the one of before
    LossEnd,      // dL/dlogits exists: hooks on the logits run
    Library       // cuBLAS, or cuBLASLt, is called; its workspace has `bytes`
  };
  Kind kind = Kind::Allocate;
  int storage = 0; // of FreeInput and FreeTangent: SegmentKind's order
  int64_t bytes = 0;
};

/// Where a gradient of a segment lies when its backward is done.
struct GradientPlace {
  int storage = -1; // its own
  int tangent = -1; // that of an output
};

/// The storages of one variant in the order in which they come and go, as
/// measureVariant's levels count them. Empty for functions without operators.
struct StorageTrace {
  std::vector<StorageEvent> forward, backward;
  std::vector<int> outputs;                  // by output; -1: an input's
  std::vector<int> parameterCopies;          // of autocast
  std::vector<GradientPlace> inputGradients; // SegmentKind::inputGradients
  std::vector<int> parameterGradients;       // storages, by gradient
};

/// One choice of the tensors that a segment's forward saves for its backward,
/// and what it costs.
struct SegmentVariant {
  /// "none" (all that autograd saves), "pointwise" (matmuls, attention and
  /// statistics; the rest is recomputed), "full" (the inputs alone), or
  /// what was solved for a cap in bytes ("54% kept", SavedSetCache.h).
  std::string name;
  bool solved = false;
  /// Of what was solved: the operations of the joint function that are kept.
  std::vector<int64_t> keeps;
  double forwardSeconds = 0;
  double backwardSeconds = 0;  // with recomputation
  double recomputeSeconds = 0; // of these
  /// Of the forward, of the backward without recomputation and of that: seconds
  /// in which operators wait for what ranks exchange.
  double forwardExchangeSeconds = 0, backwardExchangeSeconds = 0;
  double recomputeExchangeSeconds = 0;
  /// The same where torch.compile fuses operators.
  double compiledForwardSeconds = 0, compiledBackwardSeconds = 0;
  /// Kernels that Inductor's code launches; 0: it is not compiled by itself.
  int compiledForwardKernels = 0, compiledBackwardKernels = 0;
  /// Own storages that live from the forward to the backward, beside the
  /// inputs.
  int64_t savedBytes = 0;
  /// Bytes of the segment's inputs that the backward reads, which therefore
  /// stay as well (they may be another segment's output: not counted twice).
  int64_t savedInputBytes = 0;
  /// Own storages at the forward's peak, outputs and saved values included,
  /// inputs not.
  int64_t forwardPeakBytes = 0;
  /// Own storages at the backward's peak beside inputs, saved values, tangents
  /// and parameter gradients: temporaries, recomputed values, input gradients.
  int64_t backwardPeakBytes = 0;
  /// The same with the parameters' gradients: as fresh tensors that stay
  /// (autograd's first backward), and as tensors that are added to others and
  /// freed at once. All three count over the level at the backward's entry,
  /// where saved values, inputs and tangents are live; what it frees of them
  /// counts against the peak. At the end saved values, tangents and the saved
  /// inputs that have gradients are gone.
  int64_t backwardPeakFreshBytes = 0, backwardPeakAddedBytes = 0;
  /// Loss segment only: own storages at the peak before dL/dlogits exists.
  /// Hooks on the head's output run then; the other peaks are after it.
  int64_t lossPeakBytes = 0;
  /// Which inputs and outputs (SegmentKind::inputBytes's order) stay for the
  /// backward.
  std::vector<bool> savesInput, savesOutput;
  /// Which parameters (StepCall::parameters's order) the backward reads.
  std::vector<bool> backwardReads;
  /// Copies of parameters in a lower precision (torch.autocast), part of
  /// `savedBytes` where they are saved; its cache holds them until the forward
  /// of the whole model ends.
  int64_t parameterCopyBytes = 0;
  bool savesParameterCopies = false;
  /// Operators launched, and views, which launch nothing, for eager executors'
  /// overhead on the CPU.
  int forwardOps = 0, backwardOps = 0;
  int forwardViews = 0, backwardViews = 0;
  /// Where the host waits for the device within: seconds of one call of many
  /// in a row, the device's waits for what the host launches next included. 0:
  /// the host never waits.
  double forwardQueued = 0, backwardQueued = 0;
  StorageTrace trace;
};

/// A distinct function of the model: all layers of one shape are one kind.
struct SegmentKind {
  std::string name;                        // "LlamaDecoderLayer"
  std::vector<SegmentVariant> variants;    // [0] is "none"
  int64_t inputBytes = 0, outputBytes = 0; // all of them
  int64_t inputGradientBytes = 0;
  std::vector<int> inputGradients;    // inputs that get a gradient
  std::vector<int> sharedInputs;      // of these: other calls read them too
  int64_t parameterGradientBytes = 0; // fresh, in autograd's dtype
  /// By gradient of a parameter: which of StepCall::parameters; empty: all of
  /// them in order.
  std::vector<int> gradientOf;
  /// The segment ends in the loss: its temporaries are logits.
  bool loss = false;
  int64_t logitsBytes = 0; // tokens * vocabulary in the dtype of the head
  /// The model returns its logits in fp32, whatever the head's dtype.
  bool returnsWideLogits = false;
  /// Seconds of operators that read or write logits, eagerly: what one kernel
  /// for head and loss takes the place of.
  double forwardLogitsSeconds = 0, backwardLogitsSeconds = 0;
  /// Of a segment with the loss: bytes of the allocator's segments at its peak
  /// that no tensor fits into (LossFragments.h).
  int64_t lossFragmentBytes = 0;
  /// Model FLOPs, forward alone, without recomputation.
  double forwardFlops = 0;
  /// By StepCall::parameters: the part of the elements that a token is
  /// multiplied with (of experts, less than 1); 0 for look-ups.
  std::vector<double> multiplied;
  double attentionFlops = 0; // of a call, forward and backward
};

/// One parameter, as executors must lay it out themselves.
struct StepParameter {
  std::string fqn;
  std::vector<int64_t> shape;
  plan::DType dtype = plan::DType::F32; // as loaded
  bool trainable = true;
  /// As a quantised base holds it (runtime/plan/QuantizedWeights.h); 0 packed
  /// bytes: it is not quantised. `dtype` is then that of the packed tensor.
  int64_t packedBytes = 0;
  /// Whole on every rank: scales and tables, and a packed tensor that is a
  /// buffer and no parameter.
  int64_t replicatedBytes = 0;
  bool packedIsParameter = true;
  /// FSDP2 gathers it in one byte an element (sharding.fp8).
  bool gathersFp8 = false;
  /// Of experts that ranks share, under Megatron or of `ep` in the mesh: its
  /// gradient is reduced over the ranks that have the same experts. `shape` is
  /// the rank's part.
  bool expert = false;
  bool embedding = false; // a call looks rows of it up
  /// Its module's forward is not called, so that FSDP2 does not reshard it
  /// before the backward ends, where the caller gathered it.
  bool staysGathered = false;
  bool quantized() const { return packedBytes > 0; }
  /// Elements of the tensor that wrappers shard.
  int64_t storedNumel() const {
    return !quantized()        ? numel()
           : packedIsParameter ? packedBytes / plan::itemSize(dtype)
                               : 0;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d : shape)
      n *= d;
    return n;
  }
};

/// A linear layer of a function, and its matmuls in a step of one micro-batch:
/// in 16 bits, and with operands in fp8 with all that makes those.
struct Fp8Seconds {
  std::string name; // "self_attn.q_proj"
  int64_t rows = 0, in = 0, out = 0;
  double wide = 0, narrow = 0;
};

/// One call of a segment, in the order of the forward.
struct StepCall {
  int kind = 0;                // StepModel::kinds
  std::vector<int> inputs;     // StepModel::values
  std::vector<int> outputs;    // StepModel::values
  std::string path;            // "model.layers.0"
  std::vector<int> parameters; // StepModel::parameters that it reads
  bool layer = false;          // an instance of the repeated transformer layer
};

/// A tensor between calls, or an input of the model (no producer).
struct StepValue {
  int64_t bytes = 0;
  int producer = -1;     // StepModel::calls
  bool gradient = false; // the backward makes one of it
  int64_t gradientBytes = 0;
  bool buffer = false; // of the model: it is there between steps
};

/// Parameters that are gathered and reduced together, in the order in which
/// the executor creates its units.
struct StepUnit {
  std::string name;            // FQN of the module; "" is the root unit
  std::vector<int> parameters; // StepModel::parameters
  bool root = false;
  bool reshardAfterForward = true; // as configured; false for tail and root
  bool replicated = false;         // ignored modules, DDP
};

struct StepModel {
  std::vector<SegmentKind> kinds;
  std::vector<StepCall> calls;
  std::vector<StepValue> values;
  std::vector<StepParameter> parameters;
  /// As the configuration wraps them. The search regroups calls of layers.
  std::vector<StepUnit> units;
  std::vector<Fp8Seconds> fp8; // of each function once
  int64_t microBatch = 1, sequenceLength = 0, vocab = 0;
  /// Ranks that compute one micro-batch together: functions and parameters are
  /// one rank's parts.
  int64_t ranksPerSample = 1;
  /// Of these, those that each have a part of the sequence and whole weights.
  int64_t ranksPerSequence = 1;
  /// Of a pipeline, whose calls are those of all stages.
  int64_t stages = 1;
  /// Tokens of one micro-batch on one rank; samples where there are no tokens.
  int64_t tokens() const {
    return microBatch * (sequenceLength > 0 ? sequenceLength : 1);
  }
  std::string device; // "cpu" or "cuda": the operator set
};

/// Model FLOPs of one token, as modelFlopsPerToken of a plan counts them
/// (passes/Simulate/Time.h).
double modelFlopsPerToken(const StepModel &model);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_STEPMODEL_H
