//===- Merge.cpp - Writing the merged weights -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Merge.h"
#include "frontends/Checkpoint/ConvertedFloats.h"
#include "frontends/Checkpoint/SliceChecksums.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <tuple>
#include <unistd.h>

namespace accel::checkpoint {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr size_t bufferBytes = size_t(4) << 20;
constexpr int64_t maxPickleBytes = int64_t(1) << 20; // of one shard
constexpr size_t maxOpen = 64;                       // archives

/// An open file; `error` of the last operation that failed.
class File {
public:
  File(const std::string &path, int flags)
      : fd(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (fd >= 0)
      ::close(fd);
  }
  File(const File &) = delete;
  bool good() const { return fd >= 0; }
  int64_t size() const { return ::lseek(fd, 0, SEEK_END); }

  bool write(std::string_view bytes, int64_t at) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return errno = n == 0 ? ENOSPC : errno, false;
      bytes.remove_prefix(size_t(n));
      at += n;
    }
    return true;
  }
  /// Bytes read; fewer than asked for at the end of the file, -1: failed.
  ssize_t read(char *into, size_t bytes, int64_t at) {
    ssize_t n;
    do
      n = ::pread(fd, into, bytes, at);
    while (n < 0 && errno == EINTR);
    return n;
  }
  bool sync() { return ::fsync(fd) == 0; }

private:
  int fd;
};

/// Puts a box that comes row by row into its places in a tensor of this shape
/// with elements of `element` bytes. `write` gets bytes and where in the tensor
/// they belong.
class BoxWriter {
public:
  using Write = std::function<bool(std::string_view, int64_t)>;

  BoxWriter(const std::vector<int64_t> &shape, int64_t element,
            const Piece &piece, Write write)
      : shape(shape), element(element), piece(piece), write(std::move(write)) {
    // The innermost dimensions that are whole make one run of bytes with the
    // part of the dimension before them.
    runBytes = element;
    outer = shape.size();
    while (outer > 0) {
      --outer;
      runBytes *= piece.sizes[outer];
      if (piece.sizes[outer] != shape[outer])
        break;
    }
  }

  bool take(std::string_view bytes) {
    while (!bytes.empty()) {
      const int64_t run = taken / runBytes, inside = taken % runBytes;
      const size_t n =
          std::min(bytes.size(), static_cast<size_t>(runBytes - inside));
      if (!write(bytes.substr(0, n), placeOf(run) + inside))
        return false;
      bytes.remove_prefix(n);
      taken += int64_t(n);
    }
    return true;
  }
  int64_t bytes() const { return taken; }

private:
  /// First byte of a run in the tensor.
  int64_t placeOf(int64_t run) const {
    int64_t stride = element, place = 0;
    for (size_t i = shape.size(); i-- > 0;) {
      int64_t index = piece.offsets[i];
      if (i < outer) {
        index += run % piece.sizes[i];
        run /= piece.sizes[i];
      }
      place += index * stride;
      stride *= shape[i];
    }
    return place;
  }

  const std::vector<int64_t> &shape;
  int64_t element;
  const Piece &piece;
  Write write;
  int64_t runBytes = 0;
  size_t outer = 0; // dimensions that runs are counted over
  int64_t taken = 0;
};

class Writer {
public:
  Writer(const Merged &merged, const std::string &output,
         const std::function<void(int64_t)> &done,
         DiagnosticEngine &diagnostics)
      : merged(merged), output(fs::path(output).lexically_normal()), done(done),
        diagnostics(diagnostics) {
    // A trailing slash is no name.
    if (!this->output.has_filename())
      this->output = this->output.parent_path();
    unfinished = this->output;
    unfinished += ".unfinished-" + std::to_string(::getpid());
  }

  bool run() {
    std::error_code failed;
    const bool there = fs::exists(output, failed);
    if (there &&
        !(fs::is_directory(output, failed) && fs::is_empty(output, failed)))
      return fail("output-exists", output.string(),
                  "the folder for the weights is there and not empty",
                  "name another one, or remove it");
    fs::create_directories(unfinished, failed);
    if (failed)
      return fail("write-failed", unfinished.string(), failed.message());
    const bool good = writeAll();
    if (good)
      fs::rename(unfinished, output, failed);
    if (!good || failed) {
      const std::string why = failed.message();
      std::error_code ignored;
      fs::remove_all(unfinished, ignored);
      return good && fail("write-failed", output.string(), why);
    }
    const fs::path parent = fs::absolute(output, failed).parent_path();
    File(parent.string(), O_RDONLY | O_DIRECTORY).sync();
    return true;
  }

private:
  bool fail(const std::string &code, const std::string &path,
            const std::string &message, const std::string &hint = "") {
    diagnostics.error(code, path, message, hint);
    return false;
  }
  bool failedToWrite(const std::string &path) {
    return fail("write-failed", path, std::strerror(errno),
                errno == ENOSPC ? "the weights take " +
                                      std::to_string(merged.bytes) + " bytes"
                                : "");
  }

  bool writeAll() {
    for (const MergedPart &part : merged.parts)
      if (!writePart(part))
        return false;
    if (!verifySlices())
      return false;
    if (merged.parts.size() > 1) {
      Json index = {{"metadata", {{"total_size", merged.bytes}}},
                    {"weight_map", Json::object()}};
      for (const MergedPart &part : merged.parts)
        for (const MergedTensor &tensor : part.tensors)
          index["weight_map"][tensor.name] = part.name;
      const std::string path =
          (unfinished / "model.safetensors.index.json").string();
      File file(path, O_WRONLY | O_CREAT | O_EXCL);
      if (!file.good() || !file.write(index.dump(2) + "\n", 0) || !file.sync())
        return failedToWrite(path);
    }
    File(unfinished.string(), O_RDONLY | O_DIRECTORY).sync();
    return true;
  }

  static std::string headerOf(const MergedPart &part) {
    Json header = {{"__metadata__", {{"format", "pt"}}}};
    for (const MergedTensor &tensor : part.tensors)
      header[tensor.name] = {
          {"dtype", storedDtypeOf(tensor.dtype)},
          {"shape", tensor.source->shape},
          {"data_offsets", {tensor.begin, tensor.begin + tensor.bytes}}};
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string bytes(8, '\0');
    for (size_t i = 0; i < 8; ++i)
      bytes[i] = char(uint64_t(text.size()) >> (8 * i));
    return bytes + text;
  }

  bool writePart(const MergedPart &part) {
    const std::string path = (unfinished / part.name).string();
    File file(path, O_WRONLY | O_CREAT | O_EXCL);
    const std::string header = headerOf(part);
    if (!file.good() || !file.write(header, 0))
      return failedToWrite(path);
    for (const MergedTensor &tensor : part.tensors)
      for (const Piece &piece : tensor.source->pieces) {
        const int64_t at = int64_t(header.size()) + tensor.begin;
        bool wrote = true;
        BoxWriter box(piece.view.empty() ? tensor.source->shape : piece.view,
                      elementBytes(tensor.dtype), piece,
                      [&](std::string_view bytes, int64_t inside) {
                        wrote = file.write(bytes, at + inside);
                        written += int64_t(bytes.size());
                        done(written);
                        return wrote;
                      });
        FloatConverter converter(tensor.source->dtype, tensor.dtype);
        const Take take = [&](std::string_view bytes) {
          return tensor.dtype == tensor.source->dtype
                     ? box.take(bytes)
                     : converter.take(bytes, [&](std::string_view converted) {
                         return box.take(converted);
                       });
        };
        const bool good = copy(tensor, piece, take);
        if (!wrote)
          return failedToWrite(path);
        if (converter.overflow())
          return fail("not-supported", piece.file,
                      "'" + printable(tensor.name) + "' holds " +
                          shortest(*converter.overflow()) +
                          ", which is beyond " + tensor.dtype,
                      "choose another --dtype");
        if (!good)
          return false;
      }
    return file.sync() || failedToWrite(path);
  }

  using Take = std::function<bool(std::string_view)>;

  static std::string shortest(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }

  bool copy(const MergedTensor &tensor, const Piece &piece, const Take &take) {
    int64_t bytes = elementBytes(tensor.source->dtype);
    for (int64_t size : piece.sizes)
      bytes *= size;
    if (bytes == 0)
      return true;
    return piece.zip ? copyFromZip(tensor, piece, bytes, take)
                     : copyFromFile(tensor, piece, bytes, take);
  }

  bool damaged(const MergedTensor &tensor, const Piece &piece,
               const std::string &message) {
    return fail("invalid-checkpoint", piece.file,
                "'" + printable(tensor.name) + "': " + message,
                "copy the file again, or save the checkpoint again");
  }

  bool copyFromFile(const MergedTensor &tensor, const Piece &piece,
                    int64_t bytes, const Take &take) {
    File file(piece.file, O_RDONLY);
    if (!file.good())
      return damaged(tensor, piece, std::strerror(errno));
    buffer.resize(bufferBytes);
    for (int64_t at = 0; at < bytes;) {
      const ssize_t n = file.read(
          buffer.data(), size_t(std::min<int64_t>(bytes - at, bufferBytes)),
          piece.begin + at);
      if (n <= 0)
        return damaged(tensor, piece,
                       n < 0 ? std::strerror(errno) : "the file is cut");
      if (!take({buffer.data(), size_t(n)}))
        return false;
      at += n;
    }
    return true;
  }

  bool copyFromZip(const MergedTensor &tensor, const Piece &piece,
                   int64_t bytes, const Take &take) {
    std::string error;
    torchexport::Archive *archive = open(piece, error);
    if (!archive)
      return damaged(tensor, piece, error);
    std::string entry = piece.entry;
    int64_t begin = piece.entryBegin;
    if (entry.empty() && !findTensor(*archive, tensor, piece, entry, begin))
      return false;
    bool wanted = true;
    uint32_t checksum = 0;
    if (!archive->stream(
            entry, begin, bytes,
            [&](std::string_view read) {
              checksum = SliceChecksums::extend(checksum, read);
              return wanted = take(read);
            },
            error))
      return damaged(tensor, piece, error);
    if (wanted && bytes != archive->entries().at(entry).bytes)
      slices[keyOf(piece)].add(entry, begin, bytes, checksum);
    return wanted;
  }

  using Key = std::tuple<std::string, int64_t, int64_t>;
  static Key keyOf(const Piece &piece) {
    return {piece.file, piece.begin, piece.length};
  }

  torchexport::Archive *open(const Piece &piece, std::string &error) {
    const Key key = keyOf(piece);
    if (auto found = archives.find(key); found != archives.end())
      return &found->second;
    auto archive =
        piece.length ? torchexport::Archive::openRange(piece.file, piece.begin,
                                                       piece.length, error)
                     : torchexport::Archive::open(piece.file, error);
    if (!archive)
      return nullptr;
    // Shards of torch DCP are a zip each.
    if (archives.size() >= maxOpen)
      archives.clear();
    return &archives.emplace(key, std::move(*archive)).first->second;
  }

  /// What was read in slices is what the zips say.
  bool verifySlices() {
    for (const auto &[key, checksums] : slices) {
      Piece piece;
      std::tie(piece.file, piece.begin, piece.length) = key;
      std::string error;
      torchexport::Archive *archive = open(piece, error);
      if (!archive || !checksums.verify(*archive, error))
        return fail("invalid-checkpoint", piece.file, error,
                    "copy the file again, or save the checkpoint again");
    }
    return true;
  }

  /// A shard of torch DCP is a file of torch.save with one tensor.
  bool findTensor(torchexport::Archive &archive, const MergedTensor &tensor,
                  const Piece &piece, std::string &entry, int64_t &begin) {
    std::string error;
    auto pickle = archive.read("data.pkl", maxPickleBytes, error);
    if (!pickle)
      return damaged(tensor, piece, error);
    Part part;
    if (!parseTorchSave(*pickle, piece.file, part, diagnostics))
      return false;
    if (part.tensors.size() != 1 || part.tensors[0].shape != piece.sizes ||
        part.tensors[0].dtype != tensor.source->dtype)
      return damaged(tensor, piece,
                     "its shard holds something else than .metadata says");
    const Piece &found = part.tensors[0].pieces.front();
    if (!found.contiguous)
      return damaged(tensor, piece,
                     "its shard is stored with strides, not row by row");
    entry = found.entry;
    begin = found.entryBegin;
    return true;
  }

  const Merged &merged;
  fs::path output, unfinished;
  const std::function<void(int64_t)> &done;
  DiagnosticEngine &diagnostics;
  std::string buffer;
  std::map<Key, torchexport::Archive> archives; // that are open
  std::map<Key, SliceChecksums> slices;
  int64_t written = 0;
};

} // namespace

bool writeMerged(const Merged &merged, const std::string &output,
                 const std::function<void(int64_t)> &done,
                 DiagnosticEngine &diagnostics) {
  return Writer(merged, output, done, diagnostics).run();
}

} // namespace accel::checkpoint
