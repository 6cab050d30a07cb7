//===- Fixes.cpp - What lint --fix writes ---------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace accel;
using yaml::Edits;

yaml::Editor AccelerateReader::editor() const {
  return yaml::Editor(engine.source(file), file);
}

Edits AccelerateReader::fixText(const Field &field,
                                const std::string &text) const {
  return field && !text.empty() ? editor().setText(*field.entry, text)
                                : Edits();
}

Edits AccelerateReader::fixRaw(const Field &field,
                               const std::string &raw) const {
  return field && !raw.empty() ? editor().setRaw(*field.entry, raw) : Edits();
}

Edits AccelerateReader::fixNumber(const Field &field) const {
  if (!field)
    return {};
  const std::string &text = field.value().text;
  if (std::optional<int64_t> number = envInt(field.value()))
    return fixRaw(field, std::to_string(*number));
  // 1e8 and 2.5E6, which YAML 1.1 takes for strings.
  double value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  bool whole = stop == end && error == std::errc() && value >= 1 &&
               value <= 9e15 && value == std::trunc(value);
  return whole ? fixRaw(field, std::to_string(static_cast<int64_t>(value)))
               : Edits();
}

Edits AccelerateReader::fixFlags(const Field &field) const {
  std::string list;
  std::string_view text = field.value().text;
  if (!text.starts_with('(') || !text.ends_with(')'))
    return {};
  text = text.substr(1, text.size() - 2);
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string_view word = text.substr(at, comma - at);
    while (word.starts_with(' '))
      word.remove_prefix(1);
    bool yes = equalsUpper(word, "TRUE");
    if (!yes && !equalsUpper(word, "FALSE"))
      return {};
    list += std::string(list.empty() ? "[" : ", ") + (yes ? "true" : "false");
    at = comma + 1;
  }
  return fixRaw(field, list + "]");
}

Edits AccelerateReader::fixRemoval(const Field &field) const {
  return field ? editor().remove(*field.entry) : Edits();
}

Edits AccelerateReader::fixSpelling(
    const Field &field, const std::vector<std::string> &words) const {
  return field && field.value().isString()
             ? fixText(field, nearest(field.value().text, words))
             : Edits();
}

Edits AccelerateReader::fixName(const Field &field, const yaml::Node &mapping,
                                const std::string &name) const {
  // (A mapping of thousands of keys is no configuration, and looking through
  // it for each would take forever.)
  if (!field || name.empty() || mapping.entries.size() > 1000)
    return {};
  // A second key of the same name would replace the value of the first.
  return mapping.find(name) ? Edits() : editor().rename(*field.entry, name);
}

Edits AccelerateReader::fixName(const Field &field, const Section &section,
                                const std::string &name) const {
  if (section.keys.size() > 1000)
    return {};
  std::string canonical = canonicalKey(section.name, name, version);
  for (const auto &[other, entry] : section.keys)
    if (other == canonical && entry != field.entry)
      return {};
  return section.entry ? fixName(field, *section.entry->value, name) : Edits();
}

Edits AccelerateReader::fixSetting(const Section &section,
                                   const std::string &canonical,
                                   const std::string &raw) const {
  if (Field field = in(section, canonical))
    return fixRaw(field, raw);
  if (!section.entry || !section.entry->value->isMapping())
    return {};
  return editor().insert(*section.entry->value, canonical, raw);
}

Edits AccelerateReader::fixMove(const Field &field,
                                const std::string &sectionName,
                                const std::string &key) const {
  const yaml::Entry *target = root.findEntry(sectionName);
  if (!field || !target || !target->value->isMapping() ||
      target->value->find(key) || !field.value().isScalar())
    return {};
  const yaml::Range &at = field.entry->at;
  std::string_view source = engine.source(file);
  if (at.begin.line != at.end.line || at.begin.byte >= at.end.byte ||
      at.end.byte > source.size())
    return {};
  std::string raw(source.substr(at.begin.byte, at.end.byte - at.begin.byte));
  return fixBoth(editor().insert(*target->value, key, raw), fixRemoval(field));
}

Edits AccelerateReader::fixBoth(Edits first, Edits second) {
  if (first.empty() || second.empty())
    return {};
  first.insert(first.end(), second.begin(), second.end());
  std::sort(first.begin(), first.end(),
            [](const TextEdit &a, const TextEdit &b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  for (size_t i = 1; i < first.size(); ++i)
    if (first[i].begin < first[i - 1].end)
      return {};
  return first;
}
