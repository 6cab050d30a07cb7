//===- AccelRunStepTest.cpp - The accel-run model against its plans -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The executor model of accel-run holds at its peak what the byte-exact
// timeline of the compiled plan holds.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "passes/Export/BuildPlan.h"
#include "passes/FrameworkSteps/BuildStepModel.h"
#include "passes/FrameworkSteps/DecidedCandidate.h"
#include "passes/Pipeline/Import.h"
#include "passes/Pipeline/Phases.h"
#include "runtime/plan/Optimizers.h"
#include "runtime/plan/Timeline.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <fstream>

using namespace accel;

namespace {

struct Case {
  const char *name;
  std::string device = "cuda";
  int ranks = 2, replicas = 1;
  std::string precision = "bf16";
  bool reshard = true, checkpoint = false;
  int64_t accumulation = 1, prefetch = 1;
  int64_t backwardPrefetch = -1; // -1: as the forward
  bool keepUnsharded = false, clip = false, tied = false;
  const char *hook = nullptr; // DDP's; then nothing is sharded
  /// Every rank holds all parameters between steps.
  bool whole = false;
  /// Each layer is checkpointed in another way, solved ones among them.
  bool solved = false;
  std::string trainable = {}; // regex; empty: all
  std::optional<int64_t> lossChunks;
  const char *optimizer = "adamw";
  /// States wait on a drive, with so many buffers; shards on the host.
  int64_t buffers = 0;
  bool parametersOnHost = false;
  std::optional<int64_t> await = {}; // reductions
  std::optional<int64_t> hold = {};  // gathers
  int64_t backward() const {
    return backwardPrefetch < 0 ? prefetch : backwardPrefetch;
  }
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

huggingface::LlamaConfig config(bool tied) {
  huggingface::LlamaConfig c;
  c.vocabSize = 1000;
  c.hiddenSize = 64;
  c.intermediateSize = 172;
  c.layers = 5;
  c.heads = 4;
  c.keyValueHeads = 2;
  c.headDim = 16;
  c.maxPositions = 256;
  c.tieWordEmbeddings = tied;
  return c;
}

/// Another solved way for each layer but the first, which keeps all; the same
/// in the module's request.
void chooseWays(const StepModel &model, Candidate &candidate,
                mlir::ModuleOp module) {
  mlir::Builder b(module.getContext());
  llvm::SmallVector<mlir::NamedAttribute> calls;
  size_t next = 0;
  for (size_t c = 0; c < model.calls.size(); ++c) {
    if (!model.calls[c].layer)
      continue;
    const auto &variants = model.kinds[model.calls[c].kind].variants;
    std::vector<int> solved;
    for (size_t v = 0; v < variants.size(); ++v)
      if (variants[v].solved)
        solved.push_back(static_cast<int>(v));
    ASSERT_GE(solved.size(), 3u) << "too few ways to tell";
    const int v = next == 0 ? 0 : solved[next % solved.size()];
    ++next;
    candidate.variants[c] = v;
    calls.push_back(b.getNamedAttr(
        model.calls[c].path,
        v == 0 ? mlir::Attribute(b.getStringAttr("none"))
               : mlir::Attribute(b.getDenseI64ArrayAttr(variants[v].keeps))));
  }
  auto request = sharding::findRequest(module, "checkpoint");
  ASSERT_TRUE(request);
  mlir::NamedAttrList value(request.getValue());
  value.set("calls", b.getDictionaryAttr(calls));
  request.setValueAttr(value.getDictionary(module.getContext()));
}

class AccelRunStep : public testing::TestWithParam<Case> {};

TEST_P(AccelRunStep, PeakIsTheTimelines) {
  const Case &c = GetParam();
  const std::string path =
      testing::TempDir() + "accel-run-step-" + c.name + ".yaml";
  std::ofstream(path) << "distributed_type: FSDP\nmixed_precision: '"
                      << c.precision
                      << "'\nnum_machines: 1\nnum_processes: " << c.ranks
                      << "\nfsdp_config:\n  fsdp_version: 2\n"
                         "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                         "  fsdp_reshard_after_forward: "
                      << (c.reshard ? "true" : "false")
                      << "\n  fsdp_activation_checkpointing: "
                      << (c.checkpoint ? "true" : "false") << "\n";
  if (c.replicas > 1)
    std::ofstream(path, std::ios::app)
        << "parallelism_config:\n  parallelism_config_dp_replicate_size: "
        << c.replicas
        << "\n  parallelism_config_dp_shard_size: " << c.ranks / c.replicas
        << "\n";
  if (c.hook) {
    std::ofstream(path) << "distributed_type: MULTI_GPU\nmixed_precision: '"
                        << c.precision << "'\nnum_processes: " << c.ranks
                        << "\n";
  }
  DiagnosticEngine engine;
  LoadOptions load;
  load.modelRequired = false;
  LoadedConfig loaded = loadConfig(path, load, engine);
  ASSERT_TRUE(loaded.job) << renderText(engine);
  JobConfig &job = *loaded.job;
  job.accumulation.value = c.accumulation;
  job.optimizer.setDefaults(*plan::findOptimizer(c.optimizer));
  job.optimizer.maxGradNorm.value = c.clip ? 1.0 : 0.0;
  job.trainable.value = c.trainable;
  job.wholeParameters.value = c.whole;
  job.accelerate.offloadParams.value = c.parametersOnHost;
  if (c.buffers > 0) {
    job.offloadStates.value = true;
    job.disk.folder.value = "/nvme";
    job.disk.buffers.value = c.buffers;
  }

  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = huggingface::buildModel(
      context, huggingface::ModelConfig{config(c.tied)}, {2, 64}, engine);
  ASSERT_TRUE(succeeded(module)) << renderText(engine);
  ImportOptions import;
  import.modelName = "model";
  import.device = c.device;
  import.microBatch = 2;
  import.sequenceLength = 64;
  import.accumulation = c.accumulation;
  if (c.hook)
    import.ddp.commHook = c.hook;
  if (c.keepUnsharded)
    import.keepUnsharded = true;
  import.prefetchForward = c.prefetch;
  import.prefetchBackward = c.backward();
  import.awaitReductions = c.await;
  import.holdGathers = c.hold;
  if (c.lossChunks)
    import.lossChunks = LossChunks{c.lossChunks};
  plan::Job training;
  training.optimizer.name = c.optimizer;
  training.optimizer.groups.push_back({});
  training.optimizer.maxGradNorm = c.clip ? 1.0 : 0.0;
  training.vocab = 1000;
  training.microBatch = 2;
  training.sequenceLength = 64;
  ASSERT_TRUE(succeeded(importJob(**module, job, training, import, engine)));

  auto target = loadTarget(c.device == "cpu" ? "cpu" : "h100-sxm-80gb", engine);
  ASSERT_TRUE(target) << renderText(engine);
  StepModelOptions options;
  options.target = &*target;
  SavedSetCache ways(c.solved ? 8 : 0);
  options.solved = &ways;
  mlir::OwningOpRef<mlir::ModuleOp> lowered = (*module)->clone();
  ASSERT_TRUE(succeeded(runDecisions(**module)));
  ASSERT_TRUE(succeeded(runDifferentiation(**module)));
  auto model = buildStepModel(**module, options);
  ASSERT_TRUE(succeeded(model));
  auto decided = decidedCandidate(**module, *model);
  ASSERT_TRUE(succeeded(decided));
  Candidate candidate = std::move(*decided);
  if (c.solved)
    chooseWays(*model, candidate, *lowered);
  ASSERT_EQ(verifyCandidate(*model, candidate), "");
  StepEvaluator evaluator(*model, *target);
  EvaluateOptions expanded;
  expanded.expanded = true;
  const StepPrediction got = evaluator.evaluate(candidate, expanded);
  const StepPrediction folded = evaluator.evaluate(candidate);
  EXPECT_EQ(folded.peakBytes, got.peakBytes);
  EXPECT_EQ(folded.stepSeconds, got.stepSeconds);

  ASSERT_TRUE(succeeded(runPhases(*lowered, Phase::Model, Phase::Scheduled)));
  plan::Plan plan;
  ASSERT_TRUE(succeeded(buildPlan(*lowered, plan)));
  // What the module records is what the plan's timeline counts.
  const std::vector<plan::Program> recorded = plan.programs;
  plan::predictMemory(plan);
  for (size_t p = 0; p < recorded.size(); ++p) {
    EXPECT_EQ(recorded[p].peakBytes, plan.programs[p].peakBytes);
    EXPECT_EQ(recorded[p].peakInstruction, plan.programs[p].peakInstruction);
  }
  EXPECT_EQ(got.persistentBytes, plan.predicted.persistentBytes);
  EXPECT_EQ(got.hostBytes, plan.predicted.hostBytes);
  EXPECT_EQ(got.diskBytes, plan.predicted.diskBytes);
  // A loss in pieces is made by the head's backward; the model holds it from
  // the end of the forward on.
  const bool made = got.peakWhere.starts_with("backward of model.layers.");
  const int64_t loss = c.lossChunks && !made ? plan::alignmentBytes : 0;
  EXPECT_EQ(got.peakBytes - loss, plan.predicted.peakBytes)
      << got.peakWhere << " against " << plan.predicted.peakWhere;
  EXPECT_EQ(got.endBytes, got.persistentBytes);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AccelRunStep,
    testing::Values(
        Case{.name = "plain"}, Case{.name = "keep", .reshard = false},
        Case{.name = "checkpoint", .checkpoint = true},
        Case{.name = "f32", .precision = "no"},
        Case{.name = "cpu", .device = "cpu"},
        Case{.name = "cpu_f32", .device = "cpu", .precision = "no"},
        Case{.name = "ranks4", .ranks = 4, .checkpoint = true},
        Case{.name = "hybrid", .ranks = 4, .replicas = 2},
        Case{.name = "hook", .precision = "no", .hook = "fp16"},
        Case{.name = "hook_accumulation_clip",
             .device = "cpu",
             .precision = "no",
             .accumulation = 2,
             .clip = true,
             .hook = "bf16"},
        Case{.name = "whole", .whole = true},
        Case{.name = "whole_clip", .clip = true, .whole = true},
        Case{.name = "whole_tied_accumulation",
             .device = "cpu",
             .precision = "no",
             .accumulation = 3,
             .tied = true,
             .whole = true},
        Case{.name = "whole_unsharded",
             .checkpoint = true,
             .accumulation = 2,
             .keepUnsharded = true,
             .whole = true},
        Case{.name = "hybrid_checkpoint",
             .ranks = 8,
             .replicas = 2,
             .checkpoint = true},
        Case{.name = "hybrid_f32",
             .ranks = 4,
             .replicas = 2,
             .precision = "no",
             .clip = true},
        Case{.name = "hybrid_accumulate",
             .ranks = 4,
             .replicas = 2,
             .accumulation = 3},
        Case{.name = "one_rank", .ranks = 1, .precision = "no"},
        Case{.name = "one_rank_bf16", .ranks = 1},
        Case{.name = "no_prefetch", .prefetch = 0},
        Case{.name = "prefetch2", .prefetch = 2},
        Case{.name = "prefetch3_checkpoint", .checkpoint = true, .prefetch = 3},
        Case{.name = "prefetch2_keep", .reshard = false, .prefetch = 2},
        Case{.name = "accumulate", .accumulation = 3},
        Case{.name = "accumulate_unsharded",
             .accumulation = 4,
             .keepUnsharded = true},
        Case{.name = "clip", .clip = true},
        Case{.name = "clip_accumulate", .accumulation = 2, .clip = true},
        Case{.name = "solved", .solved = true},
        Case{.name = "solved_cpu_f32",
             .device = "cpu",
             .precision = "no",
             .solved = true},
        Case{.name = "prefetch_forward", .prefetch = 2, .backwardPrefetch = 0},
        Case{.name = "prefetch_backward",
             .checkpoint = true,
             .prefetch = 0,
             .backwardPrefetch = 2},
        Case{.name = "frozen", .trainable = "layers.1|layers.3.mlp|norm"},
        Case{.name = "frozen_keep",
             .device = "cpu",
             .reshard = false,
             .trainable = "layers.1|norm"},
        Case{.name = "frozen_f32",
             .device = "cpu",
             .precision = "no",
             .accumulation = 2,
             .clip = true,
             .tied = true,
             .trainable = "layers.1|norm"},
        Case{.name = "frozen_head",
             .accumulation = 3,
             .clip = true,
             .trainable = "self_attn.q_proj"},
        Case{.name = "frozen_hybrid",
             .ranks = 4,
             .replicas = 2,
             .prefetch = 2,
             .trainable = "layers.[02]"},
        Case{.name = "chunks", .lossChunks = 4},
        Case{.name = "chunks_keep",
             .reshard = false,
             .prefetch = 3,
             .clip = true,
             .lossChunks = 4},
        Case{.name = "chunks_tied",
             .prefetch = 2,
             .tied = true,
             .lossChunks = 4},
        Case{.name = "await_one", .await = 1},
        Case{.name = "await_two_cpu",
             .device = "cpu",
             .precision = "no",
             .clip = true,
             .await = 2},
        Case{.name = "await_accumulation",
             .device = "cpu",
             .accumulation = 3,
             .await = 3},
        Case{.name = "await_all_hybrid",
             .ranks = 4,
             .replicas = 2,
             .checkpoint = true,
             .await = 100},
        Case{.name = "await_unsharded",
             .accumulation = 2,
             .keepUnsharded = true,
             .await = 1},
        Case{.name = "hold_one", .hold = 1},
        Case{.name = "hold_two_cpu",
             .device = "cpu",
             .precision = "no",
             .clip = true,
             .await = 1,
             .hold = 2},
        Case{.name = "hold_accumulation_ahead",
             .device = "cpu",
             .accumulation = 3,
             .prefetch = 3,
             .hold = 2},
        Case{.name = "hold_all_hybrid",
             .ranks = 4,
             .replicas = 2,
             .checkpoint = true,
             .hold = 100},
        Case{.name = "hold_tied", .prefetch = 2, .tied = true, .hold = 1},
        Case{.name = "hold_pieces",
             .device = "cpu",
             .precision = "no",
             .lossChunks = 4,
             .hold = 100},
        Case{.name = "await_hook",
             .device = "cpu",
             .precision = "no",
             .hook = "bf16",
             .await = 1},
        Case{.name = "adafactor", .optimizer = "adafactor"},
        Case{.name = "adafactor_frozen",
             .device = "cpu",
             .precision = "no",
             .clip = true,
             .trainable = "layers.1|norm",
             .optimizer = "adafactor"},
        Case{.name = "muon", .optimizer = "muon"},
        Case{.name = "muon_one_rank",
             .ranks = 1,
             .checkpoint = true,
             .clip = true,
             .optimizer = "muon"},
        Case{.name = "muon_hybrid",
             .device = "cpu",
             .ranks = 6,
             .replicas = 2,
             .precision = "no",
             .checkpoint = true,
             .optimizer = "muon"},
        Case{.name = "host", .clip = true, .parametersOnHost = true},
        Case{.name = "drive", .clip = true, .buffers = 3},
        Case{.name = "drive_f32_host",
             .precision = "no",
             .buffers = 5,
             .parametersOnHost = true},
        Case{.name = "drive_frozen_host",
             .accumulation = 2,
             .trainable = "layers.1|norm",
             .buffers = 9,
             .parametersOnHost = true},
        Case{.name = "tied", .tied = true},
        Case{.name = "tied_checkpoint", .checkpoint = true, .tied = true}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
