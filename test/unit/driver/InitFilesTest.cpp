//===- InitFilesTest.cpp - The files that init starts from ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Init/InitFiles.h"

#include "frontends/Lint/Lint.h"

#include <gtest/gtest.h>

using namespace accel;

namespace {

TEST(InitFiles, PlainFilesAreClean) {
  InitOptions options;
  options.processes = 4;
  for (FrameworkKind executor :
       {FrameworkKind::Fsdp2, FrameworkKind::Ddp, FrameworkKind::Single})
    for (const char *precision : {"bf16", "fp16", "no"}) {
      options.precision = precision;
      options.processes = executor == FrameworkKind::Single ? 1 : 4;
      LoadOptions load;
      load.accelerate.forPlanning = false;
      load.accelerate.texts["a.yaml"] = init::accelerateText(executor, options);
      DiagnosticEngine engine;
      LoadedConfig loaded = loadConfig("a.yaml", load, engine);
      lintConfig("a.yaml", loaded, {}, engine);
      EXPECT_TRUE(engine.all().empty()) << renderText(engine);
    }
}

TEST(InitFiles, FilesOfCpusAskForThem) {
  InitOptions options;
  options.processes = 4;
  const std::string several =
      init::accelerateText(FrameworkKind::Ddp, options, /*onCpu=*/true);
  EXPECT_NE(several.find("distributed_type: MULTI_CPU\nuse_cpu: true\n"),
            std::string::npos);
  EXPECT_NE(init::argumentsText(FrameworkKind::Ddp, options, 8, /*onCpu=*/true)
                .find("use_cpu: true\n"),
            std::string::npos);
  EXPECT_EQ(init::launchCommand(options, /*onCpu=*/true, "a.yaml"),
            "torchrun --nproc-per-node 4 --master-port 29500 --no-python "
            "accelerate launch --config_file a.yaml");
  EXPECT_EQ(init::launchCommand(options, /*onCpu=*/false, "a.yaml"),
            "accelerate launch --config_file a.yaml");
  options.plan.nodes = 2;
  EXPECT_EQ(init::launchCommand(options, /*onCpu=*/true, "a.yaml"),
            "torchrun --nproc-per-node 2 --nnodes 2 --node-rank RANK "
            "--master-addr HOST --master-port 29500 --no-python accelerate "
            "launch --config_file a.yaml --main_process_ip HOST "
            "--main_process_port 29500");
}

// Since transformers 5 fsdp_cpu_ram_efficient_loading keeps no rank from
// reading.
TEST(InitFiles, NoRankAloneReadsTheWeights) {
  EXPECT_NE(init::plainReasons({}, /*onCpu=*/false)
                .at("fsdp_cpu_ram_efficient_loading")
                .find("each rank reads them"),
            std::string::npos);
}

TEST(InitFiles, EveryKeyHasAReasonOnce) {
  EXPECT_EQ(init::commented("# head\na: 1\nsection:\n  b: 'x:y'\nc: 2\n",
                            {{"a", "first"}, {"b", "second"}, {"y'", "no"}}),
            "# head\na: 1  # first\nsection:\n  b: 'x:y'  # second\nc: 2\n");
}

TEST(InitFiles, FsdpRecomputesByItsOwnKey) {
  InitOptions options;
  EXPECT_EQ(init::argumentsText(FrameworkKind::Fsdp2, options, 8)
                .find("checkpointing"),
            std::string::npos);
  EXPECT_NE(init::argumentsText(FrameworkKind::Ddp, options, 8)
                .find("activation_checkpointing: false\n"),
            std::string::npos);
}

} // namespace
