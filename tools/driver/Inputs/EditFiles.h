//===- EditFiles.h - Lines of an advice in their files ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A setting is said by lines of several files: the accelerate YAML, a job.yaml,
// the JSON of DeepSpeed. Here they become the texts of these files.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_EDITFILES_H
#define ACCEL_TOOLS_DRIVER_INPUTS_EDITFILES_H

#include "frontends/Convert/Rewriter.h"
#include "passes/Tune/ConfigEdits.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace accel {

class FileEditor {
public:
  /// `known` are texts that stand for files; the others are read.
  explicit FileEditor(yaml::FileTexts known) : known(std::move(known)) {}

  /// Sets the line's key in its file, or adds it with its sections. False where
  /// that cannot be; why() says.
  bool set(const tune::YamlLine &line);
  bool set(const std::vector<tune::YamlLine> &lines);

  /// One phrase.
  const std::string &why() const { return reason; }
  /// The text of a file, as changed; "" if it cannot be read.
  std::string text(const std::string &file);
  /// All texts that were known, and those that were changed.
  yaml::FileTexts texts() const;
  /// Whether a line was set in it.
  bool changed(const std::string &file) const { return edited.count(file); }

private:
  convert::Rewriter *open(const std::string &file);
  std::optional<std::string> read(const std::string &file);

  yaml::FileTexts known;
  std::map<std::string, std::unique_ptr<convert::Rewriter>> edited;
  std::string reason;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_EDITFILES_H
