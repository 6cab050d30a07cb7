//===- Vocabulary.h - Text of tokens ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_VOCABULARY_H
#define ACCEL_RUNTIME_DATA_VOCABULARY_H

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accel::run {

/// What the decoder of a tokenizer.json (Hugging Face's tokenizers) makes of
/// tokens. Encoding is not needed: data hold tokens.
class Vocabulary {
public:
  /// Nothing, with a sentence in `why`, where the file cannot be read or its
  /// decoder is another one than ByteLevel, Metaspace, or a sequence of Replace
  /// (of a text), ByteFallback, Fuse and Strip.
  static std::optional<Vocabulary> read(const std::string &path,
                                        std::string &why);
  /// Each token is a byte.
  static Vocabulary ofBytes();

  /// Without special tokens, in UTF-8: what is none is U+FFFD.
  std::string decode(const std::vector<int64_t> &ids) const;

private:
  std::string piece(const std::string &token) const;

  bool bytes = false;        // of `ofBytes`
  bool byteLevel = false;    // characters stand for bytes, as GPT-2's
  bool byteFallback = false; // <0x0A> is a byte
  std::vector<std::pair<std::string, std::string>> replaced;
  int64_t strippedSpaces = 0; // at the start of the text
  std::unordered_map<int64_t, std::string> tokens;
  std::unordered_map<int64_t, std::string> added; // as they are
  std::unordered_map<int64_t, bool> special;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_VOCABULARY_H
