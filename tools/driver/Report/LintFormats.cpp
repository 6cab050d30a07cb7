//===- LintFormats.cpp - Findings for CI and editors ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/LintFormats.h"

#include "frontends/Diagnostics/Utf8.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

using namespace accel;
using Json = nlohmann::ordered_json;

ValueKind<LintFormat> accel::lintFormatValue() {
  return choiceValue<LintFormat>({{"text", LintFormat::Text},
                                  {"json", LintFormat::Json},
                                  {"sarif", LintFormat::Sarif},
                                  {"github", LintFormat::Github},
                                  {"gitlab", LintFormat::Gitlab},
                                  {"junit", LintFormat::Junit}});
}

namespace {

/// As a person reads it: what is wrong, and what to write instead.
std::string sentence(const Diagnostic &d) {
  return d.hint.empty() ? d.message : d.message + "; " + d.hint;
}

/// A path as code hosts have it: below the repository without "./".
std::string tidy(const std::string &path) {
  return std::filesystem::path(path).lexically_normal().generic_string();
}

std::string dumped(const Json &json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

//===----------------------------------------------------------------------===//
// SARIF
//===----------------------------------------------------------------------===//

/// A path as a URI reference (RFC 3986); an absolute one gets a scheme.
std::string uriOf(const std::string &file) {
  const std::string path = tidy(file);
  std::string out = path.starts_with('/') ? "file://" : "";
  for (unsigned char c : path) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') ||
        std::string_view("-._~/!$&'()*+,;=@").find(c) != std::string_view::npos;
    char escape[4];
    std::snprintf(escape, sizeof escape, "%%%02X", c);
    out += plain ? std::string(1, c) : escape;
  }
  return out;
}

/// Without columns where they are not known: then whole lines are meant.
Json region(const SourceRange &at) {
  Json result = {{"startLine", at.line}};
  if (at.column > 0)
    result["startColumn"] = at.column;
  if (at.endLine > at.line)
    result["endLine"] = at.endLine;
  if (at.column > 0 && at.endColumn > 0)
    result["endColumn"] = at.endColumn;
  return result;
}

Json fixOf(const DiagnosticEngine &engine, const Diagnostic &d) {
  Json replacements = Json::array();
  for (const TextEdit &edit : d.fix) {
    const SourceRange at = engine.rangeOf(d.file, edit.begin, edit.end);
    Json deleted = at.line > 0 ? region(at)
                               : Json{{"byteOffset", edit.begin},
                                      {"byteLength", edit.end - edit.begin}};
    if (at.line > 0) // an insertion deletes nothing: its end is its start
      deleted["endColumn"] = at.endColumn;
    replacements.push_back({{"deletedRegion", deleted},
                            {"insertedContent", {{"text", edit.text}}}});
  }
  return {{"description", {{"text", d.hint.empty() ? d.message : d.hint}}},
          {"artifactChanges",
           Json::array({{{"artifactLocation", {{"uri", uriOf(d.file)}}},
                         {"replacements", replacements}}})}};
}

} // namespace

std::string accel::renderSarif(const DiagnosticEngine &engine) {
  Json rules = Json::array(), results = Json::array();
  std::vector<std::string> codes;
  for (const Diagnostic &d : engine.sorted()) {
    auto known = std::find(codes.begin(), codes.end(), d.code);
    const auto index = known - codes.begin();
    if (known == codes.end()) {
      codes.push_back(d.code);
      rules.push_back({{"id", d.code},
                       {"helpUri", ACCEL_HOMEPAGE "/blob/v" ACCEL_VERSION
                                                  "/docs/diagnostics.md#" +
                                       d.code}});
    }
    Json result = {{"ruleId", d.code},
                   {"ruleIndex", index},
                   {"level", toString(d.severity)},
                   {"message", {{"text", sentence(d)}}}};
    if (!d.file.empty()) {
      Json place = {{"artifactLocation", {{"uri", uriOf(d.file)}}}};
      if (d.line > 0)
        place["region"] =
            region({d.line, d.column, std::max(d.endLine, d.line),
                    std::max(d.endColumn, d.endLine > d.line ? 1 : 0)});
      Json location = {{"physicalLocation", place}};
      if (!d.key.empty())
        location["logicalLocations"] =
            Json::array({{{"fullyQualifiedName", d.key}, {"kind", "member"}}});
      result["locations"] = Json::array({location});
    }
    if (!d.fix.empty())
      result["fixes"] = Json::array({fixOf(engine, d)});
    results.push_back(result);
  }
  Json driver = {{"name", "accel-opt"},
                 {"version", ACCEL_VERSION},
                 {"informationUri", ACCEL_HOMEPAGE},
                 {"rules", rules}};
  return dumped({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                 {"version", "2.1.0"},
                 {"runs", Json::array({{{"tool", {{"driver", driver}}},
                                        {"columnKind", "unicodeCodePoints"},
                                        {"results", results}}})}});
}

//===----------------------------------------------------------------------===//
// GitHub
//===----------------------------------------------------------------------===//

/// The runner ends a command at a line's end and a property at ":" and ",".
static std::string commandText(const std::string &text, bool property) {
  std::string out;
  for (char c : text) {
    const char *escaped = c == '%'               ? "%25"
                          : c == '\r'            ? "%0D"
                          : c == '\n'            ? "%0A"
                          : c == ':' && property ? "%3A"
                          : c == ',' && property ? "%2C"
                                                 : nullptr;
    out += escaped ? std::string(escaped) : std::string(1, c);
  }
  return out;
}

std::string accel::renderGithub(const DiagnosticEngine &engine) {
  std::string out;
  for (const Diagnostic &d : engine.sorted()) {
    out += d.severity == Severity::Error     ? "::error "
           : d.severity == Severity::Warning ? "::warning "
                                             : "::notice ";
    if (!d.file.empty()) {
      out += "file=" + commandText(tidy(d.file), true) + ",";
      if (d.line > 0)
        out += "line=" + std::to_string(d.line) + ",";
      if (d.line > 0 && d.column > 0)
        out += "col=" + std::to_string(d.column) + ",";
      if (d.endLine > d.line)
        out += "endLine=" + std::to_string(d.endLine) + ",";
      else if (d.column > 0 && d.endColumn > d.column)
        out += "endColumn=" + std::to_string(d.endColumn) + ",";
    }
    out += "title=" + commandText(d.code, true) +
           "::" + commandText(sentence(d), false) + "\n";
  }
  return out;
}

//===----------------------------------------------------------------------===//
// GitLab
//===----------------------------------------------------------------------===//

std::string accel::renderGitlab(const DiagnosticEngine &engine) {
  Json array = Json::array();
  std::map<std::string, int> seen; // the same finding twice is two findings
  for (const Diagnostic &d : engine.sorted()) {
    const std::string path = d.file.empty() ? "accel-opt" : tidy(d.file);
    std::string identity = path;
    for (const std::string &part : {d.code, d.key, d.message})
      identity += '\0' + part;
    const int repeated = seen[identity]++;
    plan::Sha256 hash;
    hash.update(identity + '\0' + std::to_string(repeated));
    const int line = std::max(d.line, 1);
    array.push_back(
        {{"description", sentence(d)},
         {"check_name", d.code},
         {"fingerprint", hash.hexDigest()},
         {"severity", d.severity == Severity::Error     ? "major"
                      : d.severity == Severity::Warning ? "minor"
                                                        : "info"},
         {"location",
          {{"path", path},
           {"lines", {{"begin", line}, {"end", std::max(d.endLine, line)}}}}}});
  }
  return dumped(array);
}

//===----------------------------------------------------------------------===//
// JUnit
//===----------------------------------------------------------------------===//

/// Text of XML 1.0, which has no form for most control characters.
static std::string xmlText(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0;
    const size_t length = utf8Length(text, i, code);
    if (length == 0 || (code < 0x20 && code != '\t' && code != '\n') ||
        code == 0xfffe || code == 0xffff)
      out += "\xef\xbf\xbd"; // the replacement character
    else if (code == '&')
      out += "&amp;";
    else if (code == '<')
      out += "&lt;";
    else if (code == '>')
      out += "&gt;";
    else if (code == '"')
      out += "&quot;";
    else if (code == '\n' || code == '\t')
      out += code == '\n' ? "&#10;" : "&#9;";
    else
      out += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

std::string accel::renderJunit(const DiagnosticEngine &engine,
                               const std::vector<std::string> &files) {
  // Files that a configuration names have findings of their own.
  std::vector<std::string> suites = files;
  const std::vector<Diagnostic> all = engine.sorted();
  for (const Diagnostic &d : all)
    if (std::find(suites.begin(), suites.end(), d.file) == suites.end())
      suites.push_back(d.file);
  std::string body;
  size_t tests = 0, failures = 0;
  for (const std::string &file : suites) {
    const std::string name = xmlText(file.empty() ? "command line" : file);
    std::string cases;
    size_t count = 0, failed = 0;
    auto begin = [&](const std::string &what, const std::string &line) {
      ++count;
      cases += "    <testcase classname=\"" + name + "\" name=\"" +
               xmlText(what) + "\" file=\"" + name + "\"" + line;
    };
    for (const Diagnostic &d : all) {
      if (d.file != file)
        continue;
      const std::string line = std::to_string(std::max(d.line, 1));
      const std::string text = xmlText(sentence(d));
      begin(d.code + (d.key.empty() ? "" : " " + d.key) + ", line " + line,
            " line=\"" + line + "\">\n");
      if (d.severity == Severity::Error) {
        ++failed;
        cases += "      <failure type=\"" + xmlText(d.code) + "\" message=\"" +
                 text + "\"></failure>\n";
      } else {
        cases += std::string("      <system-out>") + toString(d.severity) +
                 ": " + text + "</system-out>\n";
      }
      cases += "    </testcase>\n";
    }
    if (!count)
      begin("lint", "/>\n");
    body += "  <testsuite name=\"" + name + "\" tests=\"" +
            std::to_string(count) + "\" failures=\"" + std::to_string(failed) +
            "\" errors=\"0\" skipped=\"0\">\n" + cases + "  </testsuite>\n";
    tests += count;
    failures += failed;
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "
         "name=\"accel-opt lint\" tests=\"" +
         std::to_string(tests) + "\" failures=\"" + std::to_string(failures) +
         "\" errors=\"0\">\n" + body + "</testsuites>\n";
}
