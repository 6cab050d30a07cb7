//===- Positions.cpp - Sizes that every family has ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Positions.h"

using namespace accel;
using namespace accel::huggingface;

static int64_t tableRows(const LlamaConfig &) { return 0; }
static int64_t tableRows(const DecoderConfig &c) {
  bool table =
      !c.decoder.positions.empty() || c.decoder.alibi == Decoder::Alibi::Mpt;
  return table ? c.maxPositions : 0;
}
static int64_t tableRows(const Gpt2Config &c) {
  return c.learnedPositions ? c.maxPositions : 0;
}
static int64_t tableRows(const BertConfig &c) { return c.maxPositions; }
static int64_t tableRows(const VitConfig &) { return 0; }
static int64_t tableRows(const T5Config &) { return 0; }
static int64_t tableRows(const WhisperConfig &c) { return c.maxPositions; }

int64_t accel::huggingface::positionRows(const ModelConfig &config) {
  return std::visit([](const auto &c) { return tableRows(c); }, config.family);
}

static int64_t widthOf(const DecoderConfig &c) { return c.decoder.hiddenSize; }
template <typename Config> static int64_t widthOf(const Config &c) {
  return c.hiddenSize;
}
int64_t accel::huggingface::hiddenSize(const ModelConfig &config) {
  return std::visit([](const auto &c) { return widthOf(c); }, config.family);
}
