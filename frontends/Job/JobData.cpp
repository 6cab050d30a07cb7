//===- JobData.cpp - data and eval of a job.yaml --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobReader.h"
#include "frontends/Job/TokenFiles.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "runtime/plan/EarlierOutput.h"
#include "runtime/plan/Fields/Job.h"
#include "runtime/plan/NpyHeader.h"
#include "runtime/plan/OutputModel.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

using namespace accel;

namespace {

constexpr int64_t most = int64_t(1) << 40; // keeps products in int64_t

const std::vector<std::string> &dataKeys() {
  static const std::vector<std::string> keys = {
      "tokens",          "text",          "npy",         "arrays",  "dtype",
      "sequence_length", "target_length", "micro_batch", "shuffle", "seed",
      "documents"};
  return keys;
}

/// Keys of the training data alone.
constexpr const char *batchKeys[] = {"split_batches", "drop_last",
                                     "even_batches"};

} // namespace

void JobReader::checkDataFile(const Fields &fields, const char *key,
                              const std::string &path, const DataConfig &data) {
  namespace fs = std::filesystem;
  if (!options.checkFiles)
    return;
  std::error_code failed;
  fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status)) {
    fields.error("file-not-found", key,
                 "no such file: '" + printablePath(path) + "'",
                 "paths are relative to the folder of this file");
    return;
  }
  if (fs::is_directory(status)) {
    fields.error("file-unreadable", key,
                 "'" + printablePath(path) + "' is a folder, not a data file");
    return;
  }
  noteInputFile(path); // by a training, if not by the plan
  const bool training = fields.keyPath(key).starts_with("data.");
  if (data.kind.value == DataKind::Arrays) {
    if (training)
      countRows(path);
    return;
  }
  if (const int64_t bytes = tokenBytes(data)) {
    const uintmax_t size = fs::file_size(path, failed);
    if (!failed && size % uintmax_t(bytes) != 0) {
      fields.error("data-size", key,
                   "'" + printablePath(path) + "' has " + std::to_string(size) +
                       " bytes, which are no whole number of " +
                       std::to_string(bytes) + "-byte tokens",
                   "check data.dtype");
      return;
    }
  } else if (const std::string problem = listProblem(path, "tokens");
             !problem.empty()) {
    fields.error("invalid-value", key, problem,
                 "save them as one list of integers, in the order in which "
                 "they are read");
    return;
  }
  const std::optional<int64_t> tokens = tokensIn(path, data);
  if (!tokens)
    return;
  if (training)
    countTokens(*tokens, data);
  // n = (T - 1) / L samples.
  if (const std::string problem =
          tooFewTokens(path, *tokens, data.sequenceLength->value_or(1));
      !problem.empty())
    fields.error("data-size", key, problem);
}

void JobReader::countTokens(int64_t tokens, const DataConfig &data) {
  // Samples do not go on from one file to the next.
  if (data.files.empty())
    dataTokens = tokens;
  else if (data.sequenceLength->has_value())
    dataRows = dataRows.value_or(0) +
               std::max<int64_t>(tokens - 1, 0) / **data.sequenceLength;
}

void JobReader::countRows(const std::string &path) {
  std::string why; // accel-run says it, and reads the elements
  const auto header = plan::readNpyHeader(path, why);
  if (header && !header->shape.empty())
    dataRows = std::min(dataRows.value_or(most), header->shape[0]);
}

void JobReader::readArrays(const Fields &fields, DataConfig &data) {
  std::optional<Fields> arrays = fields.mapping("arrays");
  if (!arrays)
    return;
  data.kind.value = DataKind::Arrays;
  for (const yaml::Entry &entry : arrays->mappingNode().entries) {
    const std::string &name = entry.key->text;
    Setting<std::string> path;
    arrays->pathTo(name.c_str(), path);
    if (!path.written())
      continue;
    if (!path->ends_with(".npy"))
      arrays->error("invalid-value", name.c_str(),
                    "arrays are .npy files, this is '" +
                        printablePath(path.value) + "'");
    else
      checkDataFile(*arrays, name.c_str(), path.value, data);
    data.arrays.emplace(name, std::move(path));
  }
  if (data.arrays.empty() && !engine.hasErrors())
    fields.error("missing-key", "arrays", "arrays names no array",
                 "write arrays: {input_ids: FILE.npy, labels: FILE.npy}");
}

void JobReader::readSource(const Fields &fields, DataConfig &data) {
  fields.integer("sequence_length", data.sequenceLength, 1, 1 << 30);
  fields.integer("target_length", data.targetLength, 1, 1 << 30);
  fields.integer("micro_batch", data.microBatch, 1, 1 << 30);
  fields.flag("shuffle", data.shuffle);
  fields.integer("seed", data.seed, 0, most);
  fields.choice("dtype", data.dtype, {"uint16", "uint32", "int32", "int64"});

  constexpr std::pair<const char *, DataKind> kinds[] = {
      {"tokens", DataKind::Tokens},
      {"text", DataKind::Text},
      {"npy", DataKind::Npy},
      {"arrays", DataKind::Arrays}};
  const char *chosen = nullptr;
  for (auto [key, kind] : kinds) {
    if (!fields.find(key))
      continue;
    if (chosen) {
      fields.error("invalid-value", key,
                   std::string("data is given twice, as '") + chosen +
                       "' and as '" + key + "'",
                   "keep one of them", true);
      return;
    }
    chosen = key;
    data.kind = {kind, Origin::Written, fields.keyPath(key), fields.locate(key),
                 ""};
  }
  if (!chosen) {
    fields.errorHere("missing-key", "the data names no file",
                     "write tokens: FILE, text: FILE, npy: FILE or arrays: "
                     "{...}");
    return;
  }
  if (data.kind.value == DataKind::Arrays) {
    readArrays(fields, data);
  } else {
    readFiles(fields, chosen, data);
  }
  readDocuments(fields, data);
  if (data.dtype.written() && data.kind.value != DataKind::Tokens)
    fields.error("invalid-value", "dtype",
                 std::string("dtype is for raw token files; ") +
                     toString(data.kind.value) + " data has its own",
                 "remove it", true);
}

void JobReader::readBatches(const Fields &fields, DataConfig &data) {
  fields.flag("split_batches", data.splitBatches);
  fields.flag("drop_last", data.dropLast);
  fields.flag("even_batches", data.evenBatches);
  const bool weighted =
      std::any_of(data.files.begin(), data.files.end(),
                  [](const auto &file) { return file.weight.written(); });
  const char *ends = data.dropLast.value      ? "drop_last"
                     : data.evenBatches.value ? "even_batches"
                                              : nullptr;
  if (weighted && ends)
    fields.error("invalid-value", ends,
                 "files with weights are read in epochs of their own, so that "
                 "their mixture has no epoch that " +
                     std::string(ends) + " could end",
                 "remove it, or the weights", true);
  if (data.evenBatches.written() && !data.evenBatches.value &&
      !data.dropLast.value)
    fields.report(Severity::Error, notSupportedCode, "even_batches",
                  "even_batches: false gives ranks batches of different "
                  "sizes, and a plan has one",
                  "write true, which repeats samples, or drop_last: true");
}

void JobReader::splitBatches(JobConfig &job) {
  if (!job.data.splitBatches.value || !job.data.microBatch.value)
    return;
  const plan::Mesh &mesh = *job.accelerate.mesh;
  const int64_t ranks = mesh.size("dp_shard") * mesh.size("dp_replicate");
  Setting<std::optional<int64_t>> &whole = job.data.microBatch;
  if (*whole.value % ranks != 0) {
    top.mapping("data")->error(
        "invalid-value", "micro_batch",
        "with split_batches the " + std::to_string(ranks) +
            " data-parallel ranks share micro_batch, and " +
            std::to_string(*whole.value) + " cannot be divided by them",
        "write a multiple of " + std::to_string(ranks));
    return;
  }
  const bool same = !job.eval.data.microBatch.written() ||
                    job.eval.data.microBatch.value == whole.value;
  whole.value = *whole.value / ranks;
  whole.why = "micro_batch / data-parallel ranks (split_batches)";
  if (!same)
    return;
  job.eval.data.microBatch = whole;
  job.eval.data.microBatch.origin = Origin::Derived; // --micro-batch is its too
}

void JobReader::readData(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("data");
  if (!fields) {
    if (!top.find("data"))
      top.error("missing-key", "data", "data is missing",
                "write data: {tokens: FILE, dtype: uint16, sequence_length: "
                "1024, micro_batch: 1}");
    return;
  }
  std::vector<std::string> keys = dataKeys();
  keys.insert(keys.end(), std::begin(batchKeys), std::end(batchKeys));
  fields->checkKeys(keys);
  readSource(*fields, job.data);
  readBatches(*fields, job.data);
}

void JobReader::checkSamples(const JobConfig &job) {
  const DataConfig &data = job.data;
  const bool counted =
      dataRows || (dataTokens && data.sequenceLength->has_value());
  if (!counted || !data.microBatch->has_value())
    return;
  const int64_t samples =
      dataRows ? *dataRows : (*dataTokens - 1) / **data.sequenceLength;
  const plan::Mesh &mesh = *job.accelerate.mesh;
  const int64_t ranks = mesh.size("dp_shard") * mesh.size("dp_replicate");
  int64_t together = 0, step = 0;
  if (samples < 1 ||
      __builtin_mul_overflow(**data.microBatch, ranks, &together) ||
      __builtin_mul_overflow(together, *job.accumulation, &step) ||
      samples >= step)
    return;
  if (data.dropLast.value && samples < together)
    return top.mapping("data")->error(
        "invalid-value", "drop_last",
        "the data has " + std::to_string(samples) + " sample" +
            (samples == 1 ? "" : "s") + ", and a micro-batch on each of " +
            std::to_string(ranks) + " ranks takes " + std::to_string(together) +
            ": drop_last leaves nothing",
        "give more data, a smaller micro_batch, or even_batches: true, which "
        "repeats samples");
  top.mapping("data")->report(
      Severity::Warning, "few-samples", "micro_batch",
      "the data has " + std::to_string(samples) + " sample" +
          (samples == 1 ? "" : "s") + " and a step takes " +
          std::to_string(step) + ": samples are repeated within a step",
      dataRows ? "give more data, or a smaller micro_batch"
               : "shorten sequence_length, or give more "
                 "data");
}

void JobReader::readEval(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("eval");
  if (!fields)
    return;
  std::vector<std::string> keys = dataKeys();
  for (const char *key : {"every", "batches", "metrics", "predictions"})
    keys.emplace_back(key);
  fields->checkKeys(keys);
  EvalConfig &eval = job.eval;
  eval.present = true;
  // Lengths, and the dtype of raw tokens, are the training data's unless given.
  auto inherit = [](auto &setting, const auto &from) {
    setting = from;
    setting.origin = Origin::Derived;
    setting.why = "as in data";
  };
  inherit(eval.data.sequenceLength, job.data.sequenceLength);
  inherit(eval.data.targetLength, job.data.targetLength);
  inherit(eval.data.microBatch, job.data.microBatch);
  inherit(eval.data.dtype, job.data.dtype);
  inherit(eval.data.endOfDocument, job.data.endOfDocument);
  readSource(*fields, eval.data);
  noteDocuments(job);
  fields->integer("every", eval.every, 0, most);
  fields->integer("batches", eval.batches, 0, most);
  fields->pathTo("predictions", eval.predictions);
  readMetrics(*fields, eval);
  if (eval.every.value == 0)
    fields->report(Severity::Note, "default-eval-every", "every",
                   "the model is evaluated once, at the end of the run",
                   "write every: STEPS to evaluate it during the run as well",
                   true);
  if (eval.batches.value > 0)
    return;
  // All of the data is no mixture.
  for (DataFileConfig &file : eval.data.files) {
    if (!file.weight.written())
      continue;
    if (&file == &eval.data.files.front())
      fields->report(Severity::Warning, "ignored-key",
                     toString(eval.data.kind.value),
                     "weights have no effect without eval.batches: each sample "
                     "of each file is evaluated once",
                     "write batches: N to evaluate the mixture, or remove the "
                     "weights",
                     true);
    file.weight = {};
  }
}

void JobReader::checkPredictions(const JobConfig &job) {
  namespace fs = std::filesystem;
  const Setting<std::string> &predictions = job.eval.predictions;
  if (!predictions.written() || !options.checkFiles)
    return;
  const fs::path path = predictions.value;
  const std::string name = "'" + printablePath(path.string()) + "'";
  auto refuse = [&](const std::string &what) {
    top.mapping("eval")->error("predictions-file", "predictions", what,
                               "write a file of its own, such as predictions: "
                               "predictions.jsonl");
  };
  std::error_code failed;
  if (fs::is_directory(path, failed))
    return refuse(name + " is a folder, not a file");
  if (!plan::mayHoldPredictions(path))
    return refuse("the predictions would replace " + name +
                  ", which no evaluation has written");
  const fs::path folder = job.checkpoint.dir.value;
  if (folder.empty())
    return;
  if (plan::isWithin(folder, path))
    return refuse(name + " is the folder of checkpoints");
  const std::string own = plan::ownName(path, folder);
  if (own.empty())
    return;
  const bool isItself =
      plan::canonicalPath(path) == plan::canonicalPath(folder / own);
  refuse(std::string("the predictions would be ") + (isItself ? "" : "in ") +
         "'" + own + "' of the folder of checkpoints, which the run replaces");
}

void JobReader::noteDocuments(const JobConfig &job) {
  const DataConfig &data = job.eval.data;
  if (data.kind.value != DataKind::None &&
      data.kind.value != DataKind::Arrays && !data.hasDocuments() &&
      job.data.hasDocuments())
    top.report(Severity::Note, "eval-documents", "eval",
               "the documents of eval's files are not separated: "
               "documents.starts of data are positions in its own files",
               "write documents: {starts: FILE.npy}, or {eos: ID}, in eval",
               true);
}

void JobReader::readMetrics(const Fields &fields, EvalConfig &eval) {
  const yaml::Entry *entry = fields.find("metrics");
  if (!entry)
    return;
  const auto known = [](const yaml::Node &item) {
    return item.isString() &&
           std::find(std::begin(plan::metricNames), std::end(plan::metricNames),
                     item.text) != std::end(plan::metricNames);
  };
  bool good = entry->value->isSequence() && !entry->value->items.empty();
  for (const yaml::Node *item : entry->value->items) {
    good &= known(*item);
    eval.metrics.value.push_back(item->text);
  }
  if (!good) {
    fields.error("invalid-value", "metrics",
                 fields.keyPath("metrics") +
                     " must be a list of accuracy and perplexity, this is " +
                     yaml::shortText(*entry->value),
                 "write metrics: [accuracy]");
    eval.metrics.value.clear();
    return;
  }
  eval.metrics.origin = Origin::Written;
  eval.metrics.key = fields.keyPath("metrics");
  eval.metrics.at = fields.locate("metrics");
}
