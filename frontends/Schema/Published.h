//===- Published.h - Where editors find our schemas -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCHEMA_PUBLISHED_H
#define ACCEL_FRONTENDS_SCHEMA_PUBLISHED_H

#include "frontends/Accelerate/KeyTable.h"

#include <string>

namespace accel::schema {

enum class SchemaKind { Accelerate, Job };

/// The schema's $id, which is also where it is published: the folder
/// docs/schemas of this project's home. It stays as long as there are files
/// that name it.
std::string addressOf(SchemaKind kind, AccelerateVersion version);

/// `text` with a first line that gives it this schema in editors (the modeline
/// of yaml-language-server). A text that has one stays as it is, and so does
/// one for a release whose schema is not published.
std::string withModeline(const std::string &text, SchemaKind kind,
                         AccelerateVersion version);

} // namespace accel::schema

#endif // ACCEL_FRONTENDS_SCHEMA_PUBLISHED_H
