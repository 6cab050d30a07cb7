//===- Description.h - Models as data ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A family of models is two texts. Settings name what is read from config.json:
//
//   hidden_size|n_embd = 768      absent or null: the default (an expression)
//   sliding_window ?= 4096        absent: the default; null: 0
//   key_heads ?= 8 heads          absent: the default; null: the other
//   scaled := 1                   a name of our own, not read
//   text hidden_act|activation = silu
//   count indexes = 3             how many a list has
//   sliding layer%2==0            layers that attend to a window
//   dense layer<2 mlp_layer_types layers without experts; of a list of "dense"
//                                 and "sparse", where there is one
//   blocks list|other pattern ME* mamba:M:linear_attention:mamba moe:E:moe
//                                 layers of several kinds: the members that say
//                                 them, the pattern's default, and of each kind
//                                 its name (1 in layers of it), letter, words
//   mixers list layer%4 linear:word attention:word
//                                 layers of two kinds of mixers: the member
//                                 that lists words of each; without it the
//                                 first where the expression is not 0
//   nosplit $DecoderLayer         `_no_split_modules`
//   tp                            the config class has a tensor-parallel plan;
//                                 `tp none` takes that back
//   fp32 wo                       modules that stay fp32 in an fp16 model
//   starts gated act gated-       1 if the text `act` starts so
//
// The body lists classes with their modules, one a line, children indented by
// two more blanks; `$` stands for the family's prefix:
//
//   $ForCausalLM
//     @base %                                    base_model_prefix; `%` stands
//                                                for the family's
//     @input model.embed_tokens                  absent: that of the base
//                                                model's class
//     @output lm_head
//     @tie lm_head.weight @input.weight ?tie_word_embeddings
//     % $Model                                   expands the class below
//     lm_head Linear weight[vocab_size,hidden_size] bias[vocab_size]?bias
//   $Model
//     @auto                                      what AutoModel makes
//     layers ModuleList
//       [num_hidden_layers] $DecoderLayer        repeated; `layer` counts
//         act_fn !hidden_act                     class of an activation
//         rotary $Rope ~inv_freq[head_dim/2]     a buffer, fp32 (:i64, :model)
//         mlp $MLP ?layer<2                      only where that holds
//     encoder $Stack =encoder                    expands `encoder` instead
//     tower *vision_config:siglip_vision_model   what AutoModel makes of this
//                                                member, whose model_type is
//                                                that one if it says none, or
//                                                the whole's (older files)
//     text *text_config?:qwen2_vl_text           the same; without the member
//                                                its settings are the whole's
//   encoder                                      lower case: not an
//   architecture
//
// Expressions in lines have no blanks.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_DESCRIPTION_H
#define ACCEL_FRONTENDS_MODULETREE_DESCRIPTION_H

#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/ModuleTree/ModuleTree.h"

#include <string_view>

namespace accel::moduletree {

struct Family {
  const char *modelType;              // of config.json
  const char *prefix;                 // of class names, "Llama"
  std::vector<const char *> settings; // texts, one after the other
  std::vector<const char *> body;     // likewise; the default class first
  const char *base = "model";         // base_model_prefix of its heads
  /// False where the body has not the layers of this config; null: never.
  bool (*describes)(huggingface::ConfigReader &config) = nullptr;
};

/// The tables, by files.
extern const std::vector<Family> llamaFamilies, llamaLikeFamilies,
    mixtureFamilies, gptFamilies, hybridFamilies, encoderFamilies,
    wrapperFamilies;

/// Null for an unknown one.
const Family *findFamily(std::string_view modelType);
std::vector<std::string> familyNames();

/// Makes the tree of `architecture` (empty: the body's first class; "base": its
/// @auto class). Reports through `config` or `engine`; nothing after an error.
std::optional<ModuleTree> instantiate(const Family &family,
                                      std::string architecture,
                                      huggingface::ConfigReader &config,
                                      DiagnosticEngine &engine,
                                      const std::string &file);

} // namespace accel::moduletree

#endif // ACCEL_FRONTENDS_MODULETREE_DESCRIPTION_H
