//===- CallReader.cpp - The arguments of an operator's call ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/CallReader.h"

#include "mlir/IR/BuiltinTypes.h"

#include <cmath>

using namespace accel;
using namespace accel::torchexport;
using Kind = Argument::Kind;

static const Argument none;

std::optional<Call> Call::read(const Node &node, const AtenSchema &schema,
                               const Graph &graph, const Symbols &symbols,
                               const Values &values, std::string &error) {
  Call call;
  call.source = &node;
  call.signature = &schema;
  call.graph = &graph;
  call.symbols = &symbols;
  call.values = &values;
  const size_t count = schema.parameters.size();
  call.arguments.assign(count, nullptr);
  size_t position = 0;
  for (const NamedArgument &input : node.inputs) {
    size_t at = count;
    if (!input.keyword && position < count) {
      at = position++;
    } else {
      for (size_t i = 0; i < count; ++i)
        if (schema.parameters[i].name == input.name)
          at = i;
    }
    if (at == count || call.arguments[at]) {
      error = "has an argument '" + printable(input.name) + "' too many for " +
              schema.name;
      return std::nullopt;
    }
    call.arguments[at] = &input.value;
  }
  for (size_t i = 0; i < count; ++i) {
    if (call.arguments[i])
      continue;
    const SchemaParameter &parameter = schema.parameters[i];
    if (!parameter.hasDefault) {
      error = "lacks the argument '" + parameter.name + "' of " + schema.name;
      return std::nullopt;
    }
    call.arguments[i] = &parameter.defaultValue;
  }
  return call;
}

const Argument &Call::operator[](llvm::StringRef name) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (signature->parameters[i].name == name)
      return *arguments[i];
  return none;
}

mlir::Value Call::tensor(const Argument &argument) const {
  if (argument.kind != Kind::Tensor)
    return {};
  auto found = values->find(argument.text);
  return found == values->end() ? mlir::Value() : found->second;
}

llvm::SmallVector<mlir::Value> Call::tensors(llvm::StringRef name) const {
  llvm::SmallVector<mlir::Value> result;
  for (const Argument &item : (*this)[name].items) {
    mlir::Value value = tensor(item);
    if (!value)
      return {};
    result.push_back(value);
  }
  return result;
}

std::optional<int64_t> Call::integer(const Argument &argument) const {
  if (argument.kind == Kind::Int || argument.kind == Kind::Bool)
    return argument.integer;
  if (argument.kind != Kind::SymInt)
    return std::nullopt;
  auto found = graph->integers.find(argument.text);
  return found == graph->integers.end() ? std::nullopt
                                        : symbols->valueOf(found->second);
}

std::optional<llvm::SmallVector<int64_t>>
Call::integers(const Argument &argument) const {
  llvm::SmallVector<int64_t> result;
  if (argument.kind != Kind::List) {
    auto one = integer(argument); // int[1] takes a number too
    if (!one)
      return std::nullopt;
    result.push_back(*one);
    return result;
  }
  for (const Argument &item : argument.items) {
    auto value = integer(item);
    if (!value)
      return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<double> Call::number(const Argument &argument) const {
  if (argument.kind == Kind::Float)
    return argument.number;
  if (auto value = integer(argument))
    return double(*value);
  return std::nullopt;
}

mlir::TypedAttr Call::scalar(mlir::Builder &b, const Argument &argument) const {
  if (argument.kind == Kind::Float)
    return llvm::cast<mlir::TypedAttr>(
        mlir::Attribute(b.getF64FloatAttr(argument.number)));
  if (auto value = integer(argument))
    return llvm::cast<mlir::TypedAttr>(
        mlir::Attribute(b.getI64IntegerAttr(*value)));
  return {};
}

llvm::SmallVector<mlir::Value> Call::written() const {
  llvm::StringRef name = signature->name;
  bool trains = true, norm = false;
  for (const SchemaParameter &parameter : signature->parameters)
    if (parameter.name == "training" || parameter.name == "train" ||
        parameter.name == "use_input_stats") {
      trains = flag(parameter.name);
      norm = !name.contains("_functional");
    }
  llvm::SmallVector<mlir::Value> result;
  for (size_t i = 1; trains && i < size(); ++i) {
    const SchemaParameter &parameter = signature->parameters[i];
    const bool statistics = norm && (parameter.name == "running_mean" ||
                                     parameter.name == "running_var");
    if (mlir::Value value =
            parameter.mutated || statistics ? tensor(at(i)) : mlir::Value())
      result.push_back(value);
  }
  return result;
}

static bool names(const Argument &argument, const std::string &tensor) {
  return (argument.kind == Argument::Kind::Tensor && argument.text == tensor) ||
         llvm::any_of(argument.items, [&](const Argument &item) {
           return names(item, tensor);
         });
}

bool torchexport::isRead(const Graph &graph, const std::string &tensor) {
  return llvm::any_of(graph.outputs,
                      [&](const Argument &a) { return names(a, tensor); }) ||
         llvm::any_of(graph.nodes, [&](const Node &node) {
           return llvm::any_of(node.inputs, [&](const NamedArgument &a) {
             return names(a.value, tensor);
           });
         });
}

mlir::Type torchexport::elementType(mlir::Builder &b, plan::DType dtype) {
  switch (dtype) {
  case plan::DType::F64:
    return b.getF64Type();
  case plan::DType::F32:
    return b.getF32Type();
  case plan::DType::BF16:
    return b.getBF16Type();
  case plan::DType::F16:
    return b.getF16Type();
  case plan::DType::I64:
    return b.getI64Type();
  case plan::DType::I32:
    return b.getI32Type();
  case plan::DType::I16:
    return b.getI16Type();
  case plan::DType::U8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case plan::DType::I1:
    return b.getI1Type();
  }
  return {};
}

mlir::Type torchexport::elementType(mlir::Builder &b, int64_t scalarType) {
  switch (scalarType) {
  case 1:
    return elementType(b, plan::DType::U8);
  case 3:
    return elementType(b, plan::DType::I16);
  case 4:
    return elementType(b, plan::DType::I32);
  case 5:
    return elementType(b, plan::DType::I64);
  case 6:
    return elementType(b, plan::DType::F16);
  case 7:
    return elementType(b, plan::DType::F32);
  case 8:
    return elementType(b, plan::DType::F64);
  case 12:
    return elementType(b, plan::DType::I1);
  case 13:
    return elementType(b, plan::DType::BF16);
  default:
    return {};
  }
}
