//===- Symbols.cpp - Values of symbolic sizes -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Symbols.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace accel::torchexport {

namespace {

int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

class Evaluator {
public:
  Evaluator(const std::string &text,
            const std::map<std::string, int64_t> &values)
      : text(text), values(values) {}

  std::optional<int64_t> run() {
    auto result = sum();
    skip();
    return at == text.size() ? result : std::nullopt;
  }

private:
  using Value = std::optional<int64_t>;
  static constexpr int maxDepth = 200;

  void skip() {
    while (at < text.size() &&
           std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool take(std::string_view token) {
    skip();
    if (text.compare(at, token.size(), token) != 0)
      return false;
    at += token.size();
    return true;
  }

  static Value add(Value a, Value b, bool minus) {
    int64_t result = 0;
    if (!a || !b ||
        (minus ? __builtin_sub_overflow(*a, *b, &result)
               : __builtin_add_overflow(*a, *b, &result)))
      return std::nullopt;
    return result;
  }
  static Value multiply(Value a, Value b) {
    int64_t result = 0;
    if (!a || !b || __builtin_mul_overflow(*a, *b, &result))
      return std::nullopt;
    return result;
  }
  static Value divide(Value a, Value b, bool exact) {
    if (!a || !b || *b == 0 || (*b == -1 && *a == INT64_MIN) ||
        (exact && *a % *b != 0))
      return std::nullopt;
    return floorDivide(*a, *b);
  }
  static Value modulo(Value a, Value b) {
    Value quotient = divide(a, b, false);
    return quotient ? add(a, multiply(quotient, b), true) : std::nullopt;
  }

  Value sum() {
    Value result = product();
    while (result) {
      if (take("+"))
        result = add(result, product(), false);
      else if (take("-"))
        result = add(result, product(), true);
      else
        break;
    }
    return result;
  }
  Value product() {
    Value result = power();
    while (result) {
      if (take("//"))
        result = divide(result, power(), false);
      else if (take("/"))
        result = divide(result, power(), true);
      else if (take("%"))
        result = modulo(result, power());
      else if (text.compare(at, 2, "**") != 0 && take("*"))
        result = multiply(result, power());
      else
        break;
    }
    return result;
  }
  Value power() {
    Value base = atom();
    if (!base || !take("**"))
      return base;
    return raise(base, atom());
  }
  Value raise(Value base, Value exponent) {
    if (!exponent || *exponent < 0 || *exponent > 63)
      return std::nullopt;
    Value result = 1;
    for (int64_t i = 0; i < *exponent && result; ++i)
      result = multiply(result, base);
    return result;
  }
  Value atom() {
    if (++depth > maxDepth)
      return std::nullopt;
    Value result = atomInside();
    --depth;
    return result;
  }
  Value atomInside() {
    skip();
    if (take("-"))
      return multiply(-1, power());
    if (take("(")) {
      Value inside = sum();
      return take(")") ? inside : std::nullopt;
    }
    if (at < text.size() &&
        std::isdigit(static_cast<unsigned char>(text[at]))) {
      Value value = 0;
      while (at < text.size() &&
             std::isdigit(static_cast<unsigned char>(text[at])))
        value = add(multiply(value, 10), text[at++] - '0', false);
      return value;
    }
    const size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) ||
            text[at] == '_' || text[at] == '.'))
      ++at;
    std::string name = text.substr(begin, at - begin);
    if (name.empty())
      return std::nullopt;
    if (take("("))
      return call(name);
    auto found = values.find(name);
    return found == values.end() ? std::nullopt : Value(found->second);
  }
  /// 's17', positive=True, integer=True)
  Value symbol() {
    const size_t end = text.find('\'', at + 1);
    if (!take("'") || end == text.npos)
      return std::nullopt;
    auto found = values.find(text.substr(at, end - at));
    at = text.find(')', end);
    if (found == values.end() || at == text.npos)
      return std::nullopt;
    ++at;
    return found->second;
  }
  Value fold(const std::vector<int64_t> &arguments, bool sums) {
    Value result = sums ? 0 : 1;
    for (int64_t argument : arguments)
      result = sums ? add(result, argument, false) : multiply(result, argument);
    return result;
  }
  Value call(const std::string &name) {
    if (name == "Symbol")
      return symbol();
    std::vector<int64_t> arguments;
    do {
      Value value = sum();
      if (!value)
        return std::nullopt;
      arguments.push_back(*value);
    } while (take(","));
    if (!take(")"))
      return std::nullopt;
    if (name == "Add" || name == "Mul")
      return fold(arguments, name == "Add");
    if (name == "Max")
      return *std::max_element(arguments.begin(), arguments.end());
    if (name == "Min")
      return *std::min_element(arguments.begin(), arguments.end());
    if (arguments.size() == 1 &&
        (name == "Integer" || name == "ToFloat" || name == "floor" ||
         name == "IntTrueDiv" || name == "TruncToInt"))
      return arguments[0];
    if (arguments.size() != 2)
      return std::nullopt;
    if (name == "Pow")
      return raise(arguments[0], arguments[1]);
    if (name == "Mod" || name == "PythonMod")
      return modulo(arguments[0], arguments[1]);
    if (name == "FloorDiv" || name == "CleanDiv")
      return divide(arguments[0], arguments[1], false);
    return std::nullopt;
  }

  const std::string &text;
  const std::map<std::string, int64_t> &values;
  size_t at = 0;
  int depth = 0;
};

std::string nameOf(const std::string &text) {
  std::string name = text;
  const std::string begin = "Symbol('";
  if (text.rfind(begin, 0) == 0 && text.find(')') + 1 == text.size())
    name =
        text.substr(begin.size(), text.find('\'', begin.size()) - begin.size());
  bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
  return plain ? name : "";
}

/// An expression for people: without sympy's assumptions.
std::string shown(const std::string &text) {
  std::string name = nameOf(text);
  return printable(name.empty() ? text : name);
}

std::string described(const Dimension &dim) {
  return "dimension " + std::to_string(dim.index) + " of '" +
         printable(dim.input) + "'";
}

/// "is at least 3 (range_constraints)"; empty where the value is allowed.
std::string outside(const Bound &bound, int64_t value) {
  // Exporting takes any size as no 0 and no 1, whatever the program can do.
  if (bound.least && *bound.least > 2 && value < *bound.least)
    return "at least " + std::to_string(*bound.least);
  if (bound.most && value > *bound.most)
    return "at most " + std::to_string(*bound.most);
  return "";
}

} // namespace

std::string symbolOf(const Size &size) {
  return size.symbolic() ? nameOf(size.expression) : "";
}

int64_t Dimension::wanted(const Sizes &sizes) const {
  if (index == 0)
    return sizes.microBatch;
  if (index == 1 && input == "labels" && sizes.targetLength)
    return sizes.targetLength;
  return index == 1 && meta->dtype == plan::DType::I64 ? sizes.sequenceLength
                                                       : 0;
}

static std::vector<Dimension> dimensionsOf(const Program &program,
                                           bool parameters) {
  std::vector<Dimension> result;
  for (const InputSpec &input : program.inputs) {
    if ((input.kind != InputSpec::Kind::User && !parameters) ||
        input.argument.empty())
      continue;
    const TensorMeta &meta = program.graph.tensors.at(input.argument);
    for (size_t i = 0; i < meta.sizes.size(); ++i)
      result.push_back({input.argument, i, &meta});
  }
  return result;
}

std::vector<Dimension> inputDimensions(const Program &program) {
  return dimensionsOf(program, /*parameters=*/false);
}

std::optional<std::map<std::string, int64_t>>
resolveDims(const Program &program,
            const std::vector<std::pair<std::string, int64_t>> &named,
            DiagnosticEngine &diagnostics) {
  const std::vector<Dimension> dims = inputDimensions(program);
  std::map<std::string, int64_t> result;
  bool ok = true;
  auto error = [&](const std::string &message, const std::string &hint = "") {
    diagnostics.error("export-sizes", program.path, message, hint);
    ok = false;
  };
  for (const auto &[name, value] : named) {
    const std::string option =
        "--dim " + printable(name) + "=" + std::to_string(value);
    std::vector<std::string> known;
    std::string open; // symbols and where they stand
    bool found = false;
    for (const Dimension &dim : dims) {
      const std::string symbol = symbolOf(dim.size());
      if (!symbol.empty()) {
        known.insert(known.end(), {symbol, dim.place()});
        open += (open.empty() ? "" : ", ") + printable(dim.place()) + " (" +
                printable(symbol) + ")";
      }
      if (name != dim.place() && (symbol.empty() || name != symbol) &&
          (name != "batch" || dim.index != 0))
        continue;
      found = true;
      if (!dim.size().symbolic() && dim.size().value != value)
        error(option + ": " + described(dim) + " was exported as " +
                  std::to_string(dim.size().value),
              "export again with open sizes (tools/export-model --dynamic)");
      else if (dim.size().symbolic() && symbol.empty())
        error(option + ": " + described(dim) + " follows from others, as '" +
              shown(dim.size().expression) + "'");
      else if (!symbol.empty() &&
               result.emplace(symbol, value).first->second != value)
        error(option + ": " + described(dim) + ", '" + symbol +
              "', is given as " + std::to_string(result[symbol]) + " too");
      if (name == symbol)
        break; // one place says it all
    }
    if (found)
      continue;
    known.push_back("batch");
    error(option + ": the program has no open size of this name",
          didYouMean(name, known) + (open.empty()
                                         ? "it has no open size at all"
                                         : " open are " + open +
                                               "; batch is the first "
                                               "dimension of every input"));
  }
  return ok ? std::optional(result) : std::nullopt;
}

std::optional<int64_t>
evaluateExpression(const std::string &text,
                   const std::map<std::string, int64_t> &values) {
  return Evaluator(text, values).run();
}

std::optional<int64_t> Symbols::valueOf(const Size &size) const {
  return size.symbolic() ? evaluateExpression(size.expression, values)
                         : std::optional(size.value);
}

std::optional<std::vector<int64_t>>
Symbols::valuesOf(const std::vector<Size> &sizes) const {
  std::vector<int64_t> result;
  for (const Size &size : sizes) {
    auto value = valueOf(size);
    if (!value || *value < 0)
      return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<Symbols> Symbols::bind(const Program &program, const Sizes &sizes,
                                     DiagnosticEngine &diagnostics) {
  Symbols symbols;
  symbols.values = sizes.dims;
  bool ok = true;
  auto error = [&](const std::string &message, const std::string &hint = "") {
    diagnostics.error("export-sizes", program.path, message, hint);
    ok = false;
  };
  for (const Dimension &dim : inputDimensions(program)) {
    const int64_t want = dim.wanted(sizes);
    if (want == 0)
      continue;
    if (!dim.size().symbolic()) {
      if (want != dim.size().value)
        error(described(dim) + " was exported as " +
                  std::to_string(dim.size().value) + ", and the job asks for " +
                  std::to_string(want),
              std::string("export again with open sizes (tools/export-model "
                          "--dynamic), or set ") +
                  (dim.index == 0 ? "micro_batch" : "sequence_length") +
                  " to " + std::to_string(dim.size().value));
      continue;
    }
    const std::string symbol = symbolOf(dim.size());
    if (symbol.empty())
      continue;
    auto [at, isNew] = symbols.values.emplace(symbol, want);
    if (!isNew && at->second != want)
      error(described(dim) + " is open as '" + symbol + "', which is " +
                std::to_string(at->second) +
                " elsewhere, and the job asks for " + std::to_string(want),
            dim.index == 0 ? "the first dimension of every input is the "
                             "micro-batch: each row is a sample"
                           : "");
  }
  std::set<std::string> checked;
  for (const Dimension &dim : dimensionsOf(program, /*parameters=*/true)) {
    if (!ok)
      break;
    auto value = symbols.valueOf(dim.size());
    const std::string symbol = symbolOf(dim.size());
    if (!value)
      error(described(dim) + " is open: '" + shown(dim.size().expression) + "'",
            "--dim " + printable(dim.place()) + "=N says what it is");
    else if (*value < 0)
      error(described(dim) + ", '" + shown(dim.size().expression) +
            "', would be " + std::to_string(*value));
    if (!value || symbol.empty() || !checked.insert(symbol).second)
      continue;
    auto bound = program.bounds.find(symbol);
    std::string limit =
        bound == program.bounds.end() ? "" : outside(bound->second, *value);
    if (!limit.empty())
      error(described(dim) + ", '" + symbol + "', is " +
                std::to_string(*value) + ", and was exported as " + limit,
            "export again with another torch.export.Dim");
  }
  return ok ? std::optional(symbols) : std::nullopt;
}

} // namespace accel::torchexport
