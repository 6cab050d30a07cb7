//===- CheckpointCommand.cpp - accel-opt checkpoint -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Merge.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Checkpoint/RenderCheckpoint.h"
#include "tools/driver/Text/Format.h"
#include "tools/options/Arguments.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <unistd.h>

using namespace accel;
using namespace std::chrono_literals;

namespace {

void printFindings(const DiagnosticEngine &engine) {
  RenderOptions render;
  render.colour = wantsColour(STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), stderr);
}

int inspect(const std::string &folder, ReportFormat format, bool tensors) {
  DiagnosticEngine engine;
  const std::optional<checkpoint::Checkpoint> read =
      checkpoint::readCheckpoint(folder, engine);
  if (format == ReportFormat::Json) {
    std::fputs(checkpointJson(read, engine).c_str(), stdout);
    return static_cast<int>(engine.outcome());
  }
  if (read)
    std::fputs(renderCheckpoint(*read, tensors).c_str(), stdout);
  printFindings(engine);
  return static_cast<int>(engine.outcome());
}

/// A line on a terminal, from two seconds on and twice a second.
class MergeProgress {
public:
  explicit MergeProgress(int64_t bytes) : bytes(bytes) {}
  void operator()(int64_t done) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (!terminal || now - begin < 2s || now - shown < 500ms)
      return;
    shown = now;
    std::fprintf(stderr, "\r%3d %% of %s", int(100.0 * done / bytes),
                 formatBytes(bytes).c_str());
  }
  ~MergeProgress() {
    if (shown != std::chrono::steady_clock::time_point())
      std::fputs("\r\033[K", stderr);
  }

private:
  const int64_t bytes;
  const bool terminal = isatty(STDERR_FILENO);
  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown;
};

int merge(const std::string &folder, const std::string &output,
          const checkpoint::MergeOptions &options, ReportFormat format) {
  DiagnosticEngine engine;
  std::optional<checkpoint::Merged> merged;
  const auto read = checkpoint::readCheckpoint(folder, engine);
  if (read)
    merged = checkpoint::planMerge(*read, options, engine);
  if (merged) {
    MergeProgress progress(std::max<int64_t>(1, merged->bytes));
    if (!checkpoint::writeMerged(*merged, output, std::ref(progress), engine))
      merged.reset();
  }
  if (format == ReportFormat::Json) {
    std::fputs(mergeJson(merged, output, engine).c_str(), stdout);
    return static_cast<int>(engine.outcome());
  }
  if (merged)
    std::fputs(renderMerge(*merged, output).c_str(), stdout);
  printFindings(engine);
  return static_cast<int>(engine.outcome());
}

} // namespace

int accel::checkpointCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  bool tensors = false;
  std::string output;
  checkpoint::MergeOptions options;
  Arguments arguments(
      "accel-opt checkpoint", "inspect|merge DIR",
      "inspect says what a checkpoint folder holds: torch's distributed\n"
      "checkpoints, Accelerate's save_state, DeepSpeed, safetensors, "
      "torch.save,\naccel-run. merge writes its weights as safetensors that "
      "transformers loads.\nNames, headers and metadata are read; no pickle is "
      "run.");
  arguments.flag("--tensors", tensors, "inspect: list each tensor");
  arguments.option("-o", output, textValue("DIR"),
                   "merge: the folder to write, which is not there yet");
  arguments.option("--max-shard-size", options.partBytes, bytesValue("5GB"),
                   "merge: bytes of a part at most (default 5GB)");
  arguments.option(
      "--dtype", options.dtype,
      choiceValue<std::string>(
          {{"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp32", "float32"}}),
      "merge: what floating-point weights become (default: each "
      "as it is)");
  arguments.option("--format", format, formatValue(),
                   "text for people, json (with each tensor) for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  const std::vector<std::string> &words = arguments.positional;
  if (words.size() != 2 || (words[0] != "inspect" && words[0] != "merge"))
    return arguments.usageError("expected 'inspect DIR' or 'merge DIR -o DIR'");
  if (words[0] == "inspect") {
    for (const char *name : {"-o", "--max-shard-size", "--dtype"})
      if (arguments.given(name))
        return arguments.usageError(std::string(name) + " is of merge");
    return inspect(words[1], format, tensors);
  }
  if (tensors)
    return arguments.usageError("--tensors is of inspect");
  if (output.empty())
    return arguments.usageError("merge needs -o DIR");
  return merge(words[1], output, options, format);
}
