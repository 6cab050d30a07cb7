//===- Functions.h - Operator lists over numbered slots ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A function is what a call of a program computes: operators of ATen in order,
// over slots that are numbered within it. It names no unit and no rank, so that
// layers that compute the same share one.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FUNCTIONS_H
#define ACCEL_RUNTIME_PLAN_FUNCTIONS_H

#include "runtime/plan/DType.h"

#include <string>
#include <vector>

namespace accel::plan {

/// A tensor inside a function. A view shares the storage of `base`; any other
/// slot is its own base and owns `bytes` (aligned) while a slot of its storage
/// is live. Inputs, params and gradients are owned by the caller.
struct Slot {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int base = -1; // Function::slots; own index if not a view
  bool operator==(const Slot &) const = default;
};

/// One argument of an operator, in the order of its ATen schema.
struct Arg {
  enum class Kind {
    None,   // a missing optional
    Tensor, // slot
    Tensors,
    Int,
    Float,
    Bool,
    Ints,
    Bools,
    Type,    // ScalarType argument
    Wrapped, // Python scalar in a Tensor slot: a 0-d wrapped number (floating)
    Text,    // a string of the schema: gelu's approximate
    Key,     // intValue: what a random operator draws by, mixed with the job's
         // seed, the micro-batch and the call (ProgramInstruction::draw) where
         // it runs
  } kind = Kind::None;
  int slot = -1;
  int64_t intValue = 0; // Int, Key, Bool (0/1)
  double floatValue = 0;
  std::vector<int64_t> ints; // Ints, Bools, Tensors (slots)
  DType dtype = DType::F32;
  std::string text; // Text
  /// Key: ranks at different places along these axes of the mesh draw other
  /// numbers, by their place, since each has other heads.
  std::vector<std::string> axes;
  bool operator==(const Arg &) const = default;
};

/// One operator call. `op` is "aten::mm" or "aten::mm.out" (name.overload).
/// `results` are slots (-1 where a result is not used); an `out=` or in-place
/// operator names its destination among `args` and has no results.
struct Instruction {
  enum class Kind { Aten, Opaque } kind = Kind::Aten;
  std::string op;
  std::vector<Arg> args;
  std::vector<int> results;
  std::vector<int> frees; // slots whose last use this is (never caller-owned
                          // ones, except inputs that the call gives up)
  int64_t workspaceBytes = 0; // what the operator allocates and frees inside
  double flops = 0;           // for the time model
  double movedBytes = 0;      // read and written, for the time model
  std::string where;          // module path with `*`, for traces and messages
  bool operator==(const Instruction &) const = default;
};

const char *toString(Instruction::Kind kind);

/// Calls pass inputs, parameters and gradients in these orders, and get the
/// outputs.
struct Function {
  std::string name; // "LlamaDecoderLayer.forward"
  std::vector<Slot> slots;
  std::vector<int> inputs;    // slots: tensors passed by value
  std::vector<int> params;    // slots: views of gathered units
  std::vector<int> gradients; // slots: views of gradient buffers, written here
  std::vector<int> outputs;   // slots
  /// Relative names of `params` and of `gradients` ("self_attn.q_proj.weight").
  std::vector<std::string> paramNames, gradientNames;
  std::vector<Instruction> instructions;
  /// Own storage of slot `i` in bytes (aligned); 0 for a view.
  int64_t slotBytes(int i) const;
  /// An instruction has a key: calls say what they draw by.
  bool draws() const;
  bool operator==(const Function &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FUNCTIONS_H
