//===- Builder.cpp - Making documents -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Builder.h"

#include <algorithm>

using namespace accel;
using namespace accel::yaml;

Builder::Builder(const std::string &file, DiagnosticEngine &engine,
                 const Limits &limits)
    : document(std::make_unique<Document>()), engine(engine), limits(limits) {
  document->path = file;
}

void Builder::error(const char *code, Mark at, const std::string &message,
                    const std::string &hint) {
  anyError = true;
  Diagnostic d;
  d.code = code;
  d.file = document->path;
  d.line = at.line;
  d.column = at.column;
  d.message = message;
  d.hint = hint;
  engine.report(std::move(d));
}

static std::string tooMany(uint64_t limit) {
  return "more than " + std::to_string(limit) +
         " values in one file (aliases counted as often as they are used)";
}

Node *Builder::create(Mark at) {
  if (++count > limits.nodes) {
    error("yaml-limit", at, tooMany(limits.nodes));
    return nullptr;
  }
  document->nodes.emplace_back();
  document->nodes.back().range.begin = at;
  return &document->nodes.back();
}

uint64_t Builder::expandedSize(const Node &node) {
  if (node.isScalar())
    return 1;
  auto [place, inserted] = sizes.emplace(&node, 1);
  if (!inserted)
    return place->second;
  uint64_t sum = 1;
  auto add = [&](const Node *child) {
    sum = std::min(sum + expandedSize(*child), limits.nodes + 1);
  };
  for (const Node *item : node.items)
    add(item);
  for (const Entry &entry : node.entries) {
    add(entry.key);
    add(entry.value);
  }
  return sizes[&node] = sum;
}

bool Builder::countAlias(const Node &node, Mark at) {
  count += expandedSize(node);
  if (count <= limits.nodes)
    return true;
  error("yaml-limit", at, tooMany(limits.nodes));
  return false;
}

bool Builder::checkDepth(int depth, Mark at) {
  if (depth <= limits.depth)
    return true;
  error("yaml-limit", at,
        "values nested more than " + std::to_string(limits.depth) + " deep");
  return false;
}

/// Keys are the same if Python's dict says so, which mixes 1, 1.0 and true.
static std::string identity(const Node &key) {
  switch (key.kind) {
  case Kind::Null:
    return "n";
  case Kind::Bool:
    return key.boolean ? "i1" : "i0";
  case Kind::Int:
    return key.huge ? "h" + key.text : "i" + std::to_string(key.integer);
  case Kind::Float:
    if (key.number == static_cast<double>(static_cast<int64_t>(
                          std::clamp(key.number, -1e15, 1e15))))
      return "i" + std::to_string(static_cast<int64_t>(key.number));
    return "f" + std::to_string(key.number);
  default:
    return "s" + key.text;
  }
}

bool Builder::setEntries(Node &node, const std::vector<Entry> &merged,
                         const std::vector<Entry> &written) {
  std::unordered_map<std::string, size_t> index;
  for (Entry entry : merged) {
    entry.merged = true;
    auto [place, isNew] =
        index.emplace(identity(*entry.key), node.entries.size());
    if (isNew)
      node.entries.push_back(entry);
    else
      node.entries[place->second] = entry;
  }
  for (const Entry &entry : written) {
    const Node &key = *entry.key;
    if (!key.isScalar()) {
      error("yaml-syntax", key.range.begin,
            std::string(describe(key.kind)) + " cannot be a key");
      return false;
    }
    auto [place, isNew] = index.emplace(identity(key), node.entries.size());
    if (isNew) {
      node.entries.push_back(entry);
      continue;
    }
    Entry &old = node.entries[place->second];
    if (!old.merged) {
      Diagnostic d;
      d.severity = Severity::Warning;
      d.code = "duplicate-key";
      d.file = document->path;
      d.line = key.range.begin.line;
      d.column = key.range.begin.column;
      d.endColumn = key.range.end.column;
      d.key = printable(key.text, 200);
      d.message = "'" + printable(key.text) +
                  "' is given twice; this one replaces the value of line " +
                  std::to_string(old.key->range.begin.line);
      d.hint = "remove one of the two";
      engine.report(std::move(d));
    }
    old = entry;
  }
  return true;
}

std::unique_ptr<Document> Builder::finish(const Node *root) {
  if (anyError)
    return nullptr;
  document->rootNode = root;
  return std::move(document);
}
