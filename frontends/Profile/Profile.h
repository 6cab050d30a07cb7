//===- Profile.h - What torch recorded of a run -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Two files that people have: the pickle of torch.cuda.memory._dump_snapshot,
// read as data (frontends/Checkpoint/Pickle.h), and the JSON of
// torch.profiler's export_chrome_trace.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_PROFILE_PROFILE_H
#define ACCEL_FRONTENDS_PROFILE_PROFILE_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::profile {

/// Tensors that are alive at the peak and were made for one thing, as far as
/// the stack of the allocation tells it.
struct Held {
  std::string what; // "forward", "backward", "optimizer", ...
  int64_t bytes = 0, tensors = 0;
};

struct Profile {
  enum class Kind { Snapshot, Trace } kind = Kind::Snapshot;
  /// Of tensors, as max_memory_allocated counts them; of the allocator's
  /// segments, as max_memory_reserved.
  std::optional<int64_t> peakBytes, reservedBytes;
  /// Tensors that were there before the first event of a snapshot.
  std::optional<int64_t> beforeBytes;
  /// Median of the profiler's steps but the first.
  std::optional<double> stepSeconds;
  std::vector<Held> atPeak; // most bytes first
  int64_t events = 0;
};

/// Reads either file, of the device with most events. Nothing, and reported,
/// where it is neither.
std::optional<Profile> readProfile(const std::string &path,
                                   DiagnosticEngine &engine);

/// Of the bytes of a snapshot.
std::optional<Profile> readSnapshot(std::string_view bytes,
                                    const std::string &path,
                                    DiagnosticEngine &engine);
/// Of the text of a trace.
std::optional<Profile> readTrace(const std::string &text,
                                 const std::string &path,
                                 DiagnosticEngine &engine);

} // namespace accel::profile

#endif // ACCEL_FRONTENDS_PROFILE_PROFILE_H
