//===- MegatronSecondsTest.cpp - Seconds of a layer under Megatron --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/StepModel/MegatronFused.h"
#include "passes/StepModel/TensorExchanges.h"
#include "runtime/plan/Operands.h"
#include "test/unit/DecidedRows.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::validate;
using plan::Arg;
using plan::DType;

namespace {

/// A layer of the model of 22 B in Korthikanti et al. (arXiv:2205.05198,
/// table 4), on eight A100: milliseconds of its forward and backward. No rate
/// of the target was fitted to them.
TEST(MegatronSeconds, PublishedLayer) {
  RunRow row;
  row.id = "t1";
  row.model = "megatron-22B";
  row.layers = 2;
  row.hidden = 6144;
  row.heads = 64;
  row.ffn = 24576;
  row.gpu = "A100-80GB";
  row.framework = "Megatron-LM";
  row.sharding = "none";
  row.precision = "fp16";
  row.source = "arXiv:2205.05198";
  row.gpus = row.tensorParallel = 8;
  row.sequence = 2048;
  row.microBatch = row.globalBatch = 4;
  const struct {
    const char *checkpointing;
    double forward, backward;
  } published[] = {{"none", 7.7, 11.9},
                   {"full", 7.7, 19.5},
                   {"selective", 7.7, 13.2},
                   {"selective+SP", 7.2, 13.1}};
  for (const auto &layer : published) {
    row.checkpointing = layer.checkpointing;
    const SegmentVariant variant = layerOf(stepOf(row));
    EXPECT_NEAR(variant.forwardSeconds * 1e3 / layer.forward, 1, 0.15)
        << layer.checkpointing;
    EXPECT_NEAR(variant.backwardSeconds * 1e3 / layer.backward, 1, 0.15)
        << layer.checkpointing;
  }
}

/// The backward of a linear layer whose outputs ranks of tp share.
struct Linear {
  static constexpr int64_t rows = 8192, in = 4096, out = 1024, ranks = 8;
  SegmentGraph graph;
  Target target = *shipped("a100-80gb");

  int slot(std::vector<int64_t> shape) {
    const int at = static_cast<int>(graph.function.slots.size());
    graph.function.slots.push_back({DType::BF16, std::move(shape), at});
    return at;
  }
  void add(const char *op, std::vector<int> operands, int result,
           std::vector<Arg> more = {}) {
    plan::Instruction instruction;
    instruction.op = op;
    for (int operand : operands)
      instruction.args.push_back(plan::tensorArg(operand));
    instruction.args.insert(instruction.args.end(), more.begin(), more.end());
    instruction.results = {result};
    for (int operand : operands)
      instruction.movedBytes +=
          plan::movedBytesOf(graph.function.slots[operand]);
    if (std::string_view(op) == "aten::mm")
      instruction.flops = 2.0 * rows * in * out;
    graph.function.instructions.push_back(std::move(instruction));
    graph.forward.push_back(false);
    graph.view.push_back(false);
  }
  static std::vector<Arg> axes(std::vector<int64_t> numbers) {
    std::vector<Arg> args;
    for (int64_t number : numbers) {
      args.emplace_back();
      args.back().kind = Arg::Kind::Int;
      args.back().intValue = number;
    }
    args.emplace_back();
    args.back().kind = Arg::Kind::Text;
    args.back().text = "tp";
    return args;
  }
  Linear() {
    graph.mesh.resize("tp", ranks);
    graph.ranksPerNode = ranks;
  }
  double alone(int i) const {
    return exchangeSeconds(graph.function, graph.function.instructions[i],
                           graph.mesh, graph.ranksPerNode, target);
  }
  double seconds(int i) const {
    return opSeconds(graph.function, graph.function.instructions[i], target);
  }
};

TEST(MegatronSeconds, GradientsAreSummedBesideTheWeights) {
  Linear job;
  const int gradient = job.slot({Linear::rows, Linear::out}),
            weight = job.slot({Linear::out, Linear::in}),
            input = job.slot({Linear::rows, Linear::in}),
            own = job.slot({Linear::rows, Linear::in}),
            sum = job.slot({Linear::rows, Linear::in}),
            weights = job.slot({Linear::out, Linear::in});
  job.graph.function.params = {weight};
  job.add("aten::mm", {gradient, weight}, own);
  job.add("sharding::all_reduce", {own}, sum, Linear::axes({0}));
  job.add("aten::mm", {gradient, input}, weights);
  const double all = job.alone(1), matmul = job.seconds(2);
  ASSERT_GT(all, 0);
  overlapTensor(job.graph, TensorOverlap::WeightGradients, job.target);
  EXPECT_NEAR(job.graph.waits[1],
              all - std::min(all, matmul) * job.target.overlap, 1e-12);
  // In the forward whoever reads the sum waits.
  job.graph.waits.clear();
  job.graph.forward = {true, true, true};
  overlapTensor(job.graph, TensorOverlap::WeightGradients, job.target);
  EXPECT_NEAR(job.graph.waits[1], all, 1e-12);
}

TEST(MegatronSeconds, InputsAreGatheredBesideTheGradient) {
  Linear job;
  const int64_t part = Linear::rows / Linear::ranks;
  const int gradient = job.slot({Linear::rows, Linear::out}),
            weight = job.slot({Linear::out, Linear::in}),
            input = job.slot({part, Linear::in}),
            whole = job.slot({Linear::rows, Linear::in}),
            own = job.slot({Linear::rows, Linear::in}),
            sum = job.slot({part, Linear::in}),
            weights = job.slot({Linear::out, Linear::in});
  job.graph.function.params = {weight};
  job.add("sharding::all_gather", {input}, whole, Linear::axes({0, 1, 0}));
  job.add("aten::mm", {gradient, weight}, own);
  job.add("sharding::reduce_scatter", {own}, sum, Linear::axes({0, 1, 0}));
  job.add("aten::mm", {gradient, whole}, weights);
  const double gather = job.alone(0), scatter = job.alone(2),
               ofInput = job.seconds(1), ofWeight = job.seconds(3);
  ASSERT_GT(gather, 0);
  overlapTensor(job.graph, TensorOverlap::WeightGradients, job.target);
  EXPECT_NEAR(job.graph.waits[0],
              gather - std::min(gather, ofInput) * job.target.overlap, 1e-12);
  EXPECT_NEAR(job.graph.waits[2],
              scatter - std::min(scatter, ofWeight) * job.target.overlap,
              1e-12);
}

/// A layer whose inputs ranks share gathers its output's gradient, which both
/// matmuls read: nothing runs beside it.
TEST(MegatronSeconds, AGatheredGradientIsWaitedFor) {
  Linear job;
  const int64_t part = Linear::rows / Linear::ranks;
  const int gradient = job.slot({part, Linear::out}),
            whole = job.slot({Linear::rows, Linear::out}),
            weight = job.slot({Linear::out, Linear::in}),
            input = job.slot({Linear::rows, Linear::in}),
            own = job.slot({Linear::rows, Linear::in}),
            weights = job.slot({Linear::out, Linear::in});
  job.graph.function.params = {weight};
  job.add("sharding::all_gather", {gradient}, whole, Linear::axes({0, 1, 0}));
  job.add("aten::mm", {whole, weight}, own);
  job.add("aten::mm", {whole, input}, weights);
  const double gather = job.alone(0);
  overlapTensor(job.graph, TensorOverlap::WeightGradients, job.target);
  EXPECT_NEAR(job.graph.waits[0], gather, 1e-12);
}

/// Dropout's result has a reader in the sum alone, or one more.
TEST(MegatronSeconds, DropoutAndSumAreOneKernel) {
  for (const bool readTwice : {false, true}) {
    Linear job;
    const int value = job.slot({Linear::rows, Linear::in}),
              residual = job.slot({Linear::rows, Linear::in}),
              dropped = job.slot({Linear::rows, Linear::in}),
              sum = job.slot({Linear::rows, Linear::in}),
              other = job.slot({Linear::rows, Linear::in});
    job.add("aten::native_dropout", {value}, dropped);
    job.add("aten::add.Tensor", {dropped, residual}, sum);
    if (readTwice)
      job.add("aten::gelu", {dropped}, other);
    job.graph.forward.assign(job.graph.forward.size(), true);
    const double bytes = plan::movedBytesOf(job.graph.function.slots[dropped]);
    auto moved = [&](int i) {
      return job.graph.function.instructions[i].movedBytes;
    };
    const double dropout = moved(0), added = moved(1);
    fuseDropoutSums(job.graph);
    EXPECT_EQ(moved(0), dropout - (readTwice ? 0 : bytes));
    EXPECT_EQ(moved(1), added - (readTwice ? 0 : bytes));
  }
}

} // namespace
