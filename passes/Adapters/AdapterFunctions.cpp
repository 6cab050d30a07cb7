//===- AdapterFunctions.cpp - Adapters in autograd functions --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Adapters/AdapterFunctions.h"

#include "dialects/Aten/Fused.h"
#include "dialects/Aten/Lora.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;

namespace {

/// Linear layers of one input that a function computes, in its order.
struct Projections {
  const char *module;
  bool AdapterConfig::Functions::*asked;
  SmallVector<const char *, 4> layers;
};

const Projections projections[] = {
    {"self_attn",
     &AdapterConfig::Functions::projections,
     {"q_proj", "k_proj", "v_proj"}},
    {"self_attn", &AdapterConfig::Functions::output, {"o_proj"}},
    {"linear_attn",
     &AdapterConfig::Functions::projections,
     {"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"}},
    {"linear_attn", &AdapterConfig::Functions::output, {"out_proj"}},
};

using Members = SmallVector<const AdaptedMatmul *, 4>;

class Functions {
public:
  Functions(func::FuncOp function, ArrayRef<AdaptedMatmul> all,
            llvm::function_ref<int64_t()> nextKey)
      : all(all), nextKey(nextKey), b(function.getContext()) {}

  SmallVector<AdaptedMatmul> run(const AdapterConfig::Functions &asked) {
    llvm::SetVector<StringRef> modules;
    for (const AdaptedMatmul &matmul : all)
      modules.insert(moduleOf(matmul.owner));
    for (StringRef module : modules) {
      const StringRef leaf = leafOf(module);
      for (const Projections &group : projections)
        if (leaf == group.module && asked.*group.asked)
          if (auto members = find(module, group.layers))
            project(*members);
      if (leaf == "mlp" && asked.mlp)
        if (auto members = find(module, {"gate_proj", "up_proj", "down_proj"}))
          computeMlp(*members);
    }
    SmallVector<AdaptedMatmul> others;
    for (const AdaptedMatmul &matmul : all)
      if (!done.contains(&matmul))
        others.push_back(matmul);
    return others;
  }

private:
  static StringRef moduleOf(StringRef layer) {
    return layer.rsplit('.').second.empty() ? StringRef()
                                            : layer.rsplit('.').first;
  }
  static StringRef leafOf(StringRef module) {
    return module.contains('.') ? module.rsplit('.').second : module;
  }

  std::optional<Members> find(StringRef module, ArrayRef<const char *> names) {
    Members members;
    for (StringRef name : names) {
      const std::string owner = (module + "." + name).str();
      const AdaptedMatmul *found = nullptr;
      for (const AdaptedMatmul &matmul : all) {
        if (matmul.owner != owner)
          continue;
        if (found || matmul.magnitude || matmul.lora.transposed)
          return std::nullopt;
        found = &matmul;
      }
      if (!found)
        return std::nullopt;
      members.push_back(found);
    }
    return members;
  }

  /// What a layer is given, of which the rows are a view.
  static Value sourceOf(Value value) {
    while (auto view = value.getDefiningOp<aten::ViewOp>())
      value = view.getSelf();
    return value;
  }
  static bool haveOneInput(ArrayRef<const AdaptedMatmul *> members) {
    return llvm::all_of(members, [&](const AdaptedMatmul *member) {
      return sourceOf(member->rows()) == sourceOf(members.front()->rows()) &&
             member->lora.dropout == members.front()->lora.dropout;
    });
  }

  /// The input with dropout, of which all layers of a function share one.
  Value dropped(const AdaptedMatmul &matmul, Value rows) {
    if (matmul.lora.dropout <= 0)
      return rows;
    return aten::DropoutOp::create(
        b, childLocation(matmul.product->getLoc(), "lora_dropout.default"),
        rows, llvm::APFloat(matmul.lora.dropout), nextKey());
  }

  Value asInput(mlir::Location loc, Value matrix, Value rows) {
    return aten::TypeAsOp::create(b, loc, matrix, rows);
  }

  /// matmul_lora: the adapter's part is added in place.
  Value linear(const AdaptedMatmul &matmul, Value rows, Value adapterRows) {
    mlir::Location layer = matmul.product->getLoc(),
                   base = childLocation(layer, "base_layer"),
                   narrowing = childLocation(layer, "lora_A.default"),
                   widening = childLocation(layer, "lora_B.default");
    Value turned = aten::TOp::create(b, base, matmul.weight), result;
    if (auto biased = dyn_cast<aten::AddmmOp>(matmul.product))
      result = aten::AddmmOp::create(b, base, biased.getSelf(), rows, turned);
    else
      result = aten::MmOp::create(b, base, rows, turned);
    Value down = asInput(narrowing, matmul.down, rows),
          up = asInput(widening, matmul.up, rows);
    Value narrow =
        aten::MmOp::create(b, narrowing, adapterRows,
                           Value(aten::TOp::create(b, narrowing, down)));
    return aten::AlphaAddmmOp::create(b, widening, result, narrow,
                                      Value(aten::TOp::create(b, widening, up)),
                                      matmul.lora.scale);
  }

  /// Adds what the function keeps of the layers: the weights, and matrices A
  /// and B in the dtype of the input.
  void addMatrices(ArrayRef<const AdaptedMatmul *> members, Value rows,
                   SmallVectorImpl<Value> &values,
                   SmallVectorImpl<double> &scales) {
    for (const AdaptedMatmul *member : members) {
      values.push_back(member->weight);
      scales.push_back(member->lora.scale);
    }
    for (const AdaptedMatmul *member : members)
      values.push_back(asInput(member->product->getLoc(), member->down, rows));
    for (const AdaptedMatmul *member : members)
      values.push_back(asInput(member->product->getLoc(), member->up, rows));
  }

  mlir::Location moduleLocation(const AdaptedMatmul &matmul) {
    auto named = dyn_cast<NameLoc>(matmul.product->getLoc());
    return named ? mlir::Location(NameLoc::get(
                       b.getStringAttr(moduleOf(named.getName().getValue()))))
                 : matmul.product->getLoc();
  }

  void project(const Members &members) {
    if (!haveOneInput(members))
      return;
    const AdaptedMatmul *first = *llvm::min_element(
        members, [](const AdaptedMatmul *x, const AdaptedMatmul *y) {
          return x->product->isBeforeInBlock(y->product);
        });
    b.setInsertionPoint(first->product);
    Value rows = first->rows(), adapterRows = dropped(*first, rows);
    SmallVector<Value> values;
    SmallVector<double> scales;
    for (const AdaptedMatmul *member : members)
      values.push_back(linear(*member, rows, adapterRows));
    values.append({rows, adapterRows});
    addMatrices(members, rows, values, scales);
    auto function = aten::LoraProjectionsOp::create(
        b, moduleLocation(*first), values, b.getDenseF64ArrayAttr(scales));
    for (auto [member, output] : llvm::zip(members, function.getOutputs()))
      member->product->getResult(0).replaceAllUsesWith(output);
    finish(members);
  }

  /// down(act(gate(x)) * up(x)).
  void computeMlp(const Members &members) {
    const AdaptedMatmul &gate = *members[0], &up = *members[1],
                        &down = *members[2];
    auto product = sourceOf(down.rows()).getDefiningOp<aten::MulTensorOp>();
    Operation *activation =
        product ? product.getSelf().getDefiningOp() : nullptr;
    const bool gelu = isa_and_nonnull<aten::GeluOp>(activation);
    if ((!gelu && !isa_and_nonnull<aten::SiluOp>(activation)) ||
        sourceOf(activation->getOperand(0)) != gate.product->getResult(0) ||
        sourceOf(product.getOther()) != up.product->getResult(0) ||
        !haveOneInput({&gate, &up}))
      return;
    b.setInsertionPoint(down.product);
    Value rows = gate.rows(), adapterRows = dropped(gate, rows);
    Value opened = linear(gate, rows, adapterRows),
          values = linear(up, rows, adapterRows), inner;
    mlir::Location module = moduleLocation(down);
    if (gelu)
      inner = aten::GegluOp::create(b, module, opened, values);
    else
      inner = aten::SwigluOp::create(b, module, opened, values);
    SmallVector<Value> all = {linear(down, inner, inner), rows, adapterRows,
                              opened, values};
    SmallVector<double> scales;
    addMatrices(members, rows, all, scales);
    auto function = aten::LoraMlpOp::create(
        b, module, all, b.getDenseF64ArrayAttr(scales), gelu);
    down.product->getResult(0).replaceAllUsesWith(function.getOutput());
    finish(members);
  }

  /// Erases what computed the layers, as far as nobody reads it.
  void finish(const Members &members) {
    llvm::SmallSetVector<Operation *, 16> unread;
    for (const AdaptedMatmul *member : members) {
      done.insert(member);
      unread.insert(member->product);
    }
    while (!unread.empty()) {
      Operation *op = unread.pop_back_val();
      if (!op->use_empty() || !isMemoryEffectFree(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp())
          unread.insert(maker);
      op->erase();
    }
  }

  ArrayRef<AdaptedMatmul> all;
  llvm::function_ref<int64_t()> nextKey;
  OpBuilder b;
  llvm::SmallPtrSet<const AdaptedMatmul *, 8> done;
};

} // namespace

Value AdaptedMatmul::rows() const {
  return product->getOperand(isa<aten::AddmmOp>(product) ? 1 : 0);
}

SmallVector<AdaptedMatmul>
accel::computeInFunctions(func::FuncOp function, ArrayRef<AdaptedMatmul> all,
                          const AdapterConfig::Functions &asked,
                          llvm::function_ref<int64_t()> nextKey) {
  if (!asked.any())
    return SmallVector<AdaptedMatmul>(all);
  return Functions(function, all, nextKey).run(asked);
}

bool accel::mayHaveFunctions(const std::string &path) {
  auto [before, number] = StringRef(path).rsplit('.');
  return before.ends_with("layers") && !before.contains("vis") &&
         !number.empty() &&
         llvm::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
}

mlir::Location accel::childLocation(mlir::Location loc, StringRef child) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return NameLoc::get(
        StringAttr::get(loc.getContext(), named.getName().str() + "." + child));
  return loc;
}
