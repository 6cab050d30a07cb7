//===- FileTexts.h - Texts that stand for files -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_FILETEXTS_H
#define ACCEL_FRONTENDS_YAML_FILETEXTS_H

#include "frontends/Yaml/Yaml.h"

#include <map>
#include <memory>
#include <string>

namespace accel::yaml {

/// Texts that stand for files, by path: how a change is judged before it is
/// written.
using FileTexts = std::map<std::string, std::string>;

/// parseFile, or parseText of the file's text in `instead`.
std::unique_ptr<Document> parseFile(const std::string &file,
                                    const FileTexts &instead,
                                    DiagnosticEngine &engine);

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_FILETEXTS_H
