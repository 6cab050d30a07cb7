//===- PlanRead.cpp - Reading plan.json -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The counterpart of PlanWrite.cpp. Nothing is guessed: unknown keys, kinds and
// versions, numbers out of range and a hash that does not fit are refused, and
// what is read is verified.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Fields/Plan.h"
#include "runtime/plan/JsonParse.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Sha256.h"
#include "runtime/plan/Verify.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace accel::plan {

using nlohmann::json;

namespace {

const std::string &nameOf(const Axis &axis) { return axis.name; }
const std::string &nameOf(const Unit &unit) { return unit.name; }
const std::string &nameOf(const Parameter &parameter) { return parameter.fqn; }
const std::string &nameOf(const Function &function) { return function.name; }
const std::string &nameOf(const Program &program) { return program.name; }
template <typename T>
concept HasName = requires(const T &item) { nameOf(item); };

/// Reads the fields of one object; throws JsonError.
class ObjectReader {
public:
  static constexpr bool reads = true;

  ObjectReader(const JsonNode &node, PlanNames &names)
      : object(node), names(names) {}

  /// Reads what waits for other fields, and refuses keys that nobody read.
  void close() {
    std::stable_sort(
        later.begin(), later.end(),
        [](const auto &a, const auto &b) { return a.first < b.first; });
    for (auto &[turn, read] : later)
      read();
    object.close();
  }

  const Plan &plan() const { return names.plan; }
  void about(const char *, const char *) {}
  void version(const char *format, const char *hash) {
    object[format];
    object[hash];
  }
  template <typename Problem> void check(const char *key, Problem problem) {
    const std::string text = problem();
    if (text.empty())
      return;
    if (*key)
      object[key].fail(text);
    object.node.fail(text);
  }

  template <typename T>
  void operator()(const char *key, T &&value, const Rule &rule = {}) {
    if (rule.turn == 0) {
      get(object[key], value, rule);
      return;
    }
    // A form is kept until then, a field only named.
    later.emplace_back(
        rule.turn, [this, key, rule,
                    kept = std::tuple<T>(std::forward<T>(value))]() mutable {
          get(object[key], std::get<0>(kept), rule);
        });
  }
  template <typename T>
  void optional(const char *key, T &&value, const Rule &rule = {}) {
    auto read = [this, key, rule](auto &into) {
      if (!object.optional(key, [&](const JsonNode &n) { get(n, into, rule); }))
        clear(into);
    };
    if (rule.turn == 0)
      return read(value);
    later.emplace_back(
        rule.turn,
        [read, kept = std::tuple<T>(std::forward<T>(value))]() mutable {
          read(std::get<0>(kept));
        });
  }
  template <typename T, typename D>
  void optional(const char *key, T &&value, const D &standard,
                const Rule &rule = {}) {
    if (rule.stated)
      get(object[key], value, rule);
    else if (!object.optional(key,
                              [&](const JsonNode &n) { get(n, value, rule); }))
      setStandard(value, standard);
  }
  template <typename List>
  void group(const char *key, const Rule &, List list) {
    const JsonNode node = object[key];
    ObjectReader inner(node, names);
    list(inner);
    inner.close();
  }
  template <typename List>
  void nullable(const char *key, const Rule &rule, bool &has, List list) {
    has = !object[key].value.is_null();
    if (has)
      group(key, rule, list);
  }

private:
  void get(const JsonNode &node, bool &value, const Rule &) {
    value = node.boolean();
  }
  void get(const JsonNode &node, int &value, const Rule &rule) {
    value =
        static_cast<int>(node.integer(rule.low, std::min(rule.high, maxInt)));
  }
  void get(const JsonNode &node, int64_t &value, const Rule &rule) {
    value = node.integer(rule.low, rule.high);
  }
  void get(const JsonNode &node, double &value, const Rule &rule) {
    value = node.real(rule.least);
    if (value >= rule.below)
      node.fail(node.shown() + " is not less than " + json(rule.below).dump());
  }
  void get(const JsonNode &node, std::string &value, const Rule &rule) {
    value = node.string();
    if (!rule.names.empty())
      expectName(node, rule.what, rule.names);
  }
  template <typename T>
  void get(const JsonNode &node, T &value, const Rule &rule) {
    if constexpr (ReadForm<T>) {
      readForm(names, node, value, rule);
    } else if constexpr (std::is_enum_v<T>) {
      value = readEnum<T>(node);
    } else {
      ObjectReader inner(node, names);
      fields(inner, value);
      inner.close();
    }
  }
  template <typename T>
    requires(!ReadForm<std::vector<T>>)
  void get(const JsonNode &node, std::vector<T> &list, const Rule &rule) {
    list.clear();
    node.items([&](const JsonNode &item) {
      T &read = list.emplace_back();
      get(item, read, rule);
      if constexpr (HasName<T>)
        if (rule.items != Named::Nothing &&
            !names.add(rule.items, nameOf(read), list.size() - 1))
          item.fail("the name '" + nameOf(read) + "' is used twice");
    });
    if (rule.count && list.size() != rule.count)
      node.fail("expected " + std::to_string(rule.count) + " numbers");
  }

  JsonFields object;
  PlanNames &names;
  std::vector<std::pair<int, std::function<void()>>> later;
};

/// A unit's list of parameters is theirs, by offset.
void listParameters(Plan &plan) {
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    plan.units[plan.parameters[i].unit].parameters.push_back(i);
  for (Unit &unit : plan.units)
    std::stable_sort(
        unit.parameters.begin(), unit.parameters.end(), [&](int a, int b) {
          return plan.parameters[a].offset < plan.parameters[b].offset;
        });
  for (Unit &unit : plan.units)
    if (unit.copyOf >= 0 && unit.parameters.empty())
      unit.parameters = plan.units[unit.copyOf].parameters;
}

void checkVersion(const json &document) {
  JsonNode root(document);
  JsonFields fields(root);
  JsonNode format = fields["format"];
  int64_t version = format.integer(0, INT64_MAX);
  if (version != Plan::formatVersion)
    format.fail("version " + std::to_string(version) +
                " is not readable here (this reads version " +
                std::to_string(Plan::formatVersion) +
                "); plan again with the accel-opt that comes with this "
                "accel-run");
}

void checkHash(const std::string &text) {
  static const std::string start = "\n\"hash\": \"sha256:";
  size_t at = text.find(start);
  size_t end = at == std::string::npos ? at : text.find('\n', at + 1);
  if (end == std::string::npos)
    throw JsonError{"hash: the line with the hash is missing; the file was "
                    "edited or reformatted, plan again with accel-opt"};
  Sha256 hash;
  hash.update(std::string_view(text).substr(0, at));
  hash.update(std::string_view(text).substr(end));
  std::string_view written =
      std::string_view(text).substr(at + start.size(), end - at - start.size());
  if (written != hash.hexDigest() + "\",")
    throw JsonError{"hash: the plan does not fit its hash: it was edited by "
                    "hand or damaged; change the configuration and plan again "
                    "with accel-opt"};
}

} // namespace

bool fromJson(const std::string &text, Plan &plan, std::string &error) {
  try {
    const json document = parseJson(text);
    if (!document.is_object())
      throw JsonError{"this is not a plan: expected a JSON object"};
    checkVersion(document);
    checkHash(text);
    Plan read;
    PlanNames names(read);
    const JsonNode root(document);
    ObjectReader object(root, names);
    fields(object, read);
    object.close();
    listParameters(read);
    std::vector<std::string> problems = verify(read);
    if (!problems.empty()) {
      error = problems[0];
      if (problems.size() > 1)
        error += " (and " + std::to_string(problems.size() - 1) +
                 (problems.size() == 2 ? " more problem)" : " more problems)");
      return false;
    }
    plan = std::move(read);
    return true;
  } catch (const JsonError &e) {
    error = e.message;
  } catch (const JsonSyntaxError &e) {
    using Kind = JsonSyntaxError::Kind;
    const std::string at = e.position(text);
    if (text.empty())
      error = "the file is empty";
    else if (e.kind == Kind::EndsEarly)
      error = "not valid JSON: it ends too early, at " + at;
    else if (e.kind == Kind::TooDeep)
      error = "this is not a plan: " + e.message + " at " + at;
    else if (e.kind == Kind::TooMany)
      error = "this is not a plan: " + e.message;
    else
      error = "not valid JSON at " + at + ": " + e.message;
  }
  return false;
}

} // namespace accel::plan
