//===- Safetensors.cpp - Headers of safetensors files ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Safetensors.h"

#include "frontends/ConfigJson/JsonDocument.h"
#include "frontends/Diagnostics/InputFiles.h"
#include "runtime/plan/JsonParse.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace accel;
using namespace accel::huggingface;

namespace {

/// The format's own limit.
constexpr uint64_t maxHeaderBytes = 100'000'000;
constexpr size_t maxRank = 64;

struct StoredType {
  const char *name;
  int bits;
};
constexpr StoredType storedTypes[] = {
    {"F64", 64},        {"F32", 32},       {"F16", 16},    {"BF16", 16},
    {"I64", 64},        {"U64", 64},       {"I32", 32},    {"U32", 32},
    {"I16", 16},        {"U16", 16},       {"I8", 8},      {"U8", 8},
    {"BOOL", 8},        {"F8_E4M3", 8},    {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F6_E2M3", 6},     {"F6_E3M2", 6},    {"F4", 4},      {"C64", 64},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};

int bitsOf(const std::string &dtype) {
  for (const StoredType &type : storedTypes)
    if (dtype == type.name)
      return type.bits;
  return 0;
}

/// A count in JSON; false for anything but an integer in [0, 2^63).
bool takeCount(const nlohmann::json &value, uint64_t &count) {
  if (!value.is_number_unsigned())
    return false;
  count = value.get<uint64_t>();
  return count <= uint64_t(INT64_MAX);
}

class HeaderParser {
public:
  HeaderParser(uint64_t fileSize, const std::string &path,
               DiagnosticEngine &diagnostics)
      : fileSize(fileSize), path(path), diagnostics(diagnostics) {}

  std::optional<SafetensorsFile> run(std::string_view head) {
    uint64_t length;
    if (!headerLength(head, length))
      return std::nullopt;
    nlohmann::json header;
    try {
      header = plan::parseJson(head.substr(8, length));
    } catch (const plan::JsonSyntaxError &problem) {
      fail("the header is not valid JSON: " + problem.message);
      return std::nullopt;
    }
    if (!header.is_object()) {
      fail("the header is not a JSON object");
      return std::nullopt;
    }
    dataBegin = 8 + length;
    SafetensorsFile file;
    file.path = path;
    for (const auto &[name, entry] : header.items()) {
      if (name == "__metadata__") {
        if (!takeMetadata(entry))
          return std::nullopt;
        for (const auto &[key, value] : entry.items())
          file.metadata.emplace(key, value.get<std::string>());
        continue;
      }
      StoredTensor tensor;
      tensor.name = name;
      if (!takeTensor(entry, tensor))
        return std::nullopt;
      file.tensors.push_back(std::move(tensor));
    }
    if (!checkCover(file.tensors))
      return std::nullopt;
    return file;
  }

  /// Reads and checks the first 8 bytes.
  bool headerLength(std::string_view head, uint64_t &length) {
    if (fileSize < 8 || head.size() < 8)
      return fail("the file is too short for a safetensors header");
    length = 0;
    for (int i = 7; i >= 0; --i)
      length = length << 8 | (unsigned char)head[i];
    if (length > maxHeaderBytes)
      return fail("the header length " + std::to_string(length) +
                  " exceeds the format's limit of 100000000 bytes; this is "
                  "not a safetensors file");
    if (length > fileSize - 8)
      return fail("the header of " + std::to_string(length) +
                  " bytes does not fit into the file of " +
                  std::to_string(fileSize) + " bytes; the file is truncated");
    return true;
  }

  bool fail(const std::string &message) {
    diagnostics.error("invalid-safetensors", path, message);
    return false;
  }

private:
  /// The format has a map of strings there, or nothing.
  bool takeMetadata(const nlohmann::json &entry) {
    bool good = entry.is_object();
    for (const nlohmann::json &value : entry)
      good &= value.is_string();
    return good || fail("'__metadata__' is not a map of strings");
  }

  bool failTensor(const StoredTensor &tensor, const std::string &message) {
    return fail("tensor '" + printable(tensor.name) + "': " + message);
  }

  bool takeTensor(const nlohmann::json &entry, StoredTensor &tensor) {
    if (!entry.is_object())
      return failTensor(tensor, "its entry is not an object");
    auto dtype = entry.find("dtype");
    if (dtype == entry.end() || !dtype->is_string())
      return failTensor(tensor, "'dtype' is missing or not a string");
    tensor.dtype = dtype->get<std::string>();
    uint64_t bits = uint64_t(bitsOf(tensor.dtype));
    if (!bits)
      return failTensor(tensor,
                        "unknown dtype '" + printable(tensor.dtype) + "'");
    auto shape = entry.find("shape");
    if (shape == entry.end() || !shape->is_array())
      return failTensor(tensor, "'shape' is missing or not a list");
    if (shape->size() > maxRank)
      return failTensor(tensor, "'shape' has more than " +
                                    std::to_string(maxRank) + " dimensions");
    uint64_t total = bits;
    bool overflow = false, empty = false;
    for (const nlohmann::json &value : *shape) {
      uint64_t size;
      if (!takeCount(value, size))
        return failTensor(tensor, "'shape' holds something that is not a size");
      tensor.shape.push_back(int64_t(size));
      empty |= size == 0;
      overflow |= !empty && __builtin_mul_overflow(total, size, &total);
    }
    if (empty)
      total = 0;
    else if (overflow)
      return failTensor(tensor, "its size overflows");
    if (total % 8)
      return failTensor(tensor, "its size is not a whole number of bytes");
    return takeOffsets(entry, total / 8, tensor);
  }

  bool takeOffsets(const nlohmann::json &entry, uint64_t bytes,
                   StoredTensor &tensor) {
    auto offsets = entry.find("data_offsets");
    if (offsets == entry.end() || !offsets->is_array() ||
        offsets->size() != 2 || !takeCount((*offsets)[0], tensor.begin) ||
        !takeCount((*offsets)[1], tensor.end))
      return failTensor(tensor, "'data_offsets' must be two offsets");
    uint64_t dataBytes = fileSize - dataBegin;
    if (tensor.begin > tensor.end)
      return failTensor(tensor, "'data_offsets' end before they begin");
    if (tensor.end > dataBytes)
      return failTensor(
          tensor, "its data ends at byte " + std::to_string(tensor.end) +
                      " of the data, but the file has " +
                      std::to_string(dataBytes) + "; the file is truncated");
    if (tensor.end - tensor.begin != bytes)
      return failTensor(tensor, "its shape and dtype need " +
                                    std::to_string(bytes) +
                                    " bytes, but 'data_offsets' hold " +
                                    std::to_string(tensor.end - tensor.begin));
    tensor.begin += dataBegin;
    tensor.end += dataBegin;
    return true;
  }

  /// The tensors must cover the data exactly; sorts them by position.
  bool checkCover(std::vector<StoredTensor> &tensors) {
    std::sort(tensors.begin(), tensors.end(),
              [](const StoredTensor &a, const StoredTensor &b) {
                return std::tie(a.begin, a.end, a.name) <
                       std::tie(b.begin, b.end, b.name);
              });
    uint64_t at = dataBegin;
    const StoredTensor *previous = nullptr;
    for (const StoredTensor &tensor : tensors) {
      if (tensor.begin < at)
        return failTensor(tensor, "its data overlaps that of '" +
                                      printable(previous->name) + "'");
      if (tensor.begin > at)
        return failTensor(tensor, std::to_string(tensor.begin - at) +
                                      " bytes before its data belong to no "
                                      "tensor");
      at = tensor.end;
      previous = &tensor;
    }
    if (at != fileSize)
      return fail(std::to_string(fileSize - at) +
                  " bytes at the end belong to no tensor");
    return true;
  }

  uint64_t fileSize, dataBegin = 0;
  const std::string &path;
  DiagnosticEngine &diagnostics;
};

/// A file descriptor that closes itself.
struct OpenFile {
  int descriptor;
  explicit OpenFile(const std::string &path)
      : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  /// Appends bytes [text.size(), size) of the file; false on an error.
  bool fill(std::string &text, size_t size) {
    size_t done = text.size();
    text.resize(size);
    while (done < size) {
      ssize_t n =
          ::pread(descriptor, text.data() + done, size - done, off_t(done));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return false;
      done += size_t(n);
    }
    return true;
  }
};

} // namespace

std::optional<SafetensorsFile> accel::huggingface::parseSafetensorsHeader(
    std::string_view head, uint64_t fileSize, const std::string &path,
    DiagnosticEngine &diagnostics) {
  HeaderParser parser(fileSize, path, diagnostics);
  uint64_t length;
  if (!parser.headerLength(head, length))
    return std::nullopt;
  if (head.size() < 8 + length) {
    parser.fail("the header cannot be read");
    return std::nullopt;
  }
  return parser.run(head);
}

std::optional<SafetensorsFile>
accel::huggingface::readSafetensorsHeader(const std::string &path,
                                          DiagnosticEngine &diagnostics) {
  OpenFile file(path);
  struct stat status;
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0) {
    reportFile(path, errno, diagnostics);
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    reportFile(path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL, diagnostics);
    return std::nullopt;
  }
  noteInputFile(path);
  uint64_t size = uint64_t(status.st_size), length;
  HeaderParser parser(size, path, diagnostics);
  std::string head;
  if (size >= 8 && !file.fill(head, 8)) {
    parser.fail("the file cannot be read");
    return std::nullopt;
  }
  if (!parser.headerLength(head, length))
    return std::nullopt;
  if (!file.fill(head, size_t(8 + length))) {
    parser.fail("the file cannot be read");
    return std::nullopt;
  }
  return parser.run(head);
}
