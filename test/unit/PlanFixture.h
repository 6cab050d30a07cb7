//===- PlanFixture.h - Plans of a small decoder for tests -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Builds complete, valid plans of a Llama-like decoder of any size without the
// compiler: what the plan library, the schedule dialect and the time model are
// tested on.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_PLANFIXTURE_H
#define ACCEL_TEST_UNIT_PLANFIXTURE_H

#include "runtime/plan/Plan.h"

namespace accel::plan::test {

struct Size {
  int64_t layers = 2, hidden = 64, keyValue = 32, feedForward = 128,
          vocab = 256, tokens = 32;
  int64_t shardRanks = 2, replicas = 1, accumulation = 1;
  DType gather = DType::F32, reduce = DType::F32;
  bool allToAll = true, clip = true, eval = true;
  bool statesOnHost = false; // of a CUDA device
  bool whole = false;        // units are gathered after their update
};

/// The plan, with its memory predicted.
Plan makePlan(const Size &size = {});

/// 126 layers, 405 billion parameters, 16,384 ranks, accumulation.
Size llama405();

/// Collects the operators of one function; `finish` adds the frees.
class FunctionBuilder {
public:
  explicit FunctionBuilder(std::string name) { function.name = name; }
  int input(DType dtype, std::vector<int64_t> shape);
  int param(const std::string &name, DType dtype, std::vector<int64_t> shape);
  int gradient(const std::string &name, DType dtype,
               std::vector<int64_t> shape);
  int view(const std::string &op, int of, std::vector<int64_t> shape);
  int make(const std::string &op, std::vector<int> args, DType dtype,
           std::vector<int64_t> shape, double flops = 0, int64_t workspace = 0);
  void into(const std::string &op, std::vector<int> args, double flops = 0);
  Function finish(std::vector<int> outputs);
  Function function;

private:
  int slot(DType dtype, std::vector<int64_t> shape, int base = -1);
};

} // namespace accel::plan::test

#endif // ACCEL_TEST_UNIT_PLANFIXTURE_H
