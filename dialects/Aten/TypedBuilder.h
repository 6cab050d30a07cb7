//===- TypedBuilder.h - One builder for every aten operation ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_TYPEDBUILDER_H
#define ACCEL_DIALECTS_ATEN_TYPEDBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/APFloat.h"

#include <concepts>
#include <optional>
#include <variant>

namespace accel::aten {

/// One argument of `Op::create`: an operand, operands, or an attribute given as
/// such or as the C++ value that it holds.
class BuildArgument {
public:
  using Scalar = std::variant<std::monostate, bool, int64_t, double,
                              llvm::APFloat, llvm::StringRef, mlir::Type,
                              llvm::ArrayRef<int64_t>, llvm::ArrayRef<bool>>;

  BuildArgument(mlir::Value value) : isOperand(true), value(value) {}
  BuildArgument(mlir::ValueRange range)
      : isOperand(true), isRange(true), range(range) {}
  BuildArgument(mlir::Attribute attribute) : attribute(attribute) {}
  BuildArgument(std::same_as<bool> auto held) : scalar(held) {}
  BuildArgument(double held) : scalar(held) {}
  BuildArgument(const llvm::APFloat &held) : scalar(held) {}
  BuildArgument(llvm::StringRef held) : scalar(held) {}
  BuildArgument(const char *held) : scalar(llvm::StringRef(held)) {}
  BuildArgument(mlir::Type held) : scalar(held) {}
  BuildArgument(llvm::ArrayRef<int64_t> held) : scalar(held) {}
  BuildArgument(llvm::ArrayRef<bool> held) : scalar(held) {}
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  BuildArgument(T held) : scalar(static_cast<int64_t>(held)) {}
  /// Operations of one result, typed values, types and attributes of a class,
  /// vectors of shapes: what converts to one of the above.
  template <typename T>
    requires(!std::is_arithmetic_v<T> &&
             std::is_convertible_v<T &, mlir::Value>)
  BuildArgument(T held) : BuildArgument(mlir::Value(held)) {}
  template <typename T>
    requires std::is_base_of_v<mlir::Attribute, T>
  BuildArgument(const T &held) : BuildArgument(mlir::Attribute(held)) {}
  template <typename T>
    requires std::is_base_of_v<mlir::Type, T>
  BuildArgument(const T &held) : BuildArgument(mlir::Type(held)) {}
  template <typename T>
    requires(!std::is_convertible_v<T &, mlir::Value> &&
             std::is_convertible_v<const T &, mlir::ValueRange>)
  BuildArgument(const T &held) : BuildArgument(mlir::ValueRange(held)) {}
  template <typename T>
    requires(!std::is_arithmetic_v<T> &&
             !std::is_base_of_v<mlir::Attribute, T> &&
             !std::is_convertible_v<const T &, mlir::ValueRange> &&
             std::is_convertible_v<const T &, llvm::ArrayRef<int64_t>>)
  BuildArgument(const T &held) : BuildArgument(llvm::ArrayRef<int64_t>(held)) {}

private:
  friend void buildByArguments(mlir::OperationState &,
                               llvm::ArrayRef<llvm::StringRef>,
                               llvm::ArrayRef<BuildArgument>,
                               std::optional<mlir::TypeRange>);
  mlir::Attribute asAttribute(mlir::MLIRContext *context) const;

  bool isOperand = false, isRange = false;
  mlir::Value value;         // a null value: an optional operand left out
  mlir::ValueRange range;    // if isRange
  mlir::Attribute attribute; // null: an optional attribute left out
  Scalar scalar;
};

/// Fills `state` with `arguments`, whose names and order are those of the
/// operation's definition; arguments left out at the end have their defaults.
/// Without `results` the result types are inferred. The properties' storage
/// must be there. Ends the program if the arguments are not the operation's.
void buildByArguments(mlir::OperationState &state,
                      llvm::ArrayRef<llvm::StringRef> names,
                      llvm::ArrayRef<BuildArgument> arguments,
                      std::optional<mlir::TypeRange> results);

/// Gives an operation `create` for its arguments in the order of
/// its definition. ODS would write some thirty functions for each operation
/// instead, which were half of the dialect's compile time.
template <typename ConcreteOp>
class TypedBuilder : public mlir::OpTrait::TraitBase<ConcreteOp, TypedBuilder> {
public:
  static void build(mlir::OperationState &state,
                    llvm::ArrayRef<BuildArgument> arguments,
                    std::optional<mlir::TypeRange> results) {
    using Properties = typename ConcreteOp::Properties;
    if constexpr (!std::is_same_v<Properties, mlir::EmptyProperties>)
      state.getOrAddProperties<Properties>();
    buildByArguments(state, ConcreteOp::argumentNames(), arguments, results);
  }
  template <typename... Args>
  static ConcreteOp create(mlir::OpBuilder &builder, mlir::Location loc,
                           const Args &...args) {
    return createFor(builder, loc, std::nullopt, args...);
  }
  /// With result types that cannot be inferred.
  template <typename... Args>
  static ConcreteOp createAs(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::TypeRange results, const Args &...args) {
    return createFor(builder, loc, results, args...);
  }

private:
  template <typename... Args>
  static ConcreteOp createFor(mlir::OpBuilder &builder, mlir::Location loc,
                              std::optional<mlir::TypeRange> results,
                              const Args &...args) {
    mlir::OperationState state(loc, ConcreteOp::getOperationName());
    build(state, {BuildArgument(args)...}, results);
    return llvm::cast<ConcreteOp>(builder.create(state));
  }
};

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_TYPEDBUILDER_H
