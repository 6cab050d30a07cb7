//===- Loader.cpp - Micro-batches in the documented order -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Loader.h"

#include "runtime/data/Npy.h"

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

std::string outside(const TokenFile &file, int64_t at, int64_t vocab) {
  int64_t value = 0;
  file.read(at, 1, &value);
  return file.path + ": token " + std::to_string(at) + " is " +
         std::to_string(value) + ", and the model's vocabulary has ids 0 to " +
         std::to_string(vocab - 1);
}
} // namespace

bool Loader::checkIds(const TokenFile &file, bool labels,
                      std::string &error) const {
  int64_t begin = 0;
  while (begin < file.count) {
    int64_t at = file.findOutside(begin, file.count - begin, 0, vocab);
    if (at < 0)
      return true;
    int64_t value = 0;
    file.read(at, 1, &value);
    if (!labels || value != ignoredLabel) {
      error = outside(file, at, vocab);
      return false;
    }
    begin = at + 1;
  }
  return true;
}

bool Loader::openArrays(const plan::Data &data,
                        const std::vector<std::string> &inputs,
                        const std::string &baseDir, std::string &error) {
  for (const std::string &name : inputs) {
    auto found = data.arrays.find(name);
    if (found == data.arrays.end()) {
      error = "the model reads '" + name + "', and data.arrays has no such key";
      return false;
    }
    TokenFile file;
    if (!openNpy(resolve(found->second, baseDir), file, error))
      return false;
    if (file.shape.size() != 2 || file.shape[1] != length) {
      error = file.path + ": '" + name + "' must be [samples, " +
              std::to_string(length) + "]";
      return false;
    }
    if (!arrays.empty() && file.shape[0] != numSamples) {
      error = file.path + ": has " + std::to_string(file.shape[0]) +
              " rows, and '" + arrays.begin()->first + "' has " +
              std::to_string(numSamples);
      return false;
    }
    numSamples = file.shape[0];
    arrays.emplace(name, std::move(file));
  }
  if (numSamples == 0) {
    error = "the arrays have no rows";
    return false;
  }
  return true;
}

bool Loader::open(const plan::Data &data, const plan::Job &job,
                  const std::vector<std::string> &inputs,
                  const std::string &baseDir, std::string &error) {
  microBatch = job.microBatch;
  length = job.sequenceLength;
  vocab = job.vocab;
  shuffle = data.shuffle;
  seed = data.seed;
  if (data.kind == "arrays") {
    if (!openArrays(data, inputs, baseDir, error))
      return false;
  } else {
    for (const std::string &name : inputs)
      if (name != "input_ids" && name != "labels") {
        error = "the model reads '" + name +
                "', which token data do not have: use data.arrays";
        return false;
      }
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
    } else if (data.kind == "text") {
      ok = openTokens(path, TokenType::U8, file, error);
    } else {
      auto type = parseTokenType(data.dtype);
      if (data.kind != "tokens" || !type) {
        error = data.kind != "tokens"
                    ? "data of kind '" + data.kind + "' cannot be read"
                    : "token dtype '" + data.dtype + "' is not known";
        return false;
      }
      ok = openTokens(path, *type, file, error);
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
  }
  auto check = [&](const TokenFile &file, bool labels) {
    if (file.count > checkLimit) {
      checked = false;
      return true;
    }
    return checkIds(file, labels, error);
  };
  if (tokens)
    return check(*tokens, false);
  for (const auto &[name, file] : arrays)
    if ((name == "input_ids" || name == "labels") &&
        !check(file, name == "labels"))
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
  at::Tensor batch =
      at::empty({microBatch, length}, at::TensorOptions(at::ScalarType::Long));
  int64_t *into = batch.mutable_data_ptr<int64_t>();
  const bool labels = name == "labels";
  for (int64_t row = 0; row < microBatch; ++row) {
    const int64_t sample = sampleAt(k * microBatch + row);
    const TokenFile &file = tokens ? *tokens : arrays.at(name);
    const int64_t begin = sample * length + (tokens && labels ? 1 : 0);
    file.read(begin, length, into + row * length);
    if (checked || !(labels || name == "input_ids"))
      continue;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t id = into[row * length + i];
      if ((id < 0 || id >= vocab) && !(labels && id == ignoredLabel))
        throw std::runtime_error(outside(file, begin + i, vocab));
    }
  }
  return batch;
}

} // namespace accel::run
