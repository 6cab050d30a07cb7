//===- Optimizers.cpp - Optimizers by name, and their states' bytes -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Optimizers.h"
#include "runtime/plan/OptimizerOfStates.h"

#include <algorithm>

namespace accel::plan {

namespace {

constexpr int64_t blockElements = 256, largeElements = 4096;

bool has(StateOf of, size_t dimensions, int64_t numel, bool wide) {
  switch (of) {
  case StateOf::All:
    return true;
  case StateOf::Matrices:
    return dimensions >= 2;
  case StateOf::Vectors:
    return dimensions < 2;
  case StateOf::TwoDimensional:
    return dimensions == 2;
  case StateOf::NotTwoDimensional:
    return dimensions != 2;
  case StateOf::Large:
    return numel >= largeElements && !wide;
  case StateOf::Small:
    return numel < largeElements || wide;
  case StateOf::Blocked:
    return numel >= largeElements && numel % blockElements == 0;
  case StateOf::Apart:
    return numel < largeElements || numel % blockElements != 0;
  }
  return true;
}

int64_t product(const std::vector<int64_t> &shape, int64_t rows) {
  int64_t n = shape.empty() ? 1 : rows;
  for (size_t i = 1; i < shape.size(); ++i)
    n *= shape[i];
  return n;
}

} // namespace

const OptimizerDescription *findOptimizer(const std::string &name) {
  for (const OptimizerDescription &description : optimizers())
    if (name == description.name)
      return &description;
  return nullptr;
}

std::vector<std::string> optimizerNames(bool executedOnly) {
  std::vector<std::string> names;
  for (const OptimizerDescription &description : optimizers())
    if (description.executed || !executedOnly)
      names.emplace_back(description.name);
  return names;
}

/// Where the numbers of a hyperparameter start among all of them.
static std::optional<std::pair<size_t, size_t>>
rangeOf(const OptimizerDescription &description, const char *name) {
  size_t at = 0;
  for (const Hyperparameter &parameter : description.hyperparameters) {
    if (std::string_view(parameter.name) == name)
      return std::pair(at, parameter.standard.size());
    at += parameter.standard.size();
  }
  return std::nullopt;
}

static std::vector<double> defaults(const OptimizerDescription &description) {
  std::vector<double> all;
  for (const Hyperparameter &parameter : description.hyperparameters)
    all.insert(all.end(), parameter.standard.begin(), parameter.standard.end());
  return all;
}

std::vector<double> valueOf(const Optimizer &optimizer, const char *name) {
  const OptimizerDescription *description = findOptimizer(optimizer.name);
  const auto range = description ? rangeOf(*description, name) : std::nullopt;
  if (!range)
    return {};
  const std::vector<double> all =
      optimizer.values.empty() ? defaults(*description) : optimizer.values;
  if (range->first + range->second > all.size())
    return {};
  return {all.begin() + range->first,
          all.begin() + range->first + range->second};
}

double numberOf(const Optimizer &optimizer, const char *name, size_t i) {
  const std::vector<double> numbers = valueOf(optimizer, name);
  return i < numbers.size() ? numbers[i] : 0.0;
}

void setValue(Optimizer &optimizer, const char *name,
              const std::vector<double> &numbers) {
  const OptimizerDescription *description = findOptimizer(optimizer.name);
  const auto range = description ? rangeOf(*description, name) : std::nullopt;
  if (!range || range->second != numbers.size())
    return;
  std::vector<double> all = defaults(*description);
  const std::vector<double> standard = all;
  if (optimizer.values.size() == all.size())
    all = optimizer.values;
  std::copy(numbers.begin(), numbers.end(), all.begin() + range->first);
  optimizer.values = all == standard ? std::vector<double>() : std::move(all);
}

OptimizerRule::OptimizerRule(const Optimizer &optimizer,
                             std::optional<DType> dtype, UpdateHabits habits)
    : description(findOptimizer(optimizer.name)), values(optimizer),
      habits(habits) {
  if (!description)
    return;
  for (StateRule state : description->states) {
    if (state.needs && numberOf(optimizer, state.needs) == 0)
      continue;
    if (!state.dtype)
      state.dtype = dtype;
    states.push_back(state);
  }
  for (int kernel = 0; kernel < numUpdateKernels; ++kernel)
    costs[kernel] =
        description->cost(optimizer, static_cast<UpdateKernel>(kernel));
}

int64_t OptimizerRule::elements(const StateRule &state,
                                const std::vector<int64_t> &shape, int64_t rows,
                                bool wide) {
  const int64_t numel = product(shape, rows);
  if (!has(state.of, shape.size(), numel, wide))
    return 0;
  const size_t last = shape.size() - 1;
  switch (state.shape) {
  case StateShape::Whole:
    return numel;
  case StateShape::Rows:
    return shape.size() < 2 || shape[last] == 0 ? numel : numel / shape[last];
  case StateShape::Columns: {
    if (shape.size() < 2)
      return numel;
    const int64_t before = last == 1 ? rows : shape[last - 1];
    return before == 0 ? 0 : numel / before;
  }
  case StateShape::PerBlock:
    return (numel + blockElements - 1) / blockElements;
  case StateShape::Double:
    return 2 * numel;
  case StateShape::DoubleBlocks:
    return 2 * ((numel + blockElements - 1) / blockElements);
  case StateShape::Halves:
    return numel / 2;
  case StateShape::Table256:
    return 256;
  case StateShape::Table16:
    return 16;
  }
  return numel;
}

int64_t OptimizerRule::stateBytes(const std::vector<int64_t> &shape,
                                  DType parameter) const {
  int64_t bytes = 0;
  for (const StateRule &state : states)
    bytes += elements(state, shape, shape.empty() ? 1 : shape.front()) *
             itemSize(dtypeOf(state, parameter));
  return bytes;
}

bool OptimizerRule::isFlat() const {
  return std::none_of(states.begin(), states.end(), hasOwnLayout);
}

int64_t OptimizerRule::temporaryBytes(UpdateKernel kernel,
                                      const std::vector<int64_t> &shape,
                                      int64_t rows, int64_t bytes, int64_t item,
                                      int64_t &carried) const {
  const UpdateCost &c = cost(kernel);
  const bool converts = c.inF32 && item < itemSize(DType::F32);
  const auto each = static_cast<double>(
      converts ? bytes / item * itemSize(DType::F32) : bytes);
  carried = static_cast<int64_t>(c.carried * each);
  auto result =
      static_cast<int64_t>((c.tensors + (converts ? c.copies : 0)) * each);
  if (description && description->matmulBytes && shape.size() == 2)
    result += description->matmulBytes(rows, shape[1]);
  return result;
}

} // namespace accel::plan
