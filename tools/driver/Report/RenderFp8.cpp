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

/// A kind of linear layer: those of one name and shape in all layers.
struct LinearKind {
  Fp8Seconds seconds; // in the whole step
  int64_t calls = 0;  // in a micro-batch
};

bool isOf(const StepParameter &parameter, const Fp8Seconds &layer) {
  return parameter.shape == std::vector<int64_t>{layer.out, layer.in} &&
         (parameter.fqn == layer.name ||
          parameter.fqn.ends_with("." + layer.name));
}

/// The model has the seconds of each function once; a step calls it for each
/// layer, and in each of `accumulation` micro-batches.
std::vector<LinearKind> kindsInStep(const StepModel &model,
                                    int64_t accumulation) {
  // torchao leaves the first linear layer as it is, whose weight is not
  // gathered in fp8 then. Recipes that gather none count it with its kind.
  const bool gathers =
      std::any_of(model.parameters.begin(), model.parameters.end(),
                  [](const StepParameter &p) { return p.gathersFp8; });
  std::vector<LinearKind> kinds;
  for (const Fp8Seconds &layer : model.fp8) {
    // Two functions have it: layers with and without a window.
    if (std::any_of(kinds.begin(), kinds.end(), [&](const LinearKind &kind) {
          return kind.seconds.name == layer.name &&
                 kind.seconds.in == layer.in && kind.seconds.out == layer.out;
        }))
      continue;
    LinearKind kind{layer};
    for (const StepCall &call : model.calls)
      kind.calls += std::any_of(
          call.parameters.begin(), call.parameters.end(), [&](int p) {
            const StepParameter &parameter = model.parameters[p];
            return isOf(parameter, layer) && parameter.gathersFp8 == gathers;
          });
    kind.calls = std::max<int64_t>(kind.calls, 1);
    const auto times = static_cast<double>(kind.calls * accumulation);
    kind.seconds.wide *= times;
    kind.seconds.narrow *= times;
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

} // namespace

std::string renderFp8(const StepModel &model, const Candidate &candidate) {
  double wide = 0, narrow = 0;
  std::vector<std::string> slower;
  for (const LinearKind &kind : kindsInStep(model, candidate.accumulation)) {
    const Fp8Seconds &layer = kind.seconds;
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
  text += "the matmuls of its linear layers take " + formatSeconds(narrow) +
          " with their casts, " + formatSeconds(wide) + " in 16 bits in a step";
  if (!all && !slower.empty()) {
    text += "; it does not pay for ";
    for (size_t i = 0; i < slower.size(); ++i)
      text += (i ? ", " : "") + slower[i];
  }
  if (!candidate.compiled && !slower.empty())
    text += " (torch.compile fuses casts that run one by one here)";
  return text + "\n";
}

nlohmann::ordered_json fp8Json(const StepModel &model,
                               const Candidate &candidate) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto &[layer, calls] : kindsInStep(model, candidate.accumulation))
    list.push_back({{"name", layer.name},
                    {"calls", calls},
                    {"rows", layer.rows},
                    {"in", layer.in},
                    {"out", layer.out},
                    {"seconds_16_bits", layer.wide},
                    {"seconds_8_bits", layer.narrow}});
  return list;
}

} // namespace accel
