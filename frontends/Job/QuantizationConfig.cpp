//===- QuantizationConfig.cpp - A quantised base model --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/QuantizationConfig.h"

#include <charconv>

namespace accel {
namespace {

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::optional<int64_t> count(const std::string &text) {
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 ||
      value > 65536)
    return std::nullopt;
  return value;
}

/// One `key` or `key=value` behind the format; a problem, or "".
std::string take(const std::string &part, QuantizationConfig &config) {
  const size_t equals = part.find('=');
  const std::string key = part.substr(0, equals);
  const std::string value =
      equals == std::string::npos ? "" : part.substr(equals + 1);
  const bool four = plan::isFourBit(config.values.format);
  const bool grouped = config.values.format == plan::WeightFormat::Gptq ||
                       config.values.format == plan::WeightFormat::Awq;
  if (key == "double_quant" && equals == std::string::npos && four) {
    config.values.doubleQuant = true;
    return "";
  }
  const bool packed = config.values.format == plan::WeightFormat::Mxfp4;
  if (key == "dequantize" && equals == std::string::npos && packed) {
    config.dequantizes = true;
    return "";
  }
  if (key == "prepared" && equals == std::string::npos && !packed) {
    config.preparedForTraining = true;
    return "";
  }
  if ((key == "storage" && (four || grouped)) || (key == "compute" && four)) {
    std::optional<plan::DType> dtype = value == "uint8" || value == "int8"
                                           ? plan::DType::U8
                                           : plan::parseDType(value);
    if (!dtype || (key == "compute" && plan::itemSize(*dtype) < 2))
      return "'" + printable(part) + "': expected a dtype such as bf16";
    (key == "storage" ? config.values.storage : config.compute) = dtype;
    return "";
  }
  const bool eight = config.values.format == plan::WeightFormat::Int8;
  if (key == "threshold" && eight) {
    const char *end = value.data() + value.size();
    auto [stop, error] =
        std::from_chars(value.data(), end, config.values.threshold);
    return error == std::errc() && stop == end && config.values.threshold >= 0
               ? ""
               : "'" + printable(part) +
                     "': expected a number that is not negative";
  }
  if ((key == "bits" || key == "group") && grouped) {
    // -1: one group for all inputs.
    std::optional<int64_t> number =
        key == "group" && value == "-1" ? -1 : count(value);
    if (!number)
      return "'" + printable(part) + "': expected a positive number" +
             (key == "group" ? ", or -1 for one group" : "");
    if (key == "bits" && !hasBits(config.values.format, *number))
      return "'" + printable(part) + "': expected 2, 3, 4 or 8";
    (key == "bits" ? config.values.bits : config.values.group) = *number;
    return "";
  }
  const std::string name = plan::describe(config.values.format).name;
  return "'" + printable(part) + "': " + name + " takes " +
         (four      ? "double_quant, storage=DTYPE, compute=DTYPE and prepared"
          : grouped ? "bits=N, group=N, storage=DTYPE and prepared"
          : eight   ? "threshold=X and prepared"
          : packed  ? "dequantize alone"
                    : "prepared alone");
}

} // namespace

bool hasBits(plan::WeightFormat format, int64_t bits) {
  if (format != plan::WeightFormat::Gptq)
    return bits <= 8;
  return bits == 2 || bits == 3 || bits == 4 || bits == 8;
}

std::optional<QuantizationConfig> parseQuantization(const std::string &text,
                                                    std::string &problem) {
  const std::vector<std::string> parts = split(text);
  const auto *format = plan::findWeightFormat(parts.front());
  if (!format) {
    problem = "expected " + plan::weightFormatNames();
    return std::nullopt;
  }
  QuantizationConfig config;
  config.values.format = format->format;
  config.key = "--quantize";
  for (size_t i = 1; i < parts.size(); ++i)
    if (problem = take(parts[i], config); !problem.empty())
      return std::nullopt;
  return config;
}

} // namespace accel
