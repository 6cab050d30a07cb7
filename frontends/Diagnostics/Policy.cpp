//===- Policy.cpp - -W options and comments -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/SourceText.h"

#include <algorithm>
#include <set>

using namespace accel;

const std::vector<std::string> &accel::diagnosticCodes() {
  static const std::vector<std::string> codes = {
#include "frontends/Diagnostics/Codes.inc"
  };
  return codes;
}

static std::string unknownCode(const std::string &code) {
  std::string hint = didYouMean(code, diagnosticCodes());
  return "no diagnostic has the code '" + printable(code) + "'" +
         (hint.empty() ? "" : "; " + hint);
}

static bool isKnown(const std::string &code) {
  const std::vector<std::string> &codes = diagnosticCodes();
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::string accel::addWarningFlag(DiagnosticPolicy &policy,
                                  std::string_view flag) {
  if (flag == "error") {
    policy.warningsAreErrors = true;
    return "";
  }
  std::set<std::string> *codes = nullptr;
  for (auto [prefix, set] : {std::pair{"error=", &policy.errors},
                             {"no-error=", &policy.staysWarning},
                             {"no-", &policy.silent}})
    if (!codes && flag.starts_with(prefix)) {
      codes = set;
      flag.remove_prefix(std::string_view(prefix).size());
    }
  if (!codes)
    return "expected -Werror, -Werror=CODE, -Wno-error=CODE or -Wno-CODE";
  std::string code(flag);
  if (!isKnown(code))
    return unknownCode(code);
  codes->insert(code);
  return "";
}

void accel::checkIgnoreComments(const std::string &file,
                                DiagnosticEngine &engine) {
  SourceText text{std::string(engine.source(file))};
  const auto &codes = text.ignoredCodes();
  if (codes.size() == SourceText::mostIgnored)
    engine.warning("ignore-comment", file,
                   "only the first " + std::to_string(codes.size()) +
                       " codes of ignore comments have an effect",
                   "pass -Wno-CODE");
  std::set<std::string> seen; // each is reported once
  for (const auto &[code, byte] : codes) {
    if (isKnown(code) || !seen.insert(code).second)
      continue;
    Diagnostic d;
    d.severity = Severity::Warning;
    d.code = "ignore-comment";
    d.file = file;
    d.setRange(engine.rangeOf(file, byte, byte + code.size()));
    d.message = unknownCode(code);
    std::string better = nearest(code, diagnosticCodes());
    if (!better.empty())
      d.fix = {{byte, byte + code.size(), better}};
    d.hint = "docs/diagnostics.md lists the codes";
    engine.report(std::move(d));
  }
}
