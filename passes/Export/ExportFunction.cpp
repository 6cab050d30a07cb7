//===- ExportFunction.cpp - A function of the plan --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/ExportFunction.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Overwriting.h"

#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/InPlace.h"
#include "dialects/Aten/Layout.h"
#include "dialects/Aten/Lora.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/CallArgs.h"
#include "passes/Export/StorageReuse.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace accel;

namespace {

class FunctionExporter {
public:
  FunctionExporter(func::FuncOp function, ArrayRef<GradientMode> modes,
                   aten::Device device, Reuse reuse,
                   SmallVectorImpl<Operation *> *makers)
      : function(function), modes(modes), device(device), makers(makers) {
    if (reuse == Reuse::AnyDead)
      storages.emplace(function, layout);
    if (auto mesh = sharding::findOnly<sharding::MeshOp>(
            function->getParentOfType<mlir::ModuleOp>()))
      for (auto axis : mesh.getAxes().getAsRange<sharding::AxisAttr>())
        axes.resize(axis.getName().str(), axis.getSize());
  }

  FailureOr<plan::Function> run() {
    result.name = function.getName().str();
    addArguments();
    if (failed(addResults()))
      return failure();
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (failed(addOperation(&op)))
        return failure();
      if (makers)
        makers->resize(result.instructions.size(), &op);
    }
    for (auto [value, destination] : destinations)
      if (isa<BlockArgument>(value))
        copyInto(destination, slots.lookup(value), {});
    for (Value output : outputs)
      result.outputs.push_back(slots.lookup(output));
    addFrees();
    return std::move(result);
  }

private:
  struct Destination {
    int slot = -1;
    GradientMode mode;
  };

  int addSlot(plan::DType dtype, ArrayRef<int64_t> shape, int base = -1) {
    int index = static_cast<int>(result.slots.size());
    plan::Slot slot;
    slot.dtype = dtype;
    slot.shape = shape.vec();
    slot.base = base < 0 ? index : result.slots[base].base;
    result.slots.push_back(std::move(slot));
    return index;
  }

  int addSlot(Value value, int base = -1) {
    auto type = cast<RankedTensorType>(value.getType());
    auto dtype = toDType(type.getElementType());
    assert(dtype && "the dialect's element types are the plan's");
    return slots[value] = addSlot(*dtype, type.getShape(), base);
  }

  void addArguments() {
    for (BlockArgument arg : function.getArguments()) {
      int slot = addSlot(arg);
      auto name = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                        sharding::paramArgAttr);
      (name ? result.params : result.inputs).push_back(slot);
      if (name)
        result.paramNames.push_back(name.str());
    }
  }

  LogicalResult addResults() {
    Operation *end = function.getBody().front().getTerminator();
    size_t gradient = 0;
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      auto binding =
          function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
      auto kind = binding ? binding.getKind() : aten::BindingKind::Output;
      if (kind == aten::BindingKind::ParamGrad) {
        if (gradient == modes.size())
          return function.emitOpError("has more parameter gradients than the ")
                 << modes.size() << " modes given";
        auto type = cast<RankedTensorType>(value.getType());
        const GradientMode &mode = modes[gradient++];
        int slot = addSlot(mode.dtype, type.getShape());
        result.gradients.push_back(slot);
        auto name =
            function.getResultAttrOfType<StringAttr>(i, sharding::paramArgAttr);
        result.gradientNames.push_back(name ? name.str() : "");
        addDestination(value, {slot, mode});
        continue;
      }
      if (kind != aten::BindingKind::Saved && !layout.isContiguous(value))
        return function.emitOpError("result ")
               << i << " is not contiguous; its producer needs an aten.clone";
      outputs.push_back(value);
    }
    if (gradient != modes.size())
      return function.emitOpError("has ")
             << gradient << " parameter gradients, but " << modes.size()
             << " modes were given";
    return success();
  }

  /// A gradient that is a sum of matmuls (the head's, chunk by chunk of the
  /// loss) is added up where it goes, each matmul as soon as it is made.
  void addDestination(Value value, Destination destination) {
    SmallVector<Value> products;
    SmallVector<Operation *> sums;
    if (!findProducts(value, products, sums) || sums.empty()) {
      destinations.push_back({value, destination});
      return;
    }
    skipped.insert_range(sums);
    llvm::sort(products, [](Value a, Value b) {
      return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
    });
    for (Value product : products) {
      destinations.push_back({product, destination});
      destination.mode.accumulate = true;
    }
  }

  bool findProducts(Value value, SmallVector<Value> &products,
                    SmallVector<Operation *> &sums) {
    if (!value.hasOneUse())
      return false;
    if (value.getDefiningOp<aten::MmOp>()) {
      products.push_back(value);
      return true;
    }
    auto sum = value.getDefiningOp<aten::AddTensorOp>();
    if (!sum)
      return false;
    sums.push_back(sum);
    return llvm::all_of(sum->getOperands(), [&](Value part) {
      return part.getType() == value.getType() &&
             findProducts(part, products, sums);
    });
  }

  //===--------------------------------------------------------------------===//
  // Instructions
  //===--------------------------------------------------------------------===//

  plan::Instruction &addInstruction(std::string op, std::vector<plan::Arg> args,
                                    const std::string &where) {
    plan::Instruction instruction;
    instruction.op = std::move(op);
    instruction.args = std::move(args);
    instruction.where = where;
    result.instructions.push_back(std::move(instruction));
    return result.instructions.back();
  }

  LogicalResult addOperation(Operation *op) {
    if (skipped.contains(op))
      return success();
    auto aten = dyn_cast<aten::AtenOpInterface>(op);
    if (!aten) {
      auto await = dyn_cast<schedule::AwaitExchangeOp>(op);
      if (failed(await ? addAwait(await) : addExchange(op)))
        return failure();
      copyGradients(op);
      return success();
    }
    if (auto view = dyn_cast<aten::ViewOp>(op))
      if (!layout.viewStrides(view.getSelf(), view.getSize()))
        return view.emitOpError("cannot view ")
               << view.getSelf().getType() << " as " << view.getType()
               << " without a copy, because of its strides";
    SmallVector<Destination> own = destinationsOf(op);
    if (own.size() == 1 && op->getResult(0).hasOneUse()) {
      if (auto mm = dyn_cast<aten::MmOp>(op); mm && writeProduct(mm, own[0]))
        return success();
      if (auto embedding = dyn_cast<aten::EmbeddingDenseBackwardOp>(op);
          embedding && writeEmbedding(embedding, own[0]))
        return success();
    }
    if (Value self = aten::overwrittenOperand(op))
      addProduct(aten, self);
    else if (failed(addCall(aten)))
      return failure();
    copyGradients(op);
    return success();
  }

  /// A matmul that adds to `self`, whose storage the sum takes over.
  void addProduct(aten::AtenOpInterface sum, Value self) {
    const auto operand = [&](Value v) { return tensorArg(slots.lookup(v)); };
    plan::Arg out = operand(self), alpha = intArg(1);
    if (auto scaled = dyn_cast<aten::AlphaAddmmOp>(*sum))
      alpha = floatArg(scaled.getAlpha().convertToDouble());
    addCost(addInstruction("aten::addmm.out",
                           {out, operand(sum->getOperand(1)),
                            operand(sum->getOperand(2)), intArg(1), alpha, out},
                           aten::modulePath(sum->getLoc())),
            sum);
    slots[sum->getResult(0)] = slots.lookup(self);
  }

  /// What `op` made goes where it is a gradient.
  void copyGradients(Operation *op) {
    for (auto [value, destination] : destinations)
      if (value.getDefiningOp() == op)
        copyInto(destination, slots.lookup(value),
                 aten::modulePath(op->getLoc()));
  }

  LogicalResult addCall(aten::AtenOpInterface aten) {
    Operation *op = aten;
    auto call = aten::buildCall(op);
    if (failed(call))
      return failure();
    auto args = convertArgs(*call, [&](Value v) { return slots.lookup(v); });
    if (!args)
      return op->emitOpError("has an argument that a plan cannot hold");
    if (auto axes = op->getAttrOfType<ArrayAttr>(aten::ownKeyAttr))
      for (plan::Arg &arg : *args)
        if (arg.kind == plan::Arg::Kind::Key)
          for (auto axis : axes.getAsRange<StringAttr>())
            arg.axes.push_back(axis.str());
    plan::Instruction &instruction = addInstruction(
        call->name, std::move(*args), aten::modulePath(op->getLoc()));
    addCost(instruction, aten);
    if (aten.getCategory() == aten::Category::Opaque)
      instruction.kind = plan::Instruction::Kind::Opaque;
    else if (overwrite(op, instruction))
      return success();
    bool isView = aten.getCategory() == aten::Category::View;
    instruction.results.assign(call->numResults, -1);
    for (auto [value, position] :
         llvm::zip(op->getResults(), call->positions)) {
      if (value.use_empty()) {
        if (!isView)
          instruction.workspaceBytes +=
              plan::alignedBytes(aten::tensorBytes(value.getType()));
        continue;
      }
      int base = isView ? slots.lookup(aten::viewedOperand(
                              op, cast<OpResult>(value).getResultNumber()))
                        : -1;
      instruction.results[position] = addSlot(value, base);
    }
    return success();
  }

  /// `call`, which is `op`, writes over an operand that is not read again.
  bool overwrite(Operation *op, plan::Instruction &call) {
    const plan::OverwritingForm *form =
        storages ? plan::overwritingForm(call.op) : nullptr;
    if (!form || call.args.size() != form->arguments)
      return false;
    // A number that is a tensor is a finite one of f64, which would make
    // integers floating.
    if (form->wrapsNumber &&
        (!isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())) ||
         !std::isfinite(call.args[1].floatValue)))
      return false;
    Value operand = storages->overwritten(op, form->overFirst);
    if (!operand)
      return false;
    const int slot = slots.lookup(operand);
    call.op = form->form;
    if (form->wrapsNumber) {
      plan::Arg &number = call.args[1];
      if (number.kind == plan::Arg::Kind::Int)
        number.floatValue = static_cast<double>(number.intValue);
      number.kind = plan::Arg::Kind::Wrapped;
      call.workspaceBytes = 0; // of the tensor that the operator makes of it
    }
    if (!form->overFirst)
      call.args.push_back(tensorArg(slot));
    slots[op->getResult(0)] = slot;
    return true;
  }

  /// What ranks exchange, or where a rank stands.
  LogicalResult addExchange(Operation *op) {
    auto args = exchangeArgs(op, [&](Value v) { return slots.lookup(v); });
    if (!args)
      return op->emitOpError("is no aten operation and cannot be in a plan");
    const bool starts = op->hasAttr(schedule::startAttr);
    const std::string name = "sharding::" + op->getName().stripDialect().str() +
                             (starts ? ".start" : "");
    plan::Instruction &instruction =
        addInstruction(name, std::move(*args), aten::modulePath(op->getLoc()));
    instruction.results = {addSlot(op->getResult(0))};
    // Copies of what the rank has; a collective's seconds are ExchangeCost.h's.
    if (isa<sharding::SliceOp, sharding::FirstRankOp>(op))
      instruction.movedBytes =
          2.0 * aten::tensorBytes(op->getResult(0).getType());
    // Rows are put into the experts' order; of what has a place for a bound of
    // them, as many as an even share is.
    if (auto dispatch = dyn_cast<sharding::DispatchOp>(op))
      instruction.movedBytes =
          2.0 * aten::tensorBytes(dispatch.getValue().getType());
    if (auto combine = dyn_cast<sharding::CombineOp>(op))
      instruction.movedBytes =
          2.0 * aten::tensorBytes(combine.getResult().getType());
    if (starts)
      return addBuffers(op, instruction);
    instruction.workspaceBytes = exchangeWorkspace(op);
    return success();
  }

  /// What is under way holds its buffers until it is awaited.
  LogicalResult addBuffers(Operation *op, plan::Instruction &instruction) {
    auto exchange = plan::exchangeOf(instruction);
    if (!exchange)
      return op->emitOpError("cannot be started");
    const plan::Slot value = result.slots[exchange->value];
    for (int64_t size : plan::exchangeBuffers(
             *exchange, value.shape, axes.ranks(axes.set(exchange->axes)),
             layout.isContiguous(op->getOperand(0)),
             device == aten::Device::Cpu))
      instruction.results.push_back(addSlot(value.dtype, {size}));
    started[op] = instruction.results;
    return success();
  }

  /// The awaited value is the started one, in its storage.
  LogicalResult addAwait(schedule::AwaitExchangeOp await) {
    auto made = started.find(await.getExchange().getDefiningOp());
    if (made == started.end())
      return await.emitOpError("awaits what is not started");
    std::vector<plan::Arg> args;
    for (int slot : made->second)
      args.push_back(tensorArg(slot));
    if (await.getValue())
      args.push_back(tensorArg(slots.lookup(await.getValue())));
    addInstruction("sharding::await", std::move(args),
                   aten::modulePath(await.getLoc()));
    slots[await.getResult()] = made->second.front();
    return success();
  }

  /// Collectives lay ranks' parts one behind the other: where they do not lie
  /// so in the whole, the buffer is a copy of what is exchanged
  /// (torch/distributed/_functional_collectives.py), but for a few blocks on
  /// CPUs, which accel-run sends one by one. What is sent lies in order.
  int64_t exchangeWorkspace(Operation *op) {
    int64_t bytes = 0;
    auto add = [&](Value copied) {
      bytes += plan::alignedBytes(aten::tensorBytes(copied.getType()));
    };
    auto addOthers = [&](sharding::ReduceScatterOp scatter) {
      // accel-run sums what other ranks send (ExchangeCall.cpp).
      bytes +=
          plan::alignedBytes(aten::tensorBytes(scatter.getValue().getType()) -
                             aten::tensorBytes(scatter.getResult().getType()));
    };
    auto inParts = [this](auto part, Value whole) {
      auto type = cast<RankedTensorType>(whole.getType());
      const int64_t blocks = plan::blocksOf(
          type.getShape().vec(), static_cast<int64_t>(part.getDim()),
          static_cast<int64_t>(part.getPieces()));
      return blocks > (device == aten::Device::Cpu ? plan::mostMessages : 1);
    };
    if (auto gather = dyn_cast<sharding::AllGatherOp>(op)) {
      if (inParts(gather, gather.getResult()))
        add(gather.getResult());
    } else if (auto scatter = dyn_cast<sharding::ReduceScatterOp>(op)) {
      if (inParts(scatter, scatter.getValue()))
        add(scatter.getValue());
      if (device == aten::Device::Cpu)
        addOthers(scatter);
    } else if (auto exchange = dyn_cast<sharding::AllToAllOp>(op)) {
      add(exchange.getValue());
    } else if (auto dispatch = dyn_cast<sharding::DispatchOp>(op)) {
      add(dispatch.getResult()); // in the order of the ranks
    } else if (auto combine = dyn_cast<sharding::CombineOp>(op)) {
      add(combine.getValue());
    }
    if (op->getNumOperands() &&
        !isa<sharding::AllReduceOp, sharding::FirstRankOp>(op) &&
        !layout.isContiguous(op->getOperand(0)))
      add(op->getOperand(0));
    return bytes;
  }

  void addCost(plan::Instruction &instruction, aten::AtenOpInterface aten) {
    aten::Cost cost = aten.getCost();
    instruction.flops = cost.flops;
    instruction.movedBytes = cost.bytes;
    instruction.workspaceBytes = aten.getWorkspaceBytes(device);
  }

  //===--------------------------------------------------------------------===//
  // Gradients
  //===--------------------------------------------------------------------===//

  SmallVector<Destination> destinationsOf(Operation *op) {
    SmallVector<Destination> own;
    for (auto &[value, destination] : destinations)
      if (value.getDefiningOp() == op)
        own.push_back(destination);
    return own;
  }

  /// A matmul that is a gradient writes, or adds to, its destination.
  bool writeProduct(aten::MmOp mm, const Destination &destination) {
    plan::DType from =
        *toDType(cast<RankedTensorType>(mm.getType()).getElementType());
    auto tensor = [&](Value v) { return tensorArg(slots.lookup(v)); };
    plan::Arg out = tensorArg(destination.slot);
    plan::Instruction *instruction = nullptr;
    std::string where = aten::modulePath(mm.getLoc());
    if (from != destination.mode.dtype) {
      // Only CUDA multiplies bf16 and fp16 into fp32.
      if (device != aten::Device::Cuda || destination.mode.accumulate ||
          destination.mode.dtype != plan::DType::F32)
        return false;
      instruction = &addInstruction("aten::mm.dtype_out",
                                    {tensor(mm.getSelf()), tensor(mm.getMat2()),
                                     typeArg(destination.mode.dtype), out},
                                    where);
    } else if (destination.mode.accumulate) {
      instruction =
          &addInstruction("aten::addmm.out",
                          {out, tensor(mm.getSelf()), tensor(mm.getMat2()),
                           intArg(1), intArg(1), out},
                          where);
    } else {
      instruction = &addInstruction(
          "aten::mm.out", {tensor(mm.getSelf()), tensor(mm.getMat2()), out},
          where);
    }
    addCost(*instruction, mm);
    return true;
  }

  /// Rows are added to the destination one after another, as
  /// embedding_dense_backward does, without a table of its own. In 16 bits the
  /// operator itself is more exact on CUDA, so only 32 bits and more go here.
  bool writeEmbedding(aten::EmbeddingDenseBackwardOp op,
                      const Destination &destination) {
    auto grad = cast<RankedTensorType>(op.getGradOutput().getType());
    plan::DType dtype = *toDType(grad.getElementType());
    int64_t width = grad.getShape().back();
    int64_t rows = grad.getNumElements() / std::max<int64_t>(width, 1);
    if (dtype != destination.mode.dtype || plan::itemSize(dtype) < 4 ||
        static_cast<int64_t>(op.getPaddingIdx()) >= 0 ||
        !layout.viewStrides(op.getGradOutput(), {rows, width}) ||
        !layout.viewStrides(op.getIndices(), {rows}))
      return false;
    std::string where = aten::modulePath(op.getLoc());
    int source = flatten(op.getGradOutput(), {rows, width}, where);
    int index = flatten(op.getIndices(), {rows}, where);
    if (!destination.mode.accumulate)
      addInstruction("aten::zero_", {tensorArg(destination.slot)}, where)
          .movedBytes = aten::tensorBytes(op.getType());
    plan::Instruction &add =
        addInstruction("aten::index_add_",
                       {tensorArg(destination.slot), intArg(0),
                        tensorArg(index), tensorArg(source), intArg(1)},
                       where);
    add.flops = grad.getNumElements();
    add.movedBytes = 3.0 * aten::tensorBytes(grad);
    return true;
  }

  int flatten(Value value, ArrayRef<int64_t> shape, const std::string &where) {
    int slot = slots.lookup(value);
    if (cast<RankedTensorType>(value.getType()).getShape() == shape)
      return slot;
    int view = addSlot(result.slots[slot].dtype, shape, slot);
    addInstruction("aten::view", {tensorArg(slot), intsArg(shape)}, where)
        .results.push_back(view);
    return view;
  }

  void copyInto(const Destination &destination, int slot,
                const std::string &where) {
    bool add = destination.mode.accumulate;
    std::vector<plan::Arg> args = {tensorArg(destination.slot),
                                   tensorArg(slot)};
    const plan::Slot &from = result.slots[slot];
    const plan::Slot &to = result.slots[destination.slot];
    // ATen would cast all of it first.
    const bool cast = add && from.dtype != to.dtype;
    if (!cast)
      args.push_back(add ? intArg(1) : boolArg(false));
    plan::Instruction &instruction = addInstruction(cast  ? "accel::add_"
                                                    : add ? "aten::add_.Tensor"
                                                          : "aten::copy_",
                                                    std::move(args), where);
    int64_t numel = 1;
    for (int64_t size : to.shape)
      numel *= size;
    instruction.flops = add ? numel : 0;
    instruction.movedBytes =
        numel * (plan::itemSize(from.dtype) +
                 plan::itemSize(to.dtype) * (add ? 2.0 : 1.0));
  }

  //===--------------------------------------------------------------------===//
  // Frees
  //===--------------------------------------------------------------------===//

  void addFrees() {
    std::vector<bool> kept(result.slots.size(), false);
    for (const auto *list :
         {&result.params, &result.gradients, &result.outputs})
      for (int slot : *list)
        kept[slot] = true;
    for (plan::Instruction &instruction : llvm::reverse(result.instructions)) {
      auto use = [&](int slot) {
        if (slot < 0 || kept[slot])
          return;
        kept[slot] = true; // this is the last use; earlier ones are not
        instruction.frees.push_back(slot);
      };
      for (const plan::Arg &arg : instruction.args) {
        if (arg.kind == plan::Arg::Kind::Tensor)
          use(arg.slot);
        if (arg.kind == plan::Arg::Kind::Tensors)
          for (int64_t slot : arg.ints)
            use(static_cast<int>(slot));
      }
      for (int slot : instruction.results)
        use(slot);
      llvm::sort(instruction.frees);
    }
  }

  func::FuncOp function;
  ArrayRef<GradientMode> modes;
  aten::Device device;
  SmallVectorImpl<Operation *> *makers;
  plan::Mesh axes;
  aten::LayoutAnalysis layout;
  std::optional<StorageReuse> storages;
  plan::Function result;
  DenseMap<Value, int> slots;
  SmallVector<Value> outputs;
  SmallVector<std::pair<Value, Destination>> destinations;
  DenseSet<Operation *> skipped;                   // sums of matmuls
  DenseMap<Operation *, std::vector<int>> started; // slots that they make
};

} // namespace

FailureOr<plan::Function>
accel::exportFunction(func::FuncOp function, ArrayRef<GradientMode> gradients,
                      aten::Device device, Reuse reuse,
                      SmallVectorImpl<Operation *> *makers) {
  return FunctionExporter(function, gradients, device, reuse, makers).run();
}

FailureOr<plan::Function> accel::exportFunction(func::FuncOp function,
                                                aten::Device device) {
  SmallVector<GradientMode> modes;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto binding =
        function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
    if (!binding || binding.getKind() != aten::BindingKind::ParamGrad)
      continue;
    auto destination = function.getResultAttrOfType<schedule::DestinationAttr>(
        i, schedule::destinationAttr);
    auto dtype = destination ? toDType(destination.getDtype()) : std::nullopt;
    if (!dtype)
      return function.emitOpError("'")
             << function.getName() << "' leaves a parameter's gradient, result "
             << i << ", "
             << (destination ? "in a dtype that a plan does not have"
                             : "without a schedule.destination; "
                               "lower-to-schedule says where gradients go");
    modes.push_back({destination.getAccumulate(), *dtype});
  }
  return exportFunction(function, modes, device, Reuse::AnyDead);
}
