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
#include <set>
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

/// A stretch of a file; the end is one past its last character.
struct SourceRange {
  int line = 0, column = 0; // from 1, columns in characters; 0: none
  int endLine = 0, endColumn = 0;
};

/// Replaces the bytes [begin, end) of a file by `text` (inserts if they are
/// equal). Byte 0 is the file's first, a byte order mark included.
struct TextEdit {
  size_t begin = 0, end = 0;
  std::string text;
};

/// A finding. Its place is where the caret stands: the value if that is wrong,
/// the key if the key is. Everything else may stay empty.
struct Diagnostic {
  Severity severity = Severity::Error;
  std::string code;    // "unknown-key"; described in docs/diagnostics.md
  std::string file;    // as the user named it; empty: the command line
  int line = 0;        // from 1; 0: unknown (the whole file)
  int column = 0;      // from 1, in characters; 0: unknown
  int endColumn = 0;   // one past the last character; 0: a caret alone
  std::string key;     // dotted path ("fsdp_config.fsdp_version"); empty: none
  std::string message; // one sentence, lower case, no full stop
  std::string hint;    // what to write instead; empty: none

  int endLine = 0; // line of `endColumn`; 0: the same line
  /// Further stretches of the same file that belong to the finding, such as
  /// the key of a wrong value; underlined if they stand on `line`.
  std::vector<SourceRange> ranges;
  /// What `lint --fix` does about it, all or nothing: edits of `file` that do
  /// not overlap (yaml::Editor makes them). It does what `hint` says, and it
  /// leaves the meaning of every other line as it is. Empty: no fix that is
  /// surely meant.
  std::vector<TextEdit> fix;
  /// Became an error by -Werror.
  bool promoted = false;

  /// Sets line, column, endLine and endColumn.
  void setRange(const SourceRange &range) {
    line = range.line;
    column = range.column;
    endLine = range.endLine;
    endColumn = range.endColumn;
  }
};

/// What the command line and comments change about findings.
struct DiagnosticPolicy {
  bool warningsAreErrors = false;     // -Werror
  std::set<std::string> errors;       // -Werror=CODE: these warnings
  std::set<std::string> staysWarning; // -Wno-error=CODE: not by -Werror
  std::set<std::string> silent;       // -Wno-CODE
  /// Whether -Wno-CODE and comments silence errors too. Only `lint` may say
  /// so: a planner that misses an error would work with half a configuration.
  bool silenceErrors = false;
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

  /// Applies to what is reported from now on.
  void setPolicy(DiagnosticPolicy newPolicy) { policy = std::move(newPolicy); }

  /// Adds a finding, unless -Wno-CODE or a comment `# accel-opt: ignore=CODE`
  /// on its line or above it silences it. An exact repetition (same place, code
  /// and message) is dropped, so that two readers of one file may both look at
  /// it.
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

  /// Gives the text of a file as it was parsed, for the source lines in
  /// renderText, for comments that silence, and for fixes.
  void addSource(const std::string &file, std::string text);
  /// That text; without addSource the file is read, once. Binary, huge and
  /// vanished files give nothing. Valid until addSource names the file again.
  std::string_view source(const std::string &file) const;
  /// One line of `file` without its line break; empty if it cannot be had.
  std::string sourceLine(const std::string &file, int line) const;
  /// Line and column of a byte of `file`; {0, 0, 0, 0} if it has no such byte.
  /// (The end of the text counts as one.)
  SourceRange rangeOf(const std::string &file, size_t begin, size_t end) const;
  /// Findings that -Wno-CODE or a comment silenced, and the errors of them.
  size_t silenced() const { return silencedCount; }
  size_t silencedErrors() const { return silencedErrorCount; }

private:
  class Sources;
  bool isSilent(const Diagnostic &diagnostic) const;

  std::vector<Diagnostic> kept;
  DiagnosticPolicy policy;
  size_t silencedCount = 0, silencedErrorCount = 0;
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

/// "config.yaml:14:3: warning: message [code]", the source line, under it a
/// caret with the ranges and what the fix would write there, and "note: hint"
/// for each finding, in the order of `sorted`.
std::string renderText(const DiagnosticEngine &engine,
                       const RenderOptions &options = {});

/// A JSON array of objects with exactly the members severity, code, file,
/// line, column, end_line, end_column, key, message, hint, fix. Lines and
/// columns are at least 1, and the end is the start where it is not known; key,
/// hint and fix may be null. fix is a list of {begin, end (bytes), line,
/// column, end_line, end_column, text}. Control characters and invalid UTF-8
/// are escaped. `indent` spaces come before each object, which takes one line.
std::string renderJson(const DiagnosticEngine &engine, int indent = 2);

/// `text` as a JSON string, as renderJson writes them.
std::string jsonString(const std::string &text);

//===----------------------------------------------------------------------===//
// What findings are shown as
//===----------------------------------------------------------------------===//

/// Every code that docs/diagnostics.md describes.
const std::vector<std::string> &diagnosticCodes();

/// Understands what follows `-W`: "error", "error=CODE", "no-error=CODE",
/// "no-CODE". Returns what is wrong with it, or an empty string.
std::string addWarningFlag(DiagnosticPolicy &policy, std::string_view flag);

/// Warns (ignore-comment) about codes in comments that no diagnostic has.
void checkIgnoreComments(const std::string &file, DiagnosticEngine &engine);

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

/// "a, b or c".
std::string oneOf(const std::vector<std::string> &values);

/// `text` for use in a message: control characters and invalid UTF-8 replaced,
/// cut to at most `limit` characters.
std::string printable(std::string_view text, size_t limit = 60);

/// A path or address for use in a message: whole, as it must be found again.
/// Only what exceeds a path's greatest length (PATH_MAX) is cut.
std::string printablePath(std::string_view path);

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_DIAGNOSTICS_H
