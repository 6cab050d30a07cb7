//===- TokenFiles.cpp - What files of tokens say of themselves ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/TokenFiles.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "runtime/plan/NpyHeader.h"

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

using namespace accel;

namespace {

constexpr const char *positions = "positions of documents";
/// Positions that are looked at before the job starts.
constexpr int64_t mostPositions = int64_t(1) << 20;

/// Bytes of an integer of a .npy file ("<i4"); 0: none that can be read.
int64_t elementBytes(const std::string &type) {
  const std::string size = type.size() == 3 ? type.substr(2) : "";
  return size == "1" || size == "2" || size == "4" || size == "8"
             ? std::stoll(size)
             : 0;
}

std::string listProblem(const std::string &path, const plan::NpyHeader &header,
                        const char *what) {
  const std::string file = "'" + printablePath(path) + "'";
  if (header.shape.size() != 1)
    return std::string(what) + " are a 1-d array, and " + file + " has " +
           std::to_string(header.shape.size()) + " dimensions";
  const std::string &type = header.descr;
  if (type.size() < 2 || (type[1] != 'i' && type[1] != 'u'))
    return std::string("only integers can be ") + what + ", and " + file +
           " has " + type;
  if (type[0] == '>')
    return "only little-endian integers can be read, and " + file + " has " +
           type;
  const int64_t size = elementBytes(type);
  if (size == 0)
    return "integers have 1, 2, 4 or 8 bytes, and " + file + " has " + type;
  std::error_code failed;
  const uintmax_t bytes = std::filesystem::file_size(path, failed);
  int64_t needed = 0;
  if (!failed && (__builtin_mul_overflow(header.count, size, &needed) ||
                  __builtin_add_overflow(needed, header.offset, &needed) ||
                  bytes < uintmax_t(needed)))
    return file + " is truncated: its header promises " +
           std::to_string(header.count) + " elements";
  return "";
}

/// An element that is not above the one before; the first has none.
struct Unordered {
  size_t at;
  std::string value, before;
};

/// The first element that is below 0 or not above the one before.
template <typename T>
std::optional<Unordered> unordered(std::ifstream &in, int64_t count) {
  std::vector<T> read(count);
  in.read(reinterpret_cast<char *>(read.data()),
          std::streamsize(count * sizeof(T)));
  if (!in)
    return std::nullopt; // accel-run says it
  for (size_t i = 0; i < read.size(); ++i)
    if (std::cmp_less(read[i], 0) || (i > 0 && read[i] <= read[i - 1]))
      return Unordered{i, std::to_string(read[i]),
                       i > 0 ? std::to_string(read[i - 1]) : ""};
  return std::nullopt;
}

std::optional<Unordered> unorderedOf(const std::string &path,
                                     const plan::NpyHeader &header) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(header.offset);
  const bool isSigned = header.descr[1] == 'i';
  const int64_t count = header.count;
  switch (elementBytes(header.descr)) {
  case 1:
    return isSigned ? unordered<int8_t>(in, count)
                    : unordered<uint8_t>(in, count);
  case 2:
    return isSigned ? unordered<int16_t>(in, count)
                    : unordered<uint16_t>(in, count);
  case 4:
    return isSigned ? unordered<int32_t>(in, count)
                    : unordered<uint32_t>(in, count);
  default:
    return isSigned ? unordered<int64_t>(in, count)
                    : unordered<uint64_t>(in, count);
  }
}

} // namespace

int64_t accel::tokenBytes(const DataConfig &data) {
  const std::string &dtype = data.dtype.value;
  switch (data.kind.value) {
  case DataKind::Tokens:
    return dtype == "uint16" ? 2 : dtype == "int64" ? 8 : 4;
  case DataKind::Text:
    return 1;
  default:
    return 0;
  }
}

std::optional<int64_t> accel::tokensIn(const std::string &path,
                                       const DataConfig &data) {
  if (const int64_t bytes = tokenBytes(data)) {
    std::error_code failed;
    const uintmax_t size = std::filesystem::file_size(path, failed);
    if (failed)
      return std::nullopt;
    return int64_t(size) / bytes;
  }
  std::string why; // accel-run says it
  const auto header = plan::readNpyHeader(path, why);
  if (data.kind.value != DataKind::Npy || !header)
    return std::nullopt;
  return header->count;
}

std::string accel::tooFewTokens(const std::string &path, int64_t tokens,
                                int64_t length) {
  if (tokens > length)
    return "";
  return "'" + printablePath(path) + "' has " + std::to_string(tokens) +
         " tokens; one sample takes sequence_length + 1 = " +
         std::to_string(length + 1);
}

std::string accel::listProblem(const std::string &path, const char *what) {
  std::string why; // accel-run says it
  noteInputFile(path);
  const auto header = plan::readNpyHeader(path, why);
  return header ? ::listProblem(path, *header, what) : "";
}

std::string accel::startsProblem(const std::string &path) {
  std::string why;
  noteInputFile(path);
  const auto header = plan::readNpyHeader(path, why);
  if (!header)
    return "";
  if (std::string problem = ::listProblem(path, *header, positions);
      !problem.empty())
    return problem;
  if (header->count > mostPositions)
    return "";
  const std::optional<Unordered> found = unorderedOf(path, *header);
  if (!found)
    return "";
  return std::string(positions) + " are at least 0 and ascend, and element " +
         std::to_string(found->at) + " of '" + printablePath(path) + "' is " +
         found->value +
         (found->before.empty() ? "" : " after " + found->before);
}
