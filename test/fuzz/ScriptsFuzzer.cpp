//===- ScriptsFuzzer.cpp - Any bytes as a script's arguments --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The first byte says what follows: a file of arguments (y), or a command whose
// words are lines (c). Beside crashes, it looks for a job without a finding
// that says why it cannot be planned.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ScriptJob.h"

#include <cstdio>
#include <cstdlib>

using namespace accel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  scripts::ScriptInputs inputs;
  LoadOptions options;
  if (data[0] == 'c') {
    size_t begin = 0;
    while (begin < text.size() && inputs.command.size() < 200) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string word = text.substr(begin, end - begin);
      // No files but those that the fuzzer gives.
      if (word.find(".yaml") == std::string::npos &&
          word.find(".json") == std::string::npos &&
          word.find(".yml") == std::string::npos &&
          word.find("config") == std::string::npos)
        inputs.command.push_back(std::move(word));
      begin = end + 1;
    }
  } else {
    inputs.trainerFiles = {"args.yaml"};
    inputs.processes = 2;
    options.accelerate.texts["args.yaml"] = text;
  }
  DiagnosticEngine engine;
  LoadedConfig loaded = scripts::loadScriptJob(inputs, options, engine);
  renderText(engine);
  renderJson(engine);
  const bool described = !inputs.command.empty() || data[0] != 'c';
  if (!loaded.job && described && !engine.hasErrors()) {
    std::fputs("no job, and no reason\n", stderr);
    std::abort();
  }
  return 0;
}
