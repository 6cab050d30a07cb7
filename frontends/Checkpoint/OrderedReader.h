//===- OrderedReader.h - Tensors from their first element on ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Gives a tensor's bytes row by row, however its pieces cut it, for files that
// are written from the front to the back.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_ORDEREDREADER_H
#define ACCEL_FRONTENDS_CHECKPOINT_ORDEREDREADER_H

#include "frontends/Checkpoint/PieceReader.h"

namespace accel::checkpoint {

class OrderedReader {
public:
  /// `scratch` is a file that may be written and is removed again: for tensors
  /// that pieces cut along other dimensions than the first. `folderBytes`: as
  /// of reportUnwritten.
  OrderedReader(std::string scratch, int64_t folderBytes,
                DiagnosticEngine &diagnostics)
      : scratch(std::move(scratch)), folderBytes(folderBytes),
        diagnostics(diagnostics), reader(diagnostics) {}

  /// False where `take` says so, or the tensor cannot be read, which is
  /// reported.
  bool read(const Tensor &tensor, const PieceReader::Take &take);

  /// As PieceReader's.
  bool verify() { return reader.verify(); }

private:
  bool readByScratch(const Tensor &tensor, const PieceReader::Take &take);
  bool failedToWrite();

  const std::string scratch;
  const int64_t folderBytes;
  DiagnosticEngine &diagnostics;
  PieceReader reader;
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_ORDEREDREADER_H
