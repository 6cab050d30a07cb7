//===- MachineInputs.cpp - How many machines a job has --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/MachineInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "passes/Targets/Target.h"

#include <algorithm>

namespace accel {

/// Devices of a node of the target; nothing where its file only assumes them.
static std::optional<int64_t> nodeDevices(const Target &target) {
  const auto figure = std::find_if(
      target.figures.begin(), target.figures.end(),
      [](const TargetFigure &f) { return f.key == "ranks_per_node"; });
  if (figure != target.figures.end() &&
      figure->source.starts_with("assumption"))
    return std::nullopt;
  return target.ranksPerNode;
}

void takeMachines(PlanInputs &inputs, const PlanOptions &options,
                  DiagnosticEngine &engine) {
  AccelerateConfig &a = inputs.job.accelerate;
  if (inputs.targetName.empty())
    return;
  DiagnosticEngine quiet; // the session reports what is wrong with a target
  const std::optional<Target> target = loadTarget(inputs.targetName, quiet);
  const std::optional<int64_t> node =
      target ? nodeDevices(*target) : std::nullopt;
  const int64_t ranks = *a.numProcesses;
  if (!node || ranks <= *node)
    return;
  const int64_t needed = (ranks + *node - 1) / *node;
  auto report = [&](Severity severity, const char *code, std::string message,
                    std::string hint) {
    const bool fromFile = a.numMachines.written() && !options.nodes;
    engine.report(diagnosticAt(
        fromFile ? a.numMachines.at : Location(), "num_machines", severity,
        code, std::move(message), std::move(hint), options.config));
  };
  const std::string devices = std::to_string(*node) + " devices of a node of " +
                              target->name,
                    all = std::to_string(ranks) + " ranks";
  if (options.nodes || a.numMachines.written()) {
    const int64_t machines =
        std::max<int64_t>(options.nodes.value_or(*a.numMachines), 1);
    if (ranks / machines > *node)
      report(Severity::Warning, "crowded-node",
             all + " on " + std::to_string(machines) +
                 (machines == 1 ? " machine" : " machines") +
                 " are more than the " + devices +
                 ": they are planned as if they shared the links inside a node",
             options.nodes ? "pass --nodes " + std::to_string(needed)
                           : "write num_machines: " + std::to_string(needed) +
                                 ", or pass --nodes " + std::to_string(needed));
    return;
  }
  report(Severity::Note, "default-nodes",
         all + " are taken to run on " + std::to_string(needed) +
             " machines, by the " + devices,
         "pass --nodes, or write num_machines");
  a.numMachines.value = needed;
  // HYBRID_SHARD's mesh is that of machines.
  if (!a.mesh.written() && (*a.sharding == Sharding::HybridShard ||
                            *a.sharding == Sharding::HybridShardZero2)) {
    a.mesh.value.resize("dp_shard", a.processesPerMachine());
    a.mesh.value.resize("dp_replicate", ranks / a.mesh->size("dp_shard"));
  }
}

} // namespace accel
