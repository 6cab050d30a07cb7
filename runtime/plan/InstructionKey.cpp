//===- InstructionKey.cpp - What makes two instructions the same ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/InstructionKey.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/Exchanges.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace accel::plan {

namespace {

/// Whether a view of another order of dimensions: kernels read it otherwise.
bool isTransposed(const Function &function, int slot) {
  bool transposed = false;
  while (slot >= 0 && function.slots[slot].base != slot) {
    const auto maker = std::find_if(
        function.instructions.begin(), function.instructions.end(),
        [&](const Instruction &each) {
          return std::find(each.results.begin(), each.results.end(), slot) !=
                 each.results.end();
        });
    if (maker == function.instructions.end() || maker->args.empty() ||
        maker->args[0].kind != Arg::Kind::Tensor || maker->args[0].slot == slot)
      break;
    const std::string op = maker->op.substr(0, maker->op.find('.'));
    transposed ^=
        op == "aten::t" || op == "aten::transpose" || op == "aten::permute";
    slot = maker->args[0].slot;
  }
  return transposed;
}

std::string number(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + 32, value).ptr);
}

std::string argText(const Function &function, const Arg &arg) {
  auto list = [&](auto &&each) {
    std::string text = "[";
    for (int64_t value : arg.ints)
      text += (text.size() > 1 ? "," : "") + each(value);
    return text + "]";
  };
  auto tensor = [&](int64_t slot) {
    const int at = static_cast<int>(slot);
    return typeText(function, at) + (isTransposed(function, at) ? "~" : "");
  };
  switch (arg.kind) {
  case Arg::Kind::None:
    return "none";
  case Arg::Kind::Tensor:
    return tensor(arg.slot);
  case Arg::Kind::Tensors:
    return list(tensor);
  case Arg::Kind::Int:
  case Arg::Kind::Bool:
    return std::to_string(arg.intValue);
  case Arg::Kind::Float:
  case Arg::Kind::Wrapped:
    return number(arg.floatValue);
  case Arg::Kind::Ints:
  case Arg::Kind::Bools:
    return list([](int64_t value) { return std::to_string(value); });
  case Arg::Kind::Type:
    return toString(arg.dtype);
  case Arg::Kind::Text:
    return arg.text;
  case Arg::Kind::Key:
    return "key"; // what is drawn takes no other time
  }
  return "";
}

} // namespace

std::string typeText(const Function &function, int slot) {
  if (slot < 0)
    return "none";
  std::string text = toString(function.slots[slot].dtype);
  for (int64_t size : function.slots[slot].shape)
    text += "x" + std::to_string(size);
  return text;
}

std::string instructionKey(const Function &function,
                           const Instruction &instruction) {
  std::string key = instruction.op;
  for (const Arg &arg : instruction.args)
    key += " " + argText(function, arg);
  std::erase_if(
      key, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
  return key;
}

std::string ranksText(const Plan &plan) {
  return std::to_string(plan.ranks()) +
         (plan.ranks() == 1 ? " rank" : " ranks");
}

std::string collectiveKey(ProgramInstructionKind kind, int64_t ranks,
                          int64_t bytes) {
  return std::string(toString(kind)) + " " + std::to_string(ranks) + " ranks " +
         std::to_string(bytes) + " bytes";
}

static bool exchangesInside(const Function &function) {
  return std::any_of(function.instructions.begin(), function.instructions.end(),
                     [](const Instruction &instruction) {
                       const auto exchange = exchangeOf(instruction);
                       return exchange && exchange->communicates();
                     });
}

std::optional<std::string> overheadKey(const Plan &plan) {
  if (!plan.stages.empty() ||
      std::any_of(plan.functions.begin(), plan.functions.end(),
                  exchangesInside))
    return std::nullopt;
  std::set<std::string> kinds;
  for (const auto &[index, repeat] : plan.step)
    for (const ProgramInstruction &instruction :
         plan.programs[index].instructions)
      if ((instruction.kind == ProgramInstructionKind::AllGather ||
           instruction.kind == ProgramInstructionKind::ReduceScatter ||
           instruction.kind == ProgramInstructionKind::AllReduce) &&
          plan.groupSize(instruction.axes) > 1)
        kinds.insert(toString(instruction.kind));
  std::string key;
  for (const std::string &kind : kinds)
    key += kind + " ";
  return key + ranksText(plan);
}

std::set<int64_t> messageBytes(const Program &program) {
  std::set<int64_t> bytes;
  for (const ProgramInstruction &at : program.instructions)
    if (at.kind == ProgramInstructionKind::Send && at.timepoint >= 0)
      bytes.insert(denseBytes(program.values[at.inputs[0]]));
  return bytes;
}

} // namespace accel::plan
