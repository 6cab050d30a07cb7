//===- DecoderReader.h - What all decoder families read ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_DECODERREADER_H
#define ACCEL_FRONTENDS_HUGGINGFACE_DECODERREADER_H

#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/HuggingFace/Decoder.h"
#include "frontends/ModuleTree/ModuleTree.h"

#include <functional>

namespace accel::huggingface {

/// What a family calls things, and its defaults.
struct DecoderFamily {
  const char *modelType;
  const char *activation; // its name in the module tree's texts, or ""
  const char *eps;        // the norms' epsilon, and its default
  double defaultEps;
  std::optional<int64_t> pad; // default pad_token_id, where it matters
  bool readsPad;
  bool headsDivide;    // the hidden size must be a multiple of the heads
  bool hybrid = false; // `layer_types` are blocks, which the module tree reads
};

/// Modules and parameters of a tree, each tied one once: `initOf` says the
/// first values of a parameter, and `store` its names in checkpoints.
ModelInfo describeTree(
    const ModuleTree &tree,
    const std::function<plan::Initializer(const TreeParameter &)> &initOf,
    const std::function<void(ParameterInfo &)> &store);

/// Reads one config.json, in this order: `checkSizes`, the module tree,
/// `shared`, what the family alone has.
struct DecoderReader {
  ConfigReader &json;
  const DecoderFamily &family;
  ModuleTree tree = {};
  Decoder d = {};
  std::string storedHead =
      {}; // name of lm_head.weight in checkpoints, if other
  std::string storedBase = {}; // of "model." there, if other

  /// A number of the module tree's settings; 0 where it has none such.
  double number(const char *name) const;
  int64_t size(const char *name) const {
    return static_cast<int64_t>(number(name));
  }
  bool flag(const char *name) const { return number(name) != 0; }

  /// Sizes that config.json gives are whole numbers above 0.
  void checkSizes();
  void checkLayerTypes();
  std::string firstOf(std::initializer_list<const char *> keys) const;
  /// Heads, norms' epsilon, activation, padding.
  void shared();

  /// A probability; null is 0.
  double dropout(const char *key, double otherwise = 0);
  /// A cap of tanh; 0 where there is none.
  double cap(const char *key, double otherwise);
  void rope(const RopeNames &names = {});
  void addRope(const Rope &rope);
  /// Layers that the module tree marks attend to `window` keys.
  void windows(int64_t window);
  /// The same of 'sliding_window', which such layers need.
  void slidingWindows();

  /// LayerNorms of these names before attention and MLP.
  void layerNorms(const char *attention, const char *mlp);
  /// An MLP without a gate.
  void plainMlp(const char *path, const char *up, const char *down,
                const char *act);

  /// Which layers have rotary positions, by the names of SmolLM3.
  void layersThatTurn();

  /// What each layer of a hybrid model is, as the module tree read it.
  void blocks();
  /// Sizes of Mamba-2 layers, by the names of Nemotron-H.
  void mamba();

  /// Layers of a gated delta rule, by the names of Qwen3-Next and Qwen3.5.
  void delta();

  /// The architecture must be the family's ...ForCausalLM.
  bool checkArchitecture(const std::string &prefix);
  /// Modules and parameters, once `d` is complete; initial values as
  /// PreTrainedModel._init_weights and its overrides set them: biases 0, the
  /// norms' weights 1 (Gemma: 0), all else normal.
  ModelInfo info(double stddev) const;

private:
  void activation();
  void padding();
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_DECODERREADER_H
