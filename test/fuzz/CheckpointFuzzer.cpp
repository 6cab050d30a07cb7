//===- CheckpointFuzzer.cpp - Any bytes as a checkpoint's pickle ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The same bytes as .metadata, as data.pkl and as those of DeepSpeed's files,
// which are put together. Beside crashes it looks for
// refusals that say nothing, and for tensors whose bytes are not those of their
// shape.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Zero.h"

#include <cstdlib>

using namespace accel;
using namespace accel::checkpoint;

static void check(bool read, const Part &part, const DiagnosticEngine &engine) {
  if (read == engine.hasErrors())
    std::abort();
  for (const Diagnostic &d : engine.all())
    if (d.message.empty() || d.message.size() > 4000)
      std::abort();
  for (const Tensor &tensor : part.tensors) {
    int64_t bytes = elementBytes(tensor.dtype);
    for (int64_t size : tensor.shape)
      bytes *= size;
    if (tensor.dtype.empty() || bytes != tensor.bytes || bytes < 0)
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  {
    DiagnosticEngine engine;
    Part part;
    check(parseDcpMetadata(bytes, ".metadata", ".", false, part, engine), part,
          engine);
  }
  {
    DiagnosticEngine engine;
    Part part;
    check(parseTorchSave(bytes, "a.bin", part, engine), part, engine);
  }
  DiagnosticEngine engine;
  Checkpoint read;
  bool good = true;
  for (const char *name : {"mp_rank_00_model_states.pt",
                           "zero_pp_rank_0_mp_rank_00_model_states.pt",
                           "zero_pp_rank_0_mp_rank_00_optim_states.pt"}) {
    Part &part = read.parts.emplace_back();
    part.path = name;
    if (!parseZero(bytes, name, part, engine))
      good = false;
  }
  if (good == engine.hasErrors())
    std::abort();
  // Of ZeRO 3, then of the other stages.
  for (size_t skipped = 0; good && skipped < 2; ++skipped) {
    Checkpoint some;
    some.parts = read.parts;
    some.parts.erase(some.parts.begin() + ptrdiff_t(skipped));
    DiagnosticEngine found;
    int64_t leftOut = 0;
    auto made = assembleZero(some, leftOut, found);
    check(made.has_value(), made.value_or(Part()), found);
  }
  return 0;
}
