//===- Input.h - What libyaml reads, and where ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// libyaml's scanner and PyYAML's own differ in a few places. The text is
// changed a little before libyaml reads it, and positions are traced back.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_INPUT_H
#define ACCEL_FRONTENDS_YAML_INPUT_H

#include "frontends/Yaml/Yaml.h"

#include <algorithm>

namespace accel::yaml {

inline constexpr std::string_view byteOrderMark = "\xef\xbb\xbf";

void replaceAll(std::string &text, std::string_view what,
                std::string_view with);

/// A character of three bytes for private use that `text` does not have.
std::string unusedCharacter(std::string_view text);

/// Directives before the document that only PyYAML takes: it ignores unknown
/// ones (here: makes them comments) and takes any version 1.x (here: 1.1).
/// `text` keeps its length. Returns whether one was ignored: the document must
/// then start with `---`.
bool adaptDirectives(std::string &text);

/// From libyaml's marks, which count characters, to bytes, lines and columns.
class Positions {
public:
  /// `input` is what libyaml reads: the file without its first `shift` bytes
  /// and with single bytes added before those in `added` (sorted).
  Positions(std::string_view input, size_t shift,
            const std::vector<size_t> &added, const std::string &file,
            const DiagnosticEngine &engine)
      : shift(shift), input(input), added(added), file(file), engine(engine) {
    size_t count = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      if ((static_cast<unsigned char>(input[i]) & 0xc0) == 0x80)
        continue; // a further byte of a character
      if (count++ % stride == 0)
        starts.push_back(static_cast<uint32_t>(i));
    }
    ascii = count == input.size();
    // Line breaks of YAML 1.1 that no editor counts.
    for (std::string_view mark : {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
      otherBreaks |= !ascii && input.find(mark) != input.npos;
    if (ascii)
      starts.clear();
  }

  /// Of the file.
  size_t byteOf(size_t index) const {
    size_t byte = inInput(index);
    size_t before = static_cast<size_t>(
        std::lower_bound(added.begin(), added.end(), byte) - added.begin());
    return byte - before + shift;
  }

  /// Of `input`.
  size_t inInput(size_t index) const {
    if (ascii)
      return std::min(index, input.size());
    size_t entry = index / stride;
    if (entry >= starts.size())
      return input.size();
    size_t byte = starts[entry];
    for (size_t i = index % stride; i > 0 && byte < input.size(); --i)
      do
        ++byte;
      while (byte < input.size() &&
             (static_cast<unsigned char>(input[byte]) & 0xc0) == 0x80);
    return byte;
  }

  /// Of a mark of libyaml.
  Mark at(size_t line, size_t column, size_t index) const {
    Mark mark{static_cast<int>(line) + 1, static_cast<int>(column) + 1,
              byteOf(index)};
    // libyaml counts a line break at the end, even if none is there.
    bool atEnd = mark.byte - shift + added.size() == input.size();
    return otherBreaks || atEnd || !added.empty() ? atByte(mark.byte) : mark;
  }

  /// Of a byte of the file.
  Mark atByte(size_t byte) const {
    SourceRange range = engine.rangeOf(file, byte, byte);
    return {std::max(range.line, 1), std::max(range.column, 1), byte};
  }

private:
  static constexpr size_t stride = 64;
  std::vector<uint32_t> starts; // bytes of every 64th character
  size_t shift;
  std::string_view input;
  const std::vector<size_t> &added;
  const std::string &file;
  const DiagnosticEngine &engine;
  bool ascii = true, otherBreaks = false;
};

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_INPUT_H
