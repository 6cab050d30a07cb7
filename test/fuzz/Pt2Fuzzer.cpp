//===- Pt2Fuzzer.cpp - Any bytes as a .pt2 --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Input that begins like a zip is read as an archive. Other input is its
// entries without the zip, which would hide the JSON behind a checksum: texts
// with a byte 0 between them, model.json, weights_config.json,
// constants_config.json and accel-opt.json. Beside crashes it looks for a
// program that was read although something was reported, or the reverse.
//
//===----------------------------------------------------------------------===//

#include "frontends/TorchExport/Describe.h"
#include "frontends/TorchExport/Symbols.h"

#include <cstdio>
#include <cstdlib>

using namespace accel;
using namespace accel::torchexport;

static void check(const std::optional<Program> &program,
                  const DiagnosticEngine &engine) {
  if (program.has_value() == engine.hasErrors()) {
    std::fprintf(stderr, program ? "an error and a program\n"
                                 : "neither an error nor a program\n");
    std::abort();
  }
  for (const Diagnostic &d : engine.all())
    if (d.message.empty() || d.file.empty())
      std::abort();
  renderText(engine);
  if (!program)
    return;
  describe(*program);
  exportedSizes(*program);
  DiagnosticEngine sizes;
  Sizes wanted;
  wanted.microBatch = 2;
  wanted.sequenceLength = 16;
  std::vector<std::pair<std::string, int64_t>> named = {{"batch", 2}};
  for (const Dimension &dim : inputDimensions(*program))
    named.emplace_back(dim.index % 2 ? dim.place() : symbolOf(dim.size()), 16);
  if (auto dims = resolveDims(*program, named, sizes))
    wanted.dims = *dims;
  else if (!sizes.hasErrors())
    std::abort();
  Symbols::bind(*program, wanted, sizes);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  DiagnosticEngine engine;
  if (bytes.substr(0, 2) == "PK") {
    check(parseProgram(bytes, "fuzz.pt2", engine), engine);
    return 0;
  }
  std::map<std::string, std::string> entries = {{"archive_format", "pt2"}};
  for (const char *name :
       {"models/model.json", "data/weights/model_weights_config.json",
        "data/constants/model_constants_config.json", "extra/accel-opt.json"}) {
    const size_t end = bytes.find('\0');
    if (std::string text(bytes.substr(0, end)); !text.empty())
      entries[name] = std::move(text);
    if (end == std::string_view::npos)
      break;
    bytes.remove_prefix(end + 1);
  }
  for (const char *name : {"data/weights/weight_0", "data/weights/weight_1",
                           "data/weights/weight_2", "data/constants/tensor_0"})
    entries[name] = std::string(64, '\1');
  check(parseEntries(std::move(entries), "fuzz.pt2", engine), engine);
  return 0;
}
