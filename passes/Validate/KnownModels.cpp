//===- KnownModels.cpp - Shapes and devices by their names ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Recipe.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace accel::validate {

namespace {

/// Letters and digits in lower case, so that spellings meet.
std::string squeezed(const std::string &text) {
  std::string result;
  for (char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

struct Known {
  const char *name; // squeezed
  ModelShape shape;
};

// config.json of the published models; MPT as in llm-foundry's
// scripts/train/benchmarking.
const Known models[] = {
    {"llama27b", {32, 4096, 32, 32, 11008, 32000}},
    {"llama213b", {40, 5120, 40, 40, 13824, 32000}},
    {"llama270b", {80, 8192, 64, 8, 28672, 32000}},
    {"codellama7b", {32, 4096, 32, 32, 11008, 32016}},
    {"codellama13b", {40, 5120, 40, 40, 13824, 32016}},
    {"codellama34b", {48, 8192, 64, 8, 22016, 32000}},
    {"llama38b", {32, 4096, 32, 8, 14336, 128256}},
    {"llama318b", {32, 4096, 32, 8, 14336, 128256}},
    {"llama370b", {80, 8192, 64, 8, 28672, 128256}},
    {"llama3170b", {80, 8192, 64, 8, 28672, 128256}},
    {"llama3370b", {80, 8192, 64, 8, 28672, 128256}},
    {"llama31405b", {126, 16384, 128, 8, 53248, 128256}},
    {"llama3405b", {126, 16384, 128, 8, 53248, 128256}},
    {"llama321b", {16, 2048, 32, 8, 8192, 128256}},
    {"llama323b", {28, 3072, 24, 8, 8192, 128256}},
    {"mistral7b", {32, 4096, 32, 8, 14336, 32000}},
    {"qwen27b", {28, 3584, 28, 4, 18944, 152064}},
    {"qwen257b", {28, 3584, 28, 4, 18944, 152064}},
    {"qwen2514b", {48, 5120, 40, 8, 13824, 152064}},
    {"qwen2532b", {64, 5120, 40, 8, 27648, 152064}},
    {"qwen2572b", {80, 8192, 64, 8, 29568, 152064}},
    {"mpt125m", {12, 768, 12, 12, 3072, 50368}},
    {"mpt350m", {24, 1024, 16, 16, 4096, 50368}},
    {"mpt760m", {24, 1536, 12, 12, 6144, 50368}},
    {"mpt1b", {24, 2048, 16, 16, 8192, 50368}},
    {"mpt3b", {32, 2560, 20, 20, 10240, 50368}},
    {"mpt7b", {32, 4096, 32, 32, 16384, 50368}},
    {"mpt13b", {40, 5120, 40, 40, 20480, 50368}},
    {"mpt30b", {48, 7168, 56, 56, 28672, 50368}},
    {"mpt70b", {80, 8192, 64, 64, 32768, 50368}},
    {"gpt2", {12, 768, 12, 12, 3072, 50257}},
    {"gpt2medium", {24, 1024, 16, 16, 4096, 50257}},
    {"gpt2large", {36, 1280, 20, 20, 5120, 50257}},
    {"gpt2xl", {48, 1600, 25, 25, 6400, 50257}},
};

} // namespace

std::optional<ModelShape> knownShape(const std::string &name) {
  std::string key = name.substr(0, name.find('['));
  if (size_t slash = key.rfind('/'); slash != key.npos)
    key.erase(0, slash + 1);
  key = squeezed(key);
  for (const char *prefix : {"metallama", "meta"})
    if (key.starts_with(prefix) && key.size() > std::string(prefix).size()) {
      key.erase(0, std::string(prefix).size());
      if (!key.starts_with("llama"))
        key = "llama" + key;
      break;
    }
  for (const char *suffix : {"instruct", "chat", "base", "hf", "v01", "v03"})
    if (key.ends_with(suffix))
      key.erase(key.size() - std::string(suffix).size());
  const auto found =
      std::find_if(std::begin(models), std::end(models),
                   [&](const Known &known) { return key == known.name; });
  return found == std::end(models) ? std::nullopt
                                   : std::optional<ModelShape>(found->shape);
}

std::string targetOfGpu(const std::string &gpu) {
  const std::string key = squeezed(gpu);
  auto has = [&](const char *part) { return key.find(part) != key.npos; };
  if (has("gb200") || has("gb300") || has("b300") || has("gh200"))
    return ""; // other memory, power and links
  if (has("h200"))
    return "h200";
  if (has("b200"))
    return "b200";
  if (has("h100")) {
    if (has("pcie"))
      return "h100-pcie-80gb";
    if (has("nvl"))
      return "";
    return has("96gb") || has("95gb") || has("94gb") || has("500w")
               ? "h100-sxm-96gb"
               : "h100-sxm-80gb";
  }
  if (has("h800"))
    return "";
  if (has("a100"))
    return has("40gb") || has("40g") ? "a100-40gb" : "a100-80gb";
  if (has("mi300x"))
    return "mi300x";
  if (has("l40s"))
    return "l40s";
  if (has("4090"))
    return "rtx4090";
  if (has("a6000"))
    return "a6000";
  return "";
}

} // namespace accel::validate
