//===- FitTarget.h - Measured seconds in a target's file --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_FITTARGET_H
#define ACCEL_TOOLS_ACCEL_RUN_FITTARGET_H

#include <map>
#include <string>

namespace accel::run {

/// The text of a target's file with the section `measured` at its end: the
/// seconds of each operator by plan::instructionKey, and `source`. What an
/// earlier fit has measured of other operators stays, so that several plans can
/// be measured one after the other. On failure returns "" and says why.
std::string withMeasured(const std::string &target,
                         const std::map<std::string, double> &seconds,
                         const std::string &source, std::string &error);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_FITTARGET_H
