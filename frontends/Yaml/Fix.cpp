//===- Fix.cpp - Making the fixes of diagnostics --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Fix.h"
#include "frontends/Diagnostics/Diff.h"

#include <algorithm>
#include <map>

using namespace accel;
using namespace accel::yaml;

namespace {

/// A value at its path, and the bytes that it is made of.
struct Leaf {
  std::string value;
  size_t begin = 0, end = 0;           // both 0: comes from elsewhere
  bool empty = false;                  // nothing is written after the colon
  size_t wholeBegin = 0, wholeEnd = 0; // of a collection
};
using Leaves = std::map<std::string, Leaf>;

class Flattener {
public:
  Leaves leaves;

  /// `place` is where an alias stands that the node was reached by.
  void node(const Node &n, const std::string &path, const Leaf &own,
            const Leaf *place) {
    Leaf leaf = own;
    leaf.value = std::string(describe(n.kind));
    if (n.isScalar() && n.other == Other::None)
      leaf.value += " " + pythonText(n);
    leaves.emplace(path, leaf);
    size_t index = 0;
    for (const Node *item : n.items) {
      Leaf at;
      at.begin = item->range.begin.byte;
      at.end = item->range.end.byte;
      node(*item, path + "\x1f" + std::to_string(index++), place ? *place : at,
           place);
    }
    for (const Entry &entry : n.entries)
      child(entry, path, place);
  }

private:
  void child(const Entry &entry, const std::string &path, const Leaf *place) {
    std::string name = path + "\x1f" + describe(entry.key->kind) + " " +
                       pythonText(*entry.key);
    const Node &value = *entry.value;
    Leaf at;
    at.begin = entry.key->range.begin.byte;
    at.end = std::max(entry.key->range.end.byte, entry.at.end.byte);
    at.empty = entry.at.begin.byte == entry.at.end.byte;
    // Edits inside of a collection leave it a collection.
    if (!value.isScalar() || !value.items.empty() || !value.entries.empty()) {
      at.end = entry.key->range.end.byte;
      at.wholeBegin = entry.at.begin.byte;
      at.wholeEnd = entry.at.end.byte;
    }
    if (entry.merged)
      at = {};
    if (place)
      at = *place;
    bool alias = entry.at.begin.byte != value.range.begin.byte;
    Leaf whole = at;
    if (alias && !place && !entry.merged)
      whole.end = entry.at.end.byte;
    bool elsewhere = place || entry.merged || alias;
    node(value, name, elsewhere ? whole : at, elsewhere ? &whole : nullptr);
  }
};

bool flatten(const std::string &file, std::string_view text, Leaves &leaves,
             size_t &errors) {
  DiagnosticEngine engine;
  std::unique_ptr<Document> document = parseText(file, text, engine);
  errors = engine.errors();
  if (!document)
    return false;
  Flattener flattener;
  if (document->root())
    flattener.node(*document->root(), "", {}, nullptr);
  leaves = std::move(flattener.leaves);
  return true;
}

/// Whether an edit of the bytes [begin, end) is one of the leaf.
bool touches(const Leaf &leaf, size_t begin, size_t end) {
  if (begin == end) // an insertion
    return leaf.begin < begin &&
           (begin < leaf.end || (leaf.empty && begin == leaf.end));
  bool whole = leaf.wholeBegin < leaf.wholeEnd && begin <= leaf.wholeBegin &&
               end >= leaf.wholeEnd;
  return whole || (begin < leaf.end && end > leaf.begin);
}

/// Whether every untouched leaf of `from` is in `to` as it is.
bool contains(const Leaves &to, const Leaves &from,
              const std::vector<std::pair<size_t, size_t>> &edited) {
  for (const auto &[path, leaf] : from) {
    auto other = to.find(path);
    if (other != to.end() && other->second.value == leaf.value)
      continue;
    bool touched = false;
    for (const auto &[begin, end] : edited)
      touched |= touches(leaf, begin, end);
    if (!touched)
      return false;
  }
  return true;
}

bool inOrder(const TextEdit &a, const TextEdit &b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
}

} // namespace

bool accel::yaml::keepsOtherValues(const std::string &file,
                                   std::string_view before,
                                   std::string_view after,
                                   const std::vector<TextEdit> &edits) {
  Leaves old, fresh;
  size_t oldErrors = 0, freshErrors = 0;
  bool hadValues = flatten(file, before, old, oldErrors);
  bool hasValues = flatten(file, after, fresh, freshErrors);
  if (!hadValues)
    return freshErrors < oldErrors;
  if (!hasValues)
    return false;
  std::vector<std::pair<size_t, size_t>> inOld, inFresh;
  ptrdiff_t shift = 0;
  for (const TextEdit &edit : edits) {
    inOld.emplace_back(edit.begin, edit.end);
    size_t begin = edit.begin + static_cast<size_t>(shift);
    inFresh.emplace_back(begin, begin + edit.text.size());
    shift += static_cast<ptrdiff_t>(edit.text.size()) -
             static_cast<ptrdiff_t>(edit.end - edit.begin);
  }
  return contains(fresh, old, inOld) && contains(old, fresh, inFresh);
}

/// Makes those of `fixes` that keep all other values.
static std::string makeRound(const std::string &file, const std::string &text,
                             const std::vector<const Diagnostic *> &fixes,
                             size_t &fixed, size_t &refused) {
  std::vector<TextEdit> all;
  std::vector<const Diagnostic *> chosen;
  for (const Diagnostic *d : fixes) {
    bool free = true;
    for (const TextEdit &edit : d->fix) {
      free &= edit.begin <= edit.end && edit.end <= text.size();
      // Two edits at one place have no order.
      for (const TextEdit &other : all)
        free &= edit.end < other.begin || edit.begin > other.end ||
                (edit.end == other.begin && edit.begin != edit.end &&
                 other.begin != other.end) ||
                (edit.begin == other.end && edit.begin != edit.end &&
                 other.begin != other.end);
    }
    if (!free)
      continue;
    all.insert(all.end(), d->fix.begin(), d->fix.end());
    chosen.push_back(d);
  }
  std::sort(all.begin(), all.end(), inOrder);
  std::string after = applyEdits(text, all);
  if (after == text)
    return text;
  if (keepsOtherValues(file, text, after, all)) {
    fixed += chosen.size();
    return after;
  }
  if (chosen.size() == 1) {
    ++refused;
    return text;
  }
  // One of them does harm: the first that does good alone is made. (A hostile
  // file could have thousands.)
  constexpr size_t mostTried = 50;
  for (const Diagnostic *d : chosen) {
    if (d == chosen[std::min(chosen.size() - 1, mostTried)] &&
        chosen.size() > mostTried)
      break;
    size_t ignored = 0;
    std::string one = makeRound(file, text, {d}, fixed, ignored);
    if (one != text)
      return one;
  }
  refused += chosen.size();
  return text;
}

FixResult accel::yaml::makeFixes(const std::string &file,
                                 const std::string &text, const Lint &lint) {
  // Each round makes at least one fix; a file with more mistakes than this is
  // fixed by running it again. A large one gets fewer rounds.
  constexpr size_t mostRounds = 50, mostBytes = 1 << 19;
  size_t rounds =
      std::clamp<size_t>(mostBytes / (text.size() + 1), 1, mostRounds);
  FixResult result;
  result.text = text;
  std::vector<std::string> seen = {text};
  for (size_t round = 0; round < rounds; ++round) {
    DiagnosticEngine engine;
    lint(result.text, engine);
    std::vector<Diagnostic> found = engine.sorted();
    std::vector<const Diagnostic *> fixes;
    for (const Diagnostic &d : found)
      if (d.severity != Severity::Note && d.file == file && !d.fix.empty())
        fixes.push_back(&d);
    size_t fixed = 0, refused = 0;
    std::string next = makeRound(file, result.text, fixes, fixed, refused);
    result.refused = refused;
    if (next == result.text ||
        std::find(seen.begin(), seen.end(), next) != seen.end())
      break;
    result.fixed += fixed;
    result.text = next;
    seen.push_back(std::move(next));
  }
  return result;
}
