//===- Commands.h - The subcommands of accel-opt ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCELOPT_COMMANDS_H
#define ACCEL_TOOLS_ACCELOPT_COMMANDS_H

namespace accel {

// Each takes what follows its name on the command line and returns the exit
// code of the process.
int planCommand(int argc, char **argv);
int lintCommand(int argc, char **argv);
int explainCommand(int argc, char **argv);
int targetsCommand(int argc, char **argv);
int modelsCommand(int argc, char **argv);
int optimizersCommand(int argc, char **argv);
int estimateCommand(int argc, char **argv);
int schemaCommand(int argc, char **argv);
int convertCommand(int argc, char **argv); // to-fsdp2
int compareCommand(int argc, char **argv);
int diffCommand(int argc, char **argv);
int checkpointCommand(int argc, char **argv);
int pipelineCommand(int argc, char **argv);
int initCommand(int argc, char **argv);
int lspCommand(int argc, char **argv);
int validateCommand(int argc, char **argv);
/// mlir-opt over our dialects and passes; `program` is argv[0].
int optCommand(const char *program, int argc, char **argv);

} // namespace accel

#endif // ACCEL_TOOLS_ACCELOPT_COMMANDS_H
