//===- CostTest.cpp - Seconds of operators and collectives ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/CollectiveCost.h"
#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/FunctionTime.h"
#include "passes/Cost/OpCost.h"
#include "runtime/plan/InstructionKey.h"
#include "runtime/plan/Operands.h"
#include "test/unit/PlanFixture.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace accel;
using namespace accel::plan;

namespace {

Target loaded(const char *name) {
  DiagnosticEngine engine;
  std::optional<Target> target = loadTarget(name, engine);
  EXPECT_TRUE(target) << renderText(engine);
  return target.value_or(Target());
}

/// FLOP/s that a matmul attains, as a share of the datasheet.
double share(const Target &target, int64_t m, int64_t n, int64_t k,
             int64_t batch = 1, DType dtype = DType::BF16) {
  const MatmulShape shape{batch, m, n, k};
  return shape.flops() / productSeconds(target, dtype, shape) /
         target.peakFlops(dtype);
}

TEST(Cost, ProductsFillWaves) {
  Target target;
  target.multiprocessors = 100;
  target.compute[DType::BF16] = {1e12, 1.0, 1.0};
  target.memoryBytesPerSecond = 1e12;
  auto seconds = [&](int64_t m, int64_t n) {
    return productSeconds(target, DType::BF16, {1, m, n, 65536});
  };
  // One tile of 256 x 128 on each multiprocessor at the full rate.
  const double wave = 2.0 * 2560 * 1280 * 65536 / 1e12;
  EXPECT_NEAR(seconds(2560, 1280), wave, 1e-3 * wave);
  // One row of tiles more needs a second wave, unless smaller tiles or split
  // inner sizes fill the gap; it can never be free.
  EXPECT_GT(seconds(2816, 1280), 1.08 * wave);
  EXPECT_LE(seconds(2816, 1280), 2 * wave);
  // A partial tile costs like a whole one.
  EXPECT_DOUBLE_EQ(seconds(2560 - 8, 1280), seconds(2560, 1280));
}

TEST(Cost, ScansWaitForProductsAndTraffic) {
  Target target;
  target.launchSeconds = 1e-6;
  target.compute[DType::BF16] = {1e12, 0.5};
  target.compute[DType::BF16].halfDepth = 32;
  target.memoryBytesPerSecond = 2e12;
  target.reductionBytesPerSecond = 1e12;
  Function function;
  function.slots.push_back({DType::BF16, {1, 64, 68}, 0});
  Instruction scan;
  scan.op = "fused::mamba2_mixer";
  auto number = [](int64_t value) {
    Arg arg;
    arg.kind = Arg::Kind::Int;
    arg.intValue = value;
    return arg;
  };
  scan.args = {tensorArg(0), number(2), number(4), number(8), number(96)};
  scan.results = {0};
  scan.flops = 3e9;
  scan.movedBytes = 2e9;
  EXPECT_EQ(opKind(scan), OpKind::Scan);
  // Products of depth 96 attain 96 / (96 + 32) of half the peak.
  const double products = 3e9 / 0.5e12 * 128 / 96, traffic = 2e9 / 1e12;
  EXPECT_NEAR(opSeconds(function, scan, target), 7e-6 + products + traffic,
              1e-9);
  scan.op = "fused::mamba2_mixer_backward";
  EXPECT_NEAR(opSeconds(function, scan, target), 17e-6 + products + traffic,
              1e-9);
}

TEST(Cost, LoopsWaitForTheHostThatQueuesThem) {
  Target target;
  target.launchSeconds = 1e-6;
  target.dispatchSeconds = 2e-5;
  target.compute[DType::BF16] = {1e12, 0.5};
  target.compute[DType::BF16].halfDepth = 64;
  target.compute[DType::F32] = {1e11, 0.5};
  target.memoryBytesPerSecond = 1e12;
  Function function;
  // Three chunks, the last one padded.
  function.slots.push_back({DType::BF16, {1, 130, 68}, 0});
  Instruction loop;
  loop.op = "fused::gated_delta_rule";
  Arg cast;
  cast.kind = Arg::Kind::Bool;
  cast.intValue = 1;
  loop.args = {tensorArg(0), cast};
  loop.results = {0};
  loop.flops = 1e6;
  loop.movedBytes = 1e6;
  EXPECT_EQ(opKind(loop), OpKind::Loop);
  EXPECT_NEAR(opSeconds(function, loop, target), (17 * 3 + 50) * 2e-5, 1e-12);
  // Work that takes longer than the host: products of depth 64 attain half.
  loop.flops = 1e9;
  loop.movedBytes = 1e9;
  EXPECT_NEAR(opSeconds(function, loop, target),
              (17 * 3 + 50) * 1e-6 + 1e9 / 0.5e12 * 2 + 1e9 / 1e12, 1e-12);
  loop.op = "fused::gated_delta_rule_backward";
  loop.args[1].intValue = 0; // in fp32
  EXPECT_NEAR(opSeconds(function, loop, target),
              (31 * 3 + 75) * 1e-6 + 1e9 / 0.5e11 + 1e9 / 1e12, 1e-12);
}

TEST(Cost, ProductsGrowEfficientWithEachSize) {
  for (const char *name : {"a100-80gb", "h100-sxm-80gb", "b200", "mi300x"}) {
    const Target target = loaded(name);
    const double large = share(target, 16384, 16384, 16384);
    EXPECT_NEAR(large, target.rate(DType::BF16).matmulEfficiency, 0.03) << name;
    EXPECT_LT(share(target, 16384, 16384, 128), 0.8 * large) << name;
    EXPECT_LT(share(target, 64, 4096, 4096), 0.5 * large) << name;
    double before = 0;
    for (int64_t size = 128; size <= 8192; size *= 2) {
      const double now = share(target, size, size, size);
      EXPECT_GT(now, before) << name << " " << size;
      before = now;
    }
    // Many small matmuls are as good as few large ones, one is not.
    EXPECT_GT(share(target, 512, 512, 512, 256),
              2 * share(target, 512, 512, 512))
        << name;
  }
}

TEST(Cost, MeasuredProductsOfAnH100) {
  // torch.mm in fp16 of 1024, 2048 and 4096 on an idle H100 SXM5:
  // 179, 645 and 760 TFLOP/s (torch-performance-test-data, issue 79); a
  // training run's clocks are lower, the shape of the curve is the same.
  const Target target = loaded("h100-sxm-80gb");
  const double large = share(target, 4096, 4096, 4096);
  EXPECT_NEAR(share(target, 2048, 2048, 2048) / large, 645.0 / 760, 0.2);
  EXPECT_LT(share(target, 1024, 1024, 1024) / large, 0.8);
}

TEST(Cost, DtypesHaveTheirOwnRates) {
  const Target target = loaded("h100-sxm-80gb");
  const MatmulShape shape{1, 8192, 8192, 8192};
  const double f32 = productSeconds(target, DType::F32, shape);
  const double tf32 = productSeconds(target, DType::F32, shape, {.tf32 = true});
  const double bf16 = productSeconds(target, DType::BF16, shape);
  const double fp8 = productSeconds(target, DType::BF16, shape, {.fp8 = true});
  EXPECT_GT(f32, 4 * tf32);
  EXPECT_GT(tf32, 1.5 * bf16);
  EXPECT_GT(bf16, 1.2 * fp8);
  EXPECT_EQ(productSeconds(target, DType::BF16, shape, {.tf32 = true}), bf16);
  const Target a100 = loaded("a100-80gb");
  EXPECT_EQ(productSeconds(a100, DType::BF16, shape, {.fp8 = true}),
            productSeconds(a100, DType::BF16, shape))
      << "no fp8 there";
}

TEST(Cost, AttentionByLengthHeadAndMask) {
  const Target target = loaded("a100-80gb");
  auto rate = [&](AttentionShape shape) {
    return 1e12 / attentionSeconds(target, DType::BF16, shape, 1e12);
  };
  // FlashAttention-2's figures: causal, heads of 128, 512 to 16k tokens.
  EXPECT_LT(rate({512, 512, 128, true}), 0.6 * rate({16384, 16384, 128, true}));
  EXPECT_GT(rate({4096, 4096, 128, true}), 150e12);
  EXPECT_LT(rate({4096, 4096, 64, true}), rate({4096, 4096, 128, true}));
  EXPECT_GT(rate({1024, 1024, 128, false}), rate({1024, 1024, 128, true}));
  EXPECT_LT(rate({4096, 4096, 128, true, true}),
            rate({4096, 4096, 128, true, false}));
}

TEST(Cost, CudnnAttentionHasRatesOfItsOwn) {
  const Target h100 = loaded("h100-sxm-80gb"), a100 = loaded("a100-80gb");
  auto faster = [&](const Target &target, int64_t head, bool backward) {
    AttentionShape shape = {8192, 8192, head, true, backward};
    const double flash = attentionSeconds(target, DType::BF16, shape, 1e12);
    shape.cudnn = true;
    return flash / attentionSeconds(target, DType::BF16, shape, 1e12);
  };
  // FlashAttention-3's figures 5 and 6: 529 and 333 TFLOP/s forward, 518 and
  // 318 backward; heads of 64: 412 and 322.
  EXPECT_NEAR(faster(h100, 128, false), 529.0 / 333, 0.1);
  EXPECT_NEAR(faster(h100, 128, true), 518.0 / 318, 0.1);
  EXPECT_NEAR(faster(h100, 64, false), 412.0 / 322, 0.1);
  EXPECT_EQ(faster(a100, 128, false), 1) << "no rates there";
}

TEST(Cost, ShapesComeFromOperands) {
  test::FunctionBuilder f("f");
  int x = f.input(DType::BF16, {64, 32}), w = f.input(DType::BF16, {32, 16});
  int bias = f.input(DType::BF16, {16});
  int q = f.input(DType::BF16, {2, 4, 64, 8});
  f.make("aten::addmm", {bias, x, w}, DType::BF16, {64, 16}, 2 * 64 * 32 * 16);
  f.make("aten::_scaled_dot_product_flash_attention", {q, q, q}, DType::BF16,
         {2, 4, 64, 8}, 2.0 * 2 * 4 * 64 * 64 * 8);
  f.make("aten::_scaled_dot_product_flash_attention_backward", {q, q, q, q},
         DType::BF16, {2, 4, 64, 8}, 10.0 * 2 * 4 * 64 * 64 * 8);
  f.make("aten::mm", {x}, DType::BF16, {64, 16}, 1);
  Function function = f.finish({});
  auto product = matmulShape(function, function.instructions[0]);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->m, 64);
  EXPECT_EQ(product->n, 16);
  EXPECT_EQ(product->k, 32);
  auto attention = attentionShape(function, function.instructions[1]);
  ASSERT_TRUE(attention);
  EXPECT_TRUE(attention->causal);
  EXPECT_EQ(attention->keys, 64);
  EXPECT_EQ(attention->headSize, 8);
  attention = attentionShape(function, function.instructions[2]);
  ASSERT_TRUE(attention);
  EXPECT_TRUE(attention->backward);
  EXPECT_FALSE(attention->causal);
  EXPECT_FALSE(matmulShape(function, function.instructions[3]));
}

TEST(Cost, MeasuredSecondsGoBeforeRates) {
  test::FunctionBuilder f("f");
  int x = f.input(DType::F32, {64, 32}), w = f.input(DType::F32, {32, 16});
  f.make("aten::mm", {x, w}, DType::F32, {64, 16}, 2 * 64 * 32 * 16);
  f.make("aten::mm", {x, w}, DType::BF16, {64, 16}, 2 * 64 * 32 * 16);
  int y = f.input(DType::F32, {32, 8});
  f.make("aten::mm", {x, y}, DType::F32, {64, 8}, 2 * 64 * 32 * 8);
  const Function function = f.finish({});
  Target target = loaded("cpu");
  const double other = opSeconds(function, function.instructions[2], target);
  target.measured["aten::mm f32x64x32 f32x32x16"] = 0.25;
  EXPECT_EQ(opSeconds(function, function.instructions[0], target), 0.25);
  EXPECT_EQ(opSeconds(function, function.instructions[1], target), 0.25)
      << "results are not part of the key";
  EXPECT_EQ(opSeconds(function, function.instructions[2], target), other);
}

TEST(Cost, MeasuredCollectivesGoBeforeLinks) {
  Target target = loaded("cpu");
  const plan::AxisGroup two{2, 2}, across{2, 1};
  auto seconds = [&](Collective kind, const plan::AxisGroup &group) {
    return collectiveSeconds(target, kind, group, 4096);
  };
  const double other = seconds(Collective::ReduceScatter, two);
  const double between = seconds(Collective::AllGather, across);
  target.measuredCollectives[plan::collectiveKey(
      ProgramInstructionKind::AllGather, 2, 4096)] = 0.25;
  EXPECT_TRUE(
      target.measuredCollectives.count("all_gather 2 ranks 4096 bytes"));
  EXPECT_EQ(seconds(Collective::AllGather, two), 0.25);
  EXPECT_EQ(seconds(Collective::ReduceScatter, two), other);
  EXPECT_EQ(seconds(Collective::AllGather, across), between)
      << "measured in one node";
}

TEST(Cost, GroupsOfOtherDtypesWaitForTheHost) {
  const int64_t groups = 8;
  auto secondsOf = [&](DType dtype, const Target &target) {
    test::FunctionBuilder f("f");
    int x = f.input(dtype, {512, 256}), w = f.input(dtype, {groups, 256, 128});
    int ends = f.input(DType::I32, {groups});
    f.make("aten::_grouped_mm", {x, w, ends}, dtype, {512, 128},
           2.0 * 512 * 256 * 128);
    const Function function = f.finish({});
    return opSeconds(function, function.instructions[0], target);
  };
  const Target h200 = loaded("h200");
  // As many matmuls as groups, and each is queued by itself.
  for (DType dtype : {DType::F32, DType::F16})
    EXPECT_GE(secondsOf(dtype, h200),
              h200.host.latencySeconds + groups * h200.dispatchSeconds);
  EXPECT_LT(secondsOf(DType::BF16, h200), h200.host.latencySeconds);
  Target cpu = h200;
  cpu.kind = TargetKind::Cpu;
  EXPECT_LT(secondsOf(DType::F32, cpu), secondsOf(DType::F32, h200));
}

TEST(Cost, CompiledOperatorsAreFused) {
  test::FunctionBuilder f("f");
  const std::vector<int64_t> shape = {1024, 1024};
  int x = f.input(DType::F32, shape);
  int a = f.make("aten::mul.Tensor", {x, x}, DType::F32, shape, 1);
  int b = f.make("aten::sigmoid", {a}, DType::F32, shape, 1);
  int c = f.make("aten::mm", {b, x}, DType::F32, shape, 2e9);
  int d = f.make("aten::add.Tensor", {c, a}, DType::F32, shape, 1);
  Function function = f.finish({d});
  const double bytes = 4 * 1024 * 1024;
  for (Instruction &instruction : function.instructions)
    instruction.movedBytes = 0;
  function.instructions[0].movedBytes = 3 * bytes;
  function.instructions[1].movedBytes = 2 * bytes;
  function.instructions[2].movedBytes = 3 * bytes;
  function.instructions[3].movedBytes = 3 * bytes;
  Target target;
  target.memoryBytesPerSecond = 1e9;
  target.compute[DType::F32] = {1e12, 1, 1};
  target.launchSeconds = 1e-5;
  const double product = 3 * bytes / 1e9 + 1e-5;
  const FunctionCost eager = eagerCost(function, target);
  const FunctionCost fused = fusedCost(function, target);
  EXPECT_EQ(eager.launches, 4);
  EXPECT_NEAR(eager.seconds, 8 * bytes / 1e9 + 3e-5 + product, 1e-9);
  // mul and sigmoid: one kernel reads x and writes both, since `a` is read by
  // the addition, which the matmul keeps apart.
  EXPECT_EQ(fused.launches, 3);
  EXPECT_NEAR(fused.seconds, (3 + 3) * bytes / 1e9 + 2e-5 + product, 1e-9);
}

TEST(Cost, ExchangesAreCollectivesOverTheirAxes) {
  const Target target = loaded("h100-sxm-80gb");
  Mesh mesh = Mesh::dataParallel();
  mesh.resize("dp_shard", 4);
  mesh.resize("tp", 8);
  Function function;
  function.slots.resize(2);
  function.slots[0] = {DType::BF16, {1024, 512}, 0};
  function.slots[1] = {DType::BF16, {1024, 4096}, 1};
  auto seconds = [&](const char *op, int operand, int result,
                     const char *axis = "tp") {
    Instruction exchange;
    exchange.op = op;
    // A sum and a shift are one number, what is about a dimension has three:
    // dimension 1, one piece, not mirrored.
    const std::string_view name = op;
    const bool one =
        name == "sharding::all_reduce" || name == "sharding::permute";
    const size_t numbers = one ? 1 : 3;
    exchange.args.resize(2 + numbers);
    exchange.args[0].kind = Arg::Kind::Tensor;
    exchange.args[0].slot = operand;
    for (size_t i = 1; i <= numbers; ++i) {
      exchange.args[i].kind = Arg::Kind::Int;
      exchange.args[i].intValue =
          one ? name == "sharding::permute" : i < numbers;
    }
    exchange.args.back().kind = Arg::Kind::Text;
    exchange.args.back().text = axis;
    exchange.results = {result};
    return exchangeSeconds(function, exchange, mesh, 8, target);
  };
  const AxisGroup node{8, 8}, across{4, 1};
  const double whole = 2.0 * 1024 * 4096;
  EXPECT_EQ(seconds("sharding::all_gather", 0, 1),
            collectiveSeconds(target, Collective::AllGather, node, whole));
  EXPECT_EQ(seconds("sharding::reduce_scatter", 1, 0),
            collectiveSeconds(target, Collective::ReduceScatter, node, whole));
  EXPECT_EQ(seconds("sharding::all_reduce", 1, 1),
            collectiveSeconds(target, Collective::AllReduce, node, whole));
  EXPECT_EQ(seconds("sharding::all_reduce", 1, 1, "dp_shard"),
            collectiveSeconds(target, Collective::AllReduce, across, whole));
  // Of an all-to-all a rank keeps its own part.
  EXPECT_EQ(seconds("sharding::permute", 1, 1),
            collectiveSeconds(target, Collective::Permute, node, whole));
  // Whoever passes a value on passes it once, to one rank: a node's size makes
  // no difference, and between nodes it goes over the links of one rank.
  EXPECT_EQ(collectiveSeconds(target, Collective::Permute, {2, 2}, whole),
            collectiveSeconds(target, Collective::Permute, node, whole));
  EXPECT_EQ(collectiveSeconds(target, Collective::Permute, {512, 8}, whole),
            collectiveSeconds(target, Collective::Permute, across, whole));
  EXPECT_LE(collectiveSeconds(target, Collective::Permute, across, whole),
            target.betweenNodes.latencySeconds +
                target.betweenNodes.hopSeconds +
                whole / target.betweenNodes.bytesPerSecond);
  EXPECT_GT(collectiveSeconds(target, Collective::Permute, across, whole),
            collectiveSeconds(target, Collective::Permute, node, whole));
  // Rows go to experts, of which a rank would get as many as it has: what has
  // a place for more of them (slot 1) costs no more.
  for (auto [op, value, result] :
       {std::tuple{"sharding::dispatch", 0, 1}, {"sharding::combine", 1, 0}}) {
    plan::Exchange rows;
    rows.kind = std::string_view(op) == "sharding::dispatch"
                    ? plan::ExchangeKind::Dispatch
                    : plan::ExchangeKind::Combine;
    rows.value = value;
    rows.result = result;
    rows.axes = {"tp"};
    EXPECT_EQ(
        exchangeSeconds(function, rows, mesh, 8, target),
        collectiveSeconds(target, Collective::AllToAll, node, 2.0 * 1024 * 512))
        << op;
  }
  EXPECT_EQ(seconds("sharding::slice", 1, 0), 0);
  EXPECT_EQ(seconds("aten::mm", 1, 0), 0);
  EXPECT_EQ(mesh.ranksPerSample(), 8);
  EXPECT_EQ(mesh.sharded(2).ranksPerSample(), 8);
}

TEST(Cost, CollectivesTakeTheFastestWay) {
  const Target target = loaded("h100-sxm-80gb");
  const plan::AxisGroup node{8, 8}, cluster{512, 8};
  auto seconds = [&](Collective kind, const plan::AxisGroup &group,
                     double bytes) {
    return collectiveSeconds(target, kind, group, bytes);
  };
  EXPECT_EQ(seconds(Collective::AllGather, {1, 1}, 1e9), 0);
  // Large messages run at the bandwidth, which is lower between nodes ...
  EXPECT_NEAR(seconds(Collective::AllGather, node, 4e9),
              7.0 / 8 * 4e9 / target.insideNode.bytesPerSecond, 1e-4);
  EXPECT_GE(seconds(Collective::AllGather, cluster, 4e9),
            511.0 / 512 * 4e9 /
                std::min(8 * target.betweenNodes.bytesPerSecond,
                         target.insideNode.bytesPerSecond));
  // ... and small ones at the latency, where the short protocol wins.
  Target simple = target;
  simple.insideNode.shortMessages = simple.betweenNodes.shortMessages = {};
  EXPECT_LT(seconds(Collective::AllGather, cluster, 1e5),
            0.6 *
                collectiveSeconds(simple, Collective::AllGather, cluster, 1e5));
  EXPECT_EQ(seconds(Collective::AllGather, node, 4e9),
            collectiveSeconds(simple, Collective::AllGather, node, 4e9));
  // Trees reduce over many nodes in logarithmic time.
  Target rings = simple;
  rings.insideNode.treeHopSeconds = 0;
  rings.insideNode.switchReduction = {};
  EXPECT_LT(collectiveSeconds(simple, Collective::AllReduce, cluster, 64),
            0.2 * collectiveSeconds(rings, Collective::AllReduce, cluster, 64));
  // By rings an all-reduce moves everything twice.
  simple.insideNode.switchReduction = {};
  EXPECT_NEAR(collectiveSeconds(simple, Collective::AllReduce, node, 4e9) /
                  seconds(Collective::ReduceScatter, node, 4e9),
              2, 0.01);
}

TEST(Cost, HostCopies) {
  Target target;
  EXPECT_TRUE(std::isinf(hostCopySeconds(target, 1)));
  target.host = {1e9, 1e-5, 0, 0};
  EXPECT_DOUBLE_EQ(hostCopySeconds(target, 1e6), 1e-5 + 1e-3);
}

/// y = x + x beside a sum of x over tp: the two overlap where the sum is
/// started, but for what the target cannot hide.
TEST(Cost, OperatorsRunBesideStartedExchanges) {
  Target target = loaded("h100-sxm-80gb");
  target.overlap = 0.75;
  Mesh mesh;
  mesh.axes = {{"tp", 8}};
  Function function;
  for (int i = 0; i < 3; ++i)
    function.slots.push_back({DType::BF16, {4096, 4096}, i});
  Arg none, axis;
  none.kind = Arg::Kind::Int;
  axis.kind = Arg::Kind::Text;
  axis.text = "tp";
  auto add = [&](const char *op, std::vector<Arg> args,
                 std::vector<int> results) {
    Instruction &instruction = function.instructions.emplace_back();
    instruction.op = op;
    instruction.args = std::move(args);
    instruction.results = std::move(results);
  };
  add("sharding::all_reduce", {tensorArg(0), none, axis}, {1});
  add("aten::add.Tensor", {tensorArg(0), tensorArg(0)}, {2});
  function.instructions[1].movedBytes = 3.0 * 2 * 4096 * 4096;
  const double sum =
      exchangeSeconds(function, function.instructions[0], mesh, 8, target);
  const double own = opSeconds(function, function.instructions[1], target);
  ASSERT_GT(sum, own);
  FunctionTime time = functionTime(function, mesh, 8, target);
  EXPECT_EQ(time.computeSeconds, own);
  EXPECT_EQ(time.exchangeSeconds, sum);

  function.instructions[0].op += ".start";
  add("sharding::await", {tensorArg(1)}, {});
  time = functionTime(function, mesh, 8, target);
  EXPECT_EQ(time.computeSeconds, own);
  EXPECT_NEAR(time.exchangeSeconds, std::max(sum / 4, sum - own), 1e-12);
  // Awaited at once it takes what it takes.
  std::swap(function.instructions[1], function.instructions[2]);
  EXPECT_NEAR(functionTime(function, mesh, 8, target).exchangeSeconds, sum,
              1e-12);
  // One that is not started waits for the wire.
  std::swap(function.instructions[1], function.instructions[2]);
  function.instructions.insert(function.instructions.begin() + 1,
                               function.instructions[0]);
  function.instructions[1].op = "sharding::all_reduce";
  function.instructions[1].results = {2};
  EXPECT_NEAR(functionTime(function, mesh, 8, target).exchangeSeconds, 2 * sum,
              1e-12);
}

} // namespace
