//===- PlanJson.cpp - Writing plan.json -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The text is written as it goes, without a document in memory: a 405B plan is
// 2 MB. What equals its default is left out; PlanRead.cpp restores it. Shapes,
// slots, values and operator arguments have compact forms:
//
//   slot    ["f32", [2, 512]] or, a view of slot 3, ["f32", [1024], 3]
//   value   {"name": ..., "type": ["bf16", [1, 8]]}
//   arg     "%3" a tensor, ["%3", "%4"] tensors, 1 an int, 1.0 a float, "inf",
//           true, [1, 2] ints, [true] bools, null, {"dtype": "f32"},
//           {"scalar": 2.0} a Python scalar; {"tensors": []} and
//           {"bools": []} where nothing else tells the type
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"

#include "runtime/plan/JsonWriter.h"
#include "runtime/plan/Sha256.h"

namespace accel::plan {

namespace {

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
    text += "\", ";
    integers(shape);
    if (base >= 0) {
      text += ", ";
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
  void data(const Data &data);
  void parameter(const Parameter &parameter);
  void unit(const Unit &unit);
  void function(const Function &function);
  void arg(const Arg &arg);
  void instruction(const Instruction &instruction);
  void program(const Program &program);
  void step(const Program &program, const Step &step);
  void predicted();
  void decision(const Decision &decision);

  const std::string &unitName(int unit) const {
    return plan.units.at(unit).name;
  }
  const Plan &plan;
};

void PlanWriter::data(const Data &data) {
  bool first = true;
  raw("{");
  if (!data.kind.empty())
    field(first, "kind", data.kind);
  if (!data.path.empty())
    field(first, "path", data.path);
  if (!data.arrays.empty()) {
    key(first, "arrays");
    raw("{");
    bool inner = true;
    for (const auto &[name, path] : data.arrays) {
      raw(inner ? "" : ", ");
      inner = false;
      string(name);
      raw(": ");
      string(path);
    }
    raw("}");
  }
  if (data.dtype != "uint16")
    field(first, "dtype", data.dtype);
  if (data.shuffle)
    flag(first, "shuffle", true);
  if (data.seed)
    field(first, "seed", data.seed);
  raw("}");
}

void PlanWriter::job() {
  const Job &job = plan.job;
  bool first = true;
  section("job");
  raw("{\n  \"model\": {");
  field(first, "name", job.modelName);
  field(first, "path", job.modelPath);
  if (!job.weightFiles.empty()) {
    key(first, "weights");
    strings(job.weightFiles);
  }
  raw("},\n  ");
  first = true;
  field(first, "seed", job.seed);
  field(first, "precision", job.precision);
  if (job.lossScaling)
    flag(first, "loss_scaling", true);
  field(first, "micro_batch", job.microBatch);
  field(first, "sequence_length", job.sequenceLength);
  field(first, "vocab", job.vocab);
  field(first, "gradient_accumulation_steps", job.accumulation);
  raw(",\n  \"optimizer\": {");
  first = true;
  field(first, "name", job.optimizer.name);
  key(first, "betas");
  list(std::vector{job.optimizer.beta1, job.optimizer.beta2},
       [&](double beta) { real(beta); });
  field(first, "eps", job.optimizer.eps);
  field(first, "max_grad_norm", job.optimizer.maxGradNorm);
  key(first, "groups");
  list(job.optimizer.groups, [&](const OptimizerGroup &group) {
    bool inner = true;
    raw("{");
    field(inner, "lr", group.lr);
    field(inner, "weight_decay", group.weightDecay);
    raw("}");
  });
  raw("},\n  \"schedule\": {");
  first = true;
  field(first, "steps", job.schedule.steps);
  field(first, "warmup_steps", job.schedule.warmupSteps);
  field(first, "decay", job.schedule.decay);
  field(first, "min_lr", job.schedule.minLr);
  raw("},\n  \"data\": ");
  data(job.data);
  raw(",\n  \"eval\": {\"every\": ");
  integer(job.evalEvery);
  raw(", \"batches\": ");
  integer(job.evalBatches);
  raw(", \"data\": ");
  data(job.evalData);
  raw("},\n  \"checkpoint\": {");
  first = true;
  field(first, "dir", job.checkpoint.dir);
  field(first, "every", job.checkpoint.every);
  field(first, "keep", job.checkpoint.keep);
  field(first, "state_dict", job.checkpoint.stateDict);
  raw("}\n}");
}

void PlanWriter::parameter(const Parameter &parameter) {
  bool first = true;
  raw("{");
  field(first, "fqn", parameter.fqn);
  if (!parameter.aliases.empty()) {
    key(first, "aliases");
    strings(parameter.aliases);
  }
  key(first, "shape");
  integers(parameter.shape);
  field(first, "dtype", std::string_view(toString(parameter.dtype)));
  key(first, "placements");
  raw("{");
  const Unit &unit = plan.units.at(parameter.unit);
  bool inner = true;
  for (const Axis &axis : plan.axes) {
    bool sharded = false;
    for (const std::string &name : unit.shardAxes)
      sharded |= name == axis.name;
    field(inner, axis.name, std::string_view(sharded ? "shard" : "replicate"));
  }
  raw("}");
  if (!parameter.trainable)
    flag(first, "trainable", false);
  if (parameter.group)
    field(first, "group", int64_t(parameter.group));
  field(first, "unit", unit.name);
  field(first, "offset", parameter.offset);
  switch (parameter.init.kind) {
  case Initializer::Kind::Zeros:
    break;
  case Initializer::Kind::Ones:
    field(first, "init", std::string_view("ones"));
    break;
  case Initializer::Kind::Normal:
    key(first, "init");
    raw("{\"normal\": ");
    real(parameter.init.stddev);
    raw("}");
    break;
  }
  raw("}");
}

void PlanWriter::unit(const Unit &unit) {
  bool first = true;
  raw("{");
  field(first, "name", unit.name);
  key(first, "shard_axes");
  strings(unit.shardAxes);
  key(first, "replicate_axes");
  strings(unit.replicateAxes);
  key(first, "dtypes");
  bool inner = true;
  raw("{");
  field(inner, "storage", std::string_view(toString(unit.storage)));
  field(inner, "gather", std::string_view(toString(unit.gather)));
  field(inner, "compute", std::string_view(toString(unit.gather)));
  field(inner, "grad", std::string_view(toString(unit.reduce)));
  field(inner, "reduce", std::string_view(toString(unit.reduce)));
  raw("}");
  if (!unit.trainable)
    flag(first, "trainable", false);
  key(first, "states");
  list(unit.states, [&](const State &state) {
    bool own = true;
    raw("{");
    field(own, "name", state.name);
    field(own, "dtype", std::string_view(toString(state.dtype)));
    raw("}");
  });
  field(first, "numel", unit.numel);
  field(first, "padded", unit.padded);
  if (!unit.groupRanges.empty()) {
    key(first, "groups");
    list(unit.groupRanges, [&](const Unit::GroupRange &range) {
      integers(std::vector<int64_t>{range.group, range.begin, range.end});
    });
  }
  raw("}");
}

void PlanWriter::arg(const Arg &arg) {
  switch (arg.kind) {
  case Arg::Kind::None:
    raw("null");
    return;
  case Arg::Kind::Tensor:
    slotName(arg.slot);
    return;
  case Arg::Kind::Tensors:
    // All missing would read as something else.
    if (arg.ints.empty() ||
        arg.ints == std::vector<int64_t>(arg.ints.size(), -1)) {
      raw("{\"tensors\": ");
      integers(arg.ints);
      raw("}");
      return;
    }
    list(arg.ints, [&](int64_t slot) {
      if (slot < 0)
        raw("null");
      else
        slotName(slot);
    });
    return;
  case Arg::Kind::Int:
    integer(arg.intValue);
    return;
  case Arg::Kind::Float:
    real(arg.floatValue);
    return;
  case Arg::Kind::Bool:
    raw(arg.intValue ? "true" : "false");
    return;
  case Arg::Kind::Ints:
    integers(arg.ints);
    return;
  case Arg::Kind::Bools:
    if (arg.ints.empty()) {
      raw("{\"bools\": []}");
      return;
    }
    list(arg.ints, [&](int64_t value) { raw(value ? "true" : "false"); });
    return;
  case Arg::Kind::Type:
    raw("{\"dtype\": \"");
    raw(toString(arg.dtype));
    raw("\"}");
    return;
  case Arg::Kind::Wrapped:
    raw("{\"scalar\": ");
    real(arg.floatValue);
    raw("}");
    return;
  }
}

void PlanWriter::instruction(const Instruction &instruction) {
  bool first = true;
  raw("{");
  field(first, "kind",
        std::string_view(
            instruction.kind == Instruction::Kind::Aten ? "aten" : "opaque"));
  field(first, "op", instruction.op);
  key(first, "args");
  list(instruction.args, [&](const Arg &a) { arg(a); });
  if (!instruction.results.empty()) {
    key(first, "results");
    integers(instruction.results);
  }
  if (!instruction.frees.empty()) {
    key(first, "frees");
    integers(instruction.frees);
  }
  if (instruction.workspaceBytes)
    field(first, "workspace", instruction.workspaceBytes);
  if (instruction.flops != 0)
    field(first, "flops", instruction.flops);
  if (instruction.movedBytes != 0)
    field(first, "moved_bytes", instruction.movedBytes);
  if (!instruction.where.empty())
    field(first, "where", instruction.where);
  raw("}");
}

void PlanWriter::function(const Function &function) {
  auto named = [&](std::string_view name, const std::vector<int> &slots,
                   const std::vector<std::string> &names) {
    raw(",\n    \"");
    raw(name);
    raw("\": [");
    for (size_t i = 0; i < slots.size(); ++i) {
      raw(i ? ", [" : "[");
      integer(slots[i]);
      raw(", ");
      string(names.at(i));
      raw("]");
    }
    raw("]");
  };
  raw("{\"name\": ");
  string(function.name);
  raw(",\n    \"slots\": [");
  for (size_t i = 0; i < function.slots.size(); ++i) {
    const Slot &slot = function.slots[i];
    raw(i == 0 ? "" : ", ");
    type(slot.dtype, slot.shape, slot.base == int(i) ? -1 : slot.base);
  }
  raw("],\n    \"inputs\": ");
  integers(function.inputs);
  named("params", function.params, function.paramNames);
  named("gradients", function.gradients, function.gradientNames);
  raw(",\n    \"outputs\": ");
  integers(function.outputs);
  raw(",\n    \"instructions\": ");
  lines(function.instructions, 6,
        [&](const Instruction &i) { instruction(i); });
  raw("}");
}

void PlanWriter::step(const Program &program, const Step &step) {
  bool first = true;
  raw("{");
  field(first, "kind", std::string_view(toString(step.kind)));
  if (step.function >= 0)
    field(first, "function", plan.functions.at(step.function).name);
  if (step.unit >= 0)
    field(first, "unit", unitName(step.unit));
  if (step.role != Role::Gathered ||
      (step.unit >= 0 &&
       (step.kind == StepKind::Alloc || step.kind == StepKind::Free)))
    field(first, "role", std::string_view(toString(step.role)));
  if (step.stream != defaultStream(step.kind))
    field(first, "stream", std::string_view(toString(step.stream)));
  if (step.timepoint >= 0)
    field(first, "timepoint", int64_t(step.timepoint));
  if (step.accumulate)
    flag(first, "accumulate", true);
  if (!step.axes.empty()) {
    key(first, "axes");
    strings(step.axes);
  }
  if (!step.algorithm.empty())
    field(first, "algorithm", step.algorithm);
  if (!step.inputs.empty()) {
    key(first, "inputs");
    integers(step.inputs);
  }
  std::vector<int64_t> consumed; // positions
  for (size_t i = 0; i < step.consumed.size(); ++i)
    if (step.consumed[i])
      consumed.push_back(i);
  if (!consumed.empty()) {
    key(first, "consumed");
    integers(consumed);
  }
  if (!step.params.empty()) {
    key(first, "params");
    list(step.params, [&](const ParamRef &ref) {
      bool inner = true;
      raw("{");
      field(inner, "unit", unitName(ref.unit));
      field(inner, "fqn", plan.parameters.at(ref.parameter).fqn);
      raw("}");
    });
  }
  if (!step.gradients.empty()) {
    key(first, "gradients");
    list(step.gradients, [&](const GradRef &ref) {
      bool inner = true;
      raw("{");
      field(inner, "unit", unitName(ref.unit));
      field(inner, "fqn", plan.parameters.at(ref.parameter).fqn);
      if (ref.accumulate)
        flag(inner, "accumulate", true);
      raw("}");
    });
  }
  if (!step.outputs.empty()) {
    key(first, "outputs");
    integers(step.outputs);
  }
  if (!step.values.empty()) {
    key(first, "values");
    integers(step.values);
  }
  if (step.where != (step.unit >= 0 ? unitName(step.unit) : std::string()))
    field(first, "where", step.where);
  raw("}");
}

void PlanWriter::program(const Program &program) {
  bool first = true;
  raw("{");
  field(first, "name", program.name);
  key(first, "inputs");
  integers(program.inputs);
  if (program.loss >= 0)
    field(first, "loss", int64_t(program.loss));
  field(first, "peak_bytes", program.peakBytes);
  field(first, "peak_step", int64_t(program.peakStep));
  raw(",\n    \"values\": ");
  lines(program.values, 6, [&](const Value &value) {
    bool own = true;
    raw("{");
    field(own, "name", value.name);
    key(own, "type");
    type(value.dtype, value.shape);
    if (value.alias >= 0)
      field(own, "alias", int64_t(value.alias));
    if (value.bytes != defaultBytes(value))
      field(own, "bytes", value.bytes);
    raw("}");
  });
  raw(",\n    \"steps\": ");
  lines(program.steps, 6, [&](const Step &s) { step(program, s); });
  raw("}");
}

void PlanWriter::predicted() {
  const Predicted &p = plan.predicted;
  bool first = true;
  section("predicted");
  raw("{\n  \"memory\": {");
  field(first, "peak_bytes", p.peakBytes);
  field(first, "own_peak_bytes", p.ownPeakBytes);
  field(first, "persistent_bytes", p.persistentBytes);
  field(first, "reserved_bytes", p.reservedBytes);
  field(first, "device_bytes", p.deviceBytes);
  raw(",\n    \"breakdown\": {");
  first = true;
  field(first, "parameters", p.breakdown.parameters);
  field(first, "gradients", p.breakdown.gradients);
  field(first, "optimizer", p.breakdown.optimizer);
  field(first, "activations", p.breakdown.activations);
  field(first, "logits", p.breakdown.logits);
  field(first, "gathered", p.breakdown.gathered);
  field(first, "buffers", p.breakdown.buffers);
  raw("},\n    ");
  first = true;
  field(first, "peak_program", p.peakProgram);
  field(first, "peak_step", int64_t(p.peakStep));
  field(first, "peak_where", p.peakWhere);
  raw("},\n  \"time\": ");
  if (!p.hasTime) {
    raw("null\n}");
    return;
  }
  first = true;
  raw("{");
  field(first, "step_s", p.stepSeconds);
  field(first, "compute_s", p.computeSeconds);
  field(first, "exposed_comm_s", p.exposedCommSeconds);
  field(first, "tokens_per_s", p.tokensPerSecond);
  raw("}\n}");
}

void PlanWriter::decision(const Decision &decision) {
  bool first = true;
  raw("{");
  field(first, "what", decision.what);
  field(first, "where", decision.where);
  field(first, "choice", decision.choice);
  field(first, "why", decision.why);
  if (!decision.file.empty())
    field(first, "file", decision.file);
  if (decision.line)
    field(first, "line", int64_t(decision.line));
  if (decision.column)
    field(first, "column", int64_t(decision.column));
  if (!decision.alternatives.empty()) {
    key(first, "alternatives");
    strings(decision.alternatives);
  }
  raw("}");
}

std::string PlanWriter::write() {
  raw("{\n\"format\": ");
  integer(Plan::formatVersion);
  const size_t hashAt = text.size() + 2; // after ",\n"
  section("generator");
  string(plan.generator);
  section("target");
  string(plan.target);
  section("device");
  string(plan.device);
  job();
  section("mesh");
  raw("{\"axes\": ");
  list(plan.axes, [&](const Axis &axis) {
    bool first = true;
    raw("{");
    field(first, "name", axis.name);
    field(first, "size", axis.size);
    raw("}");
  });
  raw("}");
  section("rank_classes");
  raw("[{\"ranks\": [0, ");
  integer(plan.ranks());
  raw("], \"programs\": ");
  list(plan.programs, [&](const Program &p) { string(p.name); });
  raw("}]");
  section("parameters");
  lines(plan.parameters, 2, [&](const Parameter &p) { parameter(p); });
  section("buffers");
  lines(plan.buffers, 2, [&](const Buffer &buffer) {
    bool first = true;
    raw("{");
    field(first, "fqn", buffer.fqn);
    key(first, "shape");
    integers(buffer.shape);
    field(first, "dtype", std::string_view(toString(buffer.dtype)));
    flag(first, "persistent", buffer.persistent);
    raw("}");
  });
  section("units");
  lines(plan.units, 2, [&](const Unit &u) { unit(u); });
  section("functions");
  lines(plan.functions, 2, [&](const Function &f) { function(f); });
  section("programs");
  lines(plan.programs, 2, [&](const Program &p) { program(p); });
  section("step");
  list(plan.step, [&](const std::pair<int, int64_t> &part) {
    bool first = true;
    raw("{");
    field(first, "program", plan.programs.at(part.first).name);
    field(first, "repeat", part.second);
    raw("}");
  });
  section("eval");
  if (plan.eval >= 0)
    string(plan.programs.at(plan.eval).name);
  else
    raw("null");
  predicted();
  section("decisions");
  lines(plan.decisions, 2, [&](const Decision &d) { decision(d); });
  raw("\n}\n");

  Sha256 hash;
  hash.update(text);
  std::string line = "\"hash\": \"sha256:" + hash.hexDigest() + "\",\n";
  text.insert(hashAt, line);
  return std::move(text);
}

} // namespace

std::string toJson(const Plan &plan) { return PlanWriter(plan).write(); }

} // namespace accel::plan
