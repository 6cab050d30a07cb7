//===- RowCheckpoints.cpp - What a measured run recomputed ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RowCheckpoints.h"

#include "passes/Validate/MegatronRows.h"
#include "passes/Validate/TextWords.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace accel::validate {

/// Where hardware and model utilisation are both stated, their ratio is 1
/// without recomputation and 4/3 with all of it.
static double blockShare(const RunRow &row, const RowText &text, Run &run) {
  const size_t at = text.source.find("hfu ");
  if (at != text.source.npos && row.mfuPercent) {
    const double hfu = std::strtod(text.source.c_str() + at + 4, nullptr);
    const double share = 3 * (hfu / *row.mfuPercent - 1);
    if (share > 0 && std::isfinite(share))
      return std::clamp(share, 0.0, 1.0);
  }
  run.assumptions.push_back("every third layer is recomputed");
  return 1.0 / 3;
}

std::string readCheckpointing(const RunRow &row, const RowText &text,
                              Run &run) {
  const std::string &ac = text.checkpointing;
  run.activationOffload = has(ac, "offload") || has(ac, "unsloth");
  if (ac.empty() && !run.megatron.recompute.empty()) { // of its recipe
    run.recompute = Recompute::Selective;
    return "";
  }
  if (const std::optional<bool> layers = recomputesLayers(ac)) {
    run.recompute = *layers ? Recompute::Layers : Recompute::None;
    return "";
  }
  // Megatron's names of what it recomputes.
  if (!run.megatron.recompute.empty()) {
    run.recompute = Recompute::Selective;
    return "";
  }
  if (!hasAny(ac, {"selective", "sac", "partial"}))
    return "activation checkpointing '" + row.checkpointing +
           "' is not modelled";
  const bool layers = has(ac, "layer") && !has(ac, "layernorm");
  if (has(ac, "block") || layers) {
    run.recompute = Recompute::Layers;
    run.recomputedShare = blockShare(row, text, run);
    return "";
  }
  if (const int64_t every = numberAfter(ac, "selective-"); every > 1) {
    run.recompute = Recompute::Layers; // every n-th layer
    run.recomputedShare = 1.0 / static_cast<double>(every);
    return "";
  }
  run.recompute = Recompute::Selective;
  return "";
}

std::string readOffloadedActivations(const OffloadWords &words, Run &run) {
  if (!words.activations || run.activationOffload)
    return "";
  if (run.executor == FrameworkKind::Megatron)
    return run.megatron.offloadedLayers > 0
               ? ""
               : "activations that Megatron offloads are not modelled where no "
                 "recipe has the number of layers";
  if (run.recompute != Recompute::Layers)
    return "offloaded activations of layers that are not recomputed are not "
           "modelled";
  run.activationOffload = true;
  run.assumptions.push_back(
      "the inputs of recomputed layers are the activations that are offloaded");
  return "";
}

} // namespace accel::validate
