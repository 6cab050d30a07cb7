//===- Rope.cpp - Rotary position embeddings of a config.json -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Rope.h"

#include "frontends/HuggingFace/ConfigReader.h"

using namespace accel;
using namespace accel::huggingface;

static double positive(ConfigReader &json, const std::string &key) {
  if (!json.has(key)) {
    json.error(key, "'" + key + "' is missing");
    return 1;
  }
  double value = json.number(key, 1.0);
  if (value <= 0)
    json.error(key, "'" + key + "' must be positive");
  return value;
}

/// The kind in the object `section`, whose name ends in a dot.
static void readScaling(ConfigReader &json, const std::string &section,
                        int64_t maxPositions, Rope &rope) {
  std::string typeKey =
      section + (json.has(section + "rope_type") ? "rope_type" : "type");
  std::optional<std::string> type = json.text(typeKey);
  if (json.failed())
    return;
  if (!type) {
    for (const auto &[name, value] :
         json.find(section.substr(0, section.size() - 1))->items())
      if (value.is_object()) {
        json.unsupported(section + name, "rotary embeddings by layer type "
                                         "are not supported yet");
        return;
      }
    type = "default";
  }
  if (*type == "default")
    return;
  if (*type != "linear" && *type != "llama3") {
    json.unsupported(typeKey, "rope type '" + printable(*type) +
                                  "' is not supported yet; supported are "
                                  "default, linear and llama3");
    return;
  }
  rope.factor = positive(json, section + "factor");
  if (*type == "linear") {
    rope.kind = Rope::Kind::Linear;
    return;
  }
  rope.kind = Rope::Kind::Llama3;
  rope.lowFrequencyFactor = positive(json, section + "low_freq_factor");
  rope.highFrequencyFactor = positive(json, section + "high_freq_factor");
  std::string original = "original_max_position_embeddings";
  if (!json.has(original))
    original = section + original;
  rope.originalMaxPositions =
      json.size(original, maxPositions, sizeLimits::positions);
  if (!json.failed() && rope.highFrequencyFactor <= rope.lowFrequencyFactor)
    json.error(section + "high_freq_factor",
               "'high_freq_factor' must be greater than 'low_freq_factor'");
}

Rope accel::huggingface::readRopeSection(ConfigReader &json,
                                         const std::string &object,
                                         int64_t maxPositions,
                                         const RopeNames &names) {
  Rope rope;
  std::string section = object.empty() ? "" : object + ".";
  bool ownTheta = !section.empty() && json.has(section + "rope_theta");
  std::string theta = ownTheta ? section + "rope_theta" : names.theta;
  rope.theta = json.number(theta, names.defaultTheta);
  if (rope.theta <= 0)
    json.error(theta, "'" + theta + "' must be positive");
  rope.partial = names.defaultPartial;
  for (const std::string &key :
       {section + "partial_rotary_factor", names.partial}) {
    if (!json.has(key))
      continue;
    rope.partial = json.number(key, names.defaultPartial, /*nullable=*/true);
    if (!names.partialAllowed && rope.partial != 1.0) {
      json.unsupported(key, "partial rotary embeddings are not supported "
                            "yet; 'partial_rotary_factor' must be 1");
      return rope;
    }
    if (rope.partial <= 0 || rope.partial > 1)
      json.error(key, "'" + key + "' must be above 0 and at most 1");
    break;
  }
  if (!section.empty())
    readScaling(json, section, maxPositions, rope);
  return rope;
}

Rope accel::huggingface::readRope(ConfigReader &json, int64_t maxPositions,
                                  const RopeNames &names) {
  // transformers prefers a rope_scaling that is not empty to rope_parameters.
  std::string section;
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json *value = json.find(key);
    if (!value)
      continue;
    if (!value->is_object()) {
      json.error(key, std::string("'") + key + "' must be an object");
      return {};
    }
    if (!value->empty()) {
      section = key;
      break;
    }
  }
  return readRopeSection(json, section, maxPositions, names);
}
