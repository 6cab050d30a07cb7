//===- AtenSchemas.h - Signatures of ATen's operators -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A .pt2 names only the arguments that were given. The rest are the defaults
// of the operators' signatures, which data/aten-schemas.txt lists as torch 2.15
// prints them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_ATENSCHEMAS_H
#define ACCEL_FRONTENDS_TORCHEXPORT_ATENSCHEMAS_H

#include "frontends/TorchExport/Program.h"

namespace accel::torchexport {

struct SchemaParameter {
  std::string type; // "Tensor", "Tensor?", "SymInt[]", "ScalarType?", ...
  std::string name;
  bool hasDefault = false;
  Argument defaultValue;
  bool mutated = false; // Tensor(a!)
  bool isTensor() const { return type.rfind("Tensor", 0) == 0; }
};

struct AtenSchema {
  std::string name; // "aten::sum.dim_IntList"
  std::vector<SchemaParameter> parameters;
};

/// The signature of `name`, with or without ".default"; null if torch has none.
const AtenSchema *findSchema(const std::string &name);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_ATENSCHEMAS_H
