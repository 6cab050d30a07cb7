//===- RunSources.cpp - Who published a measured run ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RunDescription.h"

namespace accel::validate {

Source sourceOf(const std::string &name) {
  auto is = [&](const char *part) { return name.find(part) != name.npos; };
  if (is("torchtitan") || is("titan"))
    return Source::Torchtitan;
  if (is("kempner"))
    return Source::KempnerForge;
  if (is("foundry") || is("composer") || is("mosaic"))
    return Source::LlmFoundry;
  if (is("fms"))
    return Source::FmsFsdp;
  if (is("torchtune"))
    return Source::Torchtune;
  if (is("megatron") || is("nemo") || is("simumax"))
    return Source::Megatron;
  if (is("transformers") || is("accelerate") || is("trainer") || is("trl") ||
      is("deepspeed") || is("hf") || is("hugging") || is("axolotl"))
    return Source::Transformers;
  return Source::Unknown;
}

const char *toString(Source source) {
  switch (source) {
  case Source::Torchtitan:
    return "torchtitan";
  case Source::KempnerForge:
    return "kempnerforge";
  case Source::LlmFoundry:
    return "llm-foundry";
  case Source::FmsFsdp:
    return "fms-fsdp";
  case Source::Torchtune:
    return "torchtune";
  case Source::Transformers:
    return "transformers";
  case Source::Megatron:
    return "megatron";
  case Source::Unknown:
    break;
  }
  return "other";
}

const char *toString(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::Reserved:
    return "reserved";
  case MemoryKind::Allocated:
    return "allocated";
  case MemoryKind::Device:
    return "device";
  }
  return "";
}

const char *trainerOf(Source source) {
  switch (source) {
  case Source::Torchtitan:
  case Source::KempnerForge:
  case Source::LlmFoundry:
  case Source::FmsFsdp:
  case Source::Torchtune:
    return toString(source);
  default:
    return "";
  }
}

} // namespace accel::validate
