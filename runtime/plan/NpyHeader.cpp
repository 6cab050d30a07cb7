//===- NpyHeader.cpp - What a NumPy array file says of itself -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/NpyHeader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

namespace accel::plan {

namespace {
/// Format 2 allows 4 GB; NumPy itself reads no header above 10,000 bytes.
constexpr size_t mostBytes = 65536;

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
} // namespace

std::optional<NpyHeader> parseNpyHeader(std::string_view bytes,
                                        std::string &error) {
  auto fail = [&](const std::string &why) -> std::optional<NpyHeader> {
    error = why;
    return std::nullopt;
  };
  if (bytes.size() < 12 || bytes.substr(0, 6) != "\x93NUMPY")
    return fail("not a .npy file");
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3)
    return fail(".npy format " + std::to_string(version) + " is not known");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, version == 1 ? 2 : 4);
  const size_t start = version == 1 ? 10 : 12;
  if (start + length > bytes.size())
    return fail("the header is truncated");
  const std::string_view header = bytes.substr(start, length);
  NpyHeader result;
  result.offset = int64_t(start + length);
  std::string_view descr = valueOf(header, "descr");
  if (descr.empty() || (descr[0] != '\'' && descr[0] != '"'))
    return fail("only arrays of numbers can be read");
  descr.remove_prefix(1);
  result.descr = descr.substr(0, descr.find_first_of("'\""));
  if (valueOf(header, "fortran_order").substr(0, 5) != "False")
    return fail("is in Fortran order; save it in C order");
  std::string_view shape = valueOf(header, "shape");
  if (shape.empty() || shape[0] != '(')
    return fail("the header has no shape");
  result.count = 1;
  for (size_t i = 1; i < shape.size() && shape[i] != ')';) {
    if (shape[i] == ' ' || shape[i] == ',') {
      ++i;
      continue;
    }
    int64_t extent = -1;
    auto [end, code] =
        std::from_chars(shape.data() + i, shape.data() + shape.size(), extent);
    if (code != std::errc() || extent < 0 ||
        __builtin_mul_overflow(result.count, extent, &result.count))
      return fail("the header's shape cannot be read");
    result.shape.push_back(extent);
    i = size_t(end - shape.data());
  }
  return result;
}

std::optional<NpyHeader> readNpyHeader(const std::string &path,
                                       std::string &error) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(mostBytes, '\0');
  in.read(bytes.data(), std::streamsize(bytes.size()));
  bytes.resize(size_t(std::max<std::streamsize>(in.gcount(), 0)));
  return parseNpyHeader(bytes, error);
}

} // namespace accel::plan
