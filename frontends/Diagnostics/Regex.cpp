//===- Regex.cpp - Regular expressions ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <atomic>

using namespace accel;

namespace {

/// Steps of one match: tens of milliseconds. Names of parameters take
/// some hundreds.
constexpr uint32_t mostSteps = 500'000;
constexpr uint32_t mostHeapKib = 32 * 1024;

template <auto release> struct Release {
  template <typename T> void operator()(T *pointer) const { release(pointer); }
};
using Code = std::unique_ptr<pcre2_code, Release<pcre2_code_free>>;
using Context =
    std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>>;
using Match = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>>;

} // namespace

struct Regex::Compiled {
  /// The match, or null where there is none.
  Match match(const std::string &text, uint32_t options) const {
    if (gaveUp)
      return nullptr;
    Match found(pcre2_match_data_create_from_pattern(code.get(), nullptr));
    const int result =
        pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                    text.size(), 0, options, found.get(), context.get());
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
      gaveUp = true;
    return result < 0 ? nullptr : std::move(found);
  }

  Code code;
  Context context;
  mutable std::atomic<bool> gaveUp = false;
};

std::optional<Regex> Regex::compile(const std::string &expression,
                                    std::string *error) {
  int problem = 0;
  PCRE2_SIZE at = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()),
                          expression.size(), PCRE2_NEVER_BACKSLASH_C, &problem,
                          &at, nullptr));
  if (!code) {
    if (error) {
      char text[256] = "";
      pcre2_get_error_message(problem, reinterpret_cast<PCRE2_UCHAR *>(text),
                              sizeof text);
      *error = std::string(text) + " (character " + std::to_string(at) + ")";
    }
    return std::nullopt;
  }
  auto compiled = std::make_shared<Compiled>();
  compiled->code = std::move(code);
  compiled->context.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(compiled->context.get(), mostSteps);
  pcre2_set_heap_limit(compiled->context.get(), mostHeapKib);
  Regex result;
  result.compiled = std::move(compiled);
  return result;
}

bool Regex::matches(const std::string &text) const {
  return compiled &&
         compiled->match(text, PCRE2_ANCHORED | PCRE2_ENDANCHORED) != nullptr;
}

bool Regex::isIn(const std::string &text) const {
  return compiled && compiled->match(text, 0) != nullptr;
}

std::optional<std::string> Regex::lastGroupIn(const std::string &text) const {
  if (!compiled)
    return std::nullopt;
  const Match match = compiled->match(text, 0);
  if (!match)
    return std::nullopt;
  const uint32_t last = pcre2_get_ovector_count(match.get()) - 1;
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match.get());
  if (ends[2 * last] == PCRE2_UNSET)
    return "";
  return text.substr(ends[2 * last], ends[2 * last + 1] - ends[2 * last]);
}

bool Regex::gaveUp() const { return compiled && compiled->gaveUp; }
