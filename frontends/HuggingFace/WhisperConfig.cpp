//===- WhisperConfig.cpp - Reads config.json of Whisper -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/WhisperConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"

using namespace accel;
using namespace accel::huggingface;

namespace {

class WhisperReader {
public:
  explicit WhisperReader(ConfigReader &json) : json(json) {}

  std::optional<WhisperConfig> read() {
    readArchitecture(json, "whisper", "Whisper",
                     {"WhisperForConditionalGeneration"});
    config.vocabSize = json.size("vocab_size", 51865, sizeLimits::vocab);
    config.hiddenSize = json.size("d_model", 384, sizeLimits::size);
    config.melBins = json.size("num_mel_bins", 80, sizeLimits::size);
    config.sourcePositions =
        json.size("max_source_positions", 1500, sizeLimits::vocab);
    config.maxPositions =
        json.size("max_target_positions", 448, sizeLimits::vocab);
    stack("encoder", config.encoder);
    stack("decoder", config.decoder);
    config.initStd = readDeviation(json, "init_std", 0.02);
    config.tieWordEmbeddings = json.flag("tie_word_embeddings", true);
    config.activation =
        readActivation(json, "activation_function", Activation::Gelu);
    config.dropout = json.probability("dropout", 0);
    config.attentionDropout = json.probability("attention_dropout", 0);
    config.activationDropout = json.probability("activation_dropout", 0);
    refuseKeys(json, {"encoder_layerdrop", "decoder_layerdrop",
                      "apply_spec_augment", "quantization_config"});
    config.dtype = json.dtype();
    if (!json.failed())
      relations();
    return json.failed() ? std::nullopt : std::optional(config);
  }

private:
  void stack(const std::string &name, WhisperConfig::Stack &stack) {
    stack.layers = json.size(name + "_layers", 4, sizeLimits::layers);
    stack.heads = json.size(name + "_attention_heads", 6, sizeLimits::size);
    stack.intermediateSize =
        json.size(name + "_ffn_dim", 1536, sizeLimits::size);
  }

  void relations() {
    config.padding = readTokenId(json, "pad_token_id", 50256, config.vocabSize);
    if (json.failed())
      return;
    if (!config.padding)
      json.error("pad_token_id", "the decoder's tokens are made of the labels, "
                                 "which takes a 'pad_token_id'");
    std::optional<int64_t> start =
        readTokenId(json, "decoder_start_token_id", 50257, config.vocabSize);
    if (start)
      config.start = *start;
    else if (!json.failed())
      json.error("decoder_start_token_id",
                 "'decoder_start_token_id' must not be null");
    checkHeads(json, "encoder_attention_heads", config.hiddenSize,
               config.encoder.heads);
    checkHeads(json, "decoder_attention_heads", config.hiddenSize,
               config.decoder.heads);
    if (config.hiddenSize % 2 || config.hiddenSize < 4)
      json.error("d_model", "the table of sinusoids takes an even 'd_model' of "
                            "at least 4");
    const double hidden = double(config.hiddenSize);
    double total = hidden * double(2 * config.vocabSize + config.maxPositions +
                                   config.sourcePositions + 3 * config.melBins);
    for (const WhisperConfig::Stack *stack : {&config.encoder, &config.decoder})
      total +=
          double(stack->layers) *
          (8 * hidden * hidden + 2 * hidden * double(stack->intermediateSize));
    if (total > sizeLimits::parameters)
      json.error("", "these sizes make a model of more than 1e15 parameters");
  }

  ConfigReader &json;
  WhisperConfig config;
};

/// In registration order.
class WhisperModules {
public:
  explicit WhisperModules(const WhisperConfig &config)
      : config(config), write(info), normal(normalInit(config.initStd)) {}

  ModelInfo run() {
    info.module("", "WhisperForConditionalGeneration");
    info.module("model", "WhisperModel");
    encoder();
    decoder();
    info.module("proj_out", "Linear");
    if (!config.tieWordEmbeddings)
      info.parameter("proj_out.weight", {config.vocabSize, config.hiddenSize},
                     normal);
    info.anatomy = {"model",
                    "model.decoder.embed_tokens",
                    "proj_out",
                    {"WhisperEncoderLayer", "WhisperDecoderLayer"}};
    info.inputs = {{"input_features", 0, false},
                   {"labels", config.vocabSize, false}};
    return std::move(info);
  }

private:
  void encoder() {
    const std::string path = "model.encoder";
    const int64_t hidden = config.hiddenSize;
    info.module(path, "WhisperEncoder");
    convolution(path + ".conv1", config.melBins);
    convolution(path + ".conv2", hidden);
    write.embedding(path + ".embed_positions", config.sourcePositions, hidden,
                    sinusoidsInit(10000));
    info.parameters.back().frozen = true;
    info.module(path + ".layers", "ModuleList");
    for (int64_t i = 0; i < config.encoder.layers; ++i) {
      const std::string at = path + ".layers." + std::to_string(i);
      info.module(at, "WhisperEncoderLayer");
      attention(at, "self_attn");
      info.module(at + ".activation_fn", moduleClass(config.activation));
      feedForward(at, config.encoder.intermediateSize);
    }
    write.norm(path + ".layer_norm", hidden);
  }

  void decoder() {
    const std::string path = "model.decoder";
    const int64_t hidden = config.hiddenSize;
    info.module(path, "WhisperDecoder");
    write.embedding(path + ".embed_tokens", config.vocabSize, hidden,
                    withZeroRow(normal, config.padding.value_or(-1)));
    if (config.tieWordEmbeddings)
      info.parameters.back().aliases.push_back("proj_out.weight");
    write.embedding(path + ".embed_positions", config.maxPositions, hidden,
                    normal);
    info.modules.back().className = "WhisperPositionalEmbedding";
    info.module(path + ".layers", "ModuleList");
    for (int64_t i = 0; i < config.decoder.layers; ++i) {
      const std::string at = path + ".layers." + std::to_string(i);
      info.module(at, "WhisperDecoderLayer");
      attentionParts(at, "self_attn");
      info.module(at + ".activation_fn", moduleClass(config.activation));
      write.norm(at + ".self_attn_layer_norm", hidden);
      attention(at, "encoder_attn");
      feedForward(at, config.decoder.intermediateSize);
    }
    write.norm(path + ".layer_norm", hidden);
  }

  void convolution(const std::string &fqn, int64_t in) {
    info.module(fqn, "Conv1d");
    info.parameter(fqn + ".weight", {config.hiddenSize, in, 3}, normal);
    info.parameter(fqn + ".bias", {config.hiddenSize}, zerosInit());
  }

  void attentionParts(const std::string &path, const std::string &name) {
    const int64_t hidden = config.hiddenSize;
    const std::string fqn = path + "." + name;
    info.module(fqn, "WhisperAttention");
    write.linear(fqn + ".k_proj", hidden, hidden, normal, /*bias=*/false);
    for (const char *part : {".v_proj", ".q_proj", ".out_proj"})
      write.linear(fqn + part, hidden, hidden, normal);
  }
  void attention(const std::string &path, const std::string &name) {
    attentionParts(path, name);
    write.norm(path + "." + name + "_layer_norm", config.hiddenSize);
  }

  void feedForward(const std::string &path, int64_t inner) {
    write.linear(path + ".fc1", config.hiddenSize, inner, normal);
    write.linear(path + ".fc2", inner, config.hiddenSize, normal);
    write.norm(path + ".final_layer_norm", config.hiddenSize);
  }

  const WhisperConfig &config;
  ModelInfo info;
  ModuleWriter write;
  plan::Initializer normal;
};

} // namespace

std::optional<WhisperConfig>
accel::huggingface::readWhisper(ConfigReader &json) {
  return WhisperReader(json).read();
}

ModelInfo accel::huggingface::describeModel(const WhisperConfig &config) {
  return WhisperModules(config).run();
}
