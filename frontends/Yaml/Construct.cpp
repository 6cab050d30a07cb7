//===- Construct.cpp - From tags to values --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// SafeConstructor of yaml/constructor.py: merges, tags, and what becomes of
// each scalar. Only what PyYAML constructs is judged: the mapping behind a `<<`
// may have any tag.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/Resolver.h"

#include <algorithm>

using namespace accel;
using namespace accel::yaml;

namespace {

enum State : unsigned char { Composed, Running, Constructed };

class Constructor {
public:
  Constructor(Builder &builder,
              const std::unordered_map<const Node *, std::string> &tags)
      : builder(builder), tags(tags) {}

  /// The value of `node`, which is another node where that is an alias of what
  /// it stands in. Null after an error that makes going on pointless.
  const Node *value(const Node *composed) {
    Node &node = *const_cast<Node *>(composed);
    if (node.state == Constructed)
      return &node;
    if (node.state == Running)
      return recursive(node);
    node.state = Running;
    bool good = construct(node);
    node.state = Constructed;
    return good ? &node : nullptr;
  }

private:
  Builder &builder;
  const std::unordered_map<const Node *, std::string> &tags;
  /// What stands for a circle, and the node that it stands for.
  std::unordered_map<const Node *, const Node *> circles;

  /// As it was composed, before a tag made something else of it.
  static bool isMap(const Node &node) {
    return node.isMapping() || node.other == Other::Set;
  }
  static bool isList(const Node &node) {
    return node.isSequence() || node.other == Other::Pairs;
  }
  static Tag tagOf(const Node &node) { return static_cast<Tag>(node.tag); }

  /// Python prints a list inside of itself as [...].
  const Node *recursive(const Node &node) {
    Node *result = builder.create(node.range.begin);
    if (!result)
      return nullptr;
    result->kind = Kind::Other;
    result->other = Other::Recursive;
    result->state = Constructed;
    circles.emplace(result, &node);
    result->range = node.range;
    result->text = node.isSequence() ? "[...]" : "{...}";
    result->python =
        std::make_shared<const std::pair<std::string, std::string>>(
            result->text, result->text);
    return result;
  }

  void badTag(const Node &node) {
    auto name = tags.find(&node);
    if (tagOf(node) == Tag::Merge || tagOf(node) == Tag::Value)
      builder.error("yaml-syntax", node.range,
                    "'" + printable(node.text) +
                        "' cannot be a value in YAML 1.1",
                    "quote it to make it a string");
    else if (tagOf(node) == Tag::Unknown)
      builder.error(
          "yaml-syntax", node.range,
          "tag '" + printable(name == tags.end() ? node.text : name->second) +
              "' is not known",
          "remove the tag; safe_load refuses it too");
    else
      builder.error("yaml-syntax", node.range,
                    "tag '" +
                        printable(name == tags.end() ? "" : name->second) +
                        "' does not fit this value",
                    "remove the tag; safe_load refuses it too");
  }

  bool construct(Node &node) {
    if (node.isMapping())
      return mapping(node);
    if (node.isSequence())
      return sequence(node);
    Tag tag = tagOf(node);
    if (tag == Tag::Merge || tag == Tag::Value || tag >= Tag::Sequence) {
      badTag(node);
    } else if (!constructScalar(tag, node)) {
      builder.error("yaml-syntax", node.range,
                    "'" + printable(node.text) + "' is not a valid value here",
                    "quote it to make it a string");
    }
    return true;
  }

  bool sequence(Node &node) {
    Tag tag = tagOf(node);
    if (tag == Tag::Omap || tag == Tag::Pairs)
      return pairs(node);
    if (tag != Tag::Sequence) {
      badTag(node);
      return true;
    }
    for (const Node *&item : node.items)
      if (!(item = value(item)))
        return false;
    return true;
  }

  /// A list of mappings of one entry each.
  bool pairs(Node &node) {
    std::vector<Entry> entries;
    for (const Node *item : node.items) {
      if (!isMap(*item) || item->entries.size() != 1) {
        builder.error("yaml-syntax", item->range,
                      "expected a mapping of one key");
        continue;
      }
      Entry entry = item->entries[0];
      if (!(entry.key = value(entry.key)) ||
          !(entry.value = value(entry.value)))
        return false;
      entries.push_back(entry);
    }
    node.kind = Kind::Other;
    node.other = Other::Pairs;
    node.entries = std::move(entries);
    return true;
  }

  /// A mapping with a scalar's tag has the value of its key `=`.
  bool defaultValue(Node &node) {
    const Node *found = &node;
    for (int hops = 0; found && found->isMapping(); ++hops) {
      const Node *next = nullptr;
      for (const Entry &entry : found->entries)
        if (tagOf(*entry.key) == Tag::Value && !entry.key->isSequence() &&
            !entry.key->isMapping()) {
          next = entry.value;
          break;
        }
      found = hops < 1000 ? next : nullptr;
    }
    if (!found || found->isSequence()) {
      badTag(node);
      return true;
    }
    node.kind = Kind::Null;
    node.text = found->text;
    node.entries.clear();
    if (!constructScalar(tagOf(node), node))
      badTag(node);
    return true;
  }

  bool mapping(Node &node) {
    Tag tag = tagOf(node);
    if (tag < Tag::Sequence)
      return defaultValue(node);
    if (tag != Tag::Mapping && tag != Tag::Set) {
      badTag(node);
      return true;
    }
    if (!flatten(node))
      return false;
    for (Entry &entry : node.entries)
      if (!(entry.key = value(entry.key)) ||
          !(entry.value = value(entry.value)))
        return false;
    builder.makeUnique(node);
    if (tag == Tag::Set) {
      node.kind = Kind::Other;
      node.other = Other::Set;
    }
    return true;
  }

  /// Puts the entries that `<<` names before the mapping's own. As in PyYAML
  /// it works in place, since a mapping may even name itself.
  bool flatten(Node &node, int depth = 0) {
    // Python's own limit is about a thousand calls.
    if (depth > 900) {
      builder.error("yaml-limit", node.range,
                    "more than 900 mappings that merge one another");
      return false;
    }
    std::vector<Entry> merged;
    auto take = [&](const Node *from) {
      if (!flatten(*const_cast<Node *>(from), depth + 1) ||
          !builder.spend(from->entries.size(), node.range.begin))
        return false;
      for (Entry entry : from->entries) {
        entry.merged = true;
        if (auto circle = circles.find(entry.value); circle != circles.end())
          entry.value = circle->second;
        merged.push_back(entry);
      }
      return true;
    };
    size_t merges = 0;
    for (size_t i = 0; i < node.entries.size();) {
      Node &key = *const_cast<Node *>(node.entries[i].key);
      bool scalar = !key.isMapping() && !key.isSequence();
      if (scalar && tagOf(key) == Tag::Value)
        key.tag = static_cast<unsigned char>(Tag::String);
      if (tagOf(key) != Tag::Merge) {
        ++i;
        continue;
      }
      const Node &from = *node.entries[i].value;
      node.entries.erase(node.entries.begin() + static_cast<ptrdiff_t>(i));
      // Thousands of them in one mapping are no configuration.
      if (++merges > 16 &&
          !builder.spend(node.entries.size() / 16, node.range.begin))
        return false;
      bool list = isList(from);
      bool good = isMap(from) || list;
      for (const Node *item : from.items)
        good &= isMap(*item);
      if (!good) {
        builder.error("yaml-syntax", from.range,
                      "'<<' takes a mapping or a list of mappings");
        continue;
      }
      if (!list && !take(&from))
        return false;
      // All are flattened first; then the first has the last word.
      for (const Node *item : from.items)
        if (list && !flatten(*const_cast<Node *>(item), depth + 1))
          return false;
      for (auto item = from.items.rbegin(); list && item != from.items.rend();
           ++item)
        if (!take(*item))
          return false;
    }
    if (!merged.empty())
      node.entries.insert(node.entries.begin(), merged.begin(), merged.end());
    return true;
  }
};

} // namespace

void accel::yaml::construct(
    Builder &builder, Node &root,
    const std::unordered_map<const Node *, std::string> &tags) {
  Constructor(builder, tags).value(&root);
}
