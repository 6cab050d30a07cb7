//===- ConvertToDcp.cpp - Checkpoints for torch and Accelerate ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Convert.h"
#include "frontends/Checkpoint/DcpWriter.h"
#include "frontends/Checkpoint/PickleWriter.h"
#include "frontends/Checkpoint/TorchNames.h"
#include "frontends/Checkpoint/TorchOptimizer.h"
#include "frontends/Checkpoint/TorchZip.h"
#include "runtime/plan/Plan.h"

#include <filesystem>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

/// A value that is no tensor.
DcpItem valueItem(std::vector<DcpKey> path,
                  const std::function<void(PickleWriter &)> &write) {
  PickleWriter out;
  write(out);
  DcpItem item;
  item.path = std::move(path);
  item.pickle = out.finish();
  return item;
}

class DcpConversion {
public:
  DcpConversion(const Trained &trained, bool accelerate, const plan::Plan *plan,
                DiagnosticEngine &diagnostics)
      : trained(trained), plan(plan), diagnostics(diagnostics),
        accelerate(accelerate), optimizer(accelerate ? "optimizer" : "optim") {}

  std::optional<Converted> run(const std::string &output,
                               const std::function<void(int64_t)> &done) {
    this->output = output;
    converted.steps = trained.stepsDone();
    if (!addWeights() || !addStates() || (plan && !addGroups()))
      return std::nullopt;
    if (accelerate && converted.states == 0) {
      fail("the checkpoint holds no states of an optimizer, which load_state "
           "wants",
           "merge writes the weights");
      return std::nullopt;
    }
    const bool good = writeMerged(
        Merged(), output, done, diagnostics,
        [&](const std::string &folder) { return writeFolders(folder, done); });
    if (!good)
      return std::nullopt;
    return converted;
  }

private:
  bool fail(const std::string &message, const std::string &hint) {
    diagnostics.error("not-supported", output, message, hint);
    return false;
  }

  bool add(std::vector<DcpItem> &items, std::vector<DcpKey> path,
           const Tensor &tensor) {
    if (storageOfDtype(tensor.dtype).empty())
      return fail("'" + printable(tensor.name) + "' is " + tensor.dtype +
                      ", which torch has no typed storage of",
                  "convert it in torch");
    DcpItem item;
    item.path = std::move(path);
    item.tensor = &tensor;
    items.push_back(std::move(item));
    converted.bytes += tensor.bytes;
    return true;
  }

  bool addWeights() {
    for (const auto &[name, parameter] : trained.parameters)
      if (!add(weights, {"model", name}, *parameter.weight))
        return false;
    converted.parameters = int64_t(trained.parameters.size());
    for (const Tensor *buffer : trained.buffers)
      if (!add(weights, {"model", buffer->name}, *buffer))
        return false;
    // Models save a tied parameter under each of its names.
    if (plan)
      for (const plan::Parameter &p : plan->parameters)
        for (const std::string &alias : p.aliases)
          if (auto found = trained.parameters.find(p.fqn);
              found != trained.parameters.end() &&
              !trained.parameters.count(alias) &&
              !add(weights, {"model", alias}, *found->second.weight))
            return false;
    return true;
  }

  bool addStates() {
    for (const auto &[name, parameter] : trained.parameters) {
      for (const auto &[kind, state] : parameter.states)
        if (!add(states, {optimizer, "state", name, kind}, *state))
          return false;
      converted.states += int64_t(parameter.states.size());
      if (parameter.states.empty())
        continue;
      DcpItem step;
      step.path = {optimizer, "state", name, "step"};
      step.number = float(trained.optimizerSteps());
      states.push_back(std::move(step));
    }
    return true;
  }

  /// The groups as torch's AdamW keeps them.
  bool addGroups() {
    const plan::Optimizer &options = plan->job.optimizer;
    if (!needAdamw(*plan, output, diagnostics))
      return false;
    for (const plan::Parameter &p : plan->parameters) {
      const TrainedParameter &parameter = *findTrained(trained, p);
      // torch keeps nothing of a parameter that had no gradient.
      if (p.trainable && !parameter.states.empty() &&
          !needAdamwStates(parameter, p, output, diagnostics))
        return false;
    }
    for (size_t g = 0; g < options.groups.size(); ++g) {
      auto value = [&](const char *key, const WriteValue &write) {
        states.push_back(
            valueItem({optimizer, "param_groups", int64_t(g), key}, write));
      };
      groupOptions(*plan, g, trained.optimizerSteps(), value);
      value("params", [&](PickleWriter &out) {
        out.emptyList();
        out.mark();
        for (const plan::Parameter &p : plan->parameters)
          if (p.trainable && size_t(p.group) == g)
            out.text(p.fqn);
        out.appends();
      });
    }
    return true;
  }

  /// A file of torch.save with a dictionary of numbers.
  bool writeValues(const std::string &path,
                   const std::function<void(PickleWriter &)> &write) {
    PickleWriter out;
    out.emptyDict();
    out.mark();
    write(out);
    out.items();
    File file(path, O_WRONLY | O_CREAT | O_EXCL);
    if (file.good() &&
        writeTorchZip(file, 0, out.finish(), -1,
                      [](const TakeBytes &) { return true; }) &&
        file.sync()) {
      ++converted.files;
      return true;
    }
    return reportUnwritten(path, converted.bytes, diagnostics);
  }

  /// Accelerate steps a schedule as often as there are processes. Groups are
  /// loaded by the names of their parameters, rates of a schedule by place, and
  /// a script has its groups in any order.
  bool writeSchedule(const std::string &folder) {
    return writeValues((fs::path(folder) / "scheduler.bin").string(),
                       [&](PickleWriter &out) {
                         const int64_t steps = trained.optimizerSteps();
                         scheduleState(out, *plan, steps, steps * plan->ranks(),
                                       /*rated=*/false);
                       });
  }

  bool writeScale(const std::string &folder) {
    return writeValues(
        (fs::path(folder) / "scaler.pt").string(),
        [&](PickleWriter &out) { scaleState(out, *plan, trained.scale); });
  }

  bool writeFolders(const std::string &folder,
                    const std::function<void(int64_t)> &done) {
    if (!accelerate) {
      converted.files = 2;
      std::vector<DcpItem> all = weights;
      all.insert(all.end(), states.begin(), states.end());
      return writeDcp(all, folder, converted.bytes, done, diagnostics) &&
             (!plan || !plan->job.lossScaling || writeScale(folder));
    }
    converted.files = 4;
    for (const auto &[name, items] :
         {std::pair{"pytorch_model_fsdp_0", &weights},
          std::pair{"optimizer_0", &states}}) {
      const std::string path = (fs::path(folder) / name).string();
      std::error_code failed;
      fs::create_directory(path, failed);
      if (failed) {
        diagnostics.error("write-failed", path, failed.message());
        return false;
      }
      if (!writeDcp(*items, path, converted.bytes, done, diagnostics))
        return false;
    }
    return writeSchedule(folder) &&
           (!plan->job.lossScaling || writeScale(folder));
  }

  const Trained &trained;
  const plan::Plan *plan;
  DiagnosticEngine &diagnostics;
  const bool accelerate;
  const std::string optimizer; // key of its states
  std::string output;
  std::vector<DcpItem> weights, states;
  Converted converted;
};

} // namespace

std::optional<Converted> convertToDcp(const Trained &trained, bool accelerate,
                                      const plan::Plan *plan,
                                      const std::string &output,
                                      const std::function<void(int64_t)> &done,
                                      DiagnosticEngine &diagnostics) {
  return DcpConversion(trained, accelerate, plan, diagnostics)
      .run(output, done);
}

} // namespace accel::checkpoint
