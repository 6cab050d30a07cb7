//===- SegmentsMain.cpp - What the allocator should hold ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
//   dry-segments PLAN TARGET ALLOCATOR-CONF [STEPS]
//
// The bytes that passes/Segments says; with STEPS the tensors of so many steps
// instead, in lines like those of DRY_ALLOCATIONS.
//
//===----------------------------------------------------------------------===//
#include "passes/Segments/Segments.h"
#include "runtime/plan/PlanJson.h"

#include <cstdio>
#include <cstdlib>

using namespace accel;

static int fail(const std::string &text) {
  std::fprintf(stderr, "dry-segments: %s\n", text.c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5)
    return fail("PLAN TARGET ALLOCATOR-CONF [STEPS] are expected");
  plan::Plan plan;
  std::string error;
  if (!plan::readPlan(argv[1], plan, error))
    return fail(error);
  DiagnosticEngine engine;
  const auto target = loadTarget(argv[2], engine);
  if (!target)
    return fail(std::string("no target ") + argv[2]);
  replay::AllocatorRules rules;
  bool unsupported = false;
  error = replay::readAllocatorRules(argv[3], rules, unsupported);
  if (!error.empty())
    return fail(error);
  if (argc == 4) {
    std::printf("%lld\n", static_cast<long long>(
                              replaySegments(plan, *target, {rules}).reserved));
    return 0;
  }
  PlanTensors tensors(plan, 0, {target->capability, target->multiprocessors});
  for (int step = 0; step < std::atoi(argv[4]); ++step)
    tensors.step();
  std::vector<int64_t> bytes(tensors.problem().tensors);
  for (const replay::Event &event : tensors.problem().events) {
    if (event.tensor < 0)
      continue;
    const bool makes = event.action == replay::Action::Allocate;
    if (makes)
      bytes[event.tensor] = event.bytes;
    std::printf("%s %x %lld\n", makes ? "make" : "free",
                static_cast<unsigned>(event.tensor),
                static_cast<long long>(bytes[event.tensor]));
  }
  return 0;
}
