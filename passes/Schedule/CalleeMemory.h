//===- CalleeMemory.h - What calls of functions take ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_CALLEEMEMORY_H
#define ACCEL_PASSES_SCHEDULE_CALLEEMEMORY_H

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "runtime/plan/Timeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace accel::schedule {

/// What calls of one function take.
class MeasuredCallee {
public:
  explicit MeasuredCallee(plan::Function function);

  /// Whether its body reads input `i`, so that it can drop it.
  bool drops(size_t i) const { return dropped[i]; }
  /// The instruction after which nothing holds input `i`'s storage.
  int inputDeath(size_t i) const { return deaths[i]; }
  /// `consumed[i]`: bytes that it frees where it drops input `i`.
  const plan::FunctionProfile &profile(llvm::ArrayRef<int64_t> consumed);

private:
  plan::Function function;
  std::vector<bool> dropped;
  std::vector<int> deaths;
  std::map<std::vector<int64_t>, plan::FunctionProfile> profiles;
};

/// The functions that the programs of a module call, each measured once, on
/// the instructions that the plan will have. An analysis that passes over
/// programs preserve.
class CalleeMemory {
public:
  /// Functions of the module are neither added nor erased meanwhile.
  explicit CalleeMemory(mlir::Operation *module);

  /// Null after an error was emitted: there is no such function, or it cannot
  /// be in a plan.
  MeasuredCallee *get(CallOp call);

private:
  mlir::SymbolTable symbols;
  aten::Device device;
  llvm::StringMap<std::unique_ptr<MeasuredCallee>> known;
};

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_CALLEEMEMORY_H
