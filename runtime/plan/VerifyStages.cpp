//===- VerifyStages.cpp - Can the stages of a pipeline be run? ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a micro-batch does in one stage is ProgramVerifier's; here is what goes
// from stage to stage, and the order of a stage's parts.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ProgramVerifier.h"

#include <algorithm>
#include <map>
#include <optional>

namespace accel::plan {

void ProgramVerifier::send(const ProgramInstruction &instruction, int index) {
  if (instruction.inputs.size() != 1)
    return void(complain("it sends one value at a time"));
  useValue(instruction.inputs[0], "it sends");
  if (instruction.timepoint < 0)
    complain("it starts to send without a timepoint");
  else if (!flights.emplace(instruction.timepoint, Flight{-1, {}, index})
                .second)
    complain("timepoint " + std::to_string(instruction.timepoint) +
             " is started twice");
  sent[instruction.timepoint] = {instruction.inputs[0]};
}

void ProgramVerifier::receive(const ProgramInstruction &instruction) {
  if (instruction.outputs.size() != 1 || instruction.outputs[0] < 0)
    return void(complain("it receives one value at a time"));
  const int index = instruction.outputs[0];
  const Value &value = program.values[index];
  if (defined[index])
    complain(valueName(index) + " is made twice");
  if (value.alias >= 0 || value.bytes != defaultBytes(value))
    complain(valueName(index) + " has no storage of its own");
  defined[index] = live[index] = true;
}

/// A rank has the units of its stage alone.
void ProgramVerifier::checkStages(const ProgramInstruction &instruction) {
  auto check = [&](int unit) {
    if (unit >= 0 && plan.units[unit].stage != program.stage)
      complain("unit " + quoted(plan.units[unit].name) + " is held by stage " +
               std::to_string(plan.units[unit].stage));
  };
  check(instruction.unit);
  for (const ParamRef &ref : instruction.params)
    check(ref.unit);
  for (const GradRef &ref : instruction.gradients)
    check(ref.unit);
}

void verifyProgram(const Plan &plan, const Program &program, RankState &state,
                   Problems &problems) {
  ProgramVerifier verifier(plan, program, state, problems);
  verifier.begin();
  verifier.run(0, program.instructions.size());
  verifier.finish();
}

void verifyFrames(const Plan &plan, int stage, RankState &state,
                  Problems &problems) {
  std::map<int64_t, ProgramVerifier> frames; // by micro-batch
  for (const StageAction &action : plan.stages[stage].order) {
    const Program &program =
        plan.programs[plan.programOf(stage, action.microBatch)];
    const size_t pause = endOfForward(program);
    if (action.part == Part::Forward) {
      ProgramVerifier &frame =
          frames.try_emplace(action.microBatch, plan, program, state, problems)
              .first->second;
      frame.begin();
      frame.run(0, pause);
      continue;
    }
    ProgramVerifier &frame = frames.at(action.microBatch);
    frame.run(pause, program.instructions.size());
    frame.finish();
    frames.erase(action.microBatch);
  }
}

namespace {

std::string stageName(int stage) { return "stage " + std::to_string(stage); }

std::string actionName(const StageAction &action) {
  return std::string("the ") + toString(action.part) + " of micro-batch " +
         std::to_string(action.microBatch);
}

/// What is wrong with the order of one stage's parts, or "".
std::string orderProblem(const Plan &plan, int index) {
  const Stage &stage = plan.stages[index];
  const int64_t microBatches = plan.job.accumulation;
  if (static_cast<int64_t>(stage.order.size()) / 2 < microBatches ||
      microBatches < 0)
    return "its order has " + std::to_string(stage.order.size()) + " parts, " +
           std::to_string(microBatches) + " micro-batches have two each";
  std::vector<int> parts(microBatches); // that were run
  int64_t frames = 0, most = 0;
  for (const StageAction &action : stage.order) {
    const std::string what = "its order has " + actionName(action);
    if (action.microBatch < 0 || action.microBatch >= microBatches ||
        plan.programOf(index, action.microBatch) < 0)
      return what + ", the step has " + std::to_string(microBatches);
    int &done = parts[action.microBatch];
    if (action.part == Part::Forward) {
      if (done != 0)
        return what + " twice";
      most = std::max(most, ++frames);
    } else {
      if (done != 1)
        return what + (done ? " twice" : " before its forward");
      --frames;
    }
    ++done;
  }
  for (int64_t m = 0; m < microBatches; ++m)
    if (parts[m] != 2)
      return "its order lacks " +
             actionName({parts[m] ? Part::Backward : Part::Forward, m});
  if (most != stage.frames)
    return "its order has " + std::to_string(most) +
           " micro-batches between forward and backward at once, it says " +
           std::to_string(stage.frames);
  return "";
}

/// Sends, receives and awaits of sends of one stage, one after the other, and
/// where it begins and awaits the sum of gradients with other stages.
struct Message {
  enum Kind { Send, Receive, Await, Join, Met } kind;
  int to; // the stage at the other end, of an await too; the unit of a sum
  StageAction action;
  const Value *value = nullptr; // of a send or a receive
};

bool isSumOfStages(const Plan &plan, const ProgramInstruction &at) {
  return at.kind == ProgramInstructionKind::AllReduce &&
         isTied(plan.units[at.unit]);
}

void addMessages(const Plan &plan, int stage, const Program &program,
                 const StageAction &action, size_t from, size_t to,
                 std::vector<Message> &messages) {
  for (size_t i = from; i < to; ++i) {
    const ProgramInstruction &at = program.instructions[i];
    if (at.kind == ProgramInstructionKind::Send) {
      messages.push_back({Message::Send, stage + at.shift, action,
                          &program.values[at.inputs[0]]});
    } else if (at.kind == ProgramInstructionKind::Receive) {
      messages.push_back({Message::Receive, stage - at.shift, action,
                          &program.values[at.outputs[0]]});
    } else if (isSumOfStages(plan, at)) {
      messages.push_back({Message::Join, ownerOf(plan, at.unit), action});
    } else if (at.kind == ProgramInstructionKind::Await) {
      for (const ProgramInstruction &start : program.instructions) {
        if (start.timepoint != at.timepoint)
          continue;
        if (start.kind == ProgramInstructionKind::Send)
          messages.push_back({Message::Await, stage + start.shift, action});
        else if (isSumOfStages(plan, start))
          messages.push_back({Message::Met, ownerOf(plan, start.unit), action});
      }
    }
  }
}

/// Runs the messages of all stages: a receive waits for its send, the await of
/// a send until the other stage receives, and that of a sum until all stages
/// that have the unit have begun it. What is wrong, or "".
std::string messageProblem(const Plan &plan,
                           const std::vector<std::vector<Message>> &stages) {
  const size_t count = stages.size();
  struct Channel {
    std::vector<const Message *> sent;
    size_t received = 0, awaited = 0;
  };
  std::vector<std::vector<Channel>> channels(count,
                                             std::vector<Channel>(count));
  std::vector<size_t> at(count, 0);
  std::map<int, std::vector<size_t>> joined, met; // by unit, then by stage
  // The stage stands at a receive of channel from -> stage.
  auto posts = [&](size_t stage, size_t from) {
    if (at[stage] >= stages[stage].size())
      return false;
    const Message &next = stages[stage][at[stage]];
    return next.kind == Message::Receive &&
           static_cast<size_t>(next.to) == from;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < count; ++stage)
      while (at[stage] < stages[stage].size()) {
        const Message &message = stages[stage][at[stage]];
        const auto other = static_cast<size_t>(message.to);
        if (message.kind == Message::Send) {
          channels[stage][other].sent.push_back(&message);
        } else if (message.kind == Message::Receive) {
          Channel &channel = channels[other][stage];
          if (channel.received >= channel.sent.size())
            break;
          const Message &sent = *channel.sent[channel.received++];
          if (sent.action.microBatch != message.action.microBatch ||
              sent.value->dtype != message.value->dtype ||
              sent.value->shape != message.value->shape)
            return stageName(static_cast<int>(stage)) + " receives " +
                   quoted(message.value->name) + " in " +
                   actionName(message.action) + ", and " +
                   stageName(message.to) + " sends it " +
                   quoted(sent.value->name) + " in " + actionName(sent.action);
        } else if (message.kind == Message::Join) {
          joined[message.to].resize(count);
          ++joined[message.to][stage];
        } else if (message.kind == Message::Met) {
          joined[message.to].resize(count);
          met[message.to].resize(count);
          const size_t before = met[message.to][stage];
          const auto with = stagesWith(plan, message.to);
          if (std::any_of(with.begin(), with.end(), [&](int64_t one) {
                return joined[message.to][one] <= before;
              }))
            break;
          ++met[message.to][stage];
        } else {
          Channel &channel = channels[stage][other];
          if (channel.received + (posts(other, stage) ? 1 : 0) <=
              channel.awaited)
            break;
          ++channel.awaited;
        }
        ++at[stage];
        moved = true;
      }
  }
  for (size_t stage = 0; stage < count; ++stage)
    if (at[stage] < stages[stage].size()) {
      const Message &message = stages[stage][at[stage]];
      const std::string what = stageName(static_cast<int>(stage)) +
                               " waits for ever in " +
                               actionName(message.action) + ": ";
      if (message.kind == Message::Met)
        return what + "another stage does not sum the gradients of unit " +
               quoted(plan.units[message.to].name);
      return what + stageName(message.to) +
             (message.kind == Message::Receive ? " does not send what it reads"
                                               : " does not receive what it "
                                                 "sends");
    }
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to)
      if (channels[from][to].received < channels[from][to].sent.size())
        return stageName(static_cast<int>(from)) + " sends what " +
               stageName(static_cast<int>(to)) + " never receives";
  return "";
}

} // namespace

void verifyStages(const Plan &plan, Problems &problems) {
  std::vector<std::vector<Message>> step(plan.stages.size()),
      eval(plan.stages.size());
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const int stage = static_cast<int>(s);
    if (std::string wrong = orderProblem(plan, stage); !wrong.empty())
      return problems.add(stageName(stage), wrong);
    for (const StageAction &action : plan.stages[s].order) {
      const Program &program =
          plan.programs[plan.programOf(stage, action.microBatch)];
      const size_t pause = endOfForward(program);
      if (pause == program.instructions.size())
        return problems.add("program " + quoted(program.name),
                            "nothing ends the forward of a stage");
      const bool forward = action.part == Part::Forward;
      addMessages(plan, stage, program, action, forward ? 0 : pause,
                  forward ? pause : program.instructions.size(), step[s]);
    }
    if (const int index = plan.stages[s].eval; index >= 0) {
      const Program &program = plan.programs[index];
      addMessages(plan, stage, program, {}, 0, program.instructions.size(),
                  eval[s]);
    }
  }
  for (const auto *messages : {&step, &eval})
    if (std::string wrong = messageProblem(plan, *messages); !wrong.empty())
      return problems.add("the pipeline", wrong);
}

} // namespace accel::plan
