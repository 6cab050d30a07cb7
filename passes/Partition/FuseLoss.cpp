//===- FuseLoss.cpp - Loss and gradients in one function --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Partition/FuseLoss.h"

#include "dialects/Aten/Aten.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Loss/LossHead.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;

namespace {

constexpr int64_t ofNone = -1, ofSeveral = -2;

class Fuser {
public:
  explicit Fuser(func::FuncOp joint)
      : joint(joint), builder(joint.getContext()) {}

  LogicalResult run() {
    for (Operation &op : joint.getBody().front().without_terminator())
      ops.push_back(&op);
    findPieces();
    findNeeded();
    order();
    build();
    joint.erase();
    return success();
  }

private:
  aten::BindingKind kindOf(BlockArgument arg) {
    return joint
        .getArgAttrOfType<aten::BindingAttr>(arg.getArgNumber(),
                                             aten::bindingAttr)
        .getKind();
  }

  /// The chunk that each operation depends on.
  void findPieces() {
    for (Operation *op : ops) {
      int64_t chunk = ofNone;
      if (auto own = op->getAttrOfType<IntegerAttr>(chunkAttr))
        chunk = own.getInt();
      for (Value operand : op->getOperands()) {
        auto found = chunkOf.find(operand.getDefiningOp());
        if (found == chunkOf.end() || found->second == ofNone)
          continue;
        chunk = chunk == ofNone || chunk == found->second ? found->second
                                                          : ofSeveral;
      }
      chunkOf[op] = chunk;
      count = std::max(count, chunk + 1);
    }
  }

  /// What depends on no chunk waits for the end, unless a chunk reads it.
  void findNeeded() {
    for (Operation *op : llvm::reverse(ops))
      if (chunkOf[op] >= 0 || needed.contains(op))
        for (Value operand : op->getOperands())
          if (Operation *maker = operand.getDefiningOp())
            needed.insert(maker);
  }

  void order() {
    std::vector<SmallVector<Operation *>> chunks(count);
    SmallVector<Operation *> first, last;
    for (Operation *op : ops) {
      const int64_t chunk = chunkOf[op];
      if (chunk >= 0)
        chunks[chunk].push_back(op);
      else
        (chunk == ofNone && needed.contains(op) ? first : last).push_back(op);
    }
    ordered = first;
    for (auto &chunk : chunks)
      ordered.append(chunk);
    ordered.append(last);
  }

  void build() {
    SmallVector<BlockArgument> arguments;
    for (auto kind : {aten::BindingKind::Input, aten::BindingKind::Param,
                      aten::BindingKind::Tangent})
      for (BlockArgument arg : joint.getArguments())
        if (kindOf(arg) == kind && !arg.use_empty())
          arguments.push_back(arg);
    Operation *end = joint.getBody().front().getTerminator();
    SmallVector<Type> inputs =
        llvm::map_to_vector(arguments, [](Value v) { return v.getType(); });
    SmallVector<Type> results(end->getOperandTypes());
    builder.setInsertionPoint(joint);
    std::string name =
        (joint.getName().drop_back(jointSuffix.size()) + backwardSuffix).str();
    auto function =
        func::FuncOp::create(builder, joint.getLoc(), name,
                             builder.getFunctionType(inputs, results));
    function.setPrivate();
    Block *body = function.addEntryBlock();
    IRMapping mapping;
    for (auto [i, arg] : llvm::enumerate(arguments)) {
      mapping.map(arg, body->getArgument(i));
      function.setArgAttrs(i, joint.getArgAttrDict(arg.getArgNumber()));
    }
    builder.setInsertionPointToStart(body);
    for (Operation *op : ordered) {
      Operation *copy = builder.clone(*op, mapping);
      copy->removeAttr(aten::saveAttr);
      copy->removeAttr(chunkAttr);
    }
    SmallVector<Value> values = llvm::map_to_vector(
        end->getOperands(), [&](Value v) { return mapping.lookup(v); });
    func::ReturnOp::create(builder, joint.getLoc(), values);
    for (unsigned i = 0; i < joint.getNumResults(); ++i)
      function.setResultAttrs(i, joint.getResultAttrDict(i));
  }

  func::FuncOp joint;
  OpBuilder builder;
  SmallVector<Operation *> ops, ordered;
  DenseMap<Operation *, int64_t> chunkOf;
  DenseSet<Operation *> needed;
  int64_t count = 0;
};

} // namespace

LogicalResult accel::fuseLoss(func::FuncOp joint) { return Fuser(joint).run(); }
