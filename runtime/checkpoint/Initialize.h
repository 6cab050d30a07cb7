//===- Initialize.h - First values of parameters ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_INITIALIZE_H
#define ACCEL_RUNTIME_CHECKPOINT_INITIALIZE_H

#include "runtime/execute/Executor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace accel::run {

/// Fills this rank's shards from Parameter::init, of all parameters or of those
/// that `only` marks. An element's value depends on (seed, name, its position)
/// alone, so on no number of ranks: Philox 4x32-10, the key from seed and name,
/// the counter from the position. A model with an adapter has the values of the
/// one without.
void initialize(Executor &executor, int64_t seed,
                const std::vector<bool> *only = nullptr);

/// The name that a parameter's first values come from.
const std::string &initialName(const plan::Parameter &parameter);

/// Elements [begin, begin + count) of the values that `p` starts with.
std::vector<float> initialValues(const plan::Parameter &p, int64_t seed,
                                 int64_t begin, int64_t count);

/// Four standard normal numbers: elements 4 * block ... 4 * block + 3.
void normals(uint64_t key, uint64_t block, float (&values)[4]);
uint64_t initializerKey(int64_t seed, const std::string &fqn);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_INITIALIZE_H
