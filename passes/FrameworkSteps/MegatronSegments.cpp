//===- MegatronSegments.cpp - The segments of a Megatron job --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/MegatronSegments.h"

#include "passes/Partition/GraphParts.h"
#include "passes/StepModel/MegatronFused.h"
#include "passes/StepModel/MegatronRecompute.h"
#include "passes/StepModel/MegatronStates.h"
#include "passes/StepModel/TensorExchanges.h"

namespace accel {

using llvm::StringRef;

void MegatronSegments::read(mlir::ModuleOp module, sharding::JobOp job,
                            const frameworks::Kernels &kernels,
                            int64_t tensor) {
  auto attr = job.getMegatronAttr();
  if (!attr)
    return;
  megatron = true;
  converts = kernels.attention == frameworks::AttentionKernel::Fused;
  tensorRanks = std::max<int64_t>(1, tensor);
  experts = {attr.getExperts(), attr.getExpertTensor(), attr.getSendsOnce(),
             attr.getOverlapExperts()};
  layers = {kernels.operands, attr.getOverlapTensor()};
  auto request = sharding::findRequest(module, "megatron");
  if (!request)
    return;
  auto has = [&](const std::string &name) {
    return static_cast<bool>(request.getValue().get(name));
  };
  for (const auto &[part, name] : plan::recomputeModules)
    if (has(plan::recomputeRequest(name)))
      recomputed.add(part);
  for (const auto &[part, name] : plan::graphedParts)
    if (has(plan::graphRequest(name)))
      host.graphs.add(part);
  host.operands = kernels.operands;
  experts.biases = has("expert_biases");
  experts.fused = layers.fusedExperts = has("fused_experts");
}

void MegatronSegments::addParameter(sharding::ParamOp op,
                                    StepParameter &parameter) const {
  if (!megatron || parameter.shape.size() != 3 ||
      !StringRef(parameter.fqn).contains(".experts."))
    return;
  const int64_t dim = parameter.fqn.ends_with("down_proj") ? 2 : 1;
  const int64_t split =
      op.getTensorType().getDimSize(dim) / parameter.shape[dim];
  parameter.shape = ownExperts(parameter.shape, dim, experts, split);
  parameter.expert = true;
}

mlir::LogicalResult MegatronSegments::convert(sharding::CallOp op,
                                              SegmentGraph &graph,
                                              const Target *target) const {
  if (megatron)
    fuseDropoutSums(graph);
  if (!converts) {
    // Megatron's own layers.
    if (megatron && target && isRepeated(op.getPath()))
      overlapTensor(graph, TensorOverlap::WeightGradients, *target);
    return mlir::success();
  }
  if (const std::string why = useMegatronExperts(graph, experts, target);
      !why.empty())
    return op.emitOpError() << "cannot be shared: " << why;
  if (!isRepeated(op.getPath()))
    return mlir::success();
  useMegatronStates(graph);
  useMegatronLayers(graph, layers, target);
  countMegatronKernels(graph, experts, host);
  if (!recomputed.empty())
    markRecomputed(graph, recomputed);
  return mlir::success();
}

void MegatronSegments::count(const StepModel &model,
                             llvm::ArrayRef<int> parameters,
                             SegmentKind &kind) const {
  const double others = static_cast<double>(experts.ranks * experts.tensor) /
                        static_cast<double>(tensorRanks);
  for (size_t i = 0; i < parameters.size() && i < kind.multiplied.size(); ++i)
    if (model.parameters[parameters[i]].expert)
      kind.multiplied[i] *= others;
}

} // namespace accel
