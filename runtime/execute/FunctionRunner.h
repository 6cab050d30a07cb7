//===- FunctionRunner.h - Runs a compute function ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operators are resolved and their constant arguments made once, at load; a
// run only fills in tensors and calls through the dispatcher, boxed, below
// autograd. About a microsecond an operator over the operator itself.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_FUNCTIONRUNNER_H
#define ACCEL_RUNTIME_EXECUTE_FUNCTIONRUNNER_H

#include "runtime/execute/Device.h"
#include "runtime/execute/ExchangeCall.h"
#include "runtime/execute/IndexChecks.h"
#include "runtime/execute/OpaqueCall.h"
#include "runtime/execute/Operators.h"
#include "runtime/plan/Plan.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace accel::run {

/// The plan asks for something that LibTorch does not have, or not so.
struct PlanError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The highest sum of a rank's own buffers, sampled where the plan's timeline
/// has its points: after each instruction, before its frees.
struct OwnPeak {
  int64_t bytes = 0;
  void sample(const Device &device) {
    int64_t now = device.ownBytes();
    if (now > bytes)
      bytes = now;
  }
};

/// Is told of each run of a function and each of its instructions, as they are
/// queued.
struct InstructionObserver {
  virtual ~InstructionObserver() = default;
  virtual void begin(const plan::Function &function) = 0;
  virtual void end(const plan::Function &function, size_t instruction) = 0;
};

class FunctionRunner {
public:
  /// Throws PlanError, naming the instruction, or CollectiveError. Where the
  /// function exchanges something, all ranks must make it in the same order.
  FunctionRunner(const plan::Function &function, Device &device,
                 Groups &groups);

  /// Slots to fill before `run`, by position in the function's lists.
  at::Tensor &input(int i) { return slots[function.inputs[i]]; }
  /// `draw` is what random operators draw by, with their keys. Into `notFinite`
  /// goes the parameter that holds a number that is not finite, or the first
  /// operator that gives one, if it is not null; each operator is then waited
  /// for.
  void run(const std::vector<at::Tensor> &params,
           const std::vector<at::Tensor> &gradients, OwnPeak &peak,
           const Draw &draw = {}, std::string *notFinite = nullptr);
  /// Takes output i out of a run; the same slot may be several outputs.
  at::Tensor output(int i) { return slots[function.outputs[i]]; }
  /// Drops whatever the run left.
  void clear();
  /// Null: nobody is told. It must outlive the runs.
  void observe(InstructionObserver *by) { observer = by; }

private:
  struct Fill {
    int argument;
    int slot;
  };
  /// A list of tensors; slot -1 is a missing optional.
  struct FillList {
    int argument;
    std::vector<int> slots;
    bool optional;
  };
  struct Key {
    int argument;
    int64_t key;
    /// Where this rank draws by its place: the place, and of how many.
    std::vector<int64_t> place;
  };
  struct Call {
    std::optional<c10::OperatorHandle> op;
    std::vector<c10::IValue> arguments; // constants; tensors are filled in
    std::vector<Fill> fills;
    std::vector<FillList> lists;
    std::vector<Key> keys;
    std::vector<int> results;
    std::vector<int> frees;
    int numReturns = 0;
    bool isOpaque = false;
    std::optional<OpaqueBackward> backward; // of an opaque operator
    std::shared_ptr<ExchangeCall> exchange; // instead of an operator
    /// Of one that is started, and of its await: which it is of those that the
    /// function starts, and the elements of its buffers.
    int started = -1;
    bool awaits = false;
    std::vector<int64_t> bufferSizes;
    std::vector<int> made; // of an await: slots of the result and the buffers
    std::vector<int> written;        // arguments that it writes over, or into
    IndexCheck indexCheck = nullptr; // null: its kernel checks them
  };
  Call prepare(const plan::Instruction &instruction, const Mesh &mesh) const;
  Call prepareExchange(const plan::Instruction &instruction, Groups &groups);
  Call prepareAwait(const plan::Exchange &await) const;
  c10::IValue constant(const plan::Arg &arg, const c10::Argument &formal) const;
  /// Arguments are on the stack; results are after it.
  void callOne(Call &call);
  void callExchange(Call &call);
  /// On the host; undefined where the exchange moves no rows.
  at::Tensor endsOf(const Call &call);
  void start(Call &call);
  void await(Call &call);
  /// "aten::mm of layers.3, instruction 4 of F: nan", or nothing.
  std::string problemOf(size_t instruction) const;
  /// "parameter 'mlp.down_proj.weight' of F holds nan", or nothing.
  std::string problemOfArguments() const;
  [[noreturn]] void fail(size_t instruction, const std::exception &error);

  const plan::Function &function;
  Device &device;
  InstructionObserver *observer = nullptr;
  std::vector<Call> calls;
  std::vector<at::Tensor> slots;
  int starts = 0;
  /// The last exchange that was started and is not awaited; -1: none.
  int underWay = -1;
  torch::jit::Stack stack;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_FUNCTIONRUNNER_H
