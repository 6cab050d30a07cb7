//===- CallReader.h - The arguments of an operator's call -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_CALLREADER_H
#define ACCEL_FRONTENDS_TORCHEXPORT_CALLREADER_H

#include "frontends/TorchExport/AtenSchemas.h"
#include "frontends/TorchExport/Symbols.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"

namespace accel::torchexport {

/// The values of a graph's names, by the name.
using Values = std::unordered_map<std::string, mlir::Value>;

/// A node as a call of an ATen operator with every argument of its signature.
class Call {
public:
  /// Says in `error` what does not fit the signature.
  static std::optional<Call> read(const Node &node, const AtenSchema &schema,
                                  const Graph &graph, const Symbols &symbols,
                                  const Values &values, std::string &error);

  const Node &node() const { return *source; }
  const AtenSchema &schema() const { return *signature; }
  size_t size() const { return arguments.size(); }
  const Argument &at(size_t i) const { return *arguments[i]; }
  /// The argument of that name; None where the signature has no such name.
  const Argument &operator[](llvm::StringRef name) const;

  /// Null where the argument is no tensor.
  mlir::Value tensor(const Argument &argument) const;
  mlir::Value tensor(llvm::StringRef name) const {
    return tensor((*this)[name]);
  }
  /// Empty where it is no list of tensors.
  llvm::SmallVector<mlir::Value> tensors(llvm::StringRef name) const;
  /// An integer, a truth value, or a symbolic integer.
  std::optional<int64_t> integer(const Argument &argument) const;
  std::optional<int64_t> integer(llvm::StringRef name) const {
    return integer((*this)[name]);
  }
  std::optional<llvm::SmallVector<int64_t>>
  integers(const Argument &argument) const;
  std::optional<llvm::SmallVector<int64_t>>
  integers(llvm::StringRef name) const {
    return integers((*this)[name]);
  }
  std::optional<double> number(const Argument &argument) const;
  std::optional<double> number(llvm::StringRef name) const {
    return number((*this)[name]);
  }
  bool flag(llvm::StringRef name) const { return integer(name).value_or(0); }
  bool isNone(llvm::StringRef name) const {
    return (*this)[name].kind == Argument::Kind::None;
  }
  /// What the call writes to beside its first argument: tensors that the
  /// signature marks, and the running statistics of a norm in training, which
  /// batch_norm and instance_norm do not mark.
  llvm::SmallVector<mlir::Value> written() const;
  /// i64 or f64, as ATen's Scalar; null for anything else.
  mlir::TypedAttr scalar(mlir::Builder &b, const Argument &argument) const;

private:
  const Node *source = nullptr;
  const AtenSchema *signature = nullptr;
  const Graph *graph = nullptr;
  const Symbols *symbols = nullptr;
  const Values *values = nullptr;
  llvm::SmallVector<const Argument *> arguments;
};

/// By a node, or as a result of the graph.
bool isRead(const Graph &graph, const std::string &tensor);

/// The element type of torch's dtype number; null for those without one.
mlir::Type elementType(mlir::Builder &b, int64_t scalarType);
mlir::Type elementType(mlir::Builder &b, plan::DType dtype);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_CALLREADER_H
