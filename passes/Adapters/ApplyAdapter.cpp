//===- ApplyAdapter.cpp - A model with a LoRA adapter ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Adapters/ApplyAdapter.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Adapters/AdaptedTree.h"
#include "passes/Adapters/AdapterFunctions.h"
#include "passes/Adapters/RewriteFunction.h"
#include "passes/Passes.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace accel {
#define GEN_PASS_DEF_APPLYADAPTERPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// `pattern` with `*` for the number of a layer ("model.layers.*.mlp") is the
/// module.
bool isPatternOf(StringRef pattern, StringRef module) {
  SmallVector<StringRef> a, b;
  pattern.split(a, '.');
  module.split(b, '.');
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
           auto [x, y] = pair;
           return x == y || x == "*";
         });
}

std::vector<std::string> namesOf(sharding::ParamOp param) {
  std::vector<std::string> names = {param.getFqn().str()};
  if (ArrayAttr aliases = param.getAliasesAttr())
    for (auto alias : aliases.getAsRange<StringAttr>())
      names.push_back(alias.str());
  return names;
}

class Applier {
public:
  Applier(mlir::ModuleOp module, const AdapterConfig &config,
          accel::DiagnosticEngine &engine)
      : module(module), config(config), engine(engine), b(module.getContext()),
        symbols(module) {}

  LogicalResult run() {
    graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph || module.getOps<sharding::ModuleOp>().empty())
      return module.emitError("apply-adapter needs a module tree and a "
                              "sharding.graph");
    collect();
    if (!tree->valid())
      return failure();
    for (auto call :
         llvm::to_vector(graph.getBody().getOps<sharding::CallOp>()))
      if (failed(rewriteCall(call)))
        return failure();
    if (failed(dropOriginals()))
      return failure();
    replaceModules();
    replaceParams();
    prefixLocations(graph);
    moveAnatomy();
    return success();
  }

private:
  StringRef anatomy(StringRef name) {
    DictionaryAttr places =
        module->getAttrOfType<DictionaryAttr>(sharding::anatomyAttr);
    if (auto job = sharding::findOnly<sharding::JobOp>(module); job && !places)
      places = job.getAnatomyAttr();
    auto place = places ? places.getAs<StringAttr>(name) : StringAttr();
    return place ? place.getValue() : "";
  }

  void collect() {
    std::vector<AdaptedTree::Module> modules;
    for (auto op : module.getOps<sharding::ModuleOp>())
      modules.push_back({op.getFqn().str(), op.getClassName().str()});
    for (auto op : module.getOps<sharding::ParamOp>()) {
      for (const std::string &name : namesOf(op)) {
        params[name] = op;
        shapes[name] = op.getTensorType().getShape().vec();
      }
    }
    auto shapeOf = [&](const std::string &name) {
      auto it = shapes.find(name);
      return it == shapes.end() ? nullptr : &it->second;
    };
    tree.emplace(std::move(modules), anatomy("output_embedding").str(), shapeOf,
                 config, engine);
  }

  //===--------------------------------------------------------------------===//
  // Functions and calls
  //===--------------------------------------------------------------------===//

  /// The name under which a function reads a parameter: of a tied one, that of
  /// the module at which it is used.
  std::string nameAtUse(sharding::ParamOp param, const std::string &bound,
                        BlockArgument arg) {
    std::vector<std::string> names = namesOf(param);
    if (names.size() == 1)
      return bound;
    for (Operation *user : arg.getUsers())
      if (auto loc = dyn_cast<NameLoc>(user->getLoc()))
        for (const std::string &name : names)
          if (isPatternOf(loc.getName(), parentOf(name)))
            return name;
    return bound;
  }

  /// `fqn` without the path of the call; nothing where it is not below.
  std::optional<std::string> relative(const std::string &fqn,
                                      const std::string &path) {
    if (path.empty() || fqn == path)
      return fqn == path ? "" : fqn;
    if (!StringRef(fqn).starts_with(path + "."))
      return std::nullopt;
    return fqn.substr(path.size() + 1);
  }

  LogicalResult editsOf(sharding::CallOp call, func::FuncOp callee,
                        SmallVector<ArgumentEdit> &edits) {
    std::string path = tree->path(call.getPath().str());
    for (BlockArgument arg : callee.getArguments()) {
      ArgumentEdit &edit = edits.emplace_back();
      auto attr = callee.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                      sharding::paramArgAttr);
      if (!attr)
        continue;
      std::string bound = call.bindParam(attr.getValue());
      sharding::ParamOp param = params.lookup(bound);
      if (!param)
        return call.emitOpError("reads '") << bound
                                           << "', which is no "
                                              "sharding.param";
      std::string used = nameAtUse(param, bound, arg), owner = parentOf(used);
      // A tied parameter keeps one name; a copy of it is another parameter.
      std::string adapted =
          tree->copyName(used).value_or(tree->name(param.getFqn().str()));
      std::optional<std::string> name = relative(adapted, path),
                                 layer = relative(tree->path(owner), path);
      if (!name || !layer)
        return call.emitOpError("reads '")
               << bound
               << "' from outside of its own module, which an "
                  "adapter cannot rename";
      edit.name = *name;
      edit.owner = *layer;
      if (const auto *lora = tree->lora(owner);
          lora && leafOf(used) == "weight")
        edit.lora = *lora;
    }
    return success();
  }

  LogicalResult rewriteCall(sharding::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return call.emitOpError("calls '")
             << call.getCallee() << "', which is no function with a body";
    SmallVector<ArgumentEdit> edits;
    if (failed(editsOf(call, callee, edits)))
      return failure();
    std::string key;
    for (const ArgumentEdit &edit : edits)
      key += edit.key();
    AdapterConfig::Functions functions;
    if (mayHaveFunctions(call.getPath().str()))
      functions = config.functions;
    if (functions.any())
      key += "f";
    std::map<std::string, Variant> &variants = known[call.getCallee()];
    auto found = variants.find(key);
    if (found == variants.end()) {
      func::FuncOp variant = callee.clone();
      variant.setName((callee.getName() + ".a" + Twine(variants.size())).str());
      symbols.insert(variant, callee->getIterator());
      prefixLocations(variant);
      Variant made;
      if (failed(rewriteFunction(variant, edits, functions, made.computed)))
        return failure();
      made.name = variant.getSymNameAttr();
      found = variants.emplace(key, std::move(made)).first;
    }
    call.setCallee(found->second.name.getValue());
    call.setPath(tree->path(call.getPath().str()));
    for (const std::string &layer : found->second.computed)
      computed.insert((call.getPath() + "." + layer).str());
    return success();
  }

  /// The first variant of each function takes its name.
  LogicalResult dropOriginals() {
    for (auto &[name, variants] : known) {
      auto original = symbols.lookup<func::FuncOp>(name);
      std::string first = (name + ".a0").str();
      symbols.erase(original);
      if (failed(symbols.rename(symbols.lookup(first), name)))
        return module.emitError("cannot rename '") << first << "'";
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Modules and parameters
  //===--------------------------------------------------------------------===//

  mlir::Location at(const std::string &fqn) {
    return NameLoc::get(b.getStringAttr(fqn));
  }

  void replaceModules() {
    auto old = llvm::to_vector(module.getOps<sharding::ModuleOp>());
    b.setInsertionPoint(old.front());
    for (const AdaptedTree::Module &made : tree->adaptedModules()) {
      order[made.fqn] = order.size();
      sharding::ModuleOp::create(b, at(made.fqn), made.fqn, made.className);
    }
    for (sharding::ModuleOp op : old)
      op.erase();
  }

  ArrayAttr strings(const std::vector<std::string> &texts) {
    SmallVector<StringRef> refs(texts.begin(), texts.end());
    return b.getStrArrayAttr(refs);
  }

  bool trainsBias(const std::string &name) {
    if (leafOf(name) != "bias" || tree->copyName(name))
      return false;
    return config.bias == AdapterConfig::Bias::All ||
           (config.bias == AdapterConfig::Bias::LoraOnly &&
            tree->lora(parentOf(name)));
  }

  void replaceParams() {
    auto old = llvm::to_vector(module.getOps<sharding::ParamOp>());
    std::vector<sharding::ParamOp> all;
    for (sharding::ParamOp op : old) {
      std::vector<std::string> names = namesOf(op), adapted;
      if (!op.getBaseNamesAttr())
        op.setBaseNamesAttr(strings(names));
      b.setInsertionPointAfter(op);
      all.push_back(op);
      for (const std::string &name : names) {
        adapted.push_back(tree->name(name));
        if (std::optional<std::string> copy = tree->copyName(name))
          all.push_back(copyOf(op, *copy));
        if (const AdaptedTree::Lora *lora = tree->lora(parentOf(name));
            lora && leafOf(name) == "weight")
          addLora(tree->path(parentOf(name)), *lora, op, all);
      }
      bool trains = trainsBias(names.front());
      op.setFqn(adapted.front());
      op->setLoc(at(adapted.front()));
      op.setFrozen(!trains);
      if (trains)
        op.setAdapterKey(AdaptedTree::key(adapted.front()));
      if (adapted.size() > 1)
        op.setAliasesAttr(strings({adapted.begin() + 1, adapted.end()}));
    }
    sortParams(all);
  }

  sharding::ParamOp copyOf(sharding::ParamOp op, const std::string &name) {
    auto copy = cast<sharding::ParamOp>(b.clone(*op));
    copy.setFqn(name);
    copy->setLoc(at(name));
    copy.removeAliasesAttr();
    copy.setFrozen(false);
    copy.setAdapterKey(AdaptedTree::key(name));
    return copy;
  }

  void addLora(const std::string &layer, const AdaptedTree::Lora &lora,
               sharding::ParamOp weight, std::vector<sharding::ParamOp> &all) {
    auto init = [&](sharding::InitKind kind, FloatAttr value,
                    DenseF64ArrayAttr range) {
      return sharding::InitAttr::get(b.getContext(), kind, value, range,
                                     /*zeroRow=*/-1);
    };
    // kaiming_uniform_(a=sqrt(5)) is over +-1 / sqrt(inputs).
    auto kaiming = [&](int64_t inputs) {
      double bound = 1 / std::sqrt(double(inputs));
      return init(sharding::InitKind::Uniform, FloatAttr(),
                  b.getDenseF64ArrayAttr({-bound, bound}));
    };
    auto zeros = init(sharding::InitKind::Zeros, {}, {});
    bool gaussian = config.init == AdapterConfig::Init::Gaussian;
    bool random = config.init == AdapterConfig::Init::Random;
    add(layer + ".lora_A.default.weight", {lora.rank, lora.in},
        gaussian ? init(sharding::InitKind::Normal,
                        b.getF64FloatAttr(1.0 / double(lora.rank)), {})
                 : kaiming(lora.in),
        weight, all);
    add(layer + ".lora_B.default.weight", {lora.out, lora.rank},
        random ? kaiming(lora.rank) : zeros, weight, all);
    // The norms of the weight's rows, which only a framework that loads the
    // weight can take.
    if (lora.magnitude)
      add(layer + ".lora_magnitude_vector.default.weight", {lora.out}, zeros,
          weight, all);
  }

  /// PEFT keeps adapters of 16-bit models in fp32 (from 0.12 on).
  void add(const std::string &name, ArrayRef<int64_t> shape,
           sharding::InitAttr init, sharding::ParamOp like,
           std::vector<sharding::ParamOp> &all) {
    auto type = cast<RankedTensorType>(like.getTensorType());
    Type element = type.getElementType();
    bool narrow =
        element.getIntOrFloatBitWidth() < 32 && !config.keepsBaseDtype;
    auto op = sharding::ParamOp::create(
        b, at(name), name,
        RankedTensorType::get(shape, narrow ? b.getF32Type() : element), init,
        ArrayAttr(), /*frozen=*/false, StringAttr(), /*group=*/0, ArrayAttr());
    op.setAdapterKey(AdaptedTree::key(name));
    op.setKeepsDtype(!config.keepsBaseDtype);
    if (computed.contains(parentOf(parentOf(parentOf(name)))))
      op->setAttr(sharding::staysGatheredAttr, b.getUnitAttr());
    all.push_back(op);
  }

  /// named_parameters() follows named_modules().
  void sortParams(std::vector<sharding::ParamOp> &all) {
    std::vector<size_t> keys;
    size_t last = 0;
    for (sharding::ParamOp op : all) {
      auto it = order.find(parentOf(op.getFqn().str()));
      keys.push_back(last = it == order.end() ? last : it->second);
    }
    std::vector<size_t> sorted(all.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    llvm::stable_sort(sorted,
                      [&](size_t x, size_t y) { return keys[x] < keys[y]; });
    Operation *behind = nullptr;
    for (auto op : module.getOps<sharding::ModuleOp>())
      behind = op;
    for (size_t i : sorted) {
      all[i]->moveAfter(behind);
      behind = all[i];
    }
  }

  /// Where Accelerate finds the ends of a PeftModel: it asks the wrapped model
  /// for its embeddings, and gets LoraModel.model for the prefix "model".
  void moveAnatomy() {
    auto moved = [&](DictionaryAttr places) {
      SmallVector<NamedAttribute> result;
      for (NamedAttribute place : places) {
        auto text = dyn_cast<StringAttr>(place.getValue());
        if (!text) {
          result.push_back(place);
          continue;
        }
        std::string fqn = tree->path(text.str());
        if (place.getName() == "base" && text == "model")
          fqn = tree->path("");
        result.push_back(b.getNamedAttr(place.getName(), b.getStringAttr(fqn)));
      }
      return b.getDictionaryAttr(result);
    };
    if (auto places =
            module->getAttrOfType<DictionaryAttr>(sharding::anatomyAttr))
      module->setAttr(sharding::anatomyAttr, moved(places));
    if (auto job = sharding::findOnly<sharding::JobOp>(module))
      if (DictionaryAttr places = job.getAnatomyAttr())
        job.setAnatomyAttr(moved(places));
  }

  mlir::ModuleOp module;
  const AdapterConfig &config;
  accel::DiagnosticEngine &engine;
  OpBuilder b;
  SymbolTable symbols;
  sharding::GraphOp graph;
  std::optional<AdaptedTree> tree;
  llvm::StringMap<sharding::ParamOp> params; // by every name
  std::map<std::string, std::vector<int64_t>> shapes;
  /// A function with adapters, and its layers that are computed in functions.
  struct Variant {
    StringAttr name;
    std::vector<std::string> computed; // relative paths
  };
  llvm::StringMap<std::map<std::string, Variant>> known;
  std::set<std::string> computed;      // layers by path
  std::map<std::string, size_t> order; // of modules
};

struct ApplyAdapterPass : accel::impl::ApplyAdapterPassBase<ApplyAdapterPass> {
  using Base::Base;

  void runOnOperation() override {
    accel::DiagnosticEngine engine;
    std::optional<AdapterConfig> adapter = readAdapterConfig(config, engine);
    if (adapter && functions)
      adapter->functions = {true, true, true};
    if (adapter && succeeded(applyAdapter(getOperation(), *adapter, engine)))
      return;
    for (const accel::Diagnostic &d : engine.all())
      getOperation().emitError(d.message);
    signalPassFailure();
  }
};

} // namespace

LogicalResult accel::applyAdapter(mlir::ModuleOp module,
                                  const AdapterConfig &config,
                                  accel::DiagnosticEngine &engine) {
  return Applier(module, config, engine).run();
}
