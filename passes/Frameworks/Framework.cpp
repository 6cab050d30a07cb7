//===- Framework.cpp - What a framework does with a job ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace accel {

constexpr std::array<std::pair<ExecutorKind, const char *>, 6> names = {
    {{ExecutorKind::AccelRun, "accel-run"},
     {ExecutorKind::Fsdp2, "fsdp2"},
     {ExecutorKind::Fsdp1, "fsdp1"},
     {ExecutorKind::Ddp, "ddp"},
     {ExecutorKind::Deepspeed, "deepspeed"},
     {ExecutorKind::Single, "single"}}};

const char *toString(ExecutorKind kind) {
  for (const auto &[known, name] : names)
    if (known == kind)
      return name;
  return "";
}

std::optional<ExecutorKind> parseExecutor(const std::string &text) {
  for (const auto &[kind, name] : names)
    if (text == name)
      return kind;
  return std::nullopt;
}

bool atLeast(const std::string &version, const std::string &other) {
  const char *a = version.c_str(), *b = other.c_str();
  for (int part = 0; part < 3; ++part) {
    char *endA = nullptr, *endB = nullptr;
    const long x = std::strtol(a, &endA, 10), y = std::strtol(b, &endB, 10);
    if (x != y)
      return x > y;
    a = *endA == '.' ? endA + 1 : endA;
    b = *endB == '.' ? endB + 1 : endB;
  }
  return true;
}

namespace frameworks {

Choice<OptimizerKernel> Framework::optimizerKernel(bool cpu) const {
  // torch/optim/optimizer.py: _default_to_fused_or_foreach.
  if (cpu)
    return {OptimizerKernel::ForLoop,
            "torch's default on CPUs: foreach needs an accelerator"};
  return {OptimizerKernel::Foreach, "torch's default on accelerators"};
}

int64_t fusedLossChunks(int64_t tokens, int64_t hidden, int64_t vocab) {
  const int64_t rows = std::max<int64_t>(1, tokens);
  hidden = std::max<int64_t>(1, hidden);
  const int64_t parts = std::max<int64_t>(1, (vocab + hidden - 1) / hidden);
  const auto size = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>((rows + parts - 1) / parts)));
  return (rows + size - 1) / size;
}

const Framework &framework(ExecutorKind kind) {
  switch (kind) {
  case ExecutorKind::AccelRun:
    return accelRun();
  case ExecutorKind::Fsdp2:
    return fsdp2();
  case ExecutorKind::Fsdp1:
    return fsdp1();
  case ExecutorKind::Ddp:
    return ddp();
  case ExecutorKind::Deepspeed:
    return deepspeed();
  case ExecutorKind::Single:
    return single();
  }
  return accelRun();
}

} // namespace frameworks
} // namespace accel
