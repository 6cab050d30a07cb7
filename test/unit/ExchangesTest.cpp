//===- ExchangesTest.cpp - Exchanges of a plan's functions ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Exchanges.h"

#include <gtest/gtest.h>

using namespace accel::plan;

namespace {

Arg number(int64_t value) {
  Arg arg;
  arg.kind = Arg::Kind::Int;
  arg.intValue = value;
  return arg;
}

Arg axis(const char *name) {
  Arg arg;
  arg.kind = Arg::Kind::Text;
  arg.text = name;
  return arg;
}

Arg tensor(int slot) {
  Arg arg;
  arg.kind = Arg::Kind::Tensor;
  arg.slot = slot;
  return arg;
}

/// A function with a value [2, 6, 4] in slot 0 and a result in slot 1.
struct Fixture {
  Plan plan;
  Function function;
  Instruction instruction;

  Fixture(const char *op, std::vector<int64_t> result, std::vector<Arg> args)
      : plan() {
    plan.axes = {{"dp_shard", 4}, {"tp", 2}};
    function.slots = {{DType::F32, {2, 6, 4}, 0},
                      {DType::F32, std::move(result), 1}};
    instruction.op = op;
    instruction.args = std::move(args);
    instruction.results = {1};
  }
  std::string problem() const {
    return exchangeProblem(plan, function, instruction);
  }
};

TEST(Exchanges, KnowsEachKindByItsArguments) {
  const Fixture gather(
      "sharding::all_gather", {2, 12, 4},
      {tensor(0), number(1), number(3), number(0), axis("tp")});
  EXPECT_EQ(gather.problem(), "");
  const auto exchange = exchangeOf(gather.instruction);
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->kind, ExchangeKind::AllGather);
  EXPECT_EQ(exchange->dim, 1);
  EXPECT_EQ(exchange->pieces, 3);
  EXPECT_EQ(exchange->axes, std::vector<std::string>{"tp"});
  EXPECT_TRUE(exchange->communicates());

  EXPECT_EQ(Fixture("sharding::all_reduce", {2, 6, 4},
                    {tensor(0), number(1), axis("tp")})
                .problem(),
            "");
  EXPECT_EQ(Fixture("sharding::reduce_scatter", {2, 3, 4},
                    {tensor(0), number(1), number(1), number(0), axis("tp")})
                .problem(),
            "");
  EXPECT_EQ(Fixture("sharding::all_to_all", {2, 12, 2},
                    {tensor(0), number(2), number(1), axis("tp")})
                .problem(),
            "");
  EXPECT_EQ(Fixture("sharding::slice", {1, 6, 4},
                    {tensor(0), number(0), number(1), number(0), axis("tp")})
                .problem(),
            "");
  const Fixture permute("sharding::permute", {2, 6, 4},
                        {tensor(0), number(1), axis("tp")});
  EXPECT_EQ(permute.problem(), "");
  EXPECT_EQ(exchangeOf(permute.instruction)->shift, 1);
  EXPECT_TRUE(exchangeOf(permute.instruction)->communicates());
  const Fixture mirrored(
      "sharding::all_gather", {2, 12, 4},
      {tensor(0), number(1), number(2), number(1), axis("tp")});
  EXPECT_EQ(mirrored.problem(), "");
  EXPECT_TRUE(exchangeOf(mirrored.instruction)->mirrored);
  EXPECT_EQ(Fixture("sharding::first_rank", {2, 6, 4}, {tensor(0), axis("tp")})
                .problem(),
            "");
  Fixture place("sharding::coordinate", {}, {number(16), axis("tp")});
  place.function.slots[1].dtype = DType::I64;
  EXPECT_EQ(place.problem(), "");
  EXPECT_FALSE(exchangeOf(place.instruction)->communicates());
}

/// Rows [6, 4] in slot 0 and 2 ranks' ends of 4 experts' rows in slot 2.
Fixture rows(const char *op, std::vector<int64_t> result,
             std::vector<Arg> args) {
  Fixture fixture(op, std::move(result), std::move(args));
  fixture.plan.axes = {{"dp_shard", 2}, {"ep", 2}};
  fixture.function.slots[0].shape = {6, 4};
  fixture.function.slots.push_back({DType::I32, {2, 4}, 2});
  return fixture;
}

TEST(Exchanges, MovesRowsToExperts) {
  const Fixture dispatch = rows("sharding::dispatch", {12, 4},
                                {tensor(0), tensor(2), number(12), axis("ep")});
  EXPECT_EQ(dispatch.problem(), "");
  const auto exchange = exchangeOf(dispatch.instruction);
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->value, 0);
  EXPECT_EQ(exchange->ends, 2);
  EXPECT_EQ(exchange->rows, 12);
  EXPECT_TRUE(exchange->communicates());
  EXPECT_EQ(rows("sharding::combine", {3, 4},
                 {tensor(0), tensor(2), number(3), axis("ep")})
                .problem(),
            "");
  Fixture ends =
      rows("sharding::expert_ends", {2}, {tensor(2), number(12), axis("ep")});
  ends.function.slots[1].dtype = DType::I32;
  EXPECT_EQ(ends.problem(), "");
  EXPECT_FALSE(exchangeOf(ends.instruction)->communicates());

  Fixture other = dispatch;
  other.function.slots[2].shape = {2, 5};
  EXPECT_EQ(other.problem(),
            "slot 2, i32 [2, 5], holds no ends of experts' rows of 2 ranks");
  other = dispatch;
  other.function.slots[2].dtype = DType::I64;
  EXPECT_EQ(other.problem(),
            "slot 2, i64 [2, 4], holds no ends of experts' rows of 2 ranks");
  other = dispatch;
  other.function.slots[1].shape = {12, 5};
  EXPECT_EQ(other.problem(), "it gives [12, 4], and slot 1 is [12, 5]");
  EXPECT_EQ(
      rows("sharding::expert_ends", {2}, {tensor(0), number(12), axis("ep")})
          .problem(),
      "it reads ends of rows as f32");
  EXPECT_EQ(rows("sharding::dispatch", {12, 4},
                 {tensor(0), tensor(2), number(0), axis("ep")})
                .problem(),
            "its arguments are not those of the exchange");
  EXPECT_EQ(
      rows("sharding::all_reduce", {6, 4}, {tensor(0), number(0), axis("ep")})
          .problem(),
      "the ranks of 'ep' compute different samples");
}

TEST(Exchanges, MovesRowsOverSeveralAxes) {
  Fixture dispatch =
      rows("sharding::dispatch", {12, 4},
           {tensor(0), tensor(2), number(12), axis("ep"), axis("tp")});
  dispatch.plan.axes.push_back({"tp", 2});
  EXPECT_EQ(dispatch.problem(),
            "slot 2, i32 [2, 4], holds no ends of experts' rows of 4 ranks");
  dispatch.function.slots[2].shape = {4, 8};
  EXPECT_EQ(dispatch.problem(), "");
  EXPECT_EQ(exchangeOf(dispatch.instruction)->axes,
            (std::vector<std::string>{"ep", "tp"}));
}

/// As the fixture, started: slots 2 and on are buffers of so many elements.
Fixture started(const char *op, std::vector<int64_t> result,
                std::vector<int64_t> buffers, std::vector<Arg> args,
                const char *device = "cpu") {
  Fixture fixture(op, std::move(result), std::move(args));
  fixture.plan.device = device;
  for (int64_t size : buffers) {
    const int slot = static_cast<int>(fixture.function.slots.size());
    fixture.function.slots.push_back({DType::F32, {size}, slot});
    fixture.instruction.results.push_back(slot);
  }
  return fixture;
}

TEST(Exchanges, StartedOnesHaveTheirBuffers) {
  const std::vector<Arg> rows = {tensor(0), number(1), number(1), number(0),
                                 axis("tp")};
  // Two blocks are sent one by one on CPUs; a GPU has them behind each other.
  const Fixture gather =
      started("sharding::all_gather.start", {2, 12, 4}, {}, rows);
  EXPECT_EQ(gather.problem(), "");
  EXPECT_TRUE(exchangeOf(gather.instruction)->started);
  EXPECT_EQ(
      started("sharding::all_gather.start", {2, 12, 4}, {96}, rows, "cuda")
          .problem(),
      "");
  EXPECT_EQ(
      started("sharding::all_gather.start", {2, 12, 4}, {48}, rows).problem(),
      "")
      << "a value that does not lie in order";
  EXPECT_EQ(started("sharding::reduce_scatter.start", {2, 3, 4}, {24}, rows)
                .problem(),
            "");
  EXPECT_EQ(started("sharding::all_reduce.start", {2, 6, 4}, {},
                    {tensor(0), number(0), axis("tp")})
                .problem(),
            "");
  EXPECT_EQ(started("sharding::all_to_all.start", {2, 12, 2}, {48, 48},
                    {tensor(0), number(2), number(1), axis("tp")})
                .problem(),
            "");

  EXPECT_EQ(
      started("sharding::reduce_scatter.start", {2, 3, 4}, {}, rows).problem(),
      "its buffers are [], expected [24]");
  Fixture other =
      started("sharding::reduce_scatter.start", {2, 3, 4}, {24}, rows);
  other.function.slots[2].dtype = DType::BF16;
  EXPECT_EQ(other.problem(), "slot 2 is no buffer of its f32");
  EXPECT_EQ(started("sharding::all_gather", {2, 12, 4}, {24}, rows).problem(),
            "its arguments are not those of the exchange");
  EXPECT_EQ(started("sharding::slice.start", {2, 3, 4}, {}, rows).problem(),
            "its arguments are not those of the exchange");
}

/// sum = start(x); y = x; await(sum); z = sum, with what each frees.
struct Order {
  Function function;
  Order() {
    for (int i = 0; i < 4; ++i)
      function.slots.push_back({DType::F32, {8}, i});
    add("sharding::permute.start", {tensor(0), number(1), axis("tp")}, {1});
    add("aten::relu", {tensor(0)}, {2});
    add("sharding::await", {tensor(1), tensor(0)}, {});
    add("aten::relu", {tensor(1)}, {3});
  }
  void add(const char *op, std::vector<Arg> args, std::vector<int> results) {
    Instruction instruction;
    instruction.op = op;
    instruction.args = std::move(args);
    instruction.results = std::move(results);
    function.instructions.push_back(std::move(instruction));
  }
};

TEST(Exchanges, NothingTouchesWhatIsUnderWay) {
  Order right;
  EXPECT_EQ(startProblem(right.function), "");
  right.function.instructions[2].frees = {0};
  EXPECT_EQ(startProblem(right.function), "");

  Order reads;
  reads.function.instructions[1].args = {tensor(1)};
  EXPECT_EQ(startProblem(reads.function),
            "instruction 1 (aten::relu) reads slot 1 before instruction 0 "
            "(sharding::permute.start) is awaited");
  Order frees;
  frees.function.instructions[1].frees = {0};
  EXPECT_EQ(startProblem(frees.function),
            "instruction 1 (aten::relu) frees slot 0 before instruction 0 "
            "(sharding::permute.start) is awaited");
  frees = {};
  frees.function.instructions[0].frees = {0};
  EXPECT_EQ(startProblem(frees.function),
            "instruction 0 (sharding::permute.start) frees slot 0 before it is "
            "awaited");
  Order never;
  never.function.instructions.erase(never.function.instructions.begin() + 2,
                                    never.function.instructions.end());
  EXPECT_EQ(startProblem(never.function),
            "instruction 0 (sharding::permute.start) is never awaited");
  Order twice;
  twice.add("sharding::await", {tensor(1)}, {});
  EXPECT_EQ(startProblem(twice.function),
            "instruction 4 (sharding::await) awaits slot 1, which no exchange "
            "under way gives");
}

TEST(Exchanges, NamesWhatIsWrong) {
  auto problem = [](const char *op, std::vector<int64_t> result,
                    std::vector<Arg> args) {
    return Fixture(op, std::move(result), std::move(args)).problem();
  };
  EXPECT_EQ(problem("sharding::rotate", {2, 6, 4}, {tensor(0), axis("tp")}),
            "there is no such exchange");
  EXPECT_EQ(problem("sharding::permute", {2, 6, 4}, {tensor(0), axis("tp")}),
            "its arguments are not those of the exchange");
  EXPECT_EQ(problem("sharding::permute", {2, 6, 4},
                    {tensor(0), number(2), axis("tp")}),
            "a tensor [2, 6, 4] cannot be exchanged so among 2 ranks");
  // An odd number of pieces has no mirror image, and 2 is no truth value.
  for (auto [pieces, mirrored] : {std::pair{3, 1}, {2, 2}})
    EXPECT_EQ(problem("sharding::slice", {2, 3, 4},
                      {tensor(0), number(1), number(pieces), number(mirrored),
                       axis("tp")}),
              "its arguments are not those of the exchange");
  EXPECT_EQ(problem("sharding::all_reduce", {2, 6, 4}, {tensor(0), axis("tp")}),
            "its arguments are not those of the exchange");
  EXPECT_EQ(problem("sharding::all_reduce", {2, 6, 4},
                    {tensor(0), number(2), axis("tp")}),
            "its arguments are not those of the exchange");
  EXPECT_EQ(problem("sharding::all_gather", {2, 12, 4},
                    {tensor(0), number(1), number(1), number(0), axis("tp"),
                     axis("tp")}),
            "its arguments are not those of the exchange");
  EXPECT_EQ(problem("sharding::all_reduce", {2, 6, 4},
                    {tensor(0), number(0), axis("ep")}),
            "the mesh has no axis 'ep'");
  EXPECT_EQ(problem("sharding::all_reduce", {2, 6, 4},
                    {tensor(0), number(0), axis("dp_shard")}),
            "the ranks of 'dp_shard' compute different samples");
  Fixture context("sharding::all_reduce", {2, 6, 4},
                  {tensor(0), number(0), axis("cp")});
  context.plan.axes.push_back({"cp", 2});
  EXPECT_EQ(context.problem(), "");
  EXPECT_EQ(problem("sharding::all_reduce", {2, 6, 4},
                    {tensor(0), number(0), axis("tp"), axis("tp")}),
            "the axis 'tp' is named twice");
  EXPECT_EQ(problem("sharding::all_reduce", {2, 6, 8},
                    {tensor(0), number(0), axis("tp")}),
            "it gives [2, 6, 4], and slot 1 is [2, 6, 8]");
  EXPECT_EQ(problem("sharding::reduce_scatter", {2, 3, 4},
                    {tensor(0), number(1), number(2), number(0), axis("tp")}),
            "a tensor [2, 6, 4] cannot be exchanged so among 2 ranks");
  EXPECT_EQ(problem("sharding::all_gather", {2, 6, 4},
                    {tensor(0), number(7), number(1), number(0), axis("tp")}),
            "a tensor [2, 6, 4] cannot be exchanged so among 2 ranks");
  Fixture cast("sharding::all_reduce", {2, 6, 4},
               {tensor(0), number(0), axis("tp")});
  cast.function.slots[1].dtype = DType::BF16;
  EXPECT_EQ(cast.problem(), "it gives f32, and slot 1 is bf16");
}

} // namespace
