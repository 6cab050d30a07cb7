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

/// What the time model says of one step of a program, on its own.
dry::PlaceSeconds secondsOf(const plan::Plan &plan, const TimeModel &model,
                            const Target &target, const plan::Program &program,
                            int index) {
  const plan::Step &step = program.steps[index];
  auto alone = [&](std::vector<plan::Step> steps) {
    plan::Program part = program;
    part.steps = std::move(steps);
    return model.simulate(part).seconds;
  };
  dry::PlaceSeconds result;
  switch (step.kind) {
  case plan::StepKind::AllGather:
  case plan::StepKind::ReduceScatter:
  case plan::StepKind::AllReduce: {
    const plan::Unit &unit = plan.units[step.unit];
    const bool gathers = step.kind == plan::StepKind::AllGather;
    const plan::DType dtype = gathers ? unit.gather
                              : step.kind == plan::StepKind::ReduceScatter
                                  ? unit.reduce
                                  : unit.storage;
    const int64_t numel = step.kind == plan::StepKind::AllReduce
                              ? plan::shardNumel(plan, unit)
                              : unit.padded;
    result.transfer =
        collectiveSeconds(plan, target, 0, step.kind, step.axes,
                          static_cast<double>(numel * plan::itemSize(dtype)));
    result.before = alone({step}) - result.transfer;
    return result;
  }
  case plan::StepKind::Await:
    for (const plan::Step &start : program.steps)
      if (start.timepoint == step.timepoint &&
          start.kind != plan::StepKind::Await)
        result.compute = alone({start, step}) - alone({start});
    return result;
  default:
    result.compute = alone({step});
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
    for (size_t i = 0; i < program.steps.size(); ++i)
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
               place->second.first->steps[place->second.second].kind ==
                   plan::StepKind::Call) {
      computes = item.stream;
    }
    trace.push_back(std::move(item));
  }
  if (computes < 0)
    return fail("the trace has no call of a function");
  const TimeModel model(plan, *target);
  const double replayed = dry::replay(
      trace, computes, 1 - target->overlap, [&](const std::string &place) {
        auto [program, index] = places.at(place);
        return secondsOf(plan, model, *target, *program, index);
      });
  predictTime(plan, *target);
  std::printf("%.9g %.9g\n", replayed, plan.predicted.stepSeconds);
  return 0;
}
