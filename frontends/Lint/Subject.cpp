//===- Subject.cpp - What the checks look at ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Subject.h"

#include <charconv>
#include <cstdio>

namespace accel::lint {

Field Subject::top(const std::string &name) const {
  return {root->findEntry(name), prefix + name};
}

Field Subject::in(const std::string &section,
                  const std::string &canonical) const {
  Field field{nullptr, prefix + section + "." + canonical};
  const yaml::Node *map = root->find(section);
  if (!map || !map->isMapping())
    return field;
  // Both spellings set one attribute; the later one wins.
  for (const yaml::Entry &entry : map->entries)
    if (entry.key->isString() &&
        canonicalKey(section, entry.key->text) == canonical)
      field = {&entry, prefix + section + "." + entry.key->text};
  return field;
}

bool Subject::has(const std::string &section) const {
  const yaml::Node *map = root->find(section);
  return map && map->isMapping() && !map->entries.empty();
}

void Subject::report(Severity severity, const char *code, const Field &field,
                     const std::string &message, const std::string &hint,
                     At at) const {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = file;
  d.key = printable(field.key, 200);
  d.message = message;
  d.hint = hint;
  d.line = d.column = 1;
  const yaml::Entry *entry = field.entry;
  bool absent = !entry;
  if (absent) { // its section, if that is there
    std::string_view path = std::string_view(field.key).substr(prefix.size());
    entry = root->findEntry(path.substr(0, path.find('.')));
    if (!entry)
      entry = root->findEntry("distributed_type"); // which asks for it
  }
  if (entry) {
    const yaml::Node &value = *entry->value;
    bool whole =
        at == At::Value && !absent && value.isScalar() && !value.text.empty();
    const yaml::Range &range = whole ? value.range : entry->key->range;
    d.setRange({range.begin.line, range.begin.column, range.end.line,
                range.end.column});
  }
  engine.report(std::move(d));
}

int64_t Subject::meshSize(const std::string &axis) const {
  if (config && (isType(DistributedType::MegatronLm) ||
                 !unusedParallelism(*config).empty()))
    return 1;
  Field field =
      in("parallelism_config", "parallelism_config_" + axis + "_size");
  std::optional<int64_t> size;
  if (field)
    size = integer(field);
  return size && *size >= 1 && *size <= 1 << 20 ? *size : 1;
}

int64_t Subject::gatheredBytes() const {
  if (config && config->precision->param)
    return plan::itemSize(*config->precision->param);
  return tree ? plan::itemSize(tree->dtype) : 4;
}

std::optional<int64_t> integer(const Field &field) {
  if (field.value().kind == yaml::Kind::Int && field.value().huge)
    return std::nullopt;
  if (field.value().kind == yaml::Kind::Int)
    return field.value().integer;
  if (!field.value().isString())
    return std::nullopt;
  const std::string &text = field.value().text;
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [stop, bad] = std::from_chars(text.data(), end, value);
  return bad == std::errc() && stop == end ? std::optional(value)
                                           : std::nullopt;
}

std::optional<bool> boolean(const Field &field) {
  std::string text = field.text();
  for (char &c : text)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const char *word : {"y", "yes", "t", "true", "on", "1"})
    if (text == word)
      return true;
  for (const char *word : {"n", "no", "f", "false", "off", "0"})
    if (text == word)
      return false;
  return std::nullopt;
}

static std::string number(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string bytesText(double bytes) {
  constexpr double ki = 1024, mi = ki * ki, gi = mi * ki;
  if (bytes >= gi)
    return number("%.1f GiB", bytes / gi);
  if (bytes >= mi)
    return number("%.1f MiB", bytes / mi);
  if (bytes >= ki)
    return number("%.1f KiB", bytes / ki);
  return number("%.0f bytes", bytes);
}

std::string countText(int64_t count) {
  double n = static_cast<double>(count);
  if (n >= 1e9)
    return number("%.2f B", n / 1e9);
  if (n >= 1e6)
    return number("%.1f M", n / 1e6);
  return std::to_string(count);
}

} // namespace accel::lint
