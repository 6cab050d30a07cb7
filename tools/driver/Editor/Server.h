//===- Server.h - accel-opt lsp ---------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EDITOR_SERVER_H
#define ACCEL_TOOLS_DRIVER_EDITOR_SERVER_H

#include "tools/driver/Options/FirstLine.h"

#include <cstdio>

namespace accel {

/// Speaks the Language Server Protocol for accelerate YAML and job.yaml until
/// `in` ends or the editor says `exit`. `settings` are used until the editor
/// sends its own. True if it was told to shut down first.
bool serveEditor(std::FILE *in, FirstLine settings);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EDITOR_SERVER_H
