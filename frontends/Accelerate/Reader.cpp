//===- Reader.cpp - Fields, values and reports ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

using namespace accel;

AccelerateReader::AccelerateReader(const std::string &file,
                                   const yaml::Node &root,
                                   const std::string &prefix,
                                   const std::vector<std::string> &foreign,
                                   const AccelerateOptions &options,
                                   DiagnosticEngine &engine)
    : file(file), root(root), prefix(prefix.empty() ? "" : prefix + "."),
      foreign(foreign), options(options), engine(engine) {
  config.file = file;
  config.version = options.version;
}

bool accel::equalsUpper(std::string_view text, std::string_view word) {
  auto upper = [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [&](char a, char b) { return upper(a) == b; });
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

Field AccelerateReader::top(const std::string &name) const {
  return {root.findEntry(name), prefix + name};
}

Field AccelerateReader::in(const Section &section,
                           const std::string &canonical) const {
  Field field{nullptr, prefix + section.name + "." + canonical};
  const KeyInfo *info = findKey(section.name, canonical);
  if (info && !info->in(version)) {
    // Under its former name, if it has one.
    for (const KeyInfo &key : keysIn(section.name))
      if (key.rules.instead && key.in(version) &&
          canonical == key.rules.instead)
        return in(section, key.name);
    return field;
  }
  return anyVersion(section, canonical);
}

Field AccelerateReader::anyVersion(const Section &section,
                                   const std::string &canonical) const {
  Field field{nullptr, prefix + section.name + "." + canonical};
  // Both spellings set the same attribute: the later one wins.
  for (const auto &[name, entry] : section.keys)
    if (name == canonical) {
      field.entry = entry;
      field.key = prefix + section.name + "." + entry->key->text;
    }
  return field;
}

Section AccelerateReader::section(const std::string &name) {
  Section result;
  result.name = name;
  Field field = top(name);
  if (!field || field.isNull())
    return result;
  result.entry = field.entry;
  bool runs = name == "deepspeed_config" &&
              *config.distributedType == DistributedType::Deepspeed;
  if (runs && !field.value().isMapping()) {
    config.assumed.deepspeed = true;
    bool path = field.value().isString();
    std::string right = "{deepspeed_config_file: " +
                        (path ? field.value().text : "ds_config.json") + "}";
    error("section-not-a-mapping", field,
          "deepspeed_config is " +
              std::string(yaml::describe(field.value().kind)) +
              ", not a mapping; launch asks it for its keys and stops with an "
              "AttributeError",
          "write deepspeed_config: " + printable(right, 200),
          path ? fixRaw(field, right) : yaml::Edits());
    return result;
  }
  if (!field.value().isMapping()) {
    report(Severity::Warning, "ignored-key", field,
           "'" + name + "' is " + yaml::describe(field.value().kind) +
               ", not a mapping, and has no effect",
           "write its keys on lines of their own, indented below " + name);
    return result;
  }
  std::unordered_map<std::string, const yaml::Entry *> last;
  for (const yaml::Entry &entry : field.value().entries) {
    const yaml::Node &key = *entry.key;
    if (!key.isString()) {
      error("invalid-key", {&entry, field.key + "." + printable(key.text)},
            "keys of '" + name + "' must be strings, this is " +
                yaml::describe(key.kind),
            "Accelerate stops with a TypeError or AttributeError here");
      continue;
    }
    std::string canonical = canonicalKey(name, key.text, version);
    auto [place, isNew] = last.emplace(canonical, &entry);
    if (!isNew) {
      const yaml::Entry *earlier = place->second;
      report(Severity::Warning, "duplicate-key",
             {&entry, field.key + "." + key.text},
             "'" + key.text + "' and '" + earlier->key->text +
                 "' are the same setting; this one wins over line " +
                 std::to_string(earlier->key->range.begin.line),
             "remove one of the two", true, editor().remove(*earlier));
      place->second = &entry;
    }
    result.keys.emplace_back(std::move(canonical), &entry);
  }
  return result;
}

const std::string &AccelerateReader::fileOf(const yaml::Node &node) const {
  return node.source ? *node.source : file;
}

Location AccelerateReader::locate(const Field &field) const {
  if (field.entry) {
    yaml::Mark at = field.entry->value->range.begin;
    return {fileOf(*field.entry->value), at.line, at.column};
  }
  // The section of an absent key, if that is there.
  std::string_view path = field.key;
  path.remove_prefix(std::min(prefix.size(), path.size()));
  size_t dot = path.find('.');
  if (dot != std::string_view::npos)
    if (const yaml::Entry *entry = root.findEntry(path.substr(0, dot))) {
      yaml::Mark at = entry->key->range.begin;
      return {fileOf(*entry->key), at.line, at.column};
    }
  yaml::Mark at = root.range.begin;
  return {file, prefix.empty() ? 1 : at.line, prefix.empty() ? 1 : at.column};
}

Location AccelerateReader::place(const Field &field) const {
  if (field.entry)
    return locate(field);
  std::string_view path = field.key;
  path.remove_prefix(std::min(prefix.size(), path.size()));
  if (path.find('.') != path.npos &&
      root.findEntry(path.substr(0, path.find('.'))))
    return locate(field);
  if (const yaml::Entry *type = root.findEntry("distributed_type")) {
    yaml::Mark at = type->key->range.begin;
    return {fileOf(*type->key), at.line, at.column};
  }
  if (!root.entries.empty()) {
    const yaml::Node &first = *root.entries.front().key;
    return {fileOf(first), first.range.begin.line, first.range.begin.column};
  }
  return locate(field);
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

void AccelerateReader::report(Severity severity, const char *code,
                              const Field &field, const std::string &message,
                              const std::string &hint, bool atKey,
                              yaml::Edits fix) {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.key = printable(field.key, 200);
  d.message = message;
  d.hint = hint;
  Location at = place(field);
  d.file = at.file;
  if (d.file == file) // edits are of the file that is linted
    d.fix = std::move(fix);
  d.line = at.line;
  d.column = at.column;
  if (field.entry) {
    const yaml::Node &value = *field.entry->value;
    // A value of several lines, or none at all, is named by its key.
    bool whole = value.isScalar() && !value.text.empty() && !atKey;
    const yaml::Range &key = field.entry->key->range;
    d.setRange(whole ? field.entry->at : key);
    if (whole)
      d.ranges = {key};
  }
  engine.report(std::move(d));
}

void AccelerateReader::notSupported(const Field &field,
                                    const std::string &message,
                                    const std::string &hint) {
  // What Accelerate itself runs is no finding of lint.
  if (options.forPlanning)
    error(notSupportedCode, field, message, hint);
}

void AccelerateReader::ignored(const Field &field, const std::string &why,
                               bool matters, const std::string &hint,
                               yaml::Edits fix) {
  report(matters ? Severity::Warning : Severity::Note, "ignored-key", field,
         "'" + field.entry->key->text + "' has no effect " + why, hint, true,
         std::move(fix));
  EffectiveValue v;
  v.key = field.key;
  v.asked = yaml::shortText(field.value());
  v.effective = "(ignored)";
  v.why = "no effect " + why;
  v.origin = Origin::Written;
  v.ignored = true;
  v.at = locate(field);
  config.effective.push_back(std::move(v));
}

void AccelerateReader::remember(const Field &field,
                                const std::string &effective,
                                const std::string &why, Origin origin) {
  EffectiveValue v;
  v.key = field.key;
  if (field.entry)
    v.asked = yaml::shortText(field.value());
  v.effective = effective;
  v.why = why;
  v.origin = origin;
  v.at = locate(field);
  config.effective.push_back(std::move(v));
}

std::string accel::whyDefault(const KeyInfo *key, AccelerateVersion version) {
  if (!key)
    return "Accelerate's default";
  if (!key->in(version))
    return version < key->since
               ? "there is no such setting before accelerate " +
                     toString(key->since)
               : "there is no such setting since accelerate " +
                     toString(key->until);
  const DefaultValue *d = key->defaultIn(version);
  if (!d)
    return "";
  std::string why = std::string("default of ") + toString(d->owner);
  // The first default of a key is as old as the key.
  AccelerateVersion since = std::max(d->since, key->since);
  if (since > oldestAccelerate)
    why += " since " + toString(since);
  return why;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool AccelerateReader::truthy(const yaml::Node &node) {
  switch (node.kind) {
  case yaml::Kind::Null:
    return false;
  case yaml::Kind::Bool:
    return node.boolean;
  case yaml::Kind::Int:
  case yaml::Kind::Float:
    return node.huge || node.number != 0;
  case yaml::Kind::String:
    return !node.text.empty();
  case yaml::Kind::Other:
    return true;
  case yaml::Kind::Sequence:
    return !node.items.empty();
  case yaml::Kind::Mapping:
    return !node.entries.empty();
  }
  return false;
}

std::optional<int64_t> AccelerateReader::envInt(const yaml::Node &node) {
  if (node.kind == yaml::Kind::Int)
    return node.huge ? std::nullopt : std::optional(node.integer);
  if (node.kind != yaml::Kind::String)
    return std::nullopt;
  // Python's int(): blanks around, a sign, single underscores between digits.
  std::string_view text = node.text;
  constexpr std::string_view blanks = " \t\n\r\f\v";
  while (!text.empty() && blanks.find(text.front()) != text.npos)
    text.remove_prefix(1);
  while (!text.empty() && blanks.find(text.back()) != text.npos)
    text.remove_suffix(1);
  std::string digits;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    if (text[0] == '-')
      digits = "-";
    text.remove_prefix(1);
  }
  bool afterDigit = false;
  for (char c : text) {
    if (c == '_' ? !afterDigit : (c < '0' || c > '9'))
      return std::nullopt;
    afterDigit = c != '_';
    if (afterDigit)
      digits += c;
  }
  int64_t value = 0;
  const char *end = digits.data() + digits.size();
  auto [stop, bad] = std::from_chars(digits.data(), end, value);
  if (!afterDigit || stop != end || bad != std::errc())
    return std::nullopt;
  return value;
}

std::optional<bool> AccelerateReader::envBool(const Field &field) {
  std::string text = yaml::pythonText(field.value());
  for (const char *word : {"Y", "YES", "T", "TRUE", "ON", "1"})
    if (equalsUpper(text, word))
      return true;
  for (const char *word : {"N", "NO", "F", "FALSE", "OFF", "0"})
    if (equalsUpper(text, word))
      return false;
  bool null = field.isNull();
  error(null ? "yaml-null" : "invalid-value", field,
        "'" + field.entry->key->text + "' is " +
            (null ? "null, which is no boolean"
                  : yaml::shortText(field.value()) + ", not a boolean") +
            "; every rank stops with \"invalid truth value\"",
        null ? "write true or false, or remove the line"
             : "write true or false",
        null ? fixRemoval(field) : yaml::Edits());
  return std::nullopt;
}

void AccelerateReader::flag(Setting<bool> &setting, const Section &section,
                            const char *name, bool byDefault,
                            const std::string &why) {
  Field field = in(section, name);
  std::optional<bool> value;
  if (field)
    value = envBool(field);
  if (value)
    return written(setting, *value, field, *value ? "true" : "false");
  const KeyInfo *info = findKey(section.name, name);
  bool exists = info && info->in(version);
  const DefaultValue *known = exists ? info->defaultIn(version) : nullptr;
  if (known)
    byDefault = std::string_view(known->value) == "true";
  else if (info && !exists)
    byDefault = false;
  setDefault(setting, byDefault, field, byDefault ? "true" : "false",
             why.empty() ? whyDefault(info, version) : why);
}
