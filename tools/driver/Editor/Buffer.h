//===- Buffer.h - A configuration as it is typed ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What lint and plan say of a text that stands for a file. Nothing here speaks
// an editor's protocol.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EDITOR_BUFFER_H
#define ACCEL_TOOLS_DRIVER_EDITOR_BUFFER_H

#include "frontends/Accelerate/AccelerateConfig.h"
#include "tools/driver/Options/FirstLine.h"

#include <memory>
#include <optional>

namespace accel {

class Buffer {
public:
  /// `settings` are the editor's; the file's own first line goes before them.
  Buffer(std::string path, std::string text, FirstLine settings);

  const std::string &text() const { return content; }
  /// Of lint.
  const DiagnosticEngine &findings() const { return *engine; }
  const EffectiveValue *effective(const std::string &key) const;
  /// What all repairs together make of the text; nothing where there are none.
  std::optional<std::string> repaired() const;
  /// "63.4 GiB, 1.30 s" of a step, and whether it fits; empty where it cannot
  /// be planned. Planned when it is first asked for.
  const std::string &figures();

private:
  std::string path, content;
  FirstLine chosen;
  std::unique_ptr<DiagnosticEngine> engine;
  std::vector<EffectiveValue> values;
  std::optional<std::string> planned;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EDITOR_BUFFER_H
