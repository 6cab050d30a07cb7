//===- JsonDocument.cpp - A JSON file with positions ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ConfigJson/JsonDocument.h"

#include "runtime/plan/JsonNesting.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace accel::huggingface;

namespace {

/// Walks JSON text and calls `visit(key, begin, end)` for each value. It stops
/// at the first thing that it does not understand, so any bytes are safe.
class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) {}

  template <typename Visitor> void run(Visitor visit) {
    bool expectValue = true;
    for (skipSpace(); at < text.size(); skipSpace()) {
      char c = text[at];
      if (c == '}' || c == ']') {
        if (stack.empty())
          return;
        stack.pop_back();
        ++at;
        expectValue = false;
      } else if (c == ',') {
        if (stack.empty())
          return;
        ++stack.back().index;
        ++at;
        expectValue = true;
      } else if (!expectValue) {
        return;
      } else {
        if (!stack.empty() && stack.back().object) {
          if (c != '"' || !takeString(stack.back().name))
            return;
          skipSpace();
          if (at >= text.size() || text[at] != ':')
            return;
          ++at;
          skipSpace();
          if (at >= text.size())
            return;
        }
        size_t begin = at;
        std::string key = currentKey();
        c = text[at];
        if (c == '{' || c == '[') {
          ++at;
          visit(key, begin, begin + 1);
          stack.push_back({c == '{', 0, "", std::move(key)});
          continue;
        }
        std::string ignored;
        if (c == '"' ? !takeString(ignored) : !takeWord())
          return;
        visit(key, begin, at);
        expectValue = false;
      }
    }
  }

private:
  struct Level {
    bool object;
    size_t index;
    std::string name; // of the member being read
    std::string prefix;
  };

  void skipSpace() {
    while (at < text.size() && std::strchr(" \t\r\n", text[at]) && text[at])
      ++at;
  }
  /// Takes a string literal; escapes are kept except for the quote's own.
  bool takeString(std::string &value) {
    value.clear();
    for (++at; at < text.size(); ++at) {
      if (text[at] == '"') {
        ++at;
        return true;
      }
      if (text[at] == '\\' && ++at >= text.size())
        return false;
      value += text[at];
    }
    return false;
  }
  bool takeWord() {
    size_t begin = at;
    while (at < text.size() &&
           (std::isalnum((unsigned char)text[at]) ||
            std::strchr("+-.", text[at])) &&
           text[at])
      ++at;
    return at > begin;
  }
  std::string currentKey() const {
    if (stack.empty())
      return "";
    const Level &level = stack.back();
    std::string own = level.object ? level.name : std::to_string(level.index);
    // Far below what any reader asks for; keeps deep nesting linear.
    if (level.prefix.size() > 512)
      return level.prefix;
    return level.prefix.empty() ? own : level.prefix + "." + own;
  }

  std::string_view text;
  size_t at = 0;
  std::vector<Level> stack;
};

/// Turns byte offsets, asked for in rising order, into positions.
class LineCounter {
public:
  explicit LineCounter(std::string_view text) : text(text) {}
  TextPosition operator()(size_t offset) {
    offset = std::min(offset, text.size());
    for (; at < offset; ++at) {
      if (text[at] == '\n') {
        ++line;
        column = 1;
      } else if (((unsigned char)text[at] & 0xc0) != 0x80) {
        ++column; // not inside a UTF-8 character
      }
    }
    return {line, column};
  }

private:
  std::string_view text;
  size_t at = 0;
  int line = 1, column = 1;
};

/// nlohmann's sentence without its prefix of identifier and position.
std::string phrase(const char *what) {
  std::string message = what;
  for (const char *mark : {"column ", "] "})
    if (size_t at = message.find(mark); at != std::string::npos) {
      size_t colon = mark[0] == 'c' ? message.find(": ", at) : at;
      if (colon != std::string::npos)
        message = message.substr(colon + 2);
      break;
    }
  return accel::printable(message, 160);
}

} // namespace

std::optional<JsonDocument> JsonDocument::parse(std::string_view text,
                                                JsonError &error) {
  JsonDocument document;
  if (const size_t at = plan::nestsDeeper(text); at != text.npos) {
    error.position = LineCounter(text)(at);
    error.message = "brackets nest deeper than " +
                    std::to_string(plan::maxJsonNesting) + " levels";
    return std::nullopt;
  }
  try {
    document.tree = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error &e) {
    error.position = LineCounter(text)(e.byte > 0 ? e.byte - 1 : 0);
    error.message = phrase(e.what());
    return std::nullopt;
  } catch (const nlohmann::json::exception &e) {
    // The one other cause is a number beyond a double; it has no position.
    error.message = "number out of range";
    LineCounter lines(text);
    bool found = false;
    Scanner(text).run([&](const std::string &, size_t begin, size_t end) {
      std::string word(text.substr(begin, std::min<size_t>(end - begin, 400)));
      if (!found && (std::isdigit((unsigned char)word[0]) || word[0] == '-') &&
          std::isinf(std::strtod(word.c_str(), nullptr))) {
        error.position = lines(begin);
        found = true;
      }
    });
    return std::nullopt;
  }
  LineCounter lines(text);
  Scanner(text).run([&](const std::string &key, size_t begin, size_t) {
    document.positions[key] = lines(begin);
  });
  return document;
}

TextPosition JsonDocument::position(const std::string &key) const {
  for (std::string prefix = key;;) {
    auto it = positions.find(prefix);
    if (it != positions.end())
      return it->second;
    size_t dot = prefix.rfind('.');
    if (prefix.empty())
      return {1, 1};
    prefix.resize(dot == std::string::npos ? 0 : dot);
  }
}

void accel::huggingface::reportFile(const std::string &path, int code,
                                    DiagnosticEngine &diagnostics) {
  if (code == ENOENT)
    diagnostics.error("file-not-found", path, "no such file");
  else
    diagnostics.error("file-unreadable", path,
                      std::string("cannot read this file: ") +
                          (code == EINVAL ? "it is not a regular file"
                                          : std::strerror(code)));
}

bool accel::huggingface::readFile(const std::string &path, uint64_t limit,
                                  std::string &text,
                                  DiagnosticEngine &diagnostics) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int code = file < 0 ? errno : 0;
  struct stat status = {};
  if (!code && ::fstat(file, &status) != 0)
    code = errno;
  if (!code && !S_ISREG(status.st_mode))
    code = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  bool tooLarge = !code && uint64_t(status.st_size) > limit;
  if (!code && !tooLarge) {
    text.resize(size_t(status.st_size));
    size_t done = 0;
    while (done < text.size() && !code) {
      ssize_t n = ::read(file, text.data() + done, text.size() - done);
      if (n > 0)
        done += size_t(n);
      else if (n == 0)
        break; // it became shorter; the reader of the text will notice
      else if (errno != EINTR)
        code = errno;
    }
    text.resize(done);
  }
  if (file >= 0)
    ::close(file);
  if (code)
    reportFile(path, code, diagnostics);
  else if (tooLarge)
    diagnostics.error("file-unreadable", path,
                      "cannot read this file: it is larger than " +
                          std::to_string(limit / 1000000) + " MB");
  return !code && !tooLarge;
}
