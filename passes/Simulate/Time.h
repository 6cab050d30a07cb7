//===- Time.h - How long a step takes ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Discrete-event simulation of a plan's programs over its streams and one wire,
// on a target, as accel-run executes them: a collective starts after what was
// computed before it, and waits for the wire; a gather on a GPU waits for its
// unit's update and for what read the parameters that were freed before.
// Operators and collectives cost what passes/Cost says.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SIMULATE_TIME_H
#define ACCEL_PASSES_SIMULATE_TIME_H

#include "passes/PipelineSchedules/Simulate.h"
#include "passes/Targets/Target.h"
#include "runtime/plan/MovedBytes.h"
#include "runtime/plan/Optimizers.h"

#include <optional>
#include <vector>

namespace accel {

/// When an instruction of a program runs, in seconds from the program's start.
struct TimelineEvent {
  int instruction = -1; // Program::instructions
  plan::Stream stream = plan::Stream::Compute;
  double begin = 0, end = 0; // a collective's end: its data is there
  double waited = 0;         // of an await: for the collective, before `begin`
  double exposed = 0;        // the computation waits so long for what it does
};

/// What a program leaves to the gathers of the next one, in seconds before its
/// own end: since when their stream and the wire are free, nothing reads
/// gathered parameters that were freed, and a unit's update is done. They wait
/// for no other computation (Executor::enterGather).
struct StepEnd {
  double gathers = 0, wire = 0, freed = 0;
  std::vector<double> updated; // by unit
};

/// One program from its begin, when the device has done what was queued before,
/// to the end of its last instruction. Gathers may begin before (StepEnd).
struct ProgramTime {
  double seconds = 0;
  double computeSeconds = 0;         // the compute stream works
  double exposedSeconds = 0;         // the rest: communication is waited for
  double exchangeSeconds = 0;        // of that, exchanges inside of functions
  std::vector<TimelineEvent> events; // by instruction, on request
  StepEnd end;
};

/// A program of the optimizer step, which runs it `repeat` times alike.
struct StepPart {
  int program = -1; // Plan::programs
  double repeat = 1;
  ProgramTime time;
};

/// Seconds of one collective of `bytes` (the whole buffer, of all ranks) over
/// mesh axes, alone on the wire. `kind` is AllGather, ReduceScatter or
/// AllReduce; `ranksPerNode` 0 is the target's own.
double collectiveSeconds(const plan::Plan &plan, const Target &target,
                         int64_t ranksPerNode,
                         plan::ProgramInstructionKind kind,
                         const std::vector<std::string> &axes, double bytes);

/// Costs of all functions and units of a plan, computed once; any number of
/// programs over them can then be simulated, each in time linear in its
/// instructions. Plan and target must outlive the model; instructions must be
/// in range (verify).
class TimeModel {
public:
  TimeModel(const plan::Plan &plan, const Target &target,
            int64_t ranksPerNode = 0);
  /// `before` is the end of the program that ran before; null: nothing did.
  ProgramTime simulate(const plan::Program &program, bool withEvents = false,
                       const StepEnd *before = nullptr) const;
  /// The programs of one optimizer step of many, of a rank of `stage`, each
  /// after the one before. Of a pipeline each is alone.
  std::vector<StepPart> simulateStep(int stage = 0,
                                     bool withEvents = false) const;
  double functionSeconds(int function) const { return functions[function]; }
  /// What ranks exchange within it and its operators wait for, in seconds
  /// beside those.
  double exchangeSeconds(int function) const { return exchanges[function]; }
  /// From one stage of a pipeline to the next.
  double sendSeconds(int64_t bytes) const;

private:
  friend class RankTimeline;
  struct UnitTimes {
    double fill = 0, gather = 0, scatter = 0, allReduce = 0;
    double addSlices = 0, addPiece = 0, addBefore = 0, update = 0;
    double updateWire = 0;
    double castForWire = 0;                       // plan::Unit::hook
    double hostOut = 0, hostIn = 0, hostNorm = 0; // plan::Offload
    double diskRead = 0, diskWrite = 0;           // plan::Disk
  };
  UnitTimes unitTimes(const plan::Unit &unit) const;
  /// Of the values' storages, between device and host.
  double copySeconds(const plan::Program &program,
                     const std::vector<int> &values) const;
  double memorySeconds(double bytes) const;
  /// By the target's rate of these, where accel-run --fit has measured it.
  std::optional<double>
  measuredSeconds(const std::optional<plan::MovedBytes> &moved) const;
  double wireSeconds(plan::ProgramInstructionKind kind,
                     const std::vector<std::string> &axes, double bytes) const;
  /// Gathers wait for what they need alone. On CPUs the thread that computes
  /// starts them, and copies.
  bool gathersOnStream() const { return target.kind != TargetKind::Cpu; }
  double gradNormSeconds(int stage) const;
  double finishSeconds(const plan::ProgramInstruction &instruction) const;

  const plan::Plan &plan;
  const Target &target;
  int64_t ranksPerNode;
  plan::OptimizerRule optimizer;
  std::vector<double> functions; // by Plan::functions
  std::vector<double> exchanges; // by Plan::functions
  std::vector<UnitTimes> units;  // by Plan::units
  std::vector<double> gradNorms; // by stage
};

/// Simulates one program alone.
ProgramTime simulateTime(const plan::Plan &plan, const plan::Program &program,
                         const Target &target, int64_t ranksPerNode = 0,
                         bool withEvents = false);

/// The step of a pipeline, one of many: the ranks of each stage run the parts
/// of their order on streams of their own, and wait for one another's messages.
/// The simulation has the schedule's actions of a step that follows nothing:
/// when each stage computes, without the update; the bubble is the time in
/// which it does not. A rank's peak is its device's, as the plan predicts it.
/// Nothing without stages, or where ranks wait for each other.
struct PipelineTime {
  double seconds = 0; // with the update, behind another step
  pipeline::SimulatedStep step;
};
std::optional<PipelineTime> simulatePipeline(const plan::Plan &plan,
                                             const TimeModel &model);

/// The optimizer step, program by program: fills `plan.predicted`'s
/// stepSeconds, computeSeconds, exposedCommSeconds, tokensPerSecond (of all
/// ranks) and hasTime. Linear in the number of instructions of programs and
/// functions.
void predictTime(plan::Plan &plan, const Target &target,
                 int64_t ranksPerNode = 0);

/// FLOPs of the model itself for one token, forward and backward, without
/// recomputation: 6 for each trained parameter that is multiplied (4 for a
/// frozen one), and 12 * layers * heads * head size * sequence length for
/// attention, causal or not (Chowdhery et al., PaLM, appendix B; as torchtitan
/// counts).
double modelFlopsPerToken(const plan::Plan &plan);

/// Ranks that share sequences by ring attention, and the tokens of a sequence.
struct RingOfRanks {
  int64_t ranks = 1, sequenceLength = 0;
};

/// What one function adds to that, forward and backward.
struct FunctionFlops {
  /// By parameter of the function: the part of its elements that a token is
  /// multiplied with; 0 where only look-ups read it.
  std::vector<double> multiplied;
  double attention = 0; // FLOPs of a call
};
/// `tokens` of a micro-batch. Parameters count through casts, as autocast
/// makes them.
FunctionFlops functionFlops(const plan::Function &function, double tokens,
                            const RingOfRanks &ring);

/// The share of the datasheet's FLOP/s, in the dtype of the computation, that
/// `modelFlopsPerToken` makes at the predicted speed; 0 without a time.
double modelFlopsUtilisation(const plan::Plan &plan, const Target &target);

} // namespace accel

#endif // ACCEL_PASSES_SIMULATE_TIME_H
