//===- Quantized.cpp - quantization_config of a config.json ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Quantized.h"

#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/HuggingFace/HubCache.h"

#include <filesystem>

namespace accel::huggingface {
namespace {

constexpr const char *section = "quantization_config";
constexpr uint64_t maxConfigBytes = 16'000'000;

std::string within(const std::string &key) {
  return std::string(section) + "." + key;
}

/// As torch names dtypes, with or without "torch."; int8 is a byte, as uint8
/// is.
std::optional<plan::DType> torchDtype(std::string text) {
  if (text.starts_with("torch."))
    text.erase(0, 6);
  const std::pair<const char *, plan::DType> known[] = {
      {"uint8", plan::DType::U8},    {"int8", plan::DType::U8},
      {"float32", plan::DType::F32}, {"bfloat16", plan::DType::BF16},
      {"float16", plan::DType::F16}, {"int32", plan::DType::I32},
      {"float64", plan::DType::F64}};
  for (const auto &[name, dtype] : known)
    if (text == name)
      return dtype;
  return std::nullopt;
}

class Reader {
public:
  Reader(ConfigReader &json, const std::string &path)
      : json(json), path(path) {}

  std::optional<QuantizationConfig> run() {
    // Older files of bitsandbytes name no method.
    const std::string method =
        json.text(within("quant_method")).value_or("bitsandbytes");
    if (!chooseFormat(method))
      return std::nullopt;
    config.prequantized = true;
    config.at.file = path;
    config.key = section;
    readSkipped();
    if (json.failed())
      return std::nullopt;
    return std::move(config);
  }

private:
  bool flag(const char *key) { return json.flag(within(key), false); }

  bool chooseFormat(const std::string &method) {
    if (method == "bitsandbytes")
      return bitsandbytes();
    const auto *format = plan::findWeightFormat(method);
    const bool grouped = format && (method == "gptq" || method == "awq");
    if (!grouped && method != "mxfp4") {
      json.unsupported(within("quant_method"),
                       "weights quantised by '" + printable(method) +
                           "' are not modelled yet; bitsandbytes, gptq, awq "
                           "and mxfp4 are");
      return false;
    }
    config.values.format = format->format;
    if (grouped)
      readGroups();
    else
      config.dequantizes = flag("dequantize");
    return true;
  }

  bool bitsandbytes() {
    const bool four = flag("load_in_4bit") || flag("_load_in_4bit"),
               eight = flag("load_in_8bit") || flag("_load_in_8bit");
    if (four && eight) {
      json.error(within("load_in_8bit"),
                 "load_in_4bit and load_in_8bit are both true; transformers "
                 "stops with a ValueError: expected one of them");
      return false;
    }
    if (eight) {
      config.values.format = plan::WeightFormat::Int8;
      config.values.threshold =
          json.number(within("llm_int8_threshold"), config.values.threshold);
      if (config.values.threshold < 0)
        json.error(within("llm_int8_threshold"),
                   "expected a number that is not negative");
      return true;
    }
    if (!four) {
      json.error(within("load_in_4bit"),
                 "neither 'load_in_4bit' nor 'load_in_8bit' is true: expected "
                 "one of them");
      return false;
    }
    const std::string type =
        json.text(within("bnb_4bit_quant_type")).value_or("fp4");
    const auto *format = plan::findWeightFormat(type);
    if (type != "nf4" && type != "fp4") {
      json.error(within("bnb_4bit_quant_type"),
                 "'" + printable(type) + "': expected nf4 or fp4");
      return false;
    }
    config.values.format = format->format;
    config.values.doubleQuant = flag("bnb_4bit_use_double_quant");
    readDtype("bnb_4bit_quant_storage", config.values.storage);
    readDtype("bnb_4bit_compute_dtype", config.compute);
    return true;
  }

  void readDtype(const char *key, std::optional<plan::DType> &into) {
    std::optional<std::string> text = json.text(within(key));
    if (!text)
      return;
    into = torchDtype(*text);
    if (!into)
      json.error(within(key), "'" + printable(*text) +
                                  "': expected a dtype such as bfloat16");
  }

  void readGroups() {
    const char *bits = json.has(within("bits")) ? "bits" : "w_bit";
    if (json.has(within(bits)))
      config.values.bits = json.size(within(bits), 4, 8);
    if (config.values.bits &&
        !hasBits(config.values.format, config.values.bits))
      json.error(within(bits), "expected 2, 3, 4 or 8");
    const char *group =
        json.has(within("group_size")) ? "group_size" : "q_group_size";
    // -1: one group for all inputs.
    if (std::optional<int64_t> size = json.has(within(group))
                                          ? json.integer(within(group))
                                          : std::nullopt)
      config.values.group = *size > 0 ? *size : -1;
  }

  void readSkipped() {
    for (const char *key :
         {"llm_int8_skip_modules", "modules_to_not_convert"}) {
      const nlohmann::json *list = json.find(within(key));
      if (!list || list->is_null())
        continue;
      if (!list->is_array()) {
        json.error(within(key), "expected a list of module names");
        continue;
      }
      auto &names = config.skipped.emplace();
      for (const auto &name : *list)
        if (name.is_string())
          names.push_back(name.get<std::string>());
        else
          json.error(within(key), "expected a list of module names");
    }
  }

  ConfigReader &json;
  const std::string &path;
  QuantizationConfig config;
};

} // namespace

void readQuantization(const std::string &text, const std::string &path,
                      std::optional<QuantizationConfig> &config,
                      DiagnosticEngine &engine) {
  ConfigReader json(text, path, engine);
  if (json.failed() || !json.has(section) || json.isNull(section))
    return;
  if (!json.find(section)->is_object()) {
    json.error(section, "expected an object");
    return;
  }
  config = Reader(json, path).run();
}

void readQuantizationFile(const std::string &path,
                          std::optional<QuantizationConfig> &config,
                          DiagnosticEngine &engine) {
  std::error_code ignored;
  std::string file = path, text;
  if (std::filesystem::is_directory(path, ignored))
    file = (std::filesystem::path(path) / "config.json").string();
  if (readFile(file, maxConfigBytes, text, engine))
    readQuantization(text, file, config, engine);
}

void readQuantizationNamed(const std::string &name,
                           std::optional<QuantizationConfig> &config,
                           DiagnosticEngine &engine) {
  readNamed(
      name,
      [&](const std::string &folder) {
        readQuantizationFile(folder, config, engine);
      },
      [&](const std::string &text, const std::string &file) {
        readQuantization(text, file, config, engine);
      });
}

} // namespace accel::huggingface
