//===- Operators.h - What a plan may call -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A plan, or the .pt2 that one is made of, may come from a stranger. ATen has
// operators that read and write files, make tensors of addresses, or take what
// they are given on trust. A plan may call those of data/operators.txt and
// accel-run's own (accel::); text may be an argument only where the operator
// knows a few values, and then one of these.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OPERATORS_H
#define ACCEL_RUNTIME_PLAN_OPERATORS_H

#include "runtime/plan/Plan.h"

#include <string>

namespace accel::plan {

/// `name` is "aten::add.Tensor", or without an overload.
bool mayCall(const std::string &name);

/// True if `text` is a value that an argument of the operator can have.
bool mayPass(const std::string &name, const std::string &text);

/// Why the instruction is not one that a plan may have; empty if it is.
std::string operatorProblem(const Instruction &instruction);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OPERATORS_H
