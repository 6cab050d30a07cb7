//===- Schema.cpp - An operation as a call of ATen --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Schema.h"

#include "dialects/Aten/Aten.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <memory>
#include <optional>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// Splits at the commas outside of brackets.
static SmallVector<StringRef> splitArgs(StringRef text) {
  SmallVector<StringRef> args;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[')
      ++depth;
    if (i < text.size() && text[i] == ']')
      --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (StringRef arg = text.slice(begin, i).trim(); !arg.empty())
        args.push_back(arg);
      begin = i + 1;
    }
  }
  return args;
}

static Attribute parseConstant(Builder &b, StringRef text) {
  if (text == "true" || text == "false")
    return b.getBoolAttr(text == "true");
  if (text.consume_front("[")) {
    text.consume_back("]");
    SmallVector<bool> bools;
    SmallVector<int64_t> ints;
    for (StringRef item : splitArgs(text)) {
      int64_t value = 0;
      if (item == "true" || item == "false")
        bools.push_back(item == "true");
      else if (!item.getAsInteger(10, value))
        ints.push_back(value);
      else
        return {};
    }
    return bools.empty() ? Attribute(b.getDenseI64ArrayAttr(ints))
                         : Attribute(b.getDenseBoolArrayAttr(bools));
  }
  int64_t integer = 0;
  if (!text.getAsInteger(10, integer))
    return b.getI64IntegerAttr(integer);
  double number = 0;
  if (!text.getAsDouble(number))
    return b.getF64FloatAttr(number);
  return {};
}

static CallArg tensorArg(Value value) {
  return {CallArg::Kind::Tensor, {value}, {}};
}

/// Operands from `index` on, as a list in which they stand at the positions of
/// the attribute `name`.
static FailureOr<CallArg> placedList(Operation *op, unsigned index,
                                     StringRef name) {
  auto attr = op->getInherentAttr(name);
  auto places =
      attr ? dyn_cast_or_null<DenseI64ArrayAttr>(*attr) : DenseI64ArrayAttr();
  if (!places || index + places.size() != op->getNumOperands())
    return failure();
  CallArg arg;
  arg.kind = CallArg::Kind::Tensors;
  for (auto [i, place] : llvm::enumerate(places.asArrayRef())) {
    arg.tensors.resize(place);
    arg.tensors.push_back(op->getOperand(index + i));
  }
  return arg;
}

/// Operand group `index` of the definition. No operation of a fixed schema has
/// more than one group of variable length, so groups are operands.
static FailureOr<CallArg> operandArg(Operation *op, StringRef text) {
  unsigned index = 0;
  if (auto [number, name] = text.split('*'); !name.empty()) {
    if (number.getAsInteger(10, index))
      return failure();
    return placedList(op, index, name);
  }
  bool list = text.consume_back("*");
  bool optional = text.consume_back("?");
  if (text.getAsInteger(10, index))
    return failure();
  CallArg arg;
  if (list) {
    arg.kind = CallArg::Kind::Tensors;
    arg.tensors.assign(op->operand_begin() + index, op->operand_end());
    return arg;
  }
  if (index >= op->getNumOperands())
    return optional ? FailureOr<CallArg>(CallArg())
                    : FailureOr<CallArg>(failure());
  return tensorArg(op->getOperand(index));
}

/// The length of the sequence that the attention's query or key holds.
static FailureOr<CallArg> lengthArg(Operation *op, StringRef text) {
  auto [name, place] = text.split('.');
  int64_t dim = 2;
  if (!place.empty() && place.getAsInteger(10, dim))
    return failure();
  const bool ofQuery = name == "query";
  Value value =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case<FlashAttentionBackwardOp, CudnnAttentionBackwardOp,
                WindowAttentionOp, WindowAttentionBackwardOp>(
              [&](auto attention) {
                return ofQuery ? attention.getQuery() : attention.getKey();
              })
          .Default(Value());
  if (!value)
    return failure();
  int64_t length = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  return CallArg{CallArg::Kind::Constant,
                 {},
                 Builder(op->getContext()).getI64IntegerAttr(length)};
}

static FailureOr<CallArg> parseArg(Operation *op, StringRef text) {
  Builder b(op->getContext());
  if (text == "none")
    return CallArg{};
  if (text.consume_front("%"))
    return operandArg(op, text);
  if (text.consume_front("#"))
    return lengthArg(op, text);
  Attribute constant;
  const bool isKey = text.consume_front("@");
  if (isKey || text.consume_front("$")) {
    auto attr = op->getInherentAttr(text);
    if (!attr)
      return failure();
    constant = *attr;
    if (!constant)
      return CallArg{};
  } else {
    constant = parseConstant(b, text);
  }
  if (!constant)
    return failure();
  return CallArg{
      isKey ? CallArg::Kind::Key : CallArg::Kind::Constant, {}, constant};
}

/// Arguments of an opaque operator. `positions` takes each input's place among
/// the tensors of the call.
static void opaqueArgs(ArrayAttr args, ValueRange inputs, Call &call,
                       SmallVectorImpl<int64_t> &positions) {
  Builder b(args.getContext());
  int64_t count = 0;
  positions.assign(inputs.size(), -1);
  auto input = [&](StringAttr text) -> Value {
    unsigned index = 0;
    if (text.getValue().drop_front().getAsInteger(10, index))
      return {}; // "none"
    positions[index] = count++;
    return inputs[index];
  };
  for (Attribute arg : args) {
    auto text = dyn_cast<StringAttr>(arg);
    if (auto list = dyn_cast<ArrayAttr>(arg)) {
      CallArg tensors;
      tensors.kind = CallArg::Kind::Tensors;
      for (auto item : list.getAsRange<StringAttr>())
        tensors.tensors.push_back(input(item));
      call.args.push_back(std::move(tensors));
    } else if (!text) {
      call.args.push_back({CallArg::Kind::Constant, {}, arg});
    } else if (text.getValue().starts_with("=")) {
      call.args.push_back({CallArg::Kind::Constant,
                           {},
                           b.getStringAttr(text.getValue().drop_front())});
    } else if (Value value = input(text)) {
      call.args.push_back(tensorArg(value));
    } else {
      call.args.push_back({});
    }
  }
}

/// The forward's arguments, the word "backward", the gradients, and the
/// positions of the wanted inputs.
static void opaqueBackwardArgs(OpaqueBackwardOp op, Call &call) {
  Builder b(op.getContext());
  SmallVector<int64_t> positions, wanted;
  opaqueArgs(op.getArgs(), op.getInputs(), call, positions);
  for (int64_t index : op.getNeeded())
    wanted.push_back(positions[index]);
  CallArg grads;
  grads.kind = CallArg::Kind::Tensors;
  grads.tensors.assign(op.getGrads().begin(), op.getGrads().end());
  call.args.push_back(
      {CallArg::Kind::Constant, {}, b.getStringAttr("backward")});
  call.args.push_back(std::move(grads));
  call.args.push_back(
      {CallArg::Kind::Constant, {}, b.getDenseI64ArrayAttr(wanted)});
}

/// Reads "9" or "3 by output_mask" behind a schema's arrow.
static LogicalResult parseResults(Operation *op, StringRef text, Call &call) {
  auto [number, by] = text.trim().split(' ');
  if (number.getAsInteger(10, call.numResults))
    return failure();
  if (by.empty())
    return success();
  if (!by.consume_front("by "))
    return failure();
  auto attr = op->getInherentAttr(by.trim());
  auto mask =
      attr ? dyn_cast_or_null<DenseBoolArrayAttr>(*attr) : DenseBoolArrayAttr();
  if (!mask)
    return failure();
  call.positions.clear();
  for (auto [i, wanted] : llvm::enumerate(mask.asArrayRef()))
    if (wanted)
      call.positions.push_back(i);
  return success(call.positions.size() == op->getNumResults());
}

namespace {

/// A schema cut into its parts.
struct SchemaText {
  explicit SchemaText(StringRef schema) {
    auto [before, rest] = schema.split('(');
    name = before;
    if (auto arrow = rest.rfind("->"); arrow != StringRef::npos) {
      results = rest.drop_front(arrow + 2);
      rest = rest.take_front(arrow).rtrim();
    }
    rest.consume_back(")");
    args = splitArgs(rest);
  }

  StringRef name;
  std::optional<StringRef> results;
  SmallVector<StringRef> args;
};

/// Schemas are literals of the definitions, so that each is cut once.
const SchemaText &partsOf(StringRef schema) {
  thread_local llvm::DenseMap<const char *, std::unique_ptr<SchemaText>> known;
  std::unique_ptr<SchemaText> &text = known[schema.data()];
  if (!text)
    text = std::make_unique<SchemaText>(schema);
  return *text;
}

} // namespace

FailureOr<Call> aten::buildCall(Operation *op) {
  Call call;
  call.numResults = op->getNumResults();
  for (unsigned i = 0; i < call.numResults; ++i)
    call.positions.push_back(i);
  if (auto opaque = dyn_cast<OpaqueOp>(op)) {
    call.name = opaque.getCallee().str();
    SmallVector<int64_t> positions;
    opaqueArgs(opaque.getArgs(), opaque.getInputs(), call, positions);
    return call;
  }
  if (auto opaque = dyn_cast<OpaqueBackwardOp>(op)) {
    call.name = opaque.getCallee().str();
    opaqueBackwardArgs(opaque, call);
    return call;
  }
  auto aten = dyn_cast<AtenOpInterface>(op);
  if (!aten)
    return op->emitOpError("is no aten operation and cannot be put in a plan");
  StringRef schema = aten.getSchema();
  if (schema.empty())
    return op->emitOpError("stands for no ATen operator; ")
           << (isa<TypeAsOp>(op) ? "the precision pass" : "select-kernels")
           << " replaces it";
  const SchemaText &parts = partsOf(schema);
  call.name = parts.name.str();
  if (parts.results && failed(parseResults(op, *parts.results, call)))
    return op->emitOpError("has a malformed schema '") << schema << "'";
  call.args.reserve(parts.args.size());
  for (StringRef text : parts.args) {
    FailureOr<CallArg> arg = parseArg(op, text);
    if (failed(arg))
      return op->emitOpError("has a malformed schema argument '")
             << text << "'";
    call.args.push_back(std::move(*arg));
  }
  return call;
}

std::string aten::modulePath(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string path = modulePath(part); !path.empty())
        return path;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return modulePath(call.getCallee());
  return {};
}
