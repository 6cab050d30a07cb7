//===- Corpus.cpp - Files of tokens as one list of samples ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Corpus.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Resolve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace accel::run {

namespace {

/// The files are read through before the job starts up to so many elements.
constexpr int64_t checkLimit = int64_t(1) << 27;

bool openList(const std::string &path, TokenFile &file, const char *what,
              std::string &error) {
  if (!openNpy(path, file, error))
    return false;
  if (file.shape.size() != 1)
    error = path + ": " + what + " are a 1-d array, and this one has " +
            std::to_string(file.shape.size()) + " dimensions";
  else if (isFloat(file.type))
    error = path + ": only integers can be " + what;
  return file.shape.size() == 1 && !isFloat(file.type);
}

bool openTokenFile(const plan::Data &data, const std::string &path,
                   TokenFile &file, std::string &error) {
  if (data.kind == "npy")
    return openList(path, file, "tokens", error);
  if (data.kind == "text")
    return openTokens(path, TokenType::U8, file, error);
  const auto type = parseTokenType(data.dtype);
  if (data.kind == "tokens" && type)
    return openTokens(path, *type, file, error);
  error = data.kind != "tokens"
              ? "data of kind '" + data.kind + "' cannot be read"
              : "token dtype '" + data.dtype + "' is not known";
  return false;
}

/// Positions of documents are looked up by halving.
bool checkStarts(const TokenFile &starts, int64_t tokens, std::string &error) {
  int64_t before = -1;
  for (int64_t i = 0; i < starts.count; ++i) {
    int64_t position = 0;
    starts.read(i, 1, &position);
    if (position <= before || position >= tokens) {
      error = starts.path + ": element " + std::to_string(i) + " is " +
              std::to_string(position) +
              (position <= before
                   ? ", and positions of documents must ascend"
                   : ", and there are " + std::to_string(tokens) + " tokens");
      return false;
    }
    before = position;
  }
  return true;
}

} // namespace

bool Corpus::openShard(const plan::Data &data, const plan::DataFile &file,
                       int64_t length, const std::string &baseDir,
                       std::string &error) {
  Shard &shard = shards.emplace_back();
  const std::string path = resolvePath(file.path, baseDir);
  if (!openTokenFile(data, path, shard.tokens, error))
    return false;
  const int64_t count = shard.tokens.count;
  shard.samples = length > 0 ? std::max<int64_t>(count - 1, 0) / length : 0;
  if (shard.samples < 1) {
    error = path + ": has " + std::to_string(count) +
            " tokens, and one sample needs " + std::to_string(length + 1);
    return false;
  }
  shard.first = total;
  shard.weight = file.weight;
  total += shard.samples;
  if (file.starts.empty())
    return true;
  return openList(resolvePath(file.starts, baseDir), shard.starts.emplace(),
                  "positions of documents", error) &&
         checkStarts(*shard.starts, count, error);
}

bool Corpus::open(const plan::Data &data, int64_t sampleLength,
                  const std::string &baseDir, std::string &error) {
  length = sampleLength;
  shuffle = data.shuffle;
  seed = data.seed;
  std::vector<plan::DataFile> files = data.files;
  if (files.empty())
    files.push_back({data.path, 0, ""});
  for (const plan::DataFile &file : files) {
    if (!openShard(data, file, length, baseDir, error))
      return false;
    weighted |= file.weight > 0;
  }
  return true;
}

bool Corpus::checkIds(int64_t limit, bool &checked, std::string &error) const {
  int64_t left = checkLimit;
  for (const Shard &shard : shards) {
    const TokenFile &file = shard.tokens;
    left -= file.count;
    if (left < 0) {
      checked = false;
      return true;
    }
    const int64_t at = file.findOutside(0, file.count, 0, limit);
    if (at < 0)
      continue;
    error = outsideText(file, at, limit, "");
    return false;
  }
  return true;
}

std::pair<size_t, int64_t> Corpus::share(int64_t number) const {
  size_t begin = 0, end = shards.size();
  auto weightOf = [&](size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; ++i)
      sum += shards[i].weight;
    return sum;
  };
  while (end - begin > 1) {
    const size_t middle = (begin + end) / 2;
    const double part = weightOf(begin, middle) / weightOf(begin, end);
    // So many of the samples before this one are the first half's.
    auto before = [&](int64_t n) {
      return static_cast<int64_t>(
          std::floor(static_cast<double>(n) * part + 0.5));
    };
    const int64_t first = before(number);
    if (before(number + 1) > first) {
      number = first;
      end = middle;
    } else {
      number -= first;
      begin = middle;
    }
  }
  return {begin, number};
}

int64_t Corpus::sampleAt(int64_t epoch, int64_t index) {
  if (weighted) {
    auto [number, at] = share(epoch * total + index);
    Shard &shard = shards[number];
    const int64_t own = at / shard.samples;
    int64_t sample = at % shard.samples;
    if (shuffle && own != shard.orderEpoch) {
      // Files of one length are not taken in one order.
      shard.order.emplace(shard.samples, seed + number, own);
      shard.orderEpoch = own;
    }
    if (shuffle)
      sample = (*shard.order)(sample);
    return shard.first + sample;
  }
  if (shuffle && epoch != orderEpoch) {
    order.emplace(total, seed, epoch);
    orderEpoch = epoch;
  }
  return shuffle ? (*order)(index) : index;
}

Corpus::Place Corpus::at(int64_t epoch, int64_t index) {
  const int64_t sample = sampleAt(epoch, index);
  auto after = std::upper_bound(
      shards.begin(), shards.end(), sample,
      [](int64_t value, const Shard &shard) { return value < shard.first; });
  const Shard &shard = *std::prev(after);
  return {&shard.tokens, shard.starts ? &*shard.starts : nullptr,
          (sample - shard.first) * length};
}

} // namespace accel::run
