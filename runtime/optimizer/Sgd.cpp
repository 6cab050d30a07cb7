//===- Sgd.cpp - torch.optim.SGD(fused=True) ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/Optimizer.h"

#include <ATen/ops/_fused_sgd.h>

namespace accel::run {

namespace {

class Sgd final : public ElementOptimizer {
public:
  Sgd(const plan::Optimizer &options, const std::vector<Unit> &units,
      c10::Device device)
      : ElementOptimizer(options, units, device), momentum(number("momentum")),
        dampening(number("dampening")), nesterov(number("nesterov") != 0) {}

  /// With dampening the first step that is taken differs from the others, so
  /// that the host must know which one it is.
  bool isSteered() const override { return dampening == 0; }

private:
  /// The first step's momentum is the gradient itself, without dampening.
  void updatePiece(Piece &piece) override {
    at::TensorList buffers;
    if (momentum != 0)
      buffers = piece.states[0];
    at::_fused_sgd_(
        piece.shard, piece.gradient, buffers, weightDecay(piece.group),
        momentum, rates[piece.group], dampening, nesterov,
        /*maximize=*/false, /*is_first_step=*/stepCount == 1, divisor, leftOut);
  }

  const double momentum, dampening;
  const bool nesterov;
};

} // namespace

std::unique_ptr<Optimizer> makeSgd(const plan::Optimizer &options,
                                   const std::vector<Optimizer::Unit> &units,
                                   c10::Device device) {
  return std::make_unique<Sgd>(options, units, device);
}

} // namespace accel::run
