//===- JobMesh.cpp - The mesh of a job file -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/JobReader.h"
#include "runtime/plan/Stages.h"

#include <array>

using namespace accel;

/// Outermost first.
constexpr std::array axes = {"pp", "dp_replicate", "dp_shard",
                             "cp", "sp",           "tp"};
constexpr int64_t mostRanks = int64_t(1) << 20;

void JobReader::readMesh(JobConfig &job) {
  const std::optional<Fields> fields = top.mapping("mesh");
  if (!fields)
    return;
  std::vector<std::string> known(axes.begin(), axes.end());
  known.push_back(plan::expertAxis);
  fields->checkKeys(known);
  AccelerateConfig &accelerate = job.accelerate;
  // accel-run does with ZeRO's units what it does with FSDP2's.
  const bool zero =
      accelerate.deepspeed && *accelerate.deepspeed->zeroStage > 0;
  if (*accelerate.strategy != Strategy::Fsdp2 && !zero) {
    top.error(
        "invalid-value", "mesh",
        "a mesh is of units that FSDP2 or ZeRO shards, and this job runs " +
            std::string(accelerate.deepspeed ? "ZeRO's stage 0"
                                             : toString(*accelerate.strategy)),
        "write distributed_type: FSDP and fsdp_version: 2, or a "
        "zero_stage of 1 to 3",
        true);
    return;
  }
  plan::Mesh mesh;
  int64_t product = 1;
  bool shards = false; // dp_shard is written
  for (const char *axis : axes) {
    Setting<int64_t> size;
    size.value = 1;
    fields->integer(axis, size, 1, mostRanks);
    if (size.written() && accelerate.mesh.written() &&
        accelerate.mesh->size(axis) != *size) {
      fields->error("invalid-value", axis,
                    std::string(axis) + " is " + std::to_string(*size) +
                        " here and " +
                        std::to_string(accelerate.mesh->size(axis)) +
                        " in parallelism_config",
                    "write it in one place");
      return;
    }
    if (!size.written())
      size.value = accelerate.mesh.written() ? accelerate.mesh->size(axis) : 1;
    shards |= axis == std::string_view("dp_shard") &&
              (size.written() || accelerate.mesh.written());
    if (*size > 1 || std::string_view(axis).starts_with("dp_"))
      mesh.resize(axis, *size);
    product = std::min(product * *size, mostRanks * mostRanks);
  }
  if (mesh.size("cp") > 1 && mesh.size("sp") > 1) {
    fields->error("mesh-axes", "sp",
                  "cp and sp both share sequences: by ring attention, and by "
                  "an exchange of tokens for heads",
                  "leave one of the two out");
    return;
  }
  const int64_t ranks = *accelerate.numProcesses;
  if (!shards && ranks % product == 0)
    mesh.resize("dp_shard", ranks / product);
  if (mesh.ranks() != ranks) {
    top.error("mesh-product", "mesh",
              "the sizes of mesh multiply to " + std::to_string(mesh.ranks()) +
                  ", num_processes is " + std::to_string(ranks),
              "the product of all sizes must be num_processes; without "
              "dp_shard it is what the others leave",
              true);
    return;
  }
  // Ranks that share experts are ranks of dp_shard, which shards all else.
  Setting<int64_t> experts;
  experts.value = 1;
  fields->integer(plan::expertAxis, experts, 1, mostRanks);
  const int64_t shard = mesh.size("dp_shard");
  if (shard % *experts != 0) {
    fields->error("mesh-axes", plan::expertAxis,
                  "ep " + std::to_string(*experts) + " does not divide the " +
                      std::to_string(shard) +
                      " ranks of dp_shard, which share experts in groups of ep",
                  "write a divisor of " + std::to_string(shard));
    return;
  }
  if (*experts > 1) {
    mesh.resize("dp_shard", shard / *experts);
    mesh.resize(plan::expertAxis, *experts);
  }
  accelerate.mesh = {mesh, Origin::Written, "mesh", top.locate("mesh"),
                     "mesh of the job file"};
  job.ownMesh = true;
}

void JobReader::readPipeline(JobConfig &job) {
  const std::optional<Fields> fields = top.mapping("pipeline");
  if (!fields)
    return;
  fields->checkKeys({"schedule", "chunks"});
  Setting<std::string> schedule;
  fields->choice("schedule", schedule,
                 {"1f1b", "interleaved-1f1b", "gpipe", "zb-h1", "zb-v"});
  if (*schedule == "gpipe")
    job.forwardsFirst = {true, Origin::Written, schedule.key, schedule.at, ""};
  const bool interleaved = *schedule == "interleaved-1f1b";
  const bool returns = *schedule == "zb-v";
  if (returns || *schedule == "zb-h1")
    job.splitBackward = {true, Origin::Written, schedule.key, schedule.at, ""};
  Setting<int64_t> &chunks = job.pipelineChunks;
  if (returns || interleaved)
    chunks = {2, Origin::Written, schedule.key, schedule.at, ""};
  fields->integer("chunks", chunks, 1, 1 << 10);
  // Other schedules of no stages are errors; without ownMesh the mesh is wrong.
  if ((job.ownMesh || !top.mappingNode().find("mesh")) &&
      job.accelerate.mesh->size(plan::pipelineAxis) <= 1 && *chunks <= 1 &&
      !*job.forwardsFirst && !*job.splitBackward)
    top.report(Severity::Warning, "ignored-key", "pipeline",
               "pipeline has no effect: the mesh has no stages",
               "write pp above 1 in mesh, or leave pipeline out", true);
  if (!schedule.written())
    return;
  if (returns ? *chunks != 2 : interleaved != (*chunks > 1))
    fields->error(
        "invalid-value", "chunks",
        *schedule +
            (returns       ? " has 2 chunks in each stage, this is "
             : interleaved ? " has at least 2 chunks in each stage, this is "
                           : " has one chunk in each stage, this is ") +
            std::to_string(*chunks),
        returns       ? "leave chunks out, or write schedule: interleaved-1f1b"
        : interleaved ? "write 2 or more, or schedule: 1f1b"
                      : "write schedule: interleaved-1f1b");
}
