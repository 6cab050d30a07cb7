//===- JsonParse.cpp - JSON text within limits ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/JsonParse.h"

#include <algorithm>

namespace accel::plan {

namespace {

using Json = nlohmann::json;
using Kind = JsonSyntaxError::Kind;

/// Behind the bracket that first opens more than `limit` levels, outside of
/// strings.
size_t behindDeepest(std::string_view text, size_t limit) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
    } else if (text[i] == '[' || text[i] == '{') {
      if (++depth > limit)
        return i + 1;
    } else if (text[i] == ']' || text[i] == '}') {
      --depth;
    }
  }
  return text.size();
}

/// Makes the document. nlohmann's own parser knows no limits, and with a filter
/// looks through all members of an object whenever a member of it ends.
class Builder : public nlohmann::json_sax<Json> {
public:
  Builder(std::string_view text, const JsonLimits &limits)
      : text(text), limits(limits) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool x) override { return value(x); }
  bool number_integer(number_integer_t x) override { return value(x); }
  bool number_unsigned(number_unsigned_t x) override { return value(x); }
  bool number_float(number_float_t x, const string_t &) override {
    return value(x);
  }
  bool string(string_t &x) override { return value(std::move(x)); }
  bool binary(binary_t &) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &x) override {
    if (!skipped) {
      skipNext = limits.without.count(x) != 0;
      name = std::move(x);
    }
    return true;
  }
  bool parse_error(std::size_t byte, const std::string &,
                   const nlohmann::detail::exception &problem) override {
    if (problem.id == 406)
      throw JsonSyntaxError{Kind::Number, byte, "number out of range"};
    if (byte > text.size())
      throw JsonSyntaxError{Kind::EndsEarly, text.size(), "it ends too early"};
    // Its sentence is behind the place and what was being read.
    std::string phrase = problem.what();
    if (size_t dash = phrase.find(" - "); dash != std::string::npos)
      phrase = phrase.substr(dash + 3);
    throw JsonSyntaxError{Kind::Invalid, byte, phrase};
  }

  Json root;

private:
  Json *add(Json &&x) {
    if (++values > limits.values)
      throw JsonSyntaxError{Kind::TooMany, 0, "it has too many values"};
    if (parents.empty()) {
      root = std::move(x);
      return &root;
    }
    Json &parent = *parents.back();
    if (parent.is_array()) {
      parent.push_back(std::move(x));
      return &parent.back();
    }
    Json &member = parent[name];
    member = std::move(x);
    return &member;
  }
  bool value(Json &&x) {
    if (!skipped && !skipNext)
      add(std::move(x));
    skipNext = false;
    return true;
  }
  bool open(Json &&x) {
    if (parents.size() + skipped >= limits.depth)
      throw JsonSyntaxError{Kind::TooDeep, behindDeepest(text, limits.depth),
                            "brackets nest deeper than " +
                                std::to_string(limits.depth) + " levels"};
    if (skipped || skipNext)
      ++skipped;
    else
      parents.push_back(add(std::move(x)));
    skipNext = false;
    return true;
  }
  bool close() {
    if (skipped)
      --skipped;
    else
      parents.pop_back();
    return true;
  }

  std::string_view text;
  const JsonLimits &limits;
  std::vector<Json *> parents; // open objects and lists, outermost first
  std::string name;            // of the next member
  size_t values = 0;
  size_t skipped = 0; // open ones inside of what is left out
  bool skipNext = false;
};

} // namespace

std::string JsonSyntaxError::position(std::string_view text) const {
  const size_t at =
      kind == Kind::EndsEarly ? text.size() : std::max<size_t>(byte, 1) - 1;
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const size_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') + 1; // 0 if there is none
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - start + 1);
}

Json parseJson(std::string_view text, const JsonLimits &limits) {
  Builder builder(text, limits);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.root);
}

} // namespace accel::plan
