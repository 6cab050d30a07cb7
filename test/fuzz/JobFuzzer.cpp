//===- JobFuzzer.cpp - Any bytes as a job file ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads the input as job.yaml. Beside crashes, it looks for findings outside of
// the file, for jobs that are refused without a reason, and for meshes whose
// sizes do not multiply to the number of ranks.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobConfig.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace accel;

static void require(bool holds, const char *what, const std::string &text) {
  if (holds)
    return;
  std::fprintf(stderr, "%s: %s\n", what, text.c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  const std::string file = "job.yaml";
  LoadOptions options;
  options.checkFiles = false;
  options.accelerate.texts[file] = text;
  DiagnosticEngine engine;
  const LoadedConfig loaded = loadConfig(file, options, engine);
  const int lines =
      static_cast<int>(std::count(text.begin(), text.end(), '\n') +
                       std::count(text.begin(), text.end(), '\r')) +
      1;
  for (const Diagnostic &d : engine.all()) {
    require(!d.code.empty() && !d.message.empty(), "says nothing", d.code);
    // Files that the job names have lines of their own.
    require(d.file != file || (d.line >= 0 && d.line <= lines),
            "stands outside", d.message);
  }
  require(loaded.job || engine.hasErrors(), "refused without a reason", text);
  if (loaded.job && loaded.job->ownMesh && !engine.hasErrors())
    require(loaded.job->accelerate.mesh->ranks() ==
                *loaded.job->accelerate.numProcesses,
            "the mesh has other ranks", text);
  renderText(engine);
  renderJson(engine);
  return 0;
}
