//===- TokenFiles.h - What files of tokens say of themselves ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_TOKENFILES_H
#define ACCEL_FRONTENDS_JOB_TOKENFILES_H

#include "frontends/Job/JobConfig.h"

#include <cstdint>
#include <optional>
#include <string>

namespace accel {

/// Bytes of a token in files of this data; 0: a header tells.
int64_t tokenBytes(const DataConfig &data);

/// Tokens of a file, by its size or its header; nothing where neither tells.
std::optional<int64_t> tokensIn(const std::string &path,
                                const DataConfig &data);

/// A sentence where a file of so many tokens has no sample of `length` tokens
/// and the label after them; empty where it has.
std::string tooFewTokens(const std::string &path, int64_t tokens,
                         int64_t length);

/// Why the .npy file is not a list of integers that can be read, which `what`
/// are ("tokens"), by its header and size; empty where it is, or its header
/// cannot be read.
std::string listProblem(const std::string &path, const char *what);

/// The same of positions of documents, and of their order where the file is
/// small enough to be read here.
std::string startsProblem(const std::string &path);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_TOKENFILES_H
