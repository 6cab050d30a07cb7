//===- ShapeModel.cpp - Step models from shapes and frameworks ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/ShapeModel.h"

#include "passes/Cost/OpCost.h"
#include "passes/Validate/Blocks.h"
#include "passes/Validate/Fragments.h"

#include <algorithm>
#include <cmath>

namespace accel::validate {

using plan::DType;

namespace {

int64_t rounded(double bytes) {
  return (static_cast<int64_t>(bytes) + 511) / 512 * 512;
}

class Builder {
public:
  Builder(const ModelShape &shape, const ModelRecipe &recipe,
          const Target *target)
      : shape(shape), recipe(recipe), target(target),
        layerTarget(target ? adjusted(*target, recipe) : Target()),
        blocks(shape, recipe) {}

  StepShape run() {
    StepModel &model = result.model;
    model.microBatch = recipe.microBatch;
    model.sequenceLength = recipe.sequenceLength;
    model.vocab = shape.vocab;
    model.device = "cuda";
    const int64_t tokens = model.tokens();
    const double hidden = static_cast<double>(tokens) *
                          static_cast<double>(shape.hidden) *
                          static_cast<double>(plan::itemSize(recipe.compute));

    // The embedding.
    const int ids = value(rounded(8.0 * static_cast<double>(tokens)), -1);
    const int embedding =
        kind(blocks.embedding(), EagerMode::None, "Embedding");
    const int table =
        addParameter("tok_embeddings.weight", {shape.vocab, shape.hidden});
    std::vector<int> root = {table};
    std::vector<int> embeddingParameters = {table};
    if (!recipe.style.llama) {
      embeddingParameters.push_back(
          addParameter("wpe.weight", {recipe.sequenceLength, shape.hidden}));
      root.push_back(embeddingParameters.back());
    }
    int x = call(embedding, {ids}, rounded(hidden), "tok_embeddings",
                 embeddingParameters, false);

    // The layers; a part of them may be recomputed.
    addLayerKinds();
    const int64_t recomputed = static_cast<int64_t>(std::llround(
        recipe.recomputedShare * static_cast<double>(shape.layers)));
    int64_t done = 0;
    for (int64_t i = 0; i < shape.layers; ++i) {
      // As even as possible (fms-fsdp's ac_handler).
      const bool again = done < (i + 1) * recomputed / shape.layers;
      done += again;
      x = addLayer(i, x, rounded(hidden), again);
    }

    // The head.
    std::vector<int> tail = {addParameter("norm.weight", {shape.hidden})};
    if (!recipe.style.llama)
      tail.push_back(addParameter("norm.bias", {shape.hidden}));
    if (recipe.style.tied)
      tail.push_back(table);
    else
      tail.push_back(
          addParameter("output.weight", {shape.vocab, shape.hidden}));
    result.lossFragmentBytes = lossFragments(blocks.headAndLoss());
    const double logits = static_cast<double>(tokens) *
                          static_cast<double>(shape.vocab) *
                          static_cast<double>(plan::itemSize(recipe.compute));
    x = call(kind(blocks.head(), EagerMode::None, "Head"), {x}, rounded(logits),
             "output", tail, false);
    const int loss = kind(blocks.loss(), EagerMode::None, "Loss");
    model.kinds[loss].loss = true;
    model.kinds[loss].logitsBytes = rounded(logits);
    call(loss, {x}, 512, "loss", {}, false);
    addUnits(root, tail, table);
    return std::move(result);
  }

private:
  int value(int64_t bytes, int producer) {
    StepValue v;
    v.bytes = v.gradientBytes = bytes;
    v.producer = producer;
    v.gradient = producer >= 0;
    if (!v.gradient)
      v.gradientBytes = 0;
    result.model.values.push_back(v);
    return static_cast<int>(result.model.values.size()) - 1;
  }

  int addParameter(const std::string &fqn, std::vector<int64_t> sizes) {
    StepParameter parameter;
    parameter.fqn = fqn;
    parameter.shape = std::move(sizes);
    parameter.dtype = recipe.parameters;
    result.model.parameters.push_back(std::move(parameter));
    return static_cast<int>(result.model.parameters.size()) - 1;
  }

  int call(int kind, std::vector<int> inputs, int64_t bytes,
           const std::string &path, std::vector<int> parameters, bool layer,
           int variant = 0) {
    StepCall c;
    c.kind = kind;
    c.inputs = std::move(inputs);
    c.path = path;
    c.parameters = std::move(parameters);
    c.layer = layer;
    const int index = static_cast<int>(result.model.calls.size());
    c.outputs = {value(bytes, index)};
    const int output = c.outputs[0];
    const SegmentVariant &v = result.model.kinds[kind].variants[variant];
    if (target && !recipe.style.compiled)
      result.dispatchSeconds +=
          (v.forwardOps + v.backwardOps) * target->dispatchSeconds;
    result.model.calls.push_back(std::move(c));
    result.variants.push_back(variant);
    return output;
  }

  SegmentVariant measure(const SegmentGraph &graph, EagerMode mode,
                         bool layer) const {
    return measureVariant(graph, mode, layer && target ? &layerTarget : target);
  }

  /// The target as the layers see it: with their kernels of attention, and
  /// products in fp8 where the recipe says so.
  static Target adjusted(const Target &target, const ModelRecipe &recipe) {
    Target result = target;
    for (auto &[dtype, rate] : result.compute) {
      rate.attentionEfficiency *= recipe.attentionRate;
      rate.attentionBackwardEfficiency *= recipe.attentionRate;
    }
    if (!recipe.fp8 || !target.fp8)
      return result;
    for (DType dtype : {DType::BF16, DType::F16}) {
      ComputeRate &rate = result.compute[dtype];
      rate.matmulEfficiency =
          target.fp8->peakFlops * target.fp8->matmulEfficiency / rate.peakFlops;
      rate.halfDepth = target.fp8->halfDepth;
    }
    return result;
  }

  int kind(const SegmentGraph &graph, EagerMode mode, const std::string &name,
           bool layer = false) {
    SegmentKind k;
    k.name = name;
    const plan::Function &function = graph.function;
    auto bytesOf = [&](int slot) {
      double bytes =
          static_cast<double>(plan::itemSize(function.slots[slot].dtype));
      for (int64_t size : function.slots[slot].shape)
        bytes *= static_cast<double>(size);
      return rounded(bytes);
    };
    for (int i = 0; i < graph.inputs; ++i) {
      k.inputBytes += bytesOf(function.inputs[i]);
      if (graph.inputHasGradient[i]) {
        k.inputGradients.push_back(i);
        k.inputGradientBytes += bytesOf(function.inputs[i]);
      }
    }
    for (int i = 0; i < graph.outputs; ++i)
      k.outputBytes += bytesOf(function.outputs[i]);
    for (size_t i = static_cast<size_t>(graph.outputs + graph.inputGradients);
         i < function.outputs.size(); ++i)
      k.parameterGradientBytes += bytesOf(function.outputs[i]);
    for (size_t i = 0; i < graph.forward.size(); ++i)
      if (graph.forward[i])
        k.forwardFlops += function.instructions[i].flops;
    k.variants.push_back(measure(graph, mode, layer));
    result.model.kinds.push_back(std::move(k));
    return static_cast<int>(result.model.kinds.size()) - 1;
  }

  void addLayerKinds() {
    const bool compiled = recipe.style.compiled;
    auto add = [&](LayerPart part, Recompute recompute, const char *name) {
      EagerMode mode = EagerMode::None;
      // Compiled graphs say themselves what they compute again.
      if (!compiled && recompute == Recompute::Layers)
        mode = EagerMode::Full;
      if (!compiled && recompute == Recompute::SelectiveOps)
        mode = EagerMode::Pointwise;
      return kind(blocks.layer(part, recompute), mode, name, true);
    };
    plain = add(LayerPart::Whole, Recompute::None, "TransformerBlock");
    switch (recipe.recompute) {
    case Recompute::None:
      break;
    case Recompute::SelectiveOps:
    case Recompute::Layers:
      again = add(LayerPart::Whole, recipe.recompute, "Checkpointed");
      break;
    case Recompute::Attention:
      before = add(LayerPart::Before, Recompute::None, "AttentionNorm");
      attention = add(LayerPart::Attention, Recompute::Layers, "Attention");
      after = add(LayerPart::After, Recompute::None, "FeedForward");
      break;
    }
  }

  int addLayer(int64_t index, int x, int64_t bytes, bool recomputed) {
    const std::string path = "layers." + std::to_string(index);
    std::vector<int> all;
    auto parameter = [&](const std::string &name, std::vector<int64_t> sizes) {
      all.push_back(addParameter(path + "." + name, std::move(sizes)));
    };
    auto linear = [&](const std::string &name, int64_t out, int64_t in) {
      parameter(name + ".weight", {out, in});
      if (recipe.style.biases)
        parameter(name + ".bias", {out});
    };
    auto norm = [&](const std::string &name) {
      parameter(name + ".weight", {shape.hidden});
      if (!recipe.style.llama)
        parameter(name + ".bias", {shape.hidden});
    };
    const int64_t queries = shape.heads * shape.headSize();
    const int64_t keys = shape.keyValueHeads * shape.headSize();
    std::vector<size_t> ends; // of the parts' parameters
    norm("attention_norm");
    ends.push_back(all.size());
    if (recipe.style.llama) {
      linear("attention.wq", queries, shape.hidden);
      linear("attention.wk", keys, shape.hidden);
      linear("attention.wv", keys, shape.hidden);
    } else {
      linear("attn.Wqkv", 3 * shape.hidden, shape.hidden);
    }
    linear("attention.wo", shape.hidden, queries);
    ends.push_back(all.size());
    norm("ffn_norm");
    if (recipe.style.llama) {
      linear("feed_forward.w1", shape.ffn, shape.hidden);
      linear("feed_forward.w3", shape.ffn, shape.hidden);
      linear("feed_forward.w2", shape.hidden, shape.ffn);
    } else {
      linear("ffn.up_proj", shape.ffn, shape.hidden);
      linear("ffn.down_proj", shape.hidden, shape.ffn);
    }
    layerUnits.push_back(all);
    if (!recomputed || recipe.recompute == Recompute::None)
      return call(plain, {x}, bytes, path, all, true);
    if (recipe.recompute != Recompute::Attention)
      return call(again, {x}, bytes, path, all, true);
    auto part = [&](size_t from, size_t to) {
      return std::vector<int>(all.begin() + static_cast<long>(from),
                              all.begin() + static_cast<long>(to));
    };
    const int normed = call(before, {x}, bytes, path + ".attention_norm",
                            part(0, ends[0]), false);
    const int attended = call(attention, {normed}, bytes, path + ".attention",
                              part(ends[0], ends[1]), false);
    return call(after, {x, attended}, bytes, path + ".feed_forward",
                part(ends[1], all.size()), false);
  }

  void addUnits(const std::vector<int> &root, const std::vector<int> &tail,
                int table) {
    StepModel &model = result.model;
    auto unit = [&](const std::string &name, std::vector<int> parameters,
                    bool isRoot, bool reshard) {
      StepUnit u;
      u.name = name;
      u.parameters = std::move(parameters);
      u.root = isRoot;
      u.reshardAfterForward = reshard;
      model.units.push_back(std::move(u));
    };
    const bool split = recipe.style.splitRoot && !recipe.style.tied;
    if (split)
      unit("tok_embeddings", root, false, true);
    for (size_t i = 0; i < layerUnits.size(); ++i)
      unit("layers." + std::to_string(i), layerUnits[i], false,
           !recipe.style.keepsLastLayer || i + 1 < layerUnits.size());
    if (split) {
      unit("output", tail, false, false);
      return;
    }
    std::vector<int> rest = root;
    for (int parameter : tail)
      if (parameter != table)
        rest.push_back(parameter);
    unit("", rest, true, recipe.style.reshardsRoot);
  }

  const ModelShape &shape;
  const ModelRecipe &recipe;
  const Target *target;
  Target layerTarget;
  Blocks blocks;
  StepShape result;
  std::vector<std::vector<int>> layerUnits;
  int plain = 0, again = 0, before = 0, attention = 0, after = 0;
};

} // namespace

StepShape buildShapeModel(const ModelShape &shape, const ModelRecipe &recipe,
                          const Target *target) {
  return Builder(shape, recipe, target).run();
}

int64_t parameterCount(const ModelShape &shape, const ModelStyle &style,
                       int64_t positions) {
  const int64_t d = shape.hidden, f = shape.ffn;
  const int64_t keys = shape.keyValueHeads * shape.headSize();
  int64_t layer = 0, rest = shape.vocab * d * (style.tied ? 1 : 2) + d;
  if (style.llama) {
    layer = 2 * d * d + 2 * d * keys + 3 * d * f + 2 * d;
  } else {
    layer = 4 * d * d + 2 * d * f + 4 * d;
    rest += positions * d + d;
    if (style.biases)
      layer += 5 * d + f;
  }
  return shape.layers * layer + rest;
}

} // namespace accel::validate
