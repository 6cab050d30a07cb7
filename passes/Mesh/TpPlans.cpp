//===- TpPlans.cpp - Tensor parallelism of families -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Published plans are `base_model_tp_plan` and `base_model_ep_plan` of
// transformers 5.23 and the head of `_tp_plan`; test/parity compares them with
// the installed release. Families that have none are cut alike: columns before
// a pointwise chain or a head's attention, rows behind it. Where one layer
// holds queries, keys and values side by side, each of them is cut. Where these
// have different sizes, the layer is whole and what follows splits its input.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/TpPlans.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace accel;
using namespace accel::mesh;
using llvm::StringRef;

namespace {

using enum TpStyle;

/// transformers adds the table of tokens to each plan whose model has one
/// (DistributedMixin.init_parallel_plans, 5.23).
constexpr TpEntry gated[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry starcoder2[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.c_fc", Colwise},
    {"layers.*.mlp.c_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry arcee[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry gatedWithHeadNorms[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.q_norm", ReplicatedWithGradAllreduce},
    {"layers.*.self_attn.k_norm", ReplicatedWithGradAllreduce},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry qwen3Moe[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.q_norm", ReplicatedWithGradAllreduce},
    {"layers.*.self_attn.k_norm", ReplicatedWithGradAllreduce},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry mixtureBesideMlps[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry mixtral[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"lm_head", ColwiseGatherOutput},
};

/// Attention of low rank is whole on every rank.
constexpr TpEntry deepseekV3[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"layers.*.mlp.shared_experts.gate_proj", Colwise},
    {"layers.*.mlp.shared_experts.up_proj", Colwise},
    {"layers.*.mlp.shared_experts.down_proj", Rowwise},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry glm4Moe[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"layers.*.mlp.shared_experts.gate_proj", Colwise},
    {"layers.*.mlp.shared_experts.up_proj", Colwise},
    {"layers.*.mlp.shared_experts.down_proj", Rowwise},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

/// Heads of latent attention are split, what they share is whole; so are shared
/// experts.
constexpr TpEntry glm4MoeLite[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_b_proj", Colwise},
    {"layers.*.self_attn.kv_a_proj_with_mqa", ReplicatedWithGradAllreduce},
    {"layers.*.self_attn.kv_b_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

/// Attention and the shared MLP are whole on every rank.
constexpr TpEntry graniteMoe[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.block_sparse_moe.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.block_sparse_moe.experts.down_proj", Rowwise},
    {"layers.*.block_sparse_moe.experts", MoeTpExperts},
    {"lm_head", ColwiseGatherOutput},
};

/// Norms over all heads lie between projections and attention.
constexpr TpEntry olmo2[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.k_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.v_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.o_proj", RowwiseSplitInput},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry olmoe[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.k_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.v_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.o_proj", RowwiseSplitInput},
    {"layers.*.mlp.experts.gate_up_proj", PackedColwise, 2},
    {"layers.*.mlp.experts.down_proj", Rowwise},
    {"layers.*.mlp.experts", MoeTpExperts},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry phi3[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.qkv_proj", ColwiseGatherOutput},
    {"layers.*.self_attn.o_proj", RowwiseSplitInput},
    {"layers.*.mlp.gate_up_proj", ColwiseGatherOutput},
    {"layers.*.mlp.down_proj", RowwiseSplitInput},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry phi[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.dense", Rowwise},
    {"layers.*.mlp.fc1", Colwise},
    {"layers.*.mlp.fc2", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry glm4[] = {
    {"embed_tokens", EmbeddingRowwise},
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.gate_up_proj", ColwiseGatherOutput},
    {"layers.*.mlp.down_proj", RowwiseSplitInput},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry gptNeoX[] = {
    {"layers.*.attention.query_key_value", Colwise},
    {"layers.*.attention.dense", Rowwise},
    {"layers.*.mlp.dense_h_to_4h", Colwise},
    {"layers.*.mlp.dense_4h_to_h", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry gpt2[] = {
    {"h.*.attn.c_attn", PackedColwise, 3},
    {"h.*.attn.c_proj", Rowwise},
    {"h.*.mlp.c_fc", Colwise},
    {"h.*.mlp.c_proj", Rowwise},
};

/// All queries' heads, then one of keys and one of values.
constexpr TpEntry gptBigCode[] = {
    {"h.*.attn.c_attn", PackedColwise},
    {"h.*.attn.c_proj", RowwiseSplitInput},
    {"h.*.mlp.c_fc", Colwise},
    {"h.*.mlp.c_proj", Rowwise},
};

constexpr TpEntry falcon[] = {
    {"h.*.self_attention.query_key_value", PackedColwise},
    {"h.*.self_attention.dense", RowwiseSplitInput},
    {"h.*.mlp.dense_h_to_4h", Colwise},
    {"h.*.mlp.dense_4h_to_h", Rowwise},
};

constexpr TpEntry mpt[] = {
    {"blocks.*.attn.Wqkv", PackedColwise, 3},
    {"blocks.*.attn.out_proj", Rowwise},
    {"blocks.*.ffn.up_proj", Colwise},
    {"blocks.*.ffn.down_proj", Rowwise},
};

/// StableLM.
constexpr TpEntry gatedAlone[] = {
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.o_proj", Rowwise},
    {"layers.*.mlp.gate_proj", Colwise},
    {"layers.*.mlp.up_proj", Colwise},
    {"layers.*.mlp.down_proj", Rowwise},
};

/// OPT, and both halves of Whisper.
constexpr TpEntry projected[] = {
    {"layers.*.self_attn.q_proj", Colwise},
    {"layers.*.self_attn.k_proj", Colwise},
    {"layers.*.self_attn.v_proj", Colwise},
    {"layers.*.self_attn.out_proj", Rowwise},
    {"layers.*.encoder_attn.q_proj", Colwise},
    {"layers.*.encoder_attn.k_proj", Colwise},
    {"layers.*.encoder_attn.v_proj", Colwise},
    {"layers.*.encoder_attn.out_proj", Rowwise},
    {"layers.*.fc1", Colwise},
    {"layers.*.fc2", Rowwise},
};

constexpr TpEntry bert[] = {
    {"encoder.layer.*.attention.self.query", Colwise},
    {"encoder.layer.*.attention.self.key", Colwise},
    {"encoder.layer.*.attention.self.value", Colwise},
    {"encoder.layer.*.attention.output.dense", Rowwise},
    {"encoder.layer.*.intermediate.dense", Colwise},
    {"encoder.layer.*.output.dense", Rowwise},
};

constexpr TpEntry vit[] = {
    {"layers.*.attention.q_proj", Colwise},
    {"layers.*.attention.k_proj", Colwise},
    {"layers.*.attention.v_proj", Colwise},
    {"layers.*.attention.o_proj", Rowwise},
    {"layers.*.mlp.fc1", Colwise},
    {"layers.*.mlp.fc2", Rowwise},
};

constexpr TpEntry t5[] = {
    {"block.*.layer.*.SelfAttention.q", Colwise},
    {"block.*.layer.*.SelfAttention.k", Colwise},
    {"block.*.layer.*.SelfAttention.v", Colwise},
    {"block.*.layer.*.SelfAttention.o", Rowwise},
    {"block.*.layer.*.EncDecAttention.q", Colwise},
    {"block.*.layer.*.EncDecAttention.k", Colwise},
    {"block.*.layer.*.EncDecAttention.v", Colwise},
    {"block.*.layer.*.EncDecAttention.o", Rowwise},
    {"block.*.layer.*.DenseReluDense.wi", Colwise},
    {"block.*.layer.*.DenseReluDense.wi_0", Colwise},
    {"block.*.layer.*.DenseReluDense.wi_1", Colwise},
    {"block.*.layer.*.DenseReluDense.wo", Rowwise},
};

constexpr TpEntry nemotronH[] = {
    {"embeddings", EmbeddingRowwise},
    {"layers.*.mixer.experts.up_proj", Colwise},
    {"layers.*.mixer.experts.down_proj", Rowwise},
    {"layers.*.mixer.experts", MoeTpExperts},
};

/// Megatron's hybrid models: heads of attention; of Mamba-2 layers groups of
/// heads, with their rows of the projection (core/ssm/mamba_mixer.py); MLPs,
/// shared experts and the head.
constexpr TpEntry nemotronHOfMegatron[] = {
    {"layers.*.mixer.q_proj", Colwise},
    {"layers.*.mixer.k_proj", Colwise},
    {"layers.*.mixer.v_proj", Colwise},
    {"layers.*.mixer.o_proj", Rowwise},
    {"layers.*.mixer.in_proj", Colwise},
    {"layers.*.mixer.conv1d.weight", GroupedGemm},
    {"layers.*.mixer.conv1d.bias", Colwise},
    {"layers.*.mixer.dt_bias", Colwise},
    {"layers.*.mixer.A_log", Colwise},
    {"layers.*.mixer.D", Colwise},
    {"layers.*.mixer.norm.weight", Colwise},
    {"layers.*.mixer.out_proj", Rowwise},
    {"layers.*.mixer.up_proj", Colwise},
    {"layers.*.mixer.down_proj", Rowwise},
    {"layers.*.mixer.shared_experts.up_proj", Colwise},
    {"layers.*.mixer.shared_experts.down_proj", Rowwise},
    {"lm_head", ColwiseGatherOutput},
};

constexpr TpEntry dispatchedPlain[] = {
    {"layers.*.mixer.experts.up_proj", GroupedGemm},
    {"layers.*.mixer.experts.down_proj", GroupedGemm},
    {"layers.*.mixer.experts", EpDispatchExperts},
};

/// `base_model_ep_plan` of the mixtures.
constexpr TpEntry dispatched[] = {
    {"layers.*.mlp.experts.gate_up_proj", GroupedGemm},
    {"layers.*.mlp.experts.down_proj", GroupedGemm},
    {"layers.*.mlp.experts", EpDispatchExperts},
};

/// The same of Granite, by its name of the module.
constexpr TpEntry dispatchedOfGranite[] = {
    {"layers.*.block_sparse_moe.experts.gate_up_proj", GroupedGemm},
    {"layers.*.block_sparse_moe.experts.down_proj", GroupedGemm},
    {"layers.*.block_sparse_moe.experts", EpDispatchExperts},
};

/// The same of gpt-oss, whose experts have biases.
constexpr TpEntry dispatchedWithBiases[] = {
    {"layers.*.mlp.experts.gate_up_proj", GroupedGemm},
    {"layers.*.mlp.experts.gate_up_proj_bias", GroupedGemm},
    {"layers.*.mlp.experts.down_proj", GroupedGemm},
    {"layers.*.mlp.experts.down_proj_bias", GroupedGemm},
    {"layers.*.mlp.experts", EpDispatchExperts},
};

/// The vocabulary of families whose plan in transformers leaves the table of
/// tokens whole, or that have none there, by all names of the table and the
/// head: Megatron and accel-run cut both, which often are one weight, and the
/// loss with them.
constexpr TpEntry vocabulary[] = {
    {"embed_in", EmbeddingRowwise},        {"embed_tokens", EmbeddingRowwise},
    {"word_embeddings", EmbeddingRowwise}, {"wte", EmbeddingRowwise},
    {"lm_head", ColwiseGatherOutput},      {"proj_out", ColwiseGatherOutput},
};
/// The same of T5, both of whose halves look rows up in one table.
constexpr TpEntry vocabularyOfT5[] = {
    {"shared", EmbeddingRowwise},
    {"lm_head", ColwiseGatherOutput},
};
/// The same of encoders, whose heads are modules with a layer before the one
/// that gives logits (RoBERTa's `lm_head`).
constexpr TpEntry vocabularyOfEncoder[] = {
    {"word_embeddings", EmbeddingRowwise},
    {"lm_head.decoder", ColwiseGatherOutput},
    {"predictions.decoder", ColwiseGatherOutput},
};

constexpr TpEntry headAlone[] = {{"lm_head", ColwiseGatherOutput}};

constexpr TpPlan plans[] = {
    {"LlamaModel", gated, {}, true},
    {"MistralModel", gated, {}, true},
    {"MinistralModel", gated, {}, true},
    {"Ministral3Model", gated, {}, true},
    {"Ernie4_5Model", gated, {}, true},
    {"Qwen2Model", gated, {}, true},
    {"Qwen2VLTextModel", gated, {}, true},
    {"Qwen2_5_VLTextModel", gated, {}, true},
    {"GemmaModel", gated, {}, true},
    {"Gemma2Model", gated, {}, true},
    {"GraniteModel", gated, {}, true},
    {"SmolLM3Model", gated, {}, true},
    {"CohereModel", gated, {}, true},
    {"Cohere2Model", gated, {}, true},
    {"SeedOssModel", gated, {}, true},
    {"ArceeModel", arcee, {}, true},
    {"Starcoder2Model", starcoder2, {}, true},
    {"Gemma3TextModel", gatedWithHeadNorms, {}, true},
    {"Qwen3Model", gatedWithHeadNorms, {}, true},
    {"Exaone4Model", gatedWithHeadNorms, {}, true},
    {"Qwen3VLTextModel", headAlone, {}, true, gatedWithHeadNorms},
    {"Qwen2MoeModel", mixtureBesideMlps, dispatched, true},
    {"Qwen3MoeModel", qwen3Moe, dispatched, true},
    {"GptOssModel", headAlone, dispatchedWithBiases, true},
    {"DeepseekV3Model", deepseekV3, dispatched, true},
    {"GraniteMoeModel", graniteMoe, dispatchedOfGranite, true},
    {"GraniteMoeHybridModel", graniteMoe, dispatchedOfGranite, true},
    {"Glm4MoeModel", glm4Moe, dispatched, true},
    {"Glm4MoeLiteModel", glm4MoeLite, dispatched, true},
    {"MixtralModel", mixtral, dispatched, true},
    {"NemotronHModel", nemotronH, dispatchedPlain, true, nemotronHOfMegatron},
    {"Olmo2Model", olmo2, {}, true},
    {"Olmo3Model", olmo2, {}, true},
    {"OlmoeModel", olmoe, dispatched, true},
    {"PhiModel", phi, {}, true},
    {"GlmModel", glm4, {}, true},
    {"Glm4Model", glm4, {}, true},
    {"Phi3Model", phi3, {}, true},
    {"GPTNeoXModel", gptNeoX, {}, true, vocabulary},
    {"GPT2Model", gpt2, {}, false, vocabulary},
    {"GPTBigCodeModel", gptBigCode, {}, false, vocabulary},
    {"FalconModel", falcon, {}, false, vocabulary},
    {"MptModel", mpt, {}, false, vocabulary},
    {"StableLmModel", gatedAlone, {}, false, vocabulary},
    {"HunYuanDenseV1Model", gatedAlone, {}, false, vocabulary},
    {"OPTModel", projected, {}, false, vocabulary},
    {"WhisperModel", projected, {}, false, vocabulary},
    {"BertModel", bert, {}, false, vocabularyOfEncoder},
    {"RobertaModel", bert, {}, false, vocabularyOfEncoder},
    {"ViTModel", vit, {}, false},
    {"T5Stack", t5, {}, false, vocabularyOfT5},
};

/// The components of `pattern` are the last ones of `fqn`; a star is one.
bool fits(StringRef pattern, StringRef fqn) {
  while (!pattern.empty()) {
    auto [rest, part] = pattern.contains('.') ? pattern.rsplit('.')
                                              : std::pair(StringRef(), pattern);
    auto [left, name] =
        fqn.contains('.') ? fqn.rsplit('.') : std::pair(StringRef(), fqn);
    if (name.empty() || (part != "*" && part != name))
      return false;
    pattern = rest;
    fqn = left;
  }
  return true;
}

} // namespace

void ModelTpPlan::addModule(StringRef fqn, StringRef className) {
  for (const TpPlan &known : plans)
    if (!plan && known.baseClass == className)
      plan = &known;
  if (plan && plan->baseClass == className)
    bases.push_back(fqn);
}

const TpEntry *ModelTpPlan::find(llvm::ArrayRef<TpEntry> entries,
                                 StringRef fqn) const {
  const bool inside = llvm::any_of(bases, [&](StringRef base) {
    StringRef rest = fqn;
    return base.empty() || (rest.consume_front(base) && rest.starts_with("."));
  });
  const TpEntry *found = nullptr;
  for (const TpEntry &entry : entries)
    if ((inside || !entry.pattern.contains('*')) && fits(entry.pattern, fqn) &&
        (!found || entry.pattern.size() > found->pattern.size()))
      found = &entry;
  return found;
}

StringRef mesh::stringifyTpStyle(TpStyle style) {
  switch (style) {
  case Colwise:
    return "colwise";
  case ColwiseGatherOutput:
    return "colwise_gather_output";
  case Rowwise:
    return "rowwise";
  case RowwiseSplitInput:
    return "rowwise_split_input";
  case EmbeddingRowwise:
    return "embedding_rowwise";
  case PackedColwise:
    return "packed_colwise";
  case ReplicatedWithGradAllreduce:
    return "replicated_with_grad_allreduce";
  case MoeTpExperts:
    return "moe_tp_experts";
  case GroupedGemm:
    return "grouped_gemm";
  case EpDispatchExperts:
    return "ep_dispatch_experts";
  }
  llvm_unreachable("all styles are listed");
}
