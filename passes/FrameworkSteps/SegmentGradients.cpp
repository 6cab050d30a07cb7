//===- SegmentGradients.cpp - What a joint's signature says ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/SegmentGradients.h"

using namespace mlir;

namespace accel {

aten::BindingAttr argBinding(func::FuncOp function, unsigned i) {
  return function.getArgAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
}
aten::BindingAttr resultBinding(func::FuncOp function, unsigned i) {
  return function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
}

void noteInputGradients(sharding::CallOp call, func::FuncOp joint,
                        SegmentKind &kind) {
  for (unsigned i = 0; i < joint.getNumResults(); ++i)
    if (auto b = resultBinding(joint, i);
        b.getKind() == aten::BindingKind::InputGrad) {
      const int input = static_cast<int>(b.getIndex());
      kind.inputGradients.push_back(input);
      if (!call.getOperand(input).hasOneUse())
        kind.sharedInputs.push_back(input);
    }
}

void noteParameterGradients(func::FuncOp callee, func::FuncOp joint,
                            SegmentKind &kind) {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < callee.getNumArguments(); ++i)
    if (auto name =
            callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr))
      names.push_back(name.getValue());
  for (unsigned i = 0; i < joint.getNumResults(); ++i) {
    if (resultBinding(joint, i).getKind() != aten::BindingKind::ParamGrad)
      continue;
    auto name =
        joint.getResultAttrOfType<StringAttr>(i, sharding::paramArgAttr);
    auto at = llvm::find(names, name.getValue());
    kind.gradientOf.push_back(static_cast<int>(at - names.begin()));
  }
}

} // namespace accel
