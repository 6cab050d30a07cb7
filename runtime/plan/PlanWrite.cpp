//===- PlanWrite.cpp - Writing plan.json ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The text is written as it goes, without a document in memory: a 405B plan is
// 2 MB. What is in it is listed in Fields/; how it is laid out, one parameter,
// unit, instruction or step a line, is said there and done here.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Fields/Plan.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Sha256.h"

namespace accel::plan {

namespace {

/// Writes the fields of one object.
class ObjectWriter {
public:
  static constexpr bool reads = false;

  explicit ObjectWriter(PlanText &out) : out(out) { out.raw("{"); }
  void close() {
    if (ownLines)
      newLine(lineBefore - 2);
    out.raw("}");
  }

  const Plan &plan() const { return out.plan; }
  void about(const char *, const char *) {}
  template <typename Problem> void check(const char *, Problem) {}

  template <typename T>
  void operator()(const char *key, const T &value, const Rule &rule = {}) {
    start(key, rule);
    put(value, rule);
  }
  template <typename T>
  void optional(const char *key, const T &value, const Rule &rule = {}) {
    if (!isEmpty(value))
      (*this)(key, value, rule);
  }
  template <typename T, typename D>
  void optional(const char *key, const T &value, const D &standard,
                const Rule &rule = {}) {
    if (rule.stated || !isStandard(value, standard))
      (*this)(key, value, rule);
  }
  template <typename List>
  void group(const char *key, const Rule &rule, List list) {
    start(key, rule);
    ObjectWriter object(out);
    list(object);
    object.close();
  }
  template <typename List>
  void nullable(const char *key, const Rule &rule, bool has, List list) {
    if (has)
      return group(key, rule, list);
    start(key, rule);
    out.raw("null");
  }
  /// The hash of all else gets its line in the end.
  void version(const char *format, const char *) {
    (*this)(format, int64_t(Plan::formatVersion), {.line = 0});
    hashAt = out.text.size() + 2; // after ",\n"
  }
  size_t hashAt = 0;

private:
  void newLine(int indent) {
    out.raw("\n");
    out.text.append(std::max(indent, 0), ' ');
  }
  /// What stands before a value.
  void start(const char *key, const Rule &rule) {
    const bool ownLine = rule.line >= 0;
    if (ownLine || lineBefore >= 0) {
      ownLines |= first;
      out.raw(first ? "" : ",");
      newLine(ownLine ? rule.line : lineBefore);
    } else {
      out.raw(first ? "" : rule.spaced ? ", " : ",");
    }
    first = false;
    lineBefore = ownLine ? rule.line : -1;
    out.raw("\"");
    out.raw(key);
    out.raw(ownLine || rule.spaced ? "\": " : "\":");
  }

  void put(bool value, const Rule &) { out.raw(value ? "true" : "false"); }
  void put(int value, const Rule &) { out.integer(value); }
  void put(int64_t value, const Rule &) { out.integer(value); }
  void put(double value, const Rule &) { out.real(value); }
  void put(const std::string &value, const Rule &) { out.string(value); }
  template <typename T> void put(const T &value, const Rule &rule) {
    if constexpr (WrittenForm<T>) {
      writeForm(out, value);
    } else if constexpr (std::is_enum_v<T>) {
      out.string(toString(value));
    } else {
      ObjectWriter object(out);
      fields(object, value);
      object.close();
    }
  }
  template <typename T>
    requires(!WrittenForm<std::vector<T>>)
  void put(const std::vector<T> &list, const Rule &rule) {
    const auto each = [&](const T &item) { put(item, Rule()); };
    if (rule.rows)
      out.lines(list, rule.line + 2, each);
    else
      out.list(list, each);
  }

  PlanText &out;
  bool first = true, ownLines = false;
  int lineBefore = -1; // indentation of the field before, if it had a line
};

} // namespace

std::string toJson(const Plan &plan) {
  PlanText out(plan);
  ObjectWriter object(out);
  fields(object, plan);
  object.close();
  out.raw("\n");

  Sha256 hash;
  hash.update(out.text);
  out.text.insert(object.hashAt,
                  "\"hash\": \"sha256:" + hash.hexDigest() + "\",\n");
  return std::move(out.text);
}

} // namespace accel::plan
