//===- GraphParts.cpp - A segment function in parts -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Partition/GraphParts.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/InPlace.h"
#include "dialects/Aten/Layout.h"
#include "passes/Loss/LossHead.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace accel {

bool isRepeated(StringRef path) {
  StringRef last = path.rsplit('.').second;
  return !last.empty() && llvm::all_of(last, llvm::isDigit);
}

namespace {

StringRef parameterName(func::FuncOp function, Value value) {
  auto arg = dyn_cast<BlockArgument>(value);
  if (!arg)
    return "";
  auto name = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                    sharding::paramArgAttr);
  return name ? name.getValue() : "";
}

/// What each part that reads the results makes for itself: views, and casts of
/// parameters.
DenseSet<Operation *> floatingOps(func::FuncOp function) {
  DenseSet<Operation *> floating;
  DenseSet<Value> ofParameters;
  for (BlockArgument arg : function.getArguments())
    if (!parameterName(function, arg).empty())
      ofParameters.insert(arg);
  for (Operation &op : function.getBody().front().without_terminator()) {
    const bool weight = (aten::isView(&op) || isa<aten::ToCopyOp>(op)) &&
                        llvm::all_of(op.getOperands(), [&](Value v) {
                          return ofParameters.contains(v);
                        });
    if (weight)
      ofParameters.insert_range(op.getResults());
    if (weight || aten::isView(&op))
      floating.insert(&op);
  }
  return floating;
}

} // namespace

ParameterReads::ParameterReads(func::FuncOp function) {
  const DenseSet<Operation *> floating = floatingOps(function);
  // By value: the parameters that floating operators made it of.
  DenseMap<Value, SmallVector<StringRef>> of;
  for (BlockArgument arg : function.getArguments())
    if (StringRef name = parameterName(function, arg); !name.empty()) {
      of[arg].push_back(name);
      names.push_back(name);
    }
  for (Operation &op : function.getBody().front().without_terminator()) {
    SmallVector<StringRef> read;
    for (Value operand : op.getOperands())
      if (auto found = of.find(operand); found != of.end())
        llvm::append_range(read, found->second);
    if (floating.contains(&op)) {
      for (Value result : op.getResults())
        of[result] = read;
      continue;
    }
    order.push_back(&op);
    reads[&op] = std::move(read);
  }
}

ArrayRef<StringRef> ParameterReads::of(Operation *op) const {
  auto found = reads.find(op);
  return found == reads.end() ? ArrayRef<StringRef>() : found->second;
}

bool ParameterReads::belongsTo(Operation *op, Operation *next) const {
  if (!isa<aten::ToCopyOp>(op))
    return false;
  // Through views, which have no place.
  SmallVector<Operation *> users(op->getUsers());
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (user == next)
      continue;
    if (!aten::isView(user))
      return false;
    llvm::append_range(users, user->getUsers());
  }
  return true;
}

namespace {

class Cutter {
public:
  Cutter(func::FuncOp function, const DenseSet<Operation *> &starts,
         SymbolTable &symbols)
      : function(function), symbols(symbols), floating(floatingOps(function)) {
    ops.emplace_back();
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (starts.contains(&op))
        ops.emplace_back();
      if (floating.contains(&op))
        continue;
      ops.back().push_back(&op);
      for (Value result : op.getResults())
        madeIn[result] = ops.size() - 1;
    }
  }

  std::vector<GraphPart> run() {
    std::vector<GraphPart> parts(ops.size());
    needs.resize(ops.size());
    Operation *end = function.getBody().front().getTerminator();
    for (size_t k = 0; k < ops.size(); ++k) {
      for (Operation *op : ops[k])
        for (Value operand : op->getOperands())
          need(operand, k);
    }
    for (Value returned : end->getOperands())
      if (!madeIn.contains(returned))
        need(returned, ops.size() - 1);
    // Values that cross a cut, and what the function returns.
    SmallVector<SetVector<Value>> crossing(ops.size());
    for (size_t k = 0; k < ops.size(); ++k)
      for (Value value : needs[k].taken)
        if (auto made = madeIn.find(value); made != madeIn.end())
          crossing[made->second].insert(value);
    for (Value returned : end->getOperands()) {
      auto made = madeIn.find(returned);
      crossing[made == madeIn.end() ? ops.size() - 1 : made->second].insert(
          returned);
    }
    for (size_t k = 0; k < ops.size(); ++k) {
      parts[k].inputs = needs[k].taken.takeVector();
      parts[k].outputs = crossing[k].takeVector();
      build(parts[k], k);
    }
    return parts;
  }

private:
  struct Needs {
    SetVector<Value> taken;   // of earlier parts, or arguments
    SetVector<Value> weights; // parameters
    DenseSet<Operation *> again;
  };

  /// Functions take and return contiguous tensors: where what was made is none,
  /// as attention's result, the view of it that is one crosses the cut.
  void need(Value value, size_t part) {
    Needs &own = needs[part];
    if (!parameterName(function, value).empty()) {
      own.weights.insert(value);
      return;
    }
    Operation *made = value.getDefiningOp();
    if (made && floating.contains(made)) {
      const auto root = madeIn.find(viewed(value));
      if (root != madeIn.end() && root->second < part &&
          !layout.isContiguous(root->first) && layout.isContiguous(value)) {
        const size_t maker = root->second;
        madeIn[value] = maker;
        need(value, maker);
        own.taken.insert(value);
        return;
      }
      if (own.again.insert(made).second)
        for (Value operand : made->getOperands())
          need(operand, part);
      return;
    }
    if (!made || madeIn.lookup(value) != part)
      own.taken.insert(value);
  }

  /// What `value` is a view of.
  Value viewed(Value value) const {
    while (Operation *made = value.getDefiningOp()) {
      if (!floating.contains(made))
        break;
      value = made->getOperand(0);
    }
    return value;
  }

  void build(GraphPart &part, size_t k) {
    OpBuilder builder(function);
    SmallVector<Value> arguments(part.inputs);
    for (BlockArgument arg : function.getArguments())
      if (needs[k].weights.contains(arg))
        arguments.push_back(arg);
    part.function = func::FuncOp::create(
        builder, function.getLoc(), (function.getName() + ".cut").str(),
        builder.getFunctionType(ValueRange(arguments).getTypes(),
                                ValueRange(part.outputs).getTypes()));
    part.function.setPrivate();
    part.function.addEntryBlock();
    IRMapping mapping;
    for (auto [i, value] : llvm::enumerate(arguments)) {
      mapping.map(value, part.function.getArgument(i));
      if (auto arg = dyn_cast<BlockArgument>(value))
        part.function.setArgAttrs(i,
                                  function.getArgAttrDict(arg.getArgNumber()));
    }
    builder.setInsertionPointToStart(&part.function.getBody().front());
    const DenseSet<Operation *> own(ops[k].begin(), ops[k].end());
    for (Operation &op : function.getBody().front().without_terminator())
      if (own.contains(&op) || needs[k].again.contains(&op))
        builder.clone(op, mapping);
    SmallVector<Value> results;
    for (Value value : part.outputs)
      results.push_back(mapping.lookup(value));
    func::ReturnOp::create(builder, function.getLoc(), results);
    symbols.insert(part.function); // makes the name unique
  }

  func::FuncOp function;
  SymbolTable &symbols;
  const DenseSet<Operation *> floating;
  SmallVector<SmallVector<Operation *>> ops; // by part
  DenseMap<Value, size_t> madeIn;            // and views that cross
  std::vector<Needs> needs;
  aten::LayoutAnalysis layout;
};

} // namespace

std::vector<GraphPart> cutFunction(func::FuncOp function,
                                   const DenseSet<Operation *> &starts,
                                   SymbolTable &symbols) {
  return Cutter(function, starts, symbols).run();
}

void callParts(sharding::CallOp call, ArrayRef<GraphPart> parts) {
  func::FuncOp function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  OpBuilder builder(call);
  IRMapping values; // of the function, as the graph has them
  unsigned operand = 0;
  for (BlockArgument arg : function.getArguments())
    if (parameterName(function, arg).empty())
      values.map(arg, call.getOperands()[operand++]);
  sharding::CallOp last;
  for (GraphPart part : parts) {
    SmallVector<Value> inputs;
    for (Value value : part.inputs)
      inputs.push_back(values.lookup(value));
    last = sharding::CallOp::create(
        builder, call.getLoc(), part.function.getResultTypes(),
        FlatSymbolRefAttr::get(part.function.getNameAttr()), inputs,
        call.getPathAttr(), call.getCheckpointAttr());
    for (auto [value, result] : llvm::zip(part.outputs, last.getResults()))
      values.map(value, result);
  }
  if (auto loss = call->getAttr(lossAttr))
    last->setAttr(lossAttr, loss);
  Operation *end = function.getBody().front().getTerminator();
  for (auto [old, value] : llvm::zip(call.getResults(), end->getOperands()))
    old.replaceAllUsesWith(values.lookup(value));
  call.erase();
}

} // namespace accel
