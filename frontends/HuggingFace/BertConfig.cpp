//===- BertConfig.cpp - Reads config.json of BERT and RoBERTa -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BertConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"

using namespace accel;
using namespace accel::huggingface;

namespace {

class BertReader {
public:
  BertReader(ConfigReader &json, bool roberta) : json(json) {
    config.roberta = roberta;
  }

  std::optional<BertConfig> read() {
    const std::string family = config.roberta ? "Roberta" : "Bert";
    const std::string name = readArchitecture(
        json, config.base(), family,
        {family + "ForMaskedLM", family + "ForSequenceClassification"});
    if (name == family + "ForSequenceClassification")
      config.classifier = readClassifier(json);
    sizes();
    flags();
    config.dtype = json.dtype();
    if (!json.failed())
      relations();
    return json.failed() ? std::nullopt : std::optional(config);
  }

private:
  void sizes() {
    config.vocabSize = json.size("vocab_size", config.roberta ? 50265 : 30522,
                                 sizeLimits::vocab);
    config.hiddenSize = json.size("hidden_size", 768, sizeLimits::size);
    config.layers = json.size("num_hidden_layers", 12, sizeLimits::layers);
    config.heads = json.size("num_attention_heads", 12, sizeLimits::size);
    config.intermediateSize =
        json.size("intermediate_size", 3072, sizeLimits::size);
    config.positionRows =
        json.size("max_position_embeddings", 512, sizeLimits::vocab);
    config.typeVocabSize = json.size("type_vocab_size", 2, sizeLimits::vocab);
    config.layerNormEps = readEpsilon(json, "layer_norm_eps", 1e-12);
    config.initializerRange = readDeviation(json, "initializer_range", 0.02);
    if (config.initializerRange == 0)
      config.initializerRange = 0.02;
    config.padding = readTokenId(json, "pad_token_id", config.roberta ? 1 : 0,
                                 config.vocabSize);
  }

  void flags() {
    config.tieWordEmbeddings = json.flag("tie_word_embeddings", true);
    config.activation = readActivation(json, "hidden_act", Activation::Gelu);
    config.hiddenDropout = json.probability("hidden_dropout_prob", 0.1);
    config.attentionDropout =
        json.probability("attention_probs_dropout_prob", 0.1);
    if (config.classifier)
      config.classifierDropout =
          json.probability("classifier_dropout", config.hiddenDropout,
                           /*nullable=*/true);
    refuseKeys(json, {"is_decoder", "add_cross_attention",
                      "chunk_size_feed_forward", "quantization_config"});
    if (auto kind = json.text("position_embedding_type");
        kind && *kind != "absolute")
      json.warning("position_embedding_type", "ignored-key",
                   "'position_embedding_type' has no effect: transformers has "
                   "absolute positions alone");
  }

  void relations() {
    checkHeads(json, "hidden_size", config.hiddenSize, config.heads);
    config.maxPositions = config.positionRows;
    if (config.roberta) {
      if (!config.padding) {
        json.error("pad_token_id",
                   "RoBERTa numbers positions from 'pad_token_id', which must "
                   "not be null");
        return;
      }
      config.maxPositions = config.positionRows - *config.padding - 1;
      if (config.maxPositions < 1)
        json.error("max_position_embeddings",
                   "no position is left: RoBERTa's start behind "
                   "'pad_token_id'");
    }
    const double hidden = double(config.hiddenSize);
    const double layer = 4 * hidden * hidden +
                         2 * hidden * double(config.intermediateSize) +
                         double(config.intermediateSize) + 9 * hidden;
    const double tables =
        hidden * double(2 * config.vocabSize + config.positionRows +
                        config.typeVocabSize);
    if (tables + double(config.layers) * layer > sizeLimits::parameters)
      json.error("", "these sizes make a model of more than 1e15 parameters");
  }

  ConfigReader &json;
  BertConfig config;
};

/// In registration order.
class BertModules {
public:
  explicit BertModules(const BertConfig &config)
      : config(config), write(info),
        normal(normalInit(config.initializerRange)) {}

  ModelInfo run() {
    const std::string name = config.roberta ? "Roberta" : "Bert";
    const std::string base = config.base();
    info.module("", name + (config.classifier ? "ForSequenceClassification"
                                              : "ForMaskedLM"));
    info.module(base, name + "Model");
    embeddings(base + ".embeddings", name + "Embeddings");
    info.module(base + ".encoder", name + "Encoder");
    info.module(base + ".encoder.layer", "ModuleList");
    for (int64_t i = 0; i < config.layers; ++i)
      layer(base + ".encoder.layer." + std::to_string(i), name);
    info.anatomy.base = base;
    info.anatomy.inputEmbedding = base + ".embeddings.word_embeddings";
    info.anatomy.noSplit = {name + "Embeddings", name + "Layer"};
    if (!config.classifier)
      config.roberta ? robertaHead() : bertHead();
    else
      config.roberta ? robertaClassifier() : bertClassifier();
    inputs();
    return std::move(info);
  }

private:
  void inputs() {
    info.inputs = {{"input_ids", config.vocabSize, false},
                   config.classifier
                       ? labelsInput(*config.classifier)
                       : ModelInput{"labels", config.vocabSize, false},
                   {"attention_mask", 2, true},
                   {"token_type_ids", config.typeVocabSize, true}};
  }

  void embeddings(const std::string &fqn, const std::string &className) {
    const int64_t hidden = config.hiddenSize;
    const plan::Initializer padded =
        withZeroRow(normal, config.padding.value_or(-1));
    info.module(fqn, className);
    write.embedding(fqn + ".word_embeddings", config.vocabSize, hidden, padded);
    if (!config.roberta)
      write.embedding(fqn + ".position_embeddings", config.positionRows, hidden,
                      normal);
    write.embedding(fqn + ".token_type_embeddings", config.typeVocabSize,
                    hidden, normal);
    write.norm(fqn + ".LayerNorm", hidden);
    write.dropout(fqn + ".dropout");
    if (config.roberta)
      write.embedding(fqn + ".position_embeddings", config.positionRows, hidden,
                      padded);
  }

  void layer(const std::string &path, const std::string &name) {
    const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    info.module(path, name + "Layer");
    info.module(path + ".attention", name + "Attention");
    const std::string self = path + ".attention.self";
    info.module(self, name + "SelfAttention");
    for (const char *part : {".query", ".key", ".value"})
      write.linear(self + part, hidden, hidden, normal);
    write.dropout(self + ".dropout");
    output(path + ".attention.output", name + "SelfOutput", hidden);
    info.module(path + ".intermediate", name + "Intermediate");
    write.linear(path + ".intermediate.dense", hidden, inner, normal);
    info.module(path + ".intermediate.intermediate_act_fn",
                moduleClass(config.activation));
    output(path + ".output", name + "Output", inner);
  }

  void output(const std::string &fqn, const std::string &className,
              int64_t in) {
    info.module(fqn, className);
    write.linear(fqn + ".dense", in, config.hiddenSize, normal);
    write.norm(fqn + ".LayerNorm", config.hiddenSize);
    write.dropout(fqn + ".dropout");
  }

  /// The head's matrix and bias, under their first names where they are tied.
  void decoder(const std::string &head) {
    const std::string fqn = head + ".decoder";
    info.anatomy.outputEmbedding = fqn;
    info.module(fqn, "Linear");
    if (!config.tieWordEmbeddings) {
      info.parameter(fqn + ".weight", {config.vocabSize, config.hiddenSize},
                     normal);
      info.parameter(fqn + ".bias", {config.vocabSize}, zerosInit());
      return;
    }
    for (ParameterInfo &parameter : info.parameters) {
      if (parameter.fqn == info.anatomy.inputEmbedding + ".weight")
        parameter.aliases.push_back(fqn + ".weight");
      if (parameter.fqn == head + ".bias")
        parameter.aliases.push_back(fqn + ".bias");
    }
  }

  /// `head`.bias is read as the decoder's; where they are not tied nothing
  /// reads it, and nothing changes it.
  void headBias(const std::string &head) {
    info.parameter(head + ".bias", {config.vocabSize}, zerosInit());
    info.parameters.back().frozen = !config.tieWordEmbeddings;
  }

  void bertHead() {
    const int64_t hidden = config.hiddenSize;
    const std::string head = "cls.predictions";
    info.module("cls", "BertOnlyMLMHead");
    info.module(head, "BertLMPredictionHead");
    headBias(head);
    info.module(head + ".transform", "BertPredictionHeadTransform");
    write.linear(head + ".transform.dense", hidden, hidden, normal);
    info.module(head + ".transform.transform_act_fn",
                moduleClass(config.activation));
    write.norm(head + ".transform.LayerNorm", hidden);
    decoder(head);
  }

  void robertaHead() {
    const int64_t hidden = config.hiddenSize;
    info.module("lm_head", "RobertaLMHead");
    headBias("lm_head");
    write.linear("lm_head.dense", hidden, hidden, normal);
    write.norm("lm_head.layer_norm", hidden);
    decoder("lm_head");
  }

  void bertClassifier() {
    const int64_t hidden = config.hiddenSize;
    info.module("bert.pooler", "BertPooler");
    write.linear("bert.pooler.dense", hidden, hidden, normal);
    info.module("bert.pooler.activation", "Tanh");
    write.dropout("dropout");
    write.linear("classifier", hidden, config.classifier->labels, normal);
  }

  void robertaClassifier() {
    const int64_t hidden = config.hiddenSize;
    info.module("classifier", "RobertaClassificationHead");
    write.linear("classifier.dense", hidden, hidden, normal);
    write.dropout("classifier.dropout");
    write.linear("classifier.out_proj", hidden, config.classifier->labels,
                 normal);
  }

  const BertConfig &config;
  ModelInfo info;
  ModuleWriter write;
  plan::Initializer normal;
};

} // namespace

std::optional<BertConfig> accel::huggingface::readBert(ConfigReader &json,
                                                       bool roberta) {
  return BertReader(json, roberta).read();
}

ModelInfo accel::huggingface::describeModel(const BertConfig &config) {
  return BertModules(config).run();
}
