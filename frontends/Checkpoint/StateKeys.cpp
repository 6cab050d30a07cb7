//===- StateKeys.cpp - Which tensors an optimizer keeps -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/StateKeys.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>
#include <map>

namespace accel::checkpoint {

namespace {

constexpr std::string_view heads[] = {"state", "param_groups"};

bool isHead(const std::string &key) {
  return std::find(std::begin(heads), std::end(heads), key) != std::end(heads);
}

bool isNumber(const std::string &key) {
  return !key.empty() && key.find_first_not_of("0123456789") == key.npos;
}

bool isKnownState(const std::string &kind) {
  for (const plan::OptimizerDescription &optimizer : plan::optimizers())
    for (const plan::StateRule &rule : optimizer.states)
      if (kind == rule.name)
        return true;
  return kind == "step";
}

/// What a parameter may be called that has this tensor: its name below any of
/// its keys, but no number.
void addNames(const Tensor &tensor, std::set<std::string> &names) {
  for (size_t i = 0; i < tensor.path.size(); ++i)
    if (std::string name = joinKeys(tensor.path, i); !isNumber(name))
      names.insert(std::move(name));
}

/// A key "state.layer.weight.exp_avg", taken apart.
struct Flattened {
  std::string before; // "optimizer" of "optimizer.state..", mostly none
  std::string head;
  std::string parameter, kind;
};

/// Of each parameter of a dictionary.
using Kinds = std::map<std::string, std::set<std::string>>;

class Flat {
public:
  explicit Flat(std::vector<Part> &parts) : parts(parts) {}

  void run() {
    bool some = false;
    each([&](const Tensor &tensor) {
      some = some || !splits(tensor.path.back()).empty();
    });
    if (!some)
      return;
    each([&](Tensor &tensor) { addNames(tensor, names); });
    // By the names of parameters first, then by the kinds that one of these
    // has: a tied parameter may be saved by another of its names.
    using Split = std::pair<Tensor *, Flattened>;
    std::vector<Split> found, others;
    each([&](Tensor &tensor) {
      if (auto split = splitByName(tensor)) {
        known[dictionaryOf(tensor, *split)][split->parameter].insert(
            split->kind);
        found.emplace_back(&tensor, std::move(*split));
      }
    });
    each([&](Tensor &tensor) {
      if (!splitByName(tensor))
        if (auto split = splitByKind(tensor))
          others.emplace_back(&tensor, std::move(*split));
    });
    std::map<std::string, Kinds> open; // by dictionary
    for (const auto &[tensor, split] : others)
      open[dictionaryOf(*tensor, split)][split.parameter].insert(split.kind);
    for (Split &other : others) {
      const std::string dictionary = dictionaryOf(*other.first, other.second);
      const std::set<std::string> &own =
          open[dictionary][other.second.parameter];
      if (std::any_of(known[dictionary].begin(), known[dictionary].end(),
                      [&](const auto &each) { return each.second == own; }))
        found.push_back(std::move(other));
    }
    for (auto &[tensor, split] : found) {
      tensor->path.pop_back();
      for (std::string *key :
           {&split.before, &split.head, &split.parameter, &split.kind})
        if (!key->empty())
          tensor->path.push_back(std::move(*key));
    }
  }

private:
  template <typename Function> void each(const Function &function) {
    for (Part &part : parts)
      if (!part.zero && !part.runShard)
        for (Tensor &tensor : part.tensors)
          if (!tensor.path.empty())
            function(tensor);
  }

  /// At each head in a key: what stands before it, and the rest behind it.
  static std::vector<std::pair<Flattened, std::string>>
  splits(const std::string &key) {
    std::vector<std::pair<Flattened, std::string>> found;
    for (std::string_view head : heads)
      for (size_t at = key.find(head); at != key.npos;
           at = key.find(head, at + 1)) {
        const size_t end = at + head.size();
        if ((at && key[at - 1] != '.') || end >= key.size() || key[end] != '.')
          continue;
        found.push_back(
            {{at ? key.substr(0, at - 1) : "", std::string(head), "", ""},
             key.substr(end + 1)});
      }
    return found;
  }

  static std::string dictionaryOf(const Tensor &tensor,
                                  const Flattened &split) {
    std::vector<std::string> keys(tensor.path.begin(), tensor.path.end() - 1);
    if (!split.before.empty())
      keys.push_back(split.before);
    keys.push_back(split.head);
    return joinKeys(keys);
  }

  std::optional<Flattened> splitByName(const Tensor &tensor) const {
    for (auto &[split, rest] : splits(tensor.path.back()))
      for (size_t dot = rest.rfind('.'); dot != rest.npos && dot > 0;
           dot = rest.rfind('.', dot - 1)) {
        Flattened own = split;
        own.parameter = rest.substr(0, dot);
        own.kind = rest.substr(dot + 1);
        if (!own.kind.empty() && names.count(own.parameter) &&
            !names.count(dictionaryOf(tensor, own) + "." + own.parameter))
          return own;
      }
    return std::nullopt;
  }

  std::optional<Flattened> splitByKind(const Tensor &tensor) const {
    for (auto &[split, rest] : splits(tensor.path.back())) {
      const auto own = known.find(dictionaryOf(tensor, split));
      if (own == known.end())
        continue;
      for (const auto &[parameter, kinds] : own->second)
        for (const std::string &kind : kinds)
          if (rest.size() > kind.size() + 1 && rest.ends_with("." + kind)) {
            Flattened made = split;
            made.parameter = rest.substr(0, rest.size() - kind.size() - 1);
            made.kind = kind;
            return made;
          }
    }
    return std::nullopt;
  }

  std::vector<Part> &parts;
  std::set<std::string> names;        // that parameters may have
  std::map<std::string, Kinds> known; // by dictionary
};

} // namespace

std::string joinKeys(const std::vector<std::string> &path, size_t begin) {
  std::string text;
  for (size_t i = begin; i < path.size(); ++i)
    text += (i == begin ? "" : ".") + path[i];
  return text;
}

void nestFlattenedStates(std::vector<Part> &parts) { Flat(parts).run(); }

StateKeys::StateKeys(const Part &part) {
  std::set<std::string> tensors;
  for (const Tensor &tensor : part.tensors)
    addNames(tensor, tensors);
  for (const Tensor &tensor : part.tensors) {
    const std::vector<std::string> &path = tensor.path;
    for (size_t i = 0; i + 2 < path.size(); ++i)
      if (path[i] == "state" &&
          (tensors.count(path[i + 1]) || isKnownState(path.back()))) {
        dictionaries.emplace(path.begin(), path.begin() + i);
        if (!isNumber(path[i + 1]))
          names.insert(path[i + 1]);
      }
  }
}

bool StateKeys::has(const Tensor &tensor) const {
  const std::vector<std::string> &path = tensor.path;
  for (size_t i = 0; i + 1 < path.size(); ++i)
    if (isHead(path[i]) && dictionaries.count({path.begin(), path.begin() + i}))
      return true;
  return false;
}

bool StateKeys::isOfGroups(const Tensor &value) {
  return std::any_of(
      value.path.begin(), value.path.end(), [](const std::string &key) {
        return key == "param_groups" || key.starts_with("param_groups.") ||
               key.find(".param_groups.") != key.npos;
      });
}

bool StateKeys::isBelow(const std::vector<std::string> &keys,
                        size_t depth) const {
  return std::any_of(dictionaries.begin(), dictionaries.end(),
                     [&](const std::vector<std::string> &own) {
                       return own.size() >= depth &&
                              std::equal(keys.begin(), keys.begin() + depth,
                                         own.begin());
                     });
}

} // namespace accel::checkpoint
