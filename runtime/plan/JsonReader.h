//===- JsonReader.h - Strict reading with places ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A JsonNode is a JSON value that knows where it stands, so that every
// complaint names its place: "functions[2].instructions[7].args: ..." or, of a
// file in an archive, "models/model.json: graph.nodes[3]: ...". The path is
// only built when there is something to say.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_JSONREADER_H
#define ACCEL_RUNTIME_PLAN_JSONREADER_H

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace accel::plan {

/// What is wrong with a document; caught at the edge of the reader.
struct JsonError {
  std::string message; // with the place in front
  std::string hint = {};
  /// It is valid, and this version cannot do it.
  bool unsupported = false;
};

/// Nodes live on the stack, each parent longer than its children.
class JsonNode {
public:
  /// The root of a document; `file` is put in front of places.
  explicit JsonNode(const nlohmann::json &value, const char *file = nullptr)
      : value(value), key(file) {}
  JsonNode(const nlohmann::json &value, const JsonNode *parent,
           const char *key = nullptr, size_t index = 0)
      : value(value), parent(parent), key(key), index(index) {}

  std::string path() const;
  [[noreturn]] void fail(const std::string &what,
                         const std::string &hint = "") const {
    raise(what, hint, false);
  }
  [[noreturn]] void unsupported(const std::string &what,
                                const std::string &hint = "") const {
    raise(what, hint, true);
  }

  /// The member `name`, which must be there.
  JsonNode operator[](const char *name) const {
    const nlohmann::json *found = find(name);
    if (!found)
      fail(std::string("'") + name + "' is missing");
    return JsonNode(*found, this, name);
  }
  /// There is such a member, and it is not null.
  bool has(const char *name) const {
    const nlohmann::json *found = find(name);
    return found && !found->is_null();
  }
  const nlohmann::json::object_t &object() const {
    if (!value.is_object())
      fail("expected an object, not " + shown());
    return value.get_ref<const nlohmann::json::object_t &>();
  }
  /// Calls `each(name, JsonNode)` for every member.
  template <typename Each> void members(Each each) const {
    for (const auto &[name, member] : object())
      each(name, JsonNode(member, this, name.c_str()));
  }
  size_t size() const { // of a list
    if (!value.is_array())
      fail("expected a list, not " + shown());
    return value.size();
  }
  JsonNode at(size_t index) const {
    return JsonNode(value[index], this, nullptr, index);
  }

  int64_t integer(int64_t low = std::numeric_limits<int64_t>::min(),
                  int64_t high = std::numeric_limits<int64_t>::max()) const {
    if (!value.is_number_integer())
      fail("expected an integer, not " + shown());
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() >
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      fail(value.dump() + " is too large");
    int64_t result = value.get<int64_t>();
    if (result < low)
      fail(std::to_string(result) + " is less than " + std::to_string(low));
    if (result > high)
      fail(std::to_string(result) + " is more than " + std::to_string(high));
    return result;
  }
  double real(double low = -std::numeric_limits<double>::max()) const {
    if (!value.is_number())
      fail("expected a number, not " + shown());
    double result = value.get<double>();
    if (!std::isfinite(result))
      fail("expected a finite number");
    if (result < low)
      fail(value.dump() + " is less than " + nlohmann::json(low).dump());
    return result;
  }
  bool boolean() const {
    if (!value.is_boolean())
      fail("expected true or false, not " + shown());
    return value.get<bool>();
  }
  const std::string &string() const {
    if (!value.is_string())
      fail("expected a string, not " + shown());
    return value.get_ref<const std::string &>();
  }
  /// Calls `each(JsonNode)` for every item of a list.
  template <typename Each> void items(Each each) const {
    for (size_t i = 0, n = size(); i < n; ++i)
      each(at(i));
  }
  std::vector<int64_t> integers(int64_t low, int64_t high) const {
    std::vector<int64_t> result;
    items([&](const JsonNode &item) {
      result.push_back(item.integer(low, high));
    });
    return result;
  }
  std::vector<int> indices(int low = 0) const {
    std::vector<int> result;
    items([&](const JsonNode &item) {
      result.push_back(item.integer(low, std::numeric_limits<int>::max()));
    });
    return result;
  }
  std::vector<std::string> strings() const {
    std::vector<std::string> result;
    items([&](const JsonNode &item) { result.push_back(item.string()); });
    return result;
  }
  /// The value for a message.
  std::string shown() const;

  const nlohmann::json &value;

private:
  const nlohmann::json *find(const char *name) const {
    const auto &members = object();
    const auto found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
  }
  [[noreturn]] void raise(const std::string &what, const std::string &hint,
                          bool unsupported) const;

  const JsonNode *parent = nullptr;
  const char *key = nullptr;
  size_t index = 0;
};

/// Reads the keys of one object; `close` refuses those that nobody read.
class JsonFields {
public:
  explicit JsonFields(const JsonNode &node) : node(node) { node.object(); }
  /// A key that must be there.
  JsonNode operator[](const char *key) {
    JsonNode member = node[key];
    seen.push_back(key);
    return member;
  }
  /// Calls `each(JsonNode)` if the key is there.
  template <typename Each> bool optional(const char *key, Each each) {
    auto found = node.value.find(key);
    if (found == node.value.end())
      return false;
    seen.push_back(key);
    each(JsonNode(*found, &node, key));
    return true;
  }
  void close() const {
    if (seen.size() == node.value.size())
      return;
    for (const auto &[key, value] : node.value.items()) {
      bool known = false;
      for (const char *name : seen)
        known |= key == name;
      if (!known)
        node.fail("unknown key '" + key + "'");
    }
  }
  const JsonNode &node;

private:
  std::vector<const char *> seen;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JSONREADER_H
