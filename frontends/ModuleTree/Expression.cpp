//===- Expression.cpp - Arithmetic in model descriptions ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/Expression.h"

#include <cctype>
#include <charconv>
#include <cmath>

namespace accel::moduletree {
namespace {

struct Operator {
  std::string_view text;
  int binding;
};
// Longer spellings first.
constexpr Operator operators[] = {
    {"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<=", 4}, {">=", 4}, {"<", 4},
    {">", 4},  {"+", 5},  {"-", 5},  {"*", 6},  {"/", 6},  {"%", 6},
};

class Evaluator {
public:
  Evaluator(std::string_view text, const Lookup &lookup, std::string &error)
      : rest(text), lookup(lookup), error(error) {}

  std::optional<double> run() {
    double value = conditional();
    skipBlanks();
    if (error.empty() && !rest.empty())
      error = "unexpected '" + std::string(rest) + "'";
    return error.empty() ? std::optional(value) : std::nullopt;
  }

private:
  std::string_view rest;
  const Lookup &lookup;
  std::string &error;
  int depth = 0;

  void skipBlanks() {
    while (!rest.empty() && rest.front() == ' ')
      rest.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skipBlanks();
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  }
  double fail(std::string message) {
    if (error.empty())
      error = std::move(message);
    rest = {};
    return 0;
  }

  double conditional() {
    double value = binary(1);
    if (!take("?"))
      return value;
    double yes = conditional();
    if (!take(":"))
      return fail("expected ':'");
    double no = conditional();
    return value != 0 ? yes : no;
  }

  double binary(int least) {
    double left = primary();
    while (error.empty()) {
      skipBlanks();
      const Operator *found = nullptr;
      for (const Operator &op : operators)
        if (rest.starts_with(op.text)) {
          found = &op;
          break;
        }
      if (!found || found->binding < least)
        return left;
      rest.remove_prefix(found->text.size());
      double right = binary(found->binding + 1);
      left = apply(found->text, left, right);
    }
    return left;
  }

  double apply(std::string_view op, double a, double b) {
    if (op == "||")
      return a != 0 || b != 0;
    if (op == "&&")
      return a != 0 && b != 0;
    if (op == "==")
      return a == b;
    if (op == "!=")
      return a != b;
    if (op == "<=")
      return a <= b;
    if (op == ">=")
      return a >= b;
    if (op == "<")
      return a < b;
    if (op == ">")
      return a > b;
    if (op == "+")
      return a + b;
    if (op == "-")
      return a - b;
    if (op == "*")
      return a * b;
    if (b == 0)
      return fail("division by zero");
    return op == "/" ? std::floor(a / b) : a - b * std::floor(a / b);
  }

  double primary() {
    if (++depth > 64)
      return fail("too deep");
    double value = term();
    --depth;
    return value;
  }

  double term() {
    if (take("(")) {
      double value = conditional();
      return take(")") ? value : fail("expected ')'");
    }
    if (take("!"))
      return primary() == 0;
    if (take("-"))
      return -primary();
    skipBlanks();
    size_t end = 0;
    auto isWord = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
             c == '.';
    };
    while (end < rest.size() && isWord(rest[end]))
      ++end;
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    if (word.empty())
      return fail("expected a value");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      double value = 0;
      auto [stop, bad] =
          std::from_chars(word.data(), word.data() + word.size(), value);
      return bad == std::errc() && stop == word.data() + word.size()
                 ? value
                 : fail("bad number '" + std::string(word) + "'");
    }
    std::optional<double> value = lookup(word);
    return value ? *value : fail("unknown name '" + std::string(word) + "'");
  }
};

} // namespace

std::optional<double> evaluate(std::string_view text, const Lookup &lookup,
                               std::string &error) {
  error.clear();
  return Evaluator(text, lookup, error).run();
}

} // namespace accel::moduletree
