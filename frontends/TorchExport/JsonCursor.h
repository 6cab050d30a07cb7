//===- JsonCursor.h - A JSON value and how it was reached -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_JSONCURSOR_H
#define ACCEL_FRONTENDS_TORCHEXPORT_JSONCURSOR_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace accel::torchexport {

/// What is wrong with a file, and where: thrown inside the reader, reported at
/// its edge.
struct FormatError {
  std::string place; // "models/model.json: graph_module.graph.nodes[3]"
  std::string message, hint;
  bool unsupported = false;
};

/// A value together with its path, which is spelled only when it is needed.
/// Cursors live on the stack, each parent longer than its children.
class JsonCursor {
public:
  using Json = nlohmann::json;
  JsonCursor(const Json &value, const char *entry) : json(&value), key(entry) {}

  /// The member `name`; throws where there is none.
  JsonCursor operator[](const char *name) const {
    const Json *found = find(name);
    if (!found)
      fail(std::string("lacks '") + name + "'");
    return JsonCursor(*found, name, this);
  }
  JsonCursor at(size_t index) const {
    return JsonCursor((*json)[index], nullptr, this, index);
  }
  /// The value itself, as the member `name` of this one.
  JsonCursor member(const std::string &name, const Json &value) const {
    return JsonCursor(value, name.c_str(), this);
  }
  bool has(const char *name) const {
    const Json *found = find(name);
    return found && !found->is_null();
  }
  const Json &value() const { return *json; }
  bool isNull() const { return json->is_null(); }

  size_t size() const { // of an array
    if (!json->is_array())
      expected("a list");
    return json->size();
  }
  const Json::object_t &object() const {
    if (!json->is_object())
      expected("an object");
    return json->get_ref<const Json::object_t &>();
  }
  const std::string &string() const {
    if (!json->is_string())
      expected("a string");
    return json->get_ref<const std::string &>();
  }
  int64_t integer() const {
    if (!json->is_number_integer() ||
        (json->is_number_unsigned() &&
         json->get<uint64_t>() > uint64_t(INT64_MAX)))
      expected("an integer of 64 bits");
    return json->get<int64_t>();
  }
  bool boolean() const {
    if (!json->is_boolean())
      expected("true or false");
    return json->get<bool>();
  }
  /// Also "Infinity", "-Infinity" and "NaN", which torch writes as strings.
  double number() const;

  [[noreturn]] void fail(std::string message, std::string hint = "") const {
    throw FormatError{path(), std::move(message), std::move(hint), false};
  }
  [[noreturn]] void unsupported(std::string message,
                                std::string hint = "") const {
    throw FormatError{path(), std::move(message), std::move(hint), true};
  }
  std::string path() const;

private:
  JsonCursor(const Json &value, const char *name, const JsonCursor *parent,
             size_t index = 0)
      : json(&value), key(name), parent(parent), index(index) {}
  const Json *find(const char *name) const {
    if (!json->is_object())
      expected("an object");
    auto found = json->find(name);
    return found == json->end() ? nullptr : &*found;
  }
  [[noreturn]] void expected(const char *what) const;

  const Json *json;
  const char *key;
  const JsonCursor *parent = nullptr;
  size_t index = 0;
};

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_JSONCURSOR_H
