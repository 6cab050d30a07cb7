//===- PieceReader.h - The bytes of pieces of tensors -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Gives the bytes of a piece, wherever it lies, through one buffer: in a file,
// or in an entry of a zip in a file.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_PIECEREADER_H
#define ACCEL_FRONTENDS_CHECKPOINT_PIECEREADER_H

#include "frontends/Checkpoint/Checkpoint.h"
#include "frontends/Checkpoint/SliceChecksums.h"

#include <functional>
#include <map>
#include <tuple>

namespace accel::checkpoint {

class PieceReader {
public:
  using Take = std::function<bool(std::string_view)>;

  explicit PieceReader(DiagnosticEngine &diagnostics)
      : diagnostics(diagnostics) {}

  /// Gives the elements of a piece of `tensor`, row by row, to `take` in parts
  /// of at most 4 MiB. False where that says so, or the piece cannot be read,
  /// which is reported.
  bool read(const Tensor &tensor, const Piece &piece, const Take &take);

  /// Whether number() reads the tensor.
  static bool isNumber(const Tensor &tensor);
  /// The number in a floating-point tensor of one element.
  std::optional<double> number(const Tensor &tensor);

  /// Whether what was read of entries is what their zips say. Reports.
  bool verify();

private:
  using Key = std::tuple<std::string, int64_t, int64_t>;
  static Key keyOf(const Piece &piece) {
    return {piece.file, piece.begin, piece.length};
  }
  bool damaged(const Tensor &tensor, const Piece &piece,
               const std::string &message,
               const std::string &hint =
                   "copy the file again, or save the checkpoint again");
  bool readFile(const Tensor &tensor, const Piece &piece, int64_t bytes,
                const Take &take);
  bool readZip(const Tensor &tensor, const Piece &piece, int64_t bytes,
               const Take &take);
  torchexport::Archive *open(const Piece &piece, std::string &error);
  bool findTensor(torchexport::Archive &archive, const Tensor &tensor,
                  const Piece &piece, std::string &entry, int64_t &begin);

  DiagnosticEngine &diagnostics;
  std::string buffer;
  std::map<Key, torchexport::Archive> archives; // that are open
  std::map<Key, SliceChecksums> slices;
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_PIECEREADER_H
