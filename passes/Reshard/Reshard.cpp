//===- Reshard.cpp - What is freed after the forward ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "dialects/Sharding/Spec.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringSet.h"

namespace accel {
#define GEN_PASS_DEF_RESHARDPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct ReshardPass : accel::impl::ReshardPassBase<ReshardPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto request = sharding::findRequest(module, "reshard");
    auto asked = request ? request.getValue().getAs<BoolAttr>("after_forward")
                         : BoolAttr::get(&getContext(), true);
    if (!asked) {
      request.emitOpError("needs 'after_forward', true or false");
      return signalPassFailure();
    }
    const bool askedWhole = request && request.getValue().get("whole");
    llvm::StringSet<> keep;
    if (request)
      if (auto names = request.getValue().getAs<ArrayAttr>("keep"))
        for (Attribute name : names) {
          auto text = dyn_cast<StringAttr>(name);
          if (!text) {
            request.emitOpError("needs names of units in 'keep'");
            return signalPassFailure();
          }
          keep.insert(text.getValue());
        }
    auto default_ = sharding::BecauseAttr::get(
        &getContext(),
        "default: parameters are gathered again in the backward");
    auto job = sharding::findOnly<sharding::JobOp>(module);
    auto zero = job ? job.getZeroAttr() : sharding::ZeroAttr();
    const llvm::StringSet<> copies = unitsOfCopies(module);
    for (auto unit : module.getOps<sharding::UnitOp>()) {
      bool after = asked.getValue(), whole = false;
      sharding::BecauseAttr why = request ? request.getBecause() : default_;
      if (zero && zero.getStage() < 3) {
        after = false;
        why = sharding::BecauseAttr::get(
            &getContext(), "ZeRO stage " + std::to_string(zero.getStage()) +
                               " keeps the parameters on every rank");
      } else if (unit.getShardAxes().empty() &&
                 copies.contains(unit.getName())) {
        why = sharding::BecauseAttr::get(
            &getContext(), "whole experts of one rank: FSDP2 computes with a "
                           "copy of them, which it frees");
      } else if (unit.getShardAxes().empty()) {
        after = false;
        why = sharding::BecauseAttr::get(
            &getContext(), "not sharded: every rank holds the parameters");
      } else if (askedWhole) {
        after = false;
        whole = true;
      } else if (unit.getKeepGathered()) {
        after = false;
        why = sharding::BecauseAttr::get(
            &getContext(),
            "its last use in the forward is next to its first in the "
            "backward, so a second gather could not be hidden");
      } else if (keep.erase(unit.getName())) {
        after = false;
      }
      unit.setReshardAttr(
          sharding::ReshardAttr::get(&getContext(), after, whole, why));
    }
    if (!keep.empty()) {
      request.emitOpError() << "keeps '" << keep.begin()->getKey()
                            << "', which is no unit that could be freed";
      return signalPassFailure();
    }
  }

private:
  /// Of experts that ranks share under transformers, which are modules of FSDP2
  /// whatever the ranks of their mesh.
  static llvm::StringSet<> unitsOfCopies(mlir::ModuleOp module) {
    llvm::StringSet<> units;
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    auto experts =
        graph
            ? graph->getAttrOfType<sharding::ExpertsAttr>(sharding::expertsAttr)
            : sharding::ExpertsAttr();
    if (!experts || !experts.getSortsAgain())
      return units;
    for (auto param : module.getOps<sharding::ParamOp>())
      if (param.getUnitAttr() &&
          sharding::isShardedBy(param.getSpecAttr(), 0,
                                sharding::firstAxis(experts.getAxes())))
        units.insert(param.getUnitAttr().getValue());
    return units;
  }
};

} // namespace
