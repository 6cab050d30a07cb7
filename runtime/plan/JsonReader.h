//===- JsonReader.h - Strict reading with places ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A Node is a JSON value that knows where it stands, so that every complaint
// names its place: "functions[2].instructions[7].args: ...". The path is only
// built when there is something to say.
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
  std::string message;
};

class Node {
public:
  Node(const nlohmann::json &value, const Node *parent = nullptr,
       const char *key = nullptr, size_t index = 0)
      : value(value), parent(parent), key(key), index(index) {}

  std::string path() const {
    if (!parent)
      return {};
    std::string above = parent->path();
    if (!key)
      return above + "[" + std::to_string(index) + "]";
    return above.empty() ? key : above + "." + key;
  }
  [[noreturn]] void fail(const std::string &what) const {
    std::string at = path();
    throw JsonError{at.empty() ? what : at + ": " + what};
  }

  int64_t integer(int64_t low, int64_t high) const {
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
  /// Calls `each(Node)` for every item of a list.
  template <typename Each> void items(Each each) const {
    if (!value.is_array())
      fail("expected a list, not " + shown());
    for (size_t i = 0; i < value.size(); ++i)
      each(Node(value[i], this, nullptr, i));
  }
  std::vector<int64_t> integers(int64_t low, int64_t high) const {
    std::vector<int64_t> result;
    items([&](const Node &item) { result.push_back(item.integer(low, high)); });
    return result;
  }
  std::vector<int> indices(int low = 0) const {
    std::vector<int> result;
    items([&](const Node &item) {
      result.push_back(item.integer(low, std::numeric_limits<int>::max()));
    });
    return result;
  }
  std::vector<std::string> strings() const {
    std::vector<std::string> result;
    items([&](const Node &item) { result.push_back(item.string()); });
    return result;
  }
  /// The value for a message.
  std::string shown() const {
    switch (value.type()) {
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "a list";
    default:
      break;
    }
    std::string text =
        value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }

  const nlohmann::json &value;

private:
  const Node *parent;
  const char *key;
  size_t index;
};

/// Reads the keys of one object; `close` refuses those that nobody read.
class Fields {
public:
  explicit Fields(const Node &node) : node(node) {
    if (!node.value.is_object())
      node.fail("expected an object, not " + node.shown());
  }
  /// A key that must be there.
  Node operator[](const char *key) {
    auto found = node.value.find(key);
    if (found == node.value.end())
      node.fail(std::string("'") + key + "' is missing");
    seen.push_back(key);
    return Node(*found, &node, key);
  }
  /// Calls `each(Node)` if the key is there.
  template <typename Each> bool optional(const char *key, Each each) {
    auto found = node.value.find(key);
    if (found == node.value.end())
      return false;
    seen.push_back(key);
    each(Node(*found, &node, key));
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
  const Node &node;

private:
  std::vector<const char *> seen;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JSONREADER_H
