//===- TokenPredictors.cpp - Layers that predict further tokens -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/TokenPredictors.h"

#include "frontends/HuggingFace/Decoder.h"

namespace accel::huggingface {

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
  const size_t last = decoder.kinds.size() - 1;
  const std::string from = decoder.layers + "." + std::to_string(last) + ".";
  const std::vector<ParameterInfo> parameters = info.parameters;
  const std::vector<BufferInfo> buffers = info.buffers;
  for (int64_t i = 0; i < count; ++i) {
    const std::string layer =
        decoder.layers + "." + std::to_string(decoder.kinds.size());
    decoder.kinds.push_back(decoder.kinds[last]);
    auto renamed = [&](const std::string &fqn) {
      return layer + "." + fqn.substr(from.size());
    };
    for (const ParameterInfo &parameter : parameters)
      if (parameter.fqn.starts_with(from))
        info.parameter(renamed(parameter.fqn), parameter.shape, parameter.init);
    for (const BufferInfo &buffer : buffers)
      if (buffer.fqn.starts_with(from))
        info.buffers.push_back({renamed(buffer.fqn), buffer.shape});
    const int64_t hidden = decoder.hiddenSize;
    for (const char *norm : {".enorm", ".hnorm", ".shared_head.norm"})
      info.parameter(layer + norm + ".weight", {hidden}, onesInit());
    info.parameter(layer + ".eh_proj.weight", {hidden, 2 * hidden},
                   normalInit(0.02));
  }
  decoder.tokenPredictors += count;
  return "";
}

} // namespace accel::huggingface
