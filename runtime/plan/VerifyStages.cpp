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

#include "runtime/plan/Chunks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace accel::plan {

void ProgramVerifier::send(const ProgramInstruction &instruction, int index) {
  if (instruction.inputs.size() != 1)
    return void(complain("it sends one value at a time"));
  useValue(instruction.inputs[0], "it sends");
  if (staysInStage(plan, program, instruction)) {
    if (instruction.timepoint >= 0)
      complain("it hands over to the same ranks with a timepoint");
    return;
  }
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
  // By chunk and micro-batch.
  std::map<std::pair<int, int64_t>, ProgramVerifier> frames;
  for (const StageAction &action : plan.stages[stage].order) {
    const Program &program =
        plan.programs[plan.programOf(stage, action.chunk, action.microBatch)];
    const std::vector<size_t> parts = partsOf(program);
    const size_t part = plan.positionOf(action.part);
    const auto at = frames
                        .try_emplace({action.chunk, action.microBatch}, plan,
                                     program, state, problems)
                        .first;
    if (part == 0)
      at->second.begin();
    at->second.run(parts[part], parts[part + 1]);
    if (part + 2 < parts.size())
      continue;
    at->second.finish();
    frames.erase(at);
  }
}

namespace {

std::string stageName(int stage) { return "stage " + std::to_string(stage); }

std::string actionName(const StageAction &action) {
  return std::string("the ") + toString(action.part) + " of micro-batch " +
         std::to_string(action.microBatch) +
         (action.chunk > 0 ? " in chunk " + std::to_string(action.chunk) : "");
}

/// What is wrong with the order of one stage's parts, or "".
std::string orderProblem(const Plan &plan, int index) {
  const Stage &stage = plan.stages[index];
  const int64_t microBatches = plan.job.accumulation;
  const int chunks = plan.numChunks();
  // An update is the last micro-batch's alone.
  const std::vector<Part> &kinds = partsBy(plan.schedule);
  const size_t least = kinds.size() - (kinds.back() == Part::Update);
  const char *counts[] = {"no parts", "one", "two", "three", "four"};
  if (microBatches < 0 ||
      static_cast<int64_t>(stage.order.size() / least) / chunks < microBatches)
    return "its order has " + std::to_string(stage.order.size()) + " parts, " +
           std::to_string(microBatches) + " micro-batches have " +
           counts[least] + (chunks > 1 ? " of each chunk" : " each");
  auto partsIn = [&](int chunk, int64_t microBatch) {
    const int program = plan.programOf(index, chunk, microBatch);
    return program < 0 ? 0 : partsOf(plan.programs[program]).size() - 1;
  };
  // That were run, by chunk.
  std::vector<std::vector<size_t>> done(chunks,
                                        std::vector<size_t>(microBatches));
  int64_t frames = 0, most = 0;
  for (const StageAction &action : stage.order) {
    const std::string what = "its order has " + actionName(action);
    if (action.chunk >= chunks)
      return what + ", the stage has " + std::to_string(chunks);
    if (action.microBatch < 0 || action.microBatch >= microBatches ||
        partsIn(action.chunk, action.microBatch) == 0)
      return what + ", the step has " + std::to_string(microBatches);
    size_t &next = done[action.chunk][action.microBatch];
    const size_t part = plan.positionOf(action.part);
    if (part == kinds.size())
      return what + ", " + quoted(plan.schedule) + " has no such part";
    const size_t parts = partsIn(action.chunk, action.microBatch);
    if (part >= parts)
      return what + ", its program ends before";
    if (part < next)
      return what + " twice";
    if (part > next)
      return what + " before its " + toString(kinds[next]);
    if (next++ == 0)
      most = std::max(most, ++frames);
    if (next == parts)
      --frames;
  }
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (int64_t m = 0; m < microBatches; ++m)
      if (done[chunk][m] < partsIn(chunk, m))
        return "its order lacks " +
               actionName({kinds[done[chunk][m]], m, chunk});
  if (most != stage.frames)
    return "its order has " + std::to_string(most) +
           (chunks > 1
                ? " micro-batches of its chunks under way at once, it says "
            : least > 2
                ? " micro-batches under way at once, it says "
                : " micro-batches between forward and backward at once, it "
                  "says ") +
           std::to_string(stage.frames);
  return "";
}

/// Sends, receives and awaits of sends of one stage, one after the other, and
/// where it begins and awaits the sum of gradients with other stages.
struct Message {
  enum Kind { Send, Receive, Await, Join, Met } kind;
  int to; // the stage at the other end, of an await too; the unit of a sum
  StageAction action;
  int way = 0; // up or down the chunks, and whether it wraps (ProgramRunner)
  int from = 0, target = 0;     // of a send and a receive: chunks of the model
  const Value *value = nullptr; // of a send or a receive
};

bool isSumOfStages(const Plan &plan, const ProgramInstruction &at) {
  return at.kind == ProgramInstructionKind::AllReduce &&
         isTied(plan.units[at.unit]);
}

void addMessages(const Plan &plan, const Program &program,
                 const StageAction &action, size_t from, size_t to,
                 std::vector<Message> &messages) {
  const int chunk = chunkLayoutOf(plan).numberOf(program.stage, program.chunk);
  auto message = [&](Message::Kind kind, const ProgramInstruction &at) {
    const int by = kind == Message::Receive ? -at.shift : at.shift;
    const ChunkPlace other = placeBeside(plan, program, by);
    const int way = (at.shift > 0 ? 0 : 1) + (other.wraps ? 2 : 0);
    return Message{kind,
                   other.stage,
                   action,
                   way,
                   kind == Message::Receive ? chunk + by : chunk,
                   kind == Message::Receive ? chunk : chunk + by};
  };
  for (size_t i = from; i < to; ++i) {
    const ProgramInstruction &at = program.instructions[i];
    if (at.kind == ProgramInstructionKind::Send) {
      messages.push_back(message(Message::Send, at));
      messages.back().value = &program.values[at.inputs[0]];
    } else if (at.kind == ProgramInstructionKind::Receive) {
      messages.push_back(message(Message::Receive, at));
      messages.back().value = &program.values[at.outputs[0]];
    } else if (isSumOfStages(plan, at)) {
      messages.push_back({Message::Join, ownerOf(plan, at.unit), action});
    } else if (at.kind == ProgramInstructionKind::Await) {
      for (const ProgramInstruction &start : program.instructions) {
        if (start.timepoint != at.timepoint)
          continue;
        if (start.kind == ProgramInstructionKind::Send)
          messages.push_back(message(Message::Await, start));
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
  std::map<std::tuple<size_t, size_t, int>, Channel> channels; // from, to, way
  std::vector<size_t> at(count, 0);
  std::map<int, std::vector<size_t>> joined, met; // by unit, then by stage
  // The stage stands at a receive of channel from -> stage.
  auto posts = [&](size_t stage, size_t from, int way) {
    if (at[stage] >= stages[stage].size())
      return false;
    const Message &next = stages[stage][at[stage]];
    return next.kind == Message::Receive && next.way == way &&
           static_cast<size_t>(next.to) == from;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < count; ++stage)
      while (at[stage] < stages[stage].size()) {
        const Message &message = stages[stage][at[stage]];
        const auto other = static_cast<size_t>(message.to);
        if (message.kind == Message::Send) {
          channels[{stage, other, message.way}].sent.push_back(&message);
        } else if (message.kind == Message::Receive) {
          Channel &channel = channels[{other, stage, message.way}];
          if (channel.received >= channel.sent.size())
            break;
          const Message &sent = *channel.sent[channel.received++];
          if (sent.action.microBatch != message.action.microBatch ||
              sent.from != message.from || sent.target != message.target ||
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
          Channel &channel = channels[{stage, other, message.way}];
          if (channel.received + (posts(other, stage, message.way) ? 1 : 0) <=
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
  for (const auto &[ends, channel] : channels)
    if (channel.received < channel.sent.size())
      return stageName(static_cast<int>(std::get<0>(ends))) + " sends what " +
             stageName(static_cast<int>(std::get<1>(ends))) + " never receives";
  return "";
}

} // namespace

void verifyStages(const Plan &plan, Problems &problems) {
  std::vector<std::vector<Message>> step(plan.stages.size()),
      eval(plan.stages.size());
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const int stage = static_cast<int>(s);
    for (const auto &[index, repeat] : plan.stepsOf(stage)) {
      const Program &program = plan.programs[index];
      const size_t parts = partsOf(program).size() - 1;
      if (parts == 1)
        return problems.add("program " + quoted(program.name),
                            "nothing ends the forward of a stage");
      if (const size_t most = partsBy(plan.schedule).size(); parts > most)
        return problems.add("program " + quoted(program.name),
                            "it has " + std::to_string(parts) + " parts, " +
                                quoted(plan.schedule) + " has " +
                                std::to_string(most));
      if (splitsBackward(plan.schedule) && parts == 2)
        return problems.add("program " + quoted(program.name),
                            "nothing parts the backward of weights from that "
                            "of inputs");
    }
    if (std::string wrong = orderProblem(plan, stage); !wrong.empty())
      return problems.add(stageName(stage), wrong);
    for (const StageAction &action : plan.stages[s].order) {
      const Program &program =
          plan.programs[plan.programOf(stage, action.chunk, action.microBatch)];
      const std::vector<size_t> parts = partsOf(program);
      const size_t part = plan.positionOf(action.part);
      addMessages(plan, program, action, parts[part], parts[part + 1], step[s]);
    }
    for (int chunk = 0; chunk < plan.numChunks(); ++chunk)
      if (const int index = plan.evalOf(stage, chunk); index >= 0) {
        const Program &program = plan.programs[index];
        addMessages(plan, program, {Part::Forward, 0, chunk}, 0,
                    program.instructions.size(), eval[s]);
      }
  }
  for (const auto *messages : {&step, &eval})
    if (std::string wrong = messageProblem(plan, *messages); !wrong.empty())
      return problems.add("the pipeline", wrong);
}

} // namespace accel::plan
