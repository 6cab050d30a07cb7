//===- Evaluation.cpp - What a model is worth so far ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Evaluation.h"

#include "runtime/checkpoint/Files.h"
#include "runtime/collectives/StopSignal.h"
#include "runtime/data/Resolve.h"

#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace accel::run {

Evaluation::Evaluation(const Input &input, Executor &executor, Buffers &buffers,
                       LineLock *lock)
    : job(input.plan.job), executor(executor), buffers(buffers),
      data(openData(input, true)),
      // The loss of a .pt2 need not ignore any label.
      hasLabels(input.archive.empty() && data.has("labels") &&
                data.load("labels", 0).scalar_type() == at::kLong),
      lock(lock) {
  checkLabels();
  if (!isMixture() && job.evalBatches > allBatches() &&
      executor.groups().rank() == 0)
    std::fprintf(stderr,
                 "accel-run: note: eval.batches is %lld, and %lld evaluate all "
                 "of the %lld samples: no sample is evaluated twice\n",
                 static_cast<long long>(job.evalBatches),
                 static_cast<long long>(allBatches()),
                 static_cast<long long>(data.samples()));
  if (!job.evalPredictions.empty())
    predictions = resolvePath(job.evalPredictions, input.baseDir);
  if (job.sampling.count == 0)
    return;
  if (job.evalData.kind == "text") {
    vocabulary = Vocabulary::ofBytes();
    return;
  }
  std::string why;
  vocabulary = Vocabulary::read(
      (std::filesystem::path(input.modelPath) / "tokenizer.json").string(),
      why);
  if (!vocabulary && executor.groups().rank() == 0)
    std::fprintf(stderr, "accel-run: note: samples are token ids: %s\n",
                 why.c_str());
}

bool Evaluation::isMixture() const {
  return std::any_of(
      job.evalData.files.begin(), job.evalData.files.end(),
      [](const plan::DataFile &file) { return file.weight > 0; });
}

int64_t Evaluation::allBatches() const {
  const int64_t together = job.microBatch * executor.groups().mesh().dataSize();
  return (data.samples() + together - 1) / together;
}

int64_t Evaluation::batches() const {
  if (isMixture() && job.evalBatches > 0)
    return job.evalBatches;
  return job.evalBatches == 0 ? allBatches()
                              : std::min(job.evalBatches, allBatches());
}

int64_t Evaluation::ownRows(int64_t k) const {
  if (isMixture())
    return job.microBatch;
  return std::clamp<int64_t>(data.samples() - k * job.microBatch, 0,
                             job.microBatch);
}

at::Tensor Evaluation::loadLabels(int64_t k) {
  at::Tensor tensor = data.load("labels", k);
  auto *labels = tensor.mutable_data_ptr<int64_t>();
  const int64_t each = tensor.numel() / job.microBatch;
  std::fill(labels + ownRows(k) * each, labels + tensor.numel(), ignoredLabel);
  return tensor;
}

void Evaluation::checkLabels() {
  if (!hasLabels)
    return;
  const int64_t count = batches() * executor.groups().mesh().dataSize();
  // Mostly the first one has some.
  for (int64_t k = 0; k < count; ++k) {
    const at::Tensor tensor = loadLabels(k);
    const auto *labels = tensor.const_data_ptr<int64_t>();
    if (std::any_of(labels, labels + tensor.numel(),
                    [](int64_t label) { return label != ignoredLabel; }))
      return;
  }
  throw InputError("eval: all labels that are evaluated are " +
                   std::to_string(ignoredLabel) +
                   ", which the loss ignores, so that it has no value; give "
                   "data with labels, or leave eval out");
}

Evaluation::Batch Evaluation::evaluate(int64_t k, std::optional<int64_t> row) {
  Batch batch;
  batch.result = executor.evaluate([&](const std::string &name) {
    if (buffers.has(name))
      return buffers.load(name);
    if (hasLabels && name == "labels") {
      at::Tensor tensor = loadLabels(k);
      const auto *labels = tensor.const_data_ptr<int64_t>();
      batch.labels.assign(labels, labels + tensor.numel());
      return tensor;
    }
    at::Tensor tensor = data.load(name, k);
    for (int64_t at = 0; row && at < job.microBatch; ++at)
      if (at != *row)
        tensor.select(0, at).copy_(tensor.select(0, *row));
    return tensor;
  });
  return batch;
}

Evaluation::Loss Evaluation::lossOfSamples(int64_t k, bool filled) {
  Loss loss;
  auto add = [&](const EvalResult &result, int64_t rows) {
    // Other stages of a pipeline have no loss.
    if (!result.hasLoss || rows == 0)
      return;
    loss.sum += result.loss * static_cast<double>(rows);
    loss.weight += static_cast<double>(rows);
  };
  if (!filled)
    add(evaluate(k).result, job.microBatch);
  // The mean of equal rows is the loss of one. All ranks take part in each.
  for (int64_t row = 0; filled && row < job.microBatch; ++row)
    add(evaluate(k, row).result, row < ownRows(k) ? 1 : 0);
  return loss;
}

bool Evaluation::isAsked() {
  if (stopped || --untilAgreed > 0)
    return stopped != 0;
  const double now = hostSeconds();
  std::vector<double> none;
  std::vector<double> maxima = {static_cast<double>(stopAsked()),
                                now - agreedAt};
  executor.groups().combine(none, maxima);
  stopped = static_cast<int>(maxima[0]);
  constexpr double together = 1; // seconds
  const double each = std::max(maxima[1], 1e-6) /
                      static_cast<double>(std::max<int64_t>(interval, 1));
  interval = std::clamp<int64_t>(static_cast<int64_t>(together / each), 1,
                                 std::max<int64_t>(4 * interval, 1));
  untilAgreed = interval;
  agreedAt = now;
  return stopped != 0;
}

std::optional<EvalRecord> Evaluation::run(int64_t step) {
  Groups &groups = executor.groups();
  const Mesh &mesh = groups.mesh();
  double loss = 0, weight = 0, right = 0, counted = 0;
  const int64_t together = job.microBatch * mesh.dataSize();
  untilAgreed = 1;
  interval = 0; // nothing is evaluated since
  agreedAt = hostSeconds();
  for (int64_t i = 0; i < batches(); ++i) {
    if (isAsked())
      return std::nullopt;
    const int64_t k = i * mesh.dataSize() + mesh.dataIndex();
    if (!hasLabels) {
      const Loss samples =
          lossOfSamples(k, !isMixture() && (i + 1) * together > data.samples());
      loss += samples.sum;
      weight += samples.weight;
      continue;
    }
    const Batch batch = evaluate(k);
    // Other stages of a pipeline have no loss.
    if (!batch.result.hasLoss)
      continue;
    double labels = 0;
    for (size_t at = 0; at < batch.labels.size(); ++at) {
      if (batch.labels[at] == ignoredLabel)
        continue;
      ++labels;
      if (at < batch.result.predictions.size())
        right += batch.result.predictions[at] == batch.labels[at];
    }
    counted += labels;
    // The mean of no label is not a number.
    if (labels > 0)
      loss += batch.result.loss * labels;
    weight += labels;
    if (!predictions.empty())
      writePredictions(step, i, batch);
  }
  std::vector<double> sums = {loss, weight, right, counted}, maxima;
  groups.combine(sums, maxima);
  EvalRecord record;
  record.loss = sums[0] / sums[1];
  for (const std::string &metric : job.evalMetrics)
    if (metric == "accuracy")
      record.accuracy = sums[2] / sums[3];
    else if (metric == "perplexity")
      record.perplexity = std::exp(record.loss);
  if (job.sampling.count > 0)
    record.samples = sample();
  if (stopped)
    return std::nullopt;
  return record;
}

void Evaluation::writePredictions(int64_t step, int64_t number,
                                  const Batch &batch) {
  Groups &groups = executor.groups();
  std::vector<double> values(batch.labels.begin(), batch.labels.end());
  values.insert(values.end(), batch.result.predictions.begin(),
                batch.result.predictions.end());
  const std::vector<double> all = groups.gather(values);
  if (groups.rank() != 0)
    return;
  std::string lines;
  const size_t each = batch.labels.size() / job.microBatch;
  for (int64_t rank = 0; rank < groups.size(); ++rank)
    for (int64_t row = 0; row < job.microBatch; ++row) {
      const int64_t k = number * groups.size() + rank;
      if (row >= ownRows(k))
        continue;
      const double *labels = &all[rank * values.size() + row * each];
      const double *said = labels + batch.labels.size();
      auto listed = [&](const double *from) -> nlohmann::ordered_json {
        const std::vector<int64_t> list(from, from + each);
        if (each == 1)
          return list.front();
        return list;
      };
      lines += nlohmann::ordered_json{{"step", step},
                                      {"sample", data.sampleOf(k, row)},
                                      {"label", listed(labels)},
                                      {"prediction", listed(said)}}
                   .dump() +
               "\n";
    }
  std::string wrong;
  try {
    // As of the log, lines of steps that are taken again go.
    if (!predicted)
      predicted.emplace(predictions,
                        doneSteps > 0 ? std::optional(doneSteps) : std::nullopt,
                        lock);
    wrong = predicted->append(lines);
    if (const std::string late = predicted->close(); wrong.empty())
      wrong = late;
  } catch (const FileError &error) {
    wrong = error.what();
  }
  // Hours of training are worth more than a line, as of the log.
  if (!wrong.empty() && !complained) {
    std::fprintf(stderr,
                 "accel-run: warning: %s; training goes on, and predictions "
                 "are missing\n",
                 wrong.c_str());
    complained = true;
  }
}

std::vector<std::vector<int64_t>> Evaluation::continued(int64_t first) {
  const int64_t rows = job.microBatch, length = job.sequenceLength;
  const int64_t prompt = job.sampling.promptTokens;
  // Micro-batches of this size begin at multiples of it.
  at::Tensor ids = data.load("input_ids", first / rows).clone();
  for (int64_t row = 0; row < rows; ++row)
    ids.select(0, row).narrow(0, prompt, length - prompt).zero_();
  auto *tokens = ids.mutable_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> texts(rows);
  for (int64_t row = 0; row < rows; ++row)
    texts[row].assign(tokens + row * length, tokens + row * length + prompt);
  for (int64_t i = 0; i < job.sampling.newTokens; ++i) {
    if (isAsked())
      return {};
    const EvalResult said = executor.evaluate([&](const std::string &name) {
      if (buffers.has(name))
        return buffers.load(name);
      if (name == "input_ids")
        return ids.clone();
      at::Tensor zeros = at::zeros_like(ids);
      // One document from the start.
      if (name == "position_ids")
        for (int64_t at = 0; at < ids.numel(); ++at)
          zeros.mutable_data_ptr<int64_t>()[at] = at % length;
      return zeros;
    });
    const int64_t last = prompt + i - 1;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t next = said.predictions.at(row * length + last);
      texts[row].push_back(next);
      if (last + 1 < length)
        tokens[row * length + last + 1] = next;
    }
  }
  return texts;
}

std::vector<SampleRecord> Evaluation::sample() {
  Groups &groups = executor.groups();
  const int64_t rows = job.microBatch, ranks = groups.size();
  const plan::Sampling &sampling = job.sampling;
  const size_t prompt = sampling.promptTokens;
  std::vector<SampleRecord> records;
  for (int64_t first = 0; first < sampling.count; first += rows * ranks) {
    std::vector<double> own;
    for (const auto &text : continued(first + groups.rank() * rows))
      own.insert(own.end(), text.begin(), text.end());
    if (stopped)
      return {};
    const std::vector<double> all = groups.gather(own);
    const size_t each = prompt + sampling.newTokens;
    for (size_t at = 0; at < all.size(); at += each) {
      if (static_cast<int64_t>(records.size()) == sampling.count)
        break;
      SampleRecord &record = records.emplace_back();
      record.prompt.assign(all.begin() + at, all.begin() + at + prompt);
      record.tokens.assign(all.begin() + at + prompt, all.begin() + at + each);
      if (vocabulary) {
        record.promptText = vocabulary->decode(record.prompt);
        record.text = vocabulary->decode(record.tokens);
      }
    }
  }
  return records;
}

} // namespace accel::run
