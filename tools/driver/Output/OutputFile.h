//===- OutputFile.h - Files that a user names for output --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What may be replaced is decided here, for every command: never what the
// command reads; an earlier output of the same form; anything else with
// --overwrite.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OUTPUT_OUTPUTFILE_H
#define ACCEL_TOOLS_DRIVER_OUTPUT_OUTPUTFILE_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <string>
#include <utility>

namespace accel {

class Arguments;

/// The form of an output, by which an earlier one is recognised.
enum class FileForm {
  Plan,
  Page, // of --report
  Mlir,
  Remarks,
  Dot,
  Trace,
  Python,
  Torchtitan,
  Schema,
  Snapshot, // of memory
  Other     // cannot be told from what somebody else wrote
};

/// A file to write.
struct OutputFile {
  OutputFile(std::string path, bool overwrite = false)
      : path(std::move(path)), overwrite(overwrite) {}
  std::string path;
  bool overwrite; // whatever is there, but what was read
};

/// The row of --overwrite, for a command with other outputs than its standard
/// one.
void addOverwrite(Arguments &arguments, bool &overwrite);

/// True, with a report, where `path` is a file that this command reads.
bool replacesInput(const std::string &path, DiagnosticEngine &engine);

/// True, with a report, where the folder `output` would lie in the folder
/// `input`, which this command reads with the folders in it.
bool liesInInput(const std::string &output, const std::string &input,
                 DiagnosticEngine &engine);

/// True where writing `text` loses nothing that accel-opt may not replace;
/// otherwise the reason is reported. "-" is standard output.
bool mayWrite(const OutputFile &file, FileForm form, const std::string &text,
              DiagnosticEngine &engine);

/// Writes it where mayWrite allows it. False where not, or where it cannot be
/// written, which is reported.
bool writeOutputFile(const OutputFile &file, FileForm form,
                     const std::string &text, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OUTPUT_OUTPUTFILE_H
