//===- StateKeys.cpp - Which tensors an optimizer keeps -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/WeightFiles.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel::checkpoint {

namespace {

using Keys = std::vector<std::string>;

constexpr std::string_view stateHead = "state", groupHead = "param_groups";
/// Names of parameters have fewer components, so that no key takes long.
constexpr auto mostDots = 64;

/// Of torch.optim, beside those of the optimizers that accel-opt knows.
constexpr std::string_view torchKinds[] = {
    "step",      "max_exp_avg_sq", "exp_inf",   "grad_avg",
    "acc_delta", "mu_product",     "step_size", "momentum_buffer"};

bool isKnown(std::string_view kind) {
  for (const plan::OptimizerDescription &optimizer : plan::optimizers())
    for (const plan::StateRule &rule : optimizer.states)
      if (kind == rule.name)
        return true;
  return std::find(std::begin(torchKinds), std::end(torchKinds), kind) !=
         std::end(torchKinds);
}

/// Known, and no word that a module has as well.
bool isTelling(std::string_view kind) {
  return kind.find('_') != kind.npos && isKnown(kind);
}

/// Names of what may be parameters, with their shapes.
class Names {
public:
  void add(const Tensor &tensor) {
    for (size_t i = 0; i < tensor.path.size(); ++i)
      whole.emplace(joinKeys(tensor.path, i), tensor.shape);
    const std::string &key = tensor.path.back();
    if (const size_t dot = key.find('.');
        dot != key.npos && key.substr(0, dot) != stateHead)
      behindPrefix.emplace(key.substr(dot + 1), tensor.shape);
  }
  bool has(const std::string &name, const std::vector<int64_t> &shape,
           bool prefixed = false) const {
    const std::pair key(name, shape);
    return whole.count(key) || (prefixed && behindPrefix.count(key));
  }
  bool has(const std::string &name) const {
    const auto found = whole.lower_bound({name, {}});
    return found != whole.end() && found->first == name;
  }

private:
  std::set<std::pair<std::string, std::vector<int64_t>>> whole, behindPrefix;
};

/// What may be a part of an optimizer's dictionary: {"state": ..} in a path.
struct NestedDictionary {
  bool named = false; // some entry is a weight's, with a kind that tells
  bool kinds = true;  // all kinds are known
  bool telling = false;
};

void findNested(Part &part, const Names &names) {
  std::set<Keys> own; // the keys around
  for (const Keys &keys : part.groups)
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == groupHead)
        own.emplace(keys.begin(), keys.begin() + i);
  std::map<Keys, NestedDictionary> found;
  for (const Tensor &tensor : part.tensors) {
    const Keys &path = tensor.path;
    for (size_t i = 0; i + 2 < path.size(); ++i)
      if (path[i] == stateHead) {
        NestedDictionary &each = found[Keys(path.begin(), path.begin() + i)];
        const bool kind = path.size() == i + 3;
        each.kinds &= kind && isKnown(path.back());
        if (!kind || !isTelling(path.back()))
          continue;
        each.telling = true;
        each.named |= names.has(path[i + 1], tensor.shape);
      }
  }
  for (const auto &[keys, each] : found)
    if (!isWeights(part) || each.named || (each.kinds && each.telling))
      own.insert(keys);
  auto mark = [&](Tensor &tensor) {
    for (size_t i = 0; i + 1 < tensor.path.size(); ++i)
      if ((tensor.path[i] == stateHead || tensor.path[i] == groupHead) &&
          own.count(Keys(tensor.path.begin(), tensor.path.begin() + i))) {
        tensor.optimizer = i;
        // An optimizer may nest its states (Shampoo).
        if (tensor.path[i] == stateHead && tensor.path.size() > i + 3) {
          tensor.path[i + 2] = joinKeys(tensor.path, i + 2);
          tensor.path.resize(i + 3);
        }
        return;
      }
  };
  std::for_each(part.tensors.begin(), part.tensors.end(), mark);
  std::for_each(part.values.begin(), part.values.end(), mark);
}

/// A key "state.layer.weight.exp_avg", taken apart behind "state".
struct Split {
  std::string parameter, kind;
};

std::vector<Split> splitsOf(const std::string &rest) {
  std::vector<Split> splits; // by the longest name first
  for (size_t dot = rest.rfind('.'); dot != rest.npos && dot > 0;
       dot = rest.rfind('.', dot - 1))
    if (dot + 1 < rest.size())
      splits.push_back({rest.substr(0, dot), rest.substr(dot + 1)});
  return splits;
}

struct JoinedKey {
  Tensor *tensor = nullptr;
  bool isTensor = true; // else a value
  std::string head, rest;
  std::optional<Split> split; // that of a state
  bool trained = false;       // has states or a rate itself
  bool unsure = false;
};

/// Of the keys in one dictionary with the same beginning.
struct JoinedDictionary {
  std::vector<JoinedKey> keys;
  std::set<std::string> groups; // behind "param_groups."
  bool mixed = false;           // with other tensors
};

class Joined {
public:
  Joined(Part &part, const Names &names) : part(part), names(names) {}

  void run() {
    for (Tensor &tensor : part.tensors)
      collect(tensor, true);
    for (Tensor &value : part.values)
      collect(value, false);
    if (found.empty())
      return;
    for (const Keys &keys : part.groups)
      collectGroup(keys);
    for (const Tensor &tensor : part.tensors)
      findMixed(tensor);
    for (auto &[place, dictionary] : found)
      if (isOptimizers(place.second, dictionary))
        take(place, dictionary);
  }

private:
  using Place = std::pair<Keys, std::string>; // the keys around, the beginning

  static bool isLong(const Tensor &tensor) {
    const std::string &key = tensor.path.back();
    return std::count(key.begin(), key.end(), '.') > mostDots;
  }

  /// Calls `take` with each head in a key: what is before it, and behind it.
  template <typename Take>
  static void eachHead(const std::string &key, const Take &take) {
    for (std::string_view head : {stateHead, groupHead})
      for (size_t at = key.find(head); at != key.npos;
           at = key.find(head, at + 1)) {
        const size_t end = at + head.size();
        if ((!at || key[at - 1] == '.') && end + 1 < key.size() &&
            key[end] == '.')
          take(key.substr(0, at ? at - 1 : 0), std::string(head),
               key.substr(end + 1));
      }
  }

  static Keys around(const Keys &path) {
    return Keys(path.begin(), path.end() - 1);
  }

  void collect(Tensor &tensor, bool isTensor) {
    if (tensor.path.empty() || tensor.optimizer || isLong(tensor))
      return;
    eachHead(tensor.path.back(), [&](std::string before, std::string head,
                                     std::string rest) {
      JoinedDictionary &own = found[{around(tensor.path), std::move(before)}];
      // A rate may be a tensor, of one number.
      if (head == groupHead &&
          (!isTensor || (tensor.shape.empty() &&
                         names.has(rest.substr(0, rest.rfind('.'))))))
        own.groups.insert(rest);
      own.keys.push_back(
          {&tensor, isTensor, std::move(head), std::move(rest), std::nullopt});
    });
  }

  void collectGroup(const Keys &path) {
    if (!path.empty())
      eachHead(path.back(),
               [&](std::string before, std::string head, std::string rest) {
                 const auto own = found.find({around(path), before});
                 if (head == groupHead && own != found.end())
                   own->second.groups.insert(std::move(rest));
               });
  }

  void findMixed(const Tensor &tensor) {
    if (tensor.path.empty() || tensor.optimizer || isLong(tensor))
      return;
    const std::string &key = tensor.path.back();
    for (size_t at = 0; at != key.npos;) {
      const auto own =
          found.find({around(tensor.path), key.substr(0, at ? at - 1 : 0)});
      if (own != found.end() &&
          !key.substr(at).starts_with(std::string(stateHead) + ".") &&
          !key.substr(at).starts_with(std::string(groupHead) + "."))
        own->second.mixed = true;
      at = key.find('.', at);
      at = at == key.npos ? at : at + 1;
    }
  }

  /// The name and kind that evidence of this key's own says.
  std::optional<Split> splitOf(const std::string &before,
                               const JoinedDictionary &own,
                               const JoinedKey &key) const {
    const std::vector<Split> splits = splitsOf(key.rest);
    // {"model.layer.weight", "optimizer.state.layer.weight.exp_avg"}
    const bool prefixed = !before.empty();
    for (const Split &split : splits)
      if (key.isTensor && key.head == stateHead && isTelling(split.kind) &&
          names.has(split.parameter, key.tensor->shape, prefixed))
        return split;
    for (const Split &split : splits)
      if (own.groups.count(split.parameter + ".lr"))
        return split;
    return std::nullopt;
  }

  bool isOptimizers(const std::string &before, JoinedDictionary &own) const {
    bool some = !isWeights(part);
    for (JoinedKey &key : own.keys) {
      key.split = splitOf(before, own, key);
      some |= key.split.has_value();
    }
    return some;
  }

  /// Decides on each key of an optimizer's dictionary.
  void take(const Place &place, JoinedDictionary &own) const {
    const bool whole = !own.mixed || !isWeights(part);
    std::map<std::string, std::set<std::string>> kinds; // by parameter
    for (const JoinedKey &key : own.keys)
      if (key.split && key.head == stateHead)
        kinds[key.split->parameter].insert(key.split->kind);
    for (JoinedKey &key : own.keys) {
      const std::string name = key.head + "." + key.rest;
      key.trained = kinds.count(name) || own.groups.count(name + ".lr");
    }
    std::map<std::string, std::set<std::string>> others;
    for (JoinedKey &key : own.keys) {
      const std::vector<Split> splits = splitsOf(key.rest);
      if (!whole && key.trained) {
        key.split.reset();
      } else if (key.split) {
        key.unsure = !whole && key.isTensor && key.head == stateHead &&
                     !isTelling(key.split->kind) && key.split->kind != "step";
      } else if (whole) {
        key.split = splits.empty() ? Split{key.rest, ""} : splits.front();
      } else if (key.head == stateHead) {
        for (const Split &split : splits)
          if (isKnown(split.kind)) {
            if (kinds.count(split.parameter))
              key.split = split;
            else
              others[split.parameter].insert(split.kind);
          }
      }
    }
    kinds.clear();
    for (const JoinedKey &key : own.keys)
      if (key.split && key.head == stateHead)
        kinds[key.split->parameter].insert(key.split->kind);
    // A tied parameter may be saved by another of its names: the same kinds.
    for (JoinedKey &key : own.keys)
      if (!key.split && key.head == stateHead && !key.trained)
        for (const Split &split : splitsOf(key.rest))
          if (const auto other = others.find(split.parameter);
              other != others.end() && isKnown(split.kind) &&
              std::any_of(kinds.begin(), kinds.end(), [&](const auto &each) {
                return each.second == other->second;
              }))
            key.split = split;
    for (JoinedKey &key : own.keys)
      if (key.split && !key.tensor->optimizer)
        nest(place, key);
  }

  static void nest(const Place &place, JoinedKey &key) {
    Tensor &tensor = *key.tensor;
    tensor.path = place.first;
    if (!place.second.empty())
      tensor.path.push_back(place.second);
    tensor.optimizer = tensor.path.size();
    tensor.unsure = key.unsure;
    for (const std::string &each :
         {key.head, key.split->parameter, key.split->kind})
      if (!each.empty())
        tensor.path.push_back(each);
  }

  Part &part;
  const Names &names;
  std::map<Place, JoinedDictionary> found;
};

} // namespace

std::string joinKeys(const std::vector<std::string> &path, size_t begin) {
  std::string text;
  for (size_t i = begin; i < path.size(); ++i)
    text += (i == begin ? "" : ".") + path[i];
  return text;
}

bool isOfGroups(const std::vector<std::string> &path) {
  return std::any_of(path.begin(), path.end(), [](const std::string &key) {
    return key == groupHead || key.starts_with("param_groups.") ||
           key.find(".param_groups.") != key.npos;
  });
}

void findStates(std::vector<Part> &parts) {
  Names names; // an optimizer may lie in another file than the model
  for (const Part &part : parts)
    for (const Tensor &tensor : part.tensors)
      if (!tensor.path.empty())
        names.add(tensor);
  for (Part &part : parts) {
    if (part.zero || part.runShard ||
        (part.format == PartFormat::Safetensors && isWeights(part)))
      continue;
    findNested(part, names);
    Joined(part, names).run();
  }
}

} // namespace accel::checkpoint
