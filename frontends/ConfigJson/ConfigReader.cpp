//===- ConfigReader.cpp - Typed access to a config.json -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ConfigJson/ConfigReader.h"

#include <cmath>

using namespace accel;
using namespace accel::huggingface;

ConfigReader::ConfigReader(const std::string &text, std::string path,
                           DiagnosticEngine &diagnostics)
    : path(std::move(path)), diagnostics(diagnostics) {
  JsonError problem;
  document = JsonDocument::parse(text, problem);
  if (document)
    return;
  document.emplace();
  anyError = true;
  reportAt(problem.position, Severity::Error, "invalid-json", "",
           problem.message);
}

void ConfigReader::reportAt(TextPosition position, Severity severity,
                            const std::string &code, const std::string &key,
                            const std::string &message,
                            const std::string &hint) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.code = code;
  diagnostic.file = path;
  diagnostic.line = position.line;
  diagnostic.column = position.column;
  diagnostic.key = pathOf(key);
  diagnostic.message = message;
  diagnostic.hint = hint;
  diagnostics.report(std::move(diagnostic));
}

const nlohmann::json *ConfigReader::lookup(const std::string &name) const {
  const std::string key = pathOf(name);
  const nlohmann::json *at = &document->root();
  for (size_t begin = 0; begin <= key.size();) {
    size_t end = std::min(key.find('.', begin), key.size());
    if (!at->is_object())
      return nullptr;
    auto it = at->find(key.substr(begin, end - begin));
    if (it == at->end())
      return nullptr;
    at = &*it;
    begin = end + 1;
  }
  return at;
}

const nlohmann::json *ConfigReader::find(const std::string &key) const {
  const nlohmann::json *value = lookup(key);
  return value && !value->is_null() ? value : nullptr;
}

bool ConfigReader::isNull(const std::string &key) const {
  const nlohmann::json *value = lookup(key);
  return value && value->is_null();
}

/// The value as a person wrote it, short.
static std::string shown(const nlohmann::json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "a list";
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return std::isnan(value.get<double>()) ? "NaN" : "Infinity";
  return printable(
      value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

int64_t ConfigReader::size(const std::string &key, int64_t otherwise,
                           int64_t limit, bool nullable) {
  const nlohmann::json *value = lookup(key);
  if (!value || (nullable && value->is_null()))
    return otherwise;
  if (value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX)) {
    int64_t number = value->get<int64_t>();
    if (number >= 1 && number <= limit)
      return number;
  }
  error(key, "'" + key + "' must be an integer from 1 to " +
                 std::to_string(limit) + ", not " + shown(*value));
  return otherwise;
}

std::optional<int64_t> ConfigReader::integer(const std::string &key) {
  const nlohmann::json *value = lookup(key);
  if (value && value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX))
    return value->get<int64_t>();
  error(key, "'" + key + "' must be an integer" +
                 (value ? ", not " + shown(*value) : ""));
  return std::nullopt;
}

double ConfigReader::number(const std::string &key, double otherwise,
                            bool nullable) {
  const nlohmann::json *value = lookup(key);
  if (!value || (nullable && value->is_null()))
    return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>()))
    return value->get<double>();
  error(key, "'" + key + "' must be a number, not " + shown(*value));
  return otherwise;
}

double ConfigReader::probability(const std::string &key, double otherwise,
                                 bool nullable) {
  const double value = number(key, otherwise, nullable);
  if (value >= 0 && value <= 1)
    return value;
  error(key, "'" + key + "' is a probability, so between 0 and 1");
  return otherwise;
}

bool ConfigReader::flag(const std::string &key, bool otherwise) {
  const nlohmann::json *value = lookup(key);
  if (!value)
    return otherwise;
  if (value->is_boolean())
    return value->get<bool>();
  error(key, "'" + key + "' must be true or false, not " + shown(*value));
  return otherwise;
}

std::optional<std::string> ConfigReader::text(const std::string &key) {
  const nlohmann::json *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->is_string())
    return value->get<std::string>();
  error(key, "'" + key + "' must be a string, not " + shown(*value));
  return std::nullopt;
}

std::optional<std::string>
ConfigReader::architecture(const std::string &otherwise) {
  const nlohmann::json *list = find("architectures");
  if (!list)
    return otherwise;
  if (list->is_array() && !list->empty() && list->front().is_string())
    return list->front().get<std::string>();
  error("architectures", "'architectures' must be a list of class names");
  return std::nullopt;
}

std::optional<plan::DType> ConfigReader::dtype() {
  const char *key = has("dtype") && !isNull("dtype") ? "dtype" : "torch_dtype";
  std::optional<std::string> name = text(key);
  if (!name)
    return std::nullopt;
  std::string plain = name->rfind("torch.", 0) == 0 ? name->substr(6) : *name;
  if (plain == "float32" || plain == "float")
    return plan::DType::F32;
  if (plain == "bfloat16")
    return plan::DType::BF16;
  if (plain == "float16" || plain == "half")
    return plan::DType::F16;
  if (plain != "auto")
    unsupported(key, "dtype '" + printable(*name) +
                         "' is not supported yet; supported are "
                         "float32, bfloat16 and float16");
  return std::nullopt;
}

void ConfigReader::error(const std::string &key, const std::string &message) {
  anyError = true;
  reportAt(document->position(pathOf(key)), Severity::Error,
           "invalid-model-config", key, message);
}

void ConfigReader::unsupported(const std::string &key,
                               const std::string &message,
                               const std::string &hint) {
  anyError = true;
  reportAt(document->position(pathOf(key)), Severity::Error, notSupportedCode,
           key, message, hint);
}

void ConfigReader::warning(const std::string &key, const std::string &code,
                           const std::string &message) {
  reportAt(document->position(pathOf(key)), Severity::Warning, code, key,
           message);
}
