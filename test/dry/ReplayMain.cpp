//===- ReplayMain.cpp - A traced step against its prediction --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// dry-replay PLAN TARGET REPORT... prints the seconds of an optimizer step as
// the traces of these ranks' reports have it and as passes/Simulate predicts
// it. Of a pipeline all ranks are there, of others one stands for all.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"
#include "runtime/plan/Chunks.h"
#include "runtime/plan/PlanJson.h"
#include "test/dry/Replay.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <map>

using namespace accel;

namespace {

/// What the time model says of one instruction of a program, on its own.
dry::PlaceSeconds secondsOf(const plan::Plan &plan, const TimeModel &model,
                            const Target &target, const plan::Program &program,
                            int index) {
  const plan::ProgramInstruction &instruction = program.instructions[index];
  auto alone = [&](std::vector<plan::ProgramInstruction> those) {
    plan::Program part = program;
    part.instructions = std::move(those);
    return model.simulate(part).seconds;
  };
  dry::PlaceSeconds result;
  switch (instruction.kind) {
  case plan::ProgramInstructionKind::AllGather:
  case plan::ProgramInstructionKind::ReduceScatter:
  case plan::ProgramInstructionKind::AllReduce: {
    const plan::Unit &unit = plan.units[instruction.unit];
    const bool gathers =
        instruction.kind == plan::ProgramInstructionKind::AllGather;
    const plan::DType dtype =
        gathers ? unit.gather
        : instruction.kind == plan::ProgramInstructionKind::ReduceScatter
            ? unit.reduce
            : unit.storage;
    const int64_t numel =
        instruction.kind == plan::ProgramInstructionKind::AllReduce
            ? plan::shardNumel(plan, unit)
            : unit.padded;
    result.transfer =
        collectiveSeconds(plan, target, 0, instruction.kind, instruction.axes,
                          static_cast<double>(numel * plan::itemSize(dtype)));
    result.before = alone({instruction}) - result.transfer;
    return result;
  }
  case plan::ProgramInstructionKind::Await:
    for (const plan::ProgramInstruction &start : program.instructions)
      if (start.timepoint == instruction.timepoint &&
          start.kind != plan::ProgramInstructionKind::Await)
        result.compute = alone({start, instruction}) - alone({start});
    return result;
  case plan::ProgramInstructionKind::Offload:
  case plan::ProgramInstructionKind::Fetch:
    result.before = alone({instruction});
    return result;
  case plan::ProgramInstructionKind::Send:
    if (instruction.timepoint >= 0) {
      const plan::Value &value = program.values[instruction.inputs[0]];
      result.transfer = model.sendSeconds(plan::denseBytes(value));
      return result;
    }
    [[fallthrough]]; // to a chunk of the same rank
  default:
    result.compute = alone({instruction});
    return result;
  }
}

int fail(const std::string &text) {
  std::fprintf(stderr, "dry-replay: %s\n", text.c_str());
  return 1;
}

using Places = std::map<std::string, std::pair<const plan::Program *, int>>;

Places placesOf(const plan::Plan &plan) {
  Places places;
  for (const plan::Program &program : plan.programs)
    for (size_t i = 0; i < program.instructions.size(); ++i)
      places[program.name + "/" + std::to_string(i)] = {&program,
                                                        static_cast<int>(i)};
  return places;
}

/// What is wrong with the report at `path`; else nothing, and `trace` is its
/// rank's.
std::string readTrace(const std::string &path, const Places &places,
                      dry::RankTrace &trace) {
  static const std::map<std::string, dry::TraceItem::Kind> kinds = {
      {"work", dry::TraceItem::Work},
      {"collective", dry::TraceItem::Collective},
      {"record", dry::TraceItem::Record},
      {"wait", dry::TraceItem::Wait},
      {"host-wait", dry::TraceItem::HostWait},
      {"send", dry::TraceItem::Send},
      {"receive", dry::TraceItem::Receive}};
  std::ifstream file(path);
  const auto report = nlohmann::json::parse(file, nullptr, false);
  if (report.is_discarded())
    return path + " is no report";
  bool found = false;
  for (const auto &each : report["trace"]) {
    dry::TraceItem item{kinds.at(each["kind"]), each["stream"], each["event"],
                        each["place"], each.value("channel", "")};
    const auto place = places.find(item.place);
    const plan::ProgramInstruction *instruction =
        place == places.end()
            ? nullptr
            : &place->second.first->instructions[place->second.second];
    // An all-to-all is made of messages too.
    const bool message = item.kind == dry::TraceItem::Send ||
                         item.kind == dry::TraceItem::Receive;
    if (message &&
        !(instruction &&
          (instruction->kind == plan::ProgramInstructionKind::Send ||
           instruction->kind == plan::ProgramInstructionKind::Receive)))
      item.kind = dry::TraceItem::Collective;
    if (!instruction) {
      if (item.kind == dry::TraceItem::Collective)
        return "a collective of '" + item.place +
               "', which is no instruction of the plan";
      item.place.clear();
    } else if (!found &&
               instruction->kind == plan::ProgramInstructionKind::Call) {
      trace.computes = item.stream;
      found = true;
    }
    trace.step.push_back(std::move(item));
  }
  return found ? "" : path + ": the trace has no call of a function";
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4)
    return fail("PLAN TARGET REPORT... are expected");
  plan::Plan plan;
  std::string error;
  if (!plan::readPlan(argv[1], plan, error))
    return fail(error);
  DiagnosticEngine engine;
  const auto target = loadTarget(argv[2], engine);
  if (!target)
    return fail(std::string("no target ") + argv[2]);
  const Places places = placesOf(plan);
  std::vector<dry::RankTrace> ranks(argc - 3);
  for (int i = 3; i < argc; ++i)
    if (error = readTrace(argv[i], places, ranks[i - 3]); !error.empty())
      return fail(error);
  const TimeModel model(plan, *target);
  auto replayed = [&](int steps) {
    return dry::replay(
        ranks, 1 - target->overlap,
        [&](const std::string &place) {
          auto [program, index] = places.at(place);
          return secondsOf(plan, model, *target, *program, index);
        },
        steps);
  };
  const auto first = replayed(1), second = replayed(2);
  if (!first || !second)
    return fail("a rank waits for a message that nobody sends");
  predictTime(plan, *target);
  // A step of many: what it does beside the end of the one before is gained.
  std::printf("%.9g %.9g\n", *second - *first, plan.predicted.stepSeconds);
  return 0;
}
