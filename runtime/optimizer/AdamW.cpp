//===- AdamW.cpp - torch.optim.AdamW(fused=True) --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/Optimizer.h"

#include <ATen/ops/_fused_adamw.h>

namespace accel::run {

namespace {

class AdamW final : public ElementOptimizer {
public:
  AdamW(const plan::Optimizer &options, const std::vector<Unit> &units,
        c10::Device device)
      : ElementOptimizer(options, units, device), beta1(number("betas", 0)),
        beta2(number("betas", 1)), eps(number("eps")) {}

  bool isSteered() const override { return true; }

private:
  void updatePiece(Piece &piece) override {
    at::_fused_adamw_(piece.shard, piece.gradient, piece.states[0],
                      piece.states[1], {}, stepTensor, rates[piece.group],
                      beta1, beta2, weightDecay(piece.group), eps,
                      /*amsgrad=*/false, /*maximize=*/false, divisor, leftOut);
  }

  const double beta1, beta2, eps;
};

} // namespace

std::unique_ptr<Optimizer> makeAdamW(const plan::Optimizer &options,
                                     const std::vector<Optimizer::Unit> &units,
                                     c10::Device device) {
  return std::make_unique<AdamW>(options, units, device);
}

} // namespace accel::run
