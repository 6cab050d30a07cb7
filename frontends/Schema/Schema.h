//===- Schema.h - JSON Schemas for editors ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// JSON Schema, draft 2020-12, of what YAML makes of a file (so
// `mixed_precision: no` is the boolean false, and wrong). Made from the table
// of keys: types, values, defaults, descriptions and versions. A schema knows
// one key at a time; what contradicts what is for `lint`.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCHEMA_SCHEMA_H
#define ACCEL_FRONTENDS_SCHEMA_SCHEMA_H

#include "frontends/Accelerate/KeyTable.h"

#include <nlohmann/json.hpp>

namespace accel::schema {

using Json = nlohmann::ordered_json;

/// Of an accelerate file. Unknown keys are wrong everywhere: launch refuses
/// them at the top level and loses them in sections.
Json accelerateSchema(AccelerateVersion version);

/// Of a job.yaml, with the accelerate keys inline or under `accelerate`.
Json jobSchema(AccelerateVersion version);

} // namespace accel::schema

#endif // ACCEL_FRONTENDS_SCHEMA_SCHEMA_H
