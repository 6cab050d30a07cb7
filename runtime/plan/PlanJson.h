//===- PlanJson.h - plan.json: writing and reading --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// plan.json holds a Plan, a format version and a hash of everything else. What
// is in it is listed once, in runtime/plan/Fields; writer, reader and schema
// (runtime/plan/plan.schema.json) follow the lists. The reader checks types,
// ranges, version and hash, then `verify`. The same Plan gives the same bytes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PLANJSON_H
#define ACCEL_RUNTIME_PLAN_PLANJSON_H

#include "runtime/plan/Plan.h"

#include <functional>

namespace accel::plan {

/// The text of plan.json: one parameter, unit, instruction or step a line.
std::string toJson(const Plan &plan);

/// Parses the text of a plan. On failure returns false and puts one sentence
/// in `error` that names the place ("functions[2].instructions[7].args: ...").
bool fromJson(const std::string &text, Plan &plan, std::string &error);

/// The JSON Schema of plan.json: the text of runtime/plan/plan.schema.json.
std::string planSchema();

/// Reads a plan file; `error` starts with the path.
bool readPlan(const std::string &path, Plan &plan, std::string &error);

/// Whether writeFileAtomically could begin with `path` now, which leaves
/// nothing behind: so that nothing long is done for a file that cannot be
/// written. `error` is as there.
bool canWriteFile(const std::string &path, std::string &error);

/// Writes `text` to a temporary name beside `path`, fsyncs and renames it.
/// `before` gets the descriptor of the new file before it has its name, for a
/// lock; not where a pipe or a terminal is written to.
bool writeFileAtomically(const std::string &path, const std::string &text,
                         std::string &error,
                         const std::function<void(int)> &before = nullptr);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PLANJSON_H
