//===- Executor.h - A rank's job in memory ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Holds the units' shards, the functions and the programs of a plan on one
// rank, and runs optimizer steps. Knows nothing of data, files or logs.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
#define ACCEL_RUNTIME_EXECUTE_EXECUTOR_H

#include "runtime/collectives/Groups.h"
#include "runtime/execute/Device.h"
#include "runtime/execute/DeviceScaler.h"
#include "runtime/execute/DiskStates.h"
#include "runtime/execute/FunctionRunner.h"
#include "runtime/execute/LateNumbers.h"
#include "runtime/execute/ProgramRunner.h"
#include "runtime/execute/UnitStorage.h"
#include "runtime/optimizer/LossScaler.h"
#include "runtime/optimizer/Optimizer.h"
#include "runtime/plan/Plan.h"

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// What one optimizer step did on this rank.
struct StepResult {
  double loss = 0;     // mean over this rank's slots
  double gradNorm = 0; // over all ranks, before clipping
  bool hasGradNorm = false;
  bool skipped = false; // the loss scaler found infinities
};

/// What the eval program says of one micro-batch.
struct EvalResult {
  double loss = 0;
  bool hasLoss = false; // not of a pipeline's other stages
  /// For each row of the logits the place of the largest one; empty unless the
  /// plan asks for them.
  std::vector<int64_t> predictions;
};

/// Tensors on the host for a program's inputs but "loss_seed", by name, of the
/// dtype and shape of the program's value. Called once a micro-batch, and once
/// a run for a buffer of the model.
using MakeInput = std::function<at::Tensor(const std::string &name)>;

class Executor {
public:
  /// `plan`, `device` and `groups` outlive it. Shards are zero until they are
  /// loaded. Throws PlanError, CollectiveError, or FileError where states are
  /// on a disk.
  Executor(const plan::Plan &plan, Device &device, Groups &groups,
           DiskIo diskIo = DiskIo::Auto);

  /// One optimizer step; `input(slot, name)` gives accumulation slot `slot`'s
  /// data and `learningRates` has one for each group. `microBatch` is the
  /// run's number of this rank's first micro-batch, by which dropout draws: the
  /// slots after it are a mesh of data-parallel ranks apart.
  StepResult
  step(const std::function<at::Tensor(int64_t, const std::string &)> &input,
       const std::vector<double> &learningRates, int64_t microBatch = 0,
       InstructionTimes *times = nullptr) {
    queue(input, learningRates, microBatch, times);
    return finish();
  }
  /// `step` in two halves, so that a GPU has work while the host looks at what
  /// the step before has done. `times` must live until `finish`.
  void
  queue(const std::function<at::Tensor(int64_t, const std::string &)> &input,
        const std::vector<double> &learningRates, int64_t microBatch = 0,
        InstructionTimes *times = nullptr);
  /// Waits for the oldest step that is queued.
  StepResult finish();
  size_t queued() const { return steps.size(); }
  /// The eval program on one micro-batch.
  EvalResult evaluate(const MakeInput &input);

  const plan::Plan &plan() const { return job; }
  Device &device() { return hardware; }
  Groups &groups() { return communicators; }
  /// The stage of this rank; 0 where the plan is no pipeline's.
  int stage() const { return ownStage; }
  /// This rank holds something of the unit: it is of its stage.
  bool holds(int unit) const { return job.units[unit].stage == ownStage; }
  /// A unit that it holds.
  UnitStorage &unit(int i) { return *units[i]; }
  /// From here until another unit is held the unit's shard and states are in
  /// memory, also where the plan has them on a disk; what is changed is kept.
  void hold(int unit, bool changes) {
    if (disk)
      disk->hold(unit, changes);
  }
  /// The same until the end of a scope, on which the last unit is let go. What
  /// is changed may be lost where an exception ends it.
  class Holding {
  public:
    explicit Holding(Executor &executor) : executor(executor) {}
    ~Holding() noexcept(false) {
      if (executor.disk && std::uncaught_exceptions() == 0)
        executor.disk->letGo();
    }
    Holding(const Holding &) = delete;
    Holding &operator=(const Holding &) = delete;

  private:
    Executor &executor;
  };
  /// Null where nothing is on a disk.
  const DiskStates *diskStates() const { return disk.get(); }
  /// Whose gradients of a unit that it holds are summed after those of its
  /// shards: its replicas, and the stages that have its parameters too.
  Communicator *replicasOf(int unit);
  /// This rank runs the function.
  bool calls(int function) const { return functions[function] != nullptr; }
  FunctionRunner &function(int i) { return *functions[i]; }
  OwnPeak &ownPeak() { return peak; }
  /// At most so many in any of its programs.
  int timepoints() const { return mostTimepoints; }
  /// Bytes on the host for values that programs copy there.
  at::Tensor &hostMemory() { return valuesOnHost.flat; }
  /// What chunks of this rank's stage have for its next chunk (by 1), or for
  /// the one before (by -1), in the order in which it is taken.
  std::deque<at::Tensor> &handed(int shift) { return handedOver[shift]; }
  /// What the micro-batch at hand draws by.
  const Draw &draw() const { return drawn; }
  LossScaler &scaler() { return lossScaler; }
  /// Where a step's first number that is not finite comes from; null unless it
  /// is searched, which waits for each operator.
  std::string *notFinite() { return searches ? &firstNotFinite : nullptr; }
  void searchNotFinite(bool on) { searches = on; }
  /// Leaves steps out whose gradients are not finite, also without a loss
  /// scaler; of a plan with a norm of the gradients, which sees it.
  void skipNotFinite(bool skips);
  /// Whether the host learns only at `finish` that a step was left out; until
  /// then `optimizerSteps` counts it.
  bool decidesLater() const { return late && leavesOut(); }
  /// Optimizer steps that were taken, for the state's step counters and the
  /// learning rate.
  double optimizerSteps() const { return optimizer->steps(); }
  void setOptimizerSteps(double steps) { optimizer->setSteps(steps); }

  /// Steps of programs.
  void clipGradients();
  /// `time` takes what an update on the host copies to the device; or null.
  void update(int unit, InstructionTime *time = nullptr);
  /// Called before a unit's shard and states change; may be empty.
  void beforeUpdate(std::function<void(int unit)> hook) {
    updateHook = std::move(hook);
  }
  /// The unit's gradients are on the host once `timepoint` is there.
  void offloads(int unit, int timepoint) {
    onHost[unit] = timepoint;
    arrivals.push_back(unit);
  }
  /// The unit's shard is read until `timepoint`.
  void gathers(int unit, int timepoint) { lastGather[unit] = timepoint; }
  /// Makes `stream` current for a gather of the unit, which waits for the
  /// unit's update alone.
  void enterGather(int unit, plan::Stream stream);

private:
  bool trains(int unit) const {
    return holds(unit) && job.units[unit].trainable;
  }
  /// A step whose results may still be on their way.
  struct Queued {
    StepResult result; // as far as the host knows it
    std::optional<LateNumbers> late;
    InstructionTimes *times = nullptr;
  };
  /// The programs of the last queued step.
  void queueSlots(
      const std::function<at::Tensor(int64_t, const std::string &)> &input,
      int64_t microBatch);
  /// Parts of micro-batches in the order of this rank's stage.
  void queueFrames(
      const std::function<at::Tensor(int64_t, const std::string &)> &input,
      int64_t microBatch);
  void setDraw(int64_t microBatch, int64_t slot);
  void addLoss(const at::Tensor &loss);
  std::vector<at::Tensor> inputsOf(const plan::Program &program,
                                   const MakeInput &input);
  ProgramResults runProgram(ProgramRunner &program, const MakeInput &input,
                            std::vector<InstructionTime> *times);
  /// Brings the buffers that programs of this rank read to the device, once.
  void holdBuffers(const MakeInput &input);
  /// What a program's input of this name is made of, on the device.
  at::Tensor onDevice(const std::string &name, const plan::Value &description,
                      const MakeInput &input);
  /// What the unit is updated from.
  at::Tensor &gradientOf(int unit);
  /// Waits until the unit's gradients are on the host, where they go there.
  void awaitGradients(int unit);
  void updateOnDevice(int unit);
  void updateOnHost(int unit, InstructionTime *time);
  /// What is gathered from is what was loaded.
  void publish();
  void addSquareSets();
  void sumSquares();
  void sumSquaresOnHost();
  struct Squares;
  void addSquaresOf(int unit, const Squares &range, const at::Tensor &into);
  void clipOnHost();
  /// What an update that reads more than elements has of a unit.
  void addWorkspace(const plan::Unit &unit, Optimizer::Unit &slot);
  void clipOnDevice();

  const plan::Plan &job;
  Device &hardware;
  Groups &communicators;
  int ownStage = 0, mostTimepoints = 0;
  OwnPeak peak;
  Draw drawn;
  std::vector<std::unique_ptr<UnitStorage>> units;
  std::unique_ptr<DiskStates> disk;
  std::vector<std::unique_ptr<FunctionRunner>> functions;
  std::vector<std::unique_ptr<ProgramRunner>> programs;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<int> onHost, lastGather; // by unit: timepoints
  /// By unit: who has written its shard since the stream of gathers has waited.
  enum class Writer { None, Load, Update };
  std::vector<Writer> writers;
  std::vector<int> arrivals; // units, as their gradients come to the host
  int afterHost = 0;         // timepoint of copies to the device
  bool published = false;
  std::map<int, std::deque<at::Tensor>> handedOver; // by shift
  FlatBuffer valuesOnHost;                          // or empty
  std::vector<FlatBuffer> workspaces; // of updates, by unit; or empty
  LossScaler lossScaler;
  std::deque<Queued> steps; // oldest first; the last one may be running
  bool skipsNotFinite = false;
  bool searches = false;
  std::string firstNotFinite;
  std::function<void(int)> updateHook;
  bool counted = false;   // this step, in the optimizer's counters
  at::Tensor coefficient; // 0-d f64: what gradients are multiplied by
  std::map<std::string, at::Tensor> held; // buffers of the model, by name
  bool holdsBuffers = false;

  /// A GPU is not waited for within a step: its numbers stay where they are.
  bool late = false;
  bool stepsOnDevice() const;
  /// A step whose gradients are not finite changes nothing.
  bool leavesOut() const { return lossScaler.enabled() || skipsNotFinite; }
  /// Counts the step at hand as taken, once.
  void countStep();
  DeviceScaler deviceScaler;
  at::Tensor numbers; // f64: loss, norm, 1 where the step is left out
  at::Tensor seed;    // 0-d f64: the gradient that a loss starts with
  std::vector<at::Tensor> squareSums; // by set of axes that shard or split
  std::vector<Communicator *> squareGroups;
  /// Elements of a unit's shard gradient whose squares go into one sum.
  struct Squares {
    int64_t begin = 0, end = 0;
    int set = -1;
  };
  std::vector<std::vector<Squares>> squares; // by unit; empty: not trained
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
