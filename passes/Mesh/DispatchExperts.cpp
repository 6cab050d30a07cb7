//===- DispatchExperts.cpp - Rows of experts between ranks ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Random.h"
#include "dialects/Aten/ShardingRule.h"
#include "dialects/Sharding/Sharding.h"
#include "dialects/Sharding/Spec.h"
#include "passes/Mesh/SliceTokens.h"
#include "passes/Mesh/SortRows.h"
#include "passes/Passes.h"
#include "runtime/plan/Mesh.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <optional>

namespace accel {
#define GEN_PASS_DEF_DISPATCHEXPERTSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using MaybeRule = std::optional<aten::ShardingRule>;

namespace {

/// Where the rows of one sort by experts go.
struct Route {
  Value all; // ends of every rank
  Value own; // ends of this rank's experts
  int64_t rows = 0, bound = 0;
};

/// Rewrites one function.
class Dispatcher {
public:
  Dispatcher(sharding::MeshOp mesh, sharding::ExpertsAttr experts)
      : mesh(mesh), axes(experts.getAxes()),
        imbalance(experts.getImbalance().getValueAsDouble()) {
    for (StringRef axis : axes.getAsValueRange<StringAttr>())
      ranks *= mesh.axisSize(axis);
  }

  LogicalResult run(func::FuncOp function, ArrayRef<sharding::SpecAttr> specs) {
    Block &block = function.getBody().front();
    // Rules are of whole operands, so all of them come first.
    std::vector<std::pair<Operation *, MaybeRule>> ops;
    for (Operation &op : block)
      ops.push_back({&op, aten::shardingRule(&op)});
    for (auto [argument, spec] : llvm::zip(block.getArguments(), specs))
      if (spec) {
        argument.setType(sharding::localType(
            spec, cast<RankedTensorType>(argument.getType()), mesh));
        experts.insert(argument);
      }
    for (auto &[op, rule] : ops)
      if (failed(rewrite(op, rule)))
        return failure();
    function.setFunctionType(
        FunctionType::get(function.getContext(), block.getArgumentTypes(),
                          block.getTerminator()->getOperandTypes()));
    return success();
  }

private:
  LogicalResult rewrite(Operation *op, const MaybeRule &rule) {
    if (auto product = dyn_cast<aten::GroupedMmOp>(op);
        product && experts.contains(product.getMat2()) &&
        !experts.contains(product.getSelf()))
      return rewrite(product);
    if (llvm::any_of(op->getOperands(),
                     [&](Value v) { return experts.contains(v); })) {
      if (!keepsExperts(op, rule))
        return op->emitOpError("reads experts that the ranks of '")
               << sharding::axisNames(axes)
               << "' share, and is no grouped matmul of rows that are "
               << "sorted by expert";
      for (Value result : op->getResults()) {
        setRows(result, tensor(op->getOperand(0)).getDimSize(0));
        experts.insert(result);
      }
      return success();
    }
    if (llvm::none_of(op->getOperands(),
                      [&](Value v) { return routed.contains(v); }))
      return success();
    if (std::optional<Value> by = rowByRow(op, rule)) {
      for (Value result : op->getResults()) {
        setRows(result, routes[*by].bound);
        routed[result] = *by;
      }
      return success();
    }
    for (OpOperand &operand : op->getOpOperands())
      if (routed.contains(operand.get()))
        operand.set(combined(operand.get()));
    return success();
  }

  static RankedTensorType tensor(Value value) {
    return cast<RankedTensorType>(value.getType());
  }
  static void setRows(Value value, int64_t rows) {
    SmallVector<int64_t> shape(tensor(value).getShape());
    shape[0] = rows;
    value.setType(tensor(value).clone(shape));
  }

  LogicalResult rewrite(aten::GroupedMmOp product) {
    const Value ends = product.getOffs();
    Value rows = product.getSelf();
    const auto known = routed.find(rows);
    const bool arrived = known != routed.end() && known->second == ends;
    if (known != routed.end() && !arrived)
      rows = combined(rows);
    const Route &route =
        routeOf(ends, arrived ? routes[ends].rows : tensor(rows).getDimSize(0));
    if (!arrived) {
      OpBuilder b(product);
      Value &sent = dispatched[{rows, ends}];
      if (!sent)
        sent = sharding::DispatchOp::create(
            b, product.getLoc(),
            tensor(rows).clone({route.bound, tensor(rows).getDimSize(1)}), rows,
            route.all, axes);
      rows = sent;
    }
    product.getSelfMutable().assign(rows);
    product.getOffsMutable().assign(route.own);
    product.setRows(route.rows);
    setRows(product.getResult(), route.bound);
    routed[product.getResult()] = ends;
    return success();
  }

  /// Made once for each sort.
  const Route &routeOf(Value ends, int64_t rows) {
    auto [it, isNew] = routes.try_emplace(ends);
    Route &route = it->second;
    if (!isNew)
      return route;
    const RankedTensorType type = tensor(ends);
    const int64_t count = type.getDimSize(0);
    route.rows = rows;
    route.bound = std::min<int64_t>(
        rows * ranks,
        static_cast<int64_t>(std::ceil(imbalance * static_cast<double>(rows))));
    OpBuilder b(ends.getContext());
    b.setInsertionPointAfterValue(ends);
    const Location loc = ends.getLoc();
    Value row = aten::ViewOp::create(b, loc, ends, ArrayRef<int64_t>{1, count});
    // Neighbours are those of the innermost axis.
    route.all = row;
    int64_t known = 1;
    for (StringRef axis : llvm::reverse(
             llvm::to_vector(axes.getAsValueRange<StringAttr, StringRef>())))
      if (const int64_t size = mesh.axisSize(axis); size > 1)
        route.all = sharding::AllGatherOp::create(
            b, loc, type.clone({known *= size, count}), route.all, 0, axis, 1,
            false);
    route.own = sharding::ExpertEndsOp::create(
        b, loc, type.clone({count / ranks}), route.all, route.bound, axes);
    return route;
  }

  /// A routed value in the order and number of the rows that were sent.
  Value combined(Value value) {
    Value &back = returned[value];
    if (back)
      return back;
    const Route &route = routes[routed.lookup(value)];
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    return back = sharding::CombineOp::create(
               b, value.getLoc(),
               tensor(value).clone({route.rows, tensor(value).getDimSize(1)}),
               value, route.all, axes);
  }

  /// The factor of an operand's or result's first dimension, where that is all
  /// of it and shards compute for themselves.
  static int firstFactor(const aten::ShardingRule &rule,
                         const aten::TensorFactors &of) {
    if (of.dims.empty() || of.dims[0].size() != 1)
      return -1;
    const int factor = of.dims[0][0];
    return rule.factors[factor].kind == aten::FactorKind::Parallel ? factor
                                                                   : -1;
  }
  static bool has(const aten::TensorFactors &of, int factor) {
    return llvm::is_contained(of.partial, factor) ||
           llvm::any_of(of.dims, [&](const auto &dim) {
             return llvm::is_contained(dim, factor);
           });
  }

  /// Whether the first dimension of what `isSuch` says is one factor of all
  /// that the operator reads and makes along it.
  static bool followsFirst(Operation *op, const MaybeRule &rule,
                           llvm::function_ref<bool(Value)> isSuch) {
    if (!rule || !rule->once.empty())
      return false;
    int factor = -1;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (isSuch(operand)) {
        const int own = firstFactor(*rule, rule->operands[i]);
        if (own < 0 || (factor >= 0 && own != factor))
          return false;
        factor = own;
      }
    // An attribute that holds sizes is of other dimensions.
    for (const aten::SizeAttribute &size : rule->sizes)
      if (size.factor == factor || (size.factor < 0 && size.dim < 1))
        return false;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (!isSuch(operand) && has(rule->operands[i], factor))
        return false;
    return llvm::all_of(rule->results, [&](const aten::TensorFactors &result) {
      return firstFactor(*rule, result) == factor;
    });
  }

  bool keepsExperts(Operation *op, const MaybeRule &rule) {
    return followsFirst(op, rule,
                        [&](Value v) { return experts.contains(v); }) &&
           experts.contains(op->getOperand(0));
  }

  /// The ends by which all routed operands went, where each row of the results
  /// is made of the same rows.
  std::optional<Value> rowByRow(Operation *op, const MaybeRule &rule) {
    std::optional<Value> by;
    for (Value operand : op->getOperands())
      if (auto it = routed.find(operand); it != routed.end()) {
        if (by && *by != it->second)
          return std::nullopt;
        by = it->second;
      }
    if (!followsFirst(op, rule, [&](Value v) { return routed.contains(v); }) ||
        llvm::any_of(op->getResults(),
                     [](Value v) { return tensor(v).getRank() != 2; }))
      return std::nullopt;
    return by;
  }

  sharding::MeshOp mesh;
  ArrayAttr axes; // outermost first
  double imbalance;
  int64_t ranks = 1;
  DenseSet<Value> experts;       // first dimension: a rank's experts
  DenseMap<Value, Value> routed; // rows that were sent, and by which ends
  llvm::MapVector<Value, Route> routes;
  DenseMap<std::pair<Value, Value>, Value> dispatched;
  DenseMap<Value, Value> returned;
};

struct DispatchExpertsPass
    : accel::impl::DispatchExpertsPassBase<DispatchExpertsPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    auto experts =
        graph
            ? graph->getAttrOfType<sharding::ExpertsAttr>(sharding::expertsAttr)
            : sharding::ExpertsAttr();
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    if (!experts || !mesh)
      return;
    params.clear();
    for (auto param : module.getOps<sharding::ParamOp>()) {
      params[param.getFqn()] = param;
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          params[alias.getValue()] = param;
    }
    llvm::MapVector<func::FuncOp, SmallVector<sharding::SpecAttr>> functions;
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal())
        continue;
      SmallVector<sharding::SpecAttr> specs =
          specsOf(call, callee, sharding::firstAxis(experts.getAxes()));
      SmallVector<func::FuncOp> alike = {callee};
      if (auto eval = callee->getAttrOfType<FlatSymbolRefAttr>(aten::evalAttr))
        alike.push_back(module.lookupSymbol<func::FuncOp>(eval.getValue()));
      for (func::FuncOp function : alike) {
        auto [it, isNew] = functions.insert({function, specs});
        if (!isNew && it->second != specs) {
          call.emitOpError("shares other parameters of '")
              << function.getName() << "' among the ranks of '"
              << sharding::axisNames(experts.getAxes())
              << "' than another call of it";
          return signalPassFailure();
        }
      }
    }
    for (auto &[function, specs] : functions)
      if (llvm::any_of(specs, [](sharding::SpecAttr s) { return bool(s); }) &&
          (failed(sliceSharedTokens(function, mesh, experts)) ||
           failed(Dispatcher(mesh, experts).run(function, specs)) ||
           (experts.getSortsAgain() && failed(sortRowsAgain(function)))))
        return signalPassFailure();
  }

private:
  /// Ranks of these axes read the same samples: each sends the rows of a part
  /// of the tokens.
  static LogicalResult sliceSharedTokens(func::FuncOp function,
                                         sharding::MeshOp mesh,
                                         sharding::ExpertsAttr experts) {
    for (StringRef axis : experts.getAxes().getAsValueRange<StringAttr>())
      if (plan::sharesSamples(axis.str()) && mesh.axisSize(axis) > 1 &&
          failed(sliceTokens(function, mesh, axis)))
        return failure();
    return success();
  }

  /// By argument of `callee`: how the axis shards what `call` binds to it.
  SmallVector<sharding::SpecAttr> specsOf(sharding::CallOp call,
                                          func::FuncOp callee, StringRef axis) {
    SmallVector<sharding::SpecAttr> specs(callee.getNumArguments());
    for (unsigned i = 0; i < callee.getNumArguments(); ++i) {
      auto name =
          callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
      auto param = name ? params.lookup(call.bindParam(name.getValue()))
                        : sharding::ParamOp();
      sharding::SpecAttr spec =
          param ? param.getSpecAttr() : sharding::SpecAttr();
      if (sharding::isShardedBy(spec, 0, axis))
        specs[i] = spec;
    }
    return specs;
  }

  llvm::StringMap<sharding::ParamOp> params;
};

} // namespace
