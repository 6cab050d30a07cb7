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
constexpr std::string_view startSuffix = ".start";
constexpr std::string_view awaitName = "sharding::await";

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
    Form{"expert_ends", ExchangeKind::ExpertEnds, 1, 1, false},
    Form{"dispatch", ExchangeKind::Dispatch, 2, 1, false},
    Form{"combine", ExchangeKind::Combine, 2, 1, false},
    Form{"coordinate", ExchangeKind::Coordinate, 0, 1, true}};

const Form *formOf(std::string_view op) {
  if (!op.starts_with(dialect))
    return nullptr;
  op.remove_prefix(dialect.size());
  if (op.ends_with(startSuffix))
    op.remove_suffix(startSuffix.size());
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
  case ExchangeKind::Await:
    break;
  }
  return std::nullopt;
}

int64_t product(const std::vector<int64_t> &shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

/// The tensors of an instruction, in their order.
std::vector<int> tensorsOf(const Instruction &instruction) {
  std::vector<int> slots;
  for (const Arg &arg : instruction.args) {
    if (arg.kind == Arg::Kind::Tensor)
      slots.push_back(arg.slot);
    for (int64_t slot : arg.ints)
      if (arg.kind == Arg::Kind::Tensors && slot >= 0)
        slots.push_back(static_cast<int>(slot));
  }
  return slots;
}

/// Nothing but tensors: what was started, and what must stay until it is over.
std::optional<Exchange> awaitOf(const Instruction &instruction) {
  Exchange exchange;
  exchange.kind = ExchangeKind::Await;
  for (const Arg &arg : instruction.args) {
    if (arg.kind != Arg::Kind::Tensor)
      return std::nullopt;
    if (exchange.result < 0)
      exchange.result = arg.slot;
    else
      exchange.buffers.push_back(arg.slot);
  }
  if (exchange.result < 0 || !instruction.results.empty())
    return std::nullopt;
  return exchange;
}

} // namespace

const char *toString(ExchangeKind kind) {
  for (const Form &form : forms)
    if (form.kind == kind)
      return form.name;
  return kind == ExchangeKind::Await ? "await" : "";
}

bool canStart(ExchangeKind kind) {
  return kind == ExchangeKind::AllReduce || kind == ExchangeKind::AllGather ||
         kind == ExchangeKind::ReduceScatter ||
         kind == ExchangeKind::AllToAll || kind == ExchangeKind::Permute ||
         kind == ExchangeKind::Dispatch || kind == ExchangeKind::Combine;
}

std::vector<int64_t> exchangeBuffers(const Exchange &exchange,
                                     const std::vector<int64_t> &shape,
                                     int64_t ranks, bool contiguous, bool cpu) {
  const int64_t numel = product(shape);
  std::vector<int64_t> buffers;
  // A sum is made in its result, which the value is copied to.
  if (!contiguous && exchange.kind != ExchangeKind::AllReduce)
    buffers.push_back(numel);
  const int64_t atMost = cpu ? mostMessages : 1;
  if (exchange.kind == ExchangeKind::AllGather) {
    std::vector<int64_t> whole = shape;
    whole[exchange.dim] *= ranks;
    if (blocksOf(whole, exchange.dim, exchange.pieces) > atMost)
      buffers.push_back(numel * ranks);
  } else if (exchange.kind == ExchangeKind::ReduceScatter) {
    if (blocksOf(shape, exchange.dim, exchange.pieces) > atMost)
      buffers.push_back(numel);
    if (cpu) // what the others send is summed on this rank
      buffers.push_back(numel / ranks * (ranks - 1));
  } else if (exchange.kind == ExchangeKind::AllToAll) {
    buffers.insert(buffers.end(), {numel, numel});
  } else if (exchange.kind == ExchangeKind::Dispatch) {
    buffers.push_back(exchange.rows * shape.back()); // rank by rank
  } else if (exchange.kind == ExchangeKind::Combine) {
    buffers.push_back(numel);
  }
  return buffers;
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
  if (instruction.op == awaitName)
    return awaitOf(instruction);
  const Form *form = formOf(instruction.op);
  if (!form || instruction.results.empty() || instruction.results[0] < 0)
    return std::nullopt;
  Exchange exchange;
  exchange.kind = form->kind;
  exchange.started = instruction.op.ends_with(startSuffix);
  exchange.buffers.assign(instruction.results.begin() + 1,
                          instruction.results.end());
  if (exchange.started ? !canStart(exchange.kind) : !exchange.buffers.empty())
    return std::nullopt;
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
  case ExchangeKind::Await:
    break;
  }
  return exchange;
}

std::string exchangeProblem(const Plan &plan, const Function &function,
                            const Instruction &instruction) {
  if (!formOf(instruction.op) && instruction.op != awaitName)
    return "there is no such exchange";
  const std::optional<Exchange> exchange = exchangeOf(instruction);
  if (!exchange)
    return "its arguments are not those of the exchange";
  if (exchange->kind == ExchangeKind::Await)
    return "";
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
  if (!exchange->started)
    return "";
  std::vector<int64_t> given;
  for (int slot : exchange->buffers) {
    const Slot &buffer = function.slots[slot];
    if (buffer.dtype != dtype || buffer.shape.size() != 1 ||
        buffer.base != slot)
      return "slot " + std::to_string(slot) + " is no buffer of its " +
             toString(dtype);
    given.push_back(buffer.shape[0]);
  }
  for (bool contiguous : {true, false})
    if (given == exchangeBuffers(*exchange, from, ranks, contiguous,
                                 plan.device == "cpu"))
      return "";
  return "its buffers are " + shapeText(given) + ", expected " +
         shapeText(exchangeBuffers(*exchange, from, ranks, true,
                                   plan.device == "cpu"));
}

std::string startProblem(const Function &function) {
  struct Flight {
    size_t instruction;
    std::vector<int> written, read; // storages
  };
  std::vector<Flight> flights;
  auto baseOf = [&](int slot) { return function.slots[slot].base; };
  auto nameOf = [&](size_t i) {
    return "instruction " + std::to_string(i) + " (" +
           function.instructions[i].op + ")";
  };
  auto has = [](const std::vector<int> &list, int slot) {
    return std::find(list.begin(), list.end(), slot) != list.end();
  };
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &instruction = function.instructions[i];
    const std::optional<Exchange> exchange =
        isExchange(instruction) ? exchangeOf(instruction) : std::nullopt;
    if (exchange && exchange->kind == ExchangeKind::Await) {
      const auto started =
          std::find_if(flights.begin(), flights.end(), [&](const Flight &f) {
            return f.written[0] == baseOf(exchange->result);
          });
      if (started == flights.end())
        return nameOf(i) + " awaits slot " + std::to_string(exchange->result) +
               ", which no exchange under way gives";
      flights.erase(started);
    }
    for (const Flight &flight : flights) {
      for (int slot : tensorsOf(instruction))
        if (has(flight.written, baseOf(slot)))
          return nameOf(i) + " reads slot " + std::to_string(slot) +
                 " before " + nameOf(flight.instruction) + " is awaited";
      for (int slot : instruction.frees)
        if (has(flight.written, baseOf(slot)) || has(flight.read, slot))
          return nameOf(i) + " frees slot " + std::to_string(slot) +
                 " before " + nameOf(flight.instruction) + " is awaited";
    }
    if (!exchange || !exchange->started)
      continue;
    Flight flight{i, {baseOf(exchange->result)}, {}};
    for (int slot : exchange->buffers)
      flight.written.push_back(baseOf(slot));
    // A sum is made of a copy, and rows go back from one.
    if (exchange->kind != ExchangeKind::AllReduce &&
        exchange->kind != ExchangeKind::Combine)
      flight.read.push_back(exchange->value);
    for (int slot : instruction.frees)
      if (has(flight.written, baseOf(slot)) || has(flight.read, slot))
        return nameOf(i) + " frees slot " + std::to_string(slot) +
               " before it is awaited";
    flights.push_back(std::move(flight));
  }
  return flights.empty()
             ? ""
             : nameOf(flights.front().instruction) + " is never awaited";
}

} // namespace accel::plan
