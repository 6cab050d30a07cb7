//===- DcpWriter.cpp - Folders for torch.distributed.checkpoint -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/DcpWriter.h"
#include "frontends/Checkpoint/Merge.h"
#include "frontends/Checkpoint/OrderedReader.h"
#include "frontends/Checkpoint/PickleWriter.h"
#include "frontends/Checkpoint/TorchZip.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char *shardName = "__0_0.distcp";
constexpr const char *metadataModule = "torch.distributed.checkpoint.metadata";

std::string nameOf(const std::vector<DcpKey> &path) {
  std::string name;
  for (const DcpKey &key : path) {
    const auto *text = std::get_if<std::string>(&key);
    name += (name.empty() ? "" : ".") +
            (text ? *text : std::to_string(std::get<int64_t>(key)));
  }
  return name;
}

class DcpFolder {
public:
  DcpFolder(const std::vector<DcpItem> &items, const std::string &folder,
            int64_t folderBytes, const std::function<void(int64_t)> &done,
            DiagnosticEngine &diagnostics)
      : items(items), path((fs::path(folder) / shardName).string()), done(done),
        diagnostics(diagnostics), folderBytes(folderBytes),
        reader((fs::path(folder) / "scratch").string(), folderBytes,
               diagnostics),
        folder(folder), file(path, O_WRONLY | O_CREAT | O_EXCL) {}

  bool run() {
    if (!file.good())
      return failedToWrite(path);
    for (const DcpItem &item : items)
      if (!writeItem(item))
        return false;
    return reader.verify() && (file.sync() || failedToWrite(path)) &&
           writeSmallFile((fs::path(folder) / ".metadata").string(), metadata(),
                          folderBytes, diagnostics);
  }

private:
  bool failedToWrite(const std::string &where) {
    return reportUnwritten(where, folderBytes, diagnostics);
  }

  bool writeItem(const DcpItem &item) {
    const bool isTensor = item.tensor || item.number;
    const std::string pickle =
        item.tensor   ? pickleOfTensor(item.tensor->dtype, item.tensor->shape)
        : item.number ? pickleOfTensor("float32", {})
                      : item.pickle;
    const int64_t bytes = item.tensor ? item.tensor->bytes
                          : isTensor  ? int64_t(sizeof(float))
                                      : -1;
    const auto length =
        writeTorchZip(file, at, pickle, bytes, [&](const TakeBytes &take) {
          if (!item.tensor)
            return take(
                {reinterpret_cast<const char *>(&*item.number), sizeof(float)});
          return reader.read(*item.tensor, [&](std::string_view some) {
            written += int64_t(some.size());
            done(written);
            return take(some);
          });
        });
    if (!length)
      return !diagnostics.hasErrors() ? failedToWrite(path) : false;
    places.push_back({at, *length});
    at += *length;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // .metadata
  //===--------------------------------------------------------------------===//

  static void size(PickleWriter &out, const std::vector<int64_t> &sizes) {
    out.global("torch", "Size");
    out.integers(sizes);
    out.tupleOfOne();
    out.call();
  }

  /// Opens the state of an object of torch's metadata module.
  static void object(PickleWriter &out, const char *name) {
    out.global(metadataModule, name);
    out.object();
    out.emptyDict();
    out.mark();
  }
  static void endObject(PickleWriter &out) {
    out.items();
    out.state();
  }

  static const std::vector<int64_t> &shapeOf(const DcpItem &item) {
    static const std::vector<int64_t> number;
    return item.tensor ? item.tensor->shape : number;
  }

  static void properties(PickleWriter &out, const DcpItem &item) {
    out.global(metadataModule, "TensorProperties");
    out.object();
    out.mark();
    out.global("torch", item.tensor ? item.tensor->dtype : "float32");
    out.global("torch.serialization", "_get_layout");
    out.text("torch.strided");
    out.tupleOfOne();
    out.call();
    out.boolean(false); // requires_grad
    out.global(metadataModule, "_MEM_FORMAT_ENCODING");
    out.integer(0); // contiguous
    out.tupleOfOne();
    out.call();
    out.boolean(false); // pin_memory
    out.tuple();
    out.state();
  }

  static void tensorEntry(PickleWriter &out, const DcpItem &item) {
    object(out, "TensorStorageMetadata");
    out.text("properties");
    properties(out, item);
    out.text("size");
    size(out, shapeOf(item));
    out.text("chunks");
    out.emptyList();
    out.mark();
    object(out, "ChunkStorageMetadata");
    out.text("offsets");
    size(out, std::vector<int64_t>(shapeOf(item).size(), 0));
    out.text("sizes");
    size(out, shapeOf(item));
    endObject(out);
    out.appends();
    endObject(out);
  }

  void storageEntry(PickleWriter &out, const DcpItem &item, size_t index) {
    const bool isTensor = item.tensor || item.number;
    object(out, "MetadataIndex");
    out.text("fqn");
    out.text(nameOf(item.path));
    out.text("offset");
    if (isTensor)
      size(out, std::vector<int64_t>(shapeOf(item).size(), 0));
    else
      out.none();
    out.text("index");
    if (isTensor)
      out.integer(0);
    else
      out.none();
    endObject(out);
    out.global("torch.distributed.checkpoint.filesystem", "_StorageInfo");
    out.object();
    out.emptyDict();
    out.mark();
    out.text("relative_path");
    out.text(shardName);
    out.text("offset");
    out.integer(places[index].first);
    out.text("length");
    out.integer(places[index].second);
    endObject(out);
  }

  std::string metadata() {
    PickleWriter out;
    object(out, "Metadata");
    out.text("state_dict_metadata");
    out.emptyDict();
    out.mark();
    for (const DcpItem &item : items) {
      out.text(nameOf(item.path));
      if (item.tensor || item.number) {
        tensorEntry(out, item);
      } else {
        out.global(metadataModule, "BytesStorageMetadata");
        out.object();
      }
    }
    out.items();
    out.text("planner_data");
    out.emptyDict();
    out.mark();
    for (const DcpItem &item : items) {
      out.text(nameOf(item.path));
      out.mark();
      for (const DcpKey &key : item.path)
        if (const auto *text = std::get_if<std::string>(&key))
          out.text(*text);
        else
          out.integer(std::get<int64_t>(key));
      out.tuple();
    }
    out.items();
    out.text("storage_data");
    out.emptyDict();
    out.mark();
    for (size_t i = 0; i < items.size(); ++i)
      storageEntry(out, items[i], i);
    out.items();
    out.text("storage_meta");
    out.none();
    out.text("version");
    out.text("1.0.0");
    endObject(out);
    return out.finish();
  }

  const std::vector<DcpItem> &items;
  const std::string path;
  const std::function<void(int64_t)> &done;
  DiagnosticEngine &diagnostics;
  const int64_t folderBytes;
  OrderedReader reader;
  const std::string folder;
  File file;
  int64_t at = 0, written = 0;
  std::vector<std::pair<int64_t, int64_t>> places; // offset and length
};

} // namespace

bool writeDcp(const std::vector<DcpItem> &items, const std::string &folder,
              int64_t folderBytes, const std::function<void(int64_t)> &done,
              DiagnosticEngine &diagnostics) {
  return DcpFolder(items, folder, folderBytes, done, diagnostics).run();
}

} // namespace accel::checkpoint
