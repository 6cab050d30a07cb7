//===- Pt2.cpp - Tensors inside a .pt2 archive ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pt2.h"

#include "runtime/plan/ExportDType.h"

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>

namespace accel::run {

namespace {

constexpr int64_t maxConfig = int64_t(1) << 28;

[[noreturn]] void fail(const File &file, const std::string &why) {
  throw FileError(file.path() + ": " + why);
}

/// Our file for torch's reader. No exception may pass through its C code, so
/// one is kept, and thrown when torch is back.
class FileAdapter : public caffe2::serialize::ReadAdapterInterface {
public:
  explicit FileAdapter(const File &file) : file(file) {}

  size_t size() const override { return static_cast<size_t>(file.size()); }
  size_t read(uint64_t at, void *into, size_t bytes,
              const char *) const override {
    const size_t end = size();
    if (at >= end)
      return 0;
    bytes = std::min<size_t>(bytes, end - at);
    try {
      file.readAt(static_cast<int64_t>(at), into, static_cast<int64_t>(bytes));
    } catch (...) {
      thrown = std::current_exception();
      return 0;
    }
    return bytes;
  }
  void rethrow() const {
    if (thrown)
      std::rethrow_exception(thrown);
  }

private:
  const File &file;
  mutable std::exception_ptr thrown;
};

/// A zip as torch reads it: names are without the archive's own folder.
class Archive {
public:
  explicit Archive(const File &file)
      : file(file), source(std::make_shared<FileAdapter>(file)) {
    guarded([&] {
      reader = std::make_unique<caffe2::serialize::PyTorchStreamReader>(source);
    });
  }

  std::vector<std::string> names() {
    return guarded([&] { return reader->getAllRecords(); });
  }
  bool has(const std::string &name) {
    return guarded([&] { return reader->hasRecord(name); });
  }
  int64_t bytes(const std::string &name) {
    const size_t size = guarded([&] { return reader->getRecordSize(name); });
    return static_cast<int64_t>(std::min<size_t>(size, INT64_MAX));
  }
  /// Entries that are not compressed are a stretch of the file.
  bool isStored(const std::string &name) {
    const auto header = static_cast<int64_t>(
        guarded([&] { return reader->getRecordHeaderOffset(name); }));
    unsigned char method[2] = {};
    if (header < 0 || header > file.size() - 10)
      fail(file, "is a damaged zip archive");
    file.readAt(header + 8, method, 2); // APPNOTE.TXT 4.3.7
    return !method[0] && !method[1];
  }
  /// The first byte of a stored entry's data.
  int64_t offset(const std::string &name) {
    const auto begin = static_cast<int64_t>(
        guarded([&] { return reader->getRecordOffset(name); }));
    if (begin < 0 || begin > file.size() || bytes(name) > file.size() - begin)
      fail(file, "is a truncated zip archive");
    return begin;
  }
  std::string text(const std::string &name) {
    std::string text(static_cast<size_t>(bytes(name)), '\0');
    guarded([&] { return reader->getRecord(name, text.data(), text.size()); });
    return text;
  }

private:
  template <typename Ask> auto guarded(Ask ask) -> decltype(ask()) {
    try {
      return ask();
    } catch (const c10::Error &error) {
      source->rethrow();
      const std::string why = error.what_without_backtrace();
      fail(file, "is a damaged or truncated zip archive: " +
                     why.substr(0, why.find('\n')));
    }
  }

  const File &file;
  std::shared_ptr<FileAdapter> source;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader;
};

} // namespace

bool isZip(const File &file) {
  char begin[4] = {};
  if (file.size() < 4)
    return false;
  file.readAt(0, begin, 4);
  return std::memcmp(begin, "PK\3\4", 4) == 0;
}

std::vector<std::pair<std::string, std::string>> readExtra(const File &file) {
  constexpr std::string_view folder = "extra/";
  constexpr int64_t most = 64 << 20;
  Archive archive(file);
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string &entry : archive.names()) {
    if (!entry.starts_with(folder) || archive.bytes(entry) > most)
      continue;
    const std::string name = entry.substr(folder.size());
    if (!name.empty() && name[0] != '.' &&
        name.find('/') == std::string::npos && name != "accel-opt.json")
      result.emplace_back(name, archive.text(entry));
  }
  return result;
}

std::vector<StoredTensor> readPt2(const File &file) {
  Archive archive(file);
  std::vector<StoredTensor> result;
  for (const std::string &name : archive.names()) {
    std::string folder;
    for (const char *prefix : {"data/weights/", "data/constants/"})
      if (name.rfind(prefix, 0) == 0 && name.size() > 12 &&
          name.compare(name.size() - 12, 12, "_config.json") == 0)
        folder = prefix;
    if (folder.empty())
      continue;
    if (archive.bytes(name) > maxConfig)
      fail(file, "entry '" + name + "' is too large");
    try {
      nlohmann::json json = nlohmann::json::parse(archive.text(name));
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
        const std::string entry =
            folder + payload.at("path_name").get<std::string>();
        if (!rowMajor || !archive.has(entry) || !archive.isStored(entry))
          continue;
        const int64_t stored = archive.bytes(entry);
        // An entry is the whole storage; a part of it begins at its offset.
        const int64_t skip =
            meta.at("storage_offset").at("as_int").get<int64_t>() *
            plan::itemSize(*dtype);
        if (skip < 0 || bytes > stored || skip > stored - bytes) {
          if (stored == 0)
            continue; // exported without values
          fail(file, "tensor '" + fqn + "' needs " + std::to_string(bytes) +
                         " bytes, and its entry has " + std::to_string(stored));
        }
        tensor.offset = archive.offset(entry) + skip;
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
