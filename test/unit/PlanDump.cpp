//===- PlanDump.cpp - Prints plans for tests ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// plan-dump small|accumulate|bf16|405b: the text of a plan, without the
// compiler. plan-dump schema: the text of runtime/plan/plan.schema.json. Both
// are read by test/Plan/schema.test.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"
#include "test/unit/PlanFixture.h"

#include <cstdio>
#include <cstring>

using namespace accel::plan;

int main(int argc, char **argv) {
  const char *which = argc == 2 ? argv[1] : "";
  if (!std::strcmp(which, "schema")) {
    std::fputs(planSchema().c_str(), stdout);
    return 0;
  }
  test::Size size;
  if (!std::strcmp(which, "accumulate")) {
    size.accumulation = 3;
    size.replicas = 2;
  } else if (!std::strcmp(which, "bf16")) {
    size.gather = DType::BF16;
    size.allToAll = false;
  } else if (!std::strcmp(which, "405b")) {
    size = test::llama405();
  } else if (std::strcmp(which, "small")) {
    std::fprintf(stderr,
                 "usage: plan-dump small|accumulate|bf16|405b|schema\n");
    return 64;
  }
  Plan plan = test::makePlan(size);
  if (!std::strcmp(which, "small")) {
    // What the others have no use for.
    plan.buffers = {{"model.rotary_emb.inv_freq", {8}, DType::F32, false}};
    plan.parameters[0].aliases = {"tied.weight"};
    plan.predicted.hasTime = true;
    Arg list, type, scalar, number;
    list.kind = Arg::Kind::Tensors;
    list.ints = {0, -1};
    type.kind = Arg::Kind::Type;
    scalar.kind = Arg::Kind::Wrapped;
    number.kind = Arg::Kind::Float;
    Instruction &odd = plan.functions[0].instructions[0];
    for (const Arg &arg : {list, type, scalar, number, Arg()})
      odd.args.push_back(arg);
    list.kind = Arg::Kind::Bools;
    list.ints = {1, 0};
    odd.args.push_back(list);
    odd.kind = Instruction::Kind::Opaque;
  }
  std::string text = toJson(plan);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
