//===- BaseModelWeights.cpp - Which part of a model a checkpoint holds ----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BaseModelWeights.h"

#include <algorithm>

namespace accel::huggingface {

std::string BaseModelWeights::name(const std::string &own) const {
  return !prefix.empty() && own.starts_with(prefix) ? own.substr(prefix.size())
                                                    : own;
}

BaseModelWeights
baseModelWeights(const std::vector<StoredAs> &parameters,
                 const std::string &base,
                 const std::function<bool(const std::string &)> &has) {
  auto stored = [&](const StoredAs &p, const BaseModelWeights &as) {
    auto there = [&](const std::string &name) { return has(as.name(name)); };
    return std::any_of(p.names.begin(), p.names.end(), there) ||
           (!p.parts.empty() &&
            std::all_of(p.parts.begin(), p.parts.end(), has));
  };
  const std::string prefix = base + ".";
  for (const char *removed : {"", prefix.c_str()}) {
    BaseModelWeights held;
    held.prefix = removed;
    std::vector<bool> fresh;
    size_t lacking = 0, ofHead = 0, ofBase = 0;
    for (const StoredAs &p : parameters) {
      const bool isBase = p.names.front().starts_with(prefix);
      (isBase ? ofBase : ofHead) += 1;
      fresh.push_back(!stored(p, held));
      if (fresh.back())
        lacking += isBase ? parameters.size() + 1 : 1;
    }
    if (!lacking)
      return held;
    if (base.empty())
      break;
    if (ofBase && lacking == ofHead) { // all of the base, nothing of the head
      held.fresh = std::move(fresh);
      return held;
    }
  }
  return {};
}

std::optional<std::vector<std::string>>
namesInCheckpoint(const BaseModelWeights &held, const ModelInfo &model,
                  size_t parameter) {
  const ParameterInfo &info = model.parameters[parameter];
  if (held.prefix.empty() && !held.isFresh(parameter))
    return std::nullopt;
  std::vector<std::string> names;
  if (held.isFresh(parameter))
    names.push_back("");
  names.push_back(held.name(info.fqn));
  for (const std::string &alias : info.aliases)
    names.push_back(held.name(alias));
  return names;
}

} // namespace accel::huggingface
