//===- Safetensors.cpp - Files of named tensors ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace accel::run {

using nlohmann::ordered_json;

namespace {
constexpr int64_t maxHeader = 100'000'000; // as the reference implementation

struct TypeName {
  const char *name;
  plan::DType dtype;
};
constexpr TypeName typeNames[] = {
    {"F64", plan::DType::F64},   {"F32", plan::DType::F32},
    {"BF16", plan::DType::BF16}, {"F16", plan::DType::F16},
    {"I64", plan::DType::I64},   {"I32", plan::DType::I32},
    {"I16", plan::DType::I16},   {"U8", plan::DType::U8},
    {"BOOL", plan::DType::I1}};

std::optional<plan::DType> typeOf(const std::string &name) {
  for (const TypeName &type : typeNames)
    if (name == type.name)
      return type.dtype;
  return std::nullopt;
}

const char *nameOf(plan::DType dtype) {
  for (const TypeName &type : typeNames)
    if (dtype == type.dtype)
      return type.name;
  return "F32";
}
} // namespace

/// An integer of JSON that int64_t holds; a fraction is none.
static int64_t takeInteger(const ordered_json &value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
    throw std::domain_error("an offset or extent is no integer");
  return value.get<int64_t>();
}

/// Name of a tensor that begins before the one in front of it ends, or "".
static std::string overlapping(std::vector<const StoredTensor *> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](auto *a, auto *b) {
    return std::pair(a->offset, a->numel()) < std::pair(b->offset, b->numel());
  });
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i]->offset <
        tensors[i - 1]->offset +
            tensors[i - 1]->numel() * plan::itemSize(tensors[i - 1]->dtype))
      return tensors[i]->name;
  return "";
}

int64_t StoredTensor::numel() const {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

SafetensorsHeader readHeader(const File &file) {
  auto fail = [&](const std::string &why) {
    throw FileError(file.path() + ": " + why);
  };
  SafetensorsHeader result;
  result.fileBytes = file.size();
  if (result.fileBytes < 8)
    fail("is not a safetensors file: it is shorter than 8 bytes");
  uint64_t length = 0;
  file.readAt(0, &length, 8);
  if (length > static_cast<uint64_t>(maxHeader) ||
      static_cast<int64_t>(length) + 8 > result.fileBytes)
    fail("is not a safetensors file, or is truncated: its header would be " +
         std::to_string(length) + " bytes");
  std::string text(length, '\0');
  file.readAt(8, text.data(), length);
  const int64_t dataBegin = 8 + static_cast<int64_t>(length);
  try {
    ordered_json json = ordered_json::parse(text);
    for (auto &[name, entry] : json.items()) {
      if (name == "__metadata__") {
        if (!entry.is_object())
          throw std::domain_error("'__metadata__' is not a map of strings");
        for (auto &[key, value] : entry.items())
          result.metadata[key] = value.get<std::string>();
        continue;
      }
      StoredTensor tensor;
      tensor.name = name;
      for (const ordered_json &extent : entry.at("shape"))
        tensor.shape.push_back(takeInteger(extent));
      const int64_t begin = takeInteger(entry.at("data_offsets").at(0));
      const int64_t end = takeInteger(entry.at("data_offsets").at(1));
      auto dtype = typeOf(entry.at("dtype").get<std::string>());
      if (begin < 0 || end < begin || end > result.fileBytes - dataBegin)
        fail("is truncated: tensor '" + name + "' ends at byte " +
             std::to_string(dataBegin + end) + " of " +
             std::to_string(result.fileBytes));
      if (!dtype)
        continue;
      tensor.dtype = *dtype;
      tensor.offset = dataBegin + begin;
      int64_t bytes = plan::itemSize(*dtype);
      for (int64_t extent : tensor.shape)
        if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
          fail("tensor '" + name + "' has an impossible shape");
      if (bytes != end - begin)
        fail("tensor '" + name + "' has " + std::to_string(end - begin) +
             " bytes, and its shape and type need " + std::to_string(bytes));
      result.tensors.push_back(std::move(tensor));
    }
  } catch (const nlohmann::json::exception &error) {
    fail(std::string("its header cannot be read: ") + error.what());
  } catch (const std::domain_error &error) {
    fail(std::string("its header cannot be read: ") + error.what());
  }
  std::vector<const StoredTensor *> placed;
  for (const StoredTensor &tensor : result.tensors)
    placed.push_back(&tensor);
  if (std::string name = overlapping(std::move(placed)); !name.empty())
    fail("tensor '" + name + "' overlaps another");
  return result;
}

std::string layOut(SafetensorsHeader &header) {
  ordered_json json = ordered_json::object();
  if (!header.metadata.empty())
    json["__metadata__"] = header.metadata;
  int64_t at = 0;
  for (StoredTensor &tensor : header.tensors) {
    const int64_t bytes = tensor.numel() * plan::itemSize(tensor.dtype);
    json[tensor.name] = {{"dtype", nameOf(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"data_offsets", {at, at + bytes}}};
    tensor.offset = at;
    at += bytes;
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // data starts aligned
  const uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  bytes += text;
  for (StoredTensor &tensor : header.tensors)
    tensor.offset += bytes.size();
  header.fileBytes = bytes.size() + at;
  return bytes;
}

} // namespace accel::run
