//===- PlanWriter.h - The writer of plan.json -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PLANWRITER_H
#define ACCEL_RUNTIME_PLAN_PLANWRITER_H

#include "runtime/plan/JsonWriter.h"
#include "runtime/plan/Plan.h"

namespace accel::plan {

class PlanWriter : JsonWriter {
public:
  explicit PlanWriter(const Plan &plan) : plan(plan) {}
  std::string write();

private:
  /// A top-level key.
  void section(std::string_view name) {
    text += ",\n\"";
    text += name;
    text += "\": ";
  }
  void type(DType dtype, const std::vector<int64_t> &shape, int base = -1) {
    text += "[\"";
    text += toString(dtype);
    text += "\",";
    integers(shape);
    if (base >= 0) {
      text += ',';
      integer(base);
    }
    text += ']';
  }
  void slotName(int64_t slot) {
    text += "\"%";
    integer(slot);
    text += '"';
  }
  void job();
  void hyperparameters(bool &first, const Optimizer &optimizer);
  void data(const Data &data);
  void parameter(const Parameter &parameter);
  void initializer(bool &first, const Initializer &init);
  void unit(const Unit &unit);
  void function(const Function &function);
  void arg(const Arg &arg);
  void instruction(const Instruction &instruction);
  void program(const Program &program);
  template <typename Get> void refs(size_t count, Get get);
  void step(const Program &program, const Step &step);
  void predicted();
  void decision(const Decision &decision);

  const std::string &unitName(int unit) const {
    return plan.units.at(unit).name;
  }
  const Plan &plan;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PLANWRITER_H
