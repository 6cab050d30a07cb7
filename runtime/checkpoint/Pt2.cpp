//===- Pt2.cpp - Tensors inside a .pt2 archive ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pt2.h"

#include "runtime/plan/ExportDType.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <optional>

namespace accel::run {

namespace {

constexpr int64_t maxDirectory = int64_t(1) << 30;
constexpr int64_t maxConfig = int64_t(1) << 28;

[[noreturn]] void fail(const File &file, const std::string &why) {
  throw FileError(file.path() + ": " + why);
}

/// Little-endian numbers of a piece of the file.
class Bytes {
public:
  Bytes(const File &file, int64_t begin, int64_t size) : file(file) {
    if (begin < 0 || size < 0 || begin > file.size() ||
        size > file.size() - begin)
      fail(file, "is a damaged or truncated zip archive");
    data.resize(size);
    file.readAt(begin, data.data(), size);
  }
  uint64_t number(int64_t at, int bytes) const {
    if (at < 0 || at + bytes > int64_t(data.size()))
      fail(file, "is a damaged zip archive");
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= uint64_t(static_cast<unsigned char>(data[at + i])) << (8 * i);
    return value;
  }
  std::string text(int64_t at, int64_t size) const {
    if (at < 0 || at + size > int64_t(data.size()))
      fail(file, "is a damaged zip archive");
    return data.substr(at, size);
  }
  int64_t size() const { return int64_t(data.size()); }
  const std::string &all() const { return data; }

private:
  const File &file;
  std::string data;
};

struct Entry {
  int64_t header = 0, bytes = 0; // the local header's place; the data's size
  bool stored = false;
};

/// The zip's directory (APPNOTE.TXT 4.3.12 to 4.3.16), with 64-bit fields.
class Directory {
public:
  explicit Directory(const File &file) : file(file) {
    const int64_t tail = std::min<int64_t>(file.size(), 22 + 65535);
    Bytes end(file, file.size() - tail, tail);
    const size_t found = end.all().rfind("PK\5\6");
    if (found == std::string::npos || int64_t(found) + 22 > tail)
      fail(file, "is a truncated zip archive: its directory is missing");
    int64_t size = int64_t(end.number(found + 12, 4));
    int64_t begin = int64_t(end.number(found + 16, 4));
    const int64_t locator = file.size() - tail + int64_t(found) - 20;
    if (locator >= 0) {
      Bytes place(file, locator, 20);
      if (place.text(0, 4) == std::string("PK\6\7")) {
        Bytes large(file, int64_t(place.number(8, 8)), 56);
        size = int64_t(large.number(40, 8));
        begin = int64_t(large.number(48, 8));
      }
    }
    if (size < 0 || size > maxDirectory)
      fail(file, "is a damaged zip archive");
    read(Bytes(file, begin, size));
  }

  const std::map<std::string, Entry> &entries() const { return table; }

  /// The first byte of an entry's data.
  int64_t dataOf(const Entry &entry) const {
    Bytes local(file, entry.header, 30);
    if (local.text(0, 4) != std::string("PK\3\4"))
      fail(file, "is a damaged zip archive");
    const int64_t begin = entry.header + 30 + int64_t(local.number(26, 2)) +
                          int64_t(local.number(28, 2));
    if (begin > file.size() || entry.bytes > file.size() - begin)
      fail(file, "is a truncated zip archive");
    return begin;
  }

private:
  void read(const Bytes &directory) {
    for (int64_t at = 0; at + 46 <= directory.size();) {
      if (directory.text(at, 4) != std::string("PK\1\2"))
        break;
      Entry entry;
      entry.stored = directory.number(at + 10, 2) == 0;
      uint64_t packed = directory.number(at + 20, 4);
      uint64_t bytes = directory.number(at + 24, 4);
      uint64_t header = directory.number(at + 42, 4);
      const int64_t name = int64_t(directory.number(at + 28, 2));
      const int64_t extra = int64_t(directory.number(at + 30, 2));
      const int64_t comment = int64_t(directory.number(at + 32, 2));
      // 64-bit values stand in the extra field with the number 1.
      for (int64_t e = at + 46 + name; e + 4 <= at + 46 + name + extra;) {
        const int64_t length = int64_t(directory.number(e + 2, 2));
        if (directory.number(e, 2) == 1) {
          int64_t from = e + 4;
          for (uint64_t *value : {&bytes, &packed, &header})
            if (*value == 0xFFFFFFFFu) {
              *value = directory.number(from, 8);
              from += 8;
            }
        }
        e += 4 + length;
      }
      if (bytes > uint64_t(INT64_MAX) || header > uint64_t(INT64_MAX))
        fail(file, "is a damaged zip archive");
      entry.bytes = int64_t(bytes);
      entry.header = int64_t(header);
      std::string path = directory.text(at + 46, name);
      if (size_t slash = path.find('/'); slash != std::string::npos)
        table[path.substr(slash + 1)] = entry;
      at += 46 + name + extra + comment;
    }
  }

  const File &file;
  std::map<std::string, Entry> table; // without the archive's own folder
};

} // namespace

bool isZip(const File &file) {
  char begin[4] = {};
  if (file.size() < 4)
    return false;
  file.readAt(0, begin, 4);
  return std::memcmp(begin, "PK\3\4", 4) == 0;
}

std::vector<StoredTensor> readPt2(const File &file) {
  Directory directory(file);
  std::vector<StoredTensor> result;
  for (const auto &[name, config] : directory.entries()) {
    std::string folder;
    for (const char *prefix : {"data/weights/", "data/constants/"})
      if (name.rfind(prefix, 0) == 0 && name.size() > 12 &&
          name.compare(name.size() - 12, 12, "_config.json") == 0)
        folder = prefix;
    if (folder.empty())
      continue;
    if (!config.stored || config.bytes > maxConfig)
      fail(file, "entry '" + name + "' is compressed or too large");
    Bytes text(file, directory.dataOf(config), config.bytes);
    try {
      nlohmann::json json = nlohmann::json::parse(text.all());
      for (auto &[fqn, payload] : json.at("config").items()) {
        if (payload.at("use_pickle").get<bool>())
          continue;
        const auto &meta = payload.at("tensor_meta");
        StoredTensor tensor;
        tensor.name = fqn;
        auto dtype = plan::dtypeOfExport(meta.at("dtype").get<int64_t>());
        if (!dtype || meta.at("device").at("type") == "meta")
          continue;
        tensor.dtype = *dtype;
        for (const auto &size : meta.at("sizes"))
          tensor.shape.push_back(size.at("as_int").get<int64_t>());
        int64_t bytes = plan::itemSize(*dtype);
        bool rowMajor = true;
        for (size_t i = tensor.shape.size(); i-- > 0;) {
          const int64_t stride =
              meta.at("strides").at(i).at("as_int").get<int64_t>();
          rowMajor &=
              tensor.shape[i] == 1 || stride == bytes / plan::itemSize(*dtype);
          if (tensor.shape[i] < 0 ||
              __builtin_mul_overflow(bytes, tensor.shape[i], &bytes))
            fail(file, "tensor '" + fqn + "' has an impossible shape");
        }
        auto found = directory.entries().find(
            folder + payload.at("path_name").get<std::string>());
        if (found == directory.entries().end() || !found->second.stored ||
            !rowMajor)
          continue;
        // An entry is the whole storage; a part of it begins at its offset.
        const int64_t skip =
            meta.at("storage_offset").at("as_int").get<int64_t>() *
            plan::itemSize(*dtype);
        if (skip < 0 || bytes > found->second.bytes ||
            skip > found->second.bytes - bytes) {
          if (found->second.bytes == 0)
            continue; // exported without values
          fail(file, "tensor '" + fqn + "' needs " + std::to_string(bytes) +
                         " bytes, and its entry has " +
                         std::to_string(found->second.bytes));
        }
        tensor.offset = directory.dataOf(found->second) + skip;
        result.push_back(std::move(tensor));
      }
    } catch (const nlohmann::json::exception &error) {
      fail(file, "entry '" + name + "' cannot be read: " + error.what());
    }
  }
  return result;
}

std::vector<StoredTensor> readTensors(const File &file) {
  return isZip(file) ? readPt2(file) : readHeader(file).tensors;
}

} // namespace accel::run
