//===- Diff.h - The difference of two texts ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_DIFF_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_DIFF_H

#include "frontends/Diagnostics/Diagnostics.h"

namespace accel {

/// `text` with the edits made; they must not overlap, in any order.
std::string applyEdits(std::string_view text, std::vector<TextEdit> edits);

/// What `diff -u` prints (three lines around each change) for a file `name`,
/// which patch(1) and git apply take; empty if the texts are equal. Texts that
/// differ in more than a few thousand lines are shown as one change.
std::string unifiedDiff(std::string_view before, std::string_view after,
                        const std::string &name, bool colour = false);

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_DIFF_H
