//===- MeshWords.cpp - How a measured run's ranks are divided -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RowWords.h"
#include "passes/Validate/TextWords.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace accel::validate {

namespace {

using Names = std::initializer_list<const char *>;

bool letter(char c) { return c >= 'a' && c <= 'z'; }

bool startsAt(const std::string &text, size_t at, const char *word) {
  return text.compare(at, std::strlen(word), word) == 0;
}

/// The number that begins at `at`, whose end is left there.
std::optional<int64_t> number(const std::string &text, size_t &at) {
  const size_t begin = at;
  while (at < text.size() && digit(text[at]))
    ++at;
  if (at == begin || at - begin > 6)
    return std::nullopt;
  return std::strtoll(text.c_str() + begin, nullptr, 10);
}

/// The degree behind a name that ends at `at`: "8", "=8", " size of 8".
std::optional<int64_t> degreeBehind(const std::string &text, size_t at) {
  auto skip = [&](const char *word) {
    const bool there = startsAt(text, at, word);
    at += there ? std::strlen(word) : 0;
    return there;
  };
  skip("ism");
  while (skip(" ") || skip("=") || skip("(") || skip("size") ||
         skip("degree") || skip("of") || skip("is"))
    ;
  const bool loose = at > 0 && text[at - 1] == ' ';
  const std::optional<int64_t> value = number(text, at);
  if (!value || startsAt(text, at, " bit"))
    return std::nullopt;
  // "fsdp 8 way tp", "fsdp 4 nodes": the number is of what follows.
  for (const char *unit : {" way", " mixed", " node"})
    if (loose && startsAt(text, at, unit))
      return std::nullopt;
  // "1f1b" and "2x4" are no degrees; those of "tp8pp2" and "tp8xpp2" are.
  if (at + 1 < text.size() && text[at] == 'x' && letter(text[at + 1]))
    ++at;
  const Names axes = {"tp",  "pp",  "cp",  "ep", "dp",  "sp",
                      "vpp", "etp", "edp", "vp", "fsdp"};
  if (at < text.size() && letter(text[at]) &&
      std::none_of(
          axes.begin(), axes.end(),
          [&](const char *axis) { return startsAt(text, at, axis); }))
    return std::nullopt;
  return value;
}

/// Of "8 way tp", where `before` is "8 way ".
std::optional<int64_t> degreeBefore(const std::string &before) {
  if (!before.ends_with(" way "))
    return std::nullopt;
  size_t begin = before.size() - std::strlen(" way ");
  while (begin > 0 && digit(before[begin - 1]))
    --begin;
  return number(before, begin);
}

/// What stands with one of `names` that `other` does not precede.
AxisWords axisWords(const std::string &text, Names names,
                    const char *other = nullptr) {
  AxisWords words;
  for (const char *name : names)
    for (size_t at = text.find(name); at != text.npos;
         at = text.find(name, at + 1)) {
      const size_t end = at + std::strlen(name);
      const std::string before = text.substr(0, at);
      // The x of "tp8xpp2" joins two axes.
      const bool times = at > 1 && text[at - 1] == 'x' && digit(text[at - 2]);
      if ((at > 0 && letter(text[at - 1]) && !times) ||
          (other && before.ends_with(other)))
        continue;
      std::optional<int64_t> degree = degreeBehind(text, end);
      if (!degree)
        degree = degreeBefore(before);
      const bool whole = end >= text.size() || !letter(text[end]) ||
                         startsAt(text, end, "ism");
      if (!degree && !whole)
        continue;
      if (degree == 0 || isRefused(text, at, end)) {
        words.refused = true;
        continue;
      }
      words.named = true;
      if (!words.degree)
        words.degree = degree;
    }
  return words;
}

/// "hsdp 2x4": replicas, and the shards of each.
void readGroups(const std::string &text, MeshWords &words) {
  for (const char *name : {"hsdp", "hybrid shard", "hybrid sharding"}) {
    size_t at = text.find(name);
    if (at == text.npos)
      continue;
    at += std::strlen(name);
    while (startsAt(text, at, " ") || startsAt(text, at, "=") ||
           startsAt(text, at, "("))
      ++at;
    const std::optional<int64_t> replicas = number(text, at);
    if (!replicas || !startsAt(text, at, "x"))
      continue;
    const std::optional<int64_t> shards = number(text, ++at);
    if (!shards)
      continue;
    words.replicas = replicas;
    words.shards = shards;
    return;
  }
  words.replicas = axisWords(text, {"replicate"}).degree;
  // "fsdp 2" is a version, and a count of 2 has an equals sign.
  if (const auto ranks = axisWords(text, {"fsdp"}).degree; ranks > 2)
    words.shards = ranks;
  if (const auto ranks = axisWords(text, {"shard"}).degree;
      ranks > 2 || words.replicas)
    words.shards = ranks ? ranks : words.shards;
  for (const char *key : {"fsdp2=", "fsdp1=", "fsdp=", "full shard="})
    if (size_t at = text.find(key); at != text.npos) {
      at += std::strlen(key);
      words.shards = number(text, at);
    }
  if (const auto shards = axisWords(text, {"dp shard"}).degree)
    words.shards = shards;
}

} // namespace

bool isRefused(const std::string &text, size_t begin, size_t end) {
  const std::string before = text.substr(0, begin);
  for (const char *no : {"no ", "not ", "non ", "without ", "w/o "})
    if (before.ends_with(no))
      return true;
  if (startsAt(text, end, "ism"))
    end += 3;
  bool joined = false; // "=no"; a word of its own begins another phrase
  while (end < text.size() && std::strchr(" =(:", text[end]))
    joined |= text[end++] != ' ';
  auto isNext = [&](const char *word) {
    const size_t behind = end + std::strlen(word);
    return startsAt(text, end, word) &&
           (behind >= text.size() || !letter(text[behind]));
  };
  return isNext("false") || isNext("off") || isNext("disabled") ||
         (joined && (isNext("no") || isNext("none")));
}

std::string plainSeparators(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '_' || c == '-' || c == '\t')
      c = ' ';
    if (c == ':')
      c = '=';
    while (c == '=' && !result.empty() && result.back() == ' ')
      result.pop_back();
    if (c != ' ' ||
        (!result.empty() && result.back() != ' ' && result.back() != '='))
      result += c;
  }
  return result;
}

MeshWords meshWords(const std::string &framework, const std::string &sharding) {
  const std::string own = plainSeparators(sharding);
  const std::string text = own + " ; " + plainSeparators(framework);
  MeshWords words;
  words.tensor = axisWords(
      text, {"tp", "tensor parallel", "tensor model parallel"}, "expert ");
  words.context = axisWords(text, {"cp", "context parallel"});
  words.stages = axisWords(
      text, {"pp", "pipeline parallel", "pipeline model parallel"}, "virtual ");
  words.experts =
      axisWords(text, {"ep", "expert parallel", "expert model parallel"});
  words.expertTensor = axisWords(
      text, {"etp", "expert tensor parallel", "expert tensor model parallel"});
  words.chunks =
      axisWords(text, {"vp", "vpp", "virtual pipeline parallel",
                       "virtual pipeline model parallel", "virtual pipeline",
                       "virtual stages", "virtual stage", "virtual chunks",
                       "model chunks", "interleaved", "interleave"});
  words.sequence = axisWords(text, {"sp", "sequence parallel"});
  const AxisWords optimizer = axisWords(
      text, {"dist opt", "dist optim", "dist optimizer", "distopt",
             "distributed opt", "distributed optim", "distributed optimizer",
             "distributed optimiser", "distributedoptimizer"});
  words.zeroStage = zeroStage(own, /*named=*/true);
  if (optimizer.named)
    words.distributedOptimizer = true;
  else if (optimizer.refused)
    words.distributedOptimizer = false;
  else if (words.zeroStage)
    words.distributedOptimizer = *words.zeroStage > 0;
  readGroups(own, words);
  return words;
}

std::string takeDegree(const AxisWords &words, const char *axis,
                       const char *column, std::optional<int64_t> &degree) {
  if (!words.named)
    return "";
  const std::string name = std::string(axis) + " parallelism";
  if (!words.degree)
    return degree.value_or(1) > 1 ? ""
                                  : "the degree of " + name + " is not stated";
  if (degree && *degree != *words.degree)
    return name + " of " + std::to_string(*words.degree) + " is not the " +
           std::to_string(*degree) + " of the column " + column;
  degree = words.degree;
  return "";
}

} // namespace accel::validate
