//===- ExtractJoint.cpp - A joint function without MLIR -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/ExtractJoint.h"

#include "dialects/Aten/InPlace.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/CallArgs.h"
#include "passes/Recompute/DecideSaved.h"
#include "runtime/plan/Operands.h"

using namespace mlir;
using namespace accel;

namespace {

JointCategory categoryOf(aten::AtenOpInterface op) {
  switch (op.getCategory()) {
  case aten::Category::View:
    return JointCategory::View;
  case aten::Category::Pointwise:
    return JointCategory::Pointwise;
  case aten::Category::Reduction:
    return JointCategory::Reduction;
  case aten::Category::Matmul:
    return JointCategory::Matmul;
  case aten::Category::Attention:
    return JointCategory::Attention;
  case aten::Category::Memory:
    return JointCategory::Memory;
  case aten::Category::Opaque:
    return JointCategory::Opaque;
  }
  llvm_unreachable("all categories are listed");
}

/// An operator that is not modelled and draws random numbers.
bool isRandom(Operation *op) {
  auto opaque = dyn_cast<aten::OpaqueOp>(op);
  if (!opaque)
    return false;
  StringRef name = opaque.getCallee();
  return llvm::any_of(ArrayRef<StringRef>{"dropout", "bernoulli", "rand",
                                          "normal", "multinomial", "uniform",
                                          "exponential"},
                      [&](StringRef part) { return name.contains(part); });
}

/// As FunctionExporter does it: matmuls, and embedding weights in 32 bits.
bool writesIntoPlace(Operation *op) {
  if (auto table = dyn_cast<aten::EmbeddingDenseBackwardOp>(op))
    return static_cast<int64_t>(table.getPaddingIdx()) < 0 &&
           cast<RankedTensorType>(table.getType()).getElementTypeBitWidth() >=
               32;
  return isa<aten::MmOp>(op);
}

class JointExtractor {
public:
  JointExtractor(func::FuncOp joint, aten::Device device)
      : joint(joint), device(device) {}

  FailureOr<ExtractedJoint> run() {
    plan::Function &function = result.graph.function;
    function.name = joint.getName().str();
    if (auto mesh = sharding::findOnly<sharding::MeshOp>(
            joint->getParentOfType<mlir::ModuleOp>()))
      for (auto axis : mesh.getAxes().getAsRange<sharding::AxisAttr>())
        result.graph.mesh.resize(axis.getName().str(), axis.getSize());
    addArguments();
    DenseSet<Operation *> forward = forwardOps(joint);
    for (Operation &op : joint.getBody().front().without_terminator())
      if (failed(addOperation(&op, forward.contains(&op))))
        return failure();
    Operation *terminator = joint.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      auto binding =
          joint.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
      if (!binding)
        return joint.emitOpError() << "result " << i << " has no aten.binding";
      int slot = slots.lookup(value);
      if (binding.getKind() == aten::BindingKind::Output)
        function.outputs.push_back(slot);
      else
        result.graph.gradients.push_back(
            {slot, binding.getKind() == aten::BindingKind::ParamGrad});
    }
    return std::move(result);
  }

private:
  int addSlot(Value value, int base = -1) {
    plan::Function &function = result.graph.function;
    auto type = cast<RankedTensorType>(value.getType());
    int index = static_cast<int>(function.slots.size());
    plan::Slot slot;
    slot.dtype = toDType(type.getElementType()).value_or(plan::DType::F32);
    slot.shape = type.getShape().vec();
    slot.base = base < 0 ? index : function.slots[base].base;
    function.slots.push_back(std::move(slot));
    result.values.push_back(value);
    return slots[value] = index;
  }

  void addArguments() {
    plan::Function &function = result.graph.function;
    for (BlockArgument arg : joint.getArguments()) {
      int slot = addSlot(arg);
      auto binding = joint.getArgAttrOfType<aten::BindingAttr>(
          arg.getArgNumber(), aten::bindingAttr);
      auto kind = binding ? binding.getKind() : aten::BindingKind::Input;
      if (kind == aten::BindingKind::Tangent ||
          kind == aten::BindingKind::Carry) {
        result.graph.tangents.push_back(slot);
      } else if (kind == aten::BindingKind::Param) {
        function.params.push_back(slot);
        auto name = joint.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                       sharding::paramArgAttr);
        function.paramNames.push_back(name ? name.str() : "");
      } else {
        function.inputs.push_back(slot);
      }
    }
  }

  LogicalResult addOperation(Operation *op, bool forward) {
    auto aten = dyn_cast<aten::AtenOpInterface>(op);
    if (!aten)
      return addExchange(op, forward);
    plan::Instruction instruction;
    StringRef name = aten.getSchema().split('(').first;
    if (auto opaque = dyn_cast<aten::OpaqueOp>(op))
      name = opaque.getCallee();
    instruction.op =
        name.empty() ? op->getName().getStringRef().str() : name.str();
    for (Value operand : op->getOperands()) {
      instruction.args.push_back(plan::tensorArg(slots.lookup(operand)));
    }
    aten::Cost cost = aten.getCost();
    instruction.flops = cost.flops;
    instruction.movedBytes = cost.bytes;
    instruction.workspaceBytes = aten.getWorkspaceBytes(device);
    instruction.where = aten::modulePath(op->getLoc());
    JointMark mark;
    mark.category = op->hasAttr(sharding::joinedAttr) ? JointCategory::Attention
                                                      : categoryOf(aten);
    mark.forward = forward;
    mark.mayRecompute = forward && !isRandom(op);
    mark.intoPlace = writesIntoPlace(op);
    mark.isNorm = isa<aten::FusedRmsNormOp, aten::NativeLayerNormOp>(op);
    mark.overwrites = !forward && aten::overwrittenOperand(op);
    for (auto [i, value] : llvm::enumerate(op->getResults())) {
      const int base =
          mark.sharesStorage() ? slots.lookup(aten::viewedOperand(op, i)) : -1;
      instruction.results.push_back(addSlot(value, base));
    }
    result.graph.function.instructions.push_back(std::move(instruction));
    result.graph.marks.push_back(mark);
    result.ops.push_back(op);
    return success();
  }

  /// A recomputation of what ranks exchange exchanges it again, which its
  /// seconds say.
  LogicalResult addExchange(Operation *op, bool forward) {
    auto args = exchangeArgs(op, [&](Value v) { return slots.lookup(v); });
    if (!args)
      return op->emitOpError("is no aten operation");
    plan::Instruction instruction;
    instruction.op = "sharding::" + op->getName().stripDialect().str();
    instruction.args = std::move(*args);
    instruction.where = aten::modulePath(op->getLoc());
    for (Value value : op->getResults())
      instruction.results.push_back(addSlot(value));
    JointMark mark;
    mark.exchange = plan::exchangeOf(instruction);
    llvm::erase_if(instruction.args, [](const plan::Arg &arg) {
      return arg.kind != plan::Arg::Kind::Tensor;
    });
    mark.category = JointCategory::Opaque;
    mark.forward = mark.mayRecompute = forward;
    result.graph.function.instructions.push_back(std::move(instruction));
    result.graph.marks.push_back(mark);
    result.ops.push_back(op);
    return success();
  }

  func::FuncOp joint;
  aten::Device device;
  ExtractedJoint result;
  DenseMap<Value, int> slots;
};

} // namespace

FailureOr<ExtractedJoint> accel::extractJoint(func::FuncOp joint,
                                              aten::Device device) {
  return JointExtractor(joint, device).run();
}
