//===- LintFix.cpp - accel-opt lint --fix ---------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/LintFix.h"
#include "runtime/plan/PlanJson.h"

using namespace accel;

yaml::FixResult
accel::fixConfig(const std::string &path, const LoadOptions &options,
                 const LintOptions &checks, const DiagnosticPolicy &policy,
                 std::string &before, DiagnosticEngine &engine) {
  std::string error;
  if (!yaml::readWholeFile(path, yaml::Limits().bytes, before, error)) {
    // Says so with the right code.
    yaml::parseFile(path, engine);
    return {};
  }
  return fixText(path, before, options, checks, policy);
}

yaml::FixResult accel::fixText(const std::string &path,
                               const std::string &before,
                               const LoadOptions &options,
                               const LintOptions &checks,
                               const DiagnosticPolicy &policy) {
  return yaml::makeFixes(
      path, before, [&](const std::string &changed, DiagnosticEngine &round) {
        round.setPolicy(policy);
        LoadOptions again = options;
        again.accelerate.texts[path] = changed;
        LaunchEnvironment ignored;
        if (again.accelerate.launch)
          again.accelerate.launch = &ignored;
        LoadedConfig loaded = loadConfig(path, again, round);
        lintConfig(path, loaded, checks, round);
        checkIgnoreComments(path, round);
      });
}

bool accel::writeFixed(const std::string &path, const std::string &before,
                       const std::string &after, DiagnosticEngine &engine) {
  std::string now, error;
  if (!yaml::readWholeFile(path, yaml::Limits().bytes, now, error) ||
      now != before) {
    engine.error("write-failed", path,
                 "the file changed while it was being fixed", "run it again");
    return false;
  }
  if (plan::writeFileAtomically(path, after, error))
    return true;
  engine.error("write-failed", path, error);
  return false;
}
