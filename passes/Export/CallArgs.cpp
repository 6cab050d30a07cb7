//===- CallArgs.cpp - Arguments of ATen calls in a plan ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/CallArgs.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Export/BuildSkeleton.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;

plan::Arg accel::intArg(int64_t value) {
  plan::Arg arg;
  arg.kind = plan::Arg::Kind::Int;
  arg.intValue = value;
  return arg;
}

plan::Arg accel::floatArg(double value) {
  plan::Arg arg;
  arg.kind = plan::Arg::Kind::Float;
  arg.floatValue = value;
  return arg;
}

plan::Arg accel::boolArg(bool value) {
  plan::Arg arg;
  arg.kind = plan::Arg::Kind::Bool;
  arg.intValue = value;
  return arg;
}

plan::Arg accel::intsArg(ArrayRef<int64_t> values) {
  plan::Arg arg;
  arg.kind = plan::Arg::Kind::Ints;
  arg.ints = values.vec();
  return arg;
}

plan::Arg accel::typeArg(plan::DType dtype) {
  plan::Arg arg;
  arg.kind = plan::Arg::Kind::Type;
  arg.dtype = dtype;
  return arg;
}

plan::Arg accel::textArg(llvm::StringRef text) {
  plan::Arg arg;
  arg.kind = plan::Arg::Kind::Text;
  arg.text = text.str();
  return arg;
}

static std::optional<plan::Arg> convertConstant(Attribute attr) {
  return llvm::TypeSwitch<Attribute, std::optional<plan::Arg>>(attr)
      .Case([](BoolAttr b) { return boolArg(b.getValue()); })
      .Case([](IntegerAttr i) { return intArg(i.getInt()); })
      .Case([](FloatAttr f) { return floatArg(f.getValueAsDouble()); })
      .Case([](DenseI64ArrayAttr list) { return intsArg(list.asArrayRef()); })
      .Case([](DenseBoolArrayAttr list) {
        plan::Arg arg;
        arg.kind = plan::Arg::Kind::Bools;
        for (bool value : list.asArrayRef())
          arg.ints.push_back(value);
        return arg;
      })
      .Case([](StringAttr text) {
        plan::Arg arg;
        arg.kind = plan::Arg::Kind::Text;
        arg.text = text.str();
        return arg;
      })
      .Case([](TypeAttr type) -> std::optional<plan::Arg> {
        if (auto dtype = toDType(type.getValue()))
          return typeArg(*dtype);
        return std::nullopt;
      })
      .Default([](Attribute) { return std::nullopt; });
}

std::optional<std::vector<plan::Arg>>
accel::convertArgs(const aten::Call &call,
                   llvm::function_ref<int(Value)> slotOf) {
  std::vector<plan::Arg> args;
  args.reserve(call.args.size());
  for (const aten::CallArg &given : call.args) {
    switch (given.kind) {
    case aten::CallArg::Kind::None:
      args.emplace_back();
      break;
    case aten::CallArg::Kind::Tensor:
      args.push_back(tensorArg(slotOf(given.tensors.front())));
      break;
    case aten::CallArg::Kind::Tensors: {
      plan::Arg &arg = args.emplace_back();
      arg.kind = plan::Arg::Kind::Tensors;
      for (Value tensor : given.tensors)
        arg.ints.push_back(tensor ? slotOf(tensor) : -1);
      break;
    }
    case aten::CallArg::Kind::Key: {
      plan::Arg &arg = args.emplace_back();
      arg.kind = plan::Arg::Kind::Key;
      arg.intValue = cast<IntegerAttr>(given.constant).getInt();
      break;
    }
    case aten::CallArg::Kind::Constant: {
      auto arg = convertConstant(given.constant);
      if (!arg)
        return std::nullopt;
      args.push_back(std::move(*arg));
      break;
    }
    }
  }
  return args;
}

std::optional<std::vector<plan::Arg>>
accel::exchangeArgs(Operation *op, llvm::function_ref<int(Value)> slotOf) {
  std::vector<plan::Arg> args;
  for (Value operand : op->getOperands())
    args.push_back(tensorArg(slotOf(operand)));
  auto add = [&](ArrayRef<int64_t> numbers, ArrayRef<StringRef> axes) {
    for (int64_t number : numbers)
      args.push_back(intArg(number));
    for (StringRef axis : axes)
      args.push_back(textArg(axis));
    return true;
  };
  auto namesOf = [](ArrayAttr axes) {
    return llvm::to_vector(axes.getAsValueRange<StringAttr>());
  };
  const bool known =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<sharding::AllGatherOp, sharding::ReduceScatterOp,
                sharding::SliceOp>([&](auto part) {
            return add({static_cast<int64_t>(part.getDim()),
                        static_cast<int64_t>(part.getPieces()),
                        part.getMirrored() ? 1 : 0},
                       {part.getAxis()});
          })
          .Case([&](sharding::AllReduceOp sum) {
            return add({static_cast<int64_t>(sum.getKind())},
                       namesOf(sum.getAxes()));
          })
          .Case([&](sharding::PermuteOp permute) {
            return add({static_cast<int64_t>(permute.getShift())},
                       {permute.getAxis()});
          })
          .Case([&](sharding::FirstRankOp once) {
            return add({}, namesOf(once.getAxes()));
          })
          .Case([&](sharding::AllToAllOp exchange) {
            return add({static_cast<int64_t>(exchange.getSplit()),
                        static_cast<int64_t>(exchange.getConcat())},
                       {exchange.getAxis()});
          })
          .Case([&](sharding::ExpertEndsOp ends) {
            return add({static_cast<int64_t>(ends.getRows())},
                       namesOf(ends.getAxes()));
          })
          .Case<sharding::DispatchOp, sharding::CombineOp>([&](auto rows) {
            return add({cast<RankedTensorType>(rows.getType()).getDimSize(0)},
                       namesOf(rows.getAxes()));
          })
          .Case([&](sharding::CoordinateOp place) {
            return add({static_cast<int64_t>(place.getStep())},
                       {place.getAxis()});
          })
          .Default(false);
  if (!known)
    return std::nullopt;
  return args;
}
