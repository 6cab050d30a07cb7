//===- ScheduleTest.cpp - Programs as structs and as IR -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Schedule/Convert.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "test/unit/ImportProgram.h"
#include "test/unit/PlanFixture.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace accel;
using namespace accel::plan;

namespace {

class Schedule : public ::testing::Test {
protected:
  Schedule()
      : context(mlir::MLIRContext::Threading::DISABLED),
        module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))),
        handler(&context, [this](mlir::Diagnostic &d) {
          errors += d.str() + "\n";
          return mlir::success();
        }) {
    context.loadDialect<schedule::ScheduleDialect>();
  }
  /// To IR, to text, parsed again, and back.
  std::optional<Program> throughText(const Plan &plan, const Program &program) {
    schedule::ProgramOp op = schedule::importProgram(*module, plan, program);
    if (!op || failed(mlir::verify(*module)))
      return std::nullopt;
    std::string text;
    llvm::raw_string_ostream out(text);
    mlir::OpPrintingFlags flags;
    flags.enableDebugInfo(true, false);
    module->print(out, flags);
    op.erase();
    mlir::OwningOpRef<mlir::ModuleOp> parsed =
        mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!parsed)
      return std::nullopt;
    schedule::ProgramOp again = *parsed->getOps<schedule::ProgramOp>().begin();
    mlir::FailureOr<Program> result = schedule::exportProgram(again, plan);
    if (failed(result))
      return std::nullopt;
    return *result;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string errors;
  mlir::ScopedDiagnosticHandler handler;
};

void expectSameTimeline(const Plan &plan, const Program &a, const Program &b) {
  ProgramTimeline before = simulate(plan, a, persistentBytes(plan));
  ProgramTimeline after = simulate(plan, b, persistentBytes(plan));
  ASSERT_EQ(before.instructions.size(), after.instructions.size());
  for (size_t i = 0; i < before.instructions.size(); ++i) {
    EXPECT_EQ(before.instructions[i].liveBytes, after.instructions[i].liveBytes)
        << i;
    EXPECT_EQ(before.instructions[i].peakTotalBytes,
              after.instructions[i].peakTotalBytes)
        << i;
  }
  EXPECT_EQ(before.peakInstruction, after.peakInstruction);
  EXPECT_EQ(before.breakdown, after.breakdown);
}

TEST_F(Schedule, ProgramsComeBackEqual) {
  for (int64_t replicas : {1, 2})
    for (int64_t accumulation : {1, 2, 4})
      for (bool allToAll : {false, true}) {
        test::Size size;
        size.replicas = replicas;
        size.accumulation = accumulation;
        size.allToAll = allToAll;
        size.gather = allToAll ? DType::F32 : DType::BF16;
        Plan plan = test::makePlan(size);
        for (const Program &program : plan.programs) {
          std::optional<Program> back = throughText(plan, program);
          ASSERT_TRUE(back) << errors;
          EXPECT_TRUE(*back == program) << program.name;
          expectSameTimeline(plan, program, *back);
        }
      }
}

// Values in any order and timepoints of any number: the same program.
TEST_F(Schedule, NumberingIsNoPartOfTheProgram) {
  Plan plan = test::makePlan();
  const Program program = plan.programs[0];
  Program shuffled = program;
  const int n = program.values.size();
  auto moved = [&](int value) { return value < 0 ? value : n - 1 - value; };
  std::reverse(shuffled.values.begin(), shuffled.values.end());
  for (Value &value : shuffled.values)
    value.alias = moved(value.alias);
  for (int &value : shuffled.inputs)
    value = moved(value);
  shuffled.loss = moved(shuffled.loss);
  for (ProgramInstruction &instruction : shuffled.instructions) {
    for (std::vector<int> *list :
         {&instruction.inputs, &instruction.outputs, &instruction.values})
      for (int &value : *list)
        value = moved(value);
    if (instruction.timepoint >= 0)
      instruction.timepoint = 1000 - 7 * instruction.timepoint;
  }
  EXPECT_FALSE(shuffled == program);
  EXPECT_TRUE(schedule::canonical(shuffled) == program);
  std::optional<Program> back = throughText(plan, shuffled);
  ASSERT_TRUE(back) << errors;
  EXPECT_TRUE(*back == program);
}

// f(x) -> (view of x, y, view of y, dropped): aliases and dropped results.
TEST_F(Schedule, AliasesAndDroppedResults) {
  test::FunctionBuilder f("split");
  int x = f.input(DType::F32, {64});
  int y = f.make("aten::relu", {x}, DType::F32, {128});
  int yv = f.view("aten::view", y, {2, 64});
  int xv = f.view("aten::view", x, {8, 8});
  int z = f.make("aten::relu", {x}, DType::U8, {16});
  Plan plan;
  plan.functions = {f.finish({xv, y, z, yv})};
  Program p;
  p.name = "p";
  p.values = {{"x", DType::F32, {64}, 256},
              {"xv", DType::F32, {8, 8}, 0, 0},
              {"y", DType::F32, {128}, 512},
              {"yv", DType::F32, {2, 64}, 0, 2}};
  p.inputs = {0};
  ProgramInstruction call;
  call.function = 0;
  call.inputs = {0};
  call.consumed = {true};
  call.outputs = {1, 2, -1, 3};
  call.where = "model";
  ProgramInstruction free;
  free.kind = ProgramInstructionKind::Free;
  free.values = {1, 2, 3};
  p.instructions = {call, free};
  plan.programs = {p};
  plan.eval = 0;
  predictMemory(plan);
  ASSERT_EQ(verify(plan), std::vector<std::string>{});
  std::optional<Program> back = throughText(plan, plan.programs[0]);
  ASSERT_TRUE(back) << errors;
  EXPECT_TRUE(*back == plan.programs[0]);
  expectSameTimeline(plan, plan.programs[0], *back);
}

TEST_F(Schedule, BuffersInFlightCannotBeImported) {
  Plan plan = test::makePlan();
  Program &program = plan.programs[0];
  // The call in front of the await of its unit.
  for (size_t i = 0; i + 1 < program.instructions.size(); ++i)
    if (program.instructions[i].kind == ProgramInstructionKind::Await &&
        program.instructions[i + 1].kind == ProgramInstructionKind::Call) {
      std::swap(program.instructions[i], program.instructions[i + 1]);
      break;
    }
  EXPECT_FALSE(schedule::importProgram(*module, plan, program));
  EXPECT_NE(errors.find("the gathered buffer of unit '' is in flight"),
            std::string::npos)
      << errors;
}

TEST_F(Schedule, FreedBuffersCannotBeImported) {
  Plan plan = test::makePlan();
  Program &program = plan.programs[0];
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].kind == ProgramInstructionKind::Free) {
      program.instructions.insert(program.instructions.begin() + i,
                                  program.instructions[i]);
      break;
    }
  EXPECT_FALSE(schedule::importProgram(*module, plan, program));
  EXPECT_NE(errors.find("is freed"), std::string::npos) << errors;
}

TEST_F(Schedule, OtherPlansAreRefused) {
  Plan plan = test::makePlan();
  schedule::ProgramOp op =
      schedule::importProgram(*module, plan, plan.programs[0]);
  ASSERT_TRUE(op);
  Plan other = plan;
  other.functions[1].name = "Other.forward";
  EXPECT_TRUE(failed(schedule::exportProgram(op, other)));
  EXPECT_NE(errors.find("which is no function of the plan"), std::string::npos);
  EXPECT_TRUE(
      succeeded(schedule::exportProgram(op, other, [&](llvm::StringRef name) {
        return name == "DecoderLayer.forward" ? 1 : 0;
      })));
  errors.clear();
  other = plan;
  other.units[1].name = "elsewhere";
  EXPECT_TRUE(failed(schedule::exportProgram(op, other)));
  EXPECT_NE(errors.find("names the unit 'model.layers.0'"), std::string::npos);
  errors.clear();
  other = plan;
  other.parameters[4].fqn = "elsewhere";
  EXPECT_TRUE(failed(schedule::exportProgram(op, other)));
  EXPECT_NE(errors.find("which its unit does not have"), std::string::npos);
}

} // namespace
