//===- LowerJoins.cpp - Several tensors become one ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;

namespace {

using Results = Lowering::Results;
using Maybe = std::optional<Results>;

Maybe concatenation(Lowering &f, const Call &call) {
  SmallVector<Value> parts = call.tensors("tensors");
  auto dim = call.integer("dim");
  if (parts.empty() || !dim)
    return std::nullopt;
  if (parts.size() == 1)
    return Results{parts.front()};
  return Results{f.make<aten::CatOp>(
      parts, {{"dim", f.integer(*dim < 0 ? *dim + f.rank(parts[0]) : *dim)}})};
}

/// stack: each with a new dimension, joined along it.
Maybe stack(Lowering &f, const Call &call) {
  SmallVector<Value> parts = call.tensors("tensors");
  auto given = call.integer("dim");
  if (parts.empty() || !given)
    return std::nullopt;
  int64_t rank = f.rank(parts.front());
  int64_t dim = *given < 0 ? *given + rank + 1 : *given;
  if (dim < 0 || dim > rank)
    return std::nullopt;
  for (Value &part : parts)
    part = f.make<aten::UnsqueezeOp>(part, {{"dim", f.integer(dim)}});
  if (parts.size() == 1)
    return Results{parts.front()};
  return Results{f.make<aten::CatOp>(parts, {{"dim", f.integer(dim)}})};
}

//===----------------------------------------------------------------------===//
// einsum
//===----------------------------------------------------------------------===//

/// A product of two tensors whose dimensions are letters, as PyTorch's
/// sumproduct_pair computes it (aten/src/ATen/native/Linear.cpp): dimensions of
/// both that stay are the batch, of one alone rows or columns, the others are
/// summed over.
class Einsum {
public:
  Einsum(Lowering &f, StringRef left, StringRef right, StringRef result)
      : f(f), left(left), right(right), result(result) {}

  Value run(Value a, Value b);

private:
  /// Where each letter of `order` stands in `from`.
  Value ordered(Value value, StringRef from, StringRef order);
  int64_t product(StringRef letters) const;

  Lowering &f;
  StringRef left, right, result;
  llvm::DenseMap<char, int64_t> sizes;
};

bool allDifferent(StringRef letters) {
  for (size_t i = 0; i < letters.size(); ++i)
    if (letters.find(letters[i], i + 1) != StringRef::npos)
      return false;
  return true;
}

Value Einsum::ordered(Value value, StringRef from, StringRef order) {
  if (from == order)
    return value;
  SmallVector<int64_t> dims;
  for (char letter : order)
    dims.push_back(int64_t(from.find(letter)));
  return f.make<aten::PermuteOp>(value, {{"dims", f.integers(dims)}});
}

int64_t Einsum::product(StringRef letters) const {
  int64_t size = 1;
  for (char letter : letters)
    size *= sizes.lookup(letter);
  return size;
}

Value Einsum::run(Value a, Value b) {
  if (f.rank(a) != int64_t(left.size()) || f.rank(b) != int64_t(right.size()) ||
      !allDifferent(left) || !allDifferent(right) || !allDifferent(result))
    return {};
  for (auto [letters, value] : {std::pair(left, a), std::pair(right, b)})
    for (auto [letter, size] : llvm::zip(letters, f.shape(value)))
      if (sizes.try_emplace(letter, size).first->second != size)
        return {};
  std::string batch, rows, columns, summed;
  for (char letter : left)
    (right.contains(letter) ? result.contains(letter) ? batch : summed : rows)
        .push_back(letter);
  for (char letter : right)
    if (!left.contains(letter))
      columns.push_back(letter);
  // A letter of one side alone that the result lacks is summed there first.
  for (const std::string &letters : {rows, columns})
    for (char letter : letters)
      if (!result.contains(letter))
        return {};
  if (result.size() != batch.size() + rows.size() + columns.size())
    return {};
  a = ordered(a, left, batch + rows + summed);
  b = ordered(b, right, batch + summed + columns);
  if (!a || !b)
    return {};
  a = f.reshape(a, {product(batch), product(rows), product(summed)});
  b = f.reshape(b, {product(batch), product(summed), product(columns)});
  Value all = f.make<aten::BmmOp>({a, b});
  if (!all)
    return {};
  std::string order = batch + rows + columns;
  SmallVector<int64_t> shape;
  for (char letter : order)
    shape.push_back(sizes.lookup(letter));
  return ordered(f.reshape(all, shape), order, result);
}

Maybe einsum(Lowering &f, const Call &call) {
  std::string equation = call["equation"].text;
  llvm::erase(equation, ' ');
  SmallVector<Value> tensors = call.tensors("tensors");
  auto [inputs, result] = StringRef(equation).split("->");
  auto [left, right] = inputs.split(',');
  if (tensors.size() != 2 || right.empty() || right.contains(',') ||
      !StringRef(equation).contains("->") ||
      !llvm::all_of((left + right + result).str(), llvm::isAlpha))
    return std::nullopt;
  Value product = Einsum(f, left, right, result).run(tensors[0], tensors[1]);
  return product ? Maybe(Results{product}) : std::nullopt;
}

} // namespace

void torchexport::addJoinRules(llvm::StringMap<Lowering::Rule> &rules) {
  for (const char *name : {"aten::concat", "aten::concatenate", "aten::cat"})
    rules[name] = concatenation;
  rules["aten::stack"] = stack;
  rules["aten::einsum"] = einsum;
}
