//===- ProfileFuzzer.cpp - Any bytes as what torch recorded ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The same bytes as a memory snapshot and as a trace. Beside crashes it looks
// for refusals that say nothing, and for figures that no record can have.
//
//===----------------------------------------------------------------------===//
#include "frontends/Profile/Profile.h"

#include <cstdlib>

using namespace accel;
using namespace accel::profile;

static void check(const std::optional<Profile> &read,
                  const DiagnosticEngine &engine) {
  if (read.has_value() == engine.hasErrors())
    std::abort();
  for (const Diagnostic &d : engine.all())
    if (d.message.empty() || d.message.size() > 4000)
      std::abort();
  if (read &&
      (read->peakBytes.value_or(0) < 0 || read->reservedBytes.value_or(0) < 0 ||
       read->beforeBytes.value_or(0) < 0))
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string bytes(reinterpret_cast<const char *>(data), size);
  {
    DiagnosticEngine engine;
    check(readSnapshot(bytes, "a.pickle", engine), engine);
  }
  DiagnosticEngine engine;
  check(readTrace(bytes, "trace.json", engine), engine);
  return 0;
}
