//===- Engine.cpp - Collecting diagnostics --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/SourceText.h"

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
  std::map<std::string, SourceText> files;

  const SourceText *find(const std::string &file) {
    if (file.empty())
      return nullptr;
    auto found = files.find(file);
    if (found == files.end())
      found = files.emplace(file, SourceText(readSource(file))).first;
    return &found->second;
  }
};

DiagnosticEngine::DiagnosticEngine() : sources(std::make_unique<Sources>()) {}
DiagnosticEngine::~DiagnosticEngine() = default;

void DiagnosticEngine::addSource(const std::string &file, std::string text) {
  sources->files.insert_or_assign(file, SourceText(std::move(text)));
}

std::string_view DiagnosticEngine::source(const std::string &file) const {
  const SourceText *text = sources->find(file);
  return text ? text->text() : std::string_view();
}

std::string DiagnosticEngine::sourceLine(const std::string &file,
                                         int line) const {
  const SourceText *text = line < 1 ? nullptr : sources->find(file);
  // Nobody reads a longer one.
  constexpr size_t longest = 1 << 16;
  std::string_view found = text ? text->line(line) : "";
  return std::string(found.size() <= longest ? found : "");
}

SourceRange DiagnosticEngine::rangeOf(const std::string &file, size_t begin,
                                      size_t end) const {
  const SourceText *text = sources->find(file);
  if (!text || end < begin || end > text->text().size())
    return {};
  auto [line, column] = text->place(begin);
  auto [endLine, endColumn] = text->place(end);
  return {line, column, endLine, endColumn};
}

//===----------------------------------------------------------------------===//
// Findings
//===----------------------------------------------------------------------===//

/// More findings than this are counted but not kept, so that a huge file of
/// nothing but mistakes stays cheap.
constexpr size_t mostKept = 2000;

/// Without these there is no document to say anything about.
static bool isFatal(const std::string &code) {
  return code == "yaml-syntax" || code == "yaml-limit" ||
         code == "not-a-mapping" || code.starts_with("file-");
}

bool DiagnosticEngine::isSilent(const Diagnostic &d) const {
  if (d.severity == Severity::Error &&
      (!policy.silenceErrors || isFatal(d.code)))
    return false;
  if (policy.silent.contains(d.code))
    return true;
  // Only a text that was parsed: asking must not read files.
  auto source = sources->files.find(d.file);
  if (source == sources->files.end())
    return false;
  const std::set<std::string> *codes = source->second.ignoredOn(d.line);
  return codes && codes->contains(d.code);
}

void DiagnosticEngine::report(Diagnostic diagnostic) {
  if (isSilent(diagnostic)) {
    ++silencedCount;
    silencedErrorCount += diagnostic.severity == Severity::Error;
    return;
  }
  if (diagnostic.severity == Severity::Warning &&
      (policy.errors.contains(diagnostic.code) ||
       (policy.warningsAreErrors &&
        !policy.staysWarning.contains(diagnostic.code)))) {
    diagnostic.severity = Severity::Error;
    diagnostic.promoted = true;
  }
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
