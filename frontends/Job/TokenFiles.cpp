//===- TokenFiles.cpp - What files of tokens say of themselves ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/TokenFiles.h"

#include "runtime/plan/NpyHeader.h"

#include <filesystem>
#include <fstream>
#include <vector>

using namespace accel;

namespace {

constexpr const char *positions = "positions of documents";
/// Positions that are looked at before the job starts.
constexpr int64_t mostPositions = int64_t(1) << 20;

std::string listProblem(const std::string &path, const plan::NpyHeader &header,
                        const char *what) {
  const std::string file = "'" + printablePath(path) + "'";
  if (header.shape.size() != 1)
    return std::string(what) + " are a 1-d array, and " + file + " has " +
           std::to_string(header.shape.size()) + " dimensions";
  if (header.descr.size() > 1 && header.descr[1] == 'f')
    return std::string("only integers can be ") + what + ", and " + file +
           " has " + header.descr;
  return "";
}

/// The elements as int64, or none where their type is not a little-endian
/// integer.
template <typename T>
std::vector<int64_t> elementsAs(std::ifstream &in, int64_t count) {
  std::vector<T> read(count);
  in.read(reinterpret_cast<char *>(read.data()),
          std::streamsize(count * sizeof(T)));
  return in ? std::vector<int64_t>(read.begin(), read.end())
            : std::vector<int64_t>();
}

std::vector<int64_t> elementsOf(const std::string &path,
                                const plan::NpyHeader &header) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(header.offset);
  const int64_t count = header.count;
  const std::string &type = header.descr;
  if (type == "<i8" || type == "<u8")
    return elementsAs<int64_t>(in, count);
  if (type == "<i4")
    return elementsAs<int32_t>(in, count);
  if (type == "<u4")
    return elementsAs<uint32_t>(in, count);
  if (type == "<i2")
    return elementsAs<int16_t>(in, count);
  if (type == "<u2")
    return elementsAs<uint16_t>(in, count);
  return {};
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
  const auto header = plan::readNpyHeader(path, why);
  return header ? ::listProblem(path, *header, what) : "";
}

std::string accel::startsProblem(const std::string &path) {
  std::string why;
  const auto header = plan::readNpyHeader(path, why);
  if (!header)
    return "";
  if (std::string problem = ::listProblem(path, *header, positions);
      !problem.empty())
    return problem;
  if (header->count > mostPositions)
    return "";
  const std::vector<int64_t> starts = elementsOf(path, *header);
  for (size_t i = 0; i < starts.size(); ++i)
    if (starts[i] < 0 || (i > 0 && starts[i] <= starts[i - 1]))
      return std::string(positions) +
             " are at least 0 and ascend, and element " + std::to_string(i) +
             " of '" + printablePath(path) + "' is " +
             std::to_string(starts[i]) +
             (i > 0 ? " after " + std::to_string(starts[i - 1]) : "");
  return "";
}
