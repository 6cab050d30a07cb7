//===- AccelerateTest.cpp - Accelerate files ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/AccelerateConfig.h"

#include <gtest/gtest.h>

using namespace accel;

namespace {

struct Result {
  std::optional<AccelerateConfig> config;
  std::unique_ptr<DiagnosticEngine> engine =
      std::make_unique<DiagnosticEngine>();

  /// "E code line" of each finding, errors and warnings only.
  std::string findings(bool notes = false) const {
    std::string out;
    for (const Diagnostic &d : engine->sorted())
      if (notes || d.severity != Severity::Note)
        out += (out.empty() ? "" : "; ") +
               std::string(1, *toString(d.severity)) + " " + d.code + " " +
               std::to_string(d.line);
    return out;
  }
};

Result read(const std::string &text, bool forPlanning = true) {
  Result result;
  auto document = yaml::parseText("a.yaml", text, *result.engine);
  if (document && document->root())
    result.config = parseAccelerate("a.yaml", *document->root(), "", {},
                                    AccelerateOptions{"1.15.0", forPlanning},
                                    *result.engine);
  return result;
}

/// An FSDP file of 8 processes with these lines in fsdp_config (from line 4).
Result fsdp(const std::string &lines, const std::string &more = "") {
  std::string text = "distributed_type: FSDP\nnum_processes: 8\n"
                     "fsdp_config:\n";
  for (size_t at = 0; at < lines.size();) {
    size_t end = std::min(lines.find('\n', at), lines.size());
    text += "  " + lines.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return read(text + more);
}

const std::string wrap = "auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";

TEST(Accelerate, PlainJobsAreClean) {
  for (const char *type : {"'NO'", "MULTI_GPU", "MULTI_CPU"}) {
    Result r = read(std::string("distributed_type: ") + type +
                    "\nnum_processes: 1\nmixed_precision: bf16\n");
    EXPECT_EQ(r.findings(true), "") << type;
    ASSERT_TRUE(r.config);
  }
  Result r = fsdp("fsdp_version: 2\nfsdp_" + wrap);
  EXPECT_EQ(r.findings(true), "");
  EXPECT_EQ(*r.config->strategy, Strategy::Fsdp2);
}

TEST(Accelerate, ProvenanceOfValues) {
  Result r = fsdp("version: 2\n" + wrap + "offload_params: no\n");
  const AccelerateConfig &c = *r.config;
  EXPECT_TRUE(c.numProcesses.written());
  EXPECT_EQ(c.numProcesses.at.line, 2);
  EXPECT_EQ(c.numProcesses.at.column, 16);
  EXPECT_EQ(c.strategy.key, "fsdp_config.version");
  EXPECT_EQ(c.reshardAfterForward.origin, Origin::Default);
  EXPECT_EQ(c.reshardAfterForward.at.line, 3); // the section
  EXPECT_EQ(c.mesh.origin, Origin::Derived);
  EXPECT_FALSE(*c.offloadParams);
  EXPECT_EQ(c.offloadParams.at.line, 6);
}

TEST(Accelerate, VersionOneShardingStrategies) {
  auto sharding = [](const std::string &value) {
    return fsdp(wrap + "sharding_strategy: " + value + "\n");
  };
  EXPECT_EQ(sharding("FULL_SHARD").config->mesh->size("dp_shard"), 8);
  EXPECT_TRUE(*sharding("full_shard").config->reshardAfterForward);
  EXPECT_FALSE(*sharding("2").config->reshardAfterForward);
  EXPECT_EQ(sharding("NO_SHARD").config->mesh->size("dp_replicate"), 8);
  EXPECT_EQ(sharding("NO_SHARD").config->mesh->size("dp_shard"), 1);
  EXPECT_EQ(sharding("FULL").findings(), "e invalid-value 5");
  EXPECT_EQ(sharding("null").findings(), "e invalid-value 5");
  Result hybrid = fsdp(wrap + "sharding_strategy: HYBRID_SHARD\n",
                       "num_machines: 2\nmain_process_ip: h\n");
  EXPECT_EQ(hybrid.config->mesh->size("dp_shard"), 4);
  EXPECT_EQ(hybrid.config->mesh->size("dp_replicate"), 2);
}

TEST(Accelerate, VersionOneNeverReadsReshardAfterForward) {
  Result r = fsdp(wrap + "fsdp_reshard_after_forward: SHARD_GRAD_OP\n");
  EXPECT_EQ(r.findings(), "w ignored-key 5");
  EXPECT_EQ(*r.config->sharding, Sharding::FullShard);
  EXPECT_EQ(r.engine->all()[0].hint,
            "write fsdp_sharding_strategy: SHARD_GRAD_OP");
  EXPECT_EQ(fsdp(wrap + "fsdp_reshard_after_forward: FULL_SHARD\n").findings(),
            "");
}

TEST(Accelerate, VersionTwoResharding) {
  const std::string two = "fsdp_version: 2\n" + wrap;
  EXPECT_FALSE(
      *fsdp(two + "reshard_after_forward: off\n").config->reshardAfterForward);
  EXPECT_FALSE(
      *fsdp(two + "reshard_after_forward: 'n'\n").config->reshardAfterForward);
  EXPECT_EQ(fsdp(two + "reshard_after_forward: FULL_SHARD\n").findings(),
            "e invalid-value 6");
  EXPECT_EQ(fsdp(two + "reshard_after_forward: null\n").findings(),
            "e yaml-null 6");
  EXPECT_EQ(fsdp(two + "reshard_after_forward: 2\n").findings(),
            "e invalid-value 6");
  EXPECT_EQ(fsdp(two + "sharding_strategy: SHARD_GRAD_OP\n").findings(),
            "w ignored-key 6");
  EXPECT_EQ(fsdp(two + "sharding_strategy: FULL_SHARD\n").findings(true),
            "n ignored-key 6");
}

TEST(Accelerate, WrapClassesKeepAcceleratesSplit) {
  auto classes = [](const std::string &value) {
    return fsdp(wrap + "transformer_layer_cls_to_wrap: " + value + "\n");
  };
  Result good = classes("A,B");
  EXPECT_EQ(good.findings(), "");
  EXPECT_EQ(**good.config->wrapClasses, (std::vector<std::string>{"A", "B"}));
  for (const char *bad : {"A, B", "[A, B]", "''", "'A,'", "' A'"})
    EXPECT_EQ(classes(bad).findings(), "e wrap-class-list 5") << bad;
  EXPECT_EQ(classes("[A, B]").engine->all()[0].hint,
            "write A,B as one string, without blanks");
  EXPECT_FALSE(classes("null").config->wrapClasses->has_value());
  EXPECT_EQ(fsdp("transformer_layer_cls_to_wrap: A\n").findings(),
            "w ignored-key 4");
}

TEST(Accelerate, SizeBasedWrap) {
  auto size = [](const std::string &value) {
    return fsdp("auto_wrap_policy: size_based_wrap\nmin_num_params: " + value +
                "\n");
  };
  EXPECT_EQ(*size("2000").config->minNumParams, 2000);
  EXPECT_EQ(*size("'1_000'").config->minNumParams, 1000);
  EXPECT_EQ(size("1e8").findings(), "e yaml-number 5");
  EXPECT_EQ(size("1.5").findings(), "e invalid-value 5");
  EXPECT_EQ(size("null").findings(), "e yaml-null 5");
  EXPECT_EQ(size("0").findings(), "w wraps-nothing 5");
  EXPECT_EQ(*fsdp("auto_wrap_policy: SIZE_BASED_WRAP\n").config->minNumParams,
            100000000);
}

TEST(Accelerate, CheckpointingNeedsAPolicy) {
  EXPECT_EQ(
      fsdp("fsdp_version: 2\nactivation_checkpointing: true\n").findings(),
      "e checkpointing-no-wrap 5");
  EXPECT_EQ(fsdp("activation_checkpointing: true\n").findings(),
            "w checkpointing-no-wrap 4");
  EXPECT_EQ(fsdp(wrap + "activation_checkpointing_offload: true\n")
                .findings()
                .substr(0, 28),
            "e offload-needs-checkpointin");
}

TEST(Accelerate, LaunchLooksAtYamlValuesThemselves) {
  EXPECT_EQ(fsdp(wrap + "sync_module_states: false\n").findings(),
            "e loading-needs-sync 5");
  EXPECT_EQ(fsdp(wrap + "sync_module_states: false\n"
                        "cpu_ram_efficient_loading: false\n")
                .findings(),
            "");
  // 'false' in quotes is true for launch, and false for the plugin.
  EXPECT_EQ(fsdp(wrap + "sync_module_states: false\n"
                        "cpu_ram_efficient_loading: 'false'\n")
                .findings(),
            "e loading-needs-sync 5");
  EXPECT_EQ(fsdp(wrap + "sync_module_states: 'false'\n").findings(),
            "w loading-needs-sync 5");
}

TEST(Accelerate, NullBooleansFailInEveryRank) {
  EXPECT_EQ(fsdp(wrap + "offload_params: null\n").findings(), "e yaml-null 5");
  EXPECT_EQ(fsdp(wrap + "offload_params:\n").findings(), "e yaml-null 5");
  EXPECT_EQ(fsdp(wrap + "use_orig_params: maybe\n").findings(),
            "e invalid-value 5");
}

TEST(Accelerate, UnknownKeysByLevel) {
  Result top = read("distributed_type: 'NO'\nnum_proceses: 2\n");
  EXPECT_EQ(top.findings(), "e unknown-key 2");
  EXPECT_EQ(top.engine->all()[0].hint, "did you mean 'num_processes'?");
  Result nested = fsdp(wrap + "forward_prefech: true\n");
  EXPECT_EQ(nested.findings(), "w unknown-key 5");
  EXPECT_EQ(nested.engine->all()[0].hint, "did you mean 'forward_prefetch'?");
  EXPECT_EQ(read("distributed_type: 'NO'\nipex_config: {ipex: true}\n")
                .engine->all()[0]
                .message,
            "key 'ipex_config' was removed in accelerate 1.13");
  EXPECT_EQ(read("distributed_type: 'NO'\nfsdp_version: 2\n").findings(),
            "e unknown-key 2");
  EXPECT_EQ(read("distributed_type: 'NO'\n1: 2\n").findings(),
            "e invalid-key 2");
}

TEST(Accelerate, ParallelismNeedsTheWholeNames) {
  Result r = fsdp("fsdp_version: 2\n" + wrap,
                  "parallelism_config:\n  dp_shard_size: 2\n");
  EXPECT_EQ(r.engine->all()[0].hint,
            "write the whole name: parallelism_config_dp_shard_size");
}

Result mesh(const std::string &sizes, const std::string &version = "2") {
  return fsdp("fsdp_version: " + version + "\n" + wrap,
              "parallelism_config: {" + sizes + "}\n");
}
std::string sizes(int replicate, int shard) {
  return "parallelism_config_dp_replicate_size: " + std::to_string(replicate) +
         ", parallelism_config_dp_shard_size: " + std::to_string(shard);
}

TEST(Accelerate, MeshProducts) {
  EXPECT_EQ(mesh(sizes(2, 4)).config->mesh->size("dp_replicate"), 2);
  EXPECT_EQ(mesh(sizes(2, 4)).findings(), "");
  EXPECT_EQ(mesh(sizes(2, 2)).findings(), "e mesh-product 6");
  EXPECT_EQ(mesh(sizes(8, 1)).findings(), "e mesh-no-shard 6");
  EXPECT_EQ(mesh(sizes(8, 1)).engine->all()[0].hint,
            "write dp_shard_size 8 with dp_replicate_size 1");
  EXPECT_EQ(mesh(sizes(1, 1) + ", parallelism_config_tp_size: 8")
                .engine->all()[0]
                .hint,
            "write tp_size 4 with dp_shard_size 2");
  EXPECT_EQ(read("distributed_type: MULTI_GPU\nnum_processes: 8\n"
                 "parallelism_config: {parallelism_config_cp_size: 8}\n")
                .findings(),
            "e cp-needs-fsdp 3");
  // All sizes 1, as the wizard writes them: FSDP takes all ranks.
  EXPECT_EQ(mesh(sizes(1, 1)).findings(), "");
  EXPECT_EQ(mesh(sizes(1, 1)).config->mesh->size("dp_shard"), 8);
  EXPECT_EQ(mesh(sizes(1, 8), "1").findings(), "e mesh-needs-fsdp2 6");
  EXPECT_EQ(mesh(sizes(0, 8)).findings(), "e invalid-value 6");
  EXPECT_NE(mesh("parallelism_config_cp_size: '2'")
                .findings()
                .find("e quoted-number 6"),
            std::string::npos);
  const Result split = mesh(sizes(1, 4) + ", parallelism_config_tp_size: 2");
  EXPECT_EQ(split.findings(), "");
  EXPECT_EQ(split.config->mesh->size("dp_shard"), 4);
  EXPECT_EQ(split.config->mesh->size("tp"), 2);
  const Result context = mesh(sizes(1, 4) + ", parallelism_config_cp_size: 2");
  EXPECT_EQ(context.findings(), "");
  EXPECT_EQ(context.config->mesh->size("cp"), 2);
  EXPECT_EQ(context.config->mesh->ranksPerSample(), 2);
}

TEST(Accelerate, ProcessCounts) {
  auto two = [](const char *count) {
    return read("distributed_type: MULTI_GPU\nnum_processes: " +
                std::string(count) + "\nnum_machines: 2\nmain_process_ip: h\n");
  };
  EXPECT_EQ(two("8").findings(), "");
  Result odd = two("7");
  EXPECT_EQ(odd.findings(), "w process-count 2");
  EXPECT_EQ(*odd.config->numProcesses, 6);
  EXPECT_EQ(two("1").findings(), "e process-count 2");
  EXPECT_EQ(two("'8'").findings(), "e quoted-number 2");
  EXPECT_EQ(two("0").findings(), "e invalid-value 2");
  EXPECT_EQ(two(".nan").findings(), "e invalid-value 2");
  EXPECT_EQ(two("99999999999999999999").findings(), "e invalid-value 2");
  EXPECT_EQ(read("distributed_type: FSDP\n").findings(), "e missing-key 1");
  for (const char *count : {"4", "0", "1.5", "null"})
    EXPECT_EQ(read(std::string("distributed_type: 'NO'\nnum_processes: ") +
                   count + "\n")
                  .findings(),
              "w process-count 2");
  EXPECT_EQ(*read("distributed_type: 'NO'\n").config->numProcesses, 1);
}

TEST(Accelerate, YamlTrapsAtTheTop) {
  EXPECT_EQ(read("distributed_type: NO\nnum_processes: 1\n").findings(),
            "w yaml-boolean 1");
  EXPECT_EQ(read("distributed_type: NO\n").findings(),
            "e missing-key 1; w yaml-boolean 1");
  EXPECT_EQ(read("distributed_type: 'NO'\nmixed_precision: no\n").findings(),
            "e yaml-boolean 2");
  EXPECT_EQ(read("distributed_type: 'NO'\ngpu_ids: 0\n").findings(),
            "e quoted-number 2");
  EXPECT_EQ(read("distributed_type: MULTI_GPU\nnum_processes: 2\n"
                 "main_process_port: '29501'\n")
                .findings(),
            "e quoted-number 3");
  EXPECT_EQ(read("distributed_type: fsdp\nnum_processes: 2\n").findings(),
            "e invalid-value 1");
}

TEST(Accelerate, GpuIds) {
  auto ids = [](const char *text) {
    return read("distributed_type: MULTI_GPU\nnum_processes: 4\ngpu_ids: '" +
                std::string(text) + "'\n")
        .findings();
  };
  EXPECT_EQ(ids("all"), "");
  EXPECT_EQ(ids("0,1,2,3"), "");
  EXPECT_EQ(ids("3"), "e gpu-ids 3");
  EXPECT_EQ(ids("0,1"), "e gpu-ids 3");
  EXPECT_EQ(ids("0,1,2,3,4"), "w gpu-ids 3");
}

TEST(Accelerate, IgnoredTopLevelKeys) {
  EXPECT_EQ(read("distributed_type: MULTI_GPU\nnum_processes: 2\n"
                 "rdzv_backend: c10d\nsame_network: true\n"
                 "downcast_bf16: 'no'\ntpu_use_sudo: false\n")
                .findings(),
            "");
  EXPECT_EQ(read("distributed_type: MULTI_GPU\nnum_processes: 2\n"
                 "enable_cpu_affinity: true\nuse_cpu: true\n")
                .findings(),
            "w ignored-key 3; w ignored-key 4");
  EXPECT_TRUE(*read("distributed_type: 'NO'\nuse_cpu: true\n").config->cpu);
}

TEST(Accelerate, PrecisionPolicies) {
  Result two = fsdp("fsdp_version: 2\n" + wrap, "mixed_precision: bf16\n");
  const PrecisionPolicy &p = *two.config->precision;
  EXPECT_EQ(p.param, plan::DType::BF16);
  EXPECT_EQ(p.reduce, plan::DType::BF16);
  EXPECT_EQ(p.output, plan::DType::BF16);
  EXPECT_EQ(p.upcast, Upcast::Trainable);
  EXPECT_FALSE(p.autocast);
  Result one = fsdp(wrap, "mixed_precision: FP16\n");
  EXPECT_EQ(one.config->precision->output, plan::DType::F32);
  EXPECT_TRUE(one.config->precision->lossScaling);
  Result none = fsdp("fsdp_version: 2\n" + wrap);
  EXPECT_FALSE(none.config->precision->param);
  EXPECT_EQ(none.config->precision->upcast, Upcast::None);
}

TEST(Accelerate, WhatCannotBePlannedYet) {
  const char *npu = "distributed_type: MULTI_NPU\nnum_processes: 2\n";
  EXPECT_EQ(read(npu).engine->outcome(), Outcome::NotSupported);
  EXPECT_EQ(read(npu, false).engine->outcome(), Outcome::Ok);
  EXPECT_EQ(read(npu, false).findings(true), "");
  EXPECT_EQ(read("distributed_type: MEGATRON_LM\nnum_processes: 2\n")
                .engine->outcome(),
            Outcome::Ok);
  // torchao, where no backend is named.
  EXPECT_EQ(fsdp("fsdp_version: 2\n" + wrap, "mixed_precision: fp8\n")
                .engine->outcome(),
            Outcome::Invalid);
  EXPECT_EQ(
      fsdp("fsdp_version: 2\nfsdp_cpu_ram_efficient_loading: false\n" + wrap,
           "mixed_precision: fp8\n")
          .engine->outcome(),
      Outcome::Ok);
  EXPECT_EQ(read("distributed_type: MULTI_GPU\nnum_processes: 2\n"
                 "mixed_precision: fp8\nfp8_config: {backend: MSAMP}\n")
                .engine->outcome(),
            Outcome::NotSupported);
}

TEST(Accelerate, SectionsOfOtherJobs) {
  EXPECT_EQ(read("distributed_type: 'NO'\nfsdp_config: {fsdp_version: 2}\n"
                 "deepspeed_config: {}\n")
                .findings(),
            "w unused-section 2");
  EXPECT_EQ(read("distributed_type: 'NO'\nfsdp_config: [1]\n").findings(),
            "w ignored-key 2");
}

TEST(Accelerate, OldKeysAreMigrated) {
  EXPECT_EQ(
      *read("distributed_type: 'NO'\nfp16: true\n").config->mixedPrecision,
      MixedPrecision::Fp16);
  EXPECT_EQ(
      read("distributed_type: 'NO'\ndynamo_backend: INDUCTR\n").findings(),
      "e invalid-value 2");
}

TEST(Accelerate, AllProblemsInOneRun) {
  Result r = fsdp("fsdp_version: 2\nauto_wrap_policy: TRANSFORMER\n"
                  "offload_params: null\nstate_dict_type: LOCAL_STATE_DICT\n"
                  "typo: 1\n",
                  "mixed_precision: no\ngpu_ids: 1\nfoo: bar\n");
  EXPECT_EQ(r.findings(),
            "e invalid-value 5; e yaml-null 6; e invalid-value 7; "
            "w unknown-key 8; e yaml-boolean 9; e quoted-number 10; "
            "e unknown-key 11");
}

TEST(Accelerate, EveryWrittenKeyIsInTheTable) {
  Result r = fsdp("fsdp_version: 2\n" + wrap +
                  "sharding_strategy: NO_SHARD\n"
                  "typo: 1\n");
  int written = 0, ignored = 0;
  for (const EffectiveValue &v : r.config->effective) {
    written += v.origin == Origin::Written;
    ignored += v.ignored;
  }
  EXPECT_EQ(written, 6);
  EXPECT_EQ(ignored, 2);
}

/// Read as another release, for lint.
Result readAs(const std::string &version, const std::string &text,
              const std::string &torch = "2.15.0") {
  Result result;
  auto document = yaml::parseText("a.yaml", text, *result.engine);
  AccelerateOptions options{version, false};
  options.torchVersion = torch;
  result.config = parseAccelerate("a.yaml", *document->root(), "", {}, options,
                                  *result.engine);
  return result;
}

TEST(Accelerate, EveryReleaseReadsAPlainFile) {
  for (int minor = 11; minor <= 34; ++minor)
    EXPECT_EQ(readAs("0." + std::to_string(minor),
                     "distributed_type: MULTI_GPU\nnum_processes: 8\n")
                  .findings(true),
              "")
        << minor;
  for (int minor = 0; minor <= 15; ++minor)
    EXPECT_EQ(readAs("1." + std::to_string(minor),
                     "distributed_type: MULTI_GPU\nnum_processes: 8\n")
                  .findings(true),
              "")
        << minor;
}

TEST(Accelerate, ReleasesDiffer) {
  const std::string fsdp2 =
      "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\n"
      "fsdp_config:\n  fsdp_version: 2\n  fsdp_activation_checkpointing: true\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  struct {
    const char *version;
    Upcast upcast;
    CheckpointPlacement checkpoints;
    RestUnits rest;
  } expected[] = {
      {"1.7", Upcast::All, CheckpointPlacement::Units, RestUnits::Root},
      {"1.12", Upcast::All, CheckpointPlacement::Children, RestUnits::Root},
      {"1.13", Upcast::None, CheckpointPlacement::Children, RestUnits::Root},
      {"1.14", Upcast::Trainable, CheckpointPlacement::Children,
       RestUnits::EmbeddingAndTail},
      {"1.15", Upcast::Trainable, CheckpointPlacement::Units,
       RestUnits::EmbeddingAndTail},
  };
  for (const auto &e : expected) {
    Result r = readAs(e.version, fsdp2);
    ASSERT_TRUE(r.config) << e.version;
    EXPECT_EQ(r.config->precision->upcast, e.upcast) << e.version;
    EXPECT_EQ(*r.config->checkpointPlacement, e.checkpoints) << e.version;
    EXPECT_EQ(*r.config->restUnits, e.rest) << e.version;
  }
  // No FSDP2 yet: the key says nothing, and FSDP1 runs.
  Result old = readAs("1.5", fsdp2);
  EXPECT_EQ(*old.config->strategy, Strategy::Fsdp1);
  EXPECT_EQ(old.findings(), "w unknown-key 5");
  Result before = readAs("0.29", fsdp2);
  EXPECT_EQ(before.config->precision->upcast, Upcast::None);
  EXPECT_FALSE(*before.config->activationCheckpointing);
}

TEST(Accelerate, DefaultsNameTheirOwner) {
  const std::string text = "distributed_type: FSDP\nnum_processes: 8\n"
                           "fsdp_config:\n  fsdp_auto_wrap_policy: NO_WRAP\n";
  Result r = readAs("0.24", text);
  EXPECT_FALSE(*r.config->useOrigParams);
  EXPECT_EQ(r.config->useOrigParams.why,
            "default of accelerate launch since 0.21");
  r = readAs("0.25", text);
  EXPECT_TRUE(*r.config->useOrigParams);
  EXPECT_EQ(r.config->useOrigParams.why,
            "default of accelerate launch since 0.25");
  EXPECT_EQ(r.config->activationCheckpointing.why,
            "there is no such setting before accelerate 0.31");
}

TEST(Accelerate, SectionsAreTyped) {
  Result r = readAs("1.15", "distributed_type: MEGATRON_LM\nnum_processes: 16\n"
                            "megatron_lm_config:\n"
                            "  megatron_lm_tp_degree: 4\n"
                            "  megatron_lm_pp_degree: '2'\n"
                            "  megatron_lm_sequence_parallelism: true\n"
                            "  megatron_lm_context_parallel_size: 1\n");
  ASSERT_TRUE(r.config && r.config->megatron);
  EXPECT_EQ(*r.config->megatron->tensorParallel, 4);
  EXPECT_EQ(r.config->megatron->tensorParallel.at.line, 4);
  EXPECT_EQ(*r.config->megatron->pipelineParallel, 2);
  EXPECT_TRUE(*r.config->megatron->sequenceParallelism);
  EXPECT_EQ(*r.config->megatron->gradientClipping, 1.0);
  EXPECT_EQ(r.config->mesh->size("dp_replicate"), 2);

  r = readAs("1.15", "distributed_type: 'NO'\nmixed_precision: fp8\n"
                     "fp8_config: {backend: te, override_linear_precision: "
                     "[true, false, true], amax_history_length: 4}\n"
                     "dynamo_config: {backend: inductor, use_dynamic: true}\n");
  ASSERT_TRUE(r.config && r.config->fp8);
  EXPECT_EQ(*r.config->fp8->backend, "TE");
  EXPECT_EQ(*r.config->fp8->overrides, (std::vector{true, false, true}));
  EXPECT_EQ(*r.config->fp8->amaxHistory, 1024); // the misnomer sets nothing
  EXPECT_EQ(*r.config->dynamo.backend, "INDUCTOR");
  EXPECT_TRUE(*r.config->dynamo.dynamic);
  EXPECT_EQ(*r.config->dynamo.mode, "default");
}

TEST(Accelerate, DeepspeedFromYaml) {
  Result r = readAs("1.15", "distributed_type: DEEPSPEED\nnum_processes: 4\n"
                            "mixed_precision: fp16\ndeepspeed_config:\n"
                            "  zero_stage: 3\n"
                            "  offload_param_device: CPU\n"
                            "  gradient_clipping: 0.5\n"
                            "  zero3_save_16bit_model: 'True'\n");
  ASSERT_TRUE(r.config && r.config->deepspeed);
  const DeepspeedSettings &d = *r.config->deepspeed;
  EXPECT_EQ(*d.zeroStage, 3);
  EXPECT_EQ(*d.offloadParameters, OffloadDevice::Cpu);
  EXPECT_EQ(*d.offloadOptimizer, OffloadDevice::None);
  EXPECT_EQ(*d.gradientClipping, std::optional(0.5));
  EXPECT_EQ(*d.gradientAccumulation, std::nullopt); // "auto"
  EXPECT_TRUE(*d.save16BitModel);
  EXPECT_TRUE(*d.zero3Init);
  EXPECT_TRUE(*d.fp16);
  EXPECT_EQ(r.config->mesh->size("dp_shard"), 4);
}

TEST(Accelerate, SagemakerBeforeItBroke) {
  const std::string text =
      "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: DATA_PARALLEL\n"
      "ec2_instance_type: ml.p3.16xlarge\niam_role_name: me\n";
  EXPECT_FALSE(readAs("1.10", text).config);
  Result r = readAs("1.9", text);
  ASSERT_TRUE(r.config && r.config->sagemaker) << r.findings(true);
  EXPECT_EQ(*r.config->sagemaker->instanceType, "ml.p3.16xlarge");
  EXPECT_EQ(*r.config->sagemaker->region, "us-east-1");
  EXPECT_EQ(r.findings(), "");
}

} // namespace
