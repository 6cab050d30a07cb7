//===- Tower.h - The part of a model that reads images ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What plans need to know of a tower that is trained with images. Of LLaVA's
// (CLIP) every image is as large as config.json says, and its features are
// those of one of the layers. Qwen's read images of any size and join
// neighbouring patches to a token; Qwen2.5-VL's in windows but for some of its
// layers. Images are what the processor makes of them: it has resized them
// already.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_TOWER_H
#define ACCEL_FRONTENDS_HUGGINGFACE_TOWER_H

#include "frontends/HuggingFace/Activation.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::huggingface {

class ConfigReader;

/// The images of a sample, all of one size.
struct Images {
  int64_t perSample = 0;
  int64_t height = 0, width = 0; // pixels
  bool operator==(const Images &) const = default;
};

struct Tower {
  enum class Kind { Clip, Qwen2, Qwen25 } kind = Kind::Clip;
  int64_t hiddenSize = 0, intermediateSize = 0, heads = 1, channels = 3;
  int64_t patchSize = 1; // pixels
  int64_t layers = 0;
  double normEps = 1e-5, attentionDropout = 0;
  Activation activation = Activation::QuickGelu;
  int64_t outputSize = 0;   // of a feature: the language model's hidden size
  int64_t imageToken = 0;   // its id
  std::string unknown = ""; // why images cannot be counted; empty: they can

  // CLIP beside LLaVA's projector.
  int64_t imageSize = 0; // pixels
  /// Of the layers, those that features come from; what the others compute is
  /// read by nothing (vision_feature_layer).
  int64_t layersRead = 0;
  bool readsClass = false; // vision_feature_select_strategy: full
  Activation projector = Activation::Gelu;
  bool projectorBias = true;

  // Qwen2-VL, and what Qwen2.5-VL has more: windows.
  int64_t frames = 2;               // that a patch has (temporal_patch_size)
  int64_t merge = 2;                // patches of a token, in each direction
  int64_t window = 4;               // tokens of a window, in each direction
  std::vector<int64_t> wholeLayers; // without windows (fullatt_block_indexes)
  double ropeTheta = 10000;

  /// Of one image.
  int64_t patches(const Images &images) const {
    return images.height / patchSize * (images.width / patchSize);
  }
  /// Tokens of a sequence that an image takes.
  int64_t tokens(const Images &images) const {
    return kind == Kind::Clip ? patches(images) + (readsClass ? 1 : 0)
                              : patches(images) / (merge * merge);
  }
  /// The size that every image has, if there is one.
  std::optional<Images> onlySize() const;
  /// Where an image cannot have this size: why, a phrase, and the nearest one
  /// that it can.
  struct SizeProblem {
    std::string why;
    int64_t height = 0, width = 0;
  };
  std::optional<SizeProblem> sizeProblem(const Images &images) const;
  /// True of a parameter of the tower that no image reaches.
  bool isUnread(const std::string &fqn) const;

  /// Windows of one size.
  struct Windows {
    int64_t count = 0, patches = 0; // windows of an image, patches of each
  };
  /// How Qwen2.5-VL cuts an image: whole windows, and those at its edges.
  std::vector<Windows> windowsOf(const Images &images) const;
};

/// The tower of a model_type whose images plans count; nothing for others.
/// Reports to `json`, which has the whole config.json.
std::optional<Tower> readTower(const std::string &modelType,
                               ConfigReader &json);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_TOWER_H
