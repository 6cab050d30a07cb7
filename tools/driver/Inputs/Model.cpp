//===- Model.cpp - The model of a job, whatever it was read from ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/Model.h"

#include "frontends/TorchExport/Describe.h"

#include <algorithm>

namespace accel {

namespace {
/// Programs do not say how long sequences may be, nor which ids exist, unless
/// the exporter noted it.
constexpr int64_t anyLength = int64_t(1) << 24;
constexpr int64_t anyId = INT32_MAX;
} // namespace

const torchexport::Program *Model::program() const {
  auto *shared = std::get_if<Shared>(&source);
  return shared ? shared->get() : nullptr;
}

int64_t Model::vocabSize() const {
  if (const auto *c = config())
    return c->vocabSize();
  return program()->notes.vocabulary ? program()->notes.vocabulary : anyId;
}

int64_t Model::maxPositions() const {
  if (const auto *c = config())
    return c->maxPositions();
  if (program()->notes.maxPositions)
    return program()->notes.maxPositions;
  const auto sizes = torchexport::exportedSizes(*program());
  if (sizes.openSequence)
    return sizes.mostTokens.value_or(anyLength);
  return sizes.sequenceLength ? sizes.sequenceLength : anyLength;
}

bool Model::hasTokens() const {
  if (const auto *c = config())
    return c->hasTokens();
  const auto sizes = torchexport::exportedSizes(*program());
  return sizes.openSequence || sizes.sequenceLength > 0;
}

int64_t Model::defaultLength() const {
  if (const auto *c = config())
    return c->defaultLength();
  return std::min<int64_t>(4096, maxPositions());
}

std::optional<plan::DType> Model::dtype() const {
  if (const auto *c = config())
    return c->dtype();
  return torchexport::parameterDtype(*program());
}

huggingface::ModelInfo Model::info() const {
  if (const auto *c = config())
    return huggingface::describeModel(*c);
  return torchexport::describe(*program());
}

} // namespace accel
