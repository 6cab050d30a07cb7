//===- Wrap.cpp - Which parameters form a unit ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Wrap/Wrap.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Wrap/UnitSets.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace accel;

namespace {

std::string stringOr(DictionaryAttr dict, StringRef name) {
  auto attr = dict ? dict.getAs<StringAttr>(name) : StringAttr();
  return attr ? attr.str() : "";
}

int64_t intOr(DictionaryAttr dict, StringRef name, int64_t other) {
  auto attr = dict.getAs<IntegerAttr>(name);
  return attr ? attr.getInt() : other;
}

std::vector<std::string> strings(ArrayAttr list) {
  std::vector<std::string> result;
  for (auto text : list.getAsRange<StringAttr>())
    result.push_back(text.str());
  return result;
}

/// The plain problem of a module with its request.
FailureOr<wrap::Problem> makeProblem(mlir::ModuleOp module,
                                     sharding::RequestOp request) {
  wrap::Problem problem;
  for (auto op : module.getOps<sharding::ModuleOp>())
    problem.modules.push_back({op.getFqn().str(), op.getClassName().str()});
  for (auto op : module.getOps<sharding::ParamOp>()) {
    wrap::Parameter parameter;
    parameter.fqn = op.getFqn().str();
    parameter.numel = op.numel();
    if (auto aliases = op.getAliases())
      parameter.aliases = strings(*aliases);
    problem.parameters.push_back(std::move(parameter));
  }
  if (auto job = sharding::findOnly<sharding::JobOp>(module))
    if (auto anatomy = job.getAnatomyAttr()) {
      problem.base = stringOr(anatomy, "base");
      problem.inputEmbedding = stringOr(anatomy, "input_embedding");
      problem.outputEmbedding = stringOr(anatomy, "output_embedding");
      if (auto list = anatomy.getAs<ArrayAttr>("no_split"))
        problem.noSplit = strings(list);
    }
  DictionaryAttr value = request.getValue();
  problem.fsdpVersion = static_cast<int>(intOr(value, "fsdp_version", 2));
  std::string policy = stringOr(value, "policy");
  if (policy == "TRANSFORMER_BASED_WRAP")
    problem.policy = wrap::Policy::Transformer;
  else if (policy == "SIZE_BASED_WRAP")
    problem.policy = wrap::Policy::Size;
  else if (!policy.empty() && policy != "NO_WRAP")
    return request.emitOpError()
           << "asks for the policy '" << policy
           << "', expected TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP";
  if (auto list = value.getAs<ArrayAttr>("classes"))
    problem.classes = strings(list);
  problem.minParams = intOr(value, "min_params", 0);
  problem.ignoredModules = stringOr(value, "ignored_modules");
  problem.restInRoot = value.get("rest_in_root") != nullptr;
  problem.rootReshards = value.get("root_reshards") != nullptr;
  problem.refuseTies = value.get("refuse_ties") != nullptr;
  problem.layersPerUnit = intOr(value, "layers_per_unit", 1);
  if (problem.layersPerUnit < 1)
    return request.emitOpError("asks for 'layers_per_unit' below 1");
  return problem;
}

struct WrapPass : PassWrapper<WrapPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WrapPass)
  StringRef getArgument() const final { return "wrap"; }
  StringRef getDescription() const final {
    return "decide which parameters form a unit";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<sharding::ShardingDialect>();
  }

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto request = sharding::findRequest(module, "wrap");
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    if (!request || !mesh) {
      module.emitError("wrap needs a sharding.mesh and a sharding.request "
                       "\"wrap\"");
      return signalPassFailure();
    }
    FailureOr<wrap::Problem> problem = makeProblem(module, request);
    if (failed(problem))
      return signalPassFailure();
    wrap::Solution solution = wrap::solve(*problem);
    if (solution.error.empty())
      solution.error = wrap::verify(*problem, solution);
    if (!solution.error.empty()) {
      InFlightDiagnostic error = emitError(request.getLoc(), solution.error);
      if (!solution.errorHint.empty())
        error.attachNote(request.getLoc()) << solution.errorHint;
      error.report();
      return signalPassFailure();
    }
    params.clear();
    llvm::append_range(params, module.getOps<sharding::ParamOp>());
    for (const wrap::UnitSet &set : solution.units)
      createUnits(module, mesh, request, set);
  }

private:
  void createUnits(mlir::ModuleOp module, sharding::MeshOp mesh,
                   sharding::RequestOp request, const wrap::UnitSet &set) {
    SmallVector<sharding::ParamOp> trainable, frozen;
    for (int p : set.parameters)
      (params[p].getFrozen() ? frozen : trainable).push_back(params[p]);
    // Each optimizer group is one contiguous piece of the flat buffer.
    llvm::stable_sort(trainable, [](sharding::ParamOp a, sharding::ParamOp b) {
      return a.getGroup() < b.getGroup();
    });
    if (!trainable.empty())
      createUnit(module, mesh, request, set, trainable, set.name);
    if (!frozen.empty())
      createUnit(module, mesh, request, set, frozen,
                 trainable.empty() ? set.name : set.name + "/frozen");
  }

  void createUnit(mlir::ModuleOp module, sharding::MeshOp mesh,
                  sharding::RequestOp request, const wrap::UnitSet &set,
                  ArrayRef<sharding::ParamOp> members,
                  const std::string &name) {
    OpBuilder b(module.getContext());
    b.setInsertionPointAfter(params.back());
    for (auto units = module.getOps<sharding::UnitOp>();
         sharding::UnitOp unit : units)
      b.setInsertionPointAfter(unit);
    SmallVector<StringRef> shard, replicate, fqns, modules;
    for (StringRef axis : {"dp_replicate", "dp_shard"}) {
      if (mesh.axisSize(axis) == 1)
        continue;
      (axis == "dp_shard" && !set.ignored ? shard : replicate).push_back(axis);
    }
    for (sharding::ParamOp param : members)
      fqns.push_back(param.getFqn());
    for (const std::string &m : set.modules)
      modules.push_back(m);
    auto because = request.getBecause();
    auto why =
        sharding::BecauseAttr::get(b.getContext(), set.why, because.getFile(),
                                   because.getLine(), because.getColumn());
    auto unit = sharding::UnitOp::create(
        b, request.getLoc(), b.getStringAttr(name), b.getStrArrayAttr(modules),
        b.getStrArrayAttr(fqns), b.getStrArrayAttr(shard),
        b.getStrArrayAttr(replicate),
        sharding::WrapAttr::get(b.getContext(), why),
        set.keepGathered ? b.getUnitAttr() : UnitAttr(),
        sharding::PrecisionAttr(), sharding::ReshardAttr());
    for (sharding::ParamOp param : members)
      param.setUnitAttr(unit.getNameAttr());
  }

  SmallVector<sharding::ParamOp> params;
};

} // namespace

std::unique_ptr<Pass> accel::createWrapPass() {
  return std::make_unique<WrapPass>();
}
