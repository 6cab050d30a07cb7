//===- CheckpointCommand.cpp - accel-opt checkpoint -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Checkpoint/RenderCheckpoint.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::checkpointCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  bool tensors = false;
  Arguments arguments(
      "accel-opt checkpoint", "inspect DIR",
      "Says what a checkpoint folder holds: torch's distributed checkpoints,\n"
      "Accelerate's save_state, DeepSpeed, safetensors, torch.save, "
      "accel-run.\n"
      "Names, headers and metadata are read; no pickle is run.");
  arguments.flag("--tensors", tensors, "list each tensor");
  arguments.option("--format", format, formatValue(),
                   "text for people, json (with each tensor) for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  const std::vector<std::string> &words = arguments.positional;
  if (words.size() != 2 || words[0] != "inspect")
    return arguments.usageError("expected 'inspect DIR'");
  DiagnosticEngine engine;
  const std::optional<checkpoint::Checkpoint> read =
      checkpoint::readCheckpoint(words[1], engine);
  if (format == ReportFormat::Json) {
    std::fputs(checkpointJson(read, engine).c_str(), stdout);
    return static_cast<int>(engine.outcome());
  }
  if (read)
    std::fputs(renderCheckpoint(*read, tensors).c_str(), stdout);
  RenderOptions render;
  render.colour = wantsColour(STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), stderr);
  return static_cast<int>(engine.outcome());
}
