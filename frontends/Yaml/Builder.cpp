//===- Builder.cpp - Making documents -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/Editor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace accel;
using namespace accel::yaml;

Builder::Builder(const std::string &file, DiagnosticEngine &engine,
                 const Limits &limits)
    : document(std::make_unique<Document>()), engine(engine), limits(limits) {
  document->path = file;
}

void Builder::error(const char *code, const SourceRange &at,
                    const std::string &message, const std::string &hint,
                    std::vector<TextEdit> fix) {
  anyError = true;
  Diagnostic d;
  d.code = code;
  d.file = document->path;
  d.setRange(at);
  d.message = message;
  d.hint = hint;
  d.fix = std::move(fix);
  engine.report(std::move(d));
}

bool Builder::spend(uint64_t values, Mark at) {
  bool before = count <= limits.nodes;
  count += values;
  if (count <= limits.nodes)
    return true;
  if (before)
    error(
        "yaml-limit", at,
        "more than " + std::to_string(limits.nodes) +
            " values in one file (aliases counted as often as they are used)");
  return false;
}

Node *Builder::create(Mark at) {
  if (!spend(1, at))
    return nullptr;
  document->nodes.emplace_back();
  document->nodes.back().range.begin = at;
  return &document->nodes.back();
}

uint64_t Builder::expandedSize(const Node &node) {
  if (node.items.empty() && node.entries.empty())
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
  return spend(expandedSize(node), at);
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
  char buffer[400];
  switch (key.kind) {
  case Kind::Null:
    return "n";
  case Kind::Bool:
    return key.boolean ? "i1" : "i0";
  case Kind::Int:
    return "i" + pythonText(key);
  case Kind::Float:
    // PyYAML has one object for all `.nan`; others equal only themselves.
    if (std::isnan(key.number) && key.text.find('.') != std::string::npos)
      return "f.nan";
    if (std::isnan(key.number))
      std::snprintf(buffer, sizeof buffer, "f%p",
                    static_cast<const void *>(&key));
    else if (key.number == 0)
      return "i0";
    else if (std::isfinite(key.number) && key.number == std::trunc(key.number))
      std::snprintf(buffer, sizeof buffer, "i%.0f", key.number);
    else
      std::snprintf(buffer, sizeof buffer, "f%a", key.number);
    return buffer;
  case Kind::Other:
    return "o" + (key.python ? key.python->second : key.text);
  default:
    return "s" + key.text;
  }
}

static bool hashable(const Node &key) {
  return key.kind != Kind::Sequence && key.kind != Kind::Mapping &&
         (key.kind != Kind::Other || key.other == Other::Date ||
          key.other == Other::Bytes);
}

void Builder::makeUnique(Node &node) {
  std::vector<Entry> written;
  written.swap(node.entries);
  node.entries.reserve(written.size());
  std::unordered_map<std::string, size_t> index;
  for (const Entry &entry : written) {
    const Node &key = *entry.key;
    if (!hashable(key)) {
      error("yaml-syntax", key.range,
            std::string(describe(key.kind)) + " cannot be a key");
      continue;
    }
    auto [place, isNew] = index.emplace(identity(key), node.entries.size());
    if (isNew) {
      node.entries.push_back(entry);
      continue;
    }
    Entry &old = node.entries[place->second];
    if (!old.merged && !entry.merged) {
      Diagnostic d;
      d.severity = Severity::Warning;
      d.code = "duplicate-key";
      d.file = document->path;
      d.setRange(key.range);
      d.key = printable(key.text, 200);
      d.message = "'" + printable(key.text) +
                  "' is given twice; this one replaces the value of line " +
                  std::to_string(old.key->range.begin.line);
      d.hint = "remove one of the two";
      d.ranges = {old.key->range};
      // Beyond this many nobody repairs them one by one.
      constexpr int mostFixes = 100;
      if (++duplicates <= mostFixes)
        d.fix =
            Editor(engine.source(document->path), document->path).remove(old);
      repeated.emplace_back(&node, std::move(d));
    }
    // Python keeps the first of equal keys, which may be of another kind.
    const Node *first = old.key;
    old = entry;
    if (first->kind != key.kind || first->text != key.text)
      old.key = first;
  }
}

void Builder::reportRepeated(const Node *root) {
  if (repeated.empty())
    return;
  // The first path that leads to a mapping; anchors make others.
  std::unordered_map<const Node *, std::string> paths;
  std::vector<std::pair<const Node *, std::string>> open;
  if (root)
    open.emplace_back(root, "");
  while (!open.empty()) {
    auto [node, path] = std::move(open.back());
    open.pop_back();
    if (!paths.emplace(node, path).second)
      continue;
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const Entry &entry : node->entries)
      open.emplace_back(entry.value, prefix + printable(entry.key->text, 200));
    for (size_t i = 0; i < node->items.size(); ++i)
      open.emplace_back(node->items[i], prefix + std::to_string(i));
  }
  for (auto &[node, diagnostic] : repeated) {
    auto at = paths.find(node);
    if (at != paths.end() && !at->second.empty())
      diagnostic.key = printable(at->second + "." + diagnostic.key, 200);
    engine.report(std::move(diagnostic));
  }
  repeated.clear();
}

std::unique_ptr<Document> Builder::finish(const Node *root) {
  reportRepeated(anyError ? nullptr : root);
  if (anyError)
    return nullptr;
  document->rootNode = root;
  return std::move(document);
}
