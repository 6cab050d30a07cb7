//===- Mixture.h - Experts of a layer ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_MIXTURE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_MIXTURE_H

#include "frontends/HuggingFace/Activation.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::huggingface {

/// Experts in place of a layer's MLP. A router chooses some of them for each
/// token and none is ever full, as transformers' "grouped_mm" experts.
struct Mixture {
  std::string path = "mlp";    // of its module in a layer
  std::string router = "gate"; // module in that
  int64_t experts = 0;         // 0: the model has none
  int64_t chosen = 0;          // for each token
  int64_t intermediateSize = 0;
  bool normalize = true;     // scores of the chosen sum to `scale`
  bool scoresInFp32 = false; // also where the model computes in 16 bits
  double scale = 1;          // of the scores
  /// Scores are sigmoids of logits in fp32, not a softmax, and a bias that is
  /// not trained is added to them where experts are chosen: of the
  /// `groupsChosen` groups whose two best sum to most (DeepSeek-V3,
  /// arXiv:2412.19437, section 2.1.2).
  bool sigmoid = false;
  int64_t groups = 1, groupsChosen = 1;
  /// Experts are chosen by the router's logits in fp32, whose softmax is over
  /// the chosen alone (Granite).
  bool softmaxOfChosen = false;
  /// Experts are down(relu(up(x))^2), not down(act(gate(x)) * up(x)).
  bool plain = false;
  Activation activation = Activation::Silu;
  /// Experts of gpt-oss: matrices are [in, out] and have biases, columns of
  /// gate and up take turns, and with g = min(gate, limit) and u = up within
  /// +-limit the second matrix reads (u + 1) g sigmoid(alpha g). Experts are
  /// chosen by the router's logits, whose softmax is over the chosen alone.
  struct Clamped {
    double alpha = 0, limit = 0;
  };
  std::optional<Clamped> clamped;
  /// Of what experts read and give, between two projections that all of them
  /// share; 0: the hidden size.
  int64_t latentSize = 0;
  int64_t sharedSize = 0; // of the MLP that all tokens pass beside; 0: none
  /// The sigmoid of this projection to one element scales that MLP's output.
  std::string sharedGate;
  std::vector<bool> sparse; // by layer: it has experts
  /// Coefficient of the load balancing loss, where the loss has one; the
  /// family's forward computes it where it is asked to.
  std::optional<double> auxiliary;
  bool balances = false;
  bool isSparse(int64_t layer) const {
    return experts && sparse[size_t(layer)];
  }
  int64_t sparseLayers() const;
};

class ConfigReader;

/// transformers' grouped matmuls refuse sizes that are no multiples of 4 as
/// well, in fp32; in 16 bits they need multiples of 8, which select-kernels
/// checks.
void checkExpertSizes(ConfigReader &json, const char *key, int64_t size);

/// Clears `sparse` for layers that have an MLP by 'decoder_sparse_step' and
/// 'mlp_only_layers'.
void readSparseLayers(ConfigReader &json, std::vector<bool> &sparse);

/// The load balancing loss, by 'output_router_logits' and
/// 'router_aux_loss_coef'; `mixture` knows its layers.
void readBalancing(ConfigReader &json, Mixture &mixture);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_MIXTURE_H
