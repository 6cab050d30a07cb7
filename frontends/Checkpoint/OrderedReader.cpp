//===- OrderedReader.cpp - Tensors from their first element on ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/OrderedReader.h"
#include "frontends/Checkpoint/BoxWriter.h"
#include "frontends/Checkpoint/FileIo.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace accel::checkpoint {

namespace {

/// Where in the tensor the elements of a piece begin, if they stand behind each
/// other there.
std::optional<int64_t> runOf(const Tensor &tensor, const Piece &piece) {
  const std::vector<int64_t> &shape =
      piece.view.empty() ? tensor.shape : piece.view;
  int64_t begin = 0, stride = 1;
  bool whole = true; // all dimensions behind this one are
  for (size_t i = shape.size(); i-- > 0;) {
    if (!whole && piece.sizes[i] > 1)
      return std::nullopt;
    whole &= piece.sizes[i] == shape[i];
    begin += piece.offsets[i] * stride;
    stride *= shape[i];
  }
  return begin;
}

} // namespace

bool OrderedReader::failedToWrite() {
  return reportUnwritten(scratch, folderBytes, diagnostics);
}

bool OrderedReader::read(const Tensor &tensor, const PieceReader::Take &take) {
  std::vector<std::pair<int64_t, const Piece *>> runs;
  bool ordered = true;
  for (const Piece &piece : tensor.pieces) {
    const auto begin = runOf(tensor, piece);
    ordered &= begin.has_value();
    runs.emplace_back(begin.value_or(0), &piece);
  }
  if (!ordered)
    return readByScratch(tensor, take);
  std::sort(runs.begin(), runs.end());
  for (const auto &[begin, piece] : runs)
    if (!reader.read(tensor, *piece, take))
      return false;
  return true;
}

bool OrderedReader::readByScratch(const Tensor &tensor,
                                  const PieceReader::Take &take) {
  File beside(scratch, O_RDWR | O_CREAT | O_TRUNC);
  std::error_code ignored;
  std::filesystem::remove(scratch, ignored); // it goes when it is closed
  if (!beside.good())
    return failedToWrite();
  for (const Piece &piece : tensor.pieces) {
    bool wrote = true;
    BoxWriter box(piece.view.empty() ? tensor.shape : piece.view,
                  elementBytes(tensor.dtype), piece,
                  [&](std::string_view bytes, int64_t place) {
                    return wrote = beside.write(bytes, place);
                  });
    const bool good = reader.read(
        tensor, piece, [&](std::string_view some) { return box.take(some); });
    if (!wrote)
      return failedToWrite();
    if (!good)
      return false;
  }
  std::string buffer(bufferBytes, '\0');
  for (int64_t from = 0; from < tensor.bytes;) {
    const ssize_t n = beside.read(
        buffer.data(),
        size_t(std::min<int64_t>(bufferBytes, tensor.bytes - from)), from);
    if (n <= 0)
      return failedToWrite();
    if (!take({buffer.data(), size_t(n)}))
      return false;
    from += n;
  }
  return true;
}

} // namespace accel::checkpoint
