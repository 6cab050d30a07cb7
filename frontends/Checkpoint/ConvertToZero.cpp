//===- ConvertToZero.cpp - Checkpoints for DeepSpeed ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A folder as the engine saves it (DeepSpeed 0.19, runtime/engine.py,
// runtime/zero/stage_1_and_2.py and stage3.py). ZeRO 1 and 2: one file with the
// module, and one a rank with its part of each group's flat weights and states.
// ZeRO 3: two files a rank, of which the module's has no weights, but says how
// the rank's parts of the parameters lie behind each other in the optimizer's.
// What of the loader's keys is left out it takes from its own configuration:
// clipping and, but for ZeRO 3, the loss scaler.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Convert.h"
#include "frontends/Checkpoint/TorchFile.h"
#include "frontends/Checkpoint/TorchOptimizer.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <filesystem>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

/// Whose folders these are, as a loader asks for.
constexpr const char *version = "0.19.8";
/// Elements that a rank's part of a group is a multiple of
/// (nccl_start_alignment_factor).
constexpr int64_t alignment = 2;

/// A parameter in the flat elements of its group.
struct Placed {
  std::string name;
  const TrainedParameter *parameter = nullptr;
  int64_t begin = 0, end = 0;

  int64_t elements() const { return end - begin; }
  /// Of each of `ranks` under ZeRO 3, which pads the last one's part.
  int64_t part(int64_t ranks) const { return (elements() + ranks - 1) / ranks; }
};

/// Parameters that are one flat tensor of the optimizer: of one of its groups,
/// end to end, or under ZeRO 3 of a part of such a group.
struct Group {
  size_t ofPlan = 0;
  std::vector<Placed> parameters;
  int64_t elements = 0, partition = 0; // of a rank

  /// Elements of a rank that are no padding.
  int64_t lean(int64_t rank) const {
    return std::clamp<int64_t>(elements - rank * partition, 0, partition);
  }
};

void orderedDict(PickleWriter &out) {
  out.global("collections", "OrderedDict");
  out.mark();
  out.tuple();
  out.call();
}

class ZeroConversion {
public:
  ZeroConversion(const Trained &trained, const plan::Plan &plan,
                 const ZeroFolder &zero, const std::string &output,
                 const std::function<void(int64_t)> &done,
                 DiagnosticEngine &diagnostics)
      : trained(trained), plan(plan), ranks(zero.ranks), stage(zero.stage),
        subGroup(zero.subGroup), output(output), done(done),
        diagnostics(diagnostics) {}

  std::optional<Converted> run() {
    converted.steps = trained.stepsDone();
    if (!layOut())
      return std::nullopt;
    const bool good = writeMerged(
        Merged(), output, done, diagnostics,
        [this](const std::string &folder) { return write(folder); });
    if (!good)
      return std::nullopt;
    return converted;
  }

private:
  bool fail(const std::string &message, const std::string &hint) {
    diagnostics.error("not-supported", output, message, hint);
    return false;
  }

  bool isFloat32(const Tensor &tensor) {
    return tensor.dtype == "float32" ||
           fail("'" + printable(tensor.name) + "' is " + tensor.dtype +
                    ", and ZeRO keeps weights and states in float32",
                "train with float32 weights, or convert with --to dcp");
  }

  bool layOut() {
    if (!needAdamw(plan, output, diagnostics))
      return false;
    // ZeRO 3 goes on with the loss scaler of the file.
    if (stage == 3 && plan.job.precision == "fp16")
      return fail("the plan trains in fp16, whose loss scale is not written "
                  "for ZeRO 3",
                  "convert with --stage 2, or with --to dcp");
    std::vector<Group> ofPlan(plan.job.optimizer.groups.size());
    for (const plan::Parameter &p : plan.parameters) {
      const TrainedParameter *parameter = findTrained(trained, p);
      if (!p.trainable)
        return fail("'" + printable(p.fqn) +
                        "' is frozen, and models with frozen parameters are "
                        "not written for DeepSpeed",
                    "convert with --to dcp");
      const Tensor &weight = *parameter->weight;
      if (!isFloat32(weight))
        return false;
      if (!needAdamwStates(*parameter, p, output, diagnostics) ||
          !isFloat32(*parameter->states.at("exp_avg")) ||
          !isFloat32(*parameter->states.at("exp_avg_sq")))
        return false;
      Group &group = ofPlan[size_t(p.group)];
      const int64_t elements = weight.bytes / elementBytes(weight.dtype);
      group.parameters.push_back(
          {p.fqn, parameter, group.elements, group.elements + elements});
      group.elements += elements;
      ++converted.parameters;
      converted.states += 2;
      converted.bytes += 3 * weight.bytes;
    }
    for (size_t g = 0; g < ofPlan.size(); ++g) {
      Group &group = ofPlan[g];
      group.ofPlan = g;
      if (group.parameters.empty()) // DeepSpeed makes none of these
        continue;
      if (stage == 3) {
        cutGroup(std::move(group));
        continue;
      }
      group.partition = (group.elements + alignment * ranks - 1) /
                        (alignment * ranks) * alignment;
      groups.push_back(std::move(group));
    }
    return true;
  }

  /// As ZeRO 3's _create_fp16_sub_groups: a rank's part of a group is cut where
  /// it has become too long.
  void cutGroup(Group whole) {
    Group next;
    auto close = [&] {
      if (!next.parameters.empty())
        groups.push_back(std::move(next));
      next = Group();
      next.ofPlan = whole.ofPlan;
    };
    close();
    for (Placed &placed : whole.parameters) {
      next.partition += placed.part(ranks);
      next.elements += placed.elements();
      next.parameters.push_back(std::move(placed));
      if (next.partition >= subGroup)
        close();
    }
    close();
  }

  //===--------------------------------------------------------------------===//
  // Bytes
  //===--------------------------------------------------------------------===//

  bool take(std::string_view bytes, const TakeBytes &next) {
    copied += int64_t(bytes.size());
    done(copied);
    return next(bytes);
  }

  /// The elements `begin` to `end` of the flat elements of a group that are of
  /// one of its parameters: of the weight or a state.
  bool slice(OrderedReader &reader, const Placed &placed,
             const std::string &kind, int64_t begin, int64_t end,
             const TakeBytes &next) {
    if (std::max(begin, placed.begin) >= std::min(end, placed.end))
      return true;
    const Tensor &tensor = kind.empty() ? *placed.parameter->weight
                                        : *placed.parameter->states.at(kind);
    const auto width = int64_t(sizeof(float));
    int64_t at = placed.begin * width;
    return reader.read(tensor, [&](std::string_view bytes) {
      const int64_t first = std::max(at, begin * width),
                    last = std::min(at + int64_t(bytes.size()), end * width);
      const int64_t skipped = first - at;
      at += int64_t(bytes.size());
      return first >= last ||
             take(bytes.substr(size_t(skipped), size_t(last - first)), next);
    });
  }

  /// What a rank has of a group's weights or of a state, without the padding
  /// behind all of it.
  bool fill(OrderedReader &reader, const Group &group, const std::string &kind,
            int64_t rank, const TakeBytes &next) {
    for (const Placed &placed : group.parameters) {
      if (stage < 3) {
        const int64_t begin = rank * group.partition;
        if (!slice(reader, placed, kind, begin, begin + group.lean(rank), next))
          return false;
        continue;
      }
      const int64_t part = placed.part(ranks), all = placed.elements();
      const int64_t first = std::min(rank * part, all),
                    last = std::min(first + part, all);
      if (!slice(reader, placed, kind, placed.begin + first,
                 placed.begin + last, next) ||
          !zeros(part - (last - first), next))
        return false;
    }
    return true;
  }

  static bool zeros(int64_t elements, const TakeBytes &next) {
    return next(std::string(size_t(elements) * sizeof(float), '\0'));
  }

  //===--------------------------------------------------------------------===//
  // Files
  //===--------------------------------------------------------------------===//

  /// Beside the flat weights ZeRO 1 and 2 keep the module whole.
  int64_t folderBytes() const {
    int64_t bytes = converted.bytes;
    for (const Group &group : groups)
      if (stage < 3)
        bytes += group.elements * int64_t(sizeof(float));
    return bytes;
  }

  bool writeFile(const std::string &name, const TorchFile::Make &make) {
    ++converted.files;
    return writeTorchFile((fs::path(folder) / name).string(), folderBytes(),
                          diagnostics, make);
  }

  static void number(PickleWriter &out, const char *key, int64_t value) {
    out.text(key);
    out.integer(value);
  }

  /// Of ZeRO 3 a rank's: its parameters have no elements while nothing has
  /// gathered them.
  void module(TorchFile &file, OrderedReader &reader) {
    PickleWriter &out = file.out;
    out.text("module");
    orderedDict(out);
    out.mark();
    auto whole = [&](const std::string &name, const Tensor &tensor) {
      out.text(name);
      file.tensor(tensor.dtype, tensor.shape, tensor.bytes,
                  [&](const TakeBytes &next) {
                    return reader.read(tensor, [&](std::string_view bytes) {
                      return take(bytes, next);
                    });
                  });
    };
    for (const plan::Parameter &p : plan.parameters) {
      const Tensor &weight = *findTrained(trained, p)->weight;
      std::vector<int64_t> shape = weight.shape;
      if (stage == 3) {
        shape = {0};
        out.text(p.fqn);
        file.tensor(weight.dtype, shape, 0,
                    [](const TakeBytes &) { return true; });
      } else {
        whole(p.fqn, weight);
      }
      for (const std::string &alias : p.aliases) {
        out.text(alias);
        file.again(weight.dtype, shape);
      }
    }
    for (const Tensor *buffer : trained.buffers)
      whole(buffer->name, *buffer);
    out.items();
    out.text("buffer_names");
    out.emptyList();
    out.mark();
    for (const Tensor *buffer : trained.buffers)
      out.text(buffer->name);
    out.appends();
    out.text("param_shapes");
    out.emptyList();
    out.mark();
    for (const Group &group : groups) {
      orderedDict(out);
      out.mark();
      for (const Placed &placed : group.parameters) {
        out.text(placed.name);
        out.global("torch", "Size");
        out.integers(placed.parameter->weight->shape);
        out.tupleOfOne();
        out.call();
      }
      out.items();
    }
    out.appends();
    out.text("shared_params");
    out.emptyDict();
    out.mark();
    for (const plan::Parameter &p : plan.parameters)
      for (const std::string &alias : p.aliases) {
        out.text(alias);
        out.text(p.fqn);
      }
    out.items();
    for (const char *key :
         {"optimizer", "frozen_param_shapes", "frozen_param_fragments",
          "data_sampler", "random_ltd"}) {
      out.text(key);
      out.none();
    }
    out.text("lr_scheduler");
    out.emptyDict();
    out.mark();
    scheduleState(out, plan, trained.optimizerSteps(),
                  trained.optimizerSteps());
    out.items();
    number(out, "global_steps", converted.steps);
    if (trained.samples)
      number(out, "global_samples", *trained.samples);
    number(out, "skipped_steps", converted.steps - trained.optimizerSteps());
    number(out, "dp_world_size", ranks);
    number(out, "mp_world_size", 1);
    out.text("ds_version");
    out.text(version);
    out.text("ds_config");
    out.emptyDict();
  }

  /// Which parts of which parameters a rank has, for tools that cut anew.
  void sliceMappings(PickleWriter &out, int64_t rank) {
    out.text("param_slice_mappings");
    out.emptyList();
    out.mark();
    for (const Group &group : groups) {
      const int64_t begin = rank * group.partition,
                    end = begin + group.lean(rank);
      orderedDict(out);
      out.mark();
      for (const Placed &placed : group.parameters) {
        const int64_t first = std::max(begin, placed.begin),
                      last = std::min(end, placed.end);
        if (first >= last)
          continue;
        out.text(placed.name);
        out.global("deepspeed.utils.tensor_fragment", "fragment_address");
        out.integers({last - first, first - begin}); // numel, start
        out.call();
      }
      out.items();
    }
    out.appends();
  }

  /// States and groups of the optimizer, which has one flat parameter of each
  /// of `groups`.
  void baseOptimizer(TorchFile &file, OrderedReader &reader, int64_t rank) {
    PickleWriter &out = file.out;
    out.emptyDict();
    out.mark();
    out.text("state");
    out.emptyDict();
    out.mark();
    for (size_t i = 0; i < groups.size(); ++i) {
      const Group &group = groups[i];
      out.integer(int64_t(i));
      out.emptyDict();
      out.mark();
      out.text("step");
      file.number(float(trained.optimizerSteps()));
      for (const std::string kind : {"exp_avg", "exp_avg_sq"}) {
        out.text(kind);
        file.tensor("float32", {group.partition},
                    group.partition * int64_t(sizeof(float)),
                    [&, kind, rank](const TakeBytes &next) {
                      return fill(reader, group, kind, rank, next) &&
                             (stage == 3 ||
                              zeros(group.partition - group.lean(rank), next));
                    });
      }
      out.items();
    }
    out.items();
    std::vector<size_t> counts(plan.job.optimizer.groups.size(), 0);
    for (const Group &group : groups)
      ++counts[group.ofPlan];
    paramGroups(out, plan, counts, trained.optimizerSteps());
    out.items();
  }

  static void stageOf(PickleWriter &out, int64_t stage) {
    out.text("zero_stage");
    out.global("deepspeed.runtime.zero.config", "ZeroStageEnum");
    out.integer(stage);
    out.tupleOfOne();
    out.call();
  }

  void optimizer(TorchFile &file, OrderedReader &reader, int64_t rank) {
    PickleWriter &out = file.out;
    out.text("optimizer_state_dict");
    out.emptyDict();
    out.mark();
    if (stage == 3)
      cutOptimizer(file, reader, rank);
    else
      flatOptimizer(file, reader, rank);
    out.items();
    out.text("ds_version");
    out.text(version);
    out.text("ds_config");
    out.emptyDict();
  }

  /// Of DeepSpeedZeroOptimizer_Stage3.
  void cutOptimizer(TorchFile &file, OrderedReader &reader, int64_t rank) {
    PickleWriter &out = file.out;
    stageOf(out, 3);
    out.text("loss_scaler"); // of anything but fp16: 1
    out.global("deepspeed.runtime.fp16.loss_scaler", "LossScaler");
    out.real(1);
    out.tupleOfOne();
    out.call();
    for (const char *key : {"dynamic_loss_scale", "overflow"}) {
      out.text(key);
      out.boolean(false);
    }
    number(out, "partition_count", ranks);
    out.text("optimizer_state_dict");
    baseOptimizer(file, reader, rank);
    out.text("fp32_flat_groups");
    out.emptyList();
    out.mark();
    for (const Group &group : groups)
      file.tensor("float32", {group.partition},
                  group.partition * int64_t(sizeof(float)),
                  [&, rank](const TakeBytes &next) {
                    return fill(reader, group, "", rank, next);
                  });
    out.appends();
  }

  /// Of DeepSpeedZeroOptimizer.
  void flatOptimizer(TorchFile &file, OrderedReader &reader, int64_t rank) {
    PickleWriter &out = file.out;
    out.text("base_optimizer_state");
    baseOptimizer(file, reader, rank);
    out.text("single_partition_of_fp32_groups");
    out.emptyList();
    out.mark();
    for (const Group &group : groups) {
      const int64_t lean = group.lean(rank);
      file.tensor("float32", {lean}, lean * int64_t(sizeof(float)),
                  [&, rank](const TakeBytes &next) {
                    return fill(reader, group, "", rank, next);
                  });
    }
    out.appends();
    numbers(out, "group_paddings", [&](const Group &group) {
      out.integer(group.partition - group.lean(rank));
    });
    numbers(out, "param_alignment_paddings", [&](const Group &group) {
      out.emptyList();
      out.mark();
      for (size_t i = 0; i < group.parameters.size(); ++i)
        out.integer(0);
      out.appends();
    });
    numbers(out, "partition_count", [&](const Group &) { out.integer(ranks); });
    sliceMappings(out, rank);
    stageOf(out, 2); // stage 1 cuts alike
    out.text("ds_version");
    out.text(version);
  }

  void numbers(PickleWriter &out, const char *key,
               const std::function<void(const Group &)> &write) {
    out.text(key);
    out.emptyList();
    out.mark();
    for (const Group &group : groups)
      write(group);
    out.appends();
  }

  bool write(const std::string &into) {
    const std::string tag = "global_step" + std::to_string(converted.steps);
    folder = (fs::path(into) / tag).string();
    std::error_code failed;
    fs::create_directory(folder, failed);
    if (failed) {
      diagnostics.error("write-failed", folder, failed.message());
      return false;
    }
    const std::string states = "mp_rank_00_model_states.pt";
    for (int64_t rank = 0; rank < (stage == 3 ? ranks : 1); ++rank)
      if (!writeFile(stage == 3
                         ? "zero_pp_rank_" + std::to_string(rank) + "_" + states
                         : states,
                     [&](TorchFile &file, OrderedReader &reader) {
                       module(file, reader);
                     }))
        return false;
    const std::string half = plan.job.precision == "bf16" ? "bf16_" : "";
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (!writeFile(half + "zero_pp_rank_" + std::to_string(rank) +
                         "_mp_rank_00_optim_states.pt",
                     [&](TorchFile &file, OrderedReader &reader) {
                       optimizer(file, reader, rank);
                     }))
        return false;
    ++converted.files;
    return writeSmallFile((fs::path(into) / "latest").string(), tag,
                          folderBytes(), diagnostics);
  }

  const Trained &trained;
  const plan::Plan &plan;
  const int64_t ranks, stage, subGroup;
  const std::string &output;
  const std::function<void(int64_t)> &done;
  DiagnosticEngine &diagnostics;
  std::string folder; // of the tag
  std::vector<Group> groups;
  int64_t copied = 0;
  Converted converted;
};

} // namespace

std::optional<Converted> convertToZero(const Trained &trained,
                                       const plan::Plan &plan,
                                       const ZeroFolder &zero,
                                       const std::string &output,
                                       const std::function<void(int64_t)> &done,
                                       DiagnosticEngine &diagnostics) {
  return ZeroConversion(trained, plan, zero, output, done, diagnostics).run();
}

} // namespace accel::checkpoint
