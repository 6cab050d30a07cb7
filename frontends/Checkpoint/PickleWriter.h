//===- PickleWriter.h - Pickles that torch reads ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes protocol 2: values one behind the other, containers between `mark` and
// what ends them. Nothing is shared, so no memo is needed.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_PICKLEWRITER_H
#define ACCEL_FRONTENDS_CHECKPOINT_PICKLEWRITER_H

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accel::checkpoint {

class PickleWriter {
public:
  PickleWriter() : bytes("\x80\x02") {}

  std::string finish() { return std::move(bytes += '.'); }

  void none() { bytes += 'N'; }
  void boolean(bool value) { bytes += value ? '\x88' : '\x89'; }
  void integer(int64_t value) {
    if (value >= 0 && value < 256) {
      bytes += 'K';
      little(uint64_t(value), 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      bytes += 'J';
      little(uint64_t(value), 4);
    } else {
      bytes += "\x8a\x08";
      little(uint64_t(value), 8);
    }
  }
  void real(double value) {
    bytes += 'G';
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes += char(bits >> shift);
  }
  void text(std::string_view value) {
    bytes += 'X';
    little(value.size(), 4);
    bytes += value;
  }
  /// A class or function.
  void global(std::string_view module, std::string_view name) {
    bytes += 'c';
    (bytes += module) += '\n';
    (bytes += name) += '\n';
  }

  void mark() { bytes += '('; }
  void tuple() { bytes += 't'; } // what stands behind the mark
  void emptyList() { bytes += ']'; }
  void appends() { bytes += 'e'; } // to the list before the mark
  void emptyDict() { bytes += '}'; }
  void items() { bytes += 'u'; } // keys and values, to the dictionary
  /// A tuple of what was written last.
  void tupleOfOne() { bytes += '\x85'; }
  void integers(const std::vector<int64_t> &values) {
    mark();
    for (int64_t value : values)
      integer(value);
    tuple();
  }
  void call() { bytes += 'R'; } // the global with the tuple behind it
  /// An object of the global, made without arguments.
  void object() { bytes += ")\x81"; }
  void state() { bytes += 'b'; } // gives it what was written last
  void persistent() { bytes += 'Q'; }

private:
  void little(uint64_t value, int width) {
    for (int i = 0; i < width; ++i)
      bytes += char(value >> (8 * i));
  }

  std::string bytes;
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_PICKLEWRITER_H
