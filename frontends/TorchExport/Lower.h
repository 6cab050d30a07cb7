//===- Lower.h - Nodes as operations of the aten dialect --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each node becomes one or several operations in one flat function whose
// arguments are the graph's inputs. A node is tried in this order: composite
// operators of training IR have a rule of their own (Lower*.cpp); operators of
// the dialect are found by the ATen call in their definition (DialectTable.h);
// everything else becomes aten.opaque.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_LOWER_H
#define ACCEL_FRONTENDS_TORCHEXPORT_LOWER_H

#include "frontends/TorchExport/CallReader.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Layout.h"
#include "dialects/Aten/Types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <set>

namespace accel::torchexport {

/// Attribute of an operation of the flat function: Program::stacks.
constexpr llvm::StringLiteral stackAttr = "torch.stack";

class Lowering {
public:
  using Results = llvm::SmallVector<mlir::Value, 4>;
  /// A rule: nullopt where it does not apply to this call.
  using Rule = std::function<std::optional<Results>(Lowering &, const Call &)>;

  Lowering(const Program &program, const Symbols &symbols,
           mlir::func::FuncOp flat, DiagnosticEngine &diagnostics);
  /// Fills the body of `flat`, which returns the loss. Reports and fails.
  mlir::LogicalResult run();
  /// Buffers and constants that the flat function reads: argument number and
  /// the input that it stands for.
  const std::vector<std::pair<unsigned, const InputSpec *>> &arguments() const {
    return inputs;
  }

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  using Attributes =
      llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Attribute>>;
  /// An operation of the dialect with the types it infers; null where its
  /// operands and attributes do not fit.
  mlir::Operation *makeOp(llvm::StringRef name, mlir::ValueRange operands,
                          Attributes attributes);
  template <typename OpT>
  mlir::Value make(mlir::ValueRange operands, Attributes attributes = {}) {
    mlir::Operation *op = makeOp(OpT::getOperationName(), operands, attributes);
    return op ? op->getResult(0) : mlir::Value();
  }
  mlir::Builder &builder() { return b; }
  mlir::Attribute integer(int64_t value) { return b.getI64IntegerAttr(value); }
  mlir::Attribute number(double value) { return b.getF64FloatAttr(value); }
  mlir::Attribute integers(llvm::ArrayRef<int64_t> values) {
    return b.getDenseI64ArrayAttr(values);
  }
  static llvm::ArrayRef<int64_t> shape(mlir::Value value) {
    return aten::tensorType(value).getShape();
  }
  static int64_t rank(mlir::Value value) {
    return int64_t(shape(value).size());
  }
  static bool isFloat(mlir::Value value) {
    return llvm::isa<mlir::FloatType>(aten::tensorType(value).getElementType());
  }
  /// The same elements in another shape: a view where strides allow it, else of
  /// a copy.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> size);
  mlir::Value view(mlir::Value value, llvm::ArrayRef<int64_t> size);
  mlir::Value contiguous(mlir::Value value);
  mlir::Value expand(mlir::Value value, llvm::ArrayRef<int64_t> size);
  mlir::Value transpose(mlir::Value value, int64_t a, int64_t b);
  /// A cast to `type` as a model writes it; `back` where the type is the one
  /// that the parameters have.
  mlir::Value cast(mlir::Value value, mlir::Type type);
  /// The value that a cast of no effect in the exported dtype was made from;
  /// other values as they are.
  mlir::Value beforeCast(mlir::Value value) const;
  /// `size` with its -1 replaced.
  std::optional<llvm::SmallVector<int64_t>>
  completeSize(mlir::Value value, llvm::ArrayRef<int64_t> size);
  /// The type that the file gives the i-th result of a call; null if none.
  mlir::RankedTensorType resultType(const Call &call, size_t i);
  /// A batch of matmuls, or one, as ATen's matmul does it; attention
  /// where the matmul is its last.
  mlir::Value matmul(mlir::Value a, mlir::Value b);
  /// `value` where no gradient passes.
  mlir::Value detach(mlir::Value value);
  /// One number in a shape.
  mlir::Value full(llvm::ArrayRef<int64_t> size, mlir::Attribute number,
                   mlir::Type type);
  /// True where a gradient may reach `value`.
  bool isTrained(mlir::Value value) const { return trained.contains(value); }
  /// The elements of a small constant of integers; empty for anything else.
  llvm::ArrayRef<int64_t> elementsOf(mlir::Value constant) const;
  aten::LayoutAnalysis &layouts() { return layout; }

private:
  mlir::LogicalResult lowerGraph(const Graph &graph, Values &values);
  mlir::LogicalResult lowerNode(const Node &node, const Graph &graph,
                                Values &values);
  mlir::LogicalResult inlineGraph(const Node &node, const Graph &graph,
                                  Values &values);
  /// Enters a stack of modules: see `identities`.
  void enterStack(int next, Values &values);
  static bool sameDtype(const Node &node, const Graph &graph);
  /// What an operator in place wrote to `name`, in all that shares its memory.
  /// False where that is not known.
  bool writeBack(mlir::Value before, mlir::Value after, Values &values);
  mlir::LogicalResult bindResults(const Node &node, const Graph &graph,
                                  mlir::ValueRange results, Values &values);
  mlir::Value product(mlir::Value a, mlir::Value b);
  mlir::Value attentionOf(mlir::Value weights, mlir::Value value);
  std::optional<Results> lowerByTable(const Call &call);
  std::optional<Results> lowerOpaque(const Call &call);
  void discard(mlir::Operation *op);
  mlir::RankedTensorType typeOf(const TensorMeta &meta);
  mlir::LogicalResult fail(const Node &node, std::string message,
                           std::string hint = "", bool unsupported = false);
  mlir::LogicalResult failBuffer(const std::string &fqn);
  /// Of what `written` is a view of.
  mlir::LogicalResult failWrite(const Node &node, mlir::Value written);
  bool dependsOnParameters(mlir::Value value);
  mlir::LogicalResult findLoss(const Values &values);

  const Program &program;
  const Symbols &symbols;
  mlir::func::FuncOp flat;
  DiagnosticEngine &diagnostics;
  mlir::OpBuilder b;
  aten::LayoutAnalysis layout;
  const Graph *current = nullptr;
  int stack = 0;
  /// Values that a model cast up: cast back they take the type of the value
  /// that they came from.
  llvm::DenseMap<mlir::Value, mlir::Value> castFrom;
  llvm::DenseSet<mlir::Value> trained;
  /// The factors of matmuls, which are views and copies until then.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>> products;
  /// Casts that change nothing in the exported dtype, by the stack of modules
  /// that asks for them. Torch hands on the operand itself then, so that other
  /// modules read a cast that they never made: for them it is the operand.
  struct Identity {
    std::string name;
    mlir::Value wide, operand;
  };
  llvm::DenseMap<int, std::vector<Identity>> identities;
  std::vector<std::pair<unsigned, const InputSpec *>> inputs;
};

/// The rules by operator ("aten::linear").
const llvm::StringMap<Lowering::Rule> &loweringRules();
void addJoinRules(llvm::StringMap<Lowering::Rule> &rules);
void addShapeRules(llvm::StringMap<Lowering::Rule> &rules);
void addPointwiseRules(llvm::StringMap<Lowering::Rule> &rules);
void addCompositeRules(llvm::StringMap<Lowering::Rule> &rules);
void addAttentionRules(llvm::StringMap<Lowering::Rule> &rules);
void addCreationRules(llvm::StringMap<Lowering::Rule> &rules);
void addIndexRules(llvm::StringMap<Lowering::Rule> &rules);
void addReductionRules(llvm::StringMap<Lowering::Rule> &rules);
void addLossRules(llvm::StringMap<Lowering::Rule> &rules);
void addConvolutionRules(llvm::StringMap<Lowering::Rule> &rules);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_LOWER_H
