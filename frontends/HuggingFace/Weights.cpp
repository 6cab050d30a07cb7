//===- Weights.cpp - The weights of a Hugging Face folder -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/HuggingFace/BaseModelWeights.h"
#include "frontends/HuggingFace/Safetensors.h"
#include "frontends/HuggingFace/TiedWeights.h"
#include <filesystem>
#include <set>

using namespace accel;
using namespace accel::huggingface;
namespace fs = std::filesystem;

namespace {

constexpr const char *singleName = "model.safetensors";
constexpr const char *indexName = "model.safetensors.index.json";
constexpr uint64_t maxIndexBytes = 100'000'000;

bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// "'a', 'b' and 3 more".
std::string listed(const std::vector<std::string> &names) {
  constexpr size_t most = 5;
  std::string result;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    result += (i ? ", '" : "'") + printable(names[i]) + "'";
  if (names.size() > most)
    result += " and " + std::to_string(names.size() - most) + " more";
  return result;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string result = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? ", " : "") + std::to_string(shape[i]);
  return result + "]";
}

bool addFile(SafetensorsFile file, Weights &weights,
             DiagnosticEngine &diagnostics) {
  int number = int(weights.files.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const std::string &name = file.tensors[i].name;
    auto [at, fresh] = weights.tensors.emplace(name, std::pair(number, int(i)));
    if (!fresh) {
      diagnostics.error("invalid-safetensors", file.path,
                        "tensor '" + printable(name) + "' is also in " +
                            weights.files[size_t(at->second.first)].path);
      return false;
    }
  }
  weights.files.push_back(std::move(file));
  return true;
}

std::vector<plan::StoredPart> partsOf(const ParameterInfo &parameter) {
  return plan::storedParts(parameter.fqn, parameter.stored, parameter.shape)
      .value_or(std::vector<plan::StoredPart>());
}

/// Shape and dtype of a tensor that is there.
bool checkTensor(const Weights &weights, const std::string &name,
                 const std::vector<int64_t> &shape,
                 DiagnosticEngine &diagnostics) {
  const auto [fileNumber, number] = weights.tensors.at(name);
  const SafetensorsFile &file = weights.files[size_t(fileNumber)];
  const StoredTensor &tensor = file.tensors[size_t(number)];
  const std::string subject = "tensor '" + name + "'";
  if (tensor.shape != shape) {
    diagnostics.error("weights-mismatch", file.path,
                      subject + " has shape " + shapeText(tensor.shape) +
                          ", but config.json makes it " + shapeText(shape));
    return false;
  }
  if (tensor.dtype == "F32" || tensor.dtype == "BF16" || tensor.dtype == "F16")
    return true;
  diagnostics.error("weights-mismatch", file.path,
                    subject + " has dtype " + tensor.dtype +
                        "; supported are F32, BF16 and F16");
  return false;
}

/// Buffers that checkpoints of older transformers hold and that are computed
/// from the configuration now.
bool isComputedBuffer(const std::string &name) {
  return name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with("embeddings.position_ids");
}

void noteFresh(const std::vector<std::string> &fresh, const std::string &base,
               const std::string &folder, DiagnosticEngine &diagnostics) {
  Diagnostic d;
  d.severity = Severity::Note;
  d.code = "fresh-weights";
  d.file = folder;
  d.message = "the weights hold '" + base + "' and no head: " + listed(fresh) +
              (fresh.size() > 1 ? " start" : " starts") +
              " from first values, as the model's class has them";
  diagnostics.report(std::move(d));
}

} // namespace

bool accel::huggingface::readWeightIndex(
    const std::string &path,
    const std::function<bool(const std::string &file)> &open,
    const std::function<bool(const std::string &file,
                             const std::string &tensor)> &holds,
    DiagnosticEngine &diagnostics) {
  std::string text;
  if (!readFile(path, maxIndexBytes, text, diagnostics))
    return false;
  ConfigReader json(text, path, diagnostics);
  if (json.failed())
    return false;
  const nlohmann::json *map = json.find("weight_map");
  if (!map || !map->is_object()) {
    json.error("weight_map", "'weight_map' must be an object that maps tensors "
                             "to files");
    return false;
  }
  std::set<std::string> names;
  for (const auto &[tensor, file] : map->items()) {
    std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos || name == "." || name == "..") {
      json.error("weight_map." + tensor, "the file of tensor '" +
                                             printable(tensor) +
                                             "' must be a name in this folder");
      return false;
    }
    names.insert(name);
  }
  for (const std::string &name : names)
    if (!open(name))
      return false;
  std::vector<std::string> absent;
  for (const auto &[tensor, file] : map->items())
    if (!holds(file.get<std::string>(), tensor))
      absent.push_back(tensor);
  if (absent.empty())
    return true;
  json.error("weight_map." + absent.front(),
             "the index places " + listed(absent) +
                 " in files that do not hold them");
  return false;
}

std::optional<Weights>
accel::huggingface::readWeights(const std::string &folder,
                                DiagnosticEngine &diagnostics) {
  fs::path root(folder);
  Weights weights;
  if (isThere(root / singleName)) {
    auto file =
        readSafetensorsHeader((root / singleName).string(), diagnostics);
    if (!file || !addFile(std::move(*file), weights, diagnostics))
      return std::nullopt;
    return weights;
  }
  if (isThere(root / indexName)) {
    auto open = [&](const std::string &name) {
      auto file = readSafetensorsHeader((root / name).string(), diagnostics);
      return file && addFile(std::move(*file), weights, diagnostics);
    };
    auto holds = [&](const std::string &name, const std::string &tensor) {
      auto at = weights.tensors.find(tensor);
      return at != weights.tensors.end() &&
             fs::path(weights.files[size_t(at->second.first)].path)
                     .filename() == name;
    };
    if (!readWeightIndex((root / indexName).string(), open, holds, diagnostics))
      return std::nullopt;
    return weights;
  }
  for (const char *other :
       {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (isThere(root / other)) {
      diagnostics.error(
          notSupportedCode, (root / other).string(),
          "weights are read from safetensors alone; save the model "
          "with save_pretrained of transformers to convert them");
      return std::nullopt;
    }
  return weights;
}

bool accel::huggingface::checkWeights(const Weights &weights,
                                      const ModelInfo &model,
                                      const std::string &folder,
                                      DiagnosticEngine &diagnostics,
                                      BaseModelWeights *part) {
  std::vector<StoredAs> stored;
  for (const ParameterInfo &parameter : model.parameters) {
    StoredAs &as = stored.emplace_back();
    as.names = parameter.aliases;
    as.names.insert(as.names.begin(), parameter.fqn);
    // As transformers stores it: in parts, or under another name.
    for (const plan::StoredPart &part : partsOf(parameter))
      as.parts.push_back(part.name);
  }
  auto has = [&](const std::string &name) {
    return weights.tensors.count(name) > 0;
  };
  const BaseModelWeights held =
      baseModelWeights(stored, model.anatomy.base, has);
  if (part)
    *part = held;

  std::vector<std::string> missing, surplus, fresh;
  std::set<std::string> known;
  for (size_t i = 0; i < stored.size(); ++i) {
    const ParameterInfo &parameter = model.parameters[i];
    bool found = false;
    for (const std::string &own : stored[i].names) {
      const std::string name = held.name(own);
      known.insert(name);
      if (!has(name))
        continue;
      found = true;
      if (!checkTensor(weights, name, parameter.shape, diagnostics))
        return false;
    }
    if (held.isFresh(i))
      fresh.push_back(parameter.fqn);
    if (found || held.isFresh(i))
      continue;
    for (const plan::StoredPart &piece : partsOf(parameter)) {
      known.insert(piece.name);
      if (!has(piece.name))
        missing.push_back(piece.name);
      else if (!checkTensor(weights, piece.name, piece.shape, diagnostics))
        return false;
    }
  }
  for (const BufferInfo &buffer : model.buffers) {
    const std::string name = held.name(buffer.fqn);
    known.insert(name);
    if (!has(name))
      missing.push_back(name);
    else if (!checkTensor(weights, name, buffer.shape, diagnostics))
      return false;
  }
  if (!checkTiedWeights(weights, model, held, folder, diagnostics))
    return false;
  if (!missing.empty())
    diagnostics.error("weights-mismatch", folder,
                      "the weights lack " + std::to_string(missing.size()) +
                          " of the model's tensors: " + listed(missing));
  if (!fresh.empty())
    noteFresh(fresh, model.anatomy.base, folder, diagnostics);
  for (const auto &[name, place] : weights.tensors)
    if (!known.count(name) && !isComputedBuffer(name))
      surplus.push_back(name);
  if (!surplus.empty())
    diagnostics.warning("surplus-weights", folder,
                        "tensors that the model does not have are not read: " +
                            listed(surplus));
  return missing.empty();
}
