//===- Rewriter.cpp - Changing a YAML file in place -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Rewriter.h"

#include <algorithm>

using namespace accel;
using namespace accel::convert;
using yaml::Entry;
using yaml::Node;
using yaml::Style;

namespace {

constexpr size_t npos = std::string::npos;

bool keepsEntries(const Node &a, const Node &b,
                  const std::vector<std::string> &changed) {
  auto free = [&](const Entry &entry) {
    return entry.key->isString() && std::find(changed.begin(), changed.end(),
                                              entry.key->text) != changed.end();
  };
  auto covers = [&](const Node &from, const Node &to) {
    for (const Entry &entry : from.entries) {
      if (free(entry))
        continue;
      auto twin = std::find_if(
          to.entries.begin(), to.entries.end(),
          [&](const Entry &other) { return equal(*entry.key, *other.key); });
      if (twin == to.entries.end() || !equal(*entry.value, *twin->value))
        return false;
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

/// Equal but for `changed` keys of the mapping at `path`.
bool keepsRest(const Node &a, const Node &b, const Path &path, size_t depth,
               const std::vector<std::string> &changed) {
  if (depth == path.size()) {
    // An empty section is null before its first key comes.
    static const Node empty;
    const Node &x = a.isMapping() ? a : empty, &y = b.isMapping() ? b : empty;
    return (a.isMapping() || a.isNull()) && (b.isMapping() || b.isNull()) &&
           keepsEntries(x, y, changed);
  }
  const Node *nextA = a.find(path[depth]), *nextB = b.find(path[depth]);
  return nextA && nextB && keepsEntries(a, b, {path[depth]}) &&
         keepsRest(*nextA, *nextB, path, depth + 1, changed);
}

} // namespace

bool accel::convert::equal(const Node &a, const Node &b) {
  if (a.kind != b.kind || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  if (a.isScalar())
    return a.text == b.text;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(*a.items[i], *b.items[i]))
      return false;
  return keepsEntries(a, b, {});
}

std::string Value::write(bool json) const {
  if (!isString)
    return content;
  return yaml::Editor("", json ? ".json" : ".yaml").quoted(content);
}

bool Value::isWrittenAs(const Node &node) const {
  // A quoted 'false' is true for whoever does not parse it.
  bool isBoolean = !isString && (content == "true" || content == "false");
  if (isBoolean || node.kind == yaml::Kind::Bool)
    return isBoolean && node.kind == yaml::Kind::Bool &&
           content == (node.boolean ? "true" : "false");
  return yaml::pythonText(node) == content;
}

//===----------------------------------------------------------------------===//
// Text and places
//===----------------------------------------------------------------------===//

Rewriter::Rewriter(std::string file, std::string text)
    : file(std::move(file)), content(std::move(text)),
      json(this->file.ends_with(".json")) {
  read();
}

bool Rewriter::read() {
  DiagnosticEngine ignored;
  auto parsed = yaml::parseText(file, content, ignored);
  if (!parsed || !parsed->root() || !parsed->root()->isMapping())
    return false;
  document = std::move(parsed);
  return true;
}

bool Rewriter::refuse(std::string why) {
  reason = std::move(why);
  return false;
}

size_t Rewriter::lineStart(size_t at) const {
  size_t before = at == 0 ? npos : content.find_last_of("\r\n", at - 1);
  if (before != npos)
    return before + 1;
  return content.starts_with("\xef\xbb\xbf") ? 3 : 0;
}

size_t Rewriter::lineEnd(size_t at) const {
  return std::min(content.find_first_of("\r\n", at), content.size());
}

size_t Rewriter::nextLine(size_t at) const {
  size_t end = lineEnd(at);
  if (end == content.size())
    return end;
  return end + (content.compare(end, 2, "\r\n") == 0 ? 2 : 1);
}

std::string Rewriter::lineBreak() const {
  size_t end = lineEnd(0);
  return end == content.size() ? "\n" : content.substr(end, nextLine(0) - end);
}

std::optional<std::string> Rewriter::indentOf(size_t at) const {
  std::string before = content.substr(lineStart(at), at - lineStart(at));
  if (before.find_first_not_of(json ? " \t" : " ") != npos)
    return std::nullopt;
  return before;
}

static void addScalars(const Node &node, std::vector<yaml::Range> &ranges) {
  if (node.isScalar())
    ranges.push_back(node.range);
  for (const Node *item : node.items)
    addScalars(*item, ranges);
  for (const Entry &entry : node.entries) {
    addScalars(*entry.key, ranges);
    addScalars(*entry.value, ranges);
  }
}

std::string Rewriter::comments(size_t first, size_t last,
                               const std::string &indent,
                               const std::vector<yaml::Range> &opaque) const {
  std::string out;
  for (size_t line = lineStart(first); line <= last && line < content.size();
       line = nextLine(line)) {
    size_t end = lineEnd(line);
    for (size_t at = line; at < end; ++at) {
      if (content[at] != '#' ||
          (at > line && content[at - 1] != ' ' && content[at - 1] != '\t'))
        continue;
      bool inside = false;
      for (const yaml::Range &range : opaque)
        inside |= range.begin.byte <= at && at < range.end.byte;
      if (inside)
        continue;
      out += indent + content.substr(at, nextLine(at) - at);
      break;
    }
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

bool Rewriter::apply(yaml::Edits edits, const Path &parent,
                     const std::vector<std::string> &changed) {
  const char *why = "the text around it has a form that cannot be edited in "
                    "place";
  if (edits.empty())
    return refuse(why);
  std::string before = content;
  std::unique_ptr<yaml::Document> old = std::move(document);
  std::sort(
      edits.begin(), edits.end(),
      [](const TextEdit &a, const TextEdit &b) { return a.begin > b.begin; });
  for (const TextEdit &edit : edits)
    content.replace(edit.begin, edit.end - edit.begin, edit.text);
  if (read() && keepsRest(*old->root(), root(), parent, 0, changed))
    return true;
  content = std::move(before);
  document = std::move(old);
  return refuse(why);
}

const Entry *Rewriter::findEntry(const Path &path) const {
  const Node *node = &root();
  const Entry *entry = nullptr;
  for (const std::string &key : path) {
    entry = node->isMapping() ? node->findEntry(key) : nullptr;
    if (!entry)
      return nullptr;
    node = entry->value;
  }
  return entry;
}

const Node *Rewriter::find(const Path &path) const {
  if (path.empty())
    return &root();
  const Entry *entry = findEntry(path);
  return entry ? entry->value : nullptr;
}

static Path parentOf(const Path &path) {
  return {path.begin(), path.end() - 1};
}

bool Rewriter::set(const Path &path, const Value &value) {
  const Entry *entry = findEntry(path);
  if (!entry)
    return refuse("there is no such key");
  if (entry->merged) // written here, it has the last word
    return insert(parentOf(path), path.back(), value);
  yaml::Editor editor(content, file);
  return apply(editor.setRaw(*entry, value.write(json)), parentOf(path),
               {path.back()});
}

bool Rewriter::rename(const Path &path, const std::string &key) {
  const Entry *entry = findEntry(path);
  if (!entry)
    return refuse("there is no such key");
  if (entry->merged)
    return refuse("it comes from a merge ('<<')");
  yaml::Editor editor(content, file);
  return apply(editor.rename(*entry, key), parentOf(path), {path.back(), key});
}

bool Rewriter::remove(const Path &path) {
  const Entry *entry = findEntry(path);
  if (!entry)
    return refuse("there is no such key");
  // Without the last of several repetitions the one before counts.
  size_t length = content.size() + 1;
  while (entry) {
    if (entry->merged)
      return refuse("it comes from a merge ('<<')");
    if (content.size() >= length)
      return refuse("it is repeated in a form that cannot be edited in place");
    length = content.size();
    bool flow = find(parentOf(path))->style == Style::Flow;
    yaml::Editor editor(content, file);
    if (!(flow ? apply(editor.remove(*entry), parentOf(path), {path.back()})
               : removeBlock(path, *entry)))
      return false;
    entry = findEntry(path);
  }
  return true;
}

/// Unlike the editor's, this keeps comments between the lines of a section, and
/// a section without its last key.
bool Rewriter::removeBlock(const Path &path, const Entry &entry) {
  size_t begin = entry.key->range.begin.byte;
  std::optional<std::string> indent = indentOf(begin);
  if (!indent)
    return refuse("it does not start a line");
  size_t end = std::max(entry.at.end.byte, entry.key->range.end.byte);
  std::vector<yaml::Range> opaque = {entry.key->range};
  addScalars(*entry.value, opaque);
  std::string kept = comments(begin, end, *indent, opaque);
  return apply({{lineStart(begin), nextLine(end), kept}}, parentOf(path),
               {path.back()});
}

bool Rewriter::insert(const Path &path, const std::string &key,
                      const Value &value) {
  const Node *parent = find(path);
  const Entry *owner = path.empty() ? nullptr : findEntry(path);
  if (!parent || !(parent->isMapping() || parent->isNull()))
    return refuse("there is no section to put it in");
  bool elsewhere = owner && parent->isMapping() &&
                   parent->range.begin.byte != owner->at.begin.byte;
  if (owner && (owner->merged || elsewhere))
    return refuse("the section stands elsewhere, behind an alias");
  yaml::Editor editor(content, file);
  if (parent->isMapping())
    return apply(editor.insert(*parent, key, value.write(json)), path, {key});
  std::string line = Value::string(key).write(json) + ": " + value.write(json);
  std::optional<std::string> indent = indentOf(owner->key->range.begin.byte);
  if (!parent->text.empty() || !indent)
    return apply(editor.setRaw(*owner, "{" + line + "}"), path, {key});
  size_t at = lineEnd(owner->key->range.end.byte);
  return apply({{at, at, lineBreak() + *indent + "  " + line}}, path, {key});
}

bool Rewriter::insertSection(const std::string &key, const Members &members,
                             const std::string &after) {
  const Entry *before = nullptr;
  for (const Entry &entry : root().entries) {
    if (entry.merged)
      continue;
    bool wanted = !after.empty() && entry.key->text == after;
    if (!before || wanted ||
        before->key->range.begin.byte < entry.key->range.begin.byte)
      before = &entry;
    if (wanted)
      break;
  }
  if (!before)
    return refuse("there is no line to put it behind");
  std::optional<std::string> indent = indentOf(before->key->range.begin.byte);
  bool flow = root().style == Style::Flow;
  if (!flow && !indent)
    return refuse("the line before it has a form that cannot be edited");
  std::string separator, step = "  ", text;
  if (!indent) {
    separator = " "; // all on one line
  } else {
    if (!indent->empty())
      step = *indent; // as deep as the root's keys
    separator = lineBreak() + *indent + step;
  }
  for (const auto &[name, value] : members) {
    if (flow && !text.empty())
      text += ",";
    if (!flow || indent || !text.empty())
      text += separator;
    text += Value::string(name).write(json) + ": " + value.write(json);
  }
  std::string name = Value::string(key).write(json);
  size_t at = std::max(before->at.end.byte, before->key->range.end.byte);
  if (!flow) {
    at = lineEnd(at);
    text = lineBreak() + *indent + name + ":" + text;
  } else {
    text = "," + (indent ? lineBreak() + *indent : " ") + name + ": {" + text +
           (indent ? lineBreak() + *indent : "") + "}";
  }
  return apply({{at, at, text}}, {}, {key});
}
