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
