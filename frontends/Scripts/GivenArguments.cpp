//===- GivenArguments.cpp - Arguments as they were given ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/GivenArguments.h"

#include "frontends/Yaml/Resolver.h"

#include <algorithm>

namespace accel::scripts {

const std::string *NodeStore::fileNamed(const std::string &file) {
  auto found = std::find(files.begin(), files.end(), file);
  return found == files.end() ? &files.emplace_back(file) : &*found;
}

yaml::Node *NodeStore::make(const std::string &file, const yaml::Range &range) {
  yaml::Node &node = nodes.emplace_back();
  node.range = range;
  node.source = fileNamed(file);
  return &node;
}

yaml::Node *NodeStore::text(const std::string &file, const yaml::Range &range,
                            std::string text) {
  yaml::Node *node = make(file, range);
  node->kind = yaml::Kind::String;
  node->text = std::move(text);
  return node;
}

yaml::Node *NodeStore::integer(const std::string &file,
                               const yaml::Range &range, int64_t value) {
  yaml::Node *node = text(file, range, std::to_string(value));
  node->kind = yaml::Kind::Int;
  node->integer = value;
  node->number = static_cast<double>(value);
  return node;
}

yaml::Node *NodeStore::boolean(const std::string &file,
                               const yaml::Range &range, bool value) {
  yaml::Node *node = text(file, range, value ? "true" : "false");
  node->kind = yaml::Kind::Bool;
  node->boolean = value;
  node->number = value;
  return node;
}

yaml::Node *NodeStore::plain(const std::string &file, const yaml::Range &range,
                             const std::string &text) {
  yaml::Node *node = this->text(file, range, text);
  if (!yaml::constructScalar(yaml::resolvePlain(text), *node))
    node->kind = yaml::Kind::String;
  return node;
}

yaml::Node *NodeStore::copy(const yaml::Node &node, const std::string &file,
                            const yaml::Range *range) {
  yaml::Node *result = make(file, range ? *range : node.range);
  const std::string *source = result->source;
  const yaml::Range at = result->range;
  *result = node;
  result->source = source;
  result->range = at;
  for (const yaml::Node *&item : result->items)
    item = copy(*item, file, range);
  for (yaml::Entry &entry : result->entries) {
    entry.key = copy(*entry.key, file, range);
    entry.value = copy(*entry.value, file, range);
    if (range)
      entry.at = *range;
  }
  return result;
}

void NodeStore::set(yaml::Node &mapping, const std::string &key,
                    const yaml::Node *value) {
  mapping.kind = yaml::Kind::Mapping;
  auto same = [&](const yaml::Entry &entry) { return entry.key->text == key; };
  mapping.entries.erase(
      std::remove_if(mapping.entries.begin(), mapping.entries.end(), same),
      mapping.entries.end());
  yaml::Entry entry;
  entry.key = text(value->source ? *value->source : "", value->range, key);
  entry.value = value;
  entry.at = value->range;
  mapping.entries.push_back(entry);
}

bool fits(ArgumentType type, const yaml::Node &value) {
  switch (type) {
  case ArgumentType::Int:
    return value.kind == yaml::Kind::Int && !value.huge;
  case ArgumentType::Float:
    return value.kind == yaml::Kind::Int || value.kind == yaml::Kind::Float;
  case ArgumentType::Bool:
    return value.kind == yaml::Kind::Bool;
  case ArgumentType::Text:
    return value.isScalar();
  case ArgumentType::List:
    return value.isSequence() || value.isString();
  case ArgumentType::Dict:
    return value.isMapping() || value.isString();
  case ArgumentType::Any:
    return true;
  }
  return true;
}

void report(DiagnosticEngine &engine, Severity severity, const char *code,
            const Given &given, const std::string &message,
            const std::string &hint, bool atKey) {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = given.file;
  d.key = given.written;
  d.message = message;
  d.hint = hint;
  const bool whole =
      !atKey && given.value->isScalar() && !given.value->text.empty();
  d.setRange(whole ? given.value->range : given.key);
  engine.report(std::move(d));
}

} // namespace accel::scripts
