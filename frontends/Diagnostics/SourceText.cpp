//===- SourceText.cpp - A file's text, by line and by byte ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/SourceText.h"
#include "frontends/Diagnostics/Utf8.h"

#include <algorithm>

using namespace accel;

namespace {
constexpr size_t stride = 64; // lines per entry of the index
constexpr std::string_view ignoreWord = "accel-opt: ignore=";
} // namespace

SourceText::SourceText(std::string text) : content(std::move(text)) {
  if (content.starts_with("\xef\xbb\xbf"))
    markSize = 3;
  if (content.find(ignoreWord) != std::string::npos)
    readComments();
}

size_t SourceText::nextLine(size_t begin) const {
  size_t at = content.find_first_of("\r\n", begin);
  if (at == std::string::npos)
    return at;
  bool pair =
      content[at] == '\r' && at + 1 < content.size() && content[at + 1] == '\n';
  return at + (pair ? 2 : 1);
}

void SourceText::index() const {
  if (!starts.empty())
    return;
  starts.push_back(0);
  size_t count = 0;
  for (size_t at = nextLine(0); at != std::string::npos; at = nextLine(at))
    if (++count % stride == 0)
      starts.push_back(static_cast<uint32_t>(at));
}

std::string_view SourceText::line(int number) const {
  index();
  if (number < 1)
    return "";
  // Many findings stand on one line, which may be long.
  std::string_view all = content;
  if (number == lastLine.number)
    return all.substr(lastLine.begin, lastLine.size);
  size_t before = static_cast<size_t>(number) - 1;
  if (before / stride >= starts.size())
    return "";
  size_t begin = starts[before / stride];
  for (size_t i = before % stride; i > 0; --i) {
    begin = nextLine(begin);
    if (begin == std::string::npos)
      return "";
  }
  if (begin == 0)
    begin = markSize;
  size_t end = content.find_first_of("\r\n", begin);
  if (end == std::string::npos)
    end = content.size();
  lastLine = {number, begin, end - begin};
  return all.substr(begin, end - begin);
}

std::pair<int, int> SourceText::place(size_t byte) const {
  if (byte > content.size())
    return {0, 0};
  index();
  auto after = std::upper_bound(starts.begin(), starts.end(), byte);
  size_t entry = static_cast<size_t>(after - starts.begin()) - 1;
  Place at{starts[entry], static_cast<int>(entry * stride) + 1, 1};
  if (at.byte == 0)
    at.byte = std::min(markSize, byte);
  // Places are asked for in order: go on from the last one.
  if (last.byte >= at.byte && last.byte <= byte)
    at = last;
  while (at.byte < byte) {
    char c = content[at.byte];
    if (c == '\n' || (c == '\r' && !(at.byte + 1 < content.size() &&
                                     content[at.byte + 1] == '\n'))) {
      ++at.byte;
      ++at.line;
      at.column = 1;
      continue;
    }
    uint32_t code = 0;
    at.byte += std::max<size_t>(utf8Length(content, at.byte, code), 1);
    ++at.column;
  }
  last = at;
  return {at.line, at.column};
}

const std::set<std::string> *SourceText::ignoredOn(int line) const {
  auto found = ignored.find(std::max(line, 1));
  return found == ignored.end() ? nullptr : &found->second;
}

void SourceText::readComments() {
  constexpr std::string_view blanks = " \t";
  std::set<std::string> above;
  int number = 1;
  std::string_view all = content;
  for (size_t begin = markSize, next = 0; begin <= content.size();
       begin = next, ++number) {
    next = nextLine(begin);
    std::string_view text =
        all.substr(begin, next == std::string::npos ? next : next - begin);
    size_t first = text.find_first_not_of(" \t\r\n");
    bool comment = first != text.npos && text[first] == '#';
    size_t word =
        named.size() < mostIgnored ? text.find(ignoreWord) : text.npos;
    std::set<std::string> here;
    if (word != text.npos) {
      // "# accel-opt: ..." with the sign at the start or after a blank.
      size_t sign = word;
      while (sign > 0 && blanks.find(text[sign - 1]) != blanks.npos)
        --sign;
      bool isComment =
          sign > 0 && text[sign - 1] == '#' &&
          (sign == 1 || blanks.find(text[sign - 2]) != blanks.npos);
      size_t at = word + ignoreWord.size();
      while (isComment && at < text.size() && named.size() < mostIgnored) {
        size_t end = std::min(text.find_first_of(", \t\r\n#", at), text.size());
        if (end > at) {
          here.emplace(text.substr(at, end - at));
          named.emplace_back(text.substr(at, end - at), begin + at);
        }
        if (end == text.size() || text[end] != ',')
          break;
        at = text.find_first_not_of(blanks, end + 1);
      }
    }
    if (!here.empty())
      ignored[number].insert(here.begin(), here.end());
    if (comment) {
      above.insert(here.begin(), here.end());
    } else if (first != text.npos) {
      if (!above.empty())
        ignored[number].insert(above.begin(), above.end());
      above.clear();
    }
    if (next == std::string::npos)
      break;
  }
}
