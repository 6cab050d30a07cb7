//===- LowerGeneric.cpp - Calls by the dialect's own schemas --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/DialectTable.h"
#include "frontends/TorchExport/Lower.h"
#include "runtime/plan/Operators.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Kind = Argument::Kind;

namespace {

/// Arguments that say where and how a tensor lies, which the plan decides.
bool isPlacement(StringRef name) {
  return name == "device" || name == "layout" || name == "pin_memory" ||
         name == "memory_format" || name == "non_blocking" ||
         name == "cudnn_enabled";
}

/// An argument as the attribute that an operation of the dialect holds.
Attribute attributeOf(Builder &b, const Call &call,
                      const SchemaParameter &parameter,
                      const Argument &argument) {
  StringRef type = parameter.type;
  type.consume_back("?");
  if (argument.kind == Kind::None)
    return {};
  if (type == "Scalar")
    return call.scalar(b, argument);
  if (type == "ScalarType") {
    Type element = argument.kind == Kind::ScalarType
                       ? elementType(b, argument.integer)
                       : Type();
    return element ? Attribute(TypeAttr::get(element)) : Attribute();
  }
  if (type == "str")
    return argument.kind == Kind::String ? b.getStringAttr(argument.text)
                                         : StringAttr();
  if (type.starts_with("bool")) {
    if (argument.kind != Kind::List)
      return call.integer(argument) ? b.getBoolAttr(*call.integer(argument))
                                    : BoolAttr();
    SmallVector<bool> values;
    for (const Argument &item : argument.items)
      values.push_back(item.integer != 0);
    return b.getDenseBoolArrayAttr(values);
  }
  if (type == "float") {
    auto value = call.number(argument);
    return value ? Attribute(b.getF64FloatAttr(*value)) : Attribute();
  }
  if (type.ends_with("]") &&
      (type.starts_with("int") || type.starts_with("SymInt"))) {
    auto values = call.integers(argument);
    if (!values)
      return {};
    // int[2] takes one number for both.
    StringRef count = type.drop_front(type.find('[') + 1).drop_back();
    unsigned n = 0;
    if (!count.getAsInteger(10, n) && values->size() == 1 && n > 1)
      values->assign(n, values->front());
    return b.getDenseI64ArrayAttr(*values);
  }
  if (type == "int" || type == "SymInt") {
    auto value = call.integer(argument);
    return value ? Attribute(b.getI64IntegerAttr(*value)) : Attribute();
  }
  return {};
}

/// True where `text`, a constant of a schema ("none", "1", "[true, true]"), is
/// what the call passes.
bool sameConstant(const Call &call, StringRef text, const Argument &argument) {
  if (text == "none")
    return argument.kind == Kind::None;
  if (text == "true" || text == "false")
    return call.integer(argument) == int64_t(text == "true");
  double number = 0;
  if (!text.getAsDouble(number))
    return call.number(argument) == number;
  if (text.consume_front("[") && text.consume_back("]") &&
      argument.kind == Kind::List) {
    SmallVector<StringRef> parts;
    text.split(parts, ',', -1, /*KeepEmpty=*/false);
    if (parts.size() != argument.items.size())
      return false;
    for (auto [part, item] : llvm::zip(parts, argument.items))
      if (!sameConstant(call, part.trim(), item))
        return false;
    return true;
  }
  return false;
}

/// Dimensions count from 0 in the dialect, sizes have no -1, and slices end
/// where the dimension ends.
void normalize(StringRef name, ArrayRef<int64_t> self, RankedTensorType result,
               StringRef operation, NamedAttrList &attributes, Builder &b) {
  bool inserts = operation == "aten.unsqueeze" || operation == "aten.stack";
  int64_t rank = int64_t(self.size()) + inserts;
  auto wrap = [&](int64_t dim) { return dim < 0 ? dim + rank : dim; };
  for (NamedAttribute attribute : llvm::to_vector(attributes.getAttrs())) {
    StringRef key = attribute.getName();
    bool isDim = key == "dim" || key == "dim0" || key == "dim1" ||
                 key == "dims" || key == "start_dim" || key == "end_dim";
    if (auto integer = dyn_cast<IntegerAttr>(attribute.getValue());
        integer && isDim)
      attributes.set(key, b.getI64IntegerAttr(wrap(integer.getInt())));
    if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute.getValue())) {
      SmallVector<int64_t> values(list.asArrayRef());
      if (isDim)
        for (int64_t &value : values)
          value = wrap(value);
      if (key == "size" && result && result.getRank() == int64_t(values.size()))
        values.assign(result.getShape().begin(), result.getShape().end());
      attributes.set(key, b.getDenseI64ArrayAttr(values));
    }
  }
}

} // namespace

/// The argument as an operand group; false where it is not of that kind.
static bool addOperands(const Call &call, StringRef text,
                        const Argument &argument, SmallVector<Value> &operands,
                        bool optional) {
  if (text.ends_with("*")) {
    if (argument.kind != Kind::List)
      return false;
    for (const Argument &item : argument.items) {
      Value value = call.tensor(item);
      if (!value)
        return false;
      operands.push_back(value);
    }
    return true;
  }
  if (argument.kind == Kind::None)
    return optional;
  Value value = call.tensor(argument);
  if (!value)
    return false;
  operands.push_back(value);
  return true;
}

std::optional<Lowering::Results> Lowering::lowerByTable(const Call &call) {
  for (const DialectEntry &entry :
       dialectEntries(b.getContext(), call.schema().name)) {
    if (entry.arguments.size() != call.size())
      continue;
    SmallVector<Value> operands;
    NamedAttrList attributes;
    llvm::SmallSet<StringRef, 4> scalars;
    bool fits = true;
    for (auto [i, text] : llvm::enumerate(entry.arguments)) {
      const SchemaParameter &parameter = call.schema().parameters[i];
      const Argument &argument = call.at(i);
      if (text.starts_with("%")) {
        fits &=
            addOperands(call, text, argument, operands, text.ends_with("?"));
      } else if (text.starts_with("$")) {
        Attribute attribute = attributeOf(b, call, parameter, argument);
        StringRef type = parameter.type;
        if (type == "Scalar" || type == "Scalar?")
          scalars.insert(text.drop_front());
        if (attribute)
          attributes.set(text.drop_front(), attribute);
        else
          fits &= argument.kind == Kind::None;
      } else if (text.starts_with("#")) {
        fits = false;
      } else {
        fits &=
            isPlacement(parameter.name) || sameConstant(call, text, argument);
      }
    }
    if (!fits)
      continue;
    ArrayRef<int64_t> self =
        operands.empty() ? ArrayRef<int64_t>() : shape(operands.front());
    normalize(entry.operation, self, resultType(call, 0), entry.operation,
              attributes, b);
    SmallVector<std::pair<StringRef, Attribute>> pairs;
    for (NamedAttribute attribute : attributes)
      pairs.push_back({attribute.getName(), attribute.getValue()});
    Operation *op = makeOp(entry.operation, operands, pairs);
    // A Scalar of the signature may be a float of the dialect.
    if (!op && !scalars.empty()) {
      for (auto &[name, value] : pairs)
        if (auto whole = dyn_cast<IntegerAttr>(value);
            whole && scalars.contains(name))
          value = b.getF64FloatAttr(double(whole.getInt()));
      op = makeOp(entry.operation, operands, pairs);
    }
    if (!op)
      continue;
    RankedTensorType want = resultType(call, 0);
    if (op->getNumResults() == 0 ||
        (want && want.getShape() !=
                     mlir::cast<RankedTensorType>(op->getResult(0).getType())
                         .getShape())) {
      discard(op);
      continue;
    }
    return Results(op->getResults());
  }
  return std::nullopt;
}

/// The overload to call: programs give numbers for tensors (div.Tensor of 2),
/// which the overload for scalars takes.
static const AtenSchema &overloadFor(const Call &call) {
  const AtenSchema &own = call.schema();
  const size_t at = own.name.rfind("Tensor");
  for (size_t i = 0; i < call.size() && at != std::string::npos; ++i) {
    const bool number = call.at(i).kind == Argument::Kind::Int ||
                        call.at(i).kind == Argument::Kind::Float;
    if (!number || own.parameters[i].type != "Tensor")
      continue;
    std::string name = own.name;
    const AtenSchema *other = findSchema(name.replace(at, 6, "Scalar"));
    if (other && other->parameters.size() == call.size() &&
        other->parameters[i].type == "Scalar")
      return *other;
  }
  return own;
}

std::optional<Lowering::Results> Lowering::lowerOpaque(const Call &call) {
  SmallVector<Value> operands;
  SmallVector<Attribute> args;
  const AtenSchema &schema = overloadFor(call);
  for (size_t i = 0; i < call.size(); ++i) {
    const SchemaParameter &parameter = schema.parameters[i];
    const Argument &argument = call.at(i);
    // Only what the schema lets be absent may be: LibTorch refuses None for a
    // `bool cudnn_enabled`.
    const bool optional = StringRef(parameter.type).ends_with("?");
    const bool leftOut = isPlacement(parameter.name) && optional;
    if (argument.kind == Kind::None && !optional)
      return std::nullopt;
    if (argument.kind == Kind::None || leftOut) {
      args.push_back(b.getStringAttr("none"));
    } else if (argument.kind == Kind::List &&
               StringRef(parameter.type).starts_with("Tensor")) {
      SmallVector<Attribute> items;
      for (const Argument &item : argument.items) {
        Value value = call.tensor(item);
        if (!value && item.kind != Kind::None)
          return std::nullopt;
        items.push_back(b.getStringAttr(
            value ? "%" + std::to_string(operands.size()) : "none"));
        if (value)
          operands.push_back(value);
      }
      args.push_back(b.getArrayAttr(items));
    } else if (Value value = call.tensor(argument)) {
      args.push_back(b.getStringAttr("%" + std::to_string(operands.size())));
      operands.push_back(value);
    } else if (Attribute attribute =
                   attributeOf(b, call, parameter, argument)) {
      if (auto text = dyn_cast<StringAttr>(attribute)) {
        if (!plan::mayPass(schema.name, text.str()))
          return std::nullopt;
        attribute = b.getStringAttr("=" + text.getValue()); // no operand's
      }
      args.push_back(attribute);
    } else {
      return std::nullopt;
    }
  }
  SmallVector<Type> types;
  for (size_t i = 0; RankedTensorType type = resultType(call, i); ++i)
    types.push_back(type);
  if (types.empty())
    return std::nullopt;
  auto op = aten::OpaqueOp::createAs(b, b.getUnknownLoc(), types,
                                     b.getStringAttr(schema.name), operands,
                                     b.getArrayAttr(args));
  op->setAttr(stackAttr, b.getI64IntegerAttr(stack));
  for (Value result : op->getResults())
    if (isFloat(result) &&
        llvm::any_of(operands, [&](Value v) { return trained.contains(v); }))
      trained.insert(result);
  return Results(op->getResults());
}
