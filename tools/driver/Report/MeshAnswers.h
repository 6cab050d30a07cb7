//===- MeshAnswers.h - Why this mesh ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_MESHANSWERS_H
#define ACCEL_TOOLS_DRIVER_REPORT_MESHANSWERS_H

#include "tools/driver/Advice/Advice.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace accel {

/// The chosen mesh beside the next ones, and what they lack, for people. The
/// advice has an answer of a search over meshes.
std::string renderMesh(const Advice &advice);
/// The same for programs.
nlohmann::json meshAnswerJson(const Advice &advice);

/// accel-run's meshes, as planned.
std::string renderRunMeshes(const Advice &advice);
nlohmann::json runMeshesJson(const Advice &advice);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_MESHANSWERS_H
