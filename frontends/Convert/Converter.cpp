//===- Converter.cpp - The edits of one conversion ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Converter.h"
#include "frontends/Accelerate/KeyTable.h"

#include <charconv>

using namespace accel;
using namespace accel::convert;

Converter::Converter(const std::string &file, const std::string &text,
                     const AccelerateConfig &before, bool countsRanks,
                     DiagnosticEngine &engine)
    : file(file), before(before), countsRanks(countsRanks), engine(engine),
      source(file, text), rewriter(file, text) {}

//===----------------------------------------------------------------------===//
// What is there
//===----------------------------------------------------------------------===//

static std::vector<std::string> spellingsIn(const Rewriter &rewriter,
                                            const std::string &section,
                                            const std::string &key) {
  std::vector<std::string> found;
  const yaml::Node *node = rewriter.find({section});
  if (node && node->isMapping())
    for (const yaml::Entry &entry : node->entries)
      if (entry.key->isString() &&
          canonicalKey(section, entry.key->text) == key)
        found.push_back(entry.key->text);
  return found;
}

std::vector<std::string> Converter::spellings(const std::string &section,
                                              const std::string &key) const {
  return spellingsIn(rewriter, section, key);
}

bool Converter::hasSection(const std::string &section) const {
  const yaml::Node *node = rewriter.find({section});
  return node && node->isMapping() && !node->entries.empty();
}

int64_t Converter::meshSize(const std::string &axis) const {
  const yaml::Node *node = rewriter.find(
      {"parallelism_config", "parallelism_config_" + axis + "_size"});
  if (!node || node->huge)
    return 1;
  // A quoted size counts too.
  int64_t size = node->integer;
  if (node->isString())
    std::from_chars(node->text.data(), node->text.data() + node->text.size(),
                    size);
  return size < 1 ? 1 : size;
}

bool Converter::hasOtherAxes() const {
  return meshSize("tp") > 1 || meshSize("cp") > 1 || meshSize("sp") > 1;
}

Path Converter::place(const std::string &section,
                      const std::string &key) const {
  std::vector<std::string> found = spellingsIn(source, section, key);
  return found.empty() ? Path{section} : Path{section, found.back()};
}

int Converter::line(const Path &path) const {
  const yaml::Entry *entry = source.findEntry(path);
  return entry ? entry->key->range.begin.line : 0;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

static std::string dotted(const Path &path) {
  std::string out;
  for (const std::string &key : path)
    out += (out.empty() ? "" : ".") + key;
  return out;
}

void Converter::report(Severity severity, const char *code, const Path &path,
                       const std::string &message, const std::string &hint) {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = file;
  d.key = printable(dotted(path), 200);
  d.message = message;
  d.hint = hint;
  d.line = d.column = 1;
  // A key that is not there is reported at its section.
  const yaml::Entry *entry = source.findEntry(path);
  if (!entry)
    entry = source.findEntry({path[0]});
  if (entry) {
    const yaml::Range &range = entry->key->range;
    d.line = range.begin.line;
    d.column = range.begin.column;
    d.endColumn = range.end.column;
  }
  engine.report(std::move(d));
}

bool Converter::noEquivalent(const Path &path, const std::string &message,
                             const std::string &hint) {
  report(Severity::Error, "no-equivalent", path, message, hint);
  return false;
}

bool Converter::edited(bool done, const Path &path, Change change) {
  if (!done) {
    report(Severity::Error, "cannot-edit", path,
           "'" + printable(path.back()) +
               "' cannot be changed in place: " + rewriter.why(),
           "write it out as 'key: value' on a line of its own");
    return false;
  }
  change.key = dotted(path);
  change.line = line(path);
  changes.push_back(std::move(change));
  return true;
}

//===----------------------------------------------------------------------===//
// Edits
//===----------------------------------------------------------------------===//

static std::string shown(const std::string &key, const yaml::Node &value) {
  return key + ": " + yaml::shortText(value);
}
static std::string shown(const std::string &key, const Value &value) {
  return key + ": " + value.text();
}

bool Converter::put(const std::string &section, const std::string &key,
                    const Value &value, const std::string &why) {
  std::vector<std::string> names = spellings(section, key);
  if (names.empty()) {
    // Written as the other keys are: with the prefix or without.
    std::string name = key;
    std::string_view prefix = impliedPrefix(section);
    const yaml::Node *node = rewriter.find({section});
    bool bare =
        node && node->isMapping() && !node->entries.empty() && !prefix.empty();
    if (bare)
      for (const yaml::Entry &entry : node->entries)
        bare &= !entry.key->text.starts_with(prefix);
    if (bare)
      name = key.substr(prefix.size());
    Path path{section, name};
    bool done = node ? rewriter.insert({section}, name, value)
                     : rewriter.insertSection(section, {{name, value}});
    return edited(done, path, {0, "", "", shown(name, value), why});
  }
  std::string last = names.back();
  names.pop_back();
  for (const std::string &other : names)
    if (!edited(rewriter.remove({section, other}), {section, other},
                {0, "", other, "", "repeats " + last}))
      return false;
  const yaml::Node &old = *rewriter.find({section, last});
  if (value.isWrittenAs(old))
    return true;
  std::string from = shown(last, old);
  return edited(rewriter.set({section, last}, value), {section, last},
                {0, "", from, shown(last, value), why});
}

bool Converter::turnInto(const std::string &section, const std::string &key,
                         const std::string &newKey, const Value &value,
                         const std::string &why) {
  std::vector<std::string> names = spellings(section, key);
  if (names.empty())
    return true;
  std::string last = names.back(), name = newKey;
  names.pop_back();
  for (const std::string &other : names)
    if (!edited(rewriter.remove({section, other}), {section, other},
                {0, "", other, "", "repeats " + last}))
      return false;
  const yaml::Entry *entry = rewriter.findEntry({section, last});
  if (entry->merged) // overrides what the merge brings
    return put(section, newKey, value, why);
  std::string_view prefix = impliedPrefix(section);
  if (!prefix.empty() && !last.starts_with(prefix))
    name = newKey.substr(prefix.size());
  std::string from = shown(last, *entry->value);
  bool done = rewriter.rename({section, last}, name) &&
              (value.isWrittenAs(*rewriter.find({section, name})) ||
               rewriter.set({section, name}, value));
  // A repetition of the old name has come to light again.
  if (done && rewriter.find({section, last}))
    done = rewriter.remove({section, last});
  return edited(done, {section, last}, {0, "", from, shown(name, value), why});
}

bool Converter::drop(const std::string &section, const std::string &key,
                     const std::string &why) {
  for (const std::string &name : spellings(section, key)) {
    const yaml::Entry *entry = rewriter.findEntry({section, name});
    std::string from = shown(name, *entry->value);
    if (entry->merged) {
      report(Severity::Note, "kept-key", {section, name},
             "'" + name + "' stays, since it comes from a merge: " + why);
      continue;
    }
    if (!edited(rewriter.remove({section, name}), {section, name},
                {0, "", from, "", why}))
      return false;
  }
  return true;
}

bool Converter::dropSection(const std::string &section,
                            const std::string &why) {
  if (!rewriter.find({section}))
    return true;
  return edited(rewriter.remove({section}), {section},
                {0, "", section, "", why});
}

bool Converter::putTop(const std::string &key, const Value &value,
                       const std::string &why) {
  const yaml::Node *old = rewriter.find({key});
  if (!old)
    return edited(rewriter.insert({}, key, value), {key},
                  {0, "", "", shown(key, value), why});
  if (value.isWrittenAs(*old))
    return true;
  std::string from = shown(key, *old);
  return edited(rewriter.set({key}, value), {key},
                {0, "", from, shown(key, value), why});
}

bool Converter::writeMesh(int64_t replicate, int64_t shard,
                          const std::string &why) {
  const std::string section = "parallelism_config";
  Members sizes = {{section + "_dp_replicate_size", Value::integer(replicate)},
                   {section + "_dp_shard_size", Value::integer(shard)}};
  if (const yaml::Node *node = rewriter.find({section});
      node && !(node->isNull() && !node->text.empty())) {
    for (const auto &[key, value] : sizes)
      if (!put(section, key, value, why))
        return false;
    return true;
  }
  if (rewriter.find({section}) && !rewriter.remove({section}))
    return edited(false, {section}, {});
  return edited(rewriter.insertSection(section, sizes, "fsdp_config"),
                {section},
                {0, "", "",
                 section + ": dp_replicate " + std::to_string(replicate) +
                     ", dp_shard " + std::to_string(shard),
                 why});
}
