//===- SchemaCommand.cpp - accel-opt schema -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Schema/Schema.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Output/OutputFile.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::schemaCommand(int argc, char **argv) {
  std::string version = "1.15.0", output;
  bool job = false;
  Arguments arguments("accel-opt schema", "",
                      "Prints the JSON Schema (draft 2020-12) of an accelerate "
                      "file, for editors.");
  arguments.option("--accelerate-version", version, textValue("V"),
                   "keys and values of this version (default 1.15.0)");
  arguments.flag("--job", job, "of a job.yaml instead");
  arguments.option("-o", output, textValue("FILE"), "write here instead")
      .once();
  bool overwrite = false;
  addOverwrite(arguments, overwrite);
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (!arguments.none(exitCode))
    return exitCode;
  if (overwrite && output.empty())
    return arguments.usageError("--overwrite has no effect without -o");
  DiagnosticEngine engine;
  std::optional<AccelerateVersion> parsed = parseAccelerateVersion(version);
  if (!parsed)
    engine.error("invalid-version", "",
                 "'" + printable(version) + "' is not a version of accelerate",
                 "write it as 1.15.0");
  else if (*parsed < oldestAccelerate || *parsed > newestAccelerate)
    engine.error(notSupportedCode, "",
                 "accelerate " + printable(version) + " is not known here",
                 "known are " + toString(oldestAccelerate) + " to " +
                     toString(newestAccelerate));
  if (!engine.hasErrors()) {
    schema::Json json =
        job ? schema::jobSchema(*parsed) : schema::accelerateSchema(*parsed);
    std::string text = json.dump(2) + "\n";
    if (output.empty() || output == "-")
      std::fputs(text.c_str(), stdout);
    else
      writeOutputFile({output, overwrite}, FileForm::Schema, text, engine);
  }
  RenderOptions render;
  render.colour = wantsColour(STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), stderr);
  return static_cast<int>(engine.outcome());
}
