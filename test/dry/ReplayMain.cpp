//===- ReplayMain.cpp - A traced step against its prediction --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// dry-replay PLAN REPORT TARGET prints the seconds of an optimizer step as the
// trace of a report has it and as passes/Simulate predicts it.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"
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
  default:
    result.compute = alone({instruction});
    return result;
  }
}

int fail(const std::string &text) {
  std::fprintf(stderr, "dry-replay: %s\n", text.c_str());
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4)
    return fail("PLAN REPORT TARGET are expected");
  plan::Plan plan;
  std::string error;
  if (!plan::readPlan(argv[1], plan, error))
    return fail(error);
  DiagnosticEngine engine;
  const auto target = loadTarget(argv[3], engine);
  if (!target)
    return fail(std::string("no target ") + argv[3]);
  std::ifstream file(argv[2]);
  const auto report = nlohmann::json::parse(file, nullptr, false);
  if (report.is_discarded())
    return fail(std::string(argv[2]) + " is no report");
  const std::map<std::string, dry::TraceItem::Kind> kinds = {
      {"work", dry::TraceItem::Work},
      {"collective", dry::TraceItem::Collective},
      {"record", dry::TraceItem::Record},
      {"wait", dry::TraceItem::Wait},
      {"host-wait", dry::TraceItem::HostWait}};
  std::map<std::string, std::pair<const plan::Program *, int>> places;
  for (const plan::Program &program : plan.programs)
    for (size_t i = 0; i < program.instructions.size(); ++i)
      places[program.name + "/" + std::to_string(i)] = {&program,
                                                        static_cast<int>(i)};
  std::vector<dry::TraceItem> trace;
  int computes = -1;
  for (const auto &each : report["trace"]) {
    dry::TraceItem item{kinds.at(each["kind"]), each["stream"], each["event"],
                        each["place"]};
    auto place = places.find(item.place);
    if (place == places.end()) {
      if (item.kind == dry::TraceItem::Collective)
        return fail("a collective of '" + item.place +
                    "', which is no instruction of the plan");
      item.place.clear();
    } else if (computes < 0 &&
               place->second.first->instructions[place->second.second].kind ==
                   plan::ProgramInstructionKind::Call) {
      computes = item.stream;
    }
    trace.push_back(std::move(item));
  }
  if (computes < 0)
    return fail("the trace has no call of a function");
  const TimeModel model(plan, *target);
  auto replayed = [&](int steps) {
    return dry::replay(
        trace, computes, 1 - target->overlap,
        [&](const std::string &place) {
          auto [program, index] = places.at(place);
          return secondsOf(plan, model, *target, *program, index);
        },
        steps);
  };
  predictTime(plan, *target);
  // A step of many: what it does beside the end of the one before is gained.
  std::printf("%.9g %.9g\n", replayed(2) - replayed(1),
              plan.predicted.stepSeconds);
  return 0;
}
