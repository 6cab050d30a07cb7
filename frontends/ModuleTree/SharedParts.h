//===- SharedParts.h - What descriptions of models share --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Classes and modules that many families of transformers 5.23 have to the
// letter. A family's body lists those it has, beside its own text.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_SHAREDPARTS_H
#define ACCEL_FRONTENDS_MODULETREE_SHAREDPARTS_H

#include "frontends/ModuleTree/Description.h"

namespace accel::moduletree {

inline constexpr const char *causalHead = R"(
$ForCausalLM
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $Model
  lm_head Linear weight[vocab_size,hidden_size]
)";

/// transformers' GenericForSequenceClassification and classes like it.
inline constexpr const char *sequenceHead = R"(
$ForSequenceClassification
  @base %
  % $Model
  score Linear weight[num_labels,hidden_size]
)";

/// GenericForTokenClassification.
inline constexpr const char *tokenHead = R"(
$ForTokenClassification
  @base %
  % $Model
  dropout Dropout
  score Linear weight[num_labels,hidden_size] bias[num_labels]
)";

/// The same head by its older name.
inline constexpr const char *tokenClassifier = R"(
$ForTokenClassification
  @base %
  % $Model
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
)";

inline constexpr const char *answersHead = R"(
$ForQuestionAnswering
  @base %
  % $Model
  qa_outputs Linear weight[2,hidden_size] bias[2]
)";

/// Some classes name their base model otherwise for question answering.
inline constexpr const char *answersTransformer = R"(
$ForQuestionAnswering
  @base transformer
  transformer $Model
  qa_outputs Linear weight[2,hidden_size] bias[2]
)";

/// Parts of layers. They read the settings q_size, kv_size, qkv_bias (qkv) and
/// mlp_bias (gated).
inline constexpr const char *layerParts = R"(
qkv
  q_proj Linear weight[q_size,hidden_size] bias[q_size]?qkv_bias
  k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?qkv_bias
  v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?qkv_bias
gated
  gate_proj Linear weight[intermediate_size,hidden_size] bias[intermediate_size]?mlp_bias
  up_proj Linear weight[intermediate_size,hidden_size] bias[intermediate_size]?mlp_bias
  down_proj Linear weight[hidden_size,intermediate_size] bias[hidden_size]?mlp_bias
  act_fn !hidden_act
gatedfused
  gate_up_proj Linear weight[2*intermediate_size,hidden_size]
  down_proj Linear weight[hidden_size,intermediate_size]
  activation_fn !hidden_act
twolayers
  activation_fn !hidden_act
  fc1 Linear weight[intermediate_size,hidden_size] bias[intermediate_size]
  fc2 Linear weight[hidden_size,intermediate_size] bias[hidden_size]
)";

} // namespace accel::moduletree

#endif // ACCEL_FRONTENDS_MODULETREE_SHAREDPARTS_H
