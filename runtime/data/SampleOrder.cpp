//===- SampleOrder.cpp - What says which samples come when ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/SampleOrder.h"

#include "runtime/data/Resolve.h"

#include <charconv>
#include <set>

namespace accel::run {

namespace fs = std::filesystem;

namespace {

constexpr const char *epochKey = "samples of an epoch";

std::string shown(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  return std::string(digits, end.ptr);
}

/// "a.bin of 4002 bytes".
std::string fileText(const std::string &path, const std::string &baseDir) {
  const fs::path file(resolvePath(path, baseDir));
  std::error_code code;
  const uintmax_t bytes = fs::file_size(file, code);
  return file.filename().string() +
         (code ? "" : " of " + std::to_string(bytes) + " bytes");
}

/// One file with documents' starts is a list of one.
std::string fileKey(const plan::Data &data, size_t i) {
  return data.files.size() == 1 ? "file" : "file " + std::to_string(i + 1);
}

} // namespace

SampleOrder sampleOrder(const plan::Job &job, const std::string &baseDir,
                        int64_t epochSamples) {
  const plan::Data &data = job.data;
  SampleOrder order;
  if (data.kind != "arrays") // rows of arrays have their own length
    order["sequence_length"] = std::to_string(job.sequenceLength);
  if (data.kind == "tokens")
    order["dtype"] = data.dtype;
  order["shuffle"] = data.shuffle ? "true" : "false";
  if (data.shuffle)
    order["seed"] = std::to_string(data.seed);
  if (data.endOfDocument >= 0)
    order["documents.eos"] = std::to_string(data.endOfDocument);
  if (!data.epochEnd.empty())
    order[data.epochEnd == "drop" ? "drop_last" : "even_batches"] = "true";
  if (epochSamples > 0)
    order[epochKey] = std::to_string(epochSamples);
  order.merge(dataFiles(data, baseDir));
  for (size_t i = 0; i < data.files.size(); ++i)
    if (data.files[i].weight > 0)
      order["weight of " + fileKey(data, i)] = shown(data.files[i].weight);
  return order;
}

SampleOrder dataFiles(const plan::Data &data, const std::string &baseDir) {
  SampleOrder files;
  if (!data.path.empty())
    files["file"] = fileText(data.path, baseDir);
  for (size_t i = 0; i < data.files.size(); ++i) {
    const plan::DataFile &file = data.files[i];
    const std::string key = fileKey(data, i);
    files[key] = fileText(file.path, baseDir);
    if (!file.starts.empty())
      files["documents.starts of " + key] = fileText(file.starts, baseDir);
  }
  for (const auto &[input, path] : data.arrays)
    files["arrays." + input] = fileText(path, baseDir);
  return files;
}

std::vector<std::string> differences(const SampleOrder &checkpoint,
                                     const SampleOrder &plan) {
  std::vector<std::string> found;
  if (checkpoint.empty())
    return found;
  std::set<std::string> keys;
  for (const SampleOrder *order : {&checkpoint, &plan})
    for (const auto &[key, value] : *order)
      keys.insert(key);
  auto valueOf = [](const SampleOrder &order, const std::string &key) {
    const auto at = order.find(key);
    return at == order.end() ? std::string() : at->second;
  };
  for (const std::string &key : keys) {
    const std::string then = valueOf(checkpoint, key);
    const std::string now = valueOf(plan, key);
    if (then == now)
      continue;
    const std::string ending = ": data does not continue where it stood";
    // The job's key tells where one has none; older checkpoints have none.
    if (key == epochKey) {
      if (!then.empty() && !now.empty())
        found.push_back("an epoch of the checkpoint's data had " + then +
                        " samples, the plan's has " + now + ending);
    } else if (key == "sequence_length" && !then.empty() && !now.empty()) {
      found.push_back("the checkpoint's samples had " + then +
                      " tokens, the plan's have " + now + ending);
    } else {
      found.push_back("the checkpoint's data had " +
                      (then.empty() ? "no " + key : key + " " + then) +
                      ", the plan's has " +
                      (now.empty() ? "no " + key : key + " " + now) + ending);
    }
  }
  return found;
}

} // namespace accel::run
