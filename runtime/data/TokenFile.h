//===- TokenFile.h - Numbers in a mapped file -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_TOKENFILE_H
#define ACCEL_RUNTIME_DATA_TOKENFILE_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace accel::run {

enum class TokenType { U8, I8, U16, I16, U32, I32, U64, I64, F16, F32, F64 };
/// "uint16", ...; none for another text.
std::optional<TokenType> parseTokenType(const std::string &name);
int64_t sizeOf(TokenType type);
bool isFloat(TokenType type);

/// A read-only mapping of a whole file.
class MappedFile {
public:
  ~MappedFile();
  /// Null, with a sentence that starts with the path, on failure.
  static std::shared_ptr<MappedFile> open(const std::string &path,
                                          std::string &error);
  const char *data = nullptr;
  int64_t size = 0;
};

/// A flat array of numbers in a file.
struct TokenFile {
  std::string path;
  std::shared_ptr<MappedFile> file;
  int64_t offset = 0; // bytes, of the first element
  TokenType type = TokenType::U16;
  std::vector<int64_t> shape; // {count}, or as a .npy file says
  int64_t count = 0;

  /// Elements [begin, begin + length), which must be inside. Integers as they
  /// are, floating-point numbers as fp32 alone.
  void read(int64_t begin, int64_t length, int64_t *into) const;
  void readFloats(int64_t begin, int64_t length, float *into) const;
  /// Position of the first element of [begin, begin + length) that is outside
  /// of [low, high), or -1.
  int64_t findOutside(int64_t begin, int64_t length, int64_t low,
                      int64_t high) const;
};

/// A raw file of `type`; its size must be a whole number of elements.
bool openTokens(const std::string &path, TokenType type, TokenFile &file,
                std::string &error);

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_TOKENFILE_H
