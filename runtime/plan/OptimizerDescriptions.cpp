//===- OptimizerDescriptions.cpp - What each optimizer holds and moves ----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Optimizers.h"

#include <algorithm>

namespace accel::plan {

namespace {

using Kind = Hyperparameter::Kind;

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
// Adagrad and RMSprop
//===----------------------------------------------------------------------===//

/// _multi_tensor_adagrad: addcmul on the sum of squares, a list of its roots
/// with eps, the gradients times the rate as another (with a weight decay they
/// are a new list already, and are multiplied in place), addcdiv on the
/// parameters. The form for single tensors has the root alone, which is left
/// until the next one is there, and the decayed gradient.
UpdateCost adagradCost(const Optimizer &values, UpdateKernel kernel) {
  UpdateCost cost;
  if (kernel == UpdateKernel::Fused)
    return cost;
  const int decay = decays(values) ? 1 : 0;
  cost.parameters = 2 + decay;
  cost.gradients = 8 + 2 * decay;
  cost.states = 3;
  if (kernel == UpdateKernel::Foreach) {
    cost.lists = 2;
  } else {
    cost.tensors = 1 + decay;
    cost.carried = 1;
  }
  return cost;
}

/// _multi_tensor_rmsprop: mul and addcmul on the mean of squares, a list of its
/// roots with eps, addcdiv on the parameters, or on the momentum, which is
/// then added; with a weight decay the gradients are a new list.
UpdateCost rmspropCost(const Optimizer &values, UpdateKernel kernel) {
  UpdateCost cost;
  if (kernel == UpdateKernel::Fused)
    return cost;
  const int decay = decays(values) ? 1 : 0;
  const bool momentum = numberOf(values, "momentum") != 0;
  cost.parameters = 2 + decay;
  cost.gradients = 6 + 2 * decay;
  cost.states = momentum ? 10 : 5;
  if (kernel == UpdateKernel::Foreach) {
    cost.lists = 1 + decay;
  } else {
    cost.tensors = 1 + decay;
    cost.carried = 1; // the root, until the next one is there
  }
  return cost;
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

//===----------------------------------------------------------------------===//
// Adafactor
//===----------------------------------------------------------------------===//

/// transformers' form, in f32 whatever the parameter has: the squared gradient,
/// with eps a second tensor, which becomes the update; it is left during the
/// next parameter's unless it goes into the first moment.
UpdateCost adafactorCost(const Optimizer &values, UpdateKernel) {
  const bool moment = numberOf(values, "beta1") != 0;
  UpdateCost cost;
  cost.parameters = 3;
  cost.gradients = 18;
  cost.states = 3;
  cost.tensors = 2;
  cost.carried = moment ? 0 : 1;
  cost.inF32 = true;
  cost.copies = 2; // gradient and parameter
  return cost;
}

/// runtime/optimizer/Adafactor.cpp: sums of squares over rows and columns, two
/// factors in place, a norm; then the update is added, by way of the first
/// moment if there is one.
UpdateCost ownAdafactorCost(const Optimizer &values) {
  const bool moment = numberOf(values, "beta1") != 0;
  UpdateCost cost;
  cost.parameters = decays(values) ? 3 : 2;
  cost.gradients = 9 + (decays(values) ? 2 : 0) + (moment ? 1 : 0);
  cost.states = moment ? 5 : 3;
  return cost;
}

/// _single_tensor_adafactor: the variance becomes the update in place, and is
/// left during the next parameter's; _multi_tensor_adafactor has a list.
UpdateCost torchAdafactorCost(const Optimizer &, UpdateKernel kernel) {
  UpdateCost cost;
  cost.parameters = 3;
  cost.gradients = 14;
  cost.states = 3;
  if (kernel == UpdateKernel::Foreach)
    cost.lists = 1;
  else
    cost.tensors = cost.carried = 1;
  return cost;
}

constexpr const char *plainStates =
    "its states are plain tensors, which do not mix with FSDP2's DTensors";
constexpr const char *placementChange =
    "it squares the norms of DTensors in place, which torch refuses";

//===----------------------------------------------------------------------===//
// Muon
//===----------------------------------------------------------------------===//

/// _single_tensor_muon: Nesterov's momentum is a new tensor. Matmuls and their
/// tensors are counted apart.
UpdateCost muonCost(const Optimizer &values, UpdateKernel) {
  UpdateCost cost;
  cost.parameters = 4;
  cost.gradients = 16;
  cost.states = 3;
  cost.tensors = numberOf(values, "nesterov") != 0 ? 1 : 0;
  return cost;
}

/// runtime/optimizer/Muon.cpp: both blends in place, and a copy in bf16 to and
/// from the rank that iterates.
UpdateCost ownMuonCost(const Optimizer &) {
  UpdateCost cost;
  cost.parameters = 4;
  cost.gradients = 5;
  cost.states = 3;
  return cost;
}

/// Newton-Schulz on X of k rows, no more than it has columns: X X', its square
/// and the product with X.
double newtonSchulzFlops(const Optimizer &values, int64_t rows,
                         int64_t columns) {
  const auto k = static_cast<double>(std::min(rows, columns));
  const auto n = static_cast<double>(std::max(rows, columns));
  return numberOf(values, "ns_steps") * (4 * k * k * n + 2 * k * k * k);
}

/// In bf16: X and the next X, the Gram matrix and its polynomial.
int64_t newtonSchulzBytes(int64_t rows, int64_t columns) {
  const int64_t k = std::min(rows, columns);
  return itemSize(DType::BF16) * (2 * rows * columns + 2 * k * k);
}

std::vector<Hyperparameter> lionHyperparameters() {
  return {{"betas",
           "Of the update, and decay of the momentum",
           Kind::Numbers,
           {0.9, 0.99},
           0,
           1}};
}

std::vector<Hyperparameter> rmspropHyperparameters() {
  return {{"alpha", "Decay of the mean", Kind::Number, {0.99}, 0, 1},
          {"eps", "Added to the denominator", Kind::Number, {1e-8}}};
}

std::vector<Hyperparameter> ademamixHyperparameters() {
  return {{"betas",
           "Decay of both momenta and of the squares",
           Kind::Numbers,
           {0.9, 0.999, 0.9999},
           0,
           1},
          {"alpha", "Weight of the slower momentum", Kind::Number, {5}},
          {"eps", "Added to the denominator", Kind::Number, {1e-8}}};
}

/// bitsandbytes' states of 8 bits in blocks of 256: `first` is what state1 has
/// for each element. Small parameters have states of f32. Tables of 256 f32
/// that all parameters share are not counted.
void makeBlockwise(OptimizerDescription &d, bool second,
                   StateShape first = StateShape::Whole) {
  const StateShape scales = first == StateShape::Double
                                ? StateShape::DoubleBlocks
                                : StateShape::PerBlock;
  d.states = {{"state1", first, StateOf::Large, DType::U8},
              {"absmax1", scales, StateOf::Large, DType::F32}};
  if (second) {
    d.states.push_back(
        {"state2", StateShape::Whole, StateOf::Large, DType::U8});
    d.states.push_back(
        {"absmax2", StateShape::PerBlock, StateOf::Large, DType::F32});
  }
  d.states.push_back({"state1", first, StateOf::Small, DType::F32});
  if (second)
    d.states.push_back(
        {"state2", StateShape::Whole, StateOf::Small, DType::F32});
  d.kernels = {UpdateKernel::Fused};
  d.cost = onePass;
  d.failsOnDTensors = bitsandbytesOnDTensors;
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
    d.hyperparameters = lionHyperparameters();
    d.states = {{"exp_avg"}};
    d.kernels = {UpdateKernel::Fused, UpdateKernel::ForLoop};
    d.cost = lionCost;
    d.executed = true;
    d.onCuda = UpdateKernel::ForLoop; // ATen has no kernel of it
  }
  const std::vector<Hyperparameter> adafactorParameters = {
      {"eps",
       "Added to the square of the gradient, and least scale of a parameter",
       Kind::Numbers,
       {1e-30, 1e-3}},
      {"clip_threshold", "Of the update's root mean square", Kind::Number, {1}},
      {"decay_rate",
       "Power of the step by which squares decay",
       Kind::Number,
       {-0.8},
       -100,
       0},
      {"beta1", "Decay of the first moment; 0: none", Kind::Number, {0}, 0, 1}};
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "adafactor";
    d.summary = "Adam with factored second moments, in f32";
    d.source = "transformers.Adafactor";
    d.lr = 1e-3;
    d.weightDecay = 0;
    d.hyperparameters = adafactorParameters;
    d.states = {
        {"exp_avg_sq_row", StateShape::Rows, StateOf::Matrices, DType::F32},
        {"exp_avg_sq_col", StateShape::Columns, StateOf::Matrices, DType::F32},
        {"exp_avg_sq", StateShape::Whole, StateOf::Vectors, DType::F32},
        {"exp_avg", StateShape::Whole, StateOf::All, DType::F32, "beta1"}};
    d.kernels = {UpdateKernel::ForLoop};
    d.cost = adafactorCost;
    d.executed = true;
    d.ownCost = ownAdafactorCost;
    d.reads = UpdateReads::RowsAndColumns;
    d.failsOnDTensors = plainStates;
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "adafactor_torch";
    d.summary = "Adam with factored second moments";
    d.source = "torch.optim.Adafactor";
    d.lr = 1e-2;
    d.weightDecay = 0;
    d.hyperparameters = {
        {"beta2_decay",
         "Power of the step by which squares decay",
         Kind::Number,
         {-0.8},
         -100,
         0},
        {"d", "Clipping threshold of the update", Kind::Number, {1}, 1}};
    d.states = {{"row_var", StateShape::Rows, StateOf::Matrices},
                {"col_var", StateShape::Columns, StateOf::Matrices},
                {"variance", StateShape::Whole, StateOf::Vectors}};
    d.kernels = {UpdateKernel::ForLoop, UpdateKernel::Foreach};
    d.cost = torchAdafactorCost;
    d.failsOnDTensors = placementChange;
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "muon";
    d.summary = "orthogonalized momentum for two-dimensional parameters, AdamW "
                "for the others";
    d.source = "torch.optim.Muon";
    d.lr = 1e-3;
    d.weightDecay = 0.1;
    d.hyperparameters = {
        {"momentum", "Decay of the momentum", Kind::Number, {0.95}, 0, 1},
        {"nesterov", "Nesterov's momentum", Kind::Flag, {1}},
        {"ns_steps", "Newton-Schulz iterations", Kind::Number, {5}, 0, 100},
        {"eps", "Least norm that is divided by", Kind::Number, {1e-7}},
        {"betas", "Of AdamW", Kind::Numbers, {0.9, 0.999}, 0, 1},
        {"adamw_eps", "Added to AdamW's denominator", Kind::Number, {1e-8}}};
    d.states = {{"momentum_buffer", StateShape::Whole, StateOf::TwoDimensional},
                {"exp_avg", StateShape::Whole, StateOf::NotTwoDimensional},
                {"exp_avg_sq", StateShape::Whole, StateOf::NotTwoDimensional}};
    d.kernels = {UpdateKernel::ForLoop};
    d.cost = muonCost;
    d.executed = true;
    d.ownCost = ownMuonCost;
    d.reads = UpdateReads::Matrices;
    d.matmulFlops = newtonSchulzFlops;
    d.matmulBytes = newtonSchulzBytes;
    d.failsOnFlatShards = "torch.optim.Muon takes two-dimensional parameters, "
                          "its shards are flat";
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "adagrad";
    d.summary = "steps divided by the root of all squared gradients";
    d.source = "torch.optim.Adagrad";
    d.lr = 1e-2;
    d.weightDecay = 0;
    d.hyperparameters = {
        {"lr_decay", "Of the rate, by step", Kind::Number, {0}},
        {"eps", "Added to the denominator", Kind::Number, {1e-10}}};
    d.states = {{"sum"}};
    d.kernels = {UpdateKernel::Foreach, UpdateKernel::Fused,
                 UpdateKernel::ForLoop};
    d.cost = adagradCost;
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "rmsprop";
    d.summary = "steps divided by the root of a mean of squared gradients";
    d.source = "torch.optim.RMSprop";
    d.lr = 1e-2;
    d.weightDecay = 0;
    d.hyperparameters = rmspropHyperparameters();
    d.hyperparameters.push_back(
        {"momentum", "Decay of the momentum; 0: none", Kind::Number, {0}});
    d.states = {{"square_avg"},
                {.name = "momentum_buffer", .needs = "momentum"}};
    d.kernels = {UpdateKernel::Foreach, UpdateKernel::ForLoop,
                 UpdateKernel::Fused};
    d.cost = rmspropCost;
  }
  // state1 is both momenta in one tensor.
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "ademamix";
    d.summary = "AdamW with a second, slower momentum";
    d.source = "arXiv:2409.03137; bitsandbytes.optim.AdEMAMix";
    d.lr = 1e-3;
    d.weightDecay = 0.01;
    d.hyperparameters = ademamixHyperparameters();
    d.states = {{"state1", StateShape::Double}, {"state2"}};
    d.kernels = {UpdateKernel::Fused};
    d.cost = onePass;
    d.failsOnDTensors = bitsandbytesOnDTensors;
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "ademamix_8bit";
    d.summary = "AdEMAMix with moments of 8 bits, quantized by blocks";
    d.source = "bitsandbytes.optim.AdEMAMix8bit";
    d.lr = 1e-3;
    d.weightDecay = 0.01;
    d.hyperparameters = ademamixHyperparameters();
    makeBlockwise(d, /*second=*/true, StateShape::Double);
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "rmsprop_8bit";
    d.summary = "RMSprop with a mean of 8 bits, quantized by blocks";
    d.source = "bitsandbytes.optim.RMSprop8bit";
    d.lr = 1e-2;
    d.weightDecay = 0;
    d.hyperparameters = rmspropHyperparameters();
    makeBlockwise(d, /*second=*/false);
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "adamw_8bit";
    d.summary = "AdamW with moments of 8 bits, quantized by blocks";
    d.source = "bitsandbytes.optim.AdamW8bit";
    d.lr = 1e-3;
    d.weightDecay = 0.01;
    d.hyperparameters = adamHyperparameters();
    makeBlockwise(d, /*second=*/true);
  }
  {
    OptimizerDescription &d = list.emplace_back();
    d.name = "lion_8bit";
    d.summary = "Lion with a momentum of 8 bits, quantized by blocks";
    d.source = "bitsandbytes.optim.Lion8bit";
    d.lr = 1e-4;
    d.weightDecay = 0;
    d.hyperparameters = lionHyperparameters();
    makeBlockwise(d, /*second=*/false);
  }
  // torchao/optim/adam.py of 0.18: an update of one parameter is compiled to
  // one pass; each state has its table; transformers gives 4 bits blocks of 256
  // too.
  for (const int bits : {8, 4}) {
    const StateShape codes = bits == 8 ? StateShape::Whole : StateShape::Halves;
    const StateShape table =
        bits == 8 ? StateShape::Table256 : StateShape::Table16;
    OptimizerDescription &d = list.emplace_back();
    d.name = bits == 8 ? "adamw_torchao_8bit" : "adamw_torchao_4bit";
    d.summary = bits == 8 ? "AdamW with moments of 8 bits, for shards too"
                          : "AdamW with moments of 4 bits, for shards too";
    d.source =
        bits == 8 ? "torchao.optim.AdamW8bit" : "torchao.optim.AdamW4bit";
    d.lr = 1e-3;
    d.weightDecay = 0.01;
    d.hyperparameters = adamHyperparameters();
    for (const char *moment : {"exp_avg", "exp_avg_sq"}) {
      d.states.push_back({moment, codes, StateOf::Blocked, DType::U8});
      d.states.push_back(
          {moment, StateShape::PerBlock, StateOf::Blocked, DType::F32});
      d.states.push_back({moment, table, StateOf::Blocked, DType::F32});
      d.states.push_back({moment, StateShape::Whole, StateOf::Apart});
    }
    d.kernels = {UpdateKernel::Fused};
    d.cost = onePass;
  }
  return list;
}

} // namespace

const std::vector<OptimizerDescription> &optimizers() {
  static const std::vector<OptimizerDescription> list = makeOptimizers();
  return list;
}

} // namespace accel::plan
