//===- Npy.cpp - NumPy array files ----------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Npy.h"

#include "runtime/plan/NpyHeader.h"

namespace accel::run {

namespace {

std::optional<TokenType> typeOf(std::string_view descr) {
  if (descr.size() != 3)
    return std::nullopt;
  const char order = descr[0], kind = descr[1], size = descr[2];
  const bool single = size == '1';
  if (order != '<' && order != '=' && !(order == '|' && single))
    return std::nullopt;
  if (kind == 'b' && single)
    return TokenType::U8;
  if (kind == 'f')
    return size == '2'   ? std::optional(TokenType::F16)
           : size == '4' ? std::optional(TokenType::F32)
           : size == '8' ? std::optional(TokenType::F64)
                         : std::nullopt;
  if (kind != 'u' && kind != 'i')
    return std::nullopt;
  if (size != '1' && size != '2' && size != '4' && size != '8')
    return std::nullopt;
  const std::string bits = single        ? "8"
                           : size == '2' ? "16"
                           : size == '4' ? "32"
                                         : "64";
  return parseTokenType((kind == 'u' ? "uint" : "int") + bits);
}

} // namespace

bool openNpy(const std::string &path, TokenFile &file, std::string &error) {
  file = TokenFile();
  file.path = path;
  file.file = MappedFile::open(path, error);
  if (!file.file)
    return false;
  const char *data = file.file->data;
  const int64_t size = file.file->size;
  auto fail = [&](const std::string &why) {
    error = path + ": " + why;
    return false;
  };
  std::string why;
  auto header = plan::parseNpyHeader(std::string_view(data, size_t(size)), why);
  if (!header)
    return fail(why);
  auto type = typeOf(header->descr);
  if (!type)
    return fail("only little-endian numbers can be read, not dtype '" +
                header->descr.substr(0, 6) + "'");
  file.type = *type;
  file.offset = header->offset;
  file.shape = header->shape;
  file.count = header->count;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(file.count, sizeOf(file.type), &bytes) ||
      bytes > size - file.offset)
    return fail("is truncated: the header promises " +
                std::to_string(file.count) + " elements");
  return true;
}

} // namespace accel::run
