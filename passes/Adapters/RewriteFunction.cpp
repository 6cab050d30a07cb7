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

static mlir::Location below(mlir::Location loc, StringRef child) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return NameLoc::get(
        StringAttr::get(loc.getContext(), named.getName().str() + "." + child));
  return loc;
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

/// The left operand of a matmul in which `weight` is the right one.
Value rowsOf(Operation *op, Value weight) {
  if (auto mm = dyn_cast<aten::MmOp>(op))
    return mm->getOperand(1) == weight ? mm->getOperand(0) : Value();
  if (auto addmm = dyn_cast<aten::AddmmOp>(op))
    return addmm->getOperand(2) == weight && addmm->getOperand(0) != weight
               ? addmm->getOperand(1)
               : Value();
  return {};
}

/// The arguments of an adapter.
struct Pair {
  BlockArgument down, up;  // A [rank, in], B [out, rank]
  BlockArgument magnitude; // [out] of DoRA, else null
};

class Rewriter {
public:
  Rewriter(func::FuncOp function, ArrayRef<ArgumentEdit> edits)
      : function(function), edits(edits), b(function.getContext()) {}

  LogicalResult run() {
    SmallVector<std::pair<BlockArgument, const ArgumentEdit *>> weights;
    for (auto [i, edit] : llvm::enumerate(edits)) {
      if (edit.name.empty())
        continue;
      function.setArgAttr(i, sharding::paramArgAttr,
                          b.getStringAttr(edit.name));
      if (edit.lora)
        weights.push_back({function.getArgument(i), &edit});
    }
    for (auto &[weight, edit] : weights)
      if (failed(adapt(weight, *edit)))
        return failure();
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

  LogicalResult adapt(BlockArgument weight, const ArgumentEdit &edit) {
    const AdaptedTree::Lora &lora = *edit.lora;
    SmallVector<std::pair<Operation *, Value>> products; // and rows
    for (Operation *user : weight.getUsers()) {
      if (Value rows = rowsOf(user, weight); rows && lora.transposed) {
        products.push_back({user, rows});
        continue;
      }
      if (!isTransposition(user) || lora.transposed)
        return refuse(user, edit);
      for (Operation *product : user->getUsers()) {
        Value rows = rowsOf(product, user->getResult(0));
        if (!rows)
          return refuse(product, edit);
        products.push_back({product, rows});
      }
    }
    Type element = cast<RankedTensorType>(weight.getType()).getElementType();
    unsigned at = placeOf(weight);
    Pair pair;
    pair.down = addArgument(at, edit, "lora_A", {lora.rank, lora.in}, element);
    pair.up =
        addArgument(at + 1, edit, "lora_B", {lora.out, lora.rank}, element);
    if (lora.magnitude)
      pair.magnitude = addArgument(at + 2, edit, "lora_magnitude_vector",
                                   {lora.out}, element);
    for (auto &[product, rows] : products)
      addProduct(product, rows, weight, pair, lora);
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
  void addProduct(Operation *product, Value rows, Value weight,
                  const Pair &pair, const AdaptedTree::Lora &lora) {
    mlir::Location layer = product->getLoc();
    product->setLoc(below(layer, "base_layer"));
    b.setInsertionPointAfter(product);
    auto linear = [&](Value x, Value matrix, StringRef child) -> Value {
      mlir::Location loc = below(layer, child);
      Value turned = aten::TOp::create(b, loc, matrix);
      return aten::MmOp::create(b, loc, x, turned);
    };
    rows = aten::TypeAsOp::create(b, layer, rows, pair.down);
    if (lora.dropout > 0)
      rows =
          aten::DropoutOp::create(b, below(layer, "lora_dropout.default"), rows,
                                  llvm::APFloat(lora.dropout), nextKey());
    Value narrow = linear(rows, pair.down, "lora_A.default");
    Value wide = linear(narrow, pair.up, "lora_B.default");
    Value base = product->getResult(0), added;
    SmallPtrSet<Operation *, 4> own;
    if (lora.magnitude)
      added = decomposed(product, rows, wide, weight, pair, lora, own);
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
  Value decomposed(Operation *product, Value rows, Value wide, Value weight,
                   const Pair &pair, const AdaptedTree::Lora &lora,
                   SmallPtrSetImpl<Operation *> &own) {
    mlir::Location loc =
        below(product->getLoc(), "lora_magnitude_vector.default");
    auto norm =
        aten::DoraNormOp::create(b, loc, weight, pair.down, pair.up,
                                 llvm::APFloat(lora.scale), lora.transposed);
    Value factor =
        aten::DivTensorOp::create(b, loc, pair.magnitude, norm.getResult());
    if (lora.transposed)
      factor = aten::HoldOp::create(b, loc, factor, norm.getSum(),
                                    /*saved=*/true);
    factor = aten::UnsqueezeOp::create(b, loc, factor, 0);
    Value base = product->getResult(0);
    if (lora.dropout > 0) {
      Value matrix = aten::TypeAsOp::create(b, loc, weight, rows);
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
  OpBuilder b;
  std::optional<int64_t> freeKey;
};

} // namespace

LogicalResult accel::rewriteFunction(func::FuncOp function,
                                     ArrayRef<ArgumentEdit> edits) {
  return Rewriter(function, edits).run();
}
