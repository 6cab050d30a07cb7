//===- FitTarget.h - Measured seconds in a target's file --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_FITTARGET_H
#define ACCEL_TOOLS_ACCEL_RUN_FITTARGET_H

#include <map>
#include <optional>
#include <string>

namespace accel::run {

/// What was measured: seconds by plan::instructionKey and plan::collectiveKey,
/// the part of collectives that computation hides, what a step takes beyond
/// its operators, as a part of their seconds, and the seconds of a byte by
/// plan::MovedBytes::key.
struct Fitted {
  std::map<std::string, double> operators, collectives, overheads, moves;
  std::optional<double> overlap;
  /// Bytes per second of a rank's file of states.
  struct Drive {
    double read = 0, written = 0;
  };
  std::optional<Drive> drive;
};

/// The text of a target's file with the section `measured` at its end and
/// `source`, and with the overlap, the overhead and the drive where they are
/// measured. What an earlier fit has measured of others stays, so that several
/// plans can be measured one after the other. On failure returns "" and says
/// why.
std::string withMeasured(const std::string &target, const Fitted &fitted,
                         const std::string &source, std::string &error);

/// The text of a target's file. Throws FileError where it is none, or not of
/// the kind of `device`, the plan's.
std::string readTarget(const std::string &path, const std::string &device);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_FITTARGET_H
