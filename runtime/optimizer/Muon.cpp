//===- Muon.cpp - torch.optim.Muon, and AdamW for the rest ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Jordan et al., Muon: an optimizer for hidden layers, operator by operator as
// torch has it, for two-dimensional parameters:
//
//   m = momentum m + (1 - momentum) g
//   u = m, or (1 - momentum) g + momentum m with Nesterov's
//   o = u orthogonalized by Newton-Schulz's iteration in bf16
//   p = (1 - lr weight_decay) p - lr sqrt(max(1, rows / columns)) o
//
// The iteration reads whole matrices. In each round (plan::MatrixLayout) a rank
// receives the parts of one matrix, iterates, and sends back what belongs to
// the others. Other parameters are AdamW's.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/Optimizer.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

namespace accel::run {

namespace {

constexpr double coefficientA = plan::newtonSchulz[0],
                 coefficientB = plan::newtonSchulz[1],
                 coefficientC = plan::newtonSchulz[2];

class Muon final : public Optimizer {
public:
  Muon(const plan::Optimizer &options, const std::vector<Unit> &units,
       c10::Device device)
      : Optimizer(options, device), momentum(number("momentum")),
        eps(number("eps")), beta1(number("betas", 0)),
        beta2(number("betas", 1)), adamwEps(number("adamw_eps")),
        iterations(static_cast<int>(number("ns_steps"))),
        nesterov(number("nesterov") != 0) {
    for (const Unit &unit : units)
      all.push_back(unit.shard.defined() ? updated(unit) : Updated());
  }

  void update(int unit) override;

private:
  /// What this rank has of a matrix.
  struct Part {
    int group = 0;
    double factor = 1;                    // of the learning rate
    at::Tensor shard, gradient, momentum; // or undefined
    at::Tensor sent; // bf16: to the rank that iterates, and back
  };
  struct Round {
    std::vector<Part> parts;
    at::Tensor sent, received; // of all parts; the matrix of this rank, flat
    std::vector<int64_t> sentTo, receivedFrom; // elements, by rank
    /// The matrix, and what iterations write; undefined without a matrix.
    at::Tensor matrix, next, gram, polynomial, norm;
  };
  /// Elements of the parameters that are AdamW's; lists of one tensor.
  struct Piece {
    int group = 0;
    std::vector<at::Tensor> shard, gradient, average, squares;
  };
  struct Updated {
    std::vector<Round> rounds;
    std::vector<Piece> pieces;
    Exchange exchange;
  };
  Updated updated(const Unit &unit) const;
  void orthogonalize(Round &round) const;

  const double momentum, eps, beta1, beta2, adamwEps;
  const int iterations;
  const bool nesterov;
  std::vector<Updated> all; // by unit
};

Muon::Updated Muon::updated(const Unit &unit) const {
  const plan::MatrixLayout layout = plan::matrixLayout(unit.shape);
  auto narrow16 = [&](int64_t begin, std::vector<int64_t> shape) {
    int64_t numel = 1;
    for (int64_t size : shape)
      numel *= size;
    return unit.workspace.narrow(0, begin, 2 * numel)
        .view(c10::ScalarType::BFloat16)
        .view(shape);
  };
  Updated result;
  result.exchange = unit.exchange;
  const int64_t shard = unit.shard.numel(), begin = unit.shardBegin;
  /// Elements of a parameter that rank `rank` has: [first, second) of the flat
  /// buffer.
  auto held = [&](const plan::UpdatedParameter &p, int64_t rank) {
    const int64_t from = std::max(p.offset, rank * shard);
    const int64_t to = std::min(p.offset + p.numel(), (rank + 1) * shard);
    return std::pair(from, std::max(from, to));
  };
  const int64_t own = begin / std::max<int64_t>(shard, 1);
  for (const std::vector<int> &matrices : layout.rounds) {
    Round round;
    round.sentTo.resize(unit.shape.ranks);
    round.receivedFrom.resize(unit.shape.ranks);
    int64_t at = 0;
    for (size_t owner = 0; owner < matrices.size(); ++owner) {
      const int index = matrices[owner];
      const plan::UpdatedParameter &p = unit.shape.parameters[index];
      const int64_t rows = p.shape[0], columns = p.shape[1];
      const auto [from, to] = held(p, own);
      Part part;
      part.group = p.group;
      part.factor = std::sqrt(std::max(1.0, static_cast<double>(rows) /
                                                static_cast<double>(columns)));
      if (from < to) {
        part.shard = unit.shard.narrow(0, from - begin, to - from);
        part.gradient = unit.gradient.narrow(0, from - begin, to - from);
        part.momentum = unit.state("momentum_buffer", index, from, to);
        part.sent = narrow16(layout.sentBegin + 2 * at, {to - from});
      }
      round.sentTo[owner] = to - from;
      at += to - from;
      round.parts.push_back(std::move(part));
      if (static_cast<int64_t>(owner) != own)
        continue;
      for (int64_t rank = 0; rank < unit.shape.ranks; ++rank) {
        const auto [first, last] = held(p, rank);
        round.receivedFrom[rank] = last - first;
      }
      const int64_t k = std::min(rows, columns);
      round.matrix = narrow16(layout.matrixBegin, {rows, columns});
      round.received = round.matrix.view(-1);
      round.next = narrow16(layout.nextBegin, {k, rows * columns / k});
      round.gram = narrow16(layout.gramBegin, {k, k});
      round.polynomial = narrow16(layout.polynomialBegin, {k, k});
      round.norm = narrow16(layout.normBegin, {});
    }
    round.sent = narrow16(layout.sentBegin, {at});
    if (!round.received.defined())
      round.received = narrow16(layout.matrixBegin, {0});
    result.rounds.push_back(std::move(round));
  }
  for (size_t i = 0; i < unit.shape.parameters.size(); ++i) {
    const plan::UpdatedParameter &p = unit.shape.parameters[i];
    const auto [from, to] = held(p, own);
    if (p.shape.size() == 2 || from == to)
      continue;
    const int index = static_cast<int>(i);
    Piece piece;
    piece.group = p.group;
    piece.shard = {unit.shard.narrow(0, from - begin, to - from)};
    piece.gradient = {unit.gradient.narrow(0, from - begin, to - from)};
    piece.average = {unit.state("exp_avg", index, from, to)};
    piece.squares = {unit.state("exp_avg_sq", index, from, to)};
    result.pieces.push_back(std::move(piece));
  }
  return result;
}

/// _zeropower_via_newtonschulz; without a tensor but those of the workspace.
void Muon::orthogonalize(Round &round) const {
  const bool tall = round.matrix.size(0) > round.matrix.size(1);
  at::Tensor x = tall ? round.matrix.t() : round.matrix;
  at::linalg_vector_norm_out(round.norm, x, 2);
  x.div_(round.norm.clamp_min_(eps));
  // What is not read any more is written next.
  at::Tensor next = round.next, other = round.matrix.view(next.sizes());
  for (int i = 0; i < iterations; ++i) {
    at::mm_out(round.gram, x, x.t());
    at::addmm_out(round.polynomial, round.gram, round.gram, round.gram,
                  coefficientB, coefficientC);
    at::addmm_out(next, x, round.polynomial, x, coefficientA);
    x = next;
    std::swap(next, other);
  }
  // Back into the matrix, in its own order of elements.
  if (tall && x.data_ptr() == round.matrix.data_ptr() && iterations > 0) {
    next.copy_(x);
    x = next;
  }
  const at::Tensor made = tall ? x.t() : x;
  if (iterations > 0 && made.data_ptr() != round.matrix.data_ptr())
    round.matrix.copy_(made);
}

void Muon::update(int unit) {
  Updated &now = all[unit];
  for (Round &round : now.rounds) {
    for (Part &part : round.parts) {
      if (!part.shard.defined())
        continue;
      part.momentum.lerp_(part.gradient, 1 - momentum);
      if (nesterov)
        part.sent.copy_(part.gradient.lerp_(part.momentum, momentum));
      else
        part.sent.copy_(part.momentum);
    }
    now.exchange(round.received, round.sent, round.receivedFrom, round.sentTo);
    if (round.matrix.defined())
      orthogonalize(round);
    now.exchange(round.sent, round.received, round.sentTo, round.receivedFrom);
    for (Part &part : round.parts) {
      if (!part.shard.defined())
        continue;
      const double rate = hostRates[part.group];
      part.shard.mul_(1 - rate * weightDecay(part.group));
      part.shard.add_(part.sent, -rate * part.factor);
    }
  }
  for (Piece &piece : now.pieces)
    at::_fused_adamw_(piece.shard, piece.gradient, piece.average, piece.squares,
                      {}, stepTensor, rates[piece.group], beta1, beta2,
                      weightDecay(piece.group), adamwEps, /*amsgrad=*/false,
                      /*maximize=*/false);
}

} // namespace

std::unique_ptr<Optimizer> makeMuon(const plan::Optimizer &options,
                                    const std::vector<Optimizer::Unit> &units,
                                    c10::Device device) {
  return std::make_unique<Muon>(options, units, device);
}

} // namespace accel::run
