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
#include <vector>

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

/// The characters of a line, each as it is shown: what does not print becomes
/// one replacement character, so that columns stay in place.
std::vector<std::string> characters(const std::string &line) {
  std::vector<std::string> result;
  for (size_t i = 0; i < line.size();) {
    uint32_t code = 0xfffd;
    size_t length = std::max<size_t>(utf8Length(line, i, code), 1);
    result.push_back(code == '\t' ? "\t" : printable(line.substr(i, length)));
    i += length;
  }
  return result;
}

/// What the fix writes on `d.line`, if that is one short piece of text, and
/// the column where it stands (from 1; 0: nothing to show).
std::pair<std::string, int> shownFix(const DiagnosticEngine &engine,
                                     const Diagnostic &d) {
  if (d.fix.size() != 1)
    return {"", 0};
  const TextEdit &edit = d.fix[0];
  SourceRange at = engine.rangeOf(d.file, edit.begin, edit.end);
  if (at.line != d.line || at.endLine != d.line || edit.text.size() > widest ||
      edit.text.find_first_of("\n\r\t") != std::string::npos)
    return {"", 0};
  return {printable(edit.text, widest), edit.text.empty() ? 0 : at.column};
}

/// The source line, the caret line under it and the fix under that.
std::string excerpt(const DiagnosticEngine &engine, const std::string &line,
                    const Diagnostic &d, bool colour) {
  std::vector<std::string> letters = characters(line);
  int count = static_cast<int>(letters.size());
  // One beyond the end is where something is missing.
  int column = std::min(std::max(d.column, 1), count + 1);
  int first = 1, last = count;
  if (count > widest) {
    first = std::max(1, column - widest / 3);
    last = std::min(count, first + widest);
  }
  std::string marks(count + 2, ' ');
  auto underline = [&](const SourceRange &range) {
    if (range.line != d.line || range.column < 1)
      return;
    int end = range.endLine > range.line ? count + 1 : range.endColumn;
    for (int i = range.column; i < end && i <= count; ++i)
      marks[i] = '~';
  };
  underline({d.line, d.column, d.endLine ? d.endLine : d.line, d.endColumn});
  for (const SourceRange &range : d.ranges)
    underline(range);
  marks[column] = '^';
  marks.resize(marks.find_last_not_of(' ') + 1);

  std::string text = first > 1 ? "..." : "", margin = first > 1 ? "   " : "";
  std::string under = margin, replaced = margin;
  auto [fix, fixColumn] = shownFix(engine, d);
  for (int i = first; i <= last || i < static_cast<int>(marks.size()); ++i) {
    bool tab = i <= count && letters[i - 1] == "\t";
    if (i <= last)
      text += letters[i - 1];
    if (i < static_cast<int>(marks.size()) && i <= last + 1)
      under += tab && marks[i] == ' ' ? '\t' : marks[i];
    if (i < fixColumn)
      replaced += tab ? '\t' : ' ';
  }
  if (last < count)
    text += "...";
  size_t mark = under.find_first_not_of(" \t");
  std::string out = text + "\n" + under.substr(0, mark) +
                    painted(under.substr(mark), green, colour) + "\n";
  if (fixColumn >= first)
    out += replaced + painted(fix, green, colour) + "\n";
  return out;
}

std::string counted(size_t count, const char *word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

} // namespace

std::string accel::renderText(const DiagnosticEngine &engine,
                              const RenderOptions &options) {
  std::string out;
  for (const Diagnostic &d : engine.sorted()) {
    std::string place = d.file.empty() ? "accel-opt" : printablePath(d.file);
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
      out += " [" + d.code + (d.promoted ? ",-Werror]" : "]");
    out += "\n";
    if (options.source && d.line > 0) {
      std::string line = engine.sourceLine(d.file, d.line);
      if (!line.empty())
        out += excerpt(engine, line, d, options.colour);
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

std::string accel::jsonString(const std::string &text) {
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

static std::string jsonFix(const DiagnosticEngine &engine,
                           const Diagnostic &d) {
  if (d.fix.empty())
    return "null";
  std::string out = "[";
  for (const TextEdit &edit : d.fix) {
    SourceRange at = engine.rangeOf(d.file, edit.begin, edit.end);
    out += std::string(out.size() > 1 ? ", " : "") +
           "{\"begin\": " + std::to_string(edit.begin) +
           ", \"end\": " + std::to_string(edit.end) +
           ", \"line\": " + std::to_string(at.line) +
           ", \"column\": " + std::to_string(at.column) +
           ", \"end_line\": " + std::to_string(at.endLine) +
           ", \"end_column\": " + std::to_string(at.endColumn) +
           ", \"text\": " + jsonString(edit.text) + "}";
  }
  return out + "]";
}

std::string accel::renderJson(const DiagnosticEngine &engine, int indent) {
  std::string out = "[";
  auto nullable = [](const std::string &text) {
    return text.empty() ? std::string("null") : jsonString(text);
  };
  for (const Diagnostic &d : engine.sorted()) {
    int endLine = std::max({d.endLine, d.line, 1});
    int endColumn = std::max(
        d.endColumn, endLine > std::max(d.line, 1) ? 1 : std::max(d.column, 1));
    out += out.size() > 1 ? ",\n" : "\n";
    out += std::string(indent, ' ') + "{\"severity\": \"" +
           toString(d.severity) + "\", \"code\": " + jsonString(d.code) +
           ", \"file\": " + jsonString(d.file) +
           ", \"line\": " + std::to_string(std::max(d.line, 1)) +
           ", \"column\": " + std::to_string(std::max(d.column, 1)) +
           ", \"end_line\": " + std::to_string(endLine) +
           ", \"end_column\": " + std::to_string(endColumn) +
           ", \"key\": " + nullable(d.key) +
           ", \"message\": " + jsonString(d.message) +
           ", \"hint\": " + nullable(d.hint) +
           ", \"fix\": " + jsonFix(engine, d) + "}";
  }
  if (out.size() > 1)
    out += "\n" + std::string(std::max(indent - 2, 0), ' ');
  return out + "]";
}
