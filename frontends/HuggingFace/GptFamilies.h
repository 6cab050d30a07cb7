//===- GptFamilies.h - Decoders with names of their own ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_GPTFAMILIES_H
#define ACCEL_FRONTENDS_HUGGINGFACE_GPTFAMILIES_H

#include "frontends/HuggingFace/ExpertFamilies.h"

namespace accel::huggingface {

/// Families that do not name their modules as Llama does: from modeling_*.py of
/// transformers 5.23.
struct GptFamilyReader : ExpertFamilyReader {
  void falcon();
  void gptBigcode();
  void gptNeox();
  void mpt();
  void opt();

private:
  void jointAttention(DecoderAttention::Layout layout, const char *path,
                      const char *joint, const char *output);
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_GPTFAMILIES_H
