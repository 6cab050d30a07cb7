//===- SafetensorsFuzzer.cpp - Any bytes as a safetensors file ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The compiler's reader and the runtime's read the same file. Beside crashes,
// it looks for accepted files whose tensors overlap, leave the file or have
// other sizes than their shapes, for refusals that say nothing, and for files
// of which the two readers think differently.
//
//===----------------------------------------------------------------------===//

#include "frontends/HuggingFace/Safetensors.h"
#include "runtime/checkpoint/Safetensors.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

using namespace accel;

static void require(bool holds, const char *what, const std::string &name) {
  if (holds)
    return;
  std::fprintf(stderr, "%s: '%s'\n", what, name.c_str());
  std::abort();
}

static std::optional<huggingface::SafetensorsFile>
compilerReads(const uint8_t *data, size_t size) {
  DiagnosticEngine engine;
  std::string_view head(reinterpret_cast<const char *>(data), size);
  auto file = huggingface::parseSafetensorsHeader(head, size, "a", engine);
  require(file.has_value() != engine.hasErrors(), "says nothing, or too much",
          "");
  for (const Diagnostic &d : engine.all())
    require(!d.message.empty() && d.message.size() < 4000, "a bad message",
            d.message);
  if (!file)
    return file;
  uint64_t at = 0;
  for (const huggingface::StoredTensor &tensor : file->tensors) {
    require(tensor.begin >= std::max<uint64_t>(at, 8) &&
                tensor.begin <= tensor.end && tensor.end <= size,
            "lies outside or overlaps", tensor.name);
    at = tensor.end;
  }
  return file;
}

/// A file in memory with a path, as /proc has it.
class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size)
      : descriptor(::memfd_create("fuzz", 0)) {
    if (descriptor < 0 ||
        ::write(descriptor, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~MemoryFile() { ::close(descriptor); }
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  int descriptor;
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto first = compilerReads(data, size);
  MemoryFile memory(data, size);
  std::optional<run::SafetensorsHeader> second;
  try {
    second = run::readHeader(run::File(memory.path(), run::File::Mode::Read));
  } catch (const run::FileError &error) {
    require(error.what()[0] != 0, "says nothing", "");
  }
  std::map<std::string, const huggingface::StoredTensor *> known;
  if (first)
    for (const auto &tensor : first->tensors)
      known[tensor.name] = &tensor;
  if (!second) {
    require(!first, "only the compiler reads it", "");
    return 0;
  }
  for (const run::StoredTensor &tensor : second->tensors) {
    int64_t bytes = tensor.numel() * plan::itemSize(tensor.dtype);
    require(tensor.offset >= 8 && bytes >= 0 &&
                tensor.offset + bytes <= static_cast<int64_t>(size),
            "lies outside", tensor.name);
    if (!first)
      continue;
    auto it = known.find(tensor.name);
    require(it != known.end() && it->second->shape == tensor.shape &&
                it->second->begin == static_cast<uint64_t>(tensor.offset),
            "is another tensor to the compiler", tensor.name);
  }
  return 0;
}
