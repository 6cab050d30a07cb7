//===- Text.cpp - Words and characters in messages ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/Utf8.h"

#include <algorithm>
#include <array>

using namespace accel;

size_t accel::utf8Length(std::string_view text, size_t position,
                         uint32_t &code) {
  auto byte = [&](size_t i) -> uint32_t {
    return position + i < text.size()
               ? static_cast<unsigned char>(text[position + i])
               : 0u;
  };
  if (position >= text.size())
    return 0;
  uint32_t first = byte(0);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4)
    return 0;
  uint32_t value = first & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest[length] || (value >= 0xd800 && value < 0xe000) ||
      value > 0x10ffff)
    return 0;
  code = value;
  return length;
}

size_t accel::findInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    uint32_t code = 0;
    size_t length = utf8Length(text, i, code);
    if (length == 0)
      return i;
    i += length;
  }
  return std::string_view::npos;
}

void accel::appendUtf8(std::string &text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

std::string accel::printable(std::string_view text, size_t limit) {
  std::string result;
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    if (count == limit)
      return result + "...";
    uint32_t code = 0;
    size_t length = utf8Length(text, i, code);
    if (length == 0) {
      result += "\xef\xbf\xbd"; // U+FFFD
      ++i;
    } else if (code == '\n' || code == '\t' || code == '\r') {
      result += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
      i += length;
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0) ||
               (code >= 0x200b && code <= 0x200f) ||
               (code >= 0x202a && code <= 0x202e) || code == 0x2028 ||
               code == 0x2029 || code == 0xfeff) {
      // Control, zero-width and direction-changing characters would make the
      // message read as something else than it is.
      result += "\xef\xbf\xbd";
      i += length;
    } else {
      result += text.substr(i, length);
      i += length;
    }
  }
  return result;
}

std::string accel::printablePath(std::string_view path) {
  return printable(path, 4096); // Linux's PATH_MAX
}

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

/// Restricted Damerau-Levenshtein distance in quarters: a changed, missing,
/// extra or swapped letter is 4, a letter of the other case 1.
/// Whatever exceeds `limit` is told as more than it.
unsigned distance(std::string_view a, std::string_view b, unsigned limit) {
  std::vector<unsigned> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = 4 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = 4 * i;
    for (size_t j = 1; j <= b.size(); ++j) {
      unsigned change = a[i - 1] == b[j - 1]                 ? 0
                        : lower(a[i - 1]) == lower(b[j - 1]) ? 1
                                                             : 4;
      row[j] = std::min({last[j] + 4, row[j - 1] + 4, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 4);
    }
    // Later rows are no less than the least of two neighbouring ones.
    if (std::min(*std::min_element(row.begin(), row.end()),
                 *std::min_element(last.begin(), last.end())) > limit)
      return limit + 1;
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// How often each letter, in lower case, stands in a word.
std::array<int, 256> letters(std::string_view word) {
  std::array<int, 256> counts{};
  for (char c : word)
    ++counts[static_cast<unsigned char>(lower(c))];
  return counts;
}

/// No more than the distance of the word of `counts` from `b`: each letter that
/// one of them lacks costs 4, whatever stands where.
unsigned leastDistance(std::array<int, 256> counts, size_t size,
                       std::string_view b) {
  size_t common = 0;
  for (char c : b)
    common += counts[static_cast<unsigned char>(lower(c))]-- > 0;
  return 4 * static_cast<unsigned>(std::max(size, b.size()) - common);
}

} // namespace

std::string accel::nearest(std::string_view word,
                           const std::vector<std::string> &candidates) {
  // A megabyte-long key is no misspelling of anything.
  if (word.empty() || word.size() > 100)
    return "";
  std::string best;
  // As in clang: at most a third of the letters may differ.
  unsigned limit = 4 * ((static_cast<unsigned>(word.size()) + 2) / 3);
  const std::array<int, 256> counts = letters(word);
  for (const std::string &candidate : candidates) {
    if (candidate == word ||
        leastDistance(counts, word.size(), candidate) > limit)
      continue;
    unsigned d = distance(word, candidate, limit);
    if (d <= limit && (best.empty() || d < limit)) {
      best = candidate;
      limit = d;
    }
  }
  return best;
}

std::string accel::didYouMean(std::string_view word,
                              const std::vector<std::string> &candidates) {
  std::string best = nearest(word, candidates);
  return best.empty() ? best : "did you mean '" + best + "'?";
}

std::string accel::oneOf(const std::vector<std::string> &values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + values[i];
  return text;
}
