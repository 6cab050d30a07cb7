//===- Rope.cpp - Rotary position embeddings of a config.json -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Rope.h"

#include "frontends/ConfigJson/ConfigReader.h"

#include <algorithm>
#include <cmath>

using namespace accel;
using namespace accel::huggingface;

int64_t Rope::reach(int64_t learnt) const {
  double original = kind == Kind::Dynamic ? double(maxPositions)
                    : kind == Kind::Yarn  ? double(originalMaxPositions)
                                          : 0;
  double most = double(sizeLimits::positions);
  return std::max(learnt, int64_t(std::min(factor * original, most)));
}

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

/// Reads the members of one kind from the object `section`, whose name ends in
/// a dot.
namespace {
class ScalingReader {
public:
  ScalingReader(ConfigReader &json, std::string section, int64_t maxPositions,
                Rope &rope)
      : json(json), section(std::move(section)), maxPositions(maxPositions),
        rope(rope) {}

  void read(const RopeNames &names);

private:
  std::optional<std::string> type();
  void factor() { rope.factor = positive(json, section + "factor"); }
  void originalPositions();
  void llama3();
  void yarn();
  void longRope();
  std::vector<double> factors(const std::string &key);
  /// What the object says of 'attention_factor', or `otherwise`.
  double attention(double otherwise);

  ConfigReader &json;
  std::string section;
  int64_t maxPositions;
  Rope &rope;
};
} // namespace

std::optional<std::string> ScalingReader::type() {
  std::string key =
      section + (json.has(section + "rope_type") ? "rope_type" : "type");
  std::optional<std::string> type = json.text(key);
  if (type || json.failed())
    return type;
  for (const auto &[name, value] :
       json.find(section.substr(0, section.size() - 1))->items())
    if (value.is_object()) {
      json.unsupported(section + name, "rotary embeddings by layer type "
                                       "are not supported yet");
      return std::nullopt;
    }
  return "default";
}

void ScalingReader::originalPositions() {
  std::string original = "original_max_position_embeddings";
  if (!json.has(original))
    original = section + original;
  rope.originalMaxPositions =
      json.size(original, maxPositions, sizeLimits::positions);
}

double ScalingReader::attention(double otherwise) {
  std::string key = section + "attention_factor";
  if (!json.has(key) || json.isNull(key))
    return otherwise;
  double value = json.number(key, otherwise);
  if (value < 0)
    json.error(key, "'" + key + "' must not be negative");
  return value;
}

void ScalingReader::llama3() {
  rope.lowFrequencyFactor = positive(json, section + "low_freq_factor");
  rope.highFrequencyFactor = positive(json, section + "high_freq_factor");
  originalPositions();
  if (!json.failed() && rope.highFrequencyFactor <= rope.lowFrequencyFactor)
    json.error(section + "high_freq_factor",
               "'high_freq_factor' must be greater than 'low_freq_factor'");
}

/// Peng et al., "YaRN: Efficient Context Window Extension of Large Language
/// Models", 2023.
void ScalingReader::yarn() {
  originalPositions();
  // Zero, like null, asks for the default.
  auto orDefault = [&](const char *key, double otherwise) {
    double value = json.number(section + key, 0, /*nullable=*/true);
    if (value < 0)
      json.error(section + key, std::string("'") + key + "' must be positive");
    return value == 0 ? otherwise : value;
  };
  rope.betaFast = orDefault("beta_fast", 32);
  rope.betaSlow = orDefault("beta_slow", 1);
  rope.truncate = json.flag(section + "truncate", true);
  if (rope.theta <= 1)
    json.error(section + "rope_theta", "rope type 'yarn' takes a 'rope_theta' "
                                       "above 1");
  auto scale = [&](double weight) {
    return rope.factor <= 1 ? 1 : 0.1 * weight * std::log(rope.factor) + 1;
  };
  double mscale = orDefault("mscale", 0);
  double mscaleAll = orDefault("mscale_all_dim", 0);
  rope.attentionFactor =
      attention(mscale != 0 && mscaleAll != 0 ? scale(mscale) / scale(mscaleAll)
                                              : scale(1));
}

std::vector<double> ScalingReader::factors(const std::string &name) {
  std::string key = section + name;
  const nlohmann::json *list = json.find(key);
  if (!list) {
    json.error(key, "'" + key + "' is missing");
    return {};
  }
  std::vector<double> result;
  bool good = list->is_array();
  for (size_t i = 0; good && i < list->size(); ++i) {
    good = (*list)[i].is_number() && (*list)[i].get<double>() > 0;
    if (good)
      result.push_back((*list)[i].get<double>());
  }
  if (!good)
    json.error(key, "'" + key + "' must be a list of positive numbers");
  return result;
}

/// Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million
/// Tokens", 2024.
void ScalingReader::longRope() {
  originalPositions();
  rope.shortFactors = factors("short_factor");
  rope.longFactors = factors("long_factor");
  std::string key = section + "factor";
  rope.factor = json.has(key) && !json.isNull(key)
                    ? positive(json, key)
                    : double(maxPositions) / double(rope.originalMaxPositions);
  double otherwise = 1;
  if (rope.factor > 1) {
    double context = double(rope.originalMaxPositions);
    if (context < 2) {
      json.error(key, "rope type 'longrope' takes more than one original "
                      "position");
      return;
    }
    otherwise = std::sqrt(1 + std::log(rope.factor) / std::log(context));
  }
  rope.attentionFactor = attention(otherwise);
}

void ScalingReader::read(const RopeNames &names) {
  std::optional<std::string> kind = type();
  if (!kind || *kind == "default" || (names.sections && *kind == "mrope"))
    return;
  if (names.longRopeOnly && (*kind == "su" || *kind == "yarn"))
    kind = "longrope";
  struct Known {
    const char *name;
    Rope::Kind kind;
  };
  static constexpr Known known[] = {
      {"linear", Rope::Kind::Linear}, {"dynamic", Rope::Kind::Dynamic},
      {"yarn", Rope::Kind::Yarn},     {"longrope", Rope::Kind::LongRope},
      {"llama3", Rope::Kind::Llama3},
  };
  const Known *entry = std::ranges::find(known, *kind, &Known::name);
  std::string key =
      section + (json.has(section + "rope_type") ? "rope_type" : "type");
  if (entry == std::end(known)) {
    json.unsupported(key, "rope type '" + printable(*kind) +
                              "' is not supported yet; supported are default, "
                              "linear, dynamic, yarn, longrope and llama3");
    return;
  }
  if (names.longRopeOnly && entry->kind != Rope::Kind::LongRope) {
    json.error(key, "rope type '" + *kind +
                        "' is refused by transformers here, which takes "
                        "default or longrope");
    return;
  }
  rope.kind = entry->kind;
  switch (rope.kind) {
  case Rope::Kind::Default:
    return;
  case Rope::Kind::Linear:
    return factor();
  case Rope::Kind::Dynamic:
    rope.maxPositions = maxPositions;
    return factor();
  case Rope::Kind::Yarn:
    factor();
    return yarn();
  case Rope::Kind::LongRope:
    return longRope();
  case Rope::Kind::Llama3:
    factor();
    return llama3();
  }
}

Rope accel::huggingface::readRopeSection(ConfigReader &json,
                                         const std::string &object,
                                         int64_t maxPositions,
                                         const RopeNames &names) {
  const bool given = json.find("rope_scaling") || json.find("rope_parameters");
  Rope rope = given ? Rope() : names.absent;
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
    ScalingReader(json, section, maxPositions, rope).read(names);
  return rope;
}

std::string accel::huggingface::ropeSection(ConfigReader &json) {
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json *value = json.find(key);
    if (!value)
      continue;
    if (!value->is_object()) {
      json.error(key, std::string("'") + key + "' must be an object");
      return "";
    }
    if (!value->empty())
      return key;
  }
  return "";
}

Rope accel::huggingface::readRope(ConfigReader &json, int64_t maxPositions,
                                  const RopeNames &names) {
  const std::string section = ropeSection(json);
  return json.failed() ? Rope()
                       : readRopeSection(json, section, maxPositions, names);
}

void accel::huggingface::checkRope(ConfigReader &json, const Rope &rope,
                                   int64_t headDim) {
  if (json.failed())
    return;
  int64_t dims = rope.dims(headDim), pairs = rope.width(headDim) / 2;
  if (rope.kind == Rope::Kind::Dynamic && dims <= 2)
    json.error("", "rope type 'dynamic' takes more than 2 rotated elements of "
                   "a head");
  if (rope.kind == Rope::Kind::Yarn && dims % 2 != 0)
    json.error("", "rope type 'yarn' takes an even number of rotated elements "
                   "of a head, not " +
                       std::to_string(dims));
  if (rope.kind == Rope::Kind::LongRope)
    for (auto [name, list] : {std::pair("short_factor", &rope.shortFactors),
                              std::pair("long_factor", &rope.longFactors)})
      if (int64_t(list->size()) != pairs) {
        json.error("rope_scaling", std::string("'") + name + "' has " +
                                       std::to_string(list->size()) +
                                       " numbers, but a head has " +
                                       std::to_string(pairs) +
                                       " rotary frequencies");
        return;
      }
}
