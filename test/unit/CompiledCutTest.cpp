//===- CompiledCutTest.cpp - What torch.compile's partitioner saves -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/CompiledCut.h"

#include <gtest/gtest.h>
#include <random>

using namespace accel;

namespace {

/// Values of a forward, each of which reads earlier ones, and of a backward.
CutProblem randomProblem(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  CutProblem problem;
  const size_t inputs = 1 + below(2), forward = 4 + below(6);
  const size_t count = inputs + forward + 2 + below(3);
  for (size_t v = 0; v < count; ++v) {
    CutProblem::Value value;
    value.weight = 1 + static_cast<int64_t>(below(50));
    value.backward = v >= inputs + forward;
    value.banned = v < inputs || (!value.backward && below(4) == 0);
    if (!value.backward && v >= inputs && below(6) == 0)
      value.weight = -1; // an operator of two results
    problem.values.push_back(value);
    // Each value of a tuple can be saved, so that there is always a cut.
    for (size_t reads = 1 + below(3); v >= inputs && reads-- > 0;) {
      auto &readers = problem.values[below(v)].readers;
      readers.push_back(static_cast<int>(v));
    }
  }
  for (size_t v = 0; v < inputs + forward; ++v)
    if (problem.values[v].weight < 0)
      for (int reader : problem.values[v].readers)
        if (problem.values[reader].backward) {
          problem.values[v].weight = 60;
          break;
        }
  return problem;
}

constexpr int64_t none = -1;

int64_t leastByEnumeration(const CutProblem &problem) {
  std::vector<size_t> choices;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (!problem.values[v].backward && problem.values[v].weight >= 0)
      choices.push_back(v);
  int64_t least = none;
  for (size_t set = 0; set < size_t(1) << choices.size(); ++set) {
    Cut cut(problem.values.size(), false);
    for (size_t k = 0; k < choices.size(); ++k)
      cut[choices[k]] = set >> k & 1;
    const int64_t weight = cutWeight(problem, cut);
    if ((least == none || weight < least) && verifyCut(problem, cut).empty())
      least = weight;
  }
  return least;
}

TEST(CompiledCut, isTheLeastOfAllValidOnes) {
  int solved = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const CutProblem problem = randomProblem(seed);
    const int64_t least = leastByEnumeration(problem);
    if (least == none)
      continue; // a tuple that may not be repeated, and cannot be saved
    const Cut cut = solveCut(problem);
    EXPECT_EQ(verifyCut(problem, cut), "") << "seed " << seed;
    EXPECT_EQ(cutWeight(problem, cut), least) << "seed " << seed;
    ++solved;
  }
  EXPECT_GT(solved, 150);
}

TEST(CompiledCut, verifierNamesWhatIsWrong) {
  CutProblem problem;
  problem.values.resize(3); // an input, its exponential, the backward
  problem.values[0].weight = problem.values[1].weight = 8;
  problem.values[0].banned = true;
  problem.values[0].readers = {1};
  problem.values[1].readers = {2};
  problem.values[2].backward = true;
  EXPECT_EQ(verifyCut(problem, {false, false, false}),
            "value 0 would be repeated");
  EXPECT_EQ(verifyCut(problem, {true, true, false}),
            "value 0 is saved for nobody");
  EXPECT_EQ(verifyCut(problem, {true, false, true}),
            "value 2 is made by the backward");
  EXPECT_EQ(verifyCut(problem, {true, false, false}), "");
  problem.values[0].weight = -1;
  EXPECT_EQ(verifyCut(problem, {true, false, false}),
            "value 0 cannot be saved");
}

TEST(CompiledCut, kindsOfOperators) {
  EXPECT_EQ(compiledOp("aten::t", true), CompiledOp::View);
  EXPECT_EQ(compiledOp("aten::mul.Tensor", false), CompiledOp::Repeatable);
  EXPECT_EQ(compiledOp("aten::mean.dim", false), CompiledOp::Repeatable);
  EXPECT_EQ(compiledOp("aten::rand", false), CompiledOp::Random);
  EXPECT_EQ(compiledOp("aten::cat", false), CompiledOp::Gather);
  EXPECT_EQ(compiledOp("aten::mm", false), CompiledOp::Whole);
  EXPECT_EQ(compiledOp("aten::_scaled_dot_product_flash_attention", false),
            CompiledOp::Whole);
  EXPECT_EQ(compiledOp("bitsandbytes::dequantize_4bit", false),
            CompiledOp::Whole);
}

/// x -> exp -> the output; the backward multiplies the gradient with exp(x).
TEST(CompiledCut, aPointwiseChainIsRepeatedFromItsInput) {
  SegmentGraph graph;
  plan::Function &f = graph.function;
  auto slot = [&](plan::DType type) {
    const int index = static_cast<int>(f.slots.size());
    f.slots.push_back({type, {64}, index});
    return index;
  };
  auto op = [&](const char *name, std::vector<int> reads, bool forward,
                plan::DType type = plan::DType::F32) {
    plan::Instruction instr;
    instr.op = name;
    for (int read : reads) {
      plan::Arg arg;
      arg.kind = plan::Arg::Kind::Tensor;
      arg.slot = read;
      instr.args.push_back(arg);
    }
    instr.results = {slot(type)};
    f.instructions.push_back(instr);
    graph.forward.push_back(forward);
    graph.view.push_back(false);
    return instr.results[0];
  };
  const int x = slot(plan::DType::BF16);
  const int wide = op("aten::_to_copy", {x}, true);
  const int y = op("aten::exp", {wide}, true);
  const int tangent = slot(plan::DType::F32);
  const int gradient = op("aten::mul.Tensor", {tangent, y}, false);
  f.inputs = {x, tangent};
  graph.inputs = 1;
  f.outputs = {y, gradient};
  graph.outputs = graph.inputGradients = 1;
  EXPECT_EQ(compiledSaves(graph), std::vector<int>{x});
}

} // namespace
