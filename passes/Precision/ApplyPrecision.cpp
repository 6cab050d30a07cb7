//===- ApplyPrecision.cpp - Retype segment functions ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Precision/ApplyPrecision.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Eager.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Passes.h"
#include "passes/Precision/Autocast.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

namespace accel {
#define GEN_PASS_DEF_APPLYPRECISIONPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

/// `type` with the element type `compute` where it is floating point.
static Type retype(Type type, Type compute) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return type;
  return tensor.clone(compute);
}

static LogicalResult inferAgain(Operation *op, Type compute) {
  auto infer = dyn_cast<InferTypeOpInterface>(op);
  if (!infer) {
    // An operator that is not modelled computes in the type of its inputs.
    for (Value result : op->getResults())
      result.setType(retype(result.getType(), compute));
    return success();
  }
  SmallVector<Type> types;
  if (failed(infer.inferReturnTypes(op->getContext(), op->getLoc(),
                                    op->getOperands(), op->getAttrDictionary(),
                                    op->getPropertiesStorage(),
                                    op->getRegions(), types)))
    return op->emitOpError("cannot compute in ") << compute;
  for (auto [result, type] : llvm::zip(op->getResults(), types))
    result.setType(type);
  return success();
}

/// Factors that a model left wide, a norm's result say, enter matmuls in the
/// compute type, and weights join a wide value in a norm, as under autocast:
/// these take one type.
static void castFactors(Operation *op, Type compute) {
  auto aten = dyn_cast<aten::AtenOpInterface>(op);
  const bool norm = isa<aten::LayerNormOp, aten::RmsNormOp>(op);
  if (!aten || (!norm && aten.getCategory() != aten::Category::Matmul &&
                aten.getCategory() != aten::Category::Attention &&
                !isa<aten::ScaledDotProductAttentionOp>(op)))
    return;
  auto element = [](Value value) {
    Type type = getElementTypeOrSelf(value);
    return isa<FloatType>(type) ? type : Type();
  };
  Type first, widest = compute;
  bool mixed = false;
  for (Value operand : op->getOperands())
    if (Type type = element(operand)) {
      mixed |= first && type != first;
      first = type;
      if (type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
        widest = type;
    }
  if (!mixed)
    return;
  Type wanted = norm ? widest : compute;
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands())
    if (Type type = element(operand.get()); type && type != wanted)
      operand.set(
          aten::ToCopyOp::create(b, op->getLoc(), operand.get(), wanted));
}

/// Until transformers 4.48 these computed their loss without its
/// ForCausalLMLoss, in the dtype of the logits; before 4.37, which brought
/// Qwen2, such a model is Qwen's own code, which does the same.
static bool computesOwnLoss(mlir::ModuleOp module) {
  if (!module || !frameworkOf(module).eager() ||
      atLeast(versionsOf(module).transformers, "4.49"))
    return false;
  const bool brought = atLeast(versionsOf(module).transformers, "4.37");
  return llvm::any_of(
      module.getOps<sharding::ModuleOp>(), [&](sharding::ModuleOp op) {
        return (!brought && op.getClassName() == "Qwen2ForCausalLM") ||
               llvm::is_contained({"GPT2LMHeadModel", "GPTBigCodeForCausalLM",
                                   "FalconForCausalLM", "MptForCausalLM",
                                   "OPTForCausalLM", "GPTNeoXForCausalLM"},
                                  op.getClassName());
      });
}

/// Logarithms of softmax, of which losses are made, are taken in f32, as under
/// autocast.
static void widenLogSoftmax(Operation *op) {
  auto softmax = dyn_cast<aten::LogSoftmaxOp>(op);
  if (!softmax)
    return;
  Type type = getElementTypeOrSelf(softmax->getOperand(0));
  if (!type.isBF16() && !type.isF16())
    return;
  OpBuilder b(op);
  op->setOperand(0, aten::ToCopyOp::create(b, op->getLoc(), op->getOperand(0),
                                           b.getF32Type()));
}

static void narrowLogSoftmax(Operation *op) {
  auto softmax = dyn_cast<aten::LogSoftmaxOp>(op);
  auto wide = softmax ? softmax.getSelf().getDefiningOp<aten::ToCopyOp>()
                      : aten::ToCopyOp();
  if (!wide)
    return;
  op->setOperand(0, wide.getSelf());
  if (wide->use_empty())
    wide.erase();
}

LogicalResult accel::applyPrecision(func::FuncOp function, Type compute,
                                    ArrayRef<Type> own) {
  Block &body = function.getBody().front();
  for (BlockArgument arg : body.getArguments()) {
    const unsigned i = arg.getArgNumber();
    if (!function.getArgAttr(i, aten::fixedTypeAttr))
      arg.setType(
          retype(arg.getType(), i < own.size() && own[i] ? own[i] : compute));
  }
  const bool autocasts = static_cast<bool>(
      autocastType(function->getParentOfType<mlir::ModuleOp>()));
  const bool narrowLoss =
      computesOwnLoss(function->getParentOfType<mlir::ModuleOp>());
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    castFactors(&op, compute);
    if (narrowLoss)
      narrowLogSoftmax(&op);
    else
      widenLogSoftmax(&op);
    if (failed(inferAgain(&op, compute)))
      return failure();
    if (!isa<aten::TypeAsOp, aten::ToCopyOp>(op))
      continue;
    // What autocast makes of the other decides.
    if (autocasts &&
        (isa<aten::TypeAsOp>(op) || op.hasAttr(aten::asksFloatAttr)))
      continue;
    Value from = op.getOperand(0), result = op.getResult(0);
    if (from.getType() == result.getType()) {
      result.replaceAllUsesWith(from);
      op.erase();
    } else if (isa<aten::TypeAsOp>(op)) {
      OpBuilder b(&op);
      Type type = cast<RankedTensorType>(result.getType()).getElementType();
      Value copy = aten::ToCopyOp::create(b, op.getLoc(), from, type);
      result.replaceAllUsesWith(copy);
      op.erase();
    }
  }
  function.setFunctionType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
  return success();
}

/// Lets `arg` come as `given`, cast to its former type where the function
/// begins, as FSDP2 casts a module's floating-point inputs.
static void castArgument(func::FuncOp function, BlockArgument arg, Type given) {
  Type compute = getElementTypeOrSelf(arg);
  arg.setType(given);
  OpBuilder b = OpBuilder::atBlockBegin(arg.getOwner());
  auto cast = aten::ToCopyOp::create(b, function.getLoc(), arg, compute);
  arg.replaceAllUsesExcept(cast, cast);
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             arg.getOwner()->getArgumentTypes(),
                                             function.getResultTypes()));
}

namespace {
/// A result of a function, and the segments' arguments that it becomes.
struct Edge {
  func::FuncOp from;
  unsigned result = 0;
  SmallVector<Type> wanted; // element types
};
} // namespace

/// What a segment returns in another floating-point type than all that read it
/// compute in is cast where it is returned.
static void castResults(sharding::GraphOp graph,
                        SymbolTableCollection &symbols) {
  llvm::MapVector<std::pair<Operation *, unsigned>, Edge> edges;
  auto calleeOf = [&](sharding::CallOp call) {
    return symbols.lookupNearestSymbolFrom<func::FuncOp>(call,
                                                         call.getCalleeAttr());
  };
  for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
    func::FuncOp callee = calleeOf(call);
    if (!callee || callee.isExternal())
      continue;
    unsigned operand = 0;
    for (BlockArgument arg : callee.getArguments()) {
      if (callee.getArgAttr(arg.getArgNumber(), sharding::paramArgAttr))
        continue;
      if (operand >= call.getOperands().size())
        break; // reported where calls are typed
      auto result = dyn_cast<OpResult>(call.getOperands()[operand++]);
      auto producer =
          result ? dyn_cast<sharding::CallOp>(result.getOwner()) : nullptr;
      func::FuncOp from = producer ? calleeOf(producer) : nullptr;
      if (!from || from.isExternal() ||
          result.getResultNumber() >= from.getNumResults())
        continue;
      Edge &edge = edges[{from, result.getResultNumber()}];
      edge.from = from;
      edge.result = result.getResultNumber();
      edge.wanted.push_back(getElementTypeOrSelf(arg));
    }
  }
  for (auto &[key, edge] : edges) {
    Operation *end = edge.from.getBody().front().getTerminator();
    Value value = end->getOperand(edge.result);
    Type type = edge.wanted.front();
    if (!isa<FloatType>(getElementTypeOrSelf(value)) || !isa<FloatType>(type) ||
        type == getElementTypeOrSelf(value) || !llvm::all_equal(edge.wanted))
      continue;
    OpBuilder b(end);
    end->setOperand(edge.result,
                    aten::ToCopyOp::create(b, end->getLoc(), value, type));
    edge.from.setFunctionType(FunctionType::get(edge.from.getContext(),
                                                edge.from.getArgumentTypes(),
                                                end->getOperandTypes()));
  }
}

LogicalResult accel::retypeCalls(sharding::GraphOp graph) {
  SymbolTableCollection symbols;
  castResults(graph, symbols);
  // What a model computes in f32 on purpose, a mask say, is read so.
  DenseSet<Value> castAtEntry;
  for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!callee)
      return call.emitOpError("calls '")
             << call.getCallee() << "', which is no function";
    unsigned operand = 0;
    for (BlockArgument arg : callee.getArguments()) {
      if (callee.getArgAttr(arg.getArgNumber(), sharding::paramArgAttr))
        continue;
      if (operand >= call.getOperands().size())
        return call.emitOpError("passes too few operands");
      // Floating-point parts of the batch come in the type that reads them, as
      // FSDP2's cast_forward_inputs has them.
      if (auto input = dyn_cast<BlockArgument>(call.getOperands()[operand]))
        if (Type type = getElementTypeOrSelf(arg); isa<FloatType>(type))
          input.setType(retype(input.getType(), type));
      Type given = call.getOperands()[operand].getType();
      if (given == retype(arg.getType(), getElementTypeOrSelf(given)) &&
          !castAtEntry.contains(arg) && given != arg.getType()) {
        castArgument(callee, arg, given);
        castAtEntry.insert(arg);
      }
      if (given != arg.getType())
        return call.emitOpError("passes ")
               << given << " as operand " << operand << ", but '"
               << call.getCallee() << "' takes " << arg.getType();
      ++operand;
    }
    if (callee.getNumResults() != call.getNumResults())
      return call.emitOpError("has ")
             << call.getNumResults() << " results, but '" << call.getCallee()
             << "' returns " << callee.getNumResults();
    for (auto [result, type] :
         llvm::zip(call.getResults(), callee.getResultTypes()))
      result.setType(type);
  }
  return success();
}

/// A loss that the model computes in 16 bits is returned as f32, which is what
/// is logged and where the backward starts. Models that upcast their logits
/// have one already.
static void returnLossInF32(sharding::GraphOp graph) {
  Value loss = graph.getBody().front().getTerminator()->getOperand(0);
  auto call = loss.getDefiningOp<sharding::CallOp>();
  if (!call)
    return;
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  unsigned index = cast<OpResult>(loss).getResultNumber();
  if (!callee || callee.isExternal() || index >= callee.getNumResults())
    return;
  Operation *end = callee.getBody().front().getTerminator();
  auto type = dyn_cast<RankedTensorType>(end->getOperand(index).getType());
  if (!type || type.getRank() != 0 ||
      !type.getElementType().isBF16() && !type.getElementType().isF16())
    return;
  OpBuilder b(end);
  end->setOperand(index, aten::ToCopyOp::create(b, end->getLoc(),
                                                end->getOperand(index),
                                                b.getF32Type()));
  callee.setFunctionType(FunctionType::get(
      callee.getContext(), callee.getArgumentTypes(), end->getOperandTypes()));
}

namespace {

/// The compute type of each function that the graph calls, by its units.
class ComputeTypes {
public:
  explicit ComputeTypes(mlir::ModuleOp module) {
    llvm::StringMap<Type> units;
    // Under autocast parameters are used as they are stored.
    const bool stored = castsByAutocast(module);
    for (auto unit : module.getOps<sharding::UnitOp>())
      if (sharding::PrecisionAttr precision = unit.getPrecisionAttr()) {
        Type type = stored ? precision.getStorage() : precision.getCompute();
        units[unit.getName()] = type;
        if (!common)
          common = type;
      }
    bool usual = false;
    for (auto param : module.getOps<sharding::ParamOp>()) {
      Type type = param.getUnit() ? units.lookup(*param.getUnit()) : Type();
      params[param.getFqn()] = type;
      if (param.getKeepsDtype())
        adapters.insert(param.getFqn());
      else if (type && !std::exchange(usual, true))
        common = type;
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          params[alias.getValue()] = type;
    }
  }

  /// Null with a diagnostic where no unit decides, or two disagree. A function
  /// without parameters computes in the type of the first unit that is not an
  /// adapter's. An adapter's
  /// matrices may have a type of their own beside it, which `own` gets by
  /// argument: PEFT casts what goes in and out of them.
  Type of(func::FuncOp function, ArrayRef<sharding::CallOp> calls,
          SmallVectorImpl<Type> &own) {
    Type result;
    own.assign(function.getNumArguments(), Type());
    for (sharding::CallOp call : calls)
      for (BlockArgument arg : function.getArguments()) {
        auto name = function.getArgAttrOfType<StringAttr>(
            arg.getArgNumber(), sharding::paramArgAttr);
        if (!name)
          continue;
        std::string fqn = call.bindParam(name.getValue());
        Type type = params.lookup(fqn);
        if (!type) {
          call.emitOpError("reads '")
              << fqn << "', whose unit has no precision yet";
          return {};
        }
        if (adapters.contains(fqn)) {
          own[arg.getArgNumber()] = type;
          continue;
        }
        if (result && result != type) {
          call.emitOpError("reads parameters of ")
              << result << " and " << type << " in one segment";
          return {};
        }
        result = type;
      }
    if (!result && !common)
      function.emitOpError("has no unit whose precision it could take");
    return result ? result : common;
  }

private:
  llvm::StringMap<Type> params;
  llvm::StringSet<> adapters;
  Type common;
};

struct ApplyPrecisionPass
    : accel::impl::ApplyPrecisionPassBase<ApplyPrecisionPass> {
  using Base::Base;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (failed(compute.empty() ? applyUnits(module) : applyOption(module)))
      return signalPassFailure();
    if (auto graph = sharding::findOnly<sharding::GraphOp>(module)) {
      returnLossInF32(graph);
      if (failed(retypeCalls(graph)))
        signalPassFailure();
    }
  }

private:
  LogicalResult applyOption(mlir::ModuleOp module) {
    Builder b(&getContext());
    Type type = llvm::StringSwitch<Type>(compute)
                    .Case("f32", b.getF32Type())
                    .Case("bf16", b.getBF16Type())
                    .Case("f16", b.getF16Type())
                    .Default(Type());
    if (!type)
      return module.emitError("apply-precision: unknown element type '")
             << compute << "', expected f32, bf16 or f16";
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(applyPrecision(function, type)))
        return failure();
    return success();
  }

  LogicalResult applyUnits(mlir::ModuleOp module) {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph)
      return module.emitError(
          "apply-precision needs a sharding.graph, or the option compute");
    llvm::MapVector<StringAttr, SmallVector<sharding::CallOp>> calls;
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      calls[call.getCalleeAttr().getAttr()].push_back(call);
    ComputeTypes types(module);
    SymbolTable symbols(module);
    for (auto &[name, callers] : calls) {
      auto function = symbols.lookup<func::FuncOp>(name);
      if (!function || function.isExternal())
        return callers.front().emitOpError("calls '")
               << name.getValue() << "', which is no function with a body";
      SmallVector<Type> own;
      Type type = types.of(function, callers, own);
      if (!type || failed(applyPrecision(function, type, own)))
        return failure();
    }
    return success();
  }
};

} // namespace
