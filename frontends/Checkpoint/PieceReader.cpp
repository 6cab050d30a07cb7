//===- PieceReader.cpp - The bytes of pieces of tensors -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/PieceReader.h"
#include "frontends/Checkpoint/FileIo.h"

#include <algorithm>
#include <cstring>

namespace accel::checkpoint {

namespace {
constexpr int64_t maxPickleBytes = int64_t(1) << 20; // of one shard
constexpr size_t maxOpen = 64;                       // archives

/// Eight bytes of a length, then JSON.
bool beginsAsSafetensors(const Piece &piece) {
  File file(piece.file, O_RDONLY);
  char bytes[9] = {};
  return file.good() &&
         file.read(bytes, sizeof bytes, piece.begin) == sizeof bytes &&
         bytes[8] == '{' && bytes[7] == 0;
}
} // namespace

bool PieceReader::damaged(const Tensor &tensor, const Piece &piece,
                          const std::string &message, const std::string &hint) {
  diagnostics.error("invalid-checkpoint", piece.file,
                    "'" + printable(tensor.name) + "': " + message, hint);
  return false;
}

bool PieceReader::read(const Tensor &tensor, const Piece &piece,
                       const Take &take) {
  int64_t bytes = elementBytes(tensor.dtype);
  for (int64_t size : piece.sizes)
    bytes *= size;
  if (bytes == 0)
    return true;
  return piece.zip ? readZip(tensor, piece, bytes, take)
                   : readFile(tensor, piece, bytes, take);
}

bool PieceReader::isNumber(const Tensor &tensor) {
  return (tensor.dtype == "float32" || tensor.dtype == "float64") &&
         tensor.bytes == elementBytes(tensor.dtype);
}

std::optional<double> PieceReader::number(const Tensor &tensor) {
  std::string bytes;
  auto take = [&](std::string_view some) { return bytes += some, true; };
  if (tensor.bytes <= int64_t(sizeof(double)))
    for (const Piece &piece : tensor.pieces)
      if (!read(tensor, piece, take))
        return std::nullopt;
  float narrow;
  double wide;
  if (tensor.dtype == "float32" && bytes.size() == sizeof narrow) {
    std::memcpy(&narrow, bytes.data(), sizeof narrow);
    return narrow;
  }
  if (tensor.dtype == "float64" && bytes.size() == sizeof wide) {
    std::memcpy(&wide, bytes.data(), sizeof wide);
    return wide;
  }
  diagnostics.error("invalid-checkpoint",
                    tensor.pieces.empty() ? "" : tensor.pieces[0].file,
                    "'" + printable(tensor.name) + "' is no number",
                    "save the checkpoint again");
  return std::nullopt;
}

bool PieceReader::readFile(const Tensor &tensor, const Piece &piece,
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

bool PieceReader::readZip(const Tensor &tensor, const Piece &piece,
                          int64_t bytes, const Take &take) {
  std::string error;
  torchexport::Archive *archive = open(piece, error);
  if (!archive && beginsAsSafetensors(piece))
    return damaged(tensor, piece,
                   "its shard is stored as safetensors "
                   "(serialization_format of FileSystemWriter), which is not "
                   "read",
                   "save with the writer's default format");
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

torchexport::Archive *PieceReader::open(const Piece &piece,
                                        std::string &error) {
  const Key key = keyOf(piece);
  if (auto found = archives.find(key); found != archives.end())
    return &found->second;
  auto archive = piece.length
                     ? torchexport::Archive::openRange(piece.file, piece.begin,
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
bool PieceReader::verify() {
  for (const auto &[key, checksums] : slices) {
    Piece piece;
    std::tie(piece.file, piece.begin, piece.length) = key;
    std::string error;
    torchexport::Archive *archive = open(piece, error);
    if (!archive || !checksums.verify(*archive, error)) {
      diagnostics.error("invalid-checkpoint", piece.file, error,
                        "copy the file again, or save the checkpoint again");
      return false;
    }
  }
  return true;
}

/// A shard of torch DCP is a file of torch.save with one tensor.
bool PieceReader::findTensor(torchexport::Archive &archive,
                             const Tensor &tensor, const Piece &piece,
                             std::string &entry, int64_t &begin) {
  std::string error;
  auto pickle = archive.read("data.pkl", maxPickleBytes, error);
  if (!pickle)
    return damaged(tensor, piece, error);
  Part part;
  if (!parseTorchSave(*pickle, piece.file, part, diagnostics))
    return false;
  // A number may be asked for as a row of one.
  const bool fits = part.tensors.size() == 1 &&
                    part.tensors[0].dtype == tensor.dtype &&
                    (part.tensors[0].shape == piece.sizes ||
                     (part.tensors[0].shape.empty() &&
                      piece.sizes == std::vector<int64_t>{1}));
  if (!fits)
    return damaged(tensor, piece,
                   "its shard holds something else than .metadata says");
  const Piece &found = part.tensors[0].pieces.front();
  if (!found.contiguous)
    return damaged(tensor, piece,
                   "its shard is stored with strides, not row by row",
                   "save tensor.contiguous()");
  entry = found.entry;
  begin = found.entryBegin;
  return true;
}

} // namespace accel::checkpoint
