//===- Differentiate.cpp - Joint functions for a graph ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Differentiate/Differentiate.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Differentiate/Activity.h"
#include "passes/Differentiate/Joint.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace accel {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// Between a function's name and the number of a variant of it.
constexpr llvm::StringLiteral variantMark = ".v";

std::string bits(ArrayRef<bool> flags) {
  std::string text;
  for (bool flag : flags)
    text += flag ? '1' : '0';
  return text;
}

/// What the calls of one function may differ in.
struct Gradients {
  SmallVector<bool> wanted;   // per argument
  SmallVector<bool> tangents; // per result
  SmallVector<bool> carried;  // per argument: others gave it a gradient before
  bool any() const { return llvm::is_contained(wanted, true); }
  std::string key() const {
    return bits(wanted) + '>' + bits(tangents) + '+' + bits(carried);
  }
};

class GraphDifferentiator {
public:
  GraphDifferentiator(mlir::ModuleOp module, sharding::GraphOp graph)
      : module(module), graph(graph), symbols(module) {
    for (auto param : module.getOps<sharding::ParamOp>()) {
      if (param.getFrozen())
        continue;
      trainable.insert(param.getFqn());
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          trainable.insert(alias.getValue());
    }
  }

  LogicalResult run() {
    calls = llvm::to_vector(graph.getBody().getOps<sharding::CallOp>());
    for (sharding::CallOp call : calls)
      if (failed(findActive(call)))
        return failure();
    for (Value loss : graph.getBody().front().getTerminator()->getOperands())
      if (active.contains(loss))
        withTangent.insert(loss);
    for (sharding::CallOp call : llvm::reverse(calls))
      findTangents(call);
    for (sharding::CallOp call : calls)
      if (failed(bind(call)))
        return failure();
    return success();
  }

private:
  /// The calls' own arguments that depend on trainable parameters.
  SmallVector<bool> activeArguments(sharding::CallOp call,
                                    func::FuncOp callee) {
    SmallVector<bool> wanted;
    unsigned operand = 0;
    for (BlockArgument arg : callee.getArguments()) {
      auto name = callee.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                      sharding::paramArgAttr);
      bool is = name ? trainable.contains(call.bindParam(name.getValue()))
                     : active.contains(call.getOperands()[operand++]);
      wanted.push_back(is && isFloatTensor(arg));
    }
    return wanted;
  }

  LogicalResult findActive(sharding::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return call.emitOpError("calls '")
             << call.getCallee() << "', which is no function with a body";
    Gradients &own = gradients[call];
    own.wanted = activeArguments(call, callee);
    auto &known = resultsOf[{callee, bits(own.wanted)}];
    if (known.empty())
      known = activeResults(callee, own.wanted);
    for (auto [result, is] : llvm::zip(call.getResults(), known))
      if (is)
        active.insert(result);
    return success();
  }

  void findTangents(sharding::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    Gradients &own = gradients[call];
    for (Value result : call.getResults())
      own.tangents.push_back(withTangent.contains(result));
    auto &known =
        argumentsOf[{callee, bits(own.wanted) + '>' + bits(own.tangents)}];
    if (known.empty())
      known = usefulArguments(callee, own.wanted, own.tangents);
    own.wanted = known;
    own.carried.assign(own.wanted.size(), false);
    unsigned operand = 0;
    for (BlockArgument arg : callee.getArguments()) {
      const unsigned i = arg.getArgNumber();
      if (callee.getArgAttr(i, sharding::paramArgAttr))
        continue;
      Value value = call.getOperands()[operand++];
      // Later calls run their backward before this one.
      if (own.wanted[i] && !withTangent.insert(value).second)
        own.carried[i] = true;
    }
  }

  /// The first needs of a function keep its name; others get a copy of it.
  LogicalResult bind(sharding::CallOp call) {
    const Gradients &own = gradients[call];
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    auto &known = variants[call.getCallee()];
    auto found = known.find(own.key());
    if (found == known.end()) {
      func::FuncOp variant = callee;
      Operation *&last = lastVariant[call.getCallee()];
      if (!known.empty()) {
        variant = callee.clone();
        variant.setName(
            (callee.getName() + variantMark + Twine(known.size())).str());
        symbols.insert(variant, std::next(last->getIterator()));
      }
      last = variant;
      if (own.any()) {
        auto joint = buildJoint(variant, own.wanted, own.tangents, own.carried);
        if (failed(joint))
          return failure();
        last = *joint;
      }
      found = known.emplace(own.key(), variant.getNameAttr()).first;
    }
    call.setCalleeAttr(FlatSymbolRefAttr::get(found->second));
    return success();
  }

  mlir::ModuleOp module;
  sharding::GraphOp graph;
  SymbolTable symbols;
  llvm::StringSet<> trainable;
  SmallVector<sharding::CallOp> calls;
  DenseSet<Value> active, withTangent; // values of the graph
  DenseMap<Operation *, Gradients> gradients;
  /// What Activity.h finds, which is the same for each layer.
  std::map<std::pair<Operation *, std::string>, SmallVector<bool>> resultsOf,
      argumentsOf;
  llvm::StringMap<std::map<std::string, StringAttr>> variants;
  llvm::StringMap<Operation *> lastVariant; // the op after which one goes
};

} // namespace

LogicalResult accel::differentiate(mlir::ModuleOp module) {
  if (auto graph = sharding::findOnly<sharding::GraphOp>(module))
    return GraphDifferentiator(module, graph).run();
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
    if (function.isExternal())
      continue;
    SmallVector<bool> all(function.getNumArguments(), true);
    SmallVector<bool> tangents = activeResults(function, all);
    SmallVector<bool> none(function.getNumArguments(), false);
    if (failed(buildJoint(function, usefulArguments(function, all, tangents),
                          tangents, none)))
      return failure();
  }
  return success();
}

bool accel::isVariantOf(StringRef name, StringRef function) {
  size_t number;
  return name.consume_front(function) &&
         (name.empty() ||
          (name.consume_front(variantMark) && !name.getAsInteger(10, number)));
}

namespace {

struct DifferentiatePass
    : accel::impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    if (failed(differentiate(getOperation())))
      signalPassFailure();
  }
};

} // namespace
