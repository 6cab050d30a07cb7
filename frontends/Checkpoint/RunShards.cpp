//===- RunShards.cpp - Checkpoints of accel-run ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/RunShards.h"
#include "frontends/HuggingFace/Safetensors.h"
#include "frontends/Yaml/Yaml.h"
#include "runtime/plan/JsonParse.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <queue>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr uint64_t maxStateBytes = uint64_t(256) << 20;
constexpr int format = 2; // of state.json
/// What a file can have, so that no sum overflows.
constexpr int64_t maxElements = int64_t(1) << 45;
constexpr int64_t maxRuns = int64_t(1) << 24;

std::string otherState(const nlohmann::json::exception &problem) {
  return "is not what accel-run writes: " + printable(problem.what(), 200);
}

class ShardReader {
public:
  ShardReader(const Checkpoint &read, DiagnosticEngine &diagnostics)
      : root(read.folder), diagnostics(diagnostics) {}

  std::optional<RunShards> run() {
    if (!readState())
      return std::nullopt;
    for (const auto &[name, hash] : files)
      if (!verify(name, hash) || !takeFile(name))
        return std::nullopt;
    if (!checkCover())
      return std::nullopt;
    return std::move(shards);
  }

private:
  bool fail(const std::string &path, const std::string &message,
            const std::string &hint = "copy the file again") {
    diagnostics.error("invalid-checkpoint", path, message, hint);
    return false;
  }

  bool readState() {
    const std::string path = (root / "state.json").string();
    const auto json = readRunState(path, diagnostics);
    if (!json)
      return false;
    try {
      runId = json->at("run").get<std::string>();
      shards.step = json->at("step").get<int64_t>();
      shards.optimizerSteps =
          int64_t(json->at("optimizer_steps").get<double>());
      if (const auto count = json->at("micro_batches").get<int64_t>(),
          size = json->at("micro_batch_size").get<int64_t>();
          count < 0 || size < 1 ||
          __builtin_mul_overflow(count, size, &shards.samples))
        return fail(path, std::to_string(count) + " micro-batches of " +
                              std::to_string(size) +
                              " samples are not what a run has read");
      shards.scale = {json->at("scaler").at("scale").get<double>(),
                      json->at("scaler").at("good_steps").get<int64_t>()};
      for (const ordered_json &file : json->at("files")) {
        const std::string name = file.at("name").get<std::string>();
        if (name.empty() || name.find('/') != std::string::npos)
          return fail(path, "'" + printable(name) + "' is no file beside it");
        files.emplace_back(name, file.at("sha256").get<std::string>());
      }
    } catch (const nlohmann::json::exception &problem) {
      return fail(path, otherState(problem));
    }
    return true;
  }

  bool verify(const std::string &name, const std::string &hash) {
    const std::string path = (root / name).string();
    std::ifstream file(path, std::ios::binary);
    plan::Sha256 digest;
    std::string buffer(size_t(4) << 20, '\0');
    while (file.read(buffer.data(), std::streamsize(buffer.size())),
           file.gcount() > 0)
      digest.update({buffer.data(), size_t(file.gcount())});
    return digest.hexDigest() == hash ||
           fail(path, "is not what the run has written: its hash differs");
  }

  bool takeFile(const std::string &name) {
    const std::string path = (root / name).string();
    const auto file = huggingface::readSafetensorsHeader(path, diagnostics);
    if (!file)
      return false;
    auto metadata = [&](const char *key) {
      auto found = file->metadata.find(key);
      return found == file->metadata.end() ? std::string() : found->second;
    };
    if (metadata("format") != runShardFormat)
      return fail(path, "is no shard of accel-run");
    if (metadata("run") != runId ||
        metadata("step") != std::to_string(shards.step))
      return fail(path, "is of another run or step than state.json",
                  "keep the files of one checkpoint");
    // "3.exp_avg" is of the unit with the prefix "3.".
    std::map<std::string, std::vector<const huggingface::StoredTensor *>> units;
    for (const huggingface::StoredTensor &tensor : file->tensors)
      units[tensor.name.substr(0, tensor.name.find('.') + 1)].push_back(
          &tensor);
    for (const huggingface::StoredTensor *tensor : units[runBufferPrefix])
      if (!takeBuffer(path, *tensor))
        return false;
    try {
      for (const nlohmann::json &unit : plan::parseJson(metadata("layout"))) {
        const auto prefix = unit.at("prefix").get<std::string>();
        if (unit.contains("state"))
          shards.apart.insert(unit.at("state").get<std::string>());
        for (const nlohmann::json &entry : unit.at("pieces"))
          for (const huggingface::StoredTensor *tensor : units[prefix])
            if (!takeEntry(path, entry, *tensor,
                           tensor->name.substr(prefix.size())))
              return false;
      }
    } catch (const plan::JsonSyntaxError &problem) {
      return fail(path, "its layout is not valid JSON: " + problem.message);
    } catch (const nlohmann::json::exception &problem) {
      return fail(path, "its layout cannot be read: " +
                            printable(problem.what(), 200));
    }
    return true;
  }

  /// A buffer is whole in one file.
  bool takeBuffer(const std::string &path,
                  const huggingface::StoredTensor &stored) {
    Tensor made;
    made.name = stored.name.substr(std::string(runBufferPrefix).size());
    made.path = {made.name};
    made.dtype = torchDtypeOf(stored.dtype);
    made.shape.assign(stored.shape.begin(), stored.shape.end());
    made.bytes = int64_t(stored.end - stored.begin);
    if (made.dtype.empty() || !buffers.insert(made.name).second)
      return fail(path, "the buffer '" + printable(made.name) +
                            "' is not one that was written, or twice there");
    Piece piece;
    piece.file = path;
    piece.begin = int64_t(stored.begin);
    piece.length = made.bytes;
    piece.offsets.assign(made.shape.size(), 0);
    piece.sizes = made.shape;
    made.pieces.push_back(std::move(piece));
    made.shards = 1;
    shards.buffers.format = PartFormat::Safetensors;
    shards.buffers.tensors.push_back(std::move(made));
    return true;
  }

  /// Runs of a parameter in a flat tensor.
  bool takeEntry(const std::string &path, const nlohmann::json &entry,
                 const huggingface::StoredTensor &stored,
                 const std::string &kind) {
    const auto fqn = entry.at("fqn").get<std::string>();
    const auto shape = entry.at("shape").get<std::vector<int64_t>>();
    const auto begin = entry.at("begin").get<int64_t>();
    const auto end = entry.at("end").get<int64_t>();
    const auto offset = entry.at("offset").get<int64_t>();
    const int64_t runs = entry.value("runs", int64_t(1));
    const int64_t stride = entry.value("stride", int64_t(0));
    auto wrong = [&] {
      return fail(path, "the layout of '" + printable(fqn) +
                            "' is not one that was written");
    };
    Part &part = shards.kinds[kind];
    part.format = PartFormat::Safetensors;
    auto [place, isNew] = places[kind].emplace(fqn, part.tensors.size());
    if (isNew) {
      Tensor made;
      made.name = fqn;
      made.path = {fqn};
      made.dtype = torchDtypeOf(stored.dtype);
      made.shape = shape;
      made.bytes = elementBytes(made.dtype);
      for (int64_t size : shape)
        if (size < 0 || __builtin_mul_overflow(made.bytes, size, &made.bytes))
          return wrong();
      if (made.dtype.empty())
        return wrong();
      part.tensors.push_back(std::move(made));
    }
    Tensor &tensor = part.tensors[place->second];
    const int64_t element = elementBytes(tensor.dtype);
    const int64_t all = tensor.bytes / element, length = end - begin;
    if (shape != tensor.shape || torchDtypeOf(stored.dtype) != tensor.dtype ||
        stored.shape.size() != 1 || begin < 0 || end < begin || offset < 0 ||
        runs < 1 || runs > maxRuns || stride < 0 ||
        std::max({end, offset, stride, all}) > maxElements ||
        (runs > 1 && stride < length) || end > all ||
        runs - 1 > (all - end) / std::max<int64_t>(stride, 1) ||
        offset > stored.shape[0] ||
        (length > 0 && runs > (stored.shape[0] - offset) / length))
      return wrong();
    if (length == 0)
      return true;
    Piece piece;
    piece.file = path;
    piece.begin = int64_t(stored.begin) + offset * element;
    piece.length = runs * length * element;
    const int64_t column = runs > 1 ? begin % stride : 0;
    if (runs > 1 && column + length <= stride) {
      // Columns of a matrix with rows of `stride` elements.
      piece.view = {all / stride + (all % stride != 0), stride};
      piece.offsets = {begin / stride, column};
      piece.sizes = {runs, length};
      tensor.pieces.push_back(std::move(piece));
    } else {
      piece.view = {all};
      piece.sizes = {length};
      piece.length = length * element;
      for (int64_t run = 0; run < runs; ++run) {
        piece.offsets = {begin + run * stride};
        tensor.pieces.push_back(piece);
        piece.begin += piece.length;
      }
    }
    return true;
  }

  /// Each element of each parameter is there once.
  bool checkCover() {
    for (auto &[kind, part] : shards.kinds)
      for (Tensor &tensor : part.tensors) {
        int64_t bytes = 0;
        for (const Piece &piece : tensor.pieces)
          bytes += piece.length;
        tensor.shards = int64_t(tensor.pieces.size());
        if (bytes != tensor.bytes)
          return fail(root.string(),
                      "elements of '" + printable(tensor.name) +
                          "' are missing, or twice there",
                      "copy the files of all ranks");
        if (!checkOverlap(tensor))
          return false;
      }
    return true;
  }

  /// Goes over the runs of all pieces by their begin. There are no more of them
  /// than elements, as checkCover has counted.
  bool checkOverlap(const Tensor &tensor) {
    struct Run {
      const Piece *piece;
      int64_t begin, end, left; // left: runs after it
    };
    auto later = [](const Run &a, const Run &b) { return a.begin > b.begin; };
    std::priority_queue<Run, std::vector<Run>, decltype(later)> next(later);
    for (const Piece &piece : tensor.pieces) {
      const bool columns = piece.view.size() == 2;
      const int64_t begin =
          columns ? piece.offsets[0] * piece.view[1] + piece.offsets[1]
                  : piece.offsets[0];
      next.push({&piece, begin, begin + piece.sizes.back(),
                 columns ? piece.sizes[0] - 1 : 0});
    }
    auto range = [](const Run &run) {
      return "[" + std::to_string(run.begin) + ", " + std::to_string(run.end) +
             ")";
    };
    Run before{nullptr, 0, 0, 0};
    while (!next.empty()) {
      Run run = next.top();
      next.pop();
      if (run.begin < before.end)
        return fail(run.piece->file,
                    "its elements " + range(run) + " of '" +
                        printable(tensor.name) + "' overlap " + range(before) +
                        " of " +
                        fs::path(before.piece->file).filename().string() +
                        ", and a run writes each element once",
                    "copy the checkpoint again");
      before = run;
      if (run.left == 0)
        continue;
      --run.left;
      run.begin += run.piece->view[1];
      run.end += run.piece->view[1];
      next.push(run);
    }
    return true;
  }

  const fs::path root;
  DiagnosticEngine &diagnostics;
  std::string runId;
  std::vector<std::pair<std::string, std::string>> files;      // name, hash
  std::map<std::string, std::map<std::string, size_t>> places; // by kind
  std::set<std::string> buffers;                               // names
  RunShards shards;
};

} // namespace

std::optional<ordered_json> readRunState(const std::string &path,
                                         DiagnosticEngine &diagnostics) {
  auto fail = [&](const std::string &message,
                  const std::string &hint = "copy the file again") {
    diagnostics.error("invalid-checkpoint", path, message, hint);
    return std::nullopt;
  };
  std::string text, error;
  if (!yaml::readWholeFile(path, maxStateBytes, text, error))
    return fail(error);
  try {
    plan::parseJson(text); // bounds its depth
    ordered_json json = ordered_json::parse(text);
    if (json.at("format") != format)
      return fail("is of another format than " + std::to_string(format) +
                      ", which this accel-opt reads",
                  "take the accel-opt of the accel-run that wrote it");
    const std::string own = json.at("sha256").get<std::string>();
    json.erase("sha256");
    plan::Sha256 digest;
    digest.update(json.dump());
    if (digest.hexDigest() != own)
      return fail("is not what the run has written: its hash differs");
    return std::optional<ordered_json>(std::in_place, std::move(json));
  } catch (const plan::JsonSyntaxError &problem) {
    return fail("is not valid JSON: " + problem.message);
  } catch (const nlohmann::json::exception &problem) {
    return fail(otherState(problem));
  }
}

std::optional<RunShards> readRunShards(const Checkpoint &read,
                                       DiagnosticEngine &diagnostics) {
  return ShardReader(read, diagnostics).run();
}

} // namespace accel::checkpoint
