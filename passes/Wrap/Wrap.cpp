//===- Wrap.cpp - Which parameters form a unit ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "dialects/Sharding/Spec.h"
#include "frontends/ModuleTree/UnitSets.h"
#include "passes/Frameworks/JobFramework.h"
#include "runtime/plan/Mesh.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace accel {
#define GEN_PASS_DEF_WRAPPASS
#include "passes/Passes.h.inc"
} // namespace accel

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

/// As many layers as a bucket of gradients in fp32 holds, and one at least.
int64_t layersOfBucket(const wrap::Problem &problem, int64_t bucketBytes) {
  for (const wrap::Module &module : problem.modules) {
    if (!llvm::is_contained(problem.noSplit, module.className))
      continue;
    int64_t bytes = 0;
    for (const wrap::Parameter &parameter : problem.parameters)
      if (parameter.trainable &&
          StringRef(parameter.fqn).starts_with(module.fqn + "."))
        bytes += 4 * parameter.numel;
    return bytes > 0 ? std::max<int64_t>(1, bucketBytes / bytes) : 1;
  }
  return 1;
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
    parameter.trainable = !op.getFrozen();
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
  problem.trainedLeaves = value.get("trained_leaves") != nullptr;
  problem.restInRoot = value.get("rest_in_root") != nullptr;
  problem.rootReshards = value.get("root_reshards") != nullptr;
  problem.refuseTies = value.get("refuse_ties") != nullptr;
  problem.embeddingInside = value.get("embedding_inside") != nullptr;
  if (std::string trainer = stringOr(value, "trainer"); !trainer.empty()) {
    problem.endsWhy = trainer + " wraps it by itself";
    problem.rootWhy = "the root: " + trainer + " wraps nothing else";
  }
  problem.layersPerUnit = intOr(value, "layers_per_unit", 1);
  if (const int64_t bucket = intOr(value, "bucket", 0))
    problem.layersPerUnit = layersOfBucket(problem, bucket);
  if (problem.layersPerUnit < 1)
    return request.emitOpError("asks for 'layers_per_unit' below 1");
  return problem;
}

/// A unit of the parameters that each call is the first to use, as ZeRO gathers
/// and releases them.
wrap::Solution solveByModule(mlir::ModuleOp module,
                             const wrap::Problem &problem) {
  wrap::Solution solution;
  auto graph = sharding::findOnly<sharding::GraphOp>(module);
  if (!graph) {
    solution.error = "units by module need a sharding.graph";
    return solution;
  }
  llvm::StringMap<int> numbers;
  for (auto [i, parameter] : llvm::enumerate(problem.parameters)) {
    numbers[parameter.fqn] = static_cast<int>(i);
    for (const std::string &alias : parameter.aliases)
      numbers[alias] = static_cast<int>(i);
  }
  SymbolTable symbols(module);
  std::vector<bool> taken(problem.parameters.size(), false);
  for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    wrap::UnitSet set;
    for (unsigned i = 0; callee && i < callee.getNumArguments(); ++i) {
      auto name =
          callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
      auto at =
          name ? numbers.find(call.bindParam(name.getValue())) : numbers.end();
      if (at == numbers.end() || taken[at->second])
        continue;
      taken[at->second] = true;
      set.parameters.push_back(at->second);
    }
    if (set.parameters.empty())
      continue;
    llvm::sort(set.parameters);
    const std::string &first = problem.parameters[set.parameters.front()].fqn;
    set.name = call.getPath().empty() ? first.substr(0, first.rfind('.'))
                                      : call.getPath().str();
    set.modules = {set.name};
    set.why = "ZeRO gathers and releases parameters by module";
    solution.units.push_back(std::move(set));
  }
  for (size_t p = 0; p < taken.size(); ++p)
    if (!taken[p] && !solution.units.empty())
      solution.units.back().parameters.push_back(static_cast<int>(p));
  for (wrap::UnitSet &set : solution.units)
    llvm::sort(set.parameters);
  llvm::stable_sort(solution.units,
                    [](const wrap::UnitSet &a, const wrap::UnitSet &b) {
                      return a.parameters.front() < b.parameters.front();
                    });
  return solution;
}

struct WrapPass : accel::impl::WrapPassBase<WrapPass> {
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
    wrap::Solution solution = frameworkOf(module).unitsByModule()
                                  ? solveByModule(module, *problem)
                                  : wrap::solve(*problem);
    if (solution.error.empty())
      solution.error = wrap::verify(*problem, solution);
    if (!solution.error.empty()) {
      InFlightDiagnostic error = emitError(request.getLoc(), solution.error);
      if (!solution.errorHint.empty())
        error.attachNote(request.getLoc()) << solution.errorHint;
      error.report();
      return signalPassFailure();
    }
    shard.clear();
    replicate.clear();
    all.clear();
    for (auto axis : mesh.getAxes().getAsRange<sharding::AxisAttr>()) {
      const plan::AxisRole role = plan::axisRole(axis.getName());
      if (axis.getSize() == 1 || role == plan::AxisRole::Other)
        continue;
      (role == plan::AxisRole::Shard ? shard : replicate)
          .push_back(axis.getName());
      all.push_back(axis.getName());
    }
    // DDP makes buckets of its own, whatever the units are.
    whole = frameworkOf(module).castsByAutocast();
    params.clear();
    llvm::append_range(params, module.getOps<sharding::ParamOp>());
    if (!params.empty())
      last = params.back();
    for (auto unit : module.getOps<sharding::UnitOp>())
      last = unit;
    for (const wrap::UnitSet &set : solution.units)
      createUnits(request, set);
  }

private:
  void createUnits(sharding::RequestOp request, const wrap::UnitSet &set) {
    SmallVector<sharding::ParamOp> all, experts;
    for (int p : set.parameters)
      (isShared(params[p]) ? experts : all).push_back(params[p]);
    createUnits(request, set, all, set.name);
    createUnits(request, set, experts,
                all.empty() ? set.name : set.name + "/experts");
  }

  /// The ranks of ep have other experts: these are gathered and reduced over
  /// the axes that are left, and so are a unit of their own.
  static bool isShared(sharding::ParamOp param) {
    return sharding::isShardedBy(param.getSpecAttr(), 0, plan::expertAxis);
  }

  void createUnits(sharding::RequestOp request, const wrap::UnitSet &set,
                   ArrayRef<sharding::ParamOp> members,
                   const std::string &name) {
    SmallVector<sharding::ParamOp> trainable, frozen;
    for (sharding::ParamOp param : members)
      (param.getFrozen() ? frozen : trainable).push_back(param);
    // Each optimizer group is one contiguous piece of the flat buffer.
    llvm::stable_sort(trainable, [](sharding::ParamOp a, sharding::ParamOp b) {
      return a.getGroup() < b.getGroup();
    });
    if (!trainable.empty())
      createByDtype(request, set, trainable, name);
    if (!frozen.empty())
      createByDtype(request, set, frozen,
                    trainable.empty() ? name : name + "/frozen");
  }

  /// A unit has one dtype. Where no framework flattens or shards units, a model
  /// may have several in a module: an fp32 adapter and what PEFT trains in the
  /// dtype of the base.
  void createByDtype(sharding::RequestOp request, const wrap::UnitSet &set,
                     ArrayRef<sharding::ParamOp> members,
                     const std::string &name) {
    if (!whole)
      return createUnit(request, set, members, name);
    llvm::MapVector<Type, SmallVector<sharding::ParamOp>> byDtype;
    for (sharding::ParamOp param : members)
      byDtype[param.getTensorType().getElementType()].push_back(param);
    for (const auto &[type, own] : byDtype)
      createUnit(request, set, own,
                 type == byDtype.front().first ? name
                                               : name + "/" + nameOf(type));
  }

  static std::string nameOf(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }

  void createUnit(sharding::RequestOp request, const wrap::UnitSet &set,
                  ArrayRef<sharding::ParamOp> members,
                  const std::string &name) {
    OpBuilder b(&getContext());
    b.setInsertionPointAfter(last);
    SmallVector<StringRef> fqns, modules;
    for (sharding::ParamOp param : members)
      fqns.push_back(param.getFqn());
    for (const std::string &m : set.modules)
      modules.push_back(m);
    const bool shared = isShared(members.front());
    auto own = [&](ArrayRef<StringRef> axes) {
      SmallVector<StringRef> kept;
      llvm::copy_if(axes, std::back_inserter(kept), [&](StringRef axis) {
        return !shared || axis != plan::expertAxis;
      });
      return b.getStrArrayAttr(kept);
    };
    auto because = request.getBecause();
    auto why = sharding::BecauseAttr::get(
        b.getContext(),
        whole    ? "not sharded: every rank holds all parameters"
        : shared ? "experts that the ranks of ep share, of " + set.why
                 : set.why,
        because.getFile(), because.getLine(), because.getColumn());
    auto unit = sharding::UnitOp::create(
        b, request.getLoc(), b.getStringAttr(name), b.getStrArrayAttr(modules),
        b.getStrArrayAttr(fqns),
        own(set.ignored ? ArrayRef<StringRef>() : ArrayRef<StringRef>(shard)),
        own(set.ignored ? all : replicate),
        sharding::WrapAttr::get(b.getContext(), why),
        set.keepGathered ? b.getUnitAttr() : UnitAttr(),
        sharding::PrecisionAttr(), sharding::ReshardAttr());
    for (sharding::ParamOp param : members)
      param.setUnitAttr(unit.getNameAttr());
    last = unit;
  }

  SmallVector<sharding::ParamOp> params;
  SmallVector<StringRef> shard, replicate, all; // axes of more than one rank
  bool whole = false;
  Operation *last = nullptr; // units follow it
};

} // namespace
