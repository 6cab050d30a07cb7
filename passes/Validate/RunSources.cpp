//===- RunSources.cpp - Who published a measured run ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RunDescription.h"

#include <cctype>
#include <cstdlib>
#include <utility>

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
  for (const char *kin :
       {"transformers", "accelerate", "trainer", "trl", "deepspeed", "hf",
        "hugging", "axolotl", "factory", "swift", "peft", "unsloth", "lmflow",
        "alignment-handbook", "fastchat", "alpaca", "xtuner"})
    if (is(kin))
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

namespace {

/// Releases by the month in which they came.
struct Release {
  int month;
  const char *name;
};
constexpr Release transformersReleases[] = {
    {202303, "4.27"}, {202304, "4.28"}, {202305, "4.29"}, {202306, "4.30"},
    {202307, "4.31"}, {202308, "4.32"}, {202309, "4.33"}, {202310, "4.34"},
    {202311, "4.35"}, {202312, "4.36"}, {202401, "4.37"}, {202402, "4.38"},
    {202403, "4.39"}, {202404, "4.40"}, {202405, "4.41"}, {202406, "4.42"},
    {202407, "4.43"}, {202408, "4.44"}, {202409, "4.45"}, {202410, "4.46"},
    {202412, "4.47"}, {202501, "4.48"}, {202502, "4.49"}, {202503, "4.50"},
    {202504, "4.51"}, {202505, "4.52"}, {202506, "4.53"}, {202507, "4.54"},
    {202508, "4.56"}, {202510, "4.57"}, {202601, "5.0"}};
constexpr Release torchReleases[] = {
    {202303, "2.0"}, {202310, "2.1"}, {202401, "2.2"}, {202404, "2.3"},
    {202407, "2.4"}, {202410, "2.5"}, {202501, "2.6"}, {202504, "2.7"},
    {202508, "2.8"}, {202510, "2.9"}, {202601, "2.10"}};
constexpr Release accelerateReleases[] = {
    {202302, "0.17"}, {202306, "0.20"}, {202308, "0.22"}, {202311, "0.25"},
    {202402, "0.27"}, {202404, "0.29"}, {202405, "0.30"}, {202407, "0.33"},
    {202410, "1.0"},  {202411, "1.1"},  {202412, "1.2"},  {202501, "1.3"},
    {202503, "1.5"},  {202504, "1.6"},  {202505, "1.7"},  {202506, "1.8"},
    {202507, "1.9"},  {202508, "1.10"}, {202510, "1.11"}};

/// The newest of `releases` in `month`; `now` after the last that is listed.
template <size_t N>
std::string newest(const Release (&releases)[N], int month,
                   const std::string &now) {
  if (month > releases[N - 1].month)
    return now;
  const char *name = releases[0].name;
  for (const Release &release : releases)
    if (release.month <= month)
      name = release.name;
  return name;
}

} // namespace

frameworks::Versions releasesOf(int month) {
  const frameworks::Versions now;
  return {newest(torchReleases, month, now.torch),
          newest(accelerateReleases, month, now.accelerate),
          newest(transformersReleases, month, now.transformers)};
}

int monthOfTorch(const std::string &version) {
  int month = 0;
  for (const Release &release : torchReleases)
    if (atLeast(version, release.name))
      month = release.month;
  return month;
}

std::string torchOfTable(int month) {
  const std::pair<int, const char *> releases[] = {
      {202408, "2.4"}, {202410, "2.5"}, {202502, "2.6"}, {202505, "2.7"},
      {202507, "2.8"}, {202510, "2.9"}, {202602, "2.10"}};
  for (const auto &[before, release] : releases)
    if (month < before)
      return release;
  return "2.15";
}

int monthOfTable(const std::string &text) {
  if (text.find("performance.md") != text.npos)
    return 202406; // torchtitan's first table
  for (size_t at = text.find("20"); at != text.npos;
       at = text.find("20", at + 1)) {
    std::string digits;
    for (size_t i = at; i < text.size() && digits.size() < 6; ++i) {
      if (std::isdigit(static_cast<unsigned char>(text[i])))
        digits += text[i];
      else if (text[i] != '-' || digits.size() != 4)
        break;
    }
    const int number = std::atoi(digits.c_str());
    if (digits.size() == 6 && number >= 202301 && number <= 203012 &&
        number % 100 >= 1 && number % 100 <= 12)
      return number;
  }
  return 999912;
}

} // namespace accel::validate
