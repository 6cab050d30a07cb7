//===- RewriteFunction.cpp - A segment with its adapters ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Adapters/RewriteFunction.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Fused.h"
#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Adapters/AdapterFunctions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace accel;

std::string ArgumentEdit::key() const {
  std::string text = name + ";";
  if (lora)
    text += owner + ";" + std::to_string(lora->rank) + ";" +
            std::to_string(lora->scale) + (lora->magnitude ? ";m;" : ";");
  return text;
}

static mlir::Location prefixed(mlir::Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc)) {
    StringRef name = named.getName();
    return NameLoc::get(
        StringAttr::get(loc.getContext(),
                        "base_model.model" + (name.empty() ? "" : "." + name)));
  }
  return loc;
}

void accel::prefixLocations(Operation *top) {
  top->walk([](Operation *op) {
    op->setLoc(prefixed(op->getLoc()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument arg : block.getArguments())
          arg.setLoc(prefixed(arg.getLoc()));
  });
}

namespace {

/// Swaps the two dimensions of a matrix.
bool isTransposition(Operation *op) {
  if (isa<aten::TOp>(op))
    return true;
  if (auto transpose = dyn_cast<aten::TransposeIntOp>(op))
    return cast<RankedTensorType>(op->getOperand(0).getType()).getRank() == 2 &&
           transpose.getDim0() != transpose.getDim1();
  return false;
}

/// A matmul in which `weight` is the right factor.
bool isMatmulWith(Operation *op, Value weight) {
  if (auto mm = dyn_cast<aten::MmOp>(op))
    return mm.getMat2() == weight;
  auto addmm = dyn_cast<aten::AddmmOp>(op);
  return addmm && addmm.getMat2() == weight && addmm.getSelf() != weight;
}

class Rewriter {
public:
  Rewriter(func::FuncOp function, ArrayRef<ArgumentEdit> edits,
           const AdapterConfig::Functions &functions)
      : function(function), edits(edits), functions(functions),
        b(function.getContext()) {}

  LogicalResult run(std::vector<std::string> &computed) {
    SmallVector<std::pair<BlockArgument, const ArgumentEdit *>> weights;
    for (auto [i, edit] : llvm::enumerate(edits)) {
      if (edit.name.empty())
        continue;
      function.setArgAttr(i, sharding::paramArgAttr,
                          b.getStringAttr(edit.name));
      if (edit.lora)
        weights.push_back({function.getArgument(i), &edit});
    }
    SmallVector<AdaptedMatmul> all;
    for (auto &[weight, edit] : weights)
      if (failed(adapt(weight, *edit, all)))
        return failure();
    auto key = [&] { return nextKey(); };
    for (const AdaptedMatmul &matmul : all)
      computed.push_back(matmul.owner);
    for (const AdaptedMatmul &matmul :
         computeInFunctions(function, all, functions, key)) {
      addProduct(matmul);
      std::erase(computed, matmul.owner);
    }
    return success();
  }

private:
  BlockArgument addArgument(unsigned at, const ArgumentEdit &edit,
                            const char *which, ArrayRef<int64_t> shape,
                            Type element) {
    std::string name =
        edit.owner + (edit.owner.empty() ? "" : ".") + which + ".default";
    auto type = RankedTensorType::get(shape, element);
    auto attrs = b.getDictionaryAttr(b.getNamedAttr(
        sharding::paramArgAttr, b.getStringAttr(name + ".weight")));
    (void)function.insertArgument(at, type, attrs, function.getLoc());
    return function.getArgument(at);
  }

  /// Behind the last argument of the same layer.
  unsigned placeOf(BlockArgument weight) {
    auto layer = [&](unsigned i) {
      auto name =
          function.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
      return name ? parentOf(name.str()) : std::string("\n");
    };
    unsigned at = weight.getArgNumber();
    std::string own = layer(at);
    while (at + 1 < function.getNumArguments() && layer(at + 1) == own)
      ++at;
    return at + 1;
  }

  /// Adds the adapter's arguments, and each matmul that it goes with to `all`.
  LogicalResult adapt(BlockArgument weight, const ArgumentEdit &edit,
                      SmallVectorImpl<AdaptedMatmul> &all) {
    const AdaptedTree::Lora &lora = *edit.lora;
    SmallVector<Operation *> products;
    for (Operation *user : weight.getUsers()) {
      if (lora.transposed && isMatmulWith(user, weight)) {
        products.push_back(user);
        continue;
      }
      if (!isTransposition(user) || lora.transposed)
        return refuse(user, edit);
      for (Operation *product : user->getUsers()) {
        if (!isMatmulWith(product, user->getResult(0)))
          return refuse(product, edit);
        products.push_back(product);
      }
    }
    Type element = cast<RankedTensorType>(weight.getType()).getElementType();
    unsigned at = placeOf(weight);
    AdaptedMatmul made;
    made.owner = edit.owner;
    made.lora = lora;
    made.weight = weight;
    made.down = addArgument(at, edit, "lora_A", {lora.rank, lora.in}, element);
    made.up =
        addArgument(at + 1, edit, "lora_B", {lora.out, lora.rank}, element);
    if (lora.magnitude)
      made.magnitude = addArgument(at + 2, edit, "lora_magnitude_vector",
                                   {lora.out}, element);
    for (Operation *product : products) {
      made.product = product;
      all.push_back(made);
    }
    return success();
  }

  LogicalResult refuse(Operation *op, const ArgumentEdit &edit) {
    return op->emitOpError()
           << "uses '" << edit.name
           << "' otherwise than as the weight of a linear layer, so that it "
              "cannot have an adapter";
  }

  /// result + lora_B(lora_A(dropout(x))) * scaling, as
  /// peft.tuners.lora.layer.Linear: x in the dtype of lora_A, and the sum in
  /// that of the base's matmul.
  void addProduct(const AdaptedMatmul &matmul) {
    Operation *product = matmul.product;
    const AdaptedTree::Lora &lora = matmul.lora;
    Value rows = matmul.rows();
    mlir::Location layer = product->getLoc();
    product->setLoc(childLocation(layer, "base_layer"));
    b.setInsertionPointAfter(product);
    auto linear = [&](Value x, Value matrix, StringRef child) -> Value {
      mlir::Location loc = childLocation(layer, child);
      Value turned = aten::TOp::create(b, loc, matrix);
      return aten::MmOp::create(b, loc, x, turned);
    };
    rows = aten::TypeAsOp::create(b, layer, rows, matmul.down);
    if (lora.dropout > 0)
      rows = aten::DropoutOp::create(
          b, childLocation(layer, "lora_dropout.default"), rows,
          llvm::APFloat(lora.dropout), nextKey());
    Value narrow = linear(rows, matmul.down, "lora_A.default");
    Value wide = linear(narrow, matmul.up, "lora_B.default");
    Value base = product->getResult(0), added;
    SmallPtrSet<Operation *, 4> own;
    if (lora.magnitude)
      added = decomposed(matmul, rows, wide, own);
    else
      added = aten::MulScalarOp::create(b, layer, wide, lora.scale);
    auto sum = aten::AddTensorOp::create(b, layer, base, added);
    auto result = aten::TypeAsOp::create(b, layer, sum, base);
    own.insert(sum);
    own.insert(result);
    base.replaceAllUsesExcept(result.getResult(), own);
  }

  /// (m / |W + BA| - 1) * W x + (m / |W + BA|) * B A x * scaling, as
  /// peft.tuners.lora.dora.DoraLinearLayer. W x is that of the layer without
  /// its bias; where the adapter's input has dropout it is computed once more,
  /// with the weight in the dtype of that input. `own` gets what reads the
  /// layer's result.
  Value decomposed(const AdaptedMatmul &matmul, Value rows, Value wide,
                   SmallPtrSetImpl<Operation *> &own) {
    Operation *product = matmul.product;
    const AdaptedTree::Lora &lora = matmul.lora;
    mlir::Location loc =
        childLocation(product->getLoc(), "lora_magnitude_vector.default");
    auto norm =
        aten::DoraNormOp::create(b, loc, matmul.weight, matmul.down, matmul.up,
                                 llvm::APFloat(lora.scale), lora.transposed);
    Value factor =
        aten::DivTensorOp::create(b, loc, matmul.magnitude, norm.getResult());
    if (lora.transposed)
      factor = aten::HoldOp::create(b, loc, factor, norm.getSum(),
                                    /*saved=*/true);
    factor = aten::UnsqueezeOp::create(b, loc, factor, 0);
    Value base = product->getResult(0);
    if (lora.dropout > 0) {
      Value matrix = aten::TypeAsOp::create(b, loc, matmul.weight, rows);
      if (!lora.transposed)
        matrix = aten::TOp::create(b, loc, matrix);
      base = aten::MmOp::create(b, loc, rows, matrix);
    } else if (isa<aten::AddmmOp>(product)) {
      auto plain =
          aten::SubTensorOp::create(b, loc, base, product->getOperand(0));
      own.insert(plain);
      base = plain;
    }
    Value less = aten::SubScalarOp::create(b, loc, factor, 1);
    auto first = aten::MulTensorOp::create(b, loc, less, base);
    own.insert(first);
    Value second = aten::MulTensorOp::create(b, loc, factor, wide);
    second = aten::MulScalarOp::create(b, loc, second, lora.scale);
    Value result = aten::AddTensorOp::create(b, loc, first, second);
    return aten::HoldOp::create(b, loc, result, norm.getFrame(),
                                /*saved=*/false);
  }

  /// A key that no random operator of the function draws by.
  int64_t nextKey() {
    if (!freeKey) {
      freeKey = 0;
      function.walk([&](Operation *op) {
        if (std::optional<int64_t> key = aten::randomKey(op))
          freeKey = std::max(*freeKey, *key + 1);
      });
    }
    return (*freeKey)++;
  }

  func::FuncOp function;
  ArrayRef<ArgumentEdit> edits;
  const AdapterConfig::Functions functions;
  OpBuilder b;
  std::optional<int64_t> freeKey;
};

} // namespace

LogicalResult accel::rewriteFunction(func::FuncOp function,
                                     ArrayRef<ArgumentEdit> edits,
                                     const AdapterConfig::Functions &functions,
                                     std::vector<std::string> &computed) {
  return Rewriter(function, edits, functions).run(computed);
}
