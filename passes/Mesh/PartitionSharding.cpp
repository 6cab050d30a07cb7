//===- PartitionSharding.cpp - Functions of one rank ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Layout.h"
#include "passes/Mesh/HeadExchange.h"
#include "passes/Mesh/OwnPart.h"
#include "passes/Mesh/Reshard.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace accel {
#define GEN_PASS_DEF_PARTITIONSHARDINGPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::mesh;
using accel::sharding::SpecAttr;

namespace {

/// The shardings of a function's arguments and results.
struct Signature {
  std::vector<ValueSharding> arguments, results;
};

/// Rewrites one block: each value becomes a rank's part of it.
class Rewriter {
public:
  Rewriter(sharding::MeshOp mesh, std::optional<Rotation> torchRing)
      : mesh(mesh), torchRing(torchRing) {}

  /// `arguments` say what the block's arguments are, `ends` what the operands
  /// of its terminator must be.
  void run(Block &block, ArrayRef<ValueSharding> arguments,
           ArrayRef<ValueSharding> ends) {
    Operation *terminator = block.getTerminator();
    for (OpOperand &end : terminator->getOpOperands())
      if (end.get().hasOneUse())
        leaving[end.get()] = ends[end.getOperandNumber()].partial;
    // Rules are of whole operands, so all of them come first.
    std::vector<std::pair<Operation *, std::optional<aten::ShardingRule>>> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back({&op, aten::shardingRule(&op)});
    for (auto [argument, sharding] : llvm::zip(block.getArguments(), arguments))
      setType(argument, sharding);
    for (auto &[op, itsRule] : ops) {
      rule = std::move(itsRule);
      rewrite(op);
    }
    OpBuilder b(terminator);
    for (OpOperand &end : terminator->getOpOperands())
      end.set(to(b, end.get(), ends[end.getOperandNumber()]));
    copyBeforeViews(block);
  }

  std::function<const Signature &(sharding::CallOp)> signatureOf;
  bool failed = false; // an error was emitted

private:
  /// What was gathered lies in the order of its dimensions, whatever the order
  /// of the parts was, and not every view of those is one of it.
  static void copyBeforeViews(Block &block) {
    aten::LayoutAnalysis layout;
    for (auto view : llvm::make_early_inc_range(block.getOps<aten::ViewOp>())) {
      auto type = cast<RankedTensorType>(view.getType());
      if (layout.viewStrides(view.getSelf(), type.getShape()))
        continue;
      OpBuilder b(view);
      view.getSelfMutable().assign(
          aten::CloneOp::create(b, view.getLoc(), view.getSelf()));
      layout.forget(view);
    }
  }

  const ValueSharding &of(Value value) {
    auto [it, isNew] = states.try_emplace(value);
    if (isNew)
      it->second = replicated(value.getType());
    return it->second;
  }

  void setType(Value value, const ValueSharding &sharding) {
    value.setType(localType(value.getType(), sharding));
    states[value] = sharding;
  }

  RankedTensorType localType(Type type, const ValueSharding &sharding) {
    return sharding::localType(toSpec(sharding, type.getContext()),
                               cast<RankedTensorType>(type), mesh);
  }

  Value to(OpBuilder &b, Value value, const ValueSharding &wanted) {
    return reshard(b, value.getLoc(), value, of(value), wanted,
                   [&](StringRef axis) { return mesh.axisSize(axis); });
  }

  void rewrite(Operation *op) {
    if (auto call = dyn_cast<sharding::CallOp>(op))
      return rewriteCall(call);
    std::vector<ValueSharding> decided;
    auto specs = op->getAttrOfType<ArrayAttr>(sharding::specsAttr);
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      decided.push_back(specs ? fromSpec(cast<SpecAttr>(specs[i]), 0)
                              : replicated(result.getType()));
    op->removeAttr(sharding::specsAttr);
    LocalForm form = formOf(op, decided);
    if (torchRing && ((isAttention(op) && !isInContext(op, form)) ||
                      op->hasAttr(aten::wholeScoresAttr))) {
      op->emitError("torch's context parallelism is planned for causal "
                    "attention by a fused kernel: 16 bits, no mask");
      failed = true;
    }
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(
          to(b, operand.get(), form.operands[operand.getOperandNumber()]));
    if (rule)
      useLocalSizes(op, form);
    for (auto [result, sharding] : llvm::zip(op->getResults(), form.results)) {
      setType(result, sharding);
    }
    SmallVector<Axes> sums;
    for (Value result : op->getResults())
      sums.push_back(leaving.lookup(result));
    std::vector<Uses> uses; // and not those that are made to compute them
    for (Value result : op->getResults())
      uses.push_back(usesOf(result));
    SmallVector<Value> made(op->getResults());
    if (const std::vector<FormAxes> forms = ownForms(form); !forms.empty())
      made = useOwnPart(op, mesh, forms, torchRing);
    for (auto [i, value] : llvm::enumerate(made)) {
      states[value] = form.results[i];
      settle(value, uses[i], decided[i], sums[i]);
    }
  }

  using Uses = SmallVector<OpOperand *>;
  static Uses usesOf(Value value) {
    Uses uses;
    for (OpOperand &use : value.getUses())
      uses.push_back(&use);
    return uses;
  }

  /// What the operator computes of it; whole operands where it has no rule.
  LocalForm formOf(Operation *op, ArrayRef<ValueSharding> decided) {
    SmallVector<const ValueSharding *> operands, results;
    for (Value operand : op->getOperands())
      of(operand); // no reference stays valid while values are added
    for (Value operand : op->getOperands())
      operands.push_back(&states.find(operand)->second);
    for (const ValueSharding &result : decided)
      results.push_back(&result);
    auto isWhole = [](const ValueSharding *value) {
      return value->isReplicated();
    };
    if (llvm::all_of(operands, isWhole) && llvm::all_of(results, isWhole))
      rule.reset();
    if (!rule) {
      LocalForm form;
      for (Value operand : op->getOperands())
        form.operands.push_back(replicated(operand.getType()));
      for (Value result : op->getResults())
        form.results.push_back(replicated(result.getType()));
      return form;
    }
    bool uncut = false;
    auto form = localForm(
        *rule, operands, results,
        [&](StringRef axis) { return mesh.axisSize(axis); },
        [&](const aten::Factor &factor) {
          const bool can = canCut(op, factor);
          uncut |= !can;
          return can;
        });
    if (uncut)
      remarkWhole(op, operands, form);
    return form;
  }

  /// What an operator on shards does about a factor besides computing, as far
  /// as it can be written with operators.
  static bool canCut(Operation *op, const aten::Factor &factor) {
    if (factor.kind == aten::FactorKind::Whole)
      return false;
    if (factor.form != aten::Form::None)
      return hasOwnPart(op, factor.form);
    return factor.combine == aten::Combine::Sum;
  }

  void remarkWhole(Operation *op, ArrayRef<const ValueSharding *> operands,
                   const LocalForm &form) {
    for (auto [i, has] : llvm::enumerate(operands))
      for (size_t d = 0; d < has->dims.size(); ++d)
        if (has->isSharded(d) && !form.operands[i].isSharded(d)) {
          op->emitRemark("dimension ")
              << d << " of operand " << i
              << " is gathered: the operator combines, or counts, along it";
          return;
        }
  }

  /// Of the operands that come in the mirrored order of ring attention, none
  /// has to be gathered.
  bool isInContext(Operation *op, const LocalForm &form) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      for (auto [d, dim] : llvm::enumerate(of(operand).dims))
        if (llvm::any_of(
                dim.axes,
                [](const sharding::ShardedBy &by) { return by.mirrored; }) &&
            !form.operands[i].isSharded(d))
          return false;
    return true;
  }

  /// The axes along which the operator counts or combines, by how it does.
  std::vector<FormAxes> ownForms(const LocalForm &form) {
    std::vector<FormAxes> forms;
    if (rule)
      for (auto [factor, axes] : llvm::zip(rule->factors, form.factors))
        if (factor.form != aten::Form::None && !axes.empty()) {
          FormAxes &of = forms.emplace_back();
          const bool consecutive = !axes.front().mirrored;
          of.form = factor.form == aten::Form::Context && consecutive
                        ? aten::Form::Heads
                        : factor.form;
          for (const sharding::ShardedBy &by : axes)
            of.axes.push_back(by.axis);
        }
    return forms;
  }

  /// Attributes that hold sizes, and operands that one rank alone adds.
  void useLocalSizes(Operation *op, const LocalForm &form) {
    Builder b(op->getContext());
    auto localShape = [&](unsigned result) {
      return localType(op->getResult(result).getType(), form.results[result]);
    };
    for (const aten::SizeAttribute &size : rule->sizes) {
      if (size.factor >= 0) {
        int64_t shards = 1;
        for (const sharding::ShardedBy &by : form.factors[size.factor])
          shards *= mesh.axisSize(by.axis);
        auto whole = op->getAttrOfType<IntegerAttr>(size.name);
        op->setAttr(size.name, b.getI64IntegerAttr(whole.getInt() / shards));
      } else if (size.dim >= 0) {
        op->setAttr(
            size.name,
            b.getI64IntegerAttr(localShape(size.result).getDimSize(size.dim)));
      } else {
        op->setAttr(size.name,
                    b.getDenseI64ArrayAttr(localShape(size.result).getShape()));
      }
    }
    if (form.results.empty() || form.results[0].partial.empty())
      return;
    OpBuilder before(op);
    for (unsigned operand : rule->once)
      op->setOperand(
          operand, sharding::FirstRankOp::create(
                       before, op->getLoc(), op->getOperand(operand).getType(),
                       op->getOperand(operand),
                       before.getStrArrayAttr(form.results[0].partial)));
  }

  /// Sums are reduced where they are made, so that forward and backward read
  /// one whole value, but for those that leave the function as sums.
  void settle(Value made, ArrayRef<OpOperand *> uses, ValueSharding wanted,
              const Axes &leaving) {
    wanted.partial.clear();
    for (StringRef axis : of(made).partial)
      if (llvm::is_contained(leaving, axis))
        wanted.partial.push_back(axis);
    OpBuilder b(made.getContext());
    b.setInsertionPointAfterValue(made);
    const Value settled = to(b, made, wanted);
    states[settled] = wanted;
    for (OpOperand *use : uses)
      use->set(settled);
  }

  void rewriteCall(sharding::CallOp call) {
    const Signature &signature = signatureOf(call);
    OpBuilder b(call);
    unsigned next = 0;
    for (OpOperand &operand : call->getOpOperands())
      operand.set(to(b, operand.get(), signature.arguments[next++]));
    call->removeAttr(sharding::specsAttr);
    for (auto [result, sharding] :
         llvm::zip(call.getResults(), signature.results)) {
      setType(result, sharding);
    }
  }

  sharding::MeshOp mesh;
  std::optional<Rotation> torchRing;
  std::optional<aten::ShardingRule> rule; // of the operation that is rewritten
  DenseMap<Value, ValueSharding> states;
  /// Axes over which a value leaves its function as a sum.
  DenseMap<Value, Axes> leaving;
};

struct PartitionShardingPass
    : accel::impl::PartitionShardingPassBase<PartitionShardingPass> {
  using Base::Base;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    if (!mesh)
      return;
    if (torchRing == "allgather" || torchRing == "alltoall") {
      rotation =
          torchRing == "alltoall" ? Rotation::AllToAll : Rotation::AllGather;
    } else if (!torchRing.empty()) {
      module.emitError("torch-ring is allgather or alltoall, not '")
          << torchRing << "'";
      return signalPassFailure();
    }
    llvm::StringMap<Signature> signatures;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        signatures[function.getName()] = signature(function);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        rewrite(function, mesh, signatures[function.getName()]);
    if (auto graph = sharding::findOnly<sharding::GraphOp>(module))
      rewrite(graph, mesh, signatures);
  }

  static Signature signature(func::FuncOp function) {
    Signature signature;
    auto add = [](Attribute spec, Type type, auto &to) {
      to.push_back(spec ? fromSpec(cast<SpecAttr>(spec), 0) : replicated(type));
    };
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      add(function.getArgAttr(i, sharding::specArgAttr),
          function.getArgumentTypes()[i], signature.arguments);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      add(function.getResultAttr(i, sharding::specArgAttr),
          function.getResultTypes()[i], signature.results);
    return signature;
  }

  void rewrite(func::FuncOp function, sharding::MeshOp mesh,
               const Signature &signature) {
    Rewriter rewriter(mesh, rotation);
    Block &block = function.getBody().front();
    const StringAttr name =
        StringAttr::get(function.getContext(), sharding::specArgAttr);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, name);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      function.removeResultAttr(i, name);
    rewriter.run(block, signature.arguments, signature.results);
    function.setFunctionType(
        FunctionType::get(function.getContext(), block.getArgumentTypes(),
                          block.getTerminator()->getOperandTypes()));
    if (rewriter.failed)
      signalPassFailure();
  }

  void rewrite(sharding::GraphOp graph, sharding::MeshOp mesh,
               const llvm::StringMap<Signature> &signatures) {
    Rewriter rewriter(mesh, rotation);
    Block &block = graph.getBody().front();
    std::vector<ValueSharding> arguments, ends;
    auto specs = graph->getAttrOfType<ArrayAttr>(sharding::argSpecsAttr);
    for (auto [i, argument] : llvm::enumerate(block.getArguments()))
      arguments.push_back(specs ? fromSpec(cast<SpecAttr>(specs[i]), 0)
                                : replicated(argument.getType()));
    graph->removeAttr(sharding::argSpecsAttr);
    auto module = graph->getParentOfType<mlir::ModuleOp>();
    llvm::StringMap<Signature> inputs; // without parameters
    rewriter.signatureOf = [&](sharding::CallOp call) -> const Signature & {
      auto [it, isNew] = inputs.try_emplace(call.getCallee());
      if (isNew) {
        const Signature &whole = signatures.find(call.getCallee())->second;
        auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
        for (unsigned i = 0; i < callee.getNumArguments(); ++i)
          if (!callee.getArgAttr(i, sharding::paramArgAttr))
            it->second.arguments.push_back(whole.arguments[i]);
        it->second.results = whole.results;
      }
      return it->second;
    };
    for (Value end : block.getTerminator()->getOperands())
      ends.push_back(replicated(end.getType()));
    rewriter.run(block, arguments, ends);
  }

  std::optional<Rotation> rotation; // of torch's ring attention
};

} // namespace
