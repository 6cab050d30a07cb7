//===- Decoder.h - A decoder-only language model as data --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the builder of segment functions (BuildDecoder.cpp) needs to know of a
// causal language model: names of modules, how they are joined, and numbers.
// Shapes come from the list of parameters. A family is a function that fills
// this struct from config.json (DecoderFamilies.cpp, decoderOf).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_DECODER_H
#define ACCEL_FRONTENDS_HUGGINGFACE_DECODER_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/HuggingFace/Activation.h"
#include "frontends/HuggingFace/Mixture.h"
#include "frontends/HuggingFace/ModelInfo.h"
#include "frontends/HuggingFace/Rope.h"
#include "frontends/HuggingFace/Tower.h"

#include <optional>

namespace accel::huggingface {

class ConfigReader;

/// Queries, keys and values of low rank: multi-head latent attention
/// (DeepSeek-V2, arXiv:2405.04434, section 2.1). A head's keys are `plain`
/// elements of its own and `turned` ones that all heads share.
struct LatentAttention {
  std::string queryDown, queryNorm; // empty: queries come from one projection
  std::string keyValueDown, keyValueNorm, keyValueUp;
  int64_t rank = 0; // of keys and values
  int64_t plain = 0, turned = 0, value = 0;
  double normEps = 1e-6;
  bool pairs = false; // neighbours are turned, not halves
};

/// Names of modules are relative to a layer; an empty one is no module.
struct DecoderAttention {
  enum class Layout {
    Apart,  // query, key, value are three modules
    Rows,   // one module: all of q, then all of k, then all of v
    Groups, // one module: for each key head its queries, its key, its value
    Latent  // `latent`; `query` is the last projection of queries
  } layout = Layout::Apart;
  std::string query, key, value; // Apart
  std::string joint;             // Rows, Groups
  LatentAttention latent;
  std::string output;
  std::string path;               // of the attention module itself
  std::string queryNorm, keyNorm; // after the projections
  /// A parameter of a score for each head, of no key, that takes a share of
  /// the weights (attention sinks of gpt-oss).
  std::string sinks;
  /// The query's module gives a gate beside each head's query, by whose sigmoid
  /// the head's output is multiplied.
  bool gated = false;
  bool normHeads = true;   // over each head, not over whole rows
  bool normTurned = false; // behind the rotary embeddings, not before
  /// Queries at position p are scaled by 1 + beta log(1 + floor(p / positions))
  /// (Llama 4's and Ministral 3's scores of long contexts).
  struct ByPosition {
    double beta = 0;
    int64_t positions = 0;
  };
  std::optional<ByPosition> byPosition;
  double clip = 0;       // joint projection within +-clip; 0: not
  double queryScale = 1; // of the projected queries
  double scale = 1;      // of the scores
  double softcap = 0;    // see aten.scaled_dot_product_attention
  bool byParts = false;  // transformers has no kernel for it
  // What transformers does in its own way, see dialects/Aten/Eager.h: keys and
  // values of Groups taken by a list, and repeated for each query; the masks.
  bool listed = false, repeated = false;
  std::string masked;
};

struct DecoderMlp {
  enum class Layout {
    Gated,      // down(act(gate(x)) * up(x))
    FusedGated, // gate and up are one module
    Plain       // down(act(up(x)))
  } layout = Layout::Gated;
  std::string gate, up, down; // FusedGated: `up` is both
  std::string path;           // of the module that multiplies
  std::string activationPath;
  Activation activation = Activation::Silu;
};

/// A mixer of states in place of attention (Mamba-2, arXiv:2405.21060).
struct MambaMixer {
  std::string path;
  std::string in, convolution, norm, out; // modules
  std::string stepBias, decay, skip;      // parameters
  int64_t heads = 0, headDim = 0, groups = 1, state = 0, chunk = 1;
  double stepMin = 0, stepMax = 1; // of the time steps
  /// The last projection starts smaller with more layers
  /// (rescale_prenorm_residual).
  bool scalesOutput = false;
};

/// A gated delta rule in place of attention (arXiv:2412.06464).
struct DeltaMixer {
  std::string path;
  /// Modules: of queries, keys and values, of the output's gate, of decays and
  /// betas. Joined: `in` and `decayIn` have, for each key head, all that its
  /// value heads need, and `gateIn` and `betaIn` are empty.
  std::string in, gateIn, decayIn, betaIn, convolution, norm, out;
  std::string stepBias, decay; // parameters
  int64_t keyHeads = 0, keyDim = 0, heads = 0, valueDim = 0;
  bool joined() const { return gateIn.empty(); }
};

/// What a layer may have of its own.
struct DecoderLayerKind {
  /// Hybrid models have one block in a layer, behind one norm.
  enum class Blocks { Both, Attention, Mlp, Mamba } blocks = Blocks::Both;
  int64_t window = 0;  // keys that a query sees; 0: all before it
  int rope = 0;        // index in Decoder::ropes
  bool sparse = false; // experts of Decoder::mixture, no MLP
  bool delta = false;  // Decoder::delta, no attention
  bool turns = true;   // queries and keys, where the decoder has a rope
  bool operator==(const DecoderLayerKind &) const = default;
};

/// Probabilities of dropout.
struct DecoderDropout {
  double embedding = 0, attention = 0; // of hidden states, of weights
  double attentionOutput = 0, mlpOutput = 0;
  double blocks = 0; // of the sum of both where they are parallel
};

struct Decoder {
  std::string classPrefix; // "Llama"
  int64_t hiddenSize = 0;
  int64_t heads = 0, keyValueHeads = 0, headDim = 0;

  // Embedding; FQNs.
  std::string embedding = "model.embed_tokens";
  std::optional<int64_t> paddingIndex; // a row that gets no gradient
  double embeddingScale = 1;           // in the dtype of the table
  double embeddingFactor = 1;          // a number of Python
  std::string positions;               // a table of learned positions
  int64_t positionOffset = 0;          // its first row in use
  bool positionsOfMask = false;        // transformers: for each sample
  std::string projectIn;               // from the table's width

  // Positions in the attention. Learned ones have none of these.
  enum class Alibi { None, Falcon, Mpt } alibi = Alibi::None;
  std::vector<Rope> ropes; // empty: not rotary
  std::string rotary = "model.rotary_emb";
  /// Queries and keys are rotated in fp32 and cast back.
  bool wideRotary = false;
  /// The tables of cos and sin have an element for each pair, not two.
  bool halfTables = false;
  /// What is turned are neighbours in a head, not its halves; `ofTables` too:
  /// layers need not bring them into that order.
  bool turnsNeighbours = false, neighboursOfTables = false;
  /// Queries and keys are copied to fp32 to be turned, by tables in the dtype
  /// of hidden states.
  bool turnsCopies = false;
  /// Of families that turn a part of a head: joined with the rest, also where
  /// that is empty.
  bool joinsTurned = false;

  // Layers.
  std::string layers = "model.layers";
  std::string layerClass;              // "LlamaDecoderLayer"
  std::vector<DecoderLayerKind> kinds; // by layer
  /// Of these, the last ones predict further tokens, by as many layers each
  /// (TokenPredictors.h).
  int64_t tokenPredictors = 0, predictorLayers = 1;
  /// LayerByParts: in fp32, by single operators and without a bias (Cohere).
  enum class Norm {
    Rms,
    RmsWide,
    RmsShifted,
    Layer,
    LayerByParts
  } norm = Norm::Rms;
  double normEps = 1e-6;
  DecoderAttention attention;
  DecoderMlp mlp;
  Mixture mixture;      // in place of `mlp` in the kinds that are sparse
  DecoderMlp sharedMlp; // beside its experts, where it has a `sharedSize`
  MambaMixer mamba;
  DeltaMixer delta;
  /// Blocks of hybrid models read what this norm gives; attention and MLPs of
  /// others have their own.
  std::string beforeBlock;
  /// Norms before a block, of its output before it is added, and after that.
  std::string beforeAttention, ofAttention, afterAttention;
  std::string beforeMlp, ofMlp, afterMlp;
  bool parallel = false;     // both blocks read the layer's input
  bool oneByOne = false;     // and are added to it one after the other
  bool residualFirst = true; // input + output of a block, not output + input
  double residualFactor = 1; // of a block's output before it is added
  /// Projections into the residual start at 1 / sqrt(2 layers) of the
  /// deviation.
  bool residualInitByDepth = false;
  bool biasApart = false; // a bias is added after the matmul, not within it

  // Head; FQNs.
  std::string finalNorm = "model.norm";
  std::string projectOut;
  double logitSoftcap = 0;
  double logitDivisor = 1, logitFactor = 1;

  DecoderDropout dropout;

  /// The names that Llama and its descendants give to the parts of a layer.
  void useLlamaNames();
};

/// The buffer that the router of a layer adds to its scores to choose.
std::string choiceBiasOf(const Decoder &decoder, size_t layer);

/// A decoder with the modules and parameters that config.json makes.
struct DecoderConfig {
  Decoder decoder;
  ModelInfo info;
  int64_t vocabSize = 0, maxPositions = 0;
  std::optional<plan::DType> dtype; // of the checkpoint, if config.json tells
  std::optional<Tower> tower;       // whose images plans count
};

/// True for a model_type that `readDecoder` knows.
bool isDecoderFamily(const std::string &modelType);
/// All of them, in alphabetical order.
std::vector<std::string> decoderFamilyNames();

/// Reads a config.json of such a family; reports to `json`. `path` and
/// `diagnostics` are those of `json`.
std::optional<DecoderConfig> readDecoder(const std::string &modelType,
                                         ConfigReader &json,
                                         const std::string &path,
                                         DiagnosticEngine &diagnostics);

inline const ModelInfo &describeModel(const DecoderConfig &config) {
  return config.info;
}

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_DECODER_H
