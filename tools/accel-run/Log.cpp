//===- Log.cpp - What a run says while it trains --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Log.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>

namespace accel::run {

void LineSteps::add(double loss, bool skipped) {
  all.sum += loss;
  ++all.steps;
  if (!skipped) {
    taken.sum += loss;
    ++taken.steps;
  }
}

double LineSteps::meanLoss() const {
  const Losses &losses = taken.steps > 0 ? taken : all;
  return losses.sum / static_cast<double>(losses.steps);
}

static void addTo(nlohmann::ordered_json &json, const EvalRecord &eval) {
  json["eval_loss"] = eval.loss;
  if (eval.accuracy)
    json["eval_accuracy"] = *eval.accuracy;
  if (eval.perplexity)
    json["eval_perplexity"] = *eval.perplexity;
  // Anew in a line that has them already: a run that is killed before its next
  // checkpoint evaluates again.
  json.erase("samples");
  for (const SampleRecord &sample : eval.samples) {
    nlohmann::ordered_json text = {{"prompt_ids", sample.prompt},
                                   {"ids", sample.tokens}};
    if (sample.text) {
      text["prompt"] = *sample.promptText;
      text["text"] = *sample.text;
    }
    json["samples"].push_back(std::move(text));
  }
}

std::string toJsonLine(const StepRecord &record) {
  // nlohmann writes numbers that are not finite as null.
  nlohmann::ordered_json json = {{"step", record.step},
                                 {"loss", record.loss},
                                 {"grad_norm", nullptr},
                                 {"lr", record.lr},
                                 {"tokens_per_s", record.tokensPerSecond},
                                 {"step_s", record.seconds},
                                 {"peak_bytes", record.peakBytes}};
  if (record.gradNorm)
    json["grad_norm"] = *record.gradNorm;
  if (record.skipped > 0) {
    json["skipped"] = true;
    json["skipped_steps"] = record.skipped;
  }
  if (record.eval)
    addTo(json, *record.eval);
  return json.dump();
}

/// What the end of a line says of the skipped ones among its steps.
static std::string skippedText(int64_t skipped, int64_t steps) {
  if (skipped == 0)
    return "";
  const std::string count = steps == 1 ? ""
                                       : std::to_string(skipped) + " of " +
                                             std::to_string(steps) + " steps ";
  return "  " + count + "skipped: the gradients are not finite";
}

/// A text in one line, for a terminal, or the ids of its tokens.
static std::string shownText(const std::optional<std::string> &text,
                             const std::vector<int64_t> &ids) {
  std::string line;
  if (text) {
    line = nlohmann::json(*text).dump();
    return " " + line;
  }
  for (int64_t id : ids)
    line += " " + std::to_string(id);
  return line;
}

Log::Log(const std::string &path, LineLock *lock, bool resuming,
         int64_t doneSteps, int64_t lastStep, const char *items)
    : terminal(isatty(STDERR_FILENO)), doneSteps(doneSteps), lastStep(lastStep),
      writtenStep(doneSteps), printedStep(doneSteps), items(items) {
  if (path.empty())
    return;
  file.emplace(path, resuming ? std::optional(doneSteps) : std::nullopt, lock);
}

Log::~Log() {
  clear();
  if (file)
    complain(file->close());
}

void Log::complain(const std::string &wrong) {
  // Hours of training are worth more than a line; the disk may have room again
  // later.
  if (!wrong.empty() && !complained) {
    clear();
    std::fprintf(stderr,
                 "accel-run: warning: %s; training goes on, and lines of the "
                 "log are missing\n",
                 wrong.c_str());
    complained = true;
  }
}

void Log::clear() {
  if (shown && terminal)
    std::fprintf(stderr, "\r\033[K");
  shown = false;
}

void Log::say(const StepRecord &record) {
  if (!record.eval)
    return;
  const EvalRecord &eval = *record.eval;
  clear();
  std::printf("evaluation after step %lld: loss %.4f",
              static_cast<long long>(record.step), eval.loss);
  if (eval.accuracy)
    std::printf(", accuracy %.4f", *eval.accuracy);
  if (eval.perplexity)
    std::printf(", perplexity %.2f", *eval.perplexity);
  std::printf("\n");
  for (const SampleRecord &sample : eval.samples)
    std::printf("  sample: %s ->%s\n",
                shownText(sample.promptText, sample.prompt).c_str(),
                shownText(sample.text, sample.tokens).c_str());
  std::fflush(stdout);
}

void Log::amend(int64_t step, const EvalRecord &eval) {
  if (file)
    complain(file->amendLast([&](nlohmann::ordered_json &json) {
      if (json.value("step", int64_t(-1)) == step)
        addTo(json, eval);
    }));
  StepRecord record;
  record.step = step;
  record.eval = eval;
  say(record);
}

void Log::write(const StepRecord &record) {
  if (file)
    complain(file->append(toJsonLine(record) + "\n"));
  say(record);
  const int64_t done = record.step;
  unsaid += record.skipped;
  meanSeconds = meanSeconds == 0 ? record.seconds
                                 : 0.9 * meanSeconds + 0.1 * record.seconds;
  if (terminal) {
    constexpr int width = 24;
    const int full =
        static_cast<int>(width * done / std::max<int64_t>(lastStep, 1));
    const int64_t left =
        static_cast<int64_t>(meanSeconds * (lastStep - done) + 0.5);
    std::fprintf(stderr,
                 "\r\033[K[%.*s%.*s] %lld/%lld  loss %.4f  %.0f %s/s  "
                 "%lld:%02lld left%s",
                 full, "########################", width - full,
                 "........................", static_cast<long long>(done),
                 static_cast<long long>(lastStep), record.loss,
                 record.tokensPerSecond, items,
                 static_cast<long long>(left / 60),
                 static_cast<long long>(left % 60),
                 skippedText(record.skipped, done - writtenStep).c_str());
    std::fflush(stderr);
    shown = true;
    writtenStep = done;
    return;
  }
  // In a file: about twenty lines a run.
  const int64_t every = std::max<int64_t>(1, (lastStep - doneSteps) / 20);
  const bool first = writtenStep == doneSteps;
  if (done / every > writtenStep / every || done == lastStep || first) {
    std::printf("step %lld/%lld  loss %.4f  %.0f %s/s  %.3f s%s\n",
                static_cast<long long>(done), static_cast<long long>(lastStep),
                record.loss, record.tokensPerSecond, items, record.seconds,
                skippedText(unsaid, done - printedStep).c_str());
    std::fflush(stdout);
    printedStep = done;
    unsaid = 0;
  }
  writtenStep = done;
}

} // namespace accel::run
