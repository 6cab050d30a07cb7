//===- Log.cpp - What a run says while it trains --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Log.h"

#include "runtime/checkpoint/Files.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace accel::run {

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
  if (record.skipped)
    json["skipped"] = true;
  if (record.evalLoss)
    json["eval_loss"] = *record.evalLoss;
  return json.dump();
}

namespace {
/// The lines of the `doneSteps` that an earlier run left.
std::string linesOf(const std::string &path, int64_t doneSteps) {
  std::ifstream input(path);
  std::string kept, line;
  while (std::getline(input, line)) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") &&
        json["step"].is_number_integer() &&
        json["step"].get<int64_t>() <= doneSteps)
      kept += line + "\n";
  }
  return kept;
}
} // namespace

Log::Log(const std::string &path, bool resuming, int64_t doneSteps,
         int64_t lastStep, const char *items)
    : path(path), terminal(isatty(STDERR_FILENO)), doneSteps(doneSteps),
      lastStep(lastStep), items(items) {
  if (path.empty())
    return;
  const std::string kept = resuming ? linesOf(path, doneSteps) : "";
  file = std::fopen(path.c_str(), "w");
  if (!file)
    throw FileError(path + ": " + std::strerror(errno));
  std::fwrite(kept.data(), 1, kept.size(), file);
  std::fflush(file);
}

Log::~Log() {
  clear();
  if (file)
    std::fclose(file);
}

void Log::clear() {
  if (shown && terminal)
    std::fprintf(stderr, "\r\033[K");
  shown = false;
}

void Log::write(const StepRecord &record) {
  if (file) {
    const std::string line = toJsonLine(record) + "\n";
    if (std::fwrite(line.data(), 1, line.size(), file) != line.size() ||
        std::fflush(file) != 0) {
      // Hours of training are worth more than a line; the disk may have room
      // again later.
      if (!complained) {
        clear();
        std::fprintf(stderr,
                     "accel-run: warning: %s: %s; training goes on, and lines "
                     "of the log are missing\n",
                     path.c_str(), std::strerror(errno));
      }
      complained = true;
      std::clearerr(file);
    }
  }
  const int64_t done = record.step;
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
                 "%lld:%02lld left",
                 full, "########################", width - full,
                 "........................", static_cast<long long>(done),
                 static_cast<long long>(lastStep), record.loss,
                 record.tokensPerSecond, items,
                 static_cast<long long>(left / 60),
                 static_cast<long long>(left % 60));
    std::fflush(stderr);
    shown = true;
    return;
  }
  // In a file: about twenty lines a run.
  const int64_t every = std::max<int64_t>(1, (lastStep - doneSteps) / 20);
  if (done % every == 0 || done == lastStep || done == doneSteps + 1) {
    std::printf("step %lld/%lld  loss %.4f  %.0f %s/s  %.3f s\n",
                static_cast<long long>(done), static_cast<long long>(lastStep),
                record.loss, record.tokensPerSecond, items, record.seconds);
    std::fflush(stdout);
  }
}

} // namespace accel::run
