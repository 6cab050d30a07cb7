//===- Opaque.cpp - Operators that are not modelled -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/OpaqueCalls.h"
#include "dialects/Aten/Rules.h"
#include "dialects/Aten/Schema.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

namespace {

/// Checks the argument list of an opaque operator against its inputs.
class ArgsVerifier {
public:
  ArgsVerifier(Operation *op, StringRef callee, size_t inputs)
      : op(op), callee(callee), uses(inputs) {}

  LogicalResult run(ArrayAttr args) {
    if (failed(checkName()))
      return failure();
    for (Attribute arg : args)
      if (failed(checkArg(arg)))
        return failure();
    for (auto [i, count] : llvm::enumerate(uses))
      if (count != 1)
        return op->emitOpError("input ")
               << i << " stands " << count
               << " times among the arguments, expected once";
    return success();
  }

private:
  /// PyTorch's names say what an operator does to its arguments.
  LogicalResult checkName() {
    StringRef name = callee;
    if (!name.consume_front("aten::"))
      return op->emitOpError("operator '")
             << callee << "' is not of the namespace aten";
    auto [base, overload] = name.split('.');
    if (base.ends_with("_") && !base.ends_with("__"))
      return op->emitOpError("operator '")
             << callee << "' writes to its first argument; use 'aten::"
             << base.drop_back() << "', which returns its result";
    if (overload == "out" || overload.ends_with("_out"))
      return op->emitOpError("operator '")
             << callee << "' writes to an argument; use the overload that "
             << "returns its result";
    return success();
  }

  LogicalResult checkArg(Attribute arg) {
    if (auto list = dyn_cast<ArrayAttr>(arg)) {
      for (Attribute item : list) {
        auto text = dyn_cast<StringAttr>(item);
        if (!text || text.getValue().starts_with("="))
          return op->emitOpError("argument ")
                 << arg << " is no list of tensors";
        if (failed(checkText(text)))
          return failure();
      }
      return success();
    }
    if (auto text = dyn_cast<StringAttr>(arg))
      return checkText(text);
    if (isa<IntegerAttr, FloatAttr, TypeAttr, DenseI64ArrayAttr,
            DenseBoolArrayAttr>(arg))
      return success();
    return op->emitOpError("argument ") << arg << " has no counterpart in ATen";
  }

  LogicalResult checkText(StringAttr text) {
    StringRef rest = text.getValue();
    if (rest == "none" || rest.starts_with("="))
      return success();
    unsigned index = 0;
    if (!rest.consume_front("%") || rest.getAsInteger(10, index) ||
        index >= uses.size())
      return op->emitOpError("argument ")
             << text << " names none of the " << uses.size() << " inputs";
    ++uses[index];
    return success();
  }

  Operation *op;
  StringRef callee;
  SmallVector<unsigned> uses;
};

} // namespace

LogicalResult OpaqueOp::verify() {
  return ArgsVerifier(*this, getCallee(), getInputs().size()).run(getArgs());
}

LogicalResult OpaqueBackwardOp::verify() {
  if (getNeeded().size() != getOutputs().size())
    return emitOpError("needs ") << getNeeded().size() << " gradients but has "
                                 << getOutputs().size() << " results";
  for (auto [index, output] : llvm::zip(getNeeded(), getOutputs())) {
    if (index < 0 || index >= static_cast<int64_t>(getInputs().size()))
      return emitOpError("has no input ") << index;
    if (output.getType() != getInputs()[index].getType())
      return emitOpError("gradient ")
             << output.getType() << " is not of the type of input " << index;
  }
  return ArgsVerifier(*this, getCallee(), getInputs().size()).run(getArgs());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static int64_t touched(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += alignedBytes(tensorBytes(value.getType()));
  return bytes;
}

// Above what 45 operators of many kinds allocate (test/parity/opaque_cases.py):
// in the forward up to 3 times their operands (kthvalue sorts a copy with its
// positions), in the backward, which runs the forward again and keeps what
// autograd saves, up to 8.2 times (renorm, logcumsumexp). Numbers of any size
// are wrapped in tensors.

int64_t OpaqueOp::getWorkspaceBytes(Device) {
  return 4 * touched(getInputs()) + 2 * touched(getOutputs()) + 512;
}

int64_t OpaqueBackwardOp::getWorkspaceBytes(Device) {
  return 6 * touched(getInputs()) + 4 * touched(getGrads()) +
         touched(getOutputs()) + 1024;
}

//===----------------------------------------------------------------------===//
// Derivative
//===----------------------------------------------------------------------===//

BACKWARD(OpaqueOp) {
  // Not even zeros: a parameter that is read so alone has no gradient.
  if (getCallee() == "aten::detach")
    return success();
  SmallVector<Value> given;
  for (auto [grad, output] : llvm::zip(grads, getOutputs())) {
    if (!isa<FloatType>(elementOf(output)))
      continue;
    given.push_back(grad ? grad : b.create<ZerosLikeOp>(output));
  }
  SmallVector<int64_t> wanted;
  SmallVector<Type> types;
  for (auto [i, need] : llvm::enumerate(needed))
    if (need) {
      wanted.push_back(i);
      types.push_back(getInputs()[i].getType());
    }
  auto backward =
      OpaqueBackwardOp::createAs(b.getBuilder(), b.getLoc(), types, getCallee(),
                                 given, getInputs(), getArgs(), wanted);
  for (auto [result, index] : llvm::zip(backward.getOutputs(), wanted))
    operandGrads[index] = result;
  return success();
}

std::vector<OpaqueCallee> aten::opaqueCallees(Operation *root) {
  llvm::MapVector<StringRef, OpaqueCallee> found;
  root->walk([&](OpaqueOp op) {
    OpaqueCallee &callee = found[op.getCallee()];
    if (!callee.calls++) {
      callee.name = op.getCallee().str();
      callee.firstPath = modulePath(op.getLoc());
    }
  });
  std::vector<OpaqueCallee> callees;
  for (auto &[name, callee] : found)
    callees.push_back(std::move(callee));
  return callees;
}
