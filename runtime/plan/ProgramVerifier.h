//===- ProgramVerifier.h - A program run symbolically -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PROGRAMVERIFIER_H
#define ACCEL_RUNTIME_PLAN_PROGRAMVERIFIER_H

#include "runtime/plan/VerifyParts.h"

#include <map>

namespace accel::plan {

/// One micro-batch of a rank: its values, over the rank's units.
class ProgramVerifier {
public:
  ProgramVerifier(const Plan &plan, const Program &program, RankState &state,
                  Problems &problems)
      : plan(plan), program(program), state(state), problems(problems),
        live(program.values.size()), defined(program.values.size()),
        onHost(program.values.size()) {}
  /// Its inputs are bound.
  void begin();
  void checkBuffer(const Value &input);
  /// Instructions [from, to).
  void run(size_t from, size_t to);
  void finish();

private:
  struct Flight {
    int unit;
    std::vector<Role> roles;
    int instruction;
    bool awaited = false;
  };

  void complain(const std::string &what) { problems.add(place, what); }
  std::string bufferName(int unit, Role role) const {
    return std::string("the ") + toString(role) + " buffer of unit " +
           quoted(plan.units[unit].name);
  }
  std::string valueName(int value) const {
    return "value " + quoted(program.values[value].name);
  }
  int rootOf(int value) const { return plan::rootOf(program, value); }

  void instruction(const ProgramInstruction &instruction, int index);
  void alloc(const ProgramInstruction &instruction);
  void free(const ProgramInstruction &instruction);
  void start(const ProgramInstruction &instruction, int index);
  void fly(const Flight &flight, const ProgramInstruction &instruction);
  void await(const ProgramInstruction &instruction);
  void call(const ProgramInstruction &instruction);
  void draw(const ProgramInstruction &instruction, const Function &function);
  void drawByRank(const ProgramInstruction &instruction,
                  const Function &function);
  void outputs(const ProgramInstruction &instruction, const Function &function);
  void gradNorm(const ProgramInstruction &instruction);
  void optimizer(const ProgramInstruction &instruction);
  void offload(const ProgramInstruction &instruction, int index);
  void offloadValues(const ProgramInstruction &instruction, int index);
  void fetch(const ProgramInstruction &instruction, int index);
  void shareStorages(const ProgramInstruction &instruction);
  bool isOnItsWay(const std::map<int, std::vector<int>> &where,
                  int value) const;
  void send(const ProgramInstruction &instruction, int index);
  void receive(const ProgramInstruction &instruction);
  void checkStages(const ProgramInstruction &instruction);
  void giveUp(int value);

  /// True if the buffer can be used on `stream`; complains otherwise.
  bool usable(int unit, Role role, Stream stream, const char *verb);
  bool useValue(int value, const char *verb);
  bool allWritten(int unit, const char *verb);
  void clearWritten(int unit);
  bool gradientsReady(int unit, Stream stream, const char *verb);
  bool gradientsOnHost(int unit, Stream stream, const char *verb);
  void checkType(const std::string &what, DType dtype,
                 const std::vector<int64_t> &shape, DType expectedType,
                 const std::vector<int64_t> &expectedShape);

  const Plan &plan;
  const Program &program;
  RankState &state;
  Problems &problems;
  std::vector<bool> live, defined;
  std::map<int, Flight> flights; // by timepoint
  /// Values on their way from the device and to it, by timepoint.
  std::map<int, std::vector<int>> sent, fetched;
  std::vector<bool> onHost; // a copy of the value is there, or on its way
  std::map<int, std::pair<std::string, int>> draws; // path, calls
  /// By draw and key: the axes along which ranks draw otherwise.
  std::map<std::pair<int, int64_t>, std::vector<std::string>> drawAxes;
  std::string place;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PROGRAMVERIFIER_H
