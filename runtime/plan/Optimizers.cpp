//===- Optimizers.cpp - What each optimizer holds and moves ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Optimizers.h"

#include <algorithm>

namespace accel::plan {

namespace {

using Kind = Hyperparameter::Kind;
constexpr int64_t blockElements = 256, largeElements = 4096;

constexpr const char *bitsandbytesOnDTensors =
    "bitsandbytes' kernels take no DTensors, which FSDP2's parameters are";

/// One pass: reads parameter, gradient and states, writes all but the gradient.
UpdateCost onePass(const Optimizer &, UpdateKernel) { return {}; }

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

/// _multi_tensor_adamw: mul on the parameter, lerp, mul and addcmul on the
/// states, sqrt, div and add on a list of square roots, addcdiv on the
/// parameter. The form for single tensors makes two tensors at a time.
UpdateCost adamwCost(const Optimizer &, UpdateKernel kernel) {
  if (kernel == UpdateKernel::Fused)
    return {};
  UpdateCost cost;
  cost.parameters = 4;
  cost.gradients = 3;
  cost.states = 7;
  (kernel == UpdateKernel::Foreach ? cost.lists : cost.tensors) =
      kernel == UpdateKernel::Foreach ? 1 : 2;
  return cost;
}

std::vector<Hyperparameter> adamHyperparameters() {
  return {{"betas", "Decay of both moments", Kind::Numbers, {0.9, 0.999}, 0, 1},
          {"eps", "Added to the denominator", Kind::Number, {1e-8}}};
}

//===----------------------------------------------------------------------===//
// SGD
//===----------------------------------------------------------------------===//

bool decays(const Optimizer &values) {
  return std::any_of(
      values.groups.begin(), values.groups.end(),
      [](const OptimizerGroup &group) { return group.weightDecay != 0; });
}

/// _multi_tensor_sgd: with a weight decay the gradients plus the decayed
/// parameters are a new list; momentum is mul and add on the state, and
/// Nesterov's adds it to the gradients, in place. The form for single tensors
/// makes a new tensor for each of the two.
UpdateCost sgdCost(const Optimizer &values, UpdateKernel kernel) {
  const bool momentum = numberOf(values, "momentum") != 0;
  const bool nesterov = momentum && numberOf(values, "nesterov") != 0;
  UpdateCost cost;
  if (kernel == UpdateKernel::Fused)
    return cost;
  const int decay = decays(values) ? 1 : 0;
  cost.parameters = 2 + decay;
  cost.gradients = (nesterov ? 4 : 1) + 2 * decay;
  cost.states = momentum ? 5 : 0;
  if (kernel == UpdateKernel::Foreach)
    cost.lists = decay;
  else
    cost.tensors = decay + (nesterov ? 1 : 0);
  return cost;
}

const char *sgdConflict(const Optimizer &values) {
  if (numberOf(values, "nesterov") != 0 &&
      (numberOf(values, "momentum") <= 0 || numberOf(values, "dampening") != 0))
    return "nesterov needs a momentum above 0 and no dampening";
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Lion
//===----------------------------------------------------------------------===//

/// lion_pytorch.py of its authors, operator by operator; bitsandbytes and
/// accel-run on CPUs make one pass.
UpdateCost lionCost(const Optimizer &, UpdateKernel kernel) {
  UpdateCost cost;
  if (kernel == UpdateKernel::Fused)
    return cost;
  cost.parameters = 4;
  cost.gradients = 10;
  cost.states = 5;
  cost.tensors = 3;
  cost.carried = 1;
  return cost;
}

std::vector<OptimizerDescription> makeOptimizers() {
  std::vector<OptimizerDescription> list;
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "adamw";
    d.summary = "Adam with decoupled weight decay";
    d.source = "torch.optim.AdamW";
    d.lr = 1e-3;
    d.weightDecay = 0.01;
    d.hyperparameters = adamHyperparameters();
    d.states = {{"exp_avg"}, {"exp_avg_sq"}};
    d.kernels = {UpdateKernel::Foreach, UpdateKernel::Fused,
                 UpdateKernel::ForLoop};
    d.cost = adamwCost;
    d.executed = true;
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "sgd";
    d.summary = "stochastic gradient descent, with momentum if asked for";
    d.source = "torch.optim.SGD";
    d.lr = 1e-3;
    d.weightDecay = 0;
    d.hyperparameters = {
        {"momentum", "Decay of the momentum; 0: none", Kind::Number, {0}},
        {"dampening", "Of what a gradient adds to it", Kind::Number, {0}},
        {"nesterov", "Nesterov's momentum", Kind::Flag, {0}}};
    d.states = {{.name = "momentum_buffer", .needs = "momentum"}};
    d.kernels = {UpdateKernel::Foreach, UpdateKernel::Fused,
                 UpdateKernel::ForLoop};
    d.cost = sgdCost;
    d.conflict = sgdConflict;
    d.executed = true;
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "lion";
    d.summary = "evolved sign momentum";
    d.source = "arXiv:2302.06675; bitsandbytes.optim.Lion";
    d.lr = 1e-4;
    d.weightDecay = 0;
    d.hyperparameters = {{"betas",
                          "Of the update, and decay of the momentum",
                          Kind::Numbers,
                          {0.9, 0.99},
                          0,
                          1}};
    d.states = {{"exp_avg"}};
    d.kernels = {UpdateKernel::Fused, UpdateKernel::ForLoop};
    d.cost = lionCost;
    d.executed = true;
    d.onCuda = UpdateKernel::ForLoop; // ATen has no kernel of it
  }
  return list;
}

bool has(StateOf of, size_t dimensions, int64_t numel) {
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
    return numel >= largeElements;
  case StateOf::Small:
    return numel < largeElements;
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

const std::vector<OptimizerDescription> &optimizers() {
  static const std::vector<OptimizerDescription> list = makeOptimizers();
  return list;
}

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
                             std::optional<DType> dtype)
    : description(findOptimizer(optimizer.name)), values(optimizer) {
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
                                const std::vector<int64_t> &shape,
                                int64_t rows) {
  const int64_t numel = product(shape, rows);
  if (!has(state.of, shape.size(), numel))
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
  return std::all_of(states.begin(), states.end(), [](const StateRule &state) {
    return state.shape == StateShape::Whole && state.of == StateOf::All;
  });
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

std::vector<State> unitStates(const Optimizer &optimizer, DType storage) {
  const OptimizerRule rule(optimizer);
  std::vector<State> states;
  if (rule.isFlat())
    for (const StateRule &state : rule.states)
      states.push_back({state.name, OptimizerRule::dtypeOf(state, storage)});
  return states;
}

const std::vector<TransformersOptimizer> &transformersOptimizers() {
  using K = UpdateKernel;
  static const std::vector<TransformersOptimizer> list = {
      {"adamw_torch", "adamw", K::Foreach},
      {"adamw_torch_fused", "adamw", K::Fused},
      {"sgd", "sgd", K::Foreach},
      {"lion_32bit", "lion", K::Fused, DType::F32, bitsandbytesOnDTensors},
      {"paged_lion_32bit", "lion", K::Fused, DType::F32,
       bitsandbytesOnDTensors},
      {"paged_adamw_32bit", "adamw", K::Fused, DType::F32,
       bitsandbytesOnDTensors}};
  return list;
}

const TransformersOptimizer *
findTransformersOptimizer(const std::string &name) {
  for (const TransformersOptimizer &known : transformersOptimizers())
    if (name == known.name)
      return &known;
  return nullptr;
}

} // namespace accel::plan
