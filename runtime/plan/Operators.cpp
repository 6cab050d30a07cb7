//===- Operators.cpp - What a plan may call -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Operators.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

namespace accel::plan {

namespace {

constexpr std::string_view operators[] = {
#include "runtime/plan/Operators.inc"
};
static_assert(std::is_sorted(std::begin(operators), std::end(operators)));

constexpr std::string_view aten = "aten::", own = "accel::";

/// "aten::add.Tensor" without namespace and overload.
std::string_view baseName(std::string_view name) {
  name.remove_prefix(aten.size());
  return name.substr(0, name.find('.'));
}

using Values = std::vector<std::string_view>;

const std::map<std::string_view, Values> &texts() {
  static const Values approximate = {"none", "tanh"};
  static const Values rounding = {"floor", "trunc"};
  static const Values reduce = {"sum", "prod", "mean", "amax", "amin"};
  static const Values scatter = {"add", "multiply"};
  static const Values padding = {"same", "valid"};
  static const Values quantile = {"linear", "lower", "higher", "midpoint",
                                  "nearest"};
  static const Values triangle = {"L", "U"};
  static const Values order = {"fro", "nuc"};
  static const Values driver = {"gels",  "gelsy",  "gelsd", "gelss",
                                "gesvd", "gesvdj", "gesvda"};
  static const std::map<std::string_view, Values> table = {
      {"gelu", approximate},
      {"gelu_", approximate},
      {"gelu_backward", approximate},
      {"div", rounding},
      {"div_", rounding},
      {"divide", rounding},
      {"divide_", rounding},
      {"pad", {"constant", "reflect", "replicate", "circular"}},
      {"pad_sequence", {"left", "right"}},
      {"scatter", scatter},
      {"scatter_", scatter},
      {"scatter_reduce", reduce},
      {"scatter_reduce_", reduce},
      {"index_reduce", reduce},
      {"index_reduce_", reduce},
      {"conv1d", padding},
      {"conv2d", padding},
      {"conv3d", padding},
      {"_convolution_mode", padding},
      {"quantile", quantile},
      {"nanquantile", quantile},
      {"linalg_eigh", triangle},
      {"_linalg_eigh", triangle},
      {"linalg_eigvalsh", triangle},
      {"linalg_norm", order},
      {"linalg_matrix_norm", order},
      {"linalg_cond", order},
      {"linalg_qr", {"reduced", "complete", "r"}},
      {"linalg_svd", driver},
      {"_linalg_svd", driver},
      {"linalg_svdvals", driver},
      {"linalg_lstsq", driver},
      {"meshgrid", {"ij", "xy"}},
      {"searchsorted", {"left", "right"}},
      {"stft", {"constant", "reflect", "replicate"}},
  };
  return table;
}

} // namespace

bool mayCall(const std::string &name) {
  if (name.rfind(own, 0) == 0)
    return true;
  return name.rfind(aten, 0) == 0 &&
         std::binary_search(std::begin(operators), std::end(operators),
                            baseName(name));
}

bool mayPass(const std::string &name, const std::string &text) {
  if (name.rfind(aten, 0) != 0)
    return false;
  const std::string_view base = baseName(name);
  if (base == "einsum")
    return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
                                  "STUVWXYZ,.-> ") == std::string::npos;
  if (base.rfind("fft_", 0) == 0)
    return text == "forward" || text == "backward" || text == "ortho";
  const auto found = texts().find(base);
  return found != texts().end() &&
         std::find(found->second.begin(), found->second.end(), text) !=
             found->second.end();
}

std::string operatorProblem(const Instruction &instruction) {
  if (!mayCall(instruction.op))
    return "it is not among the operators that a plan may call";
  const std::vector<Arg> &args = instruction.args;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind != Arg::Kind::Text ||
        mayPass(instruction.op, args[i].text))
      continue;
    // An opaque backward is marked so, before its last two arguments.
    if (instruction.kind == Instruction::Kind::Opaque && i + 3 == args.size() &&
        args[i].text == "backward")
      continue;
    return "the text of argument " + std::to_string(i) +
           " is not one that the operator knows";
  }
  return "";
}

} // namespace accel::plan
