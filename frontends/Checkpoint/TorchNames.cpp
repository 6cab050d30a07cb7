//===- TorchNames.cpp - Names in torch's pickles --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchNames.h"

#include "frontends/Checkpoint/Checkpoint.h"

namespace accel::checkpoint {

namespace {
struct Dtype {
  std::string_view name, storage;
  int64_t bytes;
};
constexpr Dtype dtypes[] = {{"float64", "DoubleStorage", 8},
                            {"float32", "FloatStorage", 4},
                            {"float16", "HalfStorage", 2},
                            {"bfloat16", "BFloat16Storage", 2},
                            {"int64", "LongStorage", 8},
                            {"int32", "IntStorage", 4},
                            {"int16", "ShortStorage", 2},
                            {"int8", "CharStorage", 1},
                            {"uint8", "ByteStorage", 1},
                            {"bool", "BoolStorage", 1},
                            {"complex64", "ComplexFloatStorage", 8},
                            {"complex128", "ComplexDoubleStorage", 16},
                            {"float8_e4m3fn", "", 1},
                            {"float8_e5m2", "", 1},
                            {"float8_e8m0fnu", "", 1},
                            {"float4_e2m1fn_x2", "", 1},
                            {"uint16", "", 2},
                            {"uint32", "", 4},
                            {"uint64", "", 8}};
constexpr std::string_view module = "torch ";

/// safetensors' names of dtypes, and torch's.
constexpr std::pair<std::string_view, std::string_view> storedTypes[] = {
    {"F64", "float64"},        {"F32", "float32"},
    {"F16", "float16"},        {"BF16", "bfloat16"},
    {"I64", "int64"},          {"I32", "int32"},
    {"I16", "int16"},          {"I8", "int8"},
    {"U8", "uint8"},           {"BOOL", "bool"},
    {"U16", "uint16"},         {"U32", "uint32"},
    {"U64", "uint64"},         {"F8_E4M3", "float8_e4m3fn"},
    {"F8_E5M2", "float8_e5m2"}};
} // namespace

int64_t elementBytes(std::string_view dtype) {
  for (const Dtype &known : dtypes)
    if (known.name == dtype)
      return known.bytes;
  return 0;
}

std::string_view torchDtypeOf(std::string_view stored) {
  for (const auto &[ours, torch] : storedTypes)
    if (ours == stored)
      return torch;
  return {};
}

std::string_view storedDtypeOf(std::string_view torch) {
  for (const auto &[ours, known] : storedTypes)
    if (known == torch)
      return ours;
  return {};
}

bool isTorchDtype(std::string_view global) {
  return global.starts_with(module) &&
         elementBytes(global.substr(module.size())) != 0;
}

std::string_view dtypeOfStorage(std::string_view global) {
  if (global.starts_with(module) && global.size() > module.size())
    for (const Dtype &known : dtypes)
      if (known.storage == global.substr(module.size()))
        return known.name;
  return {};
}

std::string_view storageOfDtype(std::string_view dtype) {
  for (const Dtype &known : dtypes)
    if (known.name == dtype)
      return known.storage;
  return {};
}

bool reportPickle(const Pickle::Problem &problem, const std::string &path,
                  DiagnosticEngine &diagnostics) {
  diagnostics.error(
      problem.foreign ? "foreign-pickle" : "invalid-checkpoint", path,
      "the pickle is not read: at byte " + std::to_string(problem.offset) +
          " " + problem.message,
      problem.foreign ? "a pickle runs what it names when Python loads it: "
                        "load this file only if you know its author"
                      : "copy the file again, or save the checkpoint again");
  return false;
}

} // namespace accel::checkpoint
