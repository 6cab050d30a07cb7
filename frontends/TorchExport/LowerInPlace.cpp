//===- LowerInPlace.cpp - What shares memory, or an object ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

#include "dialects/Aten/InPlace.h"

#include <functional>

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Kind = Argument::Kind;

/// True where a cast's operand has the dtype that it asks for.
bool Lowering::sameDtype(const Node &node, const Graph &graph) {
  if (node.inputs.empty() || node.inputs[0].value.kind != Kind::Tensor ||
      node.outputs[0].kind != Kind::Tensor)
    return false;
  return graph.tensors.at(node.inputs[0].value.text).dtype ==
         graph.tensors.at(node.outputs[0].text).dtype;
}

void Lowering::enterStack(int next, Values &values) {
  if (next == stack)
    return;
  for (bool entering : {false, true}) {
    auto casts = identities.find(entering ? next : stack);
    if (casts == identities.end())
      continue;
    for (const Identity &cast : casts->second) {
      auto found = values.find(cast.name);
      const Value now = entering ? cast.operand : cast.wide;
      if (found != values.end() && found->second == now)
        found->second = entering ? cast.wide : cast.operand;
    }
  }
  stack = next;
}

bool Lowering::writeBack(Value before, Value after, Values &values) {
  if (aten::tensorType(after).getElementType() !=
      aten::tensorType(before).getElementType())
    after = cast(after, aten::tensorType(before).getElementType());
  after = after ? expand(after, shape(before)) : Value();
  // From the view that is written to up to what owns the memory.
  Value owner = before;
  for (Operation *op = owner.getDefiningOp(); after && aten::isView(op);
       op = owner.getDefiningOp()) {
    owner = op->getOperand(0);
    if (auto slice = dyn_cast<aten::SliceTensorOp>(op))
      after = make<aten::SliceScatterOp>(
          {owner, after}, {{"dim", integer(int64_t(slice.getDim()))},
                           {"start", integer(int64_t(slice.getStart()))},
                           {"end", integer(int64_t(slice.getEnd()))},
                           {"step", integer(int64_t(slice.getStep()))}});
    else if (isa<aten::SqueezeDimOp, aten::UnsqueezeOp, aten::ViewOp>(op))
      after = reshape(after, shape(owner));
    else if (auto turned = dyn_cast<aten::TransposeIntOp>(op))
      after = transpose(after, int64_t(turned.getDim0()),
                        int64_t(turned.getDim1()));
    else if (auto select = dyn_cast<aten::SelectIntOp>(op))
      after = make<aten::SelectScatterOp>(
          {owner, after}, {{"dim", integer(int64_t(select.getDim()))},
                           {"index", integer(int64_t(select.getIndex()))}});
    else if (isa<aten::TOp>(op))
      after = make<aten::TOp>(after);
    else if (auto permute = dyn_cast<aten::PermuteOp>(op)) {
      SmallVector<int64_t> back(permute.getDims().size());
      for (auto [to, from] : llvm::enumerate(permute.getDims()))
        back[from] = int64_t(to);
      after = make<aten::PermuteOp>(after, {{"dims", integers(back)}});
    } else
      return false;
  }
  if (!after || !owner.getDefiningOp())
    return false;
  // Names of views of it are views of what it is now.
  llvm::DenseMap<Value, Value> now = {{owner, after}};
  std::function<Value(Value)> renew = [&](Value value) -> Value {
    if (auto found = now.find(value); found != now.end())
      return found->second;
    Operation *op = value.getDefiningOp();
    Value result = value;
    if (aten::isView(op)) {
      Value self = renew(op->getOperand(0));
      if (self != op->getOperand(0)) {
        Operation *copy = b.clone(*op);
        copy->setOperand(0, self);
        result = copy->getResult(0);
        if (isTrained(self))
          trained.insert(result);
      }
    }
    return now[value] = result;
  };
  for (auto &[name, value] : values)
    if (value)
      value = renew(value);
  return true;
}
