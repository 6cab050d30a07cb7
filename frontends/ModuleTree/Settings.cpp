//===- Settings.cpp - Values of a config.json by name ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/Settings.h"

#include <algorithm>
#include <cmath>

namespace accel::moduletree {

constexpr double largestSize = 1099511627776.0; // 2^40

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Settings::Settings(const std::vector<const char *> &lines,
                   const std::string &prefix, huggingface::ConfigReader &config)
    : config(config) {
  values["layer"] = values["only_mlp"] = values["dense"] = 0;
  readLabels();
  if (const nlohmann::json *only = config.find("mlp_only_layers"))
    if (only->is_array())
      for (const nlohmann::json &item : *only)
        if (item.is_number_integer())
          onlyMlp.insert(item.get<int64_t>());
  for (const char *text : lines)
    for (std::string_view line : split(text, '\n'))
      readLine(line, prefix);
}

void Settings::readLabels() {
  double labels = 2;
  if (const nlohmann::json *map = config.find("id2label");
      map && map->is_object())
    labels = static_cast<double>(map->size());
  else if (const nlohmann::json *count = config.find("num_labels");
           count && count->is_number())
    labels = count->get<double>();
  values["num_labels"] = labels;
}

void Settings::readLine(std::string_view line, const std::string &prefix) {
  std::vector<std::string_view> words = split(line, ' ');
  if (words.empty())
    return;
  auto named = [&](std::string_view word) {
    return word.starts_with("$") ? prefix + std::string(word.substr(1))
                                 : std::string(word);
  };
  if (words[0] == "tp")
    tp = words.size() == 1;
  else if (words[0] == "nosplit")
    for (size_t i = 1; i < words.size(); ++i)
      noSplitClasses.push_back(named(words[i]));
  else if (words[0] == "fp32")
    fp32.assign(words.begin() + 1, words.end());
  else if (words[0] == "starts")
    values[std::string(words[1])] =
        texts[std::string(words[2])].starts_with(words[3]);
  else if (words[0] == "sliding")
    readLayerTypes(words[1]);
  else if (words[0] == "dense")
    readDense(words);
  else if (words[0] == "blocks")
    readBlocks(words);
  else if (words[0] == "mixers")
    readMixers(words);
  else if (words[0] == "text")
    readText(words[1], words[3]);
  else if (words[0] == "count")
    readCount(std::string(words[1]), words[3]);
  else
    readNumber(words[0], words[1][0],
               std::string_view(words[2].data(),
                                static_cast<size_t>(line.data() + line.size() -
                                                    words[2].data())));
}

void Settings::readNumber(std::string_view names, char kind,
                          std::string_view otherwise) {
  std::vector<std::string_view> keys = split(names, '|');
  std::string name(keys[0]);
  std::string_view ofNull = "0";
  if (kind == '?') {
    std::vector<std::string_view> both = split(otherwise, ' ');
    otherwise = both[0];
    if (both.size() > 1)
      ofNull = both[1];
  }
  if (kind != ':')
    for (std::string_view key : keys) {
      std::string member(key);
      if (const nlohmann::json *found = config.find(member)) {
        if (found->is_boolean())
          values[name] = found->get<bool>();
        else if (found->is_number())
          values[name] = found->get<double>();
        else if (found->is_array() && !found->empty() &&
                 (*found)[0].is_number()) // an image size [224, 224]
          values[name] = (*found)[0].get<double>();
        else
          config.error(member, "must be a number");
        if (!values.count(name))
          values[name] = 0;
        return;
      }
      if (kind == '?' && config.isNull(member)) {
        values[name] = value(ofNull);
        return;
      }
    }
  values[name] = value(otherwise);
}

/// A number is a list of one ("vision_feature_layer": -2).
void Settings::readCount(const std::string &name, std::string_view otherwise) {
  const nlohmann::json *list = config.find(name);
  if (list && !list->is_array() && !list->is_number())
    config.error(name, "'" + name + "' must be a list");
  values[name] = !list              ? value(otherwise)
                 : list->is_array() ? static_cast<double>(list->size())
                                    : 1;
}

void Settings::readText(std::string_view names, std::string_view otherwise) {
  std::vector<std::string_view> keys = split(names, '|');
  std::string &result = texts[std::string(keys[0])];
  for (std::string_view key : keys)
    if (std::optional<std::string> found = config.text(std::string(key))) {
      result = *found;
      return;
    }
  result = otherwise;
}

void Settings::readLayerTypes(std::string_view expression) {
  int64_t layers = std::min<int64_t>(sizeOf("num_hidden_layers"), 1 << 20);
  const nlohmann::json *types = config.find("layer_types");
  bool given = types && types->is_array() &&
               static_cast<int64_t>(types->size()) >= layers;
  int64_t windows = 0;
  for (int64_t i = 0; i < layers; ++i) {
    setLayer(i);
    // "attention" is Granite 4's word.
    bool full = given ? (*types)[static_cast<size_t>(i)] == "full_attention" ||
                            (*types)[static_cast<size_t>(i)] == "attention"
                      : value(expression) == 0;
    sliding.push_back(!full);
    windows += !full;
  }
  setLayer(0);
  values["any_sliding"] = windows > 0;
  values["any_full"] = windows < layers;
}

void Settings::readDense(const std::vector<std::string_view> &words) {
  const std::string key(words.size() > 2 ? words[2] : "");
  const nlohmann::json *types = key.empty() ? nullptr : config.find(key);
  const auto layers = static_cast<size_t>(
      std::min<int64_t>(sizeOf("num_hidden_layers"), 1 << 20));
  if (types && (!types->is_array() || types->size() < layers))
    return config.error(key, "'" + key +
                                 "' must be a list of 'dense' or "
                                 "'sparse' for each of the " +
                                 std::to_string(layers) + " layers");
  for (size_t i = 0; i < layers; ++i) {
    setLayer(static_cast<int64_t>(i));
    if (!types) {
      dense.push_back(value(words[1]) != 0);
      continue;
    }
    const nlohmann::json &type = (*types)[i];
    if (type != "dense" && type != "sparse")
      return config.error(
          key + "." + std::to_string(i),
          "a layer is dense or sparse" +
              (type.is_string()
                   ? ", not '" + printable(type.get<std::string>()) + "'"
                   : std::string()));
    dense.push_back(type == "dense");
  }
  setLayer(0);
}

namespace {

/// "mamba:M:linear_attention:mamba" of a description: a name of our own, its
/// letter in a pattern, its words in a list.
struct BlockKind {
  std::string_view name, letter;
  std::vector<std::string_view> words;
};

std::string choices(const std::vector<BlockKind> &kinds, bool letters) {
  std::string list;
  for (size_t i = 0; i < kinds.size(); ++i)
    list += (i == 0                 ? ""
             : i + 1 < kinds.size() ? ", "
                                    : " and ") +
            std::string(letters ? kinds[i].letter : kinds[i].words.front());
  return list;
}

} // namespace

/// A list of words goes before a pattern of letters, and either before
/// num_hidden_layers, as transformers reads them.
void Settings::readBlocks(const std::vector<std::string_view> &words) {
  std::vector<BlockKind> kinds;
  for (size_t i = 4; i < words.size(); ++i) {
    std::vector<std::string_view> parts = split(words[i], ':');
    kinds.push_back({parts[0], parts[1], {parts.begin() + 2, parts.end()}});
    blockNames.emplace(parts[0]);
  }
  std::string key;
  for (std::string_view name : split(words[1], '|'))
    if (key.empty() && config.find(std::string(name)))
      key = name;
  if (!key.empty()) {
    const nlohmann::json &list = *config.find(key);
    if (!list.is_array())
      return config.error(key, "'" + key + "' must be a list");
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string word =
          list[i].is_string() ? list[i].get<std::string>() : "";
      for (const BlockKind &kind : kinds)
        if (std::find(kind.words.begin(), kind.words.end(), word) !=
            kind.words.end())
          blocks.emplace_back(kind.name);
      if (blocks.size() != i + 1)
        return config.error(
            key + "." + std::to_string(i),
            "a layer is one of " + choices(kinds, false) +
                (word.empty() ? "" : ", not '" + printable(word) + "'"));
    }
  } else {
    key = words[2];
    const std::string pattern =
        config.text(key).value_or(std::string(words[3]));
    for (char letter : pattern) {
      const size_t before = blocks.size();
      for (const BlockKind &kind : kinds)
        if (kind.letter[0] == letter)
          blocks.emplace_back(kind.name);
      if (blocks.size() == before)
        return config.error(
            key, "letter " + std::to_string(before + 1) + " of '" + key +
                     "' is '" + printable(std::string(1, letter)) +
                     "'; a layer is one of " + choices(kinds, true));
    }
  }
  if (blocks.empty())
    return config.error(key, "'" + key + "' has no layer");
  const char *count = "num_hidden_layers";
  if (const nlohmann::json *stated = config.find(count);
      stated && *stated != blocks.size())
    config.warning(count, "ignored-key",
                   "'num_hidden_layers' has no effect: '" + key + "' has " +
                       std::to_string(blocks.size()) + " layers");
  values[count] = static_cast<double>(blocks.size());
  setLayer(0);
}

/// "linear:linear_attention": a name of our own, and the word of the list.
void Settings::readMixers(const std::vector<std::string_view> &words) {
  const std::string key(words[1]);
  std::string_view names[2], listed[2];
  for (size_t i : {0, 1}) {
    const std::vector<std::string_view> parts = split(words[3 + i], ':');
    names[i] = parts[0];
    listed[i] = parts[1];
    blockNames.emplace(parts[0]);
  }
  const int64_t layers =
      std::min<int64_t>(sizeOf("num_hidden_layers"), 1 << 20);
  const nlohmann::json *types = config.find(key);
  if (types && !types->is_array())
    return config.error(key, "'" + key + "' must be a list");
  if (types && types->size() != static_cast<size_t>(layers))
    return config.error(
        key, "'" + key + "' has " + std::to_string(types->size()) +
                 " entries for " + std::to_string(layers) + " layers");
  for (int64_t i = 0; i < layers; ++i) {
    setLayer(i);
    if (!types) {
      blocks.emplace_back(names[value(words[2]) != 0 ? 0 : 1]);
      continue;
    }
    const nlohmann::json &type = (*types)[static_cast<size_t>(i)];
    const std::string word = type.is_string() ? type.get<std::string>() : "";
    if (word != listed[0] && word != listed[1])
      return config.error(
          key + "." + std::to_string(i),
          "a layer is one of " + std::string(listed[0]) + " and " +
              std::string(listed[1]) +
              (word.empty() ? "" : ", not '" + printable(word) + "'"));
    blocks.emplace_back(names[word == listed[0] ? 0 : 1]);
  }
  setLayer(0);
}

void Settings::setLayer(int64_t layer) {
  values["layer"] = static_cast<double>(layer);
  values["only_mlp"] = onlyMlp.count(layer) ? 1 : 0;
  values["dense"] = static_cast<size_t>(layer) < dense.size() &&
                    dense[static_cast<size_t>(layer)];
  for (const std::string &name : blockNames)
    values[name] = static_cast<size_t>(layer) < blocks.size() &&
                   blocks[static_cast<size_t>(layer)] == name;
}

double Settings::value(std::string_view expression) {
  std::string error;
  std::optional<double> result = evaluate(
      expression,
      [&](std::string_view name) -> std::optional<double> {
        auto it = values.find(name);
        return it == values.end() ? std::nullopt : std::optional(it->second);
      },
      error);
  if (result)
    return *result;
  config.error("", "the sizes do not fit together: " + error + " in " +
                       std::string(expression));
  return 0;
}

int64_t Settings::size(std::string_view expression) {
  double result = std::floor(value(expression));
  if (result >= 0 && result <= largestSize)
    return static_cast<int64_t>(result);
  config.error("", "the size " + std::string(expression) + " is " +
                       (result < 0 ? "negative" : "too large"));
  return 0;
}

int64_t Settings::sizeOf(const std::string &name) {
  return values.count(name) ? size(name) : 0;
}

std::string Settings::text(const std::string &name) const {
  auto it = texts.find(name);
  return it == texts.end() ? "" : it->second;
}

} // namespace accel::moduletree
