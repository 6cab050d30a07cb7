//===- Diagnostics.h - What is wrong, where, and how to fix it --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One record per finding, collected by a DiagnosticEngine and rendered in
// clang's form or as JSON. Every code is described in docs/diagnostics.md.
//
// Severity is honest: an error means that the launch, or every rank later,
// fails (or that our own file is wrong); a warning means that it runs, but a
// key is ignored or means something else than it says; a note is worth knowing.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_DIAGNOSTICS_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_DIAGNOSTICS_H

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace accel {

enum class Severity { Note, Warning, Error };
/// "note", "warning", "error".
const char *toString(Severity severity);

/// The code of errors about input that is valid but that accel-opt cannot
/// handle yet: they make exit code 4 where other errors make 1.
inline constexpr const char *notSupportedCode = "not-supported";

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string code;  // "unknown-key"; described in docs/diagnostics.md
  std::string file;  // as the user named it; empty: the command line
  int line = 0;      // from 1; 0: unknown (the whole file)
  int column = 0;    // from 1, in characters; 0: unknown
  int endColumn = 0; // one past the last character on `line`; 0: a caret alone
  std::string key;   // dotted path ("fsdp_config.fsdp_version"); empty: none
  std::string message; // one sentence, lower case, no full stop
  std::string hint;    // what to write instead; empty: none
};

/// Process exit codes that findings alone decide.
enum class Outcome { Ok = 0, Invalid = 1, NotSupported = 4 };

/// Collects diagnostics. Not thread-safe.
class DiagnosticEngine {
public:
  DiagnosticEngine();
  ~DiagnosticEngine();
  DiagnosticEngine(const DiagnosticEngine &) = delete;
  DiagnosticEngine &operator=(const DiagnosticEngine &) = delete;

  /// Errors beyond this many are counted but not kept (0: no limit).
  void setMaxErrors(size_t limit) { maxErrors = limit; }

  /// Adds a finding. An exact repetition (same place, code and message) is
  /// dropped, so that two readers of one file may both look at it.
  void report(Diagnostic diagnostic);

  /// Short forms without a key; `line` 0 is the file as a whole.
  void error(std::string code, std::string file, std::string message,
             std::string hint = "");
  void warning(std::string code, std::string file, std::string message,
               std::string hint = "");
  void note(std::string code, std::string file, std::string message,
            std::string hint = "");

  /// Everything kept, in a stable order: by file (in the order in which files
  /// were first reported), line, column, then order of report.
  std::vector<Diagnostic> sorted() const;
  /// In order of report.
  const std::vector<Diagnostic> &all() const { return kept; }

  size_t errors() const { return errorCount; }
  size_t warnings() const { return warningCount; }
  bool hasErrors() const { return errorCount != 0; }
  /// Invalid if there is any error but "not-supported" ones, NotSupported if
  /// there are only those, Ok without errors.
  Outcome outcome() const;

  /// Gives the text of a file that cannot be read back from disk (standard
  /// input, a buffer in a test), for the source lines in renderText.
  void addSource(const std::string &file, std::string text);
  /// One line of `file` without its line break; empty if it cannot be had.
  /// Files are read once; binary, huge and vanished files give nothing.
  std::string sourceLine(const std::string &file, int line) const;

private:
  class Sources;
  std::vector<Diagnostic> kept;
  size_t maxErrors = 0, errorCount = 0, notSupportedCount = 0, warningCount = 0;
  std::unique_ptr<Sources> sources;
};

//===----------------------------------------------------------------------===//
// Rendering
//===----------------------------------------------------------------------===//

struct RenderOptions {
  bool colour = false;
  bool source = true;  // print the source line and the caret
  bool summary = true; // end with "1 error and 2 warnings"
};

/// True if `fd` is a terminal and NO_COLOR is unset or empty.
bool wantsColour(int fd);

/// "config.yaml:14:3: warning: message [code]", the source line, a caret and
/// "note: hint" for each finding, in the order of `sorted`.
std::string renderText(const DiagnosticEngine &engine,
                       const RenderOptions &options = {});

/// A JSON array of objects with exactly the members severity, code, file,
/// line, column, key, message, hint (key and hint may be null; line and column
/// are at least 1). Control characters and invalid UTF-8 are escaped. `indent`
/// spaces come before each object, which takes one line.
std::string renderJson(const DiagnosticEngine &engine, int indent = 2);

//===----------------------------------------------------------------------===//
// Help for messages
//===----------------------------------------------------------------------===//

/// The candidate nearest to `word` by edit distance (transpositions count as
/// one, case as a fraction), or an empty string if none is near enough.
std::string nearest(std::string_view word,
                    const std::vector<std::string> &candidates);

/// "did you mean 'x'?", or an empty string.
std::string didYouMean(std::string_view word,
                       const std::vector<std::string> &candidates);

/// `text` for use in a message: control characters and invalid UTF-8 replaced,
/// cut to at most `limit` characters.
std::string printable(std::string_view text, size_t limit = 60);

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_DIAGNOSTICS_H
