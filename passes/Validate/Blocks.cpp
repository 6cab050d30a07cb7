//===- Blocks.cpp - The segments of a decoder-only transformer ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Blocks.h"

namespace accel::validate {

using plan::DType;

Tensor Blocks::norm(SegmentBuilder &b, Tensor x,
                    const std::string &name) const {
  const DType dtype = recipe.compute;
  const Tensor weight = b.param(name + ".weight", {shape.hidden}, dtype);
  if (!style.llama)
    return b.norm(x, weight, b.param(name + ".bias", {shape.hidden}, dtype));
  // Compiled, it is one kernel.
  if (style.compiled || style.norm == ModelStyle::Norm::Fused)
    return b.norm(x, weight);
  return b.decomposedNorm(x, weight,
                          style.norm == ModelStyle::Norm::InPythonFloatWeight);
}

Tensor Blocks::linear(SegmentBuilder &b, Tensor x, const std::string &name,
                      int64_t out) const {
  const int64_t in = b.shape(x).back();
  const Tensor weight = b.param(name + ".weight", {out, in}, recipe.compute);
  const Tensor bias =
      style.biases ? b.param(name + ".bias", {out}, recipe.compute) : -1;
  return b.linear(x, weight, bias);
}

Tensor Blocks::counted(SegmentBuilder &b, Tensor x, const std::string &name,
                       int64_t out) const {
  if (mode != Recompute::SelectiveOps)
    return linear(b, x, name, out);
  const bool kept = b.isKeeping();
  b.keep(products++ % 2 == 0);
  const Tensor result = linear(b, x, name, out);
  b.keep(kept);
  return result;
}

Tensor Blocks::rope(SegmentBuilder &b, Tensor x) const {
  if (!style.llama)
    return x;
  if (style.compiled || style.rope == ModelStyle::Rope::Fused)
    return b.fusedRope(x);
  return style.rope == ModelStyle::Rope::Complex ? b.complexRope(x)
                                                 : b.rotateHalfRope(x);
}

Tensor Blocks::attention(SegmentBuilder &b, Tensor normed) const {
  const int64_t head = shape.headSize();
  const int64_t batch = recipe.microBatch, length = recipe.sequenceLength;
  auto heads = [&](Tensor x, int64_t count) {
    return b.view(x, {batch, count, length, head});
  };
  Tensor q, k, v;
  if (style.llama) {
    q = counted(b, normed, "attention.wq", shape.heads * head);
    k = counted(b, normed, "attention.wk", shape.keyValueHeads * head);
    v = counted(b, normed, "attention.wv", shape.keyValueHeads * head);
    q = rope(b, heads(q, shape.heads));
    k = rope(b, heads(k, shape.keyValueHeads));
    v = heads(v, shape.keyValueHeads);
    if (style.repeatHeads) {
      k = b.repeatHeads(k, shape.heads);
      v = b.repeatHeads(v, shape.heads);
    }
  } else {
    // One projection; the kernel reads its thirds where they are.
    const Tensor qkv = counted(b, normed, "attn.Wqkv", 3 * shape.hidden);
    q = b.third(qkv, {batch, shape.heads, length, head});
    k = b.third(qkv, {batch, shape.heads, length, head});
    v = b.third(qkv, {batch, shape.heads, length, head});
  }
  const bool kept = b.isKeeping();
  if (mode == Recompute::SelectiveOps)
    b.keep(true);
  Tensor out = b.attention(q, k, v);
  b.keep(kept);
  out = b.view(out, {tokens, shape.heads * head});
  return counted(b, out, "attention.wo", shape.hidden);
}

Tensor Blocks::mlp(SegmentBuilder &b, Tensor normed) const {
  if (!style.llama) {
    const Tensor up = counted(b, normed, "ffn.up_proj", shape.ffn);
    const Tensor active = b.unary("gelu", up, SegmentBuilder::Saves::Input);
    return counted(b, active, "ffn.down_proj", shape.hidden);
  }
  const Tensor gate = counted(b, normed, "feed_forward.w1", shape.ffn);
  Tensor product;
  if (style.compiled) {
    const Tensor up = counted(b, normed, "feed_forward.w3", shape.ffn);
    product = b.swiglu(gate, up);
  } else {
    const Tensor active = b.unary("silu", gate, SegmentBuilder::Saves::Input);
    const Tensor up = counted(b, normed, "feed_forward.w3", shape.ffn);
    product = b.mul(active, up);
  }
  return counted(b, product, "feed_forward.w2", shape.hidden);
}

SegmentGraph Blocks::embedding() const {
  SegmentBuilder b("Embedding");
  const Shape ids = {recipe.microBatch, recipe.sequenceLength};
  const Tensor tokensIn = b.input(ids, DType::I64, false);
  const Tensor table = b.param("tok_embeddings.weight",
                               {shape.vocab, shape.hidden}, recipe.compute);
  Tensor x = b.embedding(table, tokensIn);
  if (!style.llama) {
    const Tensor positions = b.param(
        "wpe.weight", {recipe.sequenceLength, shape.hidden}, recipe.compute);
    x = b.add(x, positions);
  }
  return b.finish({b.view(x, {tokens, shape.hidden})});
}

SegmentGraph Blocks::layer(LayerPart part, Recompute recompute) const {
  SegmentBuilder b("TransformerBlock");
  mode = recompute;
  products = 0;
  b.setLazy(style.compiled);
  // Only what is kept explicitly survives; "none" keeps everything else.
  b.keep(recompute == Recompute::None);
  const Shape size = {tokens, shape.hidden};
  const Tensor x = b.input(size, recipe.compute, true);
  switch (part) {
  case LayerPart::Before:
    return b.finish({norm(b, x, "attention_norm")});
  case LayerPart::Attention:
    return b.finish({attention(b, x)});
  case LayerPart::After: {
    const Tensor attended = b.input(size, recipe.compute, true);
    const Tensor h = b.add(x, attended);
    return b.finish({b.add(h, mlp(b, norm(b, h, "ffn_norm")))});
  }
  case LayerPart::Whole:
    break;
  }
  const Tensor h = b.add(x, attention(b, norm(b, x, "attention_norm")));
  return b.finish({b.add(h, mlp(b, norm(b, h, "ffn_norm")))});
}

Tensor Blocks::logits(SegmentBuilder &b) const {
  const Tensor x = b.input({tokens, shape.hidden}, recipe.compute, true);
  const Tensor normed = norm(b, x, "norm");
  const Tensor table =
      b.param(style.tied ? "tok_embeddings.weight" : "output.weight",
              {shape.vocab, shape.hidden}, recipe.compute);
  return b.linear(normed, table);
}

Tensor Blocks::loss(SegmentBuilder &b, Tensor logits) const {
  b.hold(logits, style.holdsLogits);
  if (style.compiledLoss)
    return b.crossEntropy(logits, SegmentBuilder::Loss::Compiled);
  if (style.loss != SegmentBuilder::Loss::InPlaceFused && style.lossInFloat)
    logits = b.cast(logits, DType::F32);
  return b.crossEntropy(logits, style.loss);
}

SegmentGraph Blocks::head() const {
  SegmentBuilder b("Head");
  return b.finish({logits(b)});
}

SegmentGraph Blocks::loss() const {
  SegmentBuilder b("Loss");
  return b.finish(
      {loss(b, b.input({tokens, shape.vocab}, recipe.compute, true))});
}

SegmentGraph Blocks::headAndLoss() const {
  SegmentBuilder b("Head");
  return b.finish({loss(b, logits(b))});
}

} // namespace accel::validate
