//===- SourceText.h - A file's text, by line and by byte --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_SOURCETEXT_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_SOURCETEXT_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accel {

/// A text with an index of its lines. A line ends at "\n", "\r" or "\r\n". The
/// index has an entry for 64 lines, so that a large file stays cheap.
class SourceText {
public:
  explicit SourceText(std::string text);

  std::string_view text() const { return content; }
  /// A line (from 1) without its break; empty beyond the end.
  std::string_view line(int number) const;
  /// Line and column (from 1, in characters) of a byte; a byte order mark
  /// takes no column.
  std::pair<int, int> place(size_t byte) const;
  /// Codes that comments silence on a line: `# accel-opt: ignore=A,B` counts
  /// for its own line and, where it stands alone, for the next line that is no
  /// comment.
  const std::set<std::string> *ignoredOn(int line) const;
  static constexpr size_t mostIgnored = 10'000;
  /// Every code that such a comment names, with the byte where it stands, but
  /// no more than `mostIgnored`; comments behind those have no effect.
  const std::vector<std::pair<std::string, size_t>> &ignoredCodes() const {
    return named;
  }

private:
  std::string content;
  size_t markSize = 0; // of the byte order mark
  /// Where every 64th line starts: line 1, 65, ...
  mutable std::vector<uint32_t> starts;
  struct Line {
    int number = 0;
    size_t begin = 0, size = 0;
  };
  mutable Line lastLine; // that was asked for
  struct Place {
    size_t byte = 0;
    int line = 1, column = 1;
  };
  mutable Place last; // that was asked for
  std::map<int, std::set<std::string>> ignored;
  std::vector<std::pair<std::string, size_t>> named;

  void index() const;
  /// Where the line after the one at `begin` starts, or npos.
  size_t nextLine(size_t begin) const;
  void readComments();
};

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_SOURCETEXT_H
