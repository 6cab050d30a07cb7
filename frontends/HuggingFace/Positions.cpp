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

/// Rotary positions are relative, so that a document's scores do not depend on
/// where it stands, but for types whose frequencies depend on its length.
static std::string ropeProblem(const Rope &rope, int64_t sequence) {
  const bool dynamic =
      rope.kind == Rope::Kind::Dynamic && sequence > rope.maxPositions;
  const bool longer =
      rope.kind == Rope::Kind::LongRope && sequence > rope.originalMaxPositions;
  if (!dynamic && !longer)
    return "";
  return std::string(dynamic ? "dynamic" : "longrope") +
         " frequencies depend on the length of each document where sequences "
         "are longer than " +
         std::to_string(dynamic ? rope.maxPositions
                                : rope.originalMaxPositions) +
         " tokens";
}
static std::string problemOf(const LlamaConfig &c, int64_t sequence) {
  return ropeProblem(c.rope, sequence);
}
static std::string problemOf(const DecoderConfig &c, int64_t sequence) {
  if (c.decoder.alibi != Decoder::Alibi::None)
    return "ALiBi adds a number of each head to each score, which a mask of "
           "documents would hold for all heads";
  if (const auto &scaled = c.decoder.attention.byPosition;
      scaled && sequence > scaled->positions)
    return "queries are scaled by where they stand in their document where "
           "sequences are longer than " +
           std::to_string(scaled->positions) + " tokens";
  for (const Rope &rope : c.decoder.ropes)
    if (std::string problem = ropeProblem(rope, sequence); !problem.empty())
      return problem;
  return "";
}
static std::string problemOf(const Gpt2Config &, int64_t) { return ""; }
template <typename Config>
static std::string problemOf(const Config &, int64_t) {
  return "its samples are no streams of tokens";
}

std::string accel::huggingface::documentsProblem(const ModelConfig &config,
                                                 int64_t sequence) {
  return std::visit([&](const auto &c) { return problemOf(c, sequence); },
                    config.family);
}

static int64_t widthOf(const DecoderConfig &c) { return c.decoder.hiddenSize; }
template <typename Config> static int64_t widthOf(const Config &c) {
  return c.hiddenSize;
}
int64_t accel::huggingface::hiddenSize(const ModelConfig &config) {
  return std::visit([](const auto &c) { return widthOf(c); }, config.family);
}
