//===- Lion.cpp - Evolved sign momentum -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Chen et al., Symbolic Discovery of Optimization Algorithms, algorithm 2:
//
//   u = sign(beta1 m + (1 - beta1) g)
//   p = p - lr (u + weight_decay p)
//   m = beta2 m + (1 - beta2) g
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/Optimizer.h"

#include "runtime/tensors/Parallel.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/add.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace accel::run {

namespace {

constexpr int64_t grain = 1 << 16;

struct Values {
  double lr, beta1, beta2, weightDecay;
};

/// One pass over memory, in the paper's order of operations: a last bit that
/// differs flips signs later.
template <typename T>
void updateRange(T *p, const T *g, T *m, int64_t n, const Values &values) {
  using Acc = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Acc rate = static_cast<Acc>(values.lr);
  const Acc decay = static_cast<Acc>(values.weightDecay);
  const Acc beta1 = static_cast<Acc>(values.beta1);
  const Acc beta2 = static_cast<Acc>(values.beta2);
  const Acc new1 = static_cast<Acc>(1 - values.beta1);
  const Acc new2 = static_cast<Acc>(1 - values.beta2);
  for (int64_t i = 0; i < n; ++i) {
    const Acc average = static_cast<Acc>(m[i]);
    const Acc gradient = static_cast<Acc>(g[i]);
    const Acc blend = beta1 * average + new1 * gradient;
    const Acc sign = static_cast<Acc>((blend > 0) - (blend < 0));
    const Acc before = static_cast<Acc>(p[i]);
    p[i] = static_cast<T>(before - rate * (sign + decay * before));
    m[i] = static_cast<T>(beta2 * average + new2 * gradient);
  }
}

class Lion final : public ElementOptimizer {
public:
  Lion(const plan::Optimizer &options, const std::vector<Unit> &units,
       c10::Device device)
      : ElementOptimizer(options, units, device), beta1(number("betas", 0)),
        beta2(number("betas", 1)) {}

private:
  void updatePiece(Piece &piece) override {
    at::Tensor &p = piece.shard[0], &g = piece.gradient[0],
               &m = piece.states[0][0];
    const at::Tensor &rate = rates[piece.group];
    if (!p.is_cpu()) {
      // The gradient, which nobody reads any more, takes what ATen's operators
      // would put into temporaries: d = g - m, then with the new momentum
      // m + (1 - beta2) d the blend m + (1 - beta1) d.
      g.sub_(m);
      m.add_(g, 1 - beta2);
      at::add_out(g, m, g, beta2 - beta1);
      g.sign_();
      if (weightDecay(piece.group) != 0)
        p.addcmul_(p, rate, -weightDecay(piece.group));
      p.addcmul_(g, rate, -1);
      return;
    }
    const Values values = {*rate.const_data_ptr<double>(), beta1, beta2,
                           weightDecay(piece.group)};
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kBFloat16, at::kHalf, p.scalar_type(), "lion", [&] {
          scalar_t *to = p.mutable_data_ptr<scalar_t>();
          const scalar_t *from = g.const_data_ptr<scalar_t>();
          scalar_t *state = m.mutable_data_ptr<scalar_t>();
          parallelFor(0, p.numel(), grain, [&](int64_t begin, int64_t end) {
            updateRange(to + begin, from + begin, state + begin, end - begin,
                        values);
          });
        });
  }

  const double beta1, beta2;
};

} // namespace

std::unique_ptr<Optimizer> makeLion(const plan::Optimizer &options,
                                    const std::vector<Optimizer::Unit> &units,
                                    c10::Device device) {
  return std::make_unique<Lion>(options, units, device);
}

} // namespace accel::run
