//===- PlanJsonProgram.cpp - Writing functions and programs ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanWriter.h"

namespace accel::plan {

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
      raw("{\"tensors\":");
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
      raw("{\"bools\":[]}");
      return;
    }
    list(arg.ints, [&](int64_t value) { raw(value ? "true" : "false"); });
    return;
  case Arg::Kind::Type:
    raw("{\"dtype\":\"");
    raw(toString(arg.dtype));
    raw("\"}");
    return;
  case Arg::Kind::Wrapped:
    raw("{\"scalar\":");
    real(arg.floatValue);
    raw("}");
    return;
  case Arg::Kind::Key:
    raw("{\"key\":");
    integer(arg.intValue);
    raw("}");
    return;
  case Arg::Kind::Text:
    raw("{\"text\":");
    string(arg.text);
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
      raw(i ? ",[" : "[");
      integer(slots[i]);
      raw(",");
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
    raw(i == 0 ? "" : ",");
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

/// [{"unit": ..., "fqn": [...]}]: neighbours of one unit share an item.
template <typename Get> void PlanWriter::refs(size_t count, Get get) {
  raw("[");
  for (size_t i = 0; i < count;) {
    const GradRef head = get(i);
    bool first = true;
    raw(i ? ",{" : "{");
    field(first, "unit", unitName(head.unit));
    key(first, "fqn");
    raw("[");
    for (bool more = false; i < count; ++i, more = true) {
      const GradRef ref = get(i);
      if (ref.unit != head.unit || ref.accumulate != head.accumulate)
        break;
      raw(more ? "," : "");
      string(plan.parameters.at(ref.parameter).fqn);
    }
    raw("]");
    if (head.accumulate)
      flag(first, "accumulate", true);
    raw("}");
  }
  raw("]");
}

void PlanWriter::step(const Program &program, const Step &step) {
  bool first = true;
  raw("{");
  field(first, "kind", std::string_view(toString(step.kind)));
  if (step.function >= 0)
    field(first, "function", plan.functions.at(step.function).name);
  if (step.unit >= 0)
    field(first, "unit", unitName(step.unit));
  if (step.role != defaultRole(step.kind) ||
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
    refs(step.params.size(), [&](size_t i) {
      return GradRef{step.params[i].unit, step.params[i].parameter, false};
    });
  }
  if (!step.gradients.empty()) {
    key(first, "gradients");
    refs(step.gradients.size(), [&](size_t i) { return step.gradients[i]; });
  }
  if (!step.outputs.empty()) {
    key(first, "outputs");
    integers(step.outputs);
  }
  if (step.draw >= 0)
    field(first, "draw", int64_t(step.draw));
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

} // namespace accel::plan
