//===- TorchNames.cpp - Names in torch's pickles --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchNames.h"

#include "frontends/Checkpoint/Checkpoint.h"

#include <algorithm>

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
                            {"float8_e4m3fnuz", "", 1},
                            {"float8_e5m2fnuz", "", 1},
                            {"float8_e8m0fnu", "", 1},
                            {"float4_e2m1fn_x2", "", 1},
                            {"uint16", "", 2},
                            {"uint32", "", 4},
                            {"uint64", "", 8}};
constexpr std::string_view module = "torch ";

/// safetensors' names of dtypes, torch's, and whether accel-run reads them
/// (runtime/checkpoint/Safetensors.cpp). F4 has two values in a byte, which its
/// shape counts and torch's does not.
struct StoredType {
  std::string_view stored, torch;
  bool run = false;
};
constexpr StoredType storedTypes[] = {{"F64", "float64", true},
                                      {"F32", "float32", true},
                                      {"F16", "float16", true},
                                      {"BF16", "bfloat16", true},
                                      {"I64", "int64", true},
                                      {"I32", "int32", true},
                                      {"I16", "int16", true},
                                      {"I8", "int8"},
                                      {"U8", "uint8", true},
                                      {"BOOL", "bool", true},
                                      {"U16", "uint16"},
                                      {"U32", "uint32"},
                                      {"U64", "uint64"},
                                      {"C64", "complex64"},
                                      {"F8_E4M3", "float8_e4m3fn"},
                                      {"F8_E5M2", "float8_e5m2"},
                                      {"F8_E8M0", "float8_e8m0fnu"},
                                      {"F8_E4M3FNUZ", "float8_e4m3fnuz"},
                                      {"F8_E5M2FNUZ", "float8_e5m2fnuz"}};
} // namespace

int64_t elementBytes(std::string_view dtype) {
  for (const Dtype &known : dtypes)
    if (known.name == dtype)
      return known.bytes;
  return 0;
}

std::string_view torchDtypeOf(std::string_view stored) {
  for (const StoredType &type : storedTypes)
    if (type.stored == stored)
      return type.torch;
  return {};
}

std::string_view storedDtypeOf(std::string_view torch) {
  for (const StoredType &type : storedTypes)
    if (type.torch == torch)
      return type.stored;
  return {};
}

std::string whyNotStored(std::string_view dtype) {
  const bool isPacked = dtype == "F4" || dtype == "F6_E2M3" ||
                        dtype == "F6_E3M2" || dtype == "float4_e2m1fn_x2";
  return std::string(dtype) +
         (isPacked ? ", whose values share bytes: they are not written yet"
                   : ", which safetensors cannot hold");
}

bool isRunDtype(std::string_view torch) {
  return std::any_of(
      std::begin(storedTypes), std::end(storedTypes),
      [&](const StoredType &type) { return type.run && type.torch == torch; });
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
