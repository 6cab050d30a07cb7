//===- DecideExperts.cpp - Experts that ranks share -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "dialects/Sharding/Spec.h"
#include "passes/Mesh/TpPlans.h"
#include "passes/Passes.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_DECIDEEXPERTSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::mesh;

namespace {

struct DecideExpertsPass
    : accel::impl::DecideExpertsPassBase<DecideExpertsPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto request = sharding::findRequest(module, "experts");
    if (!request)
      return;
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    auto axes = request.getValue().getAs<ArrayAttr>("axes");
    auto imbalance = request.getValue().getAs<FloatAttr>("imbalance");
    if (!mesh || !graph || !axes || axes.empty() ||
        !llvm::all_of(axes, llvm::IsaPred<StringAttr>) || !imbalance ||
        !(imbalance.getValueAsDouble() >= 1)) {
      request.emitOpError("needs 'axes', 'imbalance' of at least 1, a "
                          "sharding.mesh and a sharding.graph");
      return signalPassFailure();
    }
    SmallVector<sharding::ShardedBy> shares;
    int64_t ranks = 1;
    for (StringRef axis : axes.getAsValueRange<StringAttr>()) {
      shares.push_back({axis, 1});
      ranks *= mesh.axisSize(axis);
    }
    const std::string names = sharding::axisNames(axes);
    ModelTpPlan model;
    for (auto node : module.getOps<sharding::ModuleOp>())
      model.addModule(node.getFqn(), node.getClassName());
    const TpPlan *plan = model.get();
    bool any = false;
    for (auto param : module.getOps<sharding::ParamOp>()) {
      const TpEntry *entry =
          plan ? model.find(plan->experts, param.getFqn()) : nullptr;
      if (!entry || entry->style != TpStyle::GroupedGemm)
        continue;
      any = true;
      if (failed(decide(request, param, shares, ranks, names,
                        "base_model_ep_plan of " + plan->baseClass.str())))
        return signalPassFailure();
    }
    if (!any) {
      emitError(request.getLoc(), "no rule says which parameters of this model "
                                  "are experts that the ranks of '")
          << names << "' share";
      return signalPassFailure();
    }
    graph->setAttr(sharding::expertsAttr,
                   sharding::ExpertsAttr::get(
                       &getContext(), axes, imbalance, request.getBecause(),
                       request.getValue().contains("sorts_again")));
  }

private:
  LogicalResult decide(sharding::RequestOp request, sharding::ParamOp param,
                       ArrayRef<sharding::ShardedBy> shares, int64_t ranks,
                       StringRef names, const std::string &why) {
    RankedTensorType type = param.getTensorType();
    if (type.getDimSize(0) % ranks != 0)
      return emitError(request.getLoc(), "'")
             << param.getFqn() << "' has " << type.getDimSize(0)
             << " experts, which " << ranks << " ranks of '" << names
             << "' do not divide";
    Builder b(&getContext());
    SmallVector<ArrayAttr> dims(type.getRank(), b.getArrayAttr({}));
    dims[0] = sharding::dimOf(&getContext(), shares);
    param.setSpecAttr(sharding::SpecAttr::get(
        &getContext(), dims, ArrayAttr(),
        sharding::BecauseAttr::get(&getContext(), why)));
    return success();
  }
};

} // namespace
