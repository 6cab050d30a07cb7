//===- Agreement.h - What all ranks must have alike -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Ranks that run different programs wait for each other for ever, or train
// something that nobody has asked for. So before anything is loaded each rank
// compares what it was given with what rank 0 was given, and only when all have
// found it equal does rank 0 decide what is for one to decide.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_AGREEMENT_H
#define ACCEL_RUNTIME_COLLECTIVES_AGREEMENT_H

#include "runtime/collectives/Environment.h"
#include "runtime/collectives/Rendezvous.h"

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

namespace accel::run {

/// A rank was given something else than rank 0, or did not come.
struct AgreementError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Names and values, such as "job.schedule.steps" and "24".
using Facts = std::map<std::string, std::string>;

/// What differs, for a person: at most three facts with both values; empty if
/// nothing does.
std::string difference(const Facts &own, const Facts &first);

/// Returns what `decide` returns on rank 0, on every rank, after all have found
/// their facts equal to rank 0's. Throws AgreementError on each rank whose
/// facts differ, and where a rank does not come within `patience`; says on
/// stderr every 30 seconds which ranks are waited for.
std::string agree(const Rendezvous &rendezvous, const Environment &environment,
                  const Facts &facts,
                  const std::function<std::string()> &decide,
                  std::chrono::seconds patience);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_AGREEMENT_H
