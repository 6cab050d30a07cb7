//===- Loader.cpp - Micro-batches in the documented order -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Loader.h"

#include "runtime/data/Npy.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace accel::run {

namespace {
/// Files up to this many elements are read through before the job starts;
/// larger ones batch by batch.
constexpr int64_t checkLimit = int64_t(1) << 27;

std::string resolve(const std::string &path, const std::string &baseDir) {
  std::filesystem::path p(path);
  return p.is_absolute() ? path : (std::filesystem::path(baseDir) / p).string();
}

/// `name` is the array's, or empty for tokens.
std::string outside(const TokenFile &file, int64_t at, int64_t limit,
                    const std::string &name) {
  int64_t value = 0;
  file.read(at, 1, &value);
  const std::string text = file.path +
                           (name.empty() ? ": token " : ": element ") +
                           std::to_string(at);
  if (name.empty())
    return text + " is " + std::to_string(value) +
           ", and the model's vocabulary has ids 0 to " +
           std::to_string(limit - 1);
  return text + " of '" + name + "' is " + std::to_string(value) +
         ", and the model takes 0 to " + std::to_string(limit - 1);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[samples";
  for (size_t i = 1; i < shape.size(); ++i)
    text += ", " + std::to_string(shape[i]);
  return text + "]";
}

bool isFloat(plan::DType dtype) {
  return dtype == plan::DType::F64 || dtype == plan::DType::F32 ||
         dtype == plan::DType::BF16 || dtype == plan::DType::F16;
}
} // namespace

bool Loader::checkIds(const TokenFile &file, Source &source,
                      std::string &error) const {
  if (source.limit == 0)
    return true;
  if (file.count > checkLimit) {
    source.checked = false;
    return true;
  }
  int64_t begin = 0;
  while (begin < file.count) {
    int64_t at = file.findOutside(begin, file.count - begin, 0, source.limit);
    if (at < 0)
      return true;
    int64_t value = 0;
    file.read(at, 1, &value);
    if (!source.labels() || value != ignoredLabel) {
      error = outside(file, at, source.limit, tokens ? "" : source.input.name);
      return false;
    }
    begin = at + 1;
  }
  return true;
}

bool Loader::openArray(const plan::Data &data, Source &source,
                       const std::string &baseDir, std::string &error) {
  const Input &input = source.input;
  auto found = data.arrays.find(input.name);
  if (found == data.arrays.end()) {
    error =
        "the model reads '" + input.name + "', and data.arrays has no such key";
    return false;
  }
  TokenFile &file = source.file;
  if (!openNpy(resolve(found->second, baseDir), file, error))
    return false;
  const std::vector<int64_t> &shape = input.shape;
  if (file.shape.size() != shape.size() ||
      !std::equal(shape.begin() + 1, shape.end(), file.shape.begin() + 1)) {
    error = file.path + ": '" + input.name + "' must be " + shapeText(shape) +
            ", not " + shapeText(file.shape);
    return false;
  }
  if (isFloat(input.dtype) != run::isFloat(file.type)) {
    error = file.path + ": '" + input.name + "' must hold " +
            (isFloat(input.dtype) ? "floating-point numbers" : "integers");
    return false;
  }
  if (!sources.empty() && file.shape[0] != numSamples) {
    error = file.path + ": has " + std::to_string(file.shape[0]) +
            " rows, and '" + sources.begin()->first + "' has " +
            std::to_string(numSamples);
    return false;
  }
  numSamples = file.shape[0];
  if (numSamples == 0) {
    error = file.path + ": has no rows";
    return false;
  }
  return checkIds(file, source, error);
}

bool Loader::openTokens(const plan::Data &data, const std::string &baseDir,
                        std::string &error) {
  TokenFile file;
  const std::string path = resolve(data.path, baseDir);
  bool ok = false;
  if (data.kind == "npy") {
    ok = openNpy(path, file, error);
    if (ok && file.shape.size() != 1) {
      error = path + ": tokens are a 1-d array, and this one has " +
              std::to_string(file.shape.size()) + " dimensions";
      return false;
    }
    if (ok && run::isFloat(file.type)) {
      error = path + ": only integers can be tokens";
      return false;
    }
  } else if (data.kind == "text") {
    ok = run::openTokens(path, TokenType::U8, file, error);
  } else {
    auto type = parseTokenType(data.dtype);
    if (data.kind != "tokens" || !type) {
      error = data.kind != "tokens"
                  ? "data of kind '" + data.kind + "' cannot be read"
                  : "token dtype '" + data.dtype + "' is not known";
      return false;
    }
    ok = run::openTokens(path, *type, file, error);
  }
  if (!ok)
    return false;
  numSamples = length > 0 ? (file.count - 1) / length : 0;
  if (file.count < 1 || numSamples < 1) {
    error = path + ": has " + std::to_string(file.count) +
            " tokens, and one sample needs " + std::to_string(length + 1);
    return false;
  }
  tokens = std::move(file);
  return true;
}

bool Loader::open(const plan::Data &data, const plan::Job &job,
                  const std::vector<Input> &inputs, const std::string &baseDir,
                  std::string &error) {
  microBatch = job.microBatch;
  length = job.sequenceLength;
  shuffle = data.shuffle;
  seed = data.seed;
  for (const Input &input : inputs) {
    Source source;
    source.input = input;
    const bool ids = input.name == "input_ids" || input.name == "labels";
    if (input.shape.empty() || input.shape[0] != microBatch) {
      error = "the plan's input '" + input.name + "' has no micro-batch";
      return false;
    }
    for (size_t i = 1; i < input.shape.size(); ++i)
      source.numel *= input.shape[i];
    if (!isFloat(input.dtype)) {
      source.limit = ids ? job.vocab : 0;
      for (const plan::InputLimit &limit : job.inputLimits)
        if (limit.name == input.name)
          source.limit = limit.limit;
    }
    if (data.kind == "arrays") {
      if (!openArray(data, source, baseDir, error))
        return false;
    } else if (!ids || input.dtype != plan::DType::I64 ||
               input.shape.size() != 2 || input.shape[1] != length) {
      error = "the model reads '" + input.name +
              "', which token data do not have: use data.arrays";
      return false;
    }
    sources.emplace(input.name, std::move(source));
  }
  if (data.kind == "arrays")
    return true;
  if (!openTokens(data, baseDir, error))
    return false;
  for (auto &[name, source] : sources)
    if (!checkIds(*tokens, source, error))
      return false;
  return true;
}

int64_t Loader::sampleAt(int64_t position) {
  const int64_t epoch = position / numSamples, i = position % numSamples;
  if (!shuffle)
    return i;
  if (epoch != orderEpoch) {
    order.emplace(numSamples, seed, epoch);
    orderEpoch = epoch;
  }
  return (*order)(i);
}

at::Tensor Loader::load(const std::string &name, int64_t k) {
  const Source &source = sources.at(name);
  const bool floats = isFloat(source.input.dtype);
  at::Tensor batch = at::empty(
      source.input.shape,
      at::TensorOptions(floats ? at::ScalarType::Float : at::ScalarType::Long));
  for (int64_t row = 0; row < microBatch; ++row) {
    const int64_t sample = sampleAt(k * microBatch + row);
    const TokenFile &file = tokens ? *tokens : source.file;
    const int64_t begin = tokens ? sample * length + (source.labels() ? 1 : 0)
                                 : sample * source.numel;
    if (floats) {
      file.readFloats(begin, source.numel,
                      batch.mutable_data_ptr<float>() + row * source.numel);
      continue;
    }
    int64_t *into = batch.mutable_data_ptr<int64_t>() + row * source.numel;
    file.read(begin, source.numel, into);
    if (!source.checked)
      checkRow(source, file, begin, into);
  }
  return batch.to(scalarType(source.input.dtype));
}

void Loader::checkRow(const Source &source, const TokenFile &file,
                      int64_t begin, const int64_t *ids) const {
  for (int64_t i = 0; i < source.numel; ++i)
    if ((ids[i] < 0 || ids[i] >= source.limit) &&
        !(source.labels() && ids[i] == ignoredLabel))
      throw std::runtime_error(outside(file, begin + i, source.limit,
                                       tokens ? "" : source.input.name));
}

} // namespace accel::run
