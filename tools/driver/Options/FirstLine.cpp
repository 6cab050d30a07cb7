//===- FirstLine.cpp - What a file's first line says of it ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/FirstLine.h"

#include "frontends/Yaml/Yaml.h"

#include <filesystem>

namespace accel {

/// A path from where the file is; a name, of the Hub or a device, is no path.
static std::string fromFolderOf(const std::string &path,
                                const std::string &value) {
  const std::filesystem::path found =
      std::filesystem::path(path).parent_path() / value;
  std::error_code error;
  return std::filesystem::exists(found, error) ? found.string() : value;
}

FirstLine readFirstLine(const std::string &path, std::string_view text,
                        DiagnosticEngine &engine) {
  constexpr std::string_view head = "# accel-opt:";
  constexpr std::string_view mark = "\xEF\xBB\xBF", blanks = " \t\r";
  FirstLine result;
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.substr(0, mark.size()) == mark)
    line.remove_prefix(mark.size());
  if (line.substr(0, head.size()) != head)
    return result;
  line.remove_prefix(head.size());
  for (size_t at = 0;
       (at = line.find_first_not_of(blanks, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const std::string value(
        equals == std::string_view::npos ? "" : word.substr(equals + 1));
    if (name == "ignore") // silences codes (frontends/Diagnostics)
      return result;
    if ((name == "model" || name == "target") && !value.empty()) {
      (name == "model" ? result.model : result.target) =
          fromFolderOf(path, value);
    } else {
      Diagnostic d;
      d.severity = Severity::Warning;
      d.code = "first-line";
      d.file = path;
      const size_t byte = static_cast<size_t>(word.data() - text.data());
      engine.addSource(path, std::string(text));
      d.setRange(engine.rangeOf(path, byte, byte + word.size()));
      d.message =
          "the first line says '" + printable(word) + "', which nothing reads";
      d.hint = didYouMean(name, {"model", "target", "ignore"});
      if (d.hint.empty())
        d.hint = "write '# accel-opt: model=PATH target=NAME'";
      engine.report(std::move(d));
    }
    at = end;
  }
  return result;
}

FirstLine readFirstLine(const std::string &path, DiagnosticEngine &engine) {
  std::string text, error;
  if (!yaml::readWholeFile(path, yaml::Limits().bytes, text, error))
    return {};
  return readFirstLine(path, text, engine);
}

} // namespace accel
