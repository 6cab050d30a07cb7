//===- TargetsTest.cpp - Target files -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Targets/Target.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace accel;

namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Targets, ShippedOnesAreReadableAndHaveSources) {
  EXPECT_EQ(targetNames(), (std::vector<std::string>{"a100-40gb",
                                                     "a100-80gb",
                                                     "a10g",
                                                     "a40",
                                                     "a5000",
                                                     "a6000",
                                                     "a800-80gb",
                                                     "b200",
                                                     "b300",
                                                     "cpu",
                                                     "gb200",
                                                     "gb300",
                                                     "h100-pcie-80gb",
                                                     "h100-sxm-80gb",
                                                     "h100-sxm-96gb",
                                                     "h20",
                                                     "h200",
                                                     "h800-80gb",
                                                     "l4",
                                                     "l40s",
                                                     "mi300x",
                                                     "mi355x",
                                                     "rtx3090",
                                                     "rtx4090",
                                                     "rtx6000-ada"}));
  for (const std::string &name : targetNames()) {
    DiagnosticEngine engine;
    std::optional<Target> target = loadTarget(name, engine);
    ASSERT_TRUE(target) << renderText(engine);
    EXPECT_TRUE(engine.all().empty()) << renderText(engine);
    EXPECT_EQ(target->name, name);
    EXPECT_LE(target->betweenNodes.bytesPerSecond,
              target->insideNode.bytesPerSecond);
    EXPECT_GE(target->figures.size(), 20u);
    for (const TargetFigure &figure : target->figures) {
      EXPECT_FALSE(figure.value.empty()) << figure.key;
      EXPECT_GE(figure.source.size(), 5u) << figure.key;
    }
  }
}

TEST(Targets, FiguresAreTheFiles) {
  DiagnosticEngine engine;
  std::optional<Target> h100 = loadTarget("h100-sxm-80gb", engine);
  ASSERT_TRUE(h100);
  EXPECT_EQ(h100->kind, TargetKind::Cuda);
  EXPECT_EQ(h100->ranksPerNode, 8);
  EXPECT_EQ(h100->memoryBytes, 84932974182);
  EXPECT_EQ(h100->multiprocessors, 132);
  EXPECT_LT(h100->reductionBytesPerSecond, h100->memoryBytesPerSecond);
  EXPECT_LT(h100->memoryBytesPerSecond, 3.35e12);
  EXPECT_DOUBLE_EQ(h100->peakFlops(plan::DType::BF16), 989.4e12);
  EXPECT_DOUBLE_EQ(h100->flops(plan::DType::BF16),
                   989.4e12 * h100->rate(plan::DType::BF16).matmulEfficiency);
  EXPECT_DOUBLE_EQ(h100->attentionFlops(plan::DType::F16),
                   h100->attentionFlops(plan::DType::BF16));
  EXPECT_DOUBLE_EQ(h100->peakFlops(plan::DType::F32), 66.9e12);
  ASSERT_TRUE(h100->tf32);
  EXPECT_DOUBLE_EQ(h100->tf32->peakFlops, 494.7e12);
  ASSERT_TRUE(h100->fp8);
  EXPECT_GT(h100->fp8->peakFlops, h100->peakFlops(plan::DType::BF16));
  EXPECT_GT(h100->host.bytesPerSecond, 0);
  EXPECT_LT(h100->insideNode.shortMessages.bytesPerSecond,
            h100->insideNode.bytesPerSecond);
  EXPECT_EQ(h100->reduceScatter, "direct");
  std::optional<Target> cpu = loadTarget("cpu", engine);
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->kind, TargetKind::Cpu);
  EXPECT_FALSE(cpu->memoryBytes) << "a file cannot know the machine's RAM";
  EXPECT_DOUBLE_EQ(cpu->memoryBytesPerSecond, 33e9 * 0.75);
  EXPECT_EQ(cpu->reductionBytesPerSecond, 0) << "not stated";
  EXPECT_EQ(cpu->multiprocessors, 0);
  EXPECT_FALSE(cpu->tf32 || cpu->fp8);
  EXPECT_EQ(cpu->host.bytesPerSecond, 0);
  EXPECT_EQ(cpu->reduceScatter, "all_to_all");
  EXPECT_NEAR(cpu->flops(plan::DType::F32), 75e9, 1e9);
  EXPECT_DOUBLE_EQ(cpu->flops(plan::DType::F64), cpu->flops(plan::DType::F32))
      << "the rate of f32 where there is none";
}

TEST(Targets, ReservedBytesAreRoundedUp) {
  Target target;
  target.allocatorOverhead = 0.1;
  target.allocatorGranularity = 512;
  EXPECT_EQ(target.reservedBytes(0), 0);
  EXPECT_EQ(target.reservedBytes(1000), 1536);
  EXPECT_EQ(target.reservedBytes(10240), 11264);
}

TEST(Targets, UnknownNamesListTheShippedOnes) {
  DiagnosticEngine engine;
  EXPECT_FALSE(loadTarget("h100-sxm-80g", engine));
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].code, "unknown-target");
  EXPECT_NE(
      engine.all()[0].message.find("gb300, h100-pcie-80gb, h100-sxm-80gb"),
      std::string::npos);
  EXPECT_EQ(engine.all()[0].hint, "did you mean 'h100-sxm-80gb'?");
}

TEST(Targets, AFileOfOnesOwn) {
  std::string folder = ::testing::TempDir() + "target-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/mine.yaml";
  // Sources are optional in it, memory may be given, and 1e9 is a number.
  std::string text = replaced(*shippedTarget("cpu"), "name: cpu", "name: mine");
  text = replaced(text, "    source: \"c10::gAlignment\"\n", "");
  text =
      replaced(text, "memory:\n", "memory:\n  bytes:\n    value: 8589934592\n");
  text = replaced(text, "bandwidth: 4.0e+9", "bandwidth: 2e9");
  std::ofstream(path) << text;
  DiagnosticEngine engine;
  std::optional<Target> target = loadTarget(path, engine);
  ASSERT_TRUE(target) << renderText(engine);
  EXPECT_EQ(target->name, "mine");
  EXPECT_EQ(target->memoryBytes, int64_t(8) << 30);
  EXPECT_DOUBLE_EQ(target->insideNode.bytesPerSecond, 2e9);
  EXPECT_FALSE(loadTarget(folder + "/absent.yaml", engine));
  EXPECT_TRUE(engine.hasErrors());
  std::filesystem::remove_all(folder);
}

TEST(Targets, OptionalFiguresAreRead) {
  std::string text = *shippedTarget("cpu");
  text = replaced(text, "  bandwidth_efficiency:",
                  "  reduction_efficiency:\n    value: 0.5\n"
                  "  library_bandwidth_efficiency:\n    value: 0.75\n"
                  "  half_bytes:\n    value: 4096\n  bandwidth_efficiency:");
  text = replaced(text, "compute:\n",
                  "compute:\n  multiprocessors:\n    value: 8\n"
                  "  tf32: {flops: 1e12, matmul_efficiency: 0.5, "
                  "attention_efficiency: 0.25, matmul_half_depth: 32, "
                  "attention_backward_efficiency: 0.125, "
                  "attention_half_length: 100, attention_half_head: 8, "
                  "cudnn_attention_efficiency: 0.75, "
                  "cudnn_attention_backward_efficiency: 0.625, "
                  "cudnn_attention_half_head: 80, "
                  "library_matmul_efficiency: 0.625}\n"
                  "  fp8: {flops: 4e12, matmul_efficiency: 1, "
                  "attention_efficiency: 1}\n");
  text = replaced(text, "overlap:\n",
                  "dispatch_seconds: {value: 1e-5}\n"
                  "host: {bandwidth: 5e9, latency: 1e-5, "
                  "update_bandwidth: 7e9, memory_bytes: 1000}\n"
                  "measured: {operators: {}, overheads: {\"1 rank\": 0.125}, "
                  "moves: {\"adamw f32 1 rank\": 5e-10}}\n"
                  "overlap:\n");
  text = replaced(text, "    hop: 0.1e-3\n",
                  "    hop: 0.1e-3\n    tree_hop: 3e-6\n    short_messages: "
                  "{bandwidth: 6e8, latency: 2e-6, hop: 1e-6}\n");
  DiagnosticEngine engine;
  std::optional<Target> t = parseTarget("t.yaml", text, engine);
  ASSERT_TRUE(t) << renderText(engine);
  EXPECT_DOUBLE_EQ(t->reductionBytesPerSecond, 33e9 * 0.5);
  EXPECT_EQ(t->memoryHalfBytes, 4096);
  EXPECT_EQ(t->multiprocessors, 8);
  EXPECT_EQ(*t->tf32, (ComputeRate{1e12, 0.5, 0.25, 0.125, 32, 100, 8, 0.75,
                                   0.625, 80, 0.625}));
  EXPECT_DOUBLE_EQ(t->libraryBytesPerSecond, 33e9 * 0.75);
  EXPECT_EQ(*t->fp8, (ComputeRate{4e12, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(t->dispatchSeconds, 1e-5);
  EXPECT_EQ(t->measuredOverheads.at("1 rank"), 0.125);
  EXPECT_EQ(t->measuredMoves.at("adamw f32 1 rank"), 5e-10);
  EXPECT_EQ(t->host, (Host{5e9, 1e-5, 7e9, 1000}));
  EXPECT_EQ(t->insideNode.treeHopSeconds, 3e-6);
  EXPECT_EQ(t->insideNode.shortMessages, (ShortMessages{6e8, 2e-6, 1e-6}));
  EXPECT_EQ(t->betweenNodes.shortMessages, ShortMessages());
}

struct Edit {
  const char *name, *from, *to, *code, *key, *message;
  int column;
};

const Edit edits[] = {
    {"UnknownKey", "overlap:", "overlapp:", "unknown-key", "overlapp",
     "unknown key 'overlapp' in a target", 1},
    {"NegativeOverhead", "overlap:\n",
     "measured: {operators: {}, overheads: {x: -1}}\noverlap:\n",
     "invalid-value", "measured.overheads.x",
     "'measured.overheads.x' must be a number from 0 to 1e+06, not -1", 42},
    {"MissingSection", "overlap:", "overlapp:", "missing-key", "overlap",
     "a target needs the key 'overlap'", 1},
    {"MissingKey", "  inter_node:", "  inter-node:", "missing-key",
     "links.inter_node", "'links' needs the key 'inter_node'", 3},
    {"EmptySource", "\"c10::gAlignment\"", "\"\"", "invalid-value",
     "memory.allocator_granularity.source", "must be a text", 13},
    {"NegativeBytes", "value: 60293120", "value: -1", "invalid-value",
     "memory.context_bytes.value", "must be an integer from 0", 12},
    {"HugeBytes", "value: 60293120", "value: 99999999999999999999999",
     "invalid-value", "memory.context_bytes.value", "must be an integer", 12},
    {"NotANumber", "bandwidth: 4.0e+9", "bandwidth: .nan", "invalid-value",
     "links.intra_node.bandwidth", "not .nan", 16},
    {"Text", "matmul_efficiency: 0.73", "matmul_efficiency: fast",
     "invalid-value", "compute.f32.matmul_efficiency",
     "must be a number from 1e-04 to 1", 24},
    {"TooEfficient", "matmul_efficiency: 0.73", "matmul_efficiency: 1.2",
     "invalid-value", "compute.f32.matmul_efficiency", "not 1.2", 24},
    {"List", "matmul_efficiency: 0.73", "matmul_efficiency: [1]",
     "invalid-value", "compute.f32.matmul_efficiency", "must be a number", 24},
    {"Kind", "kind: cpu", "kind: cude", "invalid-value", "kind",
     "'kind' must be 'cpu' or 'cuda', not", 7},
    {"ReduceScatter", "value: all_to_all", "value: ring", "invalid-value",
     "reduce_scatter.value", "'direct' or 'all_to_all'", 10},
    {"PlainFigure",
     "context_bytes:\n    value: 60293120\n    source:", "context_bytes: 3 #",
     "invalid-value", "memory.context_bytes", "must be a mapping", 18},
    {"ShortMessages", "    hop: 0.1e-3\n",
     "    hop: 0.1e-3\n    short_messages: {bandwidth: 1e9}\n", "missing-key",
     "links.intra_node.short_messages.latency", "needs the key 'latency'", 21},
    {"HostKey", "overlap:\n",
     "host: {bandwith: 1e9, latency: 0, bandwidth: 1}\noverlap:\n",
     "unknown-key", "host.bandwith", "unknown key 'bandwith'", 8},
    {"Multiprocessors", "compute:\n",
     "compute:\n  multiprocessors: {value: 0}\n", "invalid-value",
     "compute.multiprocessors.value", "must be an integer from 1", 28},
    {"ContextTakesAll", "  context_bytes:",
     "  bytes:\n    value: 1000\n  context_bytes:", "invalid-value",
     "memory.context_bytes", "leaves nothing", 5},
};

class EditedTarget : public ::testing::TestWithParam<Edit> {};

TEST_P(EditedTarget, IsRefusedWithItsPlace) {
  const Edit &edit = GetParam();
  DiagnosticEngine engine;
  std::string text = replaced(*shippedTarget("cpu"), edit.from, edit.to);
  EXPECT_FALSE(parseTarget("t.yaml", text, engine));
  for (const Diagnostic &diagnostic : engine.all())
    if (diagnostic.key == edit.key && diagnostic.code == edit.code) {
      EXPECT_NE(diagnostic.message.find(edit.message), std::string::npos)
          << diagnostic.message;
      EXPECT_EQ(diagnostic.severity, Severity::Error);
      EXPECT_EQ(diagnostic.file, "t.yaml");
      EXPECT_GT(diagnostic.line, 0);
      EXPECT_EQ(diagnostic.column, edit.column);
      return;
    }
  ADD_FAILURE() << renderText(engine);
}

INSTANTIATE_TEST_SUITE_P(All, EditedTarget, ::testing::ValuesIn(edits),
                         [](const auto &info) { return info.param.name; });

TEST(Targets, OtherDocuments) {
  for (const char *text : {"", "[]", "3", "a: [", "name: x", "memory: {}"}) {
    DiagnosticEngine engine;
    EXPECT_FALSE(parseTarget("t.yaml", text, engine)) << text;
    EXPECT_TRUE(engine.hasErrors()) << text;
  }
}

} // namespace
