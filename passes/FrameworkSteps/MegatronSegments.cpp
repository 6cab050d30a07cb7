//===- MegatronSegments.cpp - The segments of a Megatron job --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/MegatronSegments.h"

#include "passes/Partition/GraphParts.h"

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
  layers = {kernels.fp8, attr.getOverlapTensor()};
  auto request = sharding::findRequest(module, "megatron");
  recomputesExperts = request && request.getValue().get("recompute_experts");
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

/// The mixture and the norm before it are a checkpoint, instead of attention's
/// core.
static void markExperts(SegmentGraph &graph) {
  graph.child.assign(graph.function.instructions.size(), -1);
  for (size_t i = 0; i < graph.child.size(); ++i) {
    const std::string &where = graph.function.instructions[i].where;
    for (const char *part : {".mlp", "post_attention_layernorm"})
      if (where.find(part) != std::string::npos)
        graph.child[i] = 0;
  }
}

mlir::LogicalResult MegatronSegments::convert(sharding::CallOp op,
                                              SegmentGraph &graph,
                                              const Target *target) const {
  if (!converts)
    return mlir::success();
  if (const std::string why = useMegatronExperts(graph, experts, target);
      !why.empty())
    return op.emitOpError() << "cannot be shared: " << why;
  if (!isRepeated(op.getPath()))
    return mlir::success();
  useMegatronLayers(graph, layers, target);
  if (recomputesExperts)
    markExperts(graph);
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
