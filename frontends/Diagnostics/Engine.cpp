//===- Engine.cpp - Collecting diagnostics --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace accel;

const char *accel::toString(Severity severity) {
  switch (severity) {
  case Severity::Note:
    return "note";
  case Severity::Warning:
    return "warning";
  case Severity::Error:
    return "error";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Source lines
//===----------------------------------------------------------------------===//

namespace {

/// A file's text and where its lines start.
struct Source {
  std::string text;
  std::vector<size_t> starts;

  explicit Source(std::string t) : text(std::move(t)) {
    starts.push_back(0);
    for (size_t i = 0; i < text.size(); ++i) {
      bool carriage =
          text[i] == '\r' && !(i + 1 < text.size() && text[i + 1] == '\n');
      if (text[i] == '\n' || carriage)
        starts.push_back(i + 1);
    }
  }

  std::string line(int number) const {
    if (number < 1 || static_cast<size_t>(number) > starts.size())
      return "";
    size_t begin = starts[number - 1];
    size_t end = text.find_first_of("\r\n", begin);
    return text.substr(begin, end == std::string::npos ? end : end - begin);
  }
};

/// A file as large as this is not read again only to show a line of it.
constexpr off_t largestSource = 16 << 20;

std::string readSource(const std::string &file) {
  struct stat info;
  // Only regular files: reading a pipe or a device twice may block.
  if (stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size > largestSource)
    return "";
  std::FILE *stream = std::fopen(file.c_str(), "rb");
  if (!stream)
    return "";
  std::string text(static_cast<size_t>(info.st_size), '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stream));
  std::fclose(stream);
  if (std::memchr(text.data(), '\0', text.size()))
    return ""; // binary
  return text;
}

} // namespace

class DiagnosticEngine::Sources {
public:
  std::map<std::string, Source> files;
};

DiagnosticEngine::DiagnosticEngine() : sources(std::make_unique<Sources>()) {}
DiagnosticEngine::~DiagnosticEngine() = default;

void DiagnosticEngine::addSource(const std::string &file, std::string text) {
  sources->files.insert_or_assign(file, Source(std::move(text)));
}

std::string DiagnosticEngine::sourceLine(const std::string &file,
                                         int line) const {
  if (file.empty() || line < 1)
    return "";
  auto found = sources->files.find(file);
  if (found == sources->files.end())
    found = sources->files.emplace(file, Source(readSource(file))).first;
  return found->second.line(line);
}

//===----------------------------------------------------------------------===//
// Findings
//===----------------------------------------------------------------------===//

/// More findings than this are counted but not kept, so that a huge file of
/// nothing but mistakes stays cheap.
constexpr size_t mostKept = 2000;

void DiagnosticEngine::report(Diagnostic diagnostic) {
  bool full = kept.size() >= mostKept;
  if (!full)
    for (const Diagnostic &other : kept)
      if (other.line == diagnostic.line && other.column == diagnostic.column &&
          other.code == diagnostic.code && other.file == diagnostic.file &&
          other.message == diagnostic.message)
        return;
  if (diagnostic.severity == Severity::Error) {
    ++errorCount;
    notSupportedCount += diagnostic.code == notSupportedCode;
    full |= maxErrors && errorCount > maxErrors;
  }
  warningCount += diagnostic.severity == Severity::Warning;
  if (!full)
    kept.push_back(std::move(diagnostic));
}

static Diagnostic plain(Severity severity, std::string code, std::string file,
                        std::string message, std::string hint) {
  Diagnostic d;
  d.severity = severity;
  d.code = std::move(code);
  d.file = std::move(file);
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}

void DiagnosticEngine::error(std::string code, std::string file,
                             std::string message, std::string hint) {
  report(plain(Severity::Error, std::move(code), std::move(file),
               std::move(message), std::move(hint)));
}
void DiagnosticEngine::warning(std::string code, std::string file,
                               std::string message, std::string hint) {
  report(plain(Severity::Warning, std::move(code), std::move(file),
               std::move(message), std::move(hint)));
}
void DiagnosticEngine::note(std::string code, std::string file,
                            std::string message, std::string hint) {
  report(plain(Severity::Note, std::move(code), std::move(file),
               std::move(message), std::move(hint)));
}

std::vector<Diagnostic> DiagnosticEngine::sorted() const {
  std::map<std::string, size_t> order;
  for (const Diagnostic &d : kept)
    order.emplace(d.file, order.size());
  std::vector<Diagnostic> result = kept;
  std::stable_sort(result.begin(), result.end(),
                   [&](const Diagnostic &a, const Diagnostic &b) {
                     if (a.file != b.file)
                       return order[a.file] < order[b.file];
                     if (a.line != b.line)
                       return a.line < b.line;
                     return a.column < b.column;
                   });
  return result;
}

Outcome DiagnosticEngine::outcome() const {
  if (errorCount == 0)
    return Outcome::Ok;
  return errorCount == notSupportedCount ? Outcome::NotSupported
                                         : Outcome::Invalid;
}
