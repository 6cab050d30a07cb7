//===- Main.cpp - accel-opt -----------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diagnostics.h"
#include "tools/accel-opt/Commands.h"
#include "tools/options/ExitCode.h"
#include "tools/options/StandardOutput.h"

#include <cstdio>
#include <cstring>

using namespace accel;

namespace {

struct Command {
  const char *name;
  int (*run)(int, char **);
  const char *help;
};

const Command commands[] = {
    {"plan", planCommand,
     "compile an accelerate YAML or job.yaml and a model into a plan"},
    {"lint", lintCommand,
     "what accelerate would reject, ignore or take otherwise than meant"},
    {"explain", explainCommand,
     "why a plan is as it is: a unit, a parameter, a decision"},
    {"compare", compareCommand,
     "a prediction beside a memory snapshot or a trace of torch"},
    {"diff", diffCommand,
     "what a change does to bytes, seconds and numerics of a job"},
    {"init", initCommand,
     "accelerate YAML and TrainingArguments for a model and a target"},
    {"lsp", lspCommand, "a language server of configurations, for editors"},
    {"targets", targetsCommand, "the devices that plans can be made for"},
    {"models", modelsCommand, "the models that --model takes by name"},
    {"optimizers", optimizersCommand, "what each optimizer holds"},
    {"to-fsdp2", convertCommand,
     "rewrite an accelerate YAML for FSDP2, FSDP1, DDP or DeepSpeed"},
    {"estimate-memory", estimateCommand,
     "accelerate's estimate for a model folder, and what it leaves out"},
    {"schema", schemaCommand, "JSON Schema of accelerate files, for editors"},
    {"checkpoint", checkpointCommand,
     "inspect, merge or convert checkpoint folders, without loading them"},
    {"pipeline", pipelineCommand,
     "a pipeline schedule: who computes what when, bubbles, bytes"},
    {"validate", validateCommand,
     "predict a table of measured runs and print the errors"},
};

void printHelp() {
  std::printf("usage: accel-opt COMMAND [options]\n\n"
              "Plans sharded training: what each rank holds and does, byte by "
              "byte.\n\n"
              "  accel-opt plan fsdp.yaml --model ./llama-8b --target "
              "h100-sxm-80gb\n"
              "  accel-opt lint fsdp.yaml\n\n"
              "commands:\n");
  for (const Command &command : commands)
    std::printf("  %-15s %s\n", command.name, command.help);
  std::printf("  %-15s %s\n", "opt", "mlir-opt over our dialects and passes");
  std::printf("\n'accel-opt COMMAND --help' lists a command's options.\n"
              "exit codes: 0 planned and fits, 1 invalid input, 2 valid but "
              "does not fit,\n3 internal error, 4 not supported yet, 64 "
              "usage\n");
}

/// For completions and man pages.
void printHelpJson() {
  std::printf("{\"program\": \"accel-opt\", \"commands\": [");
  for (const Command &command : commands)
    std::printf(
        "%s\n {\"name\": %s, \"help\": %s}", &command == commands ? "" : ",",
        jsonString(command.name).c_str(), jsonString(command.help).c_str());
  std::printf("]}\n");
}

int runCommand(int argc, char **argv) {
  if (argc < 2) {
    printHelp();
    return exitUsage;
  }
  if (!std::strcmp(argv[1], "--help") || !std::strcmp(argv[1], "-h") ||
      !std::strcmp(argv[1], "help")) {
    printHelp();
    return exitOk;
  }
  if (!std::strcmp(argv[1], "--help=json")) {
    printHelpJson();
    return exitOk;
  }
  if (!std::strcmp(argv[1], "--version")) {
    std::printf("accel-opt %s\n", ACCEL_VERSION);
    return exitOk;
  }
  if (!std::strcmp(argv[1], "opt"))
    return optCommand(argv[0], argc - 2, argv + 2);
  std::vector<std::string> names = {"opt"};
  for (const Command &command : commands) {
    if (!std::strcmp(argv[1], command.name))
      return command.run(argc - 2, argv + 2);
    names.push_back(command.name);
  }
  std::string hint = didYouMean(argv[1], names);
  std::fprintf(stderr, "accel-opt: error: unknown command '%s'%s%s\n",
               printable(argv[1]).c_str(), hint.empty() ? "" : "; ",
               hint.c_str());
  return exitUsage;
}

} // namespace

/// What a command prints is its result: without it, it has not done its work.
int main(int argc, char **argv) {
  return checkStandardOutput("accel-opt", runCommand(argc, argv));
}
