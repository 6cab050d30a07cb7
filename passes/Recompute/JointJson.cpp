//===- JointJson.cpp - Joint graphs as JSON -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/JointJson.h"

#include "runtime/plan/JsonParse.h"
#include "runtime/plan/JsonReader.h"
#include "runtime/plan/JsonWriter.h"
#include "runtime/plan/Operands.h"

#include <limits>

namespace accel {

using plan::JsonError;
using plan::JsonFields;
using plan::JsonNode;
using plan::JsonWriter;

namespace {

constexpr int64_t most = int64_t(1) << 52; // of a size; products saturate

std::vector<int> slotsOf(const plan::Instruction &instruction) {
  std::vector<int> slots;
  for (const plan::Arg &arg : instruction.args)
    slots.push_back(arg.slot);
  return slots;
}

void writeOp(JsonWriter &w, const plan::Instruction &instruction,
             const JointMark &mark) {
  bool first = true;
  w.raw("{");
  w.field(first, "op", instruction.op);
  w.field(first, "category", toString(mark.category));
  w.flag(first, "forward", mark.forward);
  w.flag(first, "may_recompute", mark.mayRecompute);
  w.flag(first, "norm", mark.isNorm);
  w.flag(first, "into_place", mark.intoPlace);
  w.flag(first, "overwrites", mark.overwrites);
  w.key(first, "args");
  w.integers(slotsOf(instruction));
  w.key(first, "results");
  w.integers(instruction.results);
  w.field(first, "flops", instruction.flops);
  w.field(first, "moved_bytes", instruction.movedBytes);
  w.field(first, "workspace_bytes", instruction.workspaceBytes);
  w.field(first, "where", instruction.where);
  w.raw("}");
}

JointCategory category(const JsonNode &node) {
  const std::string &name = node.string();
  for (JointCategory c :
       {JointCategory::View, JointCategory::Pointwise, JointCategory::Reduction,
        JointCategory::Matmul, JointCategory::Attention, JointCategory::Memory,
        JointCategory::Opaque})
    if (name == toString(c))
      return c;
  node.fail("'" + name + "' is no category");
}

void readOp(const JsonNode &node, ReadJoint &result) {
  JsonFields f(node);
  plan::Instruction instruction;
  JointMark mark;
  instruction.op = f["op"].string();
  mark.category = category(f["category"]);
  mark.forward = f["forward"].boolean();
  mark.mayRecompute = f["may_recompute"].boolean();
  mark.isNorm = f["norm"].boolean();
  mark.intoPlace = f["into_place"].boolean();
  mark.overwrites = f["overwrites"].boolean();
  for (int slot : f["args"].indices()) {
    instruction.args.push_back(plan::tensorArg(slot));
  }
  instruction.results = f["results"].indices();
  instruction.flops = f["flops"].real(0);
  instruction.movedBytes = f["moved_bytes"].real(0);
  instruction.workspaceBytes = f["workspace_bytes"].integer(0, most);
  instruction.where = f["where"].string();
  f.optional("seconds", [&](const JsonNode &seconds) {
    result.seconds.push_back(seconds.real(0));
  });
  f.close();
  result.graph.function.instructions.push_back(std::move(instruction));
  result.graph.marks.push_back(mark);
}

void readGraph(const JsonNode &node, ReadJoint &result) {
  JsonFields f(node);
  plan::Function &function = result.graph.function;
  function.name = f["name"].string();
  f["slots"].items([&](const JsonNode &item) {
    JsonFields s(item);
    plan::Slot slot;
    auto dtype = plan::parseDType(s["dtype"].string());
    if (!dtype)
      item.fail("unknown dtype");
    slot.dtype = *dtype;
    slot.shape = s["shape"].integers(0, most);
    slot.base =
        static_cast<int>(s["base"].integer(0, std::numeric_limits<int>::max()));
    s.close();
    function.slots.push_back(std::move(slot));
  });
  function.inputs = f["inputs"].indices();
  function.params = f["params"].indices();
  function.paramNames.resize(function.params.size());
  result.graph.tangents = f["tangents"].indices();
  function.outputs = f["outputs"].indices();
  f["gradients"].items([&](const JsonNode &item) {
    JsonFields g(item);
    JointGradient gradient;
    gradient.slot =
        static_cast<int>(g["slot"].integer(0, std::numeric_limits<int>::max()));
    gradient.ofParameter = g["of_parameter"].boolean();
    g.close();
    result.graph.gradients.push_back(gradient);
  });
  f["ops"].items([&](const JsonNode &item) { readOp(item, result); });
  f.close();
}

} // namespace

std::string toJson(const JointGraph &graph) {
  const plan::Function &function = graph.function;
  JsonWriter w;
  bool first = true;
  w.raw("{");
  w.field(first, "name", function.name);
  w.key(first, "slots");
  w.lines(function.slots, 2, [&](const plan::Slot &slot) {
    bool one = true;
    w.raw("{");
    w.field(one, "dtype", plan::toString(slot.dtype));
    w.key(one, "shape");
    w.integers(slot.shape);
    w.field(one, "base", static_cast<int64_t>(slot.base));
    w.raw("}");
  });
  auto slots = [&](const char *key, const std::vector<int> &list) {
    w.key(first, key);
    w.integers(list);
  };
  slots("inputs", function.inputs);
  slots("params", function.params);
  slots("tangents", graph.tangents);
  slots("outputs", function.outputs);
  w.key(first, "gradients");
  w.list(graph.gradients, [&](const JointGradient &gradient) {
    bool one = true;
    w.raw("{");
    w.field(one, "slot", static_cast<int64_t>(gradient.slot));
    w.flag(one, "of_parameter", gradient.ofParameter);
    w.raw("}");
  });
  w.key(first, "ops");
  size_t i = 0;
  w.lines(function.instructions, 2, [&](const plan::Instruction &instruction) {
    writeOp(w, instruction, graph.marks[i++]);
  });
  w.raw("}\n");
  return std::move(w.text);
}

ReadJoint readJoint(const std::string &text) {
  ReadJoint result;
  try {
    const nlohmann::json document = plan::parseJson(text);
    readGraph(JsonNode(document), result);
    result.error = verifyJoint(result.graph);
    const size_t numOps = result.graph.marks.size();
    if (!result.seconds.empty() && result.seconds.size() != numOps)
      result.error = "ops: some have seconds and some have none";
  } catch (const JsonError &error) {
    result.error = error.message;
  } catch (const plan::JsonSyntaxError &error) {
    result.error = error.message + ", at " + error.position(text);
  }
  return result;
}

std::string verifyJoint(const JointGraph &graph) {
  const plan::Function &function = graph.function;
  const int numSlots = static_cast<int>(function.slots.size());
  std::vector<bool> made(function.slots.size());
  std::string error;
  auto in = [&](int slot) { return slot >= 0 && slot < numSlots; };
  auto make = [&](int slot, const std::string &where) {
    if (!error.empty())
      return; // the first one says it
    if (!in(slot))
      error = where + ": there is no slot " + std::to_string(slot);
    else if (made[slot])
      error = where + ": slot " + std::to_string(slot) + " is made twice";
    else
      made[slot] = true;
  };
  auto read = [&](int slot, const std::string &where) {
    if (error.empty() && (!in(slot) || !made[slot]))
      error = where + ": slot " + std::to_string(slot) + " is not made before";
  };
  for (int i = 0; i < numSlots; ++i)
    if (int base = function.slots[i].base;
        !in(base) || function.slots[base].base != base)
      return "slots[" + std::to_string(i) + "].base: slot " +
             std::to_string(base) + " is no slot of its own";
  for (const auto *list : {&function.inputs, &function.params, &graph.tangents})
    for (int slot : *list)
      make(slot, "arguments");
  bool backward = false;
  for (size_t i = 0; i < function.instructions.size() && error.empty(); ++i) {
    const plan::Instruction &instruction = function.instructions[i];
    const JointMark &mark = graph.marks[i];
    const std::string where = "ops[" + std::to_string(i) + "]";
    backward |= !mark.forward;
    if (backward && mark.forward)
      return where + ": the forward goes on after the backward has begun";
    for (const plan::Arg &arg : instruction.args)
      read(arg.slot, where + ".args");
    for (int slot : instruction.results)
      make(slot, where + ".results");
    if (!error.empty())
      return error;
    if (mark.sharesStorage() && instruction.args.empty())
      return where + ": a view of nothing";
    if (mark.overwrites && mark.forward)
      return where + ": the forward overwrites what may be kept";
    for (int slot : instruction.results)
      if (function.slots[slot].base !=
          (mark.sharesStorage() ? function.slots[instruction.args[0].slot].base
                                : slot))
        return where + ": slot " + std::to_string(slot) + " has another base";
  }
  for (int slot : function.outputs)
    read(slot, "outputs");
  for (const JointGradient &gradient : graph.gradients)
    read(gradient.slot, "gradients");
  return error;
}

} // namespace accel
