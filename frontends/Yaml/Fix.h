//===- Fix.h - Making the fixes of diagnostics ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_FIX_H
#define ACCEL_FRONTENDS_YAML_FIX_H

#include "frontends/Yaml/Yaml.h"

#include <functional>

namespace accel::yaml {

/// Whether `after`, made from `before` by `edits` (sorted), means the same but
/// for what was edited: it parses, and every value whose text no edit touches
/// is the same under the same key, values behind aliases and merges too. Of a
/// `before` that does not parse it is asked that `after` has fewer errors.
bool keepsOtherValues(const std::string &file, std::string_view before,
                      std::string_view after,
                      const std::vector<TextEdit> &edits);

struct FixResult {
  std::string text;   // equal to the input if nothing was fixed
  size_t fixed = 0;   // findings whose fix was made
  size_t refused = 0; // fixes that would have changed other values
};

/// Reads `text` as `file` and reports everything into the engine.
using Lint =
    std::function<void(const std::string &text, DiagnosticEngine &engine)>;

/// Makes the fixes of warnings and errors in `file`, and lints again until
/// nothing more is fixed, since one mistake may hide another. Fixes that
/// overlap an earlier one wait for the next round. No text comes twice, so it
/// ends.
FixResult makeFixes(const std::string &file, const std::string &text,
                    const Lint &lint);

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_FIX_H
