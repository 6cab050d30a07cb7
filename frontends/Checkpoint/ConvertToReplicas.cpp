//===- ConvertToReplicas.cpp - For Accelerate without FSDP and the Trainer
//-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// save_state of Accelerate under DDP and in one process: model.safetensors,
// optimizer.bin as torch's Optimizer.state_dict() is, which numbers parameters
// in the order of its groups, scheduler.bin and scaler.pt. A checkpoint of
// transformers' Trainer has them as optimizer.pt and scheduler.pt, beside its
// trainer_state.json.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Convert.h"
#include "frontends/Checkpoint/TorchFile.h"
#include "frontends/Checkpoint/TorchOptimizer.h"
#include "runtime/plan/Plan.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

class ReplicasConversion {
public:
  ReplicasConversion(const Trained &trained, const plan::Plan &plan,
                     bool trainer, const std::string &output,
                     const std::function<void(int64_t)> &done,
                     DiagnosticEngine &diagnostics)
      : trained(trained), plan(trainer ? withTrainersGroups(plan) : plan),
        trainer(trainer), output(output), done(done), diagnostics(diagnostics) {
  }

  std::optional<Converted> run() {
    converted.steps = trained.stepsDone();
    converted.files = 1;
    if (!group())
      return std::nullopt;
    layOut();
    const bool good = writeMerged(
        merged, output, done, diagnostics,
        [this](const std::string &folder) { return write(folder); });
    if (!good)
      return std::nullopt;
    return converted;
  }

private:
  /// The Trainer always has two groups, of which the second has no weight decay
  /// and, where an adapter is trained, no parameters.
  static plan::Plan withTrainersGroups(plan::Plan plan) {
    std::vector<plan::OptimizerGroup> &groups = plan.job.optimizer.groups;
    if (groups.size() == 1) {
      groups.push_back(groups.front());
      groups.back().weightDecay = 0;
    }
    return plan;
  }

  bool fail(const std::string &message, const std::string &hint) {
    diagnostics.error("not-supported", output, message, hint);
    return false;
  }

  bool group() {
    if (!needAdamw(plan, output, diagnostics))
      return false;
    groups.resize(plan.job.optimizer.groups.size());
    for (const plan::Parameter &p : plan.parameters) {
      if (!p.trainable)
        continue;
      const TrainedParameter *parameter = findTrained(trained, p);
      // torch keeps nothing of a parameter that had no gradient.
      if (!parameter->states.empty() &&
          !needAdamwStates(*parameter, p, output, diagnostics))
        return false;
      groups[size_t(p.group)].push_back(parameter);
      converted.states += int64_t(parameter->states.size());
      for (const auto &[kind, state] : parameter->states)
        converted.bytes += state->bytes;
    }
    return converted.states > 0 ||
           fail("the checkpoint holds no states of an optimizer, which "
                "load_state wants",
                "merge writes the weights");
  }

  void layOut() {
    MergedPart &part = merged.parts.emplace_back();
    part.name = "model.safetensors";
    auto add = [&](const std::string &name, const Tensor &tensor) {
      part.tensors.push_back(
          {name, &tensor, tensor.dtype, tensor.bytes, part.bytes});
      part.bytes += tensor.bytes;
      merged.bytes += tensor.bytes;
      ++merged.tensors;
    };
    for (const auto &[name, parameter] : trained.parameters)
      add(name, *parameter.weight);
    for (const Tensor *buffer : trained.buffers)
      add(buffer->name, *buffer);
    converted.parameters = int64_t(trained.parameters.size());
    merged.bytesBeside = converted.bytes; // of states
    converted.bytes += merged.bytes;
  }

  void optimizer(TorchFile &file, OrderedReader &reader) {
    PickleWriter &out = file.out;
    out.text("state");
    out.emptyDict();
    out.mark();
    int64_t index = 0;
    for (const auto &group : groups)
      for (const TrainedParameter *parameter : group) {
        const int64_t number = index++;
        if (parameter->states.empty())
          continue;
        out.integer(number);
        out.emptyDict();
        out.mark();
        out.text("step");
        file.number(float(trained.optimizerSteps()));
        for (const auto &[kind, state] : parameter->states) {
          out.text(kind);
          file.tensor(state->dtype, state->shape, state->bytes,
                      [&reader, state = state](const TakeBytes &take) {
                        return reader.read(*state, take);
                      });
        }
        out.items();
      }
    out.items();
    std::vector<size_t> counts;
    for (const auto &group : groups)
      counts.push_back(group.size());
    paramGroups(out, plan, counts, trained.optimizerSteps(), trainer);
  }

  /// What else it says the Trainer takes from its own arguments.
  bool writeTrainerState(const std::string &folder) {
    // The Trainer asks for its own control's state when it saves again.
    nlohmann::ordered_json control = nlohmann::ordered_json::object();
    for (const char *key : {"should_training_stop", "should_epoch_stop",
                            "should_save", "should_evaluate", "should_log"})
      control[key] = false;
    const nlohmann::ordered_json json = {
        {"global_step", converted.steps},
        {"max_steps", plan.job.schedule.steps},
        {"train_batch_size", plan.job.microBatch},
        {"log_history", nlohmann::ordered_json::array()},
        {"stateful_callbacks",
         {{"TrainerControl",
           {{"args", control},
            {"attributes", nlohmann::ordered_json::object()}}}}}};
    ++converted.files;
    return writeSmallFile((fs::path(folder) / "trainer_state.json").string(),
                          json.dump(2) + "\n", converted.bytes, diagnostics);
  }

  bool write(const std::string &folder) {
    // A skipped step is none of the schedule's, but one of the Trainer's.
    const int64_t steps = trained.optimizerSteps();
    auto file = [&](const char *name, const TorchFile::Make &make) {
      ++converted.files;
      return writeTorchFile((fs::path(folder) / name).string(), converted.bytes,
                            diagnostics, make);
    };
    return file(trainer ? "optimizer.pt" : "optimizer.bin",
                [&](TorchFile &file, OrderedReader &reader) {
                  optimizer(file, reader);
                }) &&
           file(trainer ? "scheduler.pt" : "scheduler.bin",
                [&](TorchFile &file, OrderedReader &) {
                  scheduleState(file.out, plan, steps,
                                steps * (trainer ? 1 : plan.ranks()));
                }) &&
           (!plan.job.lossScaling ||
            file("scaler.pt",
                 [&](TorchFile &file, OrderedReader &) {
                   scaleState(file.out, plan, trained.scale);
                 })) &&
           (!trainer || writeTrainerState(folder));
  }

  const Trained &trained;
  const plan::Plan plan;
  const bool trainer;
  const std::string &output;
  const std::function<void(int64_t)> &done;
  DiagnosticEngine &diagnostics;
  std::vector<std::vector<const TrainedParameter *>> groups;
  Merged merged;
  Converted converted;
};

} // namespace

std::optional<Converted>
convertToReplicas(const Trained &trained, const plan::Plan &plan, bool trainer,
                  const std::string &output,
                  const std::function<void(int64_t)> &done,
                  DiagnosticEngine &diagnostics) {
  return ReplicasConversion(trained, plan, trainer, output, done, diagnostics)
      .run();
}

} // namespace accel::checkpoint
