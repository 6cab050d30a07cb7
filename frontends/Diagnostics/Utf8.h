//===- Utf8.h - Characters of a byte string ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_UTF8_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace accel {

/// Bytes of the well-formed character at `position`, or 0 if there is none
/// (truncated, overlong, a surrogate or beyond U+10FFFF). `code` gets its
/// number.
size_t utf8Length(std::string_view text, size_t position, uint32_t &code);

/// Byte position of the first ill-formed character, or npos.
size_t findInvalidUtf8(std::string_view text);

void appendUtf8(std::string &text, uint32_t code);

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_UTF8_H
