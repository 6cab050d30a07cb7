//===- Npy.cpp - NumPy array files ----------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Npy.h"

#include <charconv>
#include <cstring>

namespace accel::run {

namespace {

/// The text after `'key':` in the header's dictionary, without spaces.
std::string_view valueOf(std::string_view header, const std::string &key) {
  size_t at = header.find("'" + key + "'");
  if (at == std::string_view::npos)
    return {};
  at = header.find(':', at);
  if (at == std::string_view::npos)
    return {};
  at = header.find_first_not_of(" ", at + 1);
  return at == std::string_view::npos ? std::string_view() : header.substr(at);
}

std::optional<TokenType> typeOf(std::string_view descr) {
  if (descr.size() < 5 || (descr[0] != '\'' && descr[0] != '"'))
    return std::nullopt;
  const char order = descr[1], kind = descr[2], size = descr[3];
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
  if (size < 12 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return fail("not a .npy file");
  const int version = static_cast<unsigned char>(data[6]);
  if (version < 1 || version > 3)
    return fail(".npy format " + std::to_string(version) + " is not known");
  uint32_t length = 0;
  std::memcpy(&length, data + 8, version == 1 ? 2 : 4);
  const int64_t start = version == 1 ? 10 : 12;
  if (start + static_cast<int64_t>(length) > size)
    return fail("the header is truncated");
  const std::string_view header(data + start, length);
  file.offset = start + length;

  auto type = typeOf(valueOf(header, "descr"));
  if (!type)
    return fail("only little-endian numbers can be read, not dtype " +
                std::string(valueOf(header, "descr").substr(0, 6)));
  file.type = *type;
  if (valueOf(header, "fortran_order").substr(0, 5) != "False")
    return fail("is in Fortran order; save it in C order");
  std::string_view shape = valueOf(header, "shape");
  if (shape.empty() || shape[0] != '(')
    return fail("the header has no shape");
  file.count = 1;
  for (size_t i = 1; i < shape.size() && shape[i] != ')';) {
    if (shape[i] == ' ' || shape[i] == ',') {
      ++i;
      continue;
    }
    int64_t extent = -1;
    auto [end, code] =
        std::from_chars(shape.data() + i, shape.data() + shape.size(), extent);
    if (code != std::errc() || extent < 0 ||
        __builtin_mul_overflow(file.count, extent, &file.count))
      return fail("the header's shape cannot be read");
    file.shape.push_back(extent);
    i = end - shape.data();
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(file.count, sizeOf(file.type), &bytes) ||
      bytes > size - file.offset)
    return fail("is truncated: the header promises " +
                std::to_string(file.count) + " elements");
  return true;
}

} // namespace accel::run
