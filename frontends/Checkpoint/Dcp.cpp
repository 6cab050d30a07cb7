//===- Dcp.cpp - Folders of torch.distributed.checkpoint ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Checkpoint.h"
#include "frontends/Checkpoint/Pickle.h"
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/TorchNames.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t maxMetadataBytes = uint64_t(1) << 30;

bool allows(std::string_view name) {
  static const std::set<std::string_view> known = {
      "torch.distributed.checkpoint.metadata Metadata",
      "torch.distributed.checkpoint.metadata TensorStorageMetadata",
      "torch.distributed.checkpoint.metadata BytesStorageMetadata",
      "torch.distributed.checkpoint.metadata ChunkStorageMetadata",
      "torch.distributed.checkpoint.metadata TensorProperties",
      "torch.distributed.checkpoint.metadata MetadataIndex",
      "torch.distributed.checkpoint.metadata StorageMeta",
      "torch.distributed.checkpoint.metadata _MEM_FORMAT_ENCODING",
      "torch.distributed.checkpoint.filesystem _StorageInfo",
      "torch.serialization _get_layout",
      "torch Size",
      "pathlib PosixPath",
      "pathlib._local PosixPath",
      "pathlib PurePosixPath",
      "collections OrderedDict"};
  return known.count(name) || isTorchDtype(name);
}

/// Reads one .metadata.
class MetadataReader {
public:
  MetadataReader(const Pickle &pickle, const std::string &path,
                 DiagnosticEngine &diagnostics)
      : pickle(pickle), path(path), diagnostics(diagnostics) {}

  bool run(Part &part) {
    auto state = pickle.field(pickle.root(), "state_dict_metadata");
    auto storage = pickle.field(pickle.root(), "storage_data");
    if (!isClass(pickle.root(), "Metadata") || !state || !storage)
      return fail("it holds no torch.distributed.checkpoint Metadata");
    const auto entries = pickle.entries(*state);
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      auto name = pickle.text(entries[i]);
      if (!name)
        return fail("a name in state_dict_metadata is no text");
      if (isClass(entries[i + 1], "BytesStorageMetadata")) {
        ++part.objects;
        part.values.emplace_back().name = std::string(*name);
      } else if (!takeTensor(std::string(*name), entries[i + 1], part))
        return false;
    }
    takePaths(part);
    return takeStorage(*storage, part);
  }

  /// End of the furthest shard in each file.
  std::map<std::string, int64_t> ends;

private:
  bool fail(const std::string &message) {
    diagnostics.error("invalid-checkpoint", path, message,
                      "save the checkpoint again");
    return false;
  }
  bool isClass(ValueId id, std::string_view name) const {
    return pickle.typeOf(id).ends_with(" " + std::string(name));
  }

  /// torch.Size((a, b)), or a plain tuple.
  bool takeSizes(std::optional<ValueId> id, std::vector<int64_t> &sizes) {
    if (!id)
      return false;
    ValueId at = *id;
    if (isClass(at, "Size")) {
      const PickleValue &arguments = pickle.at(pickle.at(at).items[1]);
      if (arguments.items.size() != 1)
        return false;
      at = arguments.items[0];
    }
    if (!pickle.is(at, Pickle::Kind::Tuple) &&
        !pickle.is(at, Pickle::Kind::List))
      return false;
    sizes.clear();
    for (ValueId item : pickle.at(at).items) {
      auto size = pickle.integer(item);
      if (!size || *size < 0)
        return false;
      sizes.push_back(*size);
    }
    return true;
  }

  static bool multiply(const std::vector<int64_t> &sizes, int64_t &product) {
    for (int64_t size : sizes)
      if (__builtin_mul_overflow(product, size, &product))
        return false;
    return true;
  }

  std::string dtypeOf(ValueId id) {
    auto properties = pickle.field(id, "properties");
    if (!properties || !pickle.is(*properties, Pickle::Kind::Object) ||
        pickle.at(*properties).items.size() != 3)
      return "";
    const PickleValue &state = pickle.at(pickle.at(*properties).items[2]);
    if (state.kind != Pickle::Kind::Tuple || state.items.empty())
      return "";
    const PickleValue &dtype = pickle.at(state.items[0]);
    return dtype.kind == Pickle::Kind::Global && isTorchDtype(dtype.text)
               ? std::string(dtype.text.substr(6))
               : "";
  }

  /// Whether an element is in two boxes, none of which is empty. Goes along the
  /// axis with the most beginnings, where a box meets the fewest others.
  static bool overlap(const std::vector<Piece> &pieces) {
    if (pieces.size() < 2)
      return false;
    const size_t rank = pieces.front().offsets.size();
    size_t axis = 0, most = 0;
    for (size_t i = 0; i < rank; ++i) {
      std::set<int64_t> begins;
      for (const Piece &piece : pieces)
        begins.insert(piece.offsets[i]);
      if (begins.size() > most) {
        most = begins.size();
        axis = i;
      }
    }
    std::vector<const Piece *> sorted;
    for (const Piece &piece : pieces)
      sorted.push_back(&piece);
    std::sort(sorted.begin(), sorted.end(),
              [&](const Piece *a, const Piece *b) {
                return rank && a->offsets[axis] < b->offsets[axis];
              });
    auto meet = [](const Piece &a, const Piece &b, size_t i) {
      return a.offsets[i] < b.offsets[i] + b.sizes[i] &&
             b.offsets[i] < a.offsets[i] + a.sizes[i];
    };
    for (size_t a = 0; a < sorted.size(); ++a)
      for (size_t b = a + 1; b < sorted.size(); ++b) {
        if (rank && !meet(*sorted[a], *sorted[b], axis))
          break;
        bool all = true;
        for (size_t i = 0; i < rank; ++i)
          all &= meet(*sorted[a], *sorted[b], i);
        if (all)
          return true;
      }
    return false;
  }

  bool takeTensor(const std::string &name, ValueId id, Part &part) {
    Tensor tensor;
    tensor.name = name;
    tensor.dtype = dtypeOf(id);
    auto chunks = pickle.field(id, "chunks");
    if (!isClass(id, "TensorStorageMetadata") || tensor.dtype.empty() ||
        !takeSizes(pickle.field(id, "size"), tensor.shape) || !chunks)
      return fail("'" + printable(name) +
                  "' is described neither as a tensor "
                  "nor as bytes");
    int64_t elements = 1, stored = 0;
    tensor.bytes = elementBytes(tensor.dtype);
    if (!multiply(tensor.shape, elements) ||
        !multiply(tensor.shape, tensor.bytes))
      return fail("'" + printable(name) + "' is larger than 2^63 bytes");
    for (ValueId chunk : pickle.at(*chunks).items) {
      std::vector<int64_t> offsets, sizes;
      int64_t volume = 1;
      if (!takeSizes(pickle.field(chunk, "offsets"), offsets) ||
          !takeSizes(pickle.field(chunk, "sizes"), sizes) ||
          offsets.size() != tensor.shape.size() ||
          sizes.size() != tensor.shape.size())
        return fail("a shard of '" + printable(name) + "' has no place in it");
      for (size_t i = 0; i < sizes.size(); ++i)
        if (offsets[i] > tensor.shape[i] ||
            sizes[i] > tensor.shape[i] - offsets[i])
          return fail("a shard of '" + printable(name) + "' leaves it");
      if (!multiply(sizes, volume) ||
          __builtin_add_overflow(stored, volume, &stored))
        return fail("the shards of '" + printable(name) + "' overlap");
      if (volume == 0)
        continue; // of a rank without elements
      Piece piece;
      piece.zip = true;
      piece.offsets = offsets;
      piece.sizes = sizes;
      tensor.pieces.push_back(std::move(piece));
    }
    if (stored != elements)
      return fail("the shards of '" + printable(name) + "' hold " +
                  std::to_string(stored) + " of its " +
                  std::to_string(elements) + " elements");
    if (overlap(tensor.pieces))
      return fail("the shards of '" + printable(name) +
                  "' overlap and leave elements out");
    tensor.shards = int64_t(pickle.at(*chunks).items.size());
    part.tensors.push_back(std::move(tensor));
    return true;
  }

  /// The planner keeps the keys of the dictionaries that it flattened.
  void takePaths(Part &part) {
    std::map<std::string_view, std::vector<std::string>> paths;
    if (auto planner = pickle.field(pickle.root(), "planner_data")) {
      const auto entries = pickle.entries(*planner);
      for (size_t i = 0; i + 1 < entries.size(); i += 2) {
        auto name = pickle.text(entries[i]);
        std::vector<std::string> keys;
        for (ValueId key : pickle.at(entries[i + 1]).items)
          if (auto text = pickle.text(key))
            keys.emplace_back(*text);
          else if (auto number = pickle.integer(key))
            keys.push_back(std::to_string(*number));
        if (name)
          paths[*name] = std::move(keys);
      }
    }
    for (std::vector<Tensor> *named : {&part.tensors, &part.values})
      for (Tensor &tensor : *named) {
        auto found = paths.find(tensor.name);
        tensor.path = found != paths.end() && !found->second.empty()
                          ? found->second
                          : std::vector<std::string>{tensor.name};
      }
    for (const Tensor &value : part.values)
      if (isOfGroups(value.path))
        part.groups.push_back(value.path);
  }

  /// The shard that an entry of storage_data is of.
  Piece *pieceOf(ValueId index, Part &part) {
    auto name = pickle.field(index, "fqn");
    std::vector<int64_t> offsets;
    if (!name || !pickle.text(*name))
      return nullptr;
    takeSizes(pickle.field(index, "offset"), offsets); // none: the whole
    if (byName.empty())
      for (size_t i = 0; i < part.tensors.size(); ++i)
        byName[part.tensors[i].name] = i;
    auto found = byName.find(*pickle.text(*name));
    if (found == byName.end())
      return nullptr;
    std::vector<Piece> &pieces = part.tensors[found->second].pieces;
    for (Piece &piece : pieces)
      if (piece.offsets == offsets || (offsets.empty() && pieces.size() == 1))
        return &piece;
    return nullptr;
  }

  bool takeStorage(ValueId id, Part &part) {
    const auto entries = pickle.entries(id);
    for (size_t i = 1; i < entries.size(); i += 2) {
      auto file = pickle.field(entries[i], "relative_path");
      auto offset = pickle.field(entries[i], "offset");
      auto length = pickle.field(entries[i], "length");
      if (!file || !offset || !length || !pickle.text(*file) ||
          !pickle.integer(*offset) || !pickle.integer(*length))
        return fail("a place in storage_data has no file, offset and length");
      const std::string name(*pickle.text(*file));
      if (name.empty() || name.find('/') != std::string::npos)
        return fail("'" + printable(name) + "' is no file beside it");
      int64_t end = 0;
      if (*pickle.integer(*offset) < 0 || *pickle.integer(*length) < 0 ||
          __builtin_add_overflow(*pickle.integer(*offset),
                                 *pickle.integer(*length), &end))
        return fail("a place in '" + printable(name) + "' is no place");
      int64_t &last = ends[name];
      last = std::max(last, end);
      if (Piece *piece = pieceOf(entries[i - 1], part)) {
        piece->file = name; // beside the .metadata
        piece->begin = *pickle.integer(*offset);
        piece->length = *pickle.integer(*length);
        auto transforms = pickle.field(entries[i], "transform_descriptors");
        piece->transformed =
            transforms && !pickle.at(*transforms).items.empty();
      }
    }
    for (const Tensor &tensor : part.tensors)
      for (const Piece &piece : tensor.pieces)
        if (piece.file.empty())
          return fail("storage_data has no place for a shard of '" +
                      printable(tensor.name) + "'");
    return true;
  }

  const Pickle &pickle;
  const std::string &path;
  DiagnosticEngine &diagnostics;
  std::map<std::string, size_t, std::less<>> byName; // tensors of the part
};

} // namespace

bool parseDcpMetadata(std::string_view bytes, const std::string &path,
                      const std::string &folder, bool lookAtFiles, Part &part,
                      DiagnosticEngine &diagnostics) {
  Pickle::Problem problem;
  auto pickle = Pickle::parse(bytes, allows, problem);
  if (!pickle)
    return reportPickle(problem, path, diagnostics);
  MetadataReader reader(*pickle, path, diagnostics);
  if (!reader.run(part))
    return false;
  part.format = PartFormat::TorchDcp;
  part.files = int64_t(reader.ends.size());
  for (Tensor &tensor : part.tensors)
    for (Piece &piece : tensor.pieces)
      piece.file = (fs::path(folder) / piece.file).string();
  for (const auto &[name, end] : reader.ends) {
    if (!lookAtFiles)
      break;
    const std::string file = (fs::path(folder) / name).string();
    std::error_code failed;
    const uintmax_t size = fs::file_size(file, failed);
    DiagnosticEngine found;
    if (failed)
      found.error("invalid-checkpoint", file,
                  "the shards of a rank are missing: " + failed.message(),
                  "copy the file from the rank's own disk, or save to a "
                  "file system that all ranks share");
    else if (size < uintmax_t(end))
      found.error("invalid-checkpoint", file,
                  "the file is cut: it has " + std::to_string(size) +
                      " bytes, and .metadata names " + std::to_string(end),
                  "copy it again");
    const int64_t there = failed ? 0 : int64_t(size);
    for (const Diagnostic &what : found.all())
      part.damage.push_back({file, there, what});
    part.bytes += there;
  }
  return true;
}

bool readDcp(const std::string &folder, Part &part,
             DiagnosticEngine &diagnostics) {
  const std::string path = (fs::path(folder) / ".metadata").string();
  std::string bytes, error;
  if (!yaml::readWholeFile(path, maxMetadataBytes, bytes, error)) {
    diagnostics.error("invalid-checkpoint", path, error);
    return false;
  }
  return parseDcpMetadata(bytes, path, folder, true, part, diagnostics);
}

} // namespace accel::checkpoint
