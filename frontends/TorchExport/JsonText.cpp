//===- JsonText.cpp - JSON of an archive ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/JsonText.h"

#include "frontends/TorchExport/JsonCursor.h"

namespace accel::torchexport {

namespace {

using Json = nlohmann::json;

/// A model of 405 billion parameters has half a million values.
constexpr size_t maxValues = 10'000'000;
constexpr size_t maxDepth = 100;

/// nlohmann's own parser with a filter looks through all members of an object
/// whenever a member of it ends: quadratic in tensor_values.
class Builder : public nlohmann::json_sax<Json> {
public:
  Builder(const std::string &entry, const std::set<std::string> &without)
      : entry(entry), without(without) {}

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
      skipNext = without.count(x) != 0;
      name = std::move(x);
    }
    return true;
  }
  bool parse_error(std::size_t byte, const std::string &,
                   const nlohmann::detail::exception &) override {
    fail("is no valid JSON at byte " + std::to_string(byte));
  }

  Json root;

private:
  [[noreturn]] void fail(std::string message) const {
    throw FormatError{entry + ":", std::move(message), "", false};
  }

  Json *add(Json &&x) {
    if (++values > maxValues)
      fail("has too many values");
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
    if (parents.size() + skipped >= maxDepth)
      fail("nests too deep to be of torch");
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

  const std::string &entry;
  const std::set<std::string> &without;
  std::vector<Json *> parents; // open objects and lists, outermost first
  std::string name;            // of the next member
  size_t values = 0;
  size_t skipped = 0; // open ones inside of what is left out
  bool skipNext = false;
};

} // namespace

Json parseJson(const std::string &text, const std::string &entry,
               const std::set<std::string> &without) {
  Builder builder(entry, without);
  Json::sax_parse(text, &builder);
  return std::move(builder.root);
}

} // namespace accel::torchexport
