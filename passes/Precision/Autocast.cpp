//===- Autocast.cpp - Functions under torch.autocast ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Precision/Autocast.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Fused.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Precision/ApplyPrecision.h"
#include "passes/Quantize/QuantizedAttr.h"
#include "runtime/plan/QuantizedWeights.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace accel {
namespace {

class Autocaster {
public:
  Autocaster(func::FuncOp function, Type low, aten::Device device,
             ArrayRef<bool> frozen)
      : function(function), low(low), device(device), frozen(frozen) {}

  LogicalResult run() {
    Block &body = function.getBody().front();
    Type full = Float32Type::get(function.getContext());
    for (Operation &op :
         llvm::make_early_inc_range(body.without_terminator())) {
      auto aten = dyn_cast<aten::AtenOpInterface>(&op);
      if (!aten)
        continue;
      if (auto as = dyn_cast<aten::TypeAsOp>(op)) {
        resolve(as);
        continue;
      }
      if (auto delta = dyn_cast<aten::GatedDeltaRuleOp>(op)) {
        delta.setCast(hasElement(delta.getMixed(), low));
        if (failed(inferAgain(&op)))
          return failure();
        continue;
      }
      auto grouped = dyn_cast<aten::GroupedMmOp>(op);
      if (grouped && !isQuantized(grouped.getMat2()))
        castToWeight(grouped);
      else if (Type own = isLow(aten) ? typeKeptBy(&op) : Type()) {
        castOperands(&op, low);
        if (failed(inferAgain(&op)))
          return failure();
        returnAs(&op, own);
        continue;
      } else if (isLow(aten))
        castOperands(&op, low);
      else if (isFull(aten))
        castOperands(&op, full);
      else if (isa<aten::LayerNormOp>(op) && hasElement(op.getOperand(0), low))
        castOperands(&op, low); // CPUs' kernels take wider weights
      if (failed(inferAgain(&op)))
        return failure();
      // PEFT's cast back to the dtype of the base's matmul.
      if (isa<aten::ToCopyOp>(op) &&
          op.getOperand(0).getType() == op.getResult(0).getType()) {
        op.getResult(0).replaceAllUsesWith(op.getOperand(0));
        op.erase();
      }
    }
    function.setFunctionType(
        FunctionType::get(function.getContext(), body.getArgumentTypes(),
                          body.getTerminator()->getOperandTypes()));
    return success();
  }

private:
  /// An adapter beside a quantised layer converts nothing under autocast
  /// (`requires_conversion` of peft/tuners/lora/bnb.py and awq.py), but beside
  /// GPTQ's (gptq.py).
  bool isBesideQuantized(Value like) {
    if (auto wide = like.getDefiningOp<aten::ToCopyOp>())
      like = wide.getSelf();
    if (Operation *product = like.getDefiningOp())
      return llvm::any_of(product->getOperands(), [&](Value operand) {
        return isQuantized(operand) && !isGptq(operand);
      });
    const auto name = parameterOf(cast<BlockArgument>(like));
    const size_t end = name.find(".lora_");
    if (end == StringRef::npos)
      return false;
    const std::string base =
        (name.take_front(end) + ".base_layer.weight").str();
    return llvm::any_of(function.getArguments(), [&](BlockArgument arg) {
      return parameterOf(arg) == base && isQuantized(arg) && !isGptq(arg);
    });
  }
  StringRef parameterOf(BlockArgument arg) {
    auto name = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                      sharding::paramArgAttr);
    return name ? name.getValue() : StringRef();
  }

  /// What the other is becomes known as operators are cast.
  void resolve(aten::TypeAsOp op) {
    Type to = getElementTypeOrSelf(op.getOther());
    Value value = op.getSelf();
    OpBuilder b(op);
    if (!hasElement(value, to) && !isBesideQuantized(op.getOther()))
      value = aten::ToCopyOp::create(b, op.getLoc(), value, to);
    op.getResult().replaceAllUsesWith(value);
    op.erase();
  }

  static bool isLow(aten::AtenOpInterface op) {
    return op.getCategory() == aten::Category::Matmul ||
           op.getCategory() == aten::Category::Attention ||
           isa<aten::ScaledDotProductAttentionOp>(op.getOperation());
  }
  /// Of the device's fp32 list (aten/src/ATen/autocast_mode.h): what these
  /// models use. CPUs' is short, but transformers itself asks for fp32 where it
  /// takes a softmax. CPUs take all of cross_entropy in fp32; on other devices
  /// its log_softmax names the dtype of its input, which autocast respects
  /// (cross_entropy_loss of aten/src/ATen/native/LossNLL.cpp).
  bool isFull(aten::AtenOpInterface op) const {
    const bool cpu = device == aten::Device::Cpu;
    if (op->hasAttr(aten::ownTypeAttr))
      return cpu && isa<aten::LogSoftmaxOp>(op.getOperation());
    if (cpu)
      return isa<aten::NllLossForwardOp, aten::LogSoftmaxOp, aten::SoftmaxOp>(
          op.getOperation());
    return isa<aten::LogSoftmaxOp, aten::SoftmaxOp, aten::ExpOp, aten::LogOp,
               aten::Log1pOp, aten::CumsumOp, aten::SoftplusOp,
               aten::NllLossForwardOp, aten::PowTensorScalarOp, aten::RsqrtOp,
               aten::LayerNormOp, aten::MseLossOp, aten::SmoothL1LossOp,
               aten::HuberLossOp, aten::BinaryCrossEntropyWithLogitsOp,
               aten::ProdDimIntOp, aten::LinalgVectorNormOp>(op.getOperation());
  }

  /// A matmul of an input in another dtype with a quantised weight, which
  /// bitsandbytes' layers return in the dtype of the input
  /// (Linear4bit.forward).
  Type typeKeptBy(Operation *op) {
    Type own;
    bool quantized = false;
    for (Value operand : op->getOperands()) {
      if (isQuantized(operand))
        quantized = true;
      else if (isCastTo(operand, low))
        own = getElementTypeOrSelf(operand);
    }
    return quantized ? own : Type();
  }
  /// A quantised weight, or its transpose. Experts that are quantised are such
  /// layers too, one for each, and compute as they do.
  bool isQuantized(Value value) { return static_cast<bool>(formatOf(value)); }
  Attribute formatOf(Value value) {
    if (auto transposed = value.getDefiningOp<aten::TOp>())
      value = transposed.getSelf();
    else if (auto swapped = value.getDefiningOp<aten::TransposeIntOp>())
      value = swapped.getSelf();
    auto arg = dyn_cast<BlockArgument>(value);
    return arg ? function.getArgAttr(arg.getArgNumber(), quantizedAttr)
               : Attribute();
  }
  bool isGptq(Value value) {
    auto format = dyn_cast_or_null<StringAttr>(formatOf(value));
    return format &&
           format.getValue() == plan::describe(plan::WeightFormat::Gptq).name;
  }
  void returnAs(Operation *op, Type own) {
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    auto copy = aten::ToCopyOp::create(b, op->getLoc(), result, own);
    result.replaceAllUsesExcept(copy.getResult(), copy);
  }

  /// Autocast's casts take every floating-point dtype but float64, the other
  /// 16-bit one too (cached_cast of aten/src/ATen/autocast_mode.cpp).
  static bool isCastTo(Value value, Type to) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (!tensor)
      return false;
    const Type from = tensor.getElementType();
    return from != to && (from.isF32() || from.isF16() || from.isBF16());
  }

  static bool hasElement(Value value, Type type) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && tensor.getElementType() == type;
  }

  /// Autocast leaves _grouped_mm of wide weights alone; transformers casts its
  /// input.
  void castToWeight(aten::GroupedMmOp op) {
    Type weight =
        cast<RankedTensorType>(op.getMat2().getType()).getElementType();
    if (hasElement(op.getSelf(), weight))
      return;
    OpBuilder b(op);
    op.getSelfMutable().assign(castTo(b, op->getLoc(), op.getSelf(), weight));
  }

  /// The last operand first: autocast casts a kernel's arguments where it calls
  /// it (WrapFunction_), and GCC, which builds torch, evaluates arguments from
  /// the right.
  void castOperands(Operation *op, Type to) {
    OpBuilder b(op);
    for (OpOperand &operand : llvm::reverse(op->getOpOperands()))
      if (isCastTo(operand.get(), to))
        operand.set(castTo(b, op->getLoc(), operand.get(), to));
  }

  /// linear() casts the weight and then transposes it.
  Value castTo(OpBuilder &b, mlir::Location loc, Value value, Type to) {
    if (auto transposed = value.getDefiningOp<aten::TOp>())
      if (isParameter(transposed.getSelf()))
        return aten::TOp::create(b, loc, copyOf(b, transposed.getSelf(), to));
    if (isParameter(value))
      return copyOf(b, value, to);
    return aten::ToCopyOp::create(b, loc, value, to);
  }

  bool isParameter(Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    return arg &&
           function.getArgAttr(arg.getArgNumber(), sharding::paramArgAttr);
  }

  /// The cache: copied where it is first used. A frozen one is not cached.
  Value copyOf(OpBuilder &at, Value parameter, Type to) {
    const unsigned number = cast<BlockArgument>(parameter).getArgNumber();
    if (number < frozen.size() && frozen[number])
      return aten::ToCopyOp::create(at, parameter.getLoc(), parameter, to);
    Value &copy = copies[parameter];
    if (!copy) {
      OpBuilder b(function.getContext());
      b.setInsertionPointToStart(&function.getBody().front());
      copy = aten::ToCopyOp::create(b, parameter.getLoc(), parameter, to);
      firstUse.push_back(copy.getDefiningOp());
    }
    return copy;
  }

public:
  /// Moves each copy of a parameter right before its first use.
  void place() {
    for (Operation *copy : firstUse) {
      Operation *first = nullptr;
      for (Operation *user : copy->getUsers())
        if (!first || user->isBeforeInBlock(first))
          first = user;
      if (first)
        copy->moveBefore(first);
    }
    // Transposes of the originals that nothing reads any more.
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isa<aten::TOp>(op) && op.use_empty())
        op.erase();
  }

private:
  LogicalResult inferAgain(Operation *op) {
    auto infer = dyn_cast<InferTypeOpInterface>(op);
    if (!infer)
      return success();
    SmallVector<Type> types;
    if (failed(infer.inferReturnTypes(
            op->getContext(), op->getLoc(), op->getOperands(),
            op->getAttrDictionary(), op->getPropertiesStorage(),
            op->getRegions(), types)))
      return op->emitOpError("cannot compute under autocast to ") << low;
    for (auto [result, type] : llvm::zip(op->getResults(), types))
      result.setType(type);
    return success();
  }

  func::FuncOp function;
  Type low;
  aten::Device device;
  ArrayRef<bool> frozen;
  DenseMap<Value, Value> copies;
  SmallVector<Operation *> firstUse;
};

} // namespace

Type autocastType(mlir::ModuleOp module) {
  // FSDP1 casts parameters, and Accelerate enters autocast beside it.
  if (!castsByAutocast(module) &&
      frameworkOf(module).kind() != FrameworkKind::Fsdp1)
    return {};
  for (auto unit : module.getOps<sharding::UnitOp>())
    if (auto precision = unit.getPrecisionAttr();
        precision && precision.getAutocast() && !precision.getCompute().isF32())
      return precision.getCompute();
  return {};
}

LogicalResult applyAutocast(func::FuncOp function, Type low,
                            aten::Device device, ArrayRef<bool> frozen) {
  Autocaster caster(function, low, device, frozen);
  if (failed(caster.run()))
    return failure();
  caster.place();
  return success();
}

} // namespace accel
