//===- VerifyCandidate.cpp - What is wrong with a candidate ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/GraphGradients.h"
#include "passes/FrameworkSteps/Megatron.h"

#include <algorithm>

namespace accel {
namespace {

std::string count(const char *what, size_t has, size_t wants) {
  return std::string(what) + " has " + std::to_string(has) +
         " entries, expected " + std::to_string(wants);
}

std::string verifySizes(const StepModel &model, const Candidate &c) {
  if (c.variants.size() != model.calls.size())
    return count("variants", c.variants.size(), model.calls.size());
  if (c.offloadActivations.size() != model.calls.size())
    return count("offloadActivations", c.offloadActivations.size(),
                 model.calls.size());
  if (c.unitOf.size() != model.parameters.size())
    return count("unitOf", c.unitOf.size(), model.parameters.size());
  for (size_t i = 0; i < c.variants.size(); ++i) {
    const SegmentKind &kind = model.kinds[model.calls[i].kind];
    if (c.variants[i] < 0 ||
        c.variants[i] >= static_cast<int>(kind.variants.size()))
      return "call " + std::to_string(i) + " has variant " +
             std::to_string(c.variants[i]) + " of " +
             std::to_string(kind.variants.size());
  }
  for (size_t p = 0; p < c.unitOf.size(); ++p)
    if (c.unitOf[p] < 0 || c.unitOf[p] >= c.numUnits())
      return "parameter '" + model.parameters[p].fqn + "' is in unit " +
             std::to_string(c.unitOf[p]) + " of " +
             std::to_string(c.numUnits());
  if (c.rootUnit >= c.numUnits())
    return "the root is unit " + std::to_string(c.rootUnit) + " of " +
           std::to_string(c.numUnits());
  return "";
}

std::string verifyRanges(const Candidate &c) {
  for (const plan::Axis &axis : c.mesh.axes)
    if (axis.size < 1)
      return "the mesh axis " + axis.name + " must have at least 1 rank";
  if (c.ranksPerNode < 1)
    return "ranks must be at least 1";
  if (c.accumulation < 1)
    return "accumulation must be at least 1";
  if (c.forwardPrefetch < 0 || c.backwardPrefetch < 0)
    return "prefetch depths must not be negative";
  if (c.holdGathers < 0)
    return "a negative number of gathers is held back";
  if (c.awaitReductions < 0)
    return "a negative number of reductions is awaited";
  if (c.bucketBytes < 1 || c.firstBucketBytes < 1)
    return "gradient buckets must have a size";
  if (c.zeroStage < 0 || c.zeroStage > 3)
    return "ZeRO has stages 0 to 3";
  if (c.lossChunks < 1)
    return "the loss is computed in at least one part";
  if (!c.commHook.empty() && c.commHook != "fp16" && c.commHook != "bf16" &&
      c.commHook != "powersgd")
    return "unknown communication hook '" + c.commHook +
           "', expected fp16, bf16 or powersgd";
  return "";
}

/// `.grad` of a parameter is the tensor that a CUDA graph wrote, and the next
/// forward takes its memory: torch stops where the next backward adds to it
/// (dealloc_current_path_weakrefs, torch/_inductor/cudagraph_trees.py; pytorch
/// issue 169545). Wrappers that take gradients out after each backward have no
/// such tensor then.
bool addsToGraphs(const Candidate &c) {
  if (!c.replaysGraphs || c.accumulation == 1)
    return false;
  switch (c.executor) {
  case FrameworkKind::Single:
    return true;
  case FrameworkKind::Ddp: // a bucket is reduced into its views
    return !(c.gradientAsBucketView && c.reduceEachMicroBatch);
  case FrameworkKind::Fsdp2: // a cast makes a tensor of its own
    return !c.reduceEachMicroBatch && c.dtypes.reduce == c.dtypes.compute;
  case FrameworkKind::Deepspeed: // BF16_Optimizer adds in fp32 copies
    return c.zeroStage == 1 ||
           (c.zeroStage == 0 && c.dtypes.compute != plan::DType::BF16);
  case FrameworkKind::Fsdp1:
  case FrameworkKind::Megatron:
  case FrameworkKind::AccelRun:
    break;
  }
  return false;
}

/// What an executor cannot do.
std::string verifyAbility(const StepModel &model, const Candidate &c) {
  const bool replicates = neverShards(c.executor);
  if (replicates && c.shards().ranks > 1)
    return std::string(toString(c.executor)) + " does not shard parameters";
  if (c.executor == FrameworkKind::Single && c.replicas().ranks > 1)
    return "single is one process";
  if (replicates && c.offloadParameters)
    return std::string(toString(c.executor)) +
           " cannot keep parameters on the host";
  if (c.executor == FrameworkKind::Deepspeed && c.replicas().ranks > 1 &&
      c.zeroStage < 3) // MiCS
    return "deepspeed shards over all ranks below ZeRO stage 3";
  if (c.executor == FrameworkKind::Deepspeed && c.offloadParameters &&
      c.zeroStage < 3)
    return "deepspeed keeps parameters on the host with ZeRO stage 3 alone";
  if (c.executor == FrameworkKind::Deepspeed && c.offloadOptimizer &&
      c.zeroStage < 1)
    return "deepspeed keeps the optimizer on the host with ZeRO stages 1 to 3 "
           "alone";
  if (c.executor == FrameworkKind::AccelRun && c.lossChunks > 1)
    return "accel-run's loss is cut in its step model";
  // Of accel-run's stages each has programs of its own.
  if (c.stages() > 1 && !isPipelined(c) &&
      c.executor != FrameworkKind::AccelRun)
    return std::string(toString(c.executor)) + " has no pipeline";
  if (c.executor == FrameworkKind::Megatron && c.offloadParameters)
    return "megatron keeps parameters on the device";
  if (const int64_t sharing = c.megatron.experts * c.megatron.expertTensor,
      ranks = c.mesh.ranks() / c.stages();
      c.executor == FrameworkKind::Megatron && sharing > 1 &&
      ranks % sharing != 0)
    return "experts over " + std::to_string(c.megatron.experts) + " x " +
           std::to_string(c.megatron.expertTensor) +
           " ranks do not divide the " + std::to_string(ranks) +
           " ranks of a stage";
  // Megatron's arguments.py: num_experts must be there.
  if (c.executor == FrameworkKind::Megatron && c.megatron.experts > 1 &&
      std::none_of(model.parameters.begin(), model.parameters.end(),
                   [](const StepParameter &p) { return p.expert; }))
    return "the model has no experts that " +
           std::to_string(c.megatron.experts) + " ranks could share";
  if (std::string problem = overwrittenGradients(c); !problem.empty())
    return problem;
  if (isPipelined(c))
    if (std::string problem = verifyPipeline(model, c); !problem.empty())
      return problem;
  for (size_t i = 0; i < c.offloadActivations.size(); ++i)
    if (c.offloadActivations[i] && !model.kinds[model.calls[i].kind]
                                        .variants[c.variants[i]]
                                        .savedInputBytes)
      return "call " + std::to_string(i) +
             " saves no input that could go to the host";
  return "";
}

} // namespace

std::string overwrittenGradients(const Candidate &c) {
  if (!addsToGraphs(c))
    return "";
  return "CUDA graphs overwrite the gradients of the micro-batch before, and "
         "torch stops in the second of " +
         std::to_string(c.accumulation) +
         " (\"accessing gradient tensor output of CUDAGraphs that has been "
         "overwritten\")";
}

std::string verifyCandidate(const StepModel &model,
                            const Candidate &candidate) {
  std::string problem = verifySizes(model, candidate);
  if (problem.empty())
    problem = verifyRanges(candidate);
  if (problem.empty())
    problem = verifyAbility(model, candidate);
  return problem;
}

} // namespace accel
