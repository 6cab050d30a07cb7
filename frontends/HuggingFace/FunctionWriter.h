//===- FunctionWriter.h - Writes a segment function -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_FUNCTIONWRITER_H
#define ACCEL_FRONTENDS_HUGGINGFACE_FUNCTIONWRITER_H

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/ModelInfo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace accel::huggingface {

/// Writes one function. Arguments are declared first (inputs, then params),
/// operators are emitted with `op`, at the module path of `enter`.
class FunctionWriter {
public:
  FunctionWriter(mlir::OpBuilder &outer, llvm::StringRef name,
                 llvm::StringRef path)
      : builder(outer), name(name), root(path), location(at("")) {}

  void input(mlir::RankedTensorType type) { arguments.push_back({type, ""}); }
  void param(llvm::StringRef relative, llvm::ArrayRef<int64_t> shape) {
    arguments.push_back(
        {mlir::RankedTensorType::get(shape, builder.getF32Type()),
         relative.str()});
  }

  /// Declares the parameters of the module at `path` and below it, in order.
  void params(const ModelInfo &info, llvm::StringRef path) {
    std::string prefix = path.empty() ? "" : path.str() + ".";
    for (const ParameterInfo &parameter : info.parameters)
      if (parameter.fqn.starts_with(prefix))
        param(llvm::StringRef(parameter.fqn).substr(prefix.size()),
              parameter.shape);
  }

  /// Makes the function; its arguments exist from now on.
  mlir::func::FuncOp begin(mlir::TypeRange results) {
    llvm::SmallVector<mlir::Type> types;
    for (const Argument &argument : arguments)
      types.push_back(argument.type);
    function = mlir::func::FuncOp::create(
        builder, location, name, builder.getFunctionType(types, results));
    function.setPrivate();
    mlir::Block *body = function.addEntryBlock();
    for (auto [i, argument] : llvm::enumerate(arguments))
      if (!argument.param.empty()) {
        function.setArgAttr(unsigned(i), sharding::paramArgAttr,
                            builder.getStringAttr(argument.param));
        body->getArgument(unsigned(i)).setLoc(at(argument.param));
      }
    builder.setInsertionPointToStart(body);
    return function;
  }
  /// How many inputs there are so far; parameters come behind all.
  unsigned inputs() const { return unsigned(arguments.size()); }
  mlir::Value argument(unsigned i) { return function.getArgument(i); }
  /// Input `i` keeps its element type whatever the function computes in.
  void fixType(unsigned i) {
    function.setArgAttr(i, aten::fixedTypeAttr, builder.getUnitAttr());
  }
  /// Null where no such parameter was declared.
  mlir::Value find(llvm::StringRef relative) {
    for (auto [i, argument] : llvm::enumerate(arguments))
      if (argument.param == relative)
        return function.getArgument(unsigned(i));
    return {};
  }
  mlir::Value param(llvm::StringRef relative) {
    if (mlir::Value found = find(relative))
      return found;
    llvm_unreachable("not declared");
  }
  void end(mlir::ValueRange results) {
    enter("");
    mlir::func::ReturnOp::create(builder, location, results);
    builder.setInsertionPointAfter(function);
  }

  /// Operators from now on belong to the module at `relative`.
  void enter(llvm::StringRef relative) { location = at(relative); }
  template <typename OpT, typename... Args> mlir::Value op(Args &&...args) {
    return OpT::create(builder, location, std::forward<Args>(args)...)
        ->getResult(0);
  }

  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type bf16() { return builder.getBF16Type(); }
  mlir::Type i64() { return builder.getI64Type(); }
  llvm::ArrayRef<int64_t> shape(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  mlir::Value view(mlir::Value x, llvm::ArrayRef<int64_t> size) {
    return shape(x) == size ? x : op<aten::ViewOp>(x, size);
  }
  /// Drops elements of `x` with probability `p` in training; nothing for 0.
  mlir::Value dropout(mlir::Value x, double p) {
    return p == 0 ? x : op<aten::DropoutOp>(x, number(p), keyFor(p));
  }
  /// A key for an operator that drops with probability `p`; -1 for 0.
  uint64_t keyFor(double p) { return p == 0 ? uint64_t(-1) : keys++; }
  /// A number as an operator's own argument.
  mlir::FloatAttr scalar(double value) {
    return builder.getF64FloatAttr(value);
  }
  llvm::APFloat number(double value) { return llvm::APFloat(value); }
  /// An attribute that is there or not.
  mlir::UnitAttr unit(bool there) {
    return there ? builder.getUnitAttr() : mlir::UnitAttr();
  }

  /// Causal attention of q, k and v, [B, heads, S, head_dim] each; see
  /// aten.scaled_dot_product_attention.
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v,
                        double scale, mlir::Value mask = {}, int64_t window = 0,
                        double softcap = 0, bool byParts = false,
                        double dropped = 0) {
    return op<aten::ScaledDotProductAttentionOp>(
        q, k, v, mask, /*is_causal=*/true, number(scale), uint64_t(window),
        number(softcap), unit(byParts), number(dropped), keyFor(dropped));
  }

  /// Mean cross-entropy of `logits` [tokens, vocabulary], computed in fp32
  /// whatever the model computes in; label -100 does not count.
  mlir::Value crossEntropy(mlir::Value logits, mlir::Value labels) {
    mlir::Value scores =
        op<aten::LogSoftmaxOp>(op<aten::ToCopyOp>(logits, f32()), uint64_t(1));
    return op<aten::NllLossForwardOp>(
        scores, view(labels, {shape(logits).front()}), uint64_t(-100));
  }

protected:
  mlir::OpBuilder &builder;

private:
  struct Argument {
    mlir::RankedTensorType type;
    std::string param; // relative name; empty: an input
  };
  mlir::Location at(llvm::StringRef relative) {
    std::string fqn =
        relative.empty() ? root.str() : sharding::joinFqn(root, relative);
    return mlir::NameLoc::get(builder.getStringAttr(fqn));
  }

  llvm::StringRef name, root;
  mlir::Location location;
  llvm::SmallVector<Argument> arguments;
  uint64_t keys = 0;
  mlir::func::FuncOp function;
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_FUNCTIONWRITER_H
