//===- Convert.h - One kind of job to another -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Turns an accelerate file for FSDP into one for another version of FSDP, for
// DDP or for DeepSpeed. What the job does is what is kept, not what its keys
// say: a strategy that FSDP1 ignored is still ignored after the conversion, and
// the difference is reported. Everything is done by edits of the text, so
// comments, order and other sections stay.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CONVERT_CONVERT_H
#define ACCEL_FRONTENDS_CONVERT_CONVERT_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::convert {

/// What executes a job.
enum class Executor { Fsdp1, Fsdp2, Deepspeed, Ddp };
const char *toString(Executor executor); // "fsdp1", "deepspeed"
const char *title(Executor executor);    // "FSDP1", "DeepSpeed"
std::optional<Executor> parseExecutor(std::string_view name);

/// One edit. Values are YAML text.
struct Change {
  int line = 0;         // in the source; 0: a new line
  std::string key;      // dotted path in the source, or of the new line
  std::string from, to; // "key: value"; empty: not there
  std::string why;      // one phrase
};

/// Something that the new job does otherwise although the file is as near as
/// it can be.
struct Difference {
  std::string topic; // stable: "output-dtype"; listed in docs/guide.md
  std::string area;  // numbers, memory, speed, files or launch
  std::string before, after;
};

struct Conversion {
  Executor to = Executor::Fsdp2;
  std::optional<Executor> from; // nothing: not a job that can be converted
  std::string text;             // of the new file
  std::vector<Change> changes;  // empty: the text is the source's
  std::vector<Difference> differences;
};

struct ConvertOptions {
  Executor to = Executor::Fsdp2;
  std::string version = "1.15.0"; // of accelerate
};

/// Converts the text of an accelerate file. Reports why it cannot
/// (no-equivalent, cannot-edit, or what is wrong with the source) and returns
/// nothing then. The result has been read again: it has no error that the
/// source had not, the values that the executor of both kinds has are the same,
/// and no other key changed. If that does not hold, `internal` says what is
/// wrong.
std::optional<Conversion> convertConfig(const std::string &file,
                                        const std::string &text,
                                        const ConvertOptions &options,
                                        DiagnosticEngine &engine,
                                        std::string &internal);

} // namespace accel::convert

#endif // ACCEL_FRONTENDS_CONVERT_CONVERT_H
