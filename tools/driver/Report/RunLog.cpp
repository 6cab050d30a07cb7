//===- RunLog.cpp - What a run of accel-run measured ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RunLog.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "tools/driver/Text/Format.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
std::optional<T> number(const Json &line, const char *key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number())
    return std::nullopt;
  return found->get<T>();
}

std::optional<LoggedStep> stepOf(const Json &line) {
  const std::optional<int64_t> step = number<int64_t>(line, "step");
  if (!step)
    return std::nullopt;
  LoggedStep result;
  result.step = *step;
  result.loss = number<double>(line, "loss");
  result.evalLoss = number<double>(line, "eval_loss");
  result.stepSeconds = number<double>(line, "step_s");
  result.tokensPerSecond = number<double>(line, "tokens_per_s");
  result.peakBytes = number<int64_t>(line, "peak_bytes");
  // A log may say that a line has skipped steps, and not how many.
  result.skipped = std::max<int64_t>(
      number<int64_t>(line, "skipped_steps")
          .value_or(line.value("skipped", Json()) == Json(true) ? 1 : 0),
      0);
  return result;
}

/// What there is of a figure: predicted, measured, and how far they are apart.
struct Row {
  const char *what;
  std::string predicted, measured, apart;
};

std::string apart(double predicted, double measured) {
  const double share = predicted / measured - 1;
  return (share > 0 ? "+" : "") + formatPercent(share);
}

std::vector<Row> rowsOf(const plan::Plan &plan, const RunLog &log) {
  const plan::Predicted &p = plan.predicted;
  std::vector<Row> rows;
  auto add = [&](const char *what, std::optional<double> predicted,
                 std::optional<double> measured, auto show) {
    if (!measured)
      return;
    Row row{what, predicted ? show(*predicted) : "-", show(*measured), ""};
    if (predicted && *measured > 0)
      row.apart = apart(*predicted, *measured);
    rows.push_back(std::move(row));
  };
  auto timed = [&](double value) {
    return p.hasTime ? std::optional(value) : std::nullopt;
  };
  add("seconds of a step", timed(p.stepSeconds),
      log.median(&LoggedStep::stepSeconds), formatSeconds);
  add("tokens/s", timed(p.tokensPerSecond), log.tokensPerSecond(),
      formatGrouped);
  if (const std::optional<int64_t> peak = log.peakBytes())
    add("peak of tensors", static_cast<double>(p.ownPeakBytes),
        static_cast<double>(*peak),
        [](double bytes) { return formatBytes(static_cast<int64_t>(bytes)); });
  return rows;
}

Json jsonOf(const std::optional<double> &value) {
  return value ? Json(*value) : Json();
}

} // namespace

std::optional<double>
RunLog::median(std::optional<double> LoggedStep::*value) const {
  std::vector<double> seen;
  for (const LoggedStep &step : steps)
    if (step.*value && (&step != &steps.front() || steps.size() == 1))
      seen.push_back(*(step.*value));
  if (seen.empty())
    return std::nullopt;
  const auto middle = seen.begin() + static_cast<ptrdiff_t>(seen.size() / 2);
  std::nth_element(seen.begin(), middle, seen.end());
  return *middle;
}

std::optional<double> RunLog::tokensPerSecond() const {
  const std::optional<double> seconds = median(&LoggedStep::stepSeconds);
  for (const LoggedStep &step : steps)
    if (seconds && step.stepSeconds == seconds && step.tokensPerSecond)
      return step.tokensPerSecond;
  return median(&LoggedStep::tokensPerSecond);
}

std::optional<int64_t> RunLog::peakBytes() const {
  std::optional<int64_t> most;
  for (const LoggedStep &step : steps)
    if (step.peakBytes)
      most = std::max(most.value_or(0), *step.peakBytes);
  return most;
}

int64_t RunLog::skippedSteps() const {
  int64_t sum = 0;
  for (const LoggedStep &step : steps)
    sum += step.skipped;
  return sum;
}

std::optional<RunLog> readRunLog(const std::string &path, std::string &error) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    error = path + ": " + std::strerror(errno);
    return std::nullopt;
  }
  noteInputFile(path);
  RunLog log;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    const Json parsed = Json::parse(line, nullptr, false);
    std::optional<LoggedStep> step =
        parsed.is_object() ? stepOf(parsed) : std::nullopt;
    // The run may be writing its last line.
    if (!step && in.peek() == std::ifstream::traits_type::eof() &&
        parsed.is_discarded() && !log.steps.empty())
      break;
    if (!step) {
      error = path + ":" + std::to_string(number) +
              ": expected an object with a step, as accel-run --log writes "
              "one a line";
      return std::nullopt;
    }
    log.steps.push_back(std::move(*step));
  }
  if (log.steps.empty()) {
    error = path + ": holds no step; accel-run --log writes one a line";
    return std::nullopt;
  }
  return log;
}

std::string renderRun(const plan::Plan &plan, const RunLog &log) {
  std::string out = padRight("", 22) + padLeft("predicted", 14) +
                    padLeft("measured", 14) + "\n";
  for (const Row &row : rowsOf(plan, log))
    out += padRight(row.what, 22) + padLeft(row.predicted, 14) +
           padLeft(row.measured, 14) + padLeft(row.apart, 10) + "\n";
  const LoggedStep &first = log.steps.front(), &last = log.steps.back();
  const bool isAlone = log.steps.size() == 1;
  out += isAlone ? "step " + std::to_string(first.step)
                 : "steps " + std::to_string(first.step) + " to " +
                       std::to_string(last.step);
  if (isAlone && first.loss)
    out += llvm::formatv(", loss {0:F4}", *first.loss).str();
  else if (first.loss && last.loss)
    out +=
        llvm::formatv(", loss {0:F4} to {1:F4}", *first.loss, *last.loss).str();
  out += isAlone ? "; seconds and tokens/s are those of the log's only line\n"
                 : "; seconds and tokens/s are medians without the first "
                   "step\n";
  if (const int64_t skipped = log.skippedSteps())
    out += std::to_string(skipped) +
           (skipped == 1 ? " step was" : " steps were") +
           " skipped: the gradients were not finite, and no weight changed\n";
  return out;
}

Json runJson(const plan::Plan &plan, const RunLog &log) {
  const plan::Predicted &p = plan.predicted;
  Json steps = Json::array();
  for (const LoggedStep &step : log.steps)
    steps.push_back(
        {{"step", step.step},
         {"loss", jsonOf(step.loss)},
         {"eval_loss", jsonOf(step.evalLoss)},
         {"step_s", jsonOf(step.stepSeconds)},
         {"tokens_per_s", jsonOf(step.tokensPerSecond)},
         {"peak_bytes", step.peakBytes ? Json(*step.peakBytes) : Json()},
         {"skipped_steps", step.skipped}});
  const std::optional<int64_t> peak = log.peakBytes();
  return {{"predicted",
           {{"step_s", p.hasTime ? Json(p.stepSeconds) : Json()},
            {"tokens_per_s", p.hasTime ? Json(p.tokensPerSecond) : Json()},
            {"peak_bytes", p.ownPeakBytes}}},
          {"measured",
           {{"step_s", jsonOf(log.median(&LoggedStep::stepSeconds))},
            {"tokens_per_s", jsonOf(log.tokensPerSecond())},
            {"peak_bytes", peak ? Json(*peak) : Json()},
            {"skipped_steps", log.skippedSteps()}}},
          {"steps", steps}};
}

} // namespace accel
