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
    auto axis = request.getValue().getAs<StringAttr>("axis");
    auto imbalance = request.getValue().getAs<FloatAttr>("imbalance");
    if (!mesh || !graph || !axis || !imbalance ||
        !(imbalance.getValueAsDouble() >= 1)) {
      request.emitOpError("needs 'axis', 'imbalance' of at least 1, a "
                          "sharding.mesh and a sharding.graph");
      return signalPassFailure();
    }
    const int64_t ranks = mesh.axisSize(axis.getValue());
    const TpPlan *plan = nullptr;
    for (auto node : module.getOps<sharding::ModuleOp>())
      if (!plan)
        plan = findTpPlan(node.getClassName());
    bool any = false;
    for (auto param : module.getOps<sharding::ParamOp>()) {
      const TpEntry *entry =
          plan ? findTpEntry(plan->experts, param.getFqn()) : nullptr;
      if (!entry || entry->style != TpStyle::GroupedGemm)
        continue;
      any = true;
      if (failed(decide(request, param, axis.getValue(), ranks,
                        "base_model_ep_plan of " + plan->baseClass.str())))
        return signalPassFailure();
    }
    if (!any) {
      emitError(request.getLoc(), "no rule says which parameters of this model "
                                  "are experts that the ranks of '")
          << axis.getValue() << "' share";
      return signalPassFailure();
    }
    graph->setAttr(
        sharding::expertsAttr,
        sharding::ExpertsAttr::get(&getContext(), axis.getValue(), imbalance,
                                   request.getBecause(),
                                   request.getValue().contains("sorts_again")));
  }

private:
  LogicalResult decide(sharding::RequestOp request, sharding::ParamOp param,
                       StringRef axis, int64_t ranks, const std::string &why) {
    RankedTensorType type = param.getTensorType();
    if (type.getDimSize(0) % ranks != 0)
      return emitError(request.getLoc(), "'")
             << param.getFqn() << "' has " << type.getDimSize(0)
             << " experts, which " << ranks << " ranks of '" << axis
             << "' do not divide";
    Builder b(&getContext());
    SmallVector<ArrayAttr> dims(type.getRank(), b.getArrayAttr({}));
    dims[0] = sharding::dimOf(&getContext(), {{axis, 1}});
    param.setSpecAttr(sharding::SpecAttr::get(
        &getContext(), dims, ArrayAttr(),
        sharding::BecauseAttr::get(&getContext(), why)));
    return success();
  }
};

} // namespace
