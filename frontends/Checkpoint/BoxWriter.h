//===- BoxWriter.h - A box's bytes at their places --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_BOXWRITER_H
#define ACCEL_FRONTENDS_CHECKPOINT_BOXWRITER_H

#include "frontends/Checkpoint/Checkpoint.h"

#include <algorithm>
#include <functional>

namespace accel::checkpoint {

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

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_BOXWRITER_H
