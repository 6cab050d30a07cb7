//===- FirstLine.h - What a file's first line says of it --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_FIRSTLINE_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_FIRSTLINE_H

#include "frontends/Diagnostics/Diagnostics.h"

namespace accel {

/// Model and target of an accelerate YAML, which has no keys for them:
/// `# accel-opt: model=../llama target=h100-sxm-80gb`. Editors, `lint` and
/// `plan` read it; their own options go before it.
struct FirstLine {
  std::string model, target; // empty: not said
};

/// Reads the comment in the first line of `text`, the file `path`: values end
/// at a blank, and relative paths start at the file's folder. Warns
/// (first-line) of words that it does not know.
FirstLine readFirstLine(const std::string &path, std::string_view text,
                        DiagnosticEngine &engine);

/// The same of a file; what cannot be read says nothing here.
FirstLine readFirstLine(const std::string &path, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_FIRSTLINE_H
