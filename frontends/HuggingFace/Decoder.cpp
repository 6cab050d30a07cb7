//===- Decoder.cpp - A decoder-only language model as data ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Decoder.h"

using namespace accel::huggingface;

void Decoder::useLlamaNames() {
  attention.path = "self_attn";
  attention.query = "self_attn.q_proj";
  attention.key = "self_attn.k_proj";
  attention.value = "self_attn.v_proj";
  attention.output = "self_attn.o_proj";
  mlp.path = "mlp";
  mlp.gate = "mlp.gate_proj";
  mlp.up = "mlp.up_proj";
  mlp.down = "mlp.down_proj";
  mlp.activationPath = "mlp.act_fn";
  beforeAttention = "input_layernorm";
  beforeMlp = "post_attention_layernorm";
}

std::string accel::huggingface::choiceBiasOf(const Decoder &decoder,
                                             size_t layer) {
  return decoder.layers + "." + std::to_string(layer) + "." +
         decoder.mixture.path + ".gate.e_score_correction_bias";
}
