//===- FrontendFuzzer.cpp - Any bytes as an accelerate file ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads the input as YAML and as JSON, lints it, renders what was found and
// makes the fixes. Beside crashes, it looks for findings outside of the file,
// edits that do not fit, and fixes that break what was right.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Diagnostics/Diff.h"
#include "frontends/Yaml/Fix.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace accel;

static void require(bool holds, const char *what, const Diagnostic &d) {
  if (holds)
    return;
  std::fprintf(stderr, "%s: %d:%d [%s] %s\n", what, d.line, d.column,
               d.code.c_str(), d.message.c_str());
  std::abort();
}

/// True if the text could be parsed.
static bool lint(const std::string &file, const std::string &text,
                 DiagnosticEngine &engine) {
  std::unique_ptr<yaml::Document> document =
      yaml::parseText(file, text, engine);
  if (!document)
    return false;
  if (document->root() && document->root()->isMapping()) {
    AccelerateOptions options;
    options.forPlanning = false;
    parseAccelerate(file, *document->root(), "", {}, options, engine);
  }
  return true;
}

static void check(const std::string &file, const std::string &text) {
  DiagnosticEngine engine;
  bool parsed = lint(file, text, engine);
  int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n') +
                               std::count(text.begin(), text.end(), '\r')) +
              1;
  for (const Diagnostic &d : engine.sorted()) {
    require(!d.code.empty() && !d.message.empty(), "says nothing", d);
    require(d.line >= 0 && d.line <= lines, "stands outside", d);
    require(d.endLine == 0 || d.endLine >= d.line, "ends before it starts", d);
    size_t last = 0;
    for (const TextEdit &edit : d.fix) {
      require(edit.begin >= last && edit.begin <= edit.end &&
                  edit.end <= text.size(),
              "has edits that do not fit", d);
      last = edit.end;
    }
    require(parsed || d.severity == Severity::Error || engine.hasErrors(),
            "does not say why nothing was read", d);
  }
  renderText(engine);
  renderJson(engine);
  auto again = [&](const std::string &changed, DiagnosticEngine &other) {
    lint(file, changed, other);
  };
  yaml::FixResult result = yaml::makeFixes(file, text, again);
  unifiedDiff(text, result.text, file);
  if (result.text == text)
    return;
  DiagnosticEngine after;
  bool parsedAfter = lint(file, result.text, after);
  if (parsed && !parsedAfter)
    require(false, "was broken by fixes", after.sorted()[0]);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  check("fuzz.yaml", text);
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos &&
      std::string("{[\"").find(text[first]) != std::string::npos)
    check("fuzz.json", text);
  return 0;
}
