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
//   params  [{"unit": ..., "fqn": [...]}], neighbours of one unit together
//   arg     "%3" a tensor, ["%3", "%4"] tensors, 1 an int, 1.0 a float, "inf",
//           "nan", true, [1, 2] ints, [true] bools, null, {"dtype": "f32"},
//           {"scalar": 2.0} a Python scalar; {"tensors": []} and
//           {"bools": []} where nothing else tells the type
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"

#include "runtime/plan/Optimizers.h"
#include "runtime/plan/PlanWriter.h"
#include "runtime/plan/Sha256.h"

namespace accel::plan {

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
      raw(inner ? "" : ",");
      inner = false;
      string(name);
      raw(":");
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
  if (!job.archive.empty())
    field(first, "archive", job.archive);
  if (!job.adapterConfig.empty())
    field(first, "adapter_config", job.adapterConfig);
  raw("},\n  ");
  first = true;
  field(first, "seed", job.seed);
  if (job.randomSeed)
    field(first, "random_seed", job.randomSeed);
  field(first, "precision", job.precision);
  if (job.lossScaling)
    flag(first, "loss_scaling", true);
  field(first, "micro_batch", job.microBatch);
  field(first, "sequence_length", job.sequenceLength);
  field(first, "vocab", job.vocab);
  if (!job.inputLimits.empty()) {
    key(first, "input_limits");
    bool inner = true;
    raw("{");
    for (const InputLimit &input : job.inputLimits)
      field(inner, input.name, input.limit);
    raw("}");
  }
  field(first, "gradient_accumulation_steps", job.accumulation);
  raw(",\n  \"optimizer\": {");
  first = true;
  field(first, "name", job.optimizer.name);
  hyperparameters(first, job.optimizer);
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

/// All of them, those with their defaults too.
void PlanWriter::hyperparameters(bool &first, const Optimizer &optimizer) {
  const OptimizerDescription *description = findOptimizer(optimizer.name);
  if (!description)
    return;
  for (const Hyperparameter &parameter : description->hyperparameters) {
    const std::vector<double> numbers = valueOf(optimizer, parameter.name);
    switch (parameter.kind) {
    case Hyperparameter::Kind::Number:
      field(first, parameter.name, numbers.front());
      break;
    case Hyperparameter::Kind::Numbers:
      key(first, parameter.name);
      list(numbers, [&](double number) { real(number); });
      break;
    case Hyperparameter::Kind::Flag:
      flag(first, parameter.name, numbers.front() != 0);
      break;
    }
  }
}

void PlanWriter::parameter(const Parameter &parameter) {
  bool first = true;
  raw("{");
  field(first, "fqn", parameter.fqn);
  if (!parameter.aliases.empty()) {
    key(first, "aliases");
    strings(parameter.aliases);
  }
  if (!parameter.stored.empty()) {
    key(first, "stored");
    strings(parameter.stored);
  }
  if (!parameter.baseNames.empty()) {
    key(first, "base_names");
    strings(parameter.baseNames);
  }
  if (!parameter.adapterKey.empty())
    field(first, "adapter_key", parameter.adapterKey);
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
  initializer(first, parameter.init);
  raw("}");
}

void PlanWriter::initializer(bool &first, const Initializer &init) {
  using Kind = Initializer::Kind;
  if (init.kind == Kind::Zeros)
    return;
  if (init.kind == Kind::Ones && init.zeroRow < 0) {
    field(first, "init", std::string_view("ones"));
    return;
  }
  key(first, "init");
  bool inner = true;
  raw("{");
  auto number = [&](const char *name, double value) {
    key(inner, name);
    real(value);
  };
  switch (init.kind) {
  case Kind::Zeros:
    break;
  case Kind::Ones:
    number("constant", 1);
    break;
  case Kind::Normal:
    number("normal", init.value);
    break;
  case Kind::TruncatedNormal:
    number("truncated_normal", init.value);
    break;
  case Kind::Uniform:
    flag(inner, "uniform", true);
    break;
  case Kind::Constant:
    number("constant", init.value);
    break;
  case Kind::Sinusoids:
    number("sinusoids", init.value);
    break;
  }
  if (init.kind == Kind::TruncatedNormal || init.kind == Kind::Uniform) {
    number("low", init.low);
    number("high", init.high);
  }
  if (init.zeroRow >= 0)
    field(inner, "zero_row", init.zeroRow);
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

std::string toJson(const Plan &plan) { return PlanWriter(plan).write(); }

} // namespace accel::plan
