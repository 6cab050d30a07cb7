//===- Loader.cpp - Micro-batches in the documented order -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Loader.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Resolve.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace accel::run {

namespace {
/// Files up to this many elements are read through before the job starts;
/// larger ones batch by batch.
constexpr int64_t checkLimit = int64_t(1) << 27;

/// What says where in its document a token is.
constexpr const char *positionsName = "position_ids";

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

std::string outsideText(const TokenFile &file, int64_t at, int64_t limit,
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
      error = outsideText(file, at, source.limit, source.input.name);
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
  if (!openNpy(resolvePath(found->second, baseDir), file, error))
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
  if (!tokens.emplace().open(data, length, baseDir, error))
    return false;
  numSamples = tokens->samples();
  for (auto &[name, source] : sources)
    if (source.limit > 0 && name != positionsName &&
        !tokens->checkIds(source.limit, source.checked, error))
      return false;
  return true;
}

bool Loader::setEpochs(const plan::Data &data, int64_t ranks,
                       std::string &error) {
  if (data.epochEnd.empty())
    return true;
  const int64_t together = microBatch * ranks;
  const bool drop = data.epochEnd == "drop";
  batchesPerEpoch =
      (drop ? numSamples : numSamples + together - 1) / together * ranks;
  if (batchesPerEpoch == 0)
    error = "the data has " + std::to_string(numSamples) +
            " samples, and a micro-batch on each of " + std::to_string(ranks) +
            " ranks takes " + std::to_string(together) +
            ": drop_last leaves nothing";
  return batchesPerEpoch > 0;
}

bool Loader::open(const plan::Data &data, const plan::Job &job,
                  const std::vector<Input> &inputs, const std::string &baseDir,
                  std::string &error, int64_t ranks) {
  microBatch = job.microBatch;
  length = job.sequenceLength;
  shuffle = data.shuffle;
  seed = data.seed;
  documents = data.hasDocuments();
  endOfDocument = data.endOfDocument;
  for (const Input &input : inputs) {
    Source source;
    source.input = input;
    const bool ids = input.name == "input_ids" || input.name == "labels";
    const bool perToken = ids || input.name == positionsName;
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
    } else if (!perToken || input.dtype != plan::DType::I64 ||
               input.shape.size() != 2 || input.shape[1] != length) {
      error = "the model reads '" + input.name +
              "', which token data do not have: use data.arrays";
      return false;
    }
    sources.emplace(input.name, std::move(source));
  }
  if (data.kind != "arrays" && !openTokens(data, baseDir, error))
    return false;
  return setEpochs(data, ranks, error);
}

std::vector<std::string> Loader::names() const {
  std::vector<std::string> result;
  for (const auto &[name, source] : sources)
    result.push_back(name);
  return result;
}

Loader::Turn Loader::turnOf(int64_t k, int64_t row) const {
  if (batchesPerEpoch == 0) {
    const int64_t position = k * microBatch + row;
    return {position / numSamples, position % numSamples};
  }
  return {k / batchesPerEpoch,
          (k % batchesPerEpoch * microBatch + row) % numSamples};
}

void Loader::findDocuments(const Corpus::Place &place,
                           std::vector<int64_t> &begins) const {
  begins.assign(length + 1, 0);
  if (const TokenFile *starts = place.starts) {
    // The first start behind the sample's first token.
    int64_t low = 0, high = starts->count, at = 0;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      starts->read(middle, 1, &at);
      if (at <= place.begin)
        low = middle + 1;
      else
        high = middle;
    }
    for (; low < starts->count; ++low) {
      starts->read(low, 1, &at);
      if (at - place.begin > length)
        break;
      begins[at - place.begin] = at - place.begin;
    }
  } else if (endOfDocument >= 0) {
    std::vector<int64_t> ids(length);
    place.tokens->read(place.begin, length, ids.data());
    for (int64_t i = 0; i < length; ++i)
      if (ids[i] == endOfDocument)
        begins[i + 1] = i + 1;
  }
  for (int64_t i = 1; i <= length; ++i)
    begins[i] = std::max(begins[i], begins[i - 1]);
}

void Loader::readTokens(const Source &source, const Turn &turn, int64_t *into) {
  const Corpus::Place place = tokens->at(turn.epoch, turn.index);
  std::vector<int64_t> begins;
  if (source.input.name == positionsName) {
    findDocuments(place, begins);
    for (int64_t i = 0; i < length; ++i)
      into[i] = i - begins[i];
    return;
  }
  const int64_t begin = place.begin + (source.labels() ? 1 : 0);
  place.tokens->read(begin, length, into);
  if (!source.checked)
    checkRow(source, *place.tokens, begin, into);
  if (!source.labels() || !documents)
    return;
  // What follows a document's last token is another document's.
  findDocuments(place, begins);
  for (int64_t i = 0; i < length; ++i)
    if (begins[i + 1] == i + 1)
      into[i] = ignoredLabel;
}

int64_t Loader::sampleOf(const Turn &turn) {
  if (tokens)
    return tokens->sampleAt(turn.epoch, turn.index);
  if (shuffle && turn.epoch != orderEpoch) {
    order.emplace(numSamples, seed, turn.epoch);
    orderEpoch = turn.epoch;
  }
  return shuffle ? (*order)(turn.index) : turn.index;
}

int64_t Loader::sampleOf(int64_t k, int64_t row) {
  return sampleOf(turnOf(k, row));
}

void Loader::readArray(const Source &source, const Turn &turn, char *into) {
  const int64_t begin = sampleOf(turn) * source.numel;
  if (isFloat(source.input.dtype)) {
    source.file.readFloats(begin, source.numel,
                           reinterpret_cast<float *>(into));
    return;
  }
  auto *ids = reinterpret_cast<int64_t *>(into);
  source.file.read(begin, source.numel, ids);
  if (!source.checked)
    checkRow(source, source.file, begin, ids);
}

std::vector<char> Loader::read(const std::string &name, int64_t k) {
  const Source &source = sources.at(name);
  const size_t row =
      source.numel *
      (isFloat(source.input.dtype) ? sizeof(float) : sizeof(int64_t));
  std::vector<char> bytes(row * microBatch);
  for (int64_t i = 0; i < microBatch; ++i) {
    char *into = bytes.data() + i * row;
    if (tokens)
      readTokens(source, turnOf(k, i), reinterpret_cast<int64_t *>(into));
    else
      readArray(source, turnOf(k, i), into);
  }
  return bytes;
}

at::Tensor Loader::toTensor(const std::string &name,
                            const std::vector<char> &bytes) const {
  const Input &input = sources.at(name).input;
  at::Tensor batch =
      at::empty(input.shape,
                at::TensorOptions(isFloat(input.dtype) ? at::ScalarType::Float
                                                       : at::ScalarType::Long));
  std::memcpy(batch.mutable_data_ptr(), bytes.data(), bytes.size());
  return batch.to(scalarType(input.dtype));
}

at::Tensor Loader::load(const std::string &name, int64_t k) {
  return toTensor(name, read(name, k));
}

void Loader::checkRow(const Source &source, const TokenFile &file,
                      int64_t begin, const int64_t *ids) const {
  for (int64_t i = 0; i < source.numel; ++i)
    if ((ids[i] < 0 || ids[i] >= source.limit) &&
        !(source.labels() && ids[i] == ignoredLabel))
      throw std::runtime_error(outsideText(file, begin + i, source.limit,
                                           tokens ? "" : source.input.name));
}

} // namespace accel::run
