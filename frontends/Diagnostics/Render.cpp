//===- Render.cpp - Diagnostics as text and as JSON -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/Utf8.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace accel;

bool accel::wantsColour(int fd) {
  const char *off = std::getenv("NO_COLOR");
  return !(off && *off) && isatty(fd);
}

namespace {

constexpr const char *bold = "\033[1m", *red = "\033[1;31m",
                     *magenta = "\033[1;35m", *cyan = "\033[1;36m",
                     *green = "\033[1;32m", *reset = "\033[0m";
/// A longer source line is shown in part, around the column.
constexpr int widest = 160;

std::string painted(const std::string &text, const char *colour, bool on) {
  return on ? colour + text + reset : text;
}

/// The source line and the caret line under it. Characters that do not print
/// become one replacement character, so that columns stay in place.
std::string excerpt(const std::string &line, const Diagnostic &d, bool colour) {
  auto next = [&](size_t i, uint32_t &code) {
    size_t length = utf8Length(line, i, code);
    if (length == 0)
      code = 0xfffd;
    return length ? length : 1;
  };
  uint32_t code = 0;
  int count = 0;
  for (size_t i = 0; i < line.size(); i += next(i, code))
    ++count;
  // One beyond the end is where something is missing.
  int column = std::min(std::max(d.column, 1), count + 1);
  int first = 1, last = count;
  if (count > widest) {
    first = std::max(1, column - widest / 3);
    last = std::min(count, first + widest);
  }
  std::string text = first > 1 ? "..." : "", under = first > 1 ? "   " : "";
  size_t at = 0;
  for (int i = 1; i <= last; ++i) {
    size_t length = next(at, code);
    if (i >= first) {
      text += code == '\t' ? "\t" : printable(line.substr(at, length));
      if (i < column)
        under += code == '\t' ? "\t" : " ";
    }
    at += length;
  }
  if (last < count)
    text += "...";
  int end = std::min(std::max(d.endColumn, column + 1), last + 1);
  std::string mark = "^";
  for (int i = column + 1; i < end; ++i)
    mark += '~';
  return text + "\n" + under + painted(mark, green, colour) + "\n";
}

std::string counted(size_t count, const char *word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

} // namespace

std::string accel::renderText(const DiagnosticEngine &engine,
                              const RenderOptions &options) {
  std::string out;
  for (const Diagnostic &d : engine.sorted()) {
    std::string place = d.file.empty() ? "accel-opt" : printable(d.file, 4096);
    if (d.line > 0) {
      place += ":" + std::to_string(d.line);
      if (d.column > 0)
        place += ":" + std::to_string(d.column);
    }
    const char *colour = d.severity == Severity::Error     ? red
                         : d.severity == Severity::Warning ? magenta
                                                           : cyan;
    out += painted(place + ":", bold, options.colour) + " " +
           painted(std::string(toString(d.severity)) + ":", colour,
                   options.colour) +
           " " + painted(d.message, bold, options.colour);
    if (!d.code.empty())
      out += " [" + d.code + "]";
    out += "\n";
    if (options.source && d.line > 0) {
      std::string line = engine.sourceLine(d.file, d.line);
      if (!line.empty())
        out += excerpt(line, d, options.colour);
    }
    if (!d.hint.empty())
      out += painted(place + ":", bold, options.colour) + " " +
             painted("note:", cyan, options.colour) + " " + d.hint + "\n";
  }
  if (!options.summary)
    return out;
  size_t shown = 0;
  for (const Diagnostic &d : engine.all())
    shown += d.severity == Severity::Error;
  if (shown < engine.errors())
    out +=
        "(" + counted(engine.errors() - shown, "more error") + " not shown)\n";
  std::string summary;
  if (engine.errors())
    summary = counted(engine.errors(), "error");
  if (engine.warnings())
    summary += (summary.empty() ? "" : " and ") +
               counted(engine.warnings(), "warning");
  if (!summary.empty())
    out += summary + "\n";
  return out;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0;
    size_t length = utf8Length(text, i, code);
    if (length == 0) {
      out += "\\ufffd";
      ++i;
      continue;
    }
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code < 0x20 || code == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  return out + "\"";
}

std::string accel::renderJson(const DiagnosticEngine &engine, int indent) {
  std::string out = "[";
  auto nullable = [](const std::string &text) {
    return text.empty() ? std::string("null") : quoted(text);
  };
  for (const Diagnostic &d : engine.sorted()) {
    out += out.size() > 1 ? ",\n" : "\n";
    out += std::string(indent, ' ') + "{\"severity\": \"" +
           toString(d.severity) + "\", \"code\": " + quoted(d.code) +
           ", \"file\": " + quoted(d.file) +
           ", \"line\": " + std::to_string(std::max(d.line, 1)) +
           ", \"column\": " + std::to_string(std::max(d.column, 1)) +
           ", \"key\": " + nullable(d.key) +
           ", \"message\": " + quoted(d.message) +
           ", \"hint\": " + nullable(d.hint) + "}";
  }
  if (out.size() > 1)
    out += "\n" + std::string(std::max(indent - 2, 0), ' ');
  return out + "]";
}
