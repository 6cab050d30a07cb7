//===- TokenPredictors.cpp - Layers that predict further tokens -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/TokenPredictors.h"

#include "frontends/HuggingFace/Decoder.h"

namespace accel::huggingface {

/// The layers that a predictor is like: the last one; of a hybrid model
/// attention and experts, the "*E" of Nemotron 3 (mtp_hybrid_override_pattern),
/// with weights of its own also where the recipe repeats one block.
static std::vector<size_t> copiedLayers(const Decoder &decoder) {
  const size_t last = decoder.kinds.size() - 1;
  if (decoder.kinds[last].blocks == DecoderLayerKind::Blocks::Both)
    return {last};
  auto find = [&](auto fits) {
    for (size_t i = last + 1; i-- > 0;)
      if (fits(decoder.kinds[i]))
        return i;
    return last + 1;
  };
  const std::vector<size_t> found = {
      find([](const DecoderLayerKind &kind) {
        return kind.blocks == DecoderLayerKind::Blocks::Attention;
      }),
      find([](const DecoderLayerKind &kind) { return kind.sparse; })};
  return found[0] > last || found[1] > last ? std::vector<size_t>() : found;
}

std::string addTokenPredictors(ModelConfig &model, int64_t count) {
  if (count <= 0)
    return "";
  auto *config = std::get_if<DecoderConfig>(&model.family);
  if (!config || config->decoder.norm == Decoder::Norm::Layer ||
      !config->decoder.projectOut.empty() || config->decoder.mixture.auxiliary)
    return "layers that predict further tokens (mtp_num_layers) stand behind "
           "those of DeepSeek-V3 and of decoders like it";
  Decoder &decoder = config->decoder;
  ModelInfo &info = config->info;
  const std::vector<size_t> copied = copiedLayers(decoder);
  if (copied.empty())
    return "layers that predict further tokens (mtp_num_layers) are attention "
           "and experts, of which the model lacks one";
  decoder.predictorLayers = static_cast<int64_t>(copied.size());
  const std::vector<ParameterInfo> parameters = info.parameters;
  const std::vector<BufferInfo> buffers = info.buffers;
  const int64_t hidden = decoder.hiddenSize;
  for (int64_t i = 0; i < count; ++i) {
    const std::string first =
        decoder.layers + "." + std::to_string(decoder.kinds.size());
    std::string layer;
    for (size_t original : copied) {
      const std::string from =
          decoder.layers + "." + std::to_string(original) + ".";
      layer = decoder.layers + "." + std::to_string(decoder.kinds.size());
      decoder.kinds.push_back(decoder.kinds[original]);
      auto renamed = [&](const std::string &fqn) {
        return layer + "." + fqn.substr(from.size());
      };
      for (const ParameterInfo &parameter : parameters)
        if (parameter.fqn.starts_with(from))
          info.parameter(renamed(parameter.fqn), parameter.shape,
                         parameter.init);
      for (const BufferInfo &buffer : buffers)
        if (buffer.fqn.starts_with(from))
          info.buffers.push_back({renamed(buffer.fqn), buffer.shape});
    }
    for (const std::string &norm :
         {first + ".enorm", first + ".hnorm", layer + ".shared_head.norm"})
      info.parameter(norm + ".weight", {hidden}, onesInit());
    info.parameter(first + ".eh_proj.weight", {hidden, 2 * hidden},
                   normalInit(0.02));
  }
  decoder.tokenPredictors += count;
  return "";
}

} // namespace accel::huggingface
