//===- PlanSchema.cpp - The JSON Schema of plan.json ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Fields/Plan.h"
#include "runtime/plan/PlanJson.h"

namespace accel::plan {

namespace {

/// Describes one object; structs become definitions.
class ObjectSchema {
public:
  static constexpr bool reads = false;

  ObjectSchema(const Plan &empty, Schema &definitions)
      : empty(empty), definitions(definitions) {}

  const Plan &plan() const { return empty; }
  template <typename Problem> void check(const char *, Problem) {}
  void about(const char *name, const char *doc) {
    this->name = name;
    this->doc = doc;
  }
  void version(const char *format, const char *hash) {
    properties[format] = {{"const", Plan::formatVersion},
                          {"description", "Version of this format"}};
    properties[hash] = {
        {"type", "string"},
        {"pattern", "^sha256:[0-9a-f]{64}$"},
        {"description", "SHA-256 of the file without this line"}};
    required.insert(required.end(), {format, hash});
  }

  template <typename T>
  void operator()(const char *key, const T &value, const Rule &rule = {}) {
    add(key, of(value, rule), rule, true);
  }
  template <typename T>
  void optional(const char *key, const T &value, const Rule &rule = {}) {
    add(key, of(value, rule), rule, false);
  }
  template <typename T, typename D>
  void optional(const char *key, const T &value, const D &standard,
                const Rule &rule = {}) {
    Schema schema = of(value, rule);
    if constexpr (std::is_same_v<D, bool>)
      if (!rule.stated)
        schema["default"] = standard;
    add(key, std::move(schema), rule, rule.stated);
  }
  template <typename List>
  void group(const char *key, const Rule &rule, List list) {
    ObjectSchema object(empty, definitions);
    list(object);
    add(key, object.close(), rule, true);
  }
  template <typename List>
  void nullable(const char *key, const Rule &rule, bool, List list) {
    ObjectSchema object(empty, definitions);
    list(object);
    add(key, {{"oneOf", Schema::array({{{"type", "null"}}, object.close()})}},
        rule, true);
  }

  Schema close() {
    Schema schema = {{"type", "object"}};
    if (doc)
      schema["description"] = doc;
    schema["properties"] = std::move(properties);
    schema["required"] = std::move(required);
    schema["additionalProperties"] = false;
    return schema;
  }
  const char *name = nullptr;

private:
  void add(const char *key, Schema schema, const Rule &rule, bool always) {
    if (rule.doc)
      schema["description"] = rule.doc;
    properties[key] = std::move(schema);
    if (always)
      required.push_back(key);
  }

  Schema of(bool, const Rule &) { return {{"type", "boolean"}}; }
  Schema of(int, const Rule &rule) {
    return integer(rule.low, std::min(rule.high, maxInt));
  }
  Schema of(int64_t, const Rule &rule) { return integer(rule.low, rule.high); }
  Schema integer(int64_t low, int64_t high) {
    Schema schema = {{"type", "integer"}, {"minimum", low}};
    if (high != std::numeric_limits<int64_t>::max())
      schema["maximum"] = high;
    return schema;
  }
  Schema of(double, const Rule &rule) {
    Schema schema = {{"type", "number"}};
    if (rule.least == 0)
      schema["minimum"] = 0;
    if (rule.below < std::numeric_limits<double>::infinity())
      schema["exclusiveMaximum"] = rule.below;
    return schema;
  }
  Schema of(const std::string &, const Rule &rule) {
    if (rule.names.empty())
      return {{"type", "string"}};
    return {{"enum",
             std::vector<std::string>(rule.names.begin(), rule.names.end())}};
  }
  template <typename T> Schema of(const T &value, const Rule &rule) {
    if constexpr (WrittenForm<T>) {
      return schemaOf(value, rule);
    } else if constexpr (std::is_same_v<T, DType>) {
      return dtypeSchema();
    } else if constexpr (std::is_enum_v<T>) {
      return {{"enum", enumNames<T>()}};
    } else {
      ObjectSchema object(empty, definitions);
      fields(object, value);
      const std::string definition = object.name;
      definitions[definition] = object.close();
      return {{"$ref", "#/$defs/" + definition}};
    }
  }
  /// One for each name: which hyperparameters there are depends on it.
  Schema of(const Optimizer &, const Rule &) {
    Schema variants = Schema::array();
    for (const OptimizerDescription &description : optimizers()) {
      Optimizer optimizer;
      optimizer.name = description.name;
      ObjectSchema object(empty, definitions);
      fields(object, optimizer);
      object.properties["name"] = {{"const", description.name}};
      variants.push_back(object.close());
    }
    definitions["optimizer"] = {{"oneOf", variants}};
    return {{"$ref", "#/$defs/optimizer"}};
  }
  template <typename T>
    requires(!WrittenForm<std::vector<T>>)
  Schema of(const std::vector<T> &, const Rule &rule) {
    Schema schema = {{"type", "array"}, {"items", of(T(), rule)}};
    if (rule.count) {
      schema["minItems"] = rule.count;
      schema["maxItems"] = rule.count;
    }
    return schema;
  }

  const Plan &empty;
  Schema &definitions;
  const char *doc = nullptr;
  Schema properties = Schema::object(), required = Schema::array();
};

std::string oneLine(const Schema &value) {
  if (value.is_primitive())
    return value.dump();
  std::string text;
  for (const auto &[key, item] : value.items())
    text += (text.empty() ? "" : ", ") +
            (value.is_object() ? Schema(key).dump() + ": " : std::string()) +
            oneLine(item);
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

/// On one line where it fits into 100 columns behind `before` characters.
std::string printed(const Schema &value, size_t indent, size_t before) {
  std::string line = oneLine(value);
  if (before + line.size() <= 100 || value.is_primitive())
    return line;
  const std::string margin(indent + 2, ' ');
  std::string text;
  for (const auto &[key, item] : value.items()) {
    std::string start =
        margin + (value.is_object() ? Schema(key).dump() + ": " : "");
    text += (text.empty() ? "\n" : ",\n") + start;
    text += printed(item, indent + 2, start.size() + 1);
  }
  text += "\n" + std::string(indent, ' ');
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

} // namespace

std::string planSchema() {
  const Plan empty;
  Schema definitions = {{"dtype", {{"enum", enumNames<DType>()}}}};
  ObjectSchema object(empty, definitions);
  fields(object, empty);
  Schema schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", ACCEL_HOMEPAGE "/raw/main/runtime/plan/plan.schema.json"},
      {"title", "accel-opt plan"}};
  schema.update(object.close());
  schema["$defs"] = std::move(definitions);
  return printed(schema, 0, 0) + "\n";
}

} // namespace accel::plan
