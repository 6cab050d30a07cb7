//===- UnitRequests.cpp - Units that a job asks for -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Requests.h"

#include "llvm/ADT/StringExtras.h"

#include "runtime/plan/Stages.h"

using namespace mlir;

namespace accel {
namespace {

class UnitRequests : RequestWriter {
public:
  explicit UnitRequests(const RequestWriter &writer) : RequestWriter(writer) {}

  void requestWrap() {
    bool replicated = accelerate.strategy.value == Strategy::Single ||
                      accelerate.strategy.value == Strategy::Ddp ||
                      framework.castsByAutocast();
    const auto units = framework.layerUnits(options.versions);
    const bool first = units ? framework.kind() == FrameworkKind::Fsdp1
                             : accelerate.strategy.value == Strategy::Fsdp1;
    int version = replicated ? 0 : first ? 1 : 2;
    SmallVector<NamedAttribute> value = {
        b.getNamedAttr("fsdp_version", b.getI64IntegerAttr(version))};
    // Its buckets are units.
    if (replicated && framework.kind() == FrameworkKind::AccelRun &&
        options.ddp.bucketBytes) {
      number(value, "bucket", options.ddp.bucketBytes);
      return request("wrap", value,
                     job.ddp.bucketBytes.written()
                         ? because(job.ddp.bucketBytes, "")
                         : plain("bucket_cap_mb"));
    }
    if (replicated)
      return request(
          "wrap", value,
          because(accelerate.distributedType, "parameters are replicated"));
    if (options.chosen &&
        (options.chosen->wrapClasses || options.chosen->layersPerUnit != 1))
      return requestChosenWrap(value);
    if (units) {
      value.push_back(
          b.getNamedAttr("policy", b.getStringAttr("TRANSFORMER_BASED_WRAP")));
      flag(value, "rest_in_root", !units->ends);
      value.push_back(
          b.getNamedAttr("trainer", b.getStringAttr(framework.name())));
      return request("wrap", value, plain(units->why));
    }
    requestRest(value);
    value.push_back(b.getNamedAttr(
        "policy", b.getStringAttr(toString(accelerate.wrapPolicy.value))));
    const auto *reason = &accelerate.wrapPolicy.at;
    std::string key = "fsdp_auto_wrap_policy";
    if (accelerate.wrapClasses.value) {
      SmallVector<StringRef> classes(accelerate.wrapClasses.value->begin(),
                                     accelerate.wrapClasses.value->end());
      value.push_back(b.getNamedAttr("classes", b.getStrArrayAttr(classes)));
      if (accelerate.wrapClasses.written()) {
        reason = &accelerate.wrapClasses.at;
        key = "fsdp_transformer_layer_cls_to_wrap";
      }
    }
    if (job.transformersTrainer.value && options.adapted &&
        accelerate.strategy.value == Strategy::Fsdp1)
      value.push_back(b.getNamedAttr("trained_leaves", b.getUnitAttr()));
    if (accelerate.wrapPolicy.value == WrapPolicy::Size) {
      value.push_back(b.getNamedAttr(
          "min_params", b.getI64IntegerAttr(accelerate.minNumParams.value)));
      if (accelerate.minNumParams.written()) {
        reason = &accelerate.minNumParams.at;
        key = "fsdp_min_num_params";
      }
    }
    if (!accelerate.ignoredModules.value.empty())
      value.push_back(b.getNamedAttr(
          "ignored_modules", b.getStringAttr(accelerate.ignoredModules.value)));
    if (accelerate.deepspeed)
      return request("wrap", value, because(accelerate.wrapPolicy, ""));
    request("wrap", value,
            reason->file.empty() || reason->line == 0
                ? plain("default: no wrap policy is set")
                : sharding::BecauseAttr::get(b.getContext(), key,
                                             b.getStringAttr(reason->file),
                                             reason->line, reason->column));
  }

  /// What becomes of parameters that no match of the wrap policy holds, by
  /// release: until 1.13 all are in the root's unit, to which torch applies
  /// the resharding that was asked for from 2.8 on (before, a root never
  /// reshards).
  void requestRest(SmallVector<NamedAttribute> &value) {
    if (accelerate.strategy.value != Strategy::Fsdp2)
      return;
    if (framework.kind() == FrameworkKind::AccelRun)
      value.push_back(b.getNamedAttr("embedding_inside", b.getUnitAttr()));
    if (*job.script.ownShards || accelerate.deepspeed) {
      value.push_back(b.getNamedAttr(
          "trainer", b.getStringAttr(accelerate.deepspeed ? framework.name()
                                                          : "transformers")));
      return;
    }
    const bool inRoot = accelerate.restUnits.value == RestUnits::Root;
    if (inRoot)
      value.push_back(b.getNamedAttr("rest_in_root", b.getUnitAttr()));
    if (inRoot && atLeast(accelerate.torchVersion, 2, 8))
      value.push_back(b.getNamedAttr("root_reshards", b.getUnitAttr()));
    if (!inRoot && !job.isJob && !atLeast(accelerate.version, 1, 15) &&
        atLeast(accelerate.torchVersion, 2, 13))
      value.push_back(b.getNamedAttr("refuse_ties", b.getUnitAttr()));
  }
  static bool atLeast(const std::string &version, int major, int minor) {
    auto parsed = parseAccelerateVersion(version);
    return !parsed || *parsed >= AccelerateVersion{major, minor};
  }

  void requestChosenWrap(SmallVector<NamedAttribute> value) {
    const ImportOptions::Chosen &chosen = *options.chosen;
    requestRest(value);
    value.push_back(
        b.getNamedAttr("policy", b.getStringAttr("TRANSFORMER_BASED_WRAP")));
    const auto &classes =
        chosen.wrapClasses ? chosen.wrapClasses : accelerate.wrapClasses.value;
    if (classes) {
      SmallVector<StringRef> names(classes->begin(), classes->end());
      value.push_back(b.getNamedAttr("classes", b.getStrArrayAttr(names)));
    }
    if (chosen.layersPerUnit != 1)
      value.push_back(b.getNamedAttr(
          "layers_per_unit", b.getI64IntegerAttr(chosen.layersPerUnit)));
    request("wrap", value, plain(chosen.why));
  }

  void requestReshard() {
    if (job.wholeParameters.value &&
        framework.kind() == FrameworkKind::AccelRun)
      return request("reshard",
                     {b.getNamedAttr("after_forward", b.getBoolAttr(false)),
                      b.getNamedAttr("whole", b.getUnitAttr())},
                     because(job.wholeParameters, ""));
    if (options.chosen && options.chosen->reshard) {
      SmallVector<StringRef> keep(options.chosen->keep.begin(),
                                  options.chosen->keep.end());
      SmallVector<NamedAttribute> value = {b.getNamedAttr(
          "after_forward", b.getBoolAttr(*options.chosen->reshard))};
      if (!keep.empty())
        value.push_back(b.getNamedAttr("keep", b.getStrArrayAttr(keep)));
      return request("reshard", value, plain(options.chosen->why));
    }
    SmallVector<NamedAttribute> value = {b.getNamedAttr(
        "after_forward", b.getBoolAttr(accelerate.reshardAfterForward.value))};
    const auto units = framework.layerUnits(options.versions);
    if (units && accelerate.mesh.value.size(plan::pipelineAxis) > 1)
      return request(
          "reshard", {b.getNamedAttr("after_forward", b.getBoolAttr(false))},
          plain("torchtitan's apply_fsdp: stages of a pipeline stay gathered "
                "from the first micro-batch to the last"));
    if (units && units->keepsLastLayer && accelerate.sharded())
      if (StringRef last = lastLayer(); !last.empty()) {
        value.push_back(b.getNamedAttr("keep", b.getStrArrayAttr({last})));
        return request("reshard", value, plain(units->why));
      }
    request("reshard", value,
            because(accelerate.reshardAfterForward,
                    "parameters are gathered again in the backward"));
  }

private:
  /// The path of the last call of a repeated module.
  StringRef lastLayer() {
    StringRef last;
    if (auto graph = sharding::findOnly<sharding::GraphOp>(module))
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        if (StringRef number = call.getPath().rsplit('.').second;
            !number.empty() && llvm::all_of(number, llvm::isDigit))
          last = call.getPath();
    return last;
  }
};

} // namespace

void requestWrap(const RequestWriter &writer) {
  UnitRequests(writer).requestWrap();
}

void requestReshard(const RequestWriter &writer) {
  UnitRequests(writer).requestReshard();
}

} // namespace accel
