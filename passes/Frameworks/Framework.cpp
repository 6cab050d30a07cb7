//===- Framework.cpp - What a framework does with a job -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>

namespace accel {

constexpr std::array<std::pair<FrameworkKind, const char *>, 7> names = {
    {{FrameworkKind::AccelRun, "accel-run"},
     {FrameworkKind::Fsdp2, "fsdp2"},
     {FrameworkKind::Fsdp1, "fsdp1"},
     {FrameworkKind::Ddp, "ddp"},
     {FrameworkKind::Deepspeed, "deepspeed"},
     {FrameworkKind::Megatron, "megatron"},
     {FrameworkKind::Single, "single"}}};

const char *toString(FrameworkKind kind) {
  for (const auto &[known, name] : names)
    if (known == kind)
      return name;
  return "";
}

std::optional<FrameworkKind> parseExecutor(const std::string &text) {
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

const char *toString(KernelSet set) {
  switch (set) {
  case KernelSet::Liger:
    return "liger";
  case KernelSet::Foak:
    return "foak";
  case KernelSet::TransformerEngineLoss:
    return "te-loss";
  }
  return "";
}

std::optional<KernelSet> parseKernelSet(const std::string &name) {
  for (KernelSet set :
       {KernelSet::Liger, KernelSet::Foak, KernelSet::TransformerEngineLoss})
    if (name == toString(set))
      return set;
  return std::nullopt;
}

int64_t cudnnHead(const std::string &torch, double capability) {
  if (capability < 9 || capability >= 11 || !atLeast(torch, "2.11"))
    return 0;
  return atLeast(torch, "2.15") ? 256 : 128;
}

bool keepsWorkspaces(const std::string &torch) {
  return !atLeast(torch, "2.12");
}

void useKernels(KernelSet set, Kernels &kernels) {
  if (set == KernelSet::TransformerEngineLoss) {
    kernels.loss = LossKernel::InPlace;
    return;
  }
  if (!kernels.transformers)
    return;
  kernels.norm = NormKernel::Fused;
  kernels.rotary = RotaryKernel::Fused;
  if (set == KernelSet::Liger)
    kernels.fusedGate = kernels.derivativesInPlace = true;
  else
    kernels.loss = LossKernel::InPlaceShifted;
}

int64_t fusedLossChunks(int64_t tokens, int64_t hidden, int64_t vocab) {
  const int64_t rows = std::max<int64_t>(1, tokens);
  hidden = std::max<int64_t>(1, hidden);
  const int64_t parts = std::max<int64_t>(1, (vocab + hidden - 1) / hidden);
  const auto size = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>((rows + parts - 1) / parts)));
  return (rows + size - 1) / size;
}

const Framework &framework(FrameworkKind kind) {
  switch (kind) {
  case FrameworkKind::AccelRun:
    return accelRun();
  case FrameworkKind::Fsdp2:
    return fsdp2();
  case FrameworkKind::Fsdp1:
    return fsdp1();
  case FrameworkKind::Ddp:
    return ddp();
  case FrameworkKind::Deepspeed:
    return deepspeed();
  case FrameworkKind::Megatron:
    return megatron();
  case FrameworkKind::Single:
    return single();
  }
  return accelRun();
}

namespace {

using Names = std::map<std::string, std::unique_ptr<Framework>>;

const std::array<const TrainerEntry *, 6> &trainers() {
  static const std::array<const TrainerEntry *, 6> list = {
      &torchtitanEntry, &llmFoundryEntry,   &fmsFsdpEntry,
      &torchtuneEntry,  &kempnerForgeEntry, &coreAttentionEntry};
  return list;
}

/// "torchtitan", or "torchtitan/ddp" over another than its usual one.
std::string joined(const TrainerEntry &entry, FrameworkKind over) {
  return over == entry.usual ? entry.name
                             : std::string(entry.name) + "/" + toString(over);
}

const Names &trainersByName() {
  static const Names names = [] {
    Names made;
    for (const TrainerEntry *entry : trainers())
      for (const auto &[kind, name] : accel::names)
        made.emplace(joined(*entry, kind), entry->make(framework(kind)));
    return made;
  }();
  return names;
}

const TrainerEntry *entryOf(const std::string &trainer) {
  for (const TrainerEntry *entry : trainers())
    if (entry->name == trainer)
      return entry;
  return nullptr;
}

} // namespace

std::string Trainer::name() const {
  const TrainerEntry *entry = entryOf(trainer);
  return entry ? joined(*entry, over.kind()) : trainer;
}

const Framework *findFramework(const std::string &name) {
  if (auto kind = parseExecutor(name))
    return &framework(*kind);
  const auto found = trainersByName().find(name);
  return found == trainersByName().end() ? nullptr : found->second.get();
}

const Framework *findTrainer(const std::string &trainer, FrameworkKind over) {
  if (trainer.empty())
    return &framework(over);
  const TrainerEntry *entry = entryOf(trainer);
  return entry ? findFramework(joined(*entry, over)) : nullptr;
}

std::optional<FrameworkKind> trainerExecutor(const std::string &trainer) {
  const TrainerEntry *entry = entryOf(trainer);
  return entry ? std::optional(entry->usual) : std::nullopt;
}

} // namespace frameworks
} // namespace accel
