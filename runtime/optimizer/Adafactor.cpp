//===- Adafactor.cpp - transformers.Adafactor -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Shazeer and Stern, Adafactor (arXiv:1804.04235), as transformers has it
// without relative steps and scaled parameters, which is how its Trainer makes
// it. With b = 1 - step^decay_rate, for a matrix:
//
//   rows = b rows + (1 - b) mean over columns of g^2 + eps
//   columns = b columns + (1 - b) mean over rows of g^2 + eps
//   u = g / sqrt(rows columns / mean of rows)
//   u = lr u / max(1, root mean square of u / clip_threshold)
//   p = p - lr weight_decay p - u
//
// Vectors have a second moment for each element. A shard begins and ends
// anywhere in a matrix, so that its rectangles are summed up and added to those
// of the other ranks: once for the sums of squares, once for the norms of u.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/Optimizer.h"

#include "runtime/tensors/Kernels.h"

#include <ATen/ops/div.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>

#include <algorithm>
#include <cmath>

namespace accel::run {

namespace {

class Adafactor final : public Optimizer {
public:
  Adafactor(const plan::Optimizer &options, const std::vector<Unit> &units,
            c10::Device device)
      : Optimizer(options, device), eps(number("eps")),
        threshold(number("clip_threshold")), decayRate(number("decay_rate")),
        beta1(number("beta1")) {
    for (const Unit &unit : units)
      all.push_back(unit.shard.defined() ? updated(unit) : Updated());
  }

  void update(int unit) override;

private:
  /// A rectangle of a rank's part of a parameter, with the sums or factors of
  /// its rows and columns.
  struct Block {
    int64_t offset = 0, rows = 0, columns = 0;
    at::Tensor gradient;
    at::Tensor rowSums, columnSums;
    at::Tensor in(const at::Tensor &flat) const {
      return flat.narrow(0, offset, rows * columns).view({rows, columns});
    }
  };
  /// A parameter, of which a rank has a part or nothing.
  struct Part {
    int group = 0;
    int64_t numel = 0; // of all ranks
    at::Tensor shard, gradient, moment;
    at::Tensor scratch; // the update in f32, where the gradient is narrower
    at::Tensor squares, factors; // a vector's second moments
    std::vector<Block> blocks;
    // Of a matrix, whole: [batch, rows], [batch, columns], [batch, 1].
    at::Tensor rows, columns, rowSums, columnSums, means;
    at::Tensor norm; // 0-d f64: the square of the update's, then its factor
    bool isMatrix() const { return rows.defined(); }
  };
  struct Updated {
    std::vector<Part> parts;
    at::Tensor sums, norms; // of all parts
    std::function<void(at::Tensor &)> sum;
  };
  Updated updated(const Unit &unit) const;
  void addSquares(Part &part) const;
  void moveAverages(Part &part, double beta2) const;
  at::Tensor makeUpdate(Part &part) const;
  void apply(Part &part, at::Tensor change) const;

  const double eps, threshold, decayRate, beta1;
  std::vector<Updated> all; // by unit
};

Adafactor::Updated Adafactor::updated(const Unit &unit) const {
  const plan::FactoredLayout layout = plan::factoredLayout(unit.shape);
  auto bytes = [&](int64_t begin, int64_t count, c10::ScalarType type) {
    return unit.workspace.narrow(0, begin, count * c10::elementSize(type))
        .view(type);
  };
  auto floats = [&](int64_t begin, int64_t count) {
    return bytes(begin * 4, count, c10::ScalarType::Float);
  };
  Updated result;
  result.sum = unit.sum;
  result.sums = floats(0, layout.sums);
  result.norms =
      bytes(layout.squaresBegin, static_cast<int64_t>(layout.parts.size()),
            c10::ScalarType::Double);
  const int64_t shardEnd = unit.shardBegin + unit.shard.numel();
  for (int i = 0; i < static_cast<int>(layout.parts.size()); ++i) {
    const plan::UpdatedParameter &parameter = unit.shape.parameters[i];
    const plan::FactoredLayout::Part &place = layout.parts[i];
    Part part;
    part.group = parameter.group;
    part.numel = parameter.numel();
    part.norm = result.norms.select(0, i);
    if (place.batch > 0) {
      const int64_t n = place.batch;
      part.rows = unit.whole("exp_avg_sq_row", i).view({n, place.rows});
      part.columns = unit.whole("exp_avg_sq_col", i).view({n, place.columns});
      part.rowSums =
          floats(place.rowSums, n * place.rows).view({n, place.rows});
      part.columnSums =
          floats(place.columnSums, n * place.columns).view({n, place.columns});
      part.means = floats(place.factors, n).view({n, 1});
    }
    const int64_t from = std::max(parameter.offset, unit.shardBegin);
    const int64_t to = std::min(parameter.offset + part.numel, shardEnd);
    if (from < to) {
      auto cut = [&](const at::Tensor &flat) {
        return flat.narrow(0, from - unit.shardBegin, to - from);
      };
      part.shard = cut(unit.shard);
      part.gradient = cut(unit.gradient);
      if (beta1 != 0)
        part.moment = unit.state("exp_avg", i, from, to);
      if (layout.scratchBytes > 0)
        part.scratch =
            bytes(layout.scratchBegin, to - from, c10::ScalarType::Float);
      if (!part.isMatrix()) {
        part.squares = unit.state("exp_avg_sq", i, from, to);
        part.factors = floats(place.factors, to - from);
      } else {
        for (const plan::Rectangle &r :
             plan::rectangles(from - parameter.offset, to - from, place.rows,
                              place.columns)) {
          Block block{r.offset, r.rowCount, r.columnCount, {}, {}, {}};
          block.gradient = block.in(part.gradient);
          block.rowSums = part.rowSums.view(-1).narrow(0, r.row, r.rowCount);
          block.columnSums =
              part.columnSums.view(-1).narrow(0, r.column, r.columnCount);
          part.blocks.push_back(std::move(block));
        }
      }
    }
    result.parts.push_back(std::move(part));
  }
  return result;
}

void Adafactor::update(int unit) {
  Updated &now = all[unit];
  const double beta2 = 1 - std::pow(stepCount, decayRate);
  now.sums.zero_();
  now.norms.zero_();
  for (Part &part : now.parts)
    for (const Block &block : part.blocks) {
      addRowSquares(block.gradient, block.rowSums);
      addColumnSquares(block.gradient, block.columnSums);
    }
  now.sum(now.sums);
  for (Part &part : now.parts) {
    moveAverages(part, beta2);
    if (part.shard.defined())
      accel::run::addSquares(makeUpdate(part), part.norm);
  }
  now.sum(now.norms);
  for (Part &part : now.parts) {
    if (!part.shard.defined())
      continue;
    part.norm.div_(static_cast<double>(part.numel))
        .sqrt_()
        .div_(threshold)
        .clamp_min_(1)
        .reciprocal_()
        .mul_(rates[part.group]);
    apply(part, part.scratch.defined() ? makeUpdate(part) : part.gradient);
  }
}

/// Second moments; a matrix' sums become the factors of its rows and columns.
void Adafactor::moveAverages(Part &part, double beta2) const {
  if (!part.isMatrix()) {
    if (part.shard.defined())
      part.squares.mul_(beta2)
          .addcmul_(part.gradient, part.gradient, 1 - beta2)
          .add_(eps * (1 - beta2));
    return;
  }
  auto move = [&](at::Tensor &average, at::Tensor &sums, int64_t count) {
    sums.div_(static_cast<double>(count)).add_(eps);
    average.mul_(beta2).add_(sums, 1 - beta2);
  };
  move(part.rows, part.rowSums, part.columns.size(1));
  move(part.columns, part.columnSums, part.rows.size(1));
  at::mean_out(part.means, part.rows, 1, /*keepdim=*/true);
  at::div_out(part.rowSums, part.rows, part.means);
  part.rowSums.rsqrt_();
  at::rsqrt_out(part.columnSums, part.columns);
}

/// What the parameter changes by, before its clipping: in the gradient, which
/// nobody reads any more, or in f32.
at::Tensor Adafactor::makeUpdate(Part &part) const {
  at::Tensor result = part.gradient;
  if (part.scratch.defined())
    result = part.scratch.copy_(part.gradient);
  if (!part.isMatrix()) {
    at::rsqrt_out(part.factors, part.squares);
    return result.mul_(part.factors);
  }
  for (const Block &block : part.blocks)
    block.in(result)
        .mul_(block.rowSums.unsqueeze(1))
        .mul_(block.columnSums.unsqueeze(0));
  return result;
}

/// As transformers, a narrow parameter is rounded once.
void Adafactor::apply(Part &part, at::Tensor change) const {
  change.mul_(part.norm);
  if (part.moment.defined()) {
    part.moment.mul_(beta1).add_(change, 1 - beta1);
    change.copy_(part.moment);
  }
  if (weightDecay(part.group) != 0)
    change.addcmul_(part.shard, rates[part.group], weightDecay(part.group));
  part.shard.sub_(change);
}

} // namespace

std::unique_ptr<Optimizer>
makeAdafactor(const plan::Optimizer &options,
              const std::vector<Optimizer::Unit> &units, c10::Device device) {
  return std::make_unique<Adafactor>(options, units, device);
}

} // namespace accel::run
