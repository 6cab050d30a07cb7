//===- SplitJoint.cpp - Forward and backward of a joint ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Partition/SplitJoint.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Layout.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Recompute/ExtractJoint.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;

namespace {

class Splitter {
public:
  explicit Splitter(func::FuncOp joint)
      : joint(joint), builder(joint.getContext()) {}

  LogicalResult run() {
    name = joint.getName().drop_back(jointSuffix.size()).str();
    // What operators allocate inside does not matter here.
    auto extracted = extractJoint(joint, aten::Device::Cpu);
    if (failed(extracted))
      return failure();
    const JointGraph &graph = extracted->graph;
    auto valuesOf = [&](ArrayRef<int> slots) {
      return llvm::map_to_vector(
          slots, [&](int slot) { return extracted->values[slot]; });
    };
    outputs = valuesOf(graph.function.outputs);
    for (const JointGradient &gradient : graph.gradients)
      gradients.push_back(extracted->values[gradient.slot]);
    for (unsigned i = 0; i < joint.getNumResults(); ++i)
      if (joint.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr)
              .getKind() != aten::BindingKind::Output)
        gradientAttrs.push_back(joint.getResultAttrDict(i));
    SavedSet saved;
    for (Operation *op : extracted->ops) {
      auto save = op->getAttrOfType<aten::SaveAttr>(aten::saveAttr);
      saved.push_back(save && save.getKind() == aten::SaveKind::Keep);
    }
    JointSplit split = splitGraph(graph, saved);
    for (int i : split.forward)
      forward.push_back(extracted->ops[i]);
    for (int i : split.backward) {
      Operation *op = extracted->ops[i];
      if (graph.marks[i].forward && !op->hasAttr(aten::saveAttr))
        return op->emitOpError(
            "has no aten.save; checkpoint decides before partition applies");
      backward.push_back(op);
    }
    crossing.insert_range(valuesOf(split.crossing));
    arguments.insert_range(valuesOf(split.arguments));
    buildForward();
    buildBackward();
    joint.erase();
    return success();
  }

private:
  aten::BindingAttr binding(aten::BindingKind kind, int64_t index) {
    return aten::BindingAttr::get(builder.getContext(), kind, index);
  }

  func::FuncOp createFunction(StringRef suffix, ArrayRef<Type> inputs,
                              ArrayRef<Type> results) {
    auto function =
        func::FuncOp::create(builder, joint.getLoc(), name + suffix.str(),
                             builder.getFunctionType(inputs, results));
    function.setPrivate();
    function.addEntryBlock();
    return function;
  }

  void copyOps(ArrayRef<Operation *> ops, IRMapping &mapping) {
    for (Operation *op : ops)
      builder.clone(*op, mapping)->removeAttr(aten::saveAttr);
  }

  void buildForward() {
    for (Value value : crossing)
      if (!llvm::is_contained(outputs, value))
        saved.push_back(value);
    SmallVector<Type> inputs, results;
    SmallVector<unsigned> originals;
    for (BlockArgument arg : joint.getArguments()) {
      auto attr = joint.getArgAttrOfType<aten::BindingAttr>(arg.getArgNumber(),
                                                            aten::bindingAttr);
      if (attr.getKind() == aten::BindingKind::Tangent ||
          attr.getKind() == aten::BindingKind::Carry)
        continue;
      originals.push_back(arg.getArgNumber());
      inputs.push_back(arg.getType());
    }
    for (Value value : outputs)
      results.push_back(value.getType());
    for (Value value : saved)
      results.push_back(value.getType());
    builder.setInsertionPoint(joint);
    func::FuncOp function = createFunction(forwardSuffix, inputs, results);
    IRMapping mapping;
    for (auto [i, original] : llvm::enumerate(originals)) {
      mapping.map(joint.getArgument(original), function.getArgument(i));
      function.setArgAttrs(i, joint.getArgAttrDict(original));
    }
    builder.setInsertionPointToStart(&function.getBody().front());
    copyOps(forward, mapping);
    SmallVector<Value> values;
    for (auto [i, value] : llvm::enumerate(outputs)) {
      values.push_back(mapping.lookup(value));
      function.setResultAttr(i, aten::bindingAttr,
                             binding(aten::BindingKind::Output, i));
    }
    for (auto [i, value] : llvm::enumerate(saved)) {
      values.push_back(mapping.lookup(value));
      function.setResultAttr(outputs.size() + i, aten::bindingAttr,
                             binding(aten::BindingKind::Saved, i));
    }
    func::ReturnOp::create(builder, joint.getLoc(), values);
  }

  /// Arguments of the backward with their attributes, in order of kind.
  SmallVector<std::pair<Value, NamedAttrList>> backwardArguments() {
    SmallVector<std::pair<Value, NamedAttrList>> result;
    auto addJoint = [&](aten::BindingKind kind) {
      for (BlockArgument arg : joint.getArguments())
        if (arguments.contains(arg) &&
            joint.getArgAttrOfType<aten::BindingAttr>(arg.getArgNumber(),
                                                      aten::bindingAttr)
                    .getKind() == kind)
          result.push_back({arg, joint.getArgAttrDict(arg.getArgNumber())});
    };
    auto addCrossing = [&](ArrayRef<Value> values, aten::BindingKind kind) {
      for (auto [i, value] : llvm::enumerate(values)) {
        if (!crossing.contains(value) ||
            llvm::is_contained(llvm::make_first_range(result), value))
          continue;
        NamedAttrList attrs;
        attrs.set(aten::bindingAttr, binding(kind, i));
        if (!layout.isContiguous(value))
          attrs.set(aten::stridesAttr,
                    builder.getDenseI64ArrayAttr(layout.strides(value)));
        result.push_back({value, attrs});
      }
    };
    addJoint(aten::BindingKind::Input);
    addCrossing(outputs, aten::BindingKind::Output);
    addCrossing(saved, aten::BindingKind::Saved);
    addJoint(aten::BindingKind::Param);
    addJoint(aten::BindingKind::Tangent);
    addJoint(aten::BindingKind::Carry);
    return result;
  }

  void buildBackward() {
    auto args = backwardArguments();
    SmallVector<Type> inputs;
    for (auto &[value, attrs] : args)
      inputs.push_back(value.getType());
    builder.setInsertionPoint(joint);
    func::FuncOp function =
        createFunction(backwardSuffix, inputs,
                       llvm::to_vector(ValueRange(gradients).getTypes()));
    IRMapping mapping;
    for (auto [i, arg] : llvm::enumerate(args)) {
      mapping.map(arg.first, function.getArgument(i));
      function.setArgAttrs(i, arg.second);
    }
    builder.setInsertionPointToStart(&function.getBody().front());
    copyOps(backward, mapping);
    SmallVector<Value> values = llvm::map_to_vector(
        gradients, [&](Value v) { return mapping.lookup(v); });
    func::ReturnOp::create(builder, joint.getLoc(), values);
    for (auto [i, attrs] : llvm::enumerate(gradientAttrs))
      function.setResultAttrs(i, attrs);
  }

  func::FuncOp joint;
  OpBuilder builder;
  aten::LayoutAnalysis layout;
  std::string name;
  SmallVector<Value> outputs, gradients, saved;
  SmallVector<DictionaryAttr> gradientAttrs;
  SmallVector<Operation *> forward, backward;
  llvm::SetVector<Value> crossing; // kept values that it reads
  DenseSet<Value> arguments;       // of the joint, that it reads
};

} // namespace

LogicalResult accel::splitJoint(func::FuncOp joint) {
  return Splitter(joint).run();
}
