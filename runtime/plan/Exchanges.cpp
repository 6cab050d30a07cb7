//===- Exchanges.cpp - What ranks exchange in a function ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Exchanges.h"

#include "runtime/plan/Mesh.h"

#include <algorithm>
#include <array>

namespace accel::plan {

namespace {

/// Elements of one tensor: far above any, far below overflow.
constexpr int64_t maxSize = int64_t(1) << 45;
constexpr std::string_view dialect = "sharding::";

/// How many tensors stand before the numbers, and how many of these before the
/// axes.
struct Form {
  const char *name;
  ExchangeKind kind;
  size_t tensors;
  size_t numbers;
  bool oneAxis;
};
constexpr std::array forms = {
    Form{"all_reduce", ExchangeKind::AllReduce, 1, 1, false},
    Form{"all_gather", ExchangeKind::AllGather, 1, 3, true},
    Form{"reduce_scatter", ExchangeKind::ReduceScatter, 1, 3, true},
    Form{"all_to_all", ExchangeKind::AllToAll, 1, 2, true},
    Form{"permute", ExchangeKind::Permute, 1, 1, true},
    Form{"slice", ExchangeKind::Slice, 1, 3, true},
    Form{"first_rank", ExchangeKind::FirstRank, 1, 0, false},
    Form{"expert_ends", ExchangeKind::ExpertEnds, 1, 1, true},
    Form{"dispatch", ExchangeKind::Dispatch, 2, 1, true},
    Form{"combine", ExchangeKind::Combine, 2, 1, true},
    Form{"coordinate", ExchangeKind::Coordinate, 0, 1, true}};

const Form *formOf(std::string_view op) {
  if (!op.starts_with(dialect))
    return nullptr;
  op.remove_prefix(dialect.size());
  const auto *found = std::find_if(forms.begin(), forms.end(),
                                   [&](const Form &f) { return op == f.name; });
  return found == forms.end() ? nullptr : found;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// `shape` with dimension `dim` divided by `ranks`, in `pieces` pieces; nothing
/// where it cannot be.
std::optional<std::vector<int64_t>>
partOf(std::vector<int64_t> shape, int64_t dim, int64_t ranks, int64_t pieces) {
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || pieces < 1 ||
      pieces > maxSize / ranks || shape[dim] % (ranks * pieces) != 0)
    return std::nullopt;
  shape[dim] /= ranks;
  return shape;
}

/// What ranks that have other experts do; they gather each other's ends.
bool isOfExperts(ExchangeKind kind) {
  return kind == ExchangeKind::AllGather || kind == ExchangeKind::ExpertEnds ||
         kind == ExchangeKind::Dispatch || kind == ExchangeKind::Combine;
}

/// Each rank's ends of each expert's rows.
bool areEnds(const std::vector<int64_t> &shape, int64_t ranks) {
  return shape.size() == 2 && shape[0] == ranks && shape[1] > 0 &&
         shape[1] % ranks == 0;
}

/// The shape of the result; nothing where the exchange does not fit `from`.
std::optional<std::vector<int64_t>> resultShape(const Exchange &exchange,
                                                std::vector<int64_t> from,
                                                int64_t ranks) {
  auto whole = [&](int64_t dim) {
    if (dim < 0 || dim >= static_cast<int64_t>(from.size()) ||
        from[dim] > maxSize / ranks)
      return false;
    from[dim] *= ranks;
    return true;
  };
  switch (exchange.kind) {
  case ExchangeKind::AllReduce:
  case ExchangeKind::FirstRank:
    return from;
  case ExchangeKind::Permute:
    if (exchange.shift < 1 || exchange.shift >= ranks)
      return std::nullopt;
    return from;
  case ExchangeKind::AllGather:
    if (!whole(exchange.dim) ||
        !partOf(from, exchange.dim, ranks, exchange.pieces))
      return std::nullopt;
    return from;
  case ExchangeKind::ReduceScatter:
  case ExchangeKind::Slice:
    return partOf(from, exchange.dim, ranks, exchange.pieces);
  case ExchangeKind::AllToAll:
    if (exchange.dim == exchange.concat || !whole(exchange.concat))
      return std::nullopt;
    return partOf(from, exchange.dim, ranks, 1);
  case ExchangeKind::ExpertEnds:
    if (!areEnds(from, ranks))
      return std::nullopt;
    return std::vector<int64_t>{from[1] / ranks};
  case ExchangeKind::Dispatch:
  case ExchangeKind::Combine:
    if (from.size() != 2)
      return std::nullopt;
    return std::vector<int64_t>{exchange.rows, from[1]};
  case ExchangeKind::Coordinate:
    return std::vector<int64_t>{};
  }
  return std::nullopt;
}

} // namespace

const char *toString(ExchangeKind kind) {
  for (const Form &form : forms)
    if (form.kind == kind)
      return form.name;
  return "";
}

int64_t blocksOf(const std::vector<int64_t> &whole, int64_t dim,
                 int64_t pieces) {
  for (int64_t i = 0; i < dim; ++i)
    pieces *= whole[i];
  return pieces;
}

bool isExchange(const Instruction &instruction) {
  return instruction.op.rfind(dialect, 0) == 0;
}

std::optional<Exchange> exchangeOf(const Instruction &instruction) {
  const Form *form = formOf(instruction.op);
  if (!form || instruction.results.size() != 1 || instruction.results[0] < 0)
    return std::nullopt;
  Exchange exchange;
  exchange.kind = form->kind;
  exchange.result = instruction.results[0];
  auto arg = instruction.args.begin();
  const auto end = instruction.args.end();
  for (size_t i = 0; i < form->tensors; ++i) {
    if (arg == end || arg->kind != Arg::Kind::Tensor)
      return std::nullopt;
    (i ? exchange.ends : exchange.value) = arg++->slot;
  }
  std::vector<int64_t> numbers;
  for (; arg != end && arg->kind == Arg::Kind::Int; ++arg)
    numbers.push_back(arg->intValue);
  for (; arg != end && arg->kind == Arg::Kind::Text; ++arg)
    exchange.axes.push_back(arg->text);
  if (arg != end || numbers.size() != form->numbers || exchange.axes.empty() ||
      (form->oneAxis && exchange.axes.size() != 1))
    return std::nullopt;
  switch (form->kind) {
  case ExchangeKind::AllReduce:
    if (numbers[0] != 0 && numbers[0] != 1)
      return std::nullopt;
    exchange.max = numbers[0] == 1;
    break;
  case ExchangeKind::AllGather:
  case ExchangeKind::ReduceScatter:
  case ExchangeKind::Slice:
    exchange.dim = numbers[0];
    exchange.pieces = numbers[1];
    exchange.mirrored = numbers[2] == 1;
    if ((numbers[2] != 0 && numbers[2] != 1) ||
        (exchange.mirrored && exchange.pieces % 2 != 0))
      return std::nullopt;
    break;
  case ExchangeKind::Permute:
    exchange.shift = numbers[0];
    break;
  case ExchangeKind::AllToAll:
    exchange.dim = numbers[0];
    exchange.concat = numbers[1];
    break;
  case ExchangeKind::Coordinate:
    exchange.step = numbers[0];
    break;
  case ExchangeKind::ExpertEnds:
  case ExchangeKind::Dispatch:
  case ExchangeKind::Combine:
    exchange.rows = numbers[0];
    if (exchange.rows < 1 || exchange.rows > maxSize)
      return std::nullopt;
    break;
  case ExchangeKind::FirstRank:
    break;
  }
  return exchange;
}

std::string exchangeProblem(const Plan &plan, const Function &function,
                            const Instruction &instruction) {
  if (!formOf(instruction.op))
    return "there is no such exchange";
  const std::optional<Exchange> exchange = exchangeOf(instruction);
  if (!exchange)
    return "its arguments are not those of the exchange";
  for (auto axis = exchange->axes.begin(); axis != exchange->axes.end();
       ++axis) {
    const bool known =
        std::any_of(plan.axes.begin(), plan.axes.end(),
                    [&](const Axis &a) { return a.name == *axis; });
    if (!known)
      return "the mesh has no axis '" + *axis + "'";
    if (!sharesSamples(*axis) &&
        !(*axis == expertAxis && isOfExperts(exchange->kind)))
      return "the ranks of '" + *axis + "' compute different samples";
    if (std::find(exchange->axes.begin(), axis, *axis) != axis)
      return "the axis '" + *axis + "' is named twice";
  }
  const Slot &result = function.slots[exchange->result];
  std::vector<int64_t> from;
  DType dtype = DType::I64;
  if (exchange->value >= 0) {
    from = function.slots[exchange->value].shape;
    dtype = function.slots[exchange->value].dtype;
  }
  if (result.dtype != dtype)
    return std::string("it gives ") + toString(dtype) + ", and slot " +
           std::to_string(exchange->result) + " is " + toString(result.dtype);
  const int64_t ranks = plan.groupSize(exchange->axes);
  if (exchange->kind == ExchangeKind::ExpertEnds && dtype != DType::I32)
    return std::string("it reads ends of rows as ") + toString(dtype);
  if (exchange->movesRows()) {
    const Slot &ends = function.slots[exchange->ends];
    if (ends.dtype != DType::I32 || !areEnds(ends.shape, ranks))
      return "slot " + std::to_string(exchange->ends) + ", " +
             toString(ends.dtype) + " " + shapeText(ends.shape) +
             ", holds no ends of experts' rows of " + std::to_string(ranks) +
             " ranks";
  }
  const auto shape = resultShape(*exchange, from, ranks);
  if (!shape)
    return "a tensor " + shapeText(from) + " cannot be exchanged so among " +
           std::to_string(ranks) + " ranks";
  if (*shape != result.shape)
    return "it gives " + shapeText(*shape) + ", and slot " +
           std::to_string(exchange->result) + " is " + shapeText(result.shape);
  return "";
}

} // namespace accel::plan
