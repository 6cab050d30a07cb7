//===- RenderFp8.cpp - Where fp8 pays -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderFp8.h"

#include "tools/driver/Text/Format.h"

#include <algorithm>

namespace accel {
namespace {

/// "self_attn.q_proj.weight" -> "q_proj".
std::string shortName(std::string name) {
  if (name.ends_with(".weight"))
    name.resize(name.size() - std::string(".weight").size());
  return name.substr(name.rfind('.') + 1);
}

} // namespace

std::string renderFp8(const StepModel &model, bool compiled) {
  double wide = 0, narrow = 0;
  std::vector<std::string> slower;
  for (const Fp8Seconds &layer : model.fp8) {
    wide += layer.wide;
    narrow += layer.narrow;
    const std::string name = shortName(layer.name);
    if (layer.narrow > layer.wide &&
        std::find(slower.begin(), slower.end(), name) == slower.end())
      slower.push_back(name);
  }
  if (model.fp8.empty())
    return "";
  const bool all = narrow > wide;
  std::string text = all ? "    fp8 does not pay: " : "    fp8: ";
  text += "the matmuls of its linear layers, each once, take " +
          formatSeconds(narrow) + " with their casts, " + formatSeconds(wide) +
          " in 16 bits";
  if (!all && !slower.empty()) {
    text += "; it does not pay for ";
    for (size_t i = 0; i < slower.size(); ++i)
      text += (i ? ", " : "") + slower[i];
  }
  if (!compiled && !slower.empty())
    text += " (torch.compile fuses casts that run one by one here)";
  return text + "\n";
}

nlohmann::ordered_json fp8Json(const StepModel &model) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Fp8Seconds &layer : model.fp8)
    list.push_back({{"name", layer.name},
                    {"rows", layer.rows},
                    {"in", layer.in},
                    {"out", layer.out},
                    {"seconds_16_bits", layer.wide},
                    {"seconds_8_bits", layer.narrow}});
  return list;
}

} // namespace accel
