//===- Update.cpp - When the optimizer updates a unit -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Update/Update.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct UpdatePass : PassWrapper<UpdatePass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UpdatePass)
  StringRef getArgument() const final { return "update"; }
  StringRef getDescription() const final {
    return "decide when the optimizer updates a unit";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<sharding::ShardingDialect>();
  }

  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto request = sharding::findRequest(getOperation(), "update");
    if (!job) {
      getOperation().emitError("update needs a sharding.job");
      return signalPassFailure();
    }
    if (const char *why = frameworkOf(getOperation()).updatesAtEnd()) {
      job.setUpdateAttr(sharding::UpdateAttr::get(
          &getContext(), sharding::UpdateMode::AtEnd,
          sharding::BecauseAttr::get(&getContext(), why)));
      return;
    }
    auto late = request ? request.getValue().getAs<BoolAttr>("at_end")
                        : BoolAttr::get(&getContext(), false);
    if (!late) {
      request.emitOpError("needs 'at_end', true or false");
      return signalPassFailure();
    }
    job.setUpdateAttr(sharding::UpdateAttr::get(
        &getContext(),
        late.getValue() ? sharding::UpdateMode::AtEnd
                        : sharding::UpdateMode::Inline,
        request ? request.getBecause()
                : sharding::BecauseAttr::get(
                      &getContext(), "default: gradients are freed as soon as "
                                     "a unit is updated")));
  }
};

} // namespace

std::unique_ptr<Pass> accel::createUpdatePass() {
  return std::make_unique<UpdatePass>();
}
