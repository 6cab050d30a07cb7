//===- RuntimeTinyPlan.cpp - A plan made by hand --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/RuntimeTinyPlan.h"

#include "runtime/plan/Timeline.h"

namespace accel::test {

using namespace accel::plan;

namespace {

/// Writes one function, instruction by instruction.
class Builder {
public:
  Function function;

  int slot(DType dtype, std::vector<int64_t> shape, int base = -1) {
    const int index = static_cast<int>(function.slots.size());
    function.slots.push_back({dtype, std::move(shape), base});
    if (base < 0)
      function.slots.back().base = index;
    return index;
  }
  static Arg tensor(int slot) {
    Arg arg;
    arg.kind = Arg::Kind::Tensor;
    arg.slot = slot;
    return arg;
  }
  static Arg integer(int64_t value) {
    Arg arg;
    arg.kind = Arg::Kind::Int;
    arg.intValue = value;
    return arg;
  }
  static Arg boolean(bool value) {
    Arg arg;
    arg.kind = Arg::Kind::Bool;
    arg.intValue = value;
    return arg;
  }
  static Arg list(std::vector<int64_t> values) {
    Arg arg;
    arg.kind = Arg::Kind::Ints;
    arg.ints = std::move(values);
    return arg;
  }
  static Arg type(DType dtype) {
    Arg arg;
    arg.kind = Arg::Kind::Type;
    arg.dtype = dtype;
    return arg;
  }
  void call(const char *op, std::vector<Arg> args, std::vector<int> results,
            std::vector<int> frees = {}) {
    Instruction instruction;
    instruction.op = op;
    instruction.args = std::move(args);
    instruction.results = std::move(results);
    instruction.frees = std::move(frees);
    function.instructions.push_back(std::move(instruction));
  }
};

/// Forward and backward in one; `train` false: the loss alone.
Function lossFunction(const TinyOptions &o, bool train, bool accumulate) {
  Builder b;
  using B = Builder;
  const int64_t rows = o.batch * o.length;
  const DType t = o.gather;
  const int ids = b.slot(DType::I64, {o.batch, o.length});
  const int labels = b.slot(DType::I64, {o.batch, o.length});
  const int seed = train ? b.slot(DType::F32, {}) : -1;
  const int table = b.slot(t, {o.vocab, o.hidden});
  const int weight = b.slot(t, {o.vocab, o.hidden});
  Function &f = b.function;
  f.name =
      train ? (accumulate ? "Tiny.accumulate" : "Tiny.train") : "Tiny.eval";
  f.inputs = {ids, labels};
  f.params = {table, weight};
  f.paramNames = {"embed.weight", "head.weight"};

  const int x = b.slot(t, {o.batch, o.length, o.hidden});
  b.call("aten::embedding", {B::tensor(table), B::tensor(ids)}, {x});
  const int x2 = b.slot(t, {rows, o.hidden}, x);
  b.call("aten::view", {B::tensor(x), B::list({rows, o.hidden})}, {x2}, {x});
  const int wt = b.slot(t, {o.hidden, o.vocab}, weight);
  b.call("aten::t", {B::tensor(weight)}, {wt});
  int logits = b.slot(t, {rows, o.vocab});
  b.call("aten::mm", {B::tensor(x2), B::tensor(wt)}, {logits}, {wt});
  if (t != DType::F32) {
    const int upcast = b.slot(DType::F32, {rows, o.vocab});
    b.call("aten::_to_copy", {B::tensor(logits), B::type(DType::F32)}, {upcast},
           {logits});
    logits = upcast;
  }
  const int lp = b.slot(DType::F32, {rows, o.vocab});
  b.call("aten::_log_softmax",
         {B::tensor(logits), B::integer(1), B::boolean(false)}, {lp}, {logits});
  const int target = b.slot(DType::I64, {rows}, labels);
  b.call("aten::view", {B::tensor(labels), B::list({rows})}, {target},
         {labels});
  const int loss = b.slot(DType::F32, {}), total = b.slot(DType::F32, {});
  b.call("aten::nll_loss_forward",
         {B::tensor(lp), B::tensor(target), Arg(), B::integer(1),
          B::integer(-100)},
         {loss, total});
  f.outputs = {loss};
  if (!train) {
    f.instructions.back().frees = {lp, target, total, x2};
    return f;
  }
  f.inputs.push_back(seed);
  const int dTable = b.slot(o.reduce, {o.vocab, o.hidden});
  const int dWeight = b.slot(o.reduce, {o.vocab, o.hidden});
  f.gradients = {dTable, dWeight};
  f.gradientNames = f.paramNames;
  const int glp = b.slot(DType::F32, {rows, o.vocab});
  b.call("aten::nll_loss_backward",
         {B::tensor(seed), B::tensor(lp), B::tensor(target), Arg(),
          B::integer(1), B::integer(-100), B::tensor(total)},
         {glp}, {total, target, seed});
  int gl = b.slot(DType::F32, {rows, o.vocab});
  b.call("aten::_log_softmax_backward_data",
         {B::tensor(glp), B::tensor(lp), B::integer(1), B::type(DType::F32)},
         {gl}, {glp, lp});
  if (t != DType::F32) {
    const int low = b.slot(t, {rows, o.vocab});
    b.call("aten::_to_copy", {B::tensor(gl), B::type(t)}, {low}, {gl});
    gl = low;
  }
  const int glt = b.slot(t, {o.vocab, rows}, gl);
  b.call("aten::t", {B::tensor(gl)}, {glt});
  if (t == o.reduce && !accumulate) {
    b.call("aten::mm.out", {B::tensor(glt), B::tensor(x2), B::tensor(dWeight)},
           {}, {glt, x2});
  } else {
    const int dw = b.slot(t, {o.vocab, o.hidden});
    b.call("aten::mm", {B::tensor(glt), B::tensor(x2)}, {dw}, {glt, x2});
    b.call(accumulate ? "aten::add_.Tensor" : "aten::copy_",
           {B::tensor(dWeight), B::tensor(dw)}, {}, {dw});
  }
  int gx = b.slot(t, {rows, o.hidden});
  b.call("aten::mm", {B::tensor(gl), B::tensor(weight)}, {gx}, {gl});
  if (t != o.reduce) {
    const int cast = b.slot(o.reduce, {rows, o.hidden});
    b.call("aten::_to_copy", {B::tensor(gx), B::type(o.reduce)}, {cast}, {gx});
    gx = cast;
  }
  const int flat = b.slot(DType::I64, {rows}, ids);
  b.call("aten::view", {B::tensor(ids), B::list({rows})}, {flat}, {ids});
  if (!accumulate)
    b.call("aten::zero_", {B::tensor(dTable)}, {});
  b.call("aten::index_add_",
         {B::tensor(dTable), B::integer(0), B::tensor(flat), B::tensor(gx)}, {},
         {flat, gx});
  return f;
}

class ProgramBuilder {
public:
  ProgramBuilder(const Plan &plan, const TinyOptions &options)
      : plan(plan), options(options) {}
  Program program;

  ProgramInstruction &add(ProgramInstructionKind kind, int unit = -1,
                          Role role = Role::Gathered) {
    ProgramInstruction instruction;
    instruction.kind = kind;
    instruction.unit = unit;
    instruction.role = role;
    program.instructions.push_back(instruction);
    return program.instructions.back();
  }
  int start(ProgramInstructionKind kind, int unit,
            const std::vector<std::string> &axes) {
    ProgramInstruction &instruction = add(kind, unit);
    instruction.stream = kind == ProgramInstructionKind::AllGather
                             ? Stream::Gather
                             : Stream::Reduce;
    instruction.axes = axes;
    instruction.algorithm =
        kind == ProgramInstructionKind::ReduceScatter ? options.algorithm : "";
    return instruction.timepoint = timepoints++;
  }
  void await(int timepoint) {
    add(ProgramInstructionKind::Await).timepoint = timepoint;
  }
  int value(const char *name, DType dtype, std::vector<int64_t> shape) {
    Value v{name, dtype, shape, 0, -1};
    v.bytes = itemSize(dtype);
    for (int64_t extent : shape)
      v.bytes *= extent;
    v.bytes = alignedBytes(v.bytes);
    program.values.push_back(v);
    return static_cast<int>(program.values.size()) - 1;
  }

private:
  const Plan &plan;
  const TinyOptions &options;
  int timepoints = 0;
};

Program makeProgram(const Plan &plan, const TinyOptions &o, const char *name,
                    int function, bool train, bool first, bool last) {
  ProgramBuilder b(plan, o);
  b.program.name = name;
  const int ids = b.value("input_ids", DType::I64, {o.batch, o.length});
  const int labels = b.value("labels", DType::I64, {o.batch, o.length});
  b.program.inputs = {ids, labels};
  const int seed = train ? b.value("loss_seed", DType::F32, {}) : -1;
  if (train)
    b.program.inputs.push_back(seed);
  const int loss = b.value("loss", DType::F32, {});
  b.program.loss = loss;
  const bool gathers = !readsShard(plan, plan.units[0]);
  const bool straight = writesShardGradient(plan, plan.units[0]);
  std::vector<int> awaited;
  if (gathers)
    for (int unit : {0, 1}) {
      b.add(ProgramInstructionKind::Alloc, unit, Role::Gathered);
      awaited.push_back(b.start(ProgramInstructionKind::AllGather, unit,
                                plan.units[unit].shardAxes));
    }
  for (int timepoint : awaited)
    b.await(timepoint);
  if (train)
    for (int unit : {0, 1})
      if (!straight || first)
        b.add(ProgramInstructionKind::Alloc, unit,
              straight ? Role::ShardGradient : Role::Gradient);
  ProgramInstruction &call = b.add(ProgramInstructionKind::Call);
  call.function = function;
  call.inputs = train ? std::vector<int>{ids, labels, seed}
                      : std::vector<int>{ids, labels};
  call.consumed.assign(call.inputs.size(), true);
  for (int p : {0, 1}) {
    call.params.push_back({p, p});
    if (train)
      call.gradients.push_back({p, p, straight && !first});
  }
  call.outputs = {loss};
  if (gathers)
    for (int unit : {0, 1})
      b.add(ProgramInstructionKind::Free, unit, Role::Gathered);
  if (!train)
    return b.program;
  const bool allToAll = std::string(o.algorithm) == "all_to_all" && o.shard > 1;
  for (int unit : {1, 0}) {
    if (!straight) {
      if (allToAll)
        b.add(ProgramInstructionKind::Alloc, unit, Role::Receive);
      if (first)
        b.add(ProgramInstructionKind::Alloc, unit, Role::ShardGradient);
      const int timepoint = b.start(ProgramInstructionKind::ReduceScatter, unit,
                                    plan.units[unit].shardAxes);
      b.program.instructions.back().accumulate = !first;
      b.await(timepoint);
      b.add(ProgramInstructionKind::Free, unit, Role::Gradient);
      if (allToAll)
        b.add(ProgramInstructionKind::Free, unit, Role::Receive);
    }
    if (!last)
      continue;
    if (o.replicate > 1)
      b.await(b.start(ProgramInstructionKind::AllReduce, unit,
                      plan.units[unit].replicateAxes));
    if (o.inlineUpdate) {
      b.add(ProgramInstructionKind::Optimizer, unit);
      b.add(ProgramInstructionKind::Free, unit, Role::ShardGradient);
    }
  }
  if (last && !o.inlineUpdate) {
    if (o.maxGradNorm > 0 || o.lossScaling)
      b.add(ProgramInstructionKind::GradNorm);
    for (int unit : {0, 1}) {
      b.add(ProgramInstructionKind::Optimizer, unit);
      b.add(ProgramInstructionKind::Free, unit, Role::ShardGradient);
    }
  }
  return b.program;
}

} // namespace

Plan tinyPlan(const TinyOptions &o) {
  Plan plan;
  plan.generator = "test";
  plan.device = "cpu";
  plan.axes = {{"dp_replicate", o.replicate}, {"dp_shard", o.shard}};
  Job &job = plan.job;
  job.modelName = "tiny";
  job.microBatch = o.batch;
  job.sequenceLength = o.length;
  job.vocab = o.vocab;
  job.accumulation = o.accumulation;
  job.lossScaling = o.lossScaling;
  job.precision = o.lossScaling ? "fp16" : "no";
  job.optimizer.maxGradNorm = o.maxGradNorm;
  job.optimizer.groups = {{0.05, 0.1}};
  job.schedule.steps = 6;
  job.evalBatches = 2;
  for (const char *name : {"embed.weight", "head.weight"}) {
    Parameter p;
    p.fqn = name;
    p.shape = {o.vocab, o.hidden};
    p.unit = static_cast<int>(plan.parameters.size());
    p.init = {Initializer::Kind::Normal, 0.5};
    plan.parameters.push_back(p);
    Unit unit;
    unit.name = p.unit == 0 ? "embed" : "head";
    if (o.shard > 1)
      unit.shardAxes = {"dp_shard"};
    if (o.replicate > 1)
      unit.replicateAxes = {"dp_replicate"};
    unit.gather = o.gather;
    unit.reduce = o.reduce;
    unit.states = {{"exp_avg", DType::F32}, {"exp_avg_sq", DType::F32}};
    unit.parameters = {p.unit};
    unit.numel = p.numel();
    const int64_t instruction = 64 * o.shard;
    unit.padded = (unit.numel + instruction - 1) / instruction * instruction;
    unit.groupRanges = {{0, 0, unit.padded}};
    plan.units.push_back(unit);
  }
  plan.functions = {lossFunction(o, true, false),
                    lossFunction(o, false, false)};
  const bool straight = writesShardGradient(plan, plan.units[0]);
  if (straight && o.accumulation > 1)
    plan.functions.push_back(lossFunction(o, true, true));
  const int later = static_cast<int>(plan.functions.size()) == 3 ? 2 : 0;
  if (o.accumulation == 1) {
    plan.programs = {makeProgram(plan, o, "train", 0, true, true, true)};
    plan.step = {{0, 1}};
  } else {
    plan.programs = {makeProgram(plan, o, "first", 0, true, true, false),
                     makeProgram(plan, o, "middle", later, true, false, false),
                     makeProgram(plan, o, "last", later, true, false, true)};
    plan.step = {{0, 1}};
    if (o.accumulation > 2)
      plan.step.emplace_back(1, o.accumulation - 2);
    plan.step.emplace_back(2, 1);
    if (o.accumulation == 2)
      plan.programs.erase(plan.programs.begin() + 1),
          plan.step.back().first = 1;
  }
  plan.eval = static_cast<int>(plan.programs.size());
  plan.programs.push_back(makeProgram(plan, o, "eval", 1, false, true, true));
  predictMemory(plan);
  return plan;
}

} // namespace accel::test
