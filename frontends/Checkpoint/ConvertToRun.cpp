//===- ConvertToRun.cpp - Checkpoints for accel-run -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One file of a rank that has everything: each parameter is a unit of its own.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Convert.h"
#include "frontends/Checkpoint/ConvertedStates.h"
#include "frontends/Checkpoint/FileIo.h"
#include "frontends/Checkpoint/RunShards.h"
#include "frontends/Checkpoint/SliceChecksums.h"
#include "runtime/plan/OptimizerOfStates.h"
#include "runtime/plan/OutputModel.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *shardName = "rank-00000.safetensors";

/// The tensor's elements in one row.
Tensor flattened(const Tensor &tensor) {
  Tensor flat = tensor;
  flat.shape = {tensor.bytes / elementBytes(tensor.dtype)};
  for (Piece &piece : flat.pieces) {
    if (!piece.view.empty())
      continue;
    piece.view = tensor.shape;
    if (piece.view.empty()) { // of a number
      piece.view = piece.sizes = {1};
      piece.offsets = {0};
    }
  }
  return flat;
}

class RunWriter {
public:
  RunWriter(const Trained &trained, const plan::Plan *plan, int64_t samples,
            const std::string &output, DiagnosticEngine &diagnostics)
      : trained(trained), plan(plan),
        samples(trained.samples.value_or(samples)), given(samples),
        output(output), diagnostics(diagnostics) {}

  std::optional<Converted> run(const std::function<void(int64_t)> &done) {
    converted.steps = trained.stepsDone();
    if (!checkName() || !checkDtypes() || !checkSamples() || !checkStates())
      return std::nullopt;
    layOut();
    const bool good = writeMerged(
        merged, output, done, diagnostics,
        [this](const std::string &folder) { return writeState(folder); });
    if (!good)
      return std::nullopt;
    return converted;
  }

private:
  /// accel-run takes step-00000200 for step 200 alone.
  bool checkName() {
    fs::path path = fs::path(output).lexically_normal();
    if (!path.has_filename())
      path = path.parent_path();
    const std::string name = path.filename().string();
    char own[32];
    std::snprintf(own, sizeof own, "%s%08lld", plan::checkpointPrefix,
                  static_cast<long long>(converted.steps));
    if (!name.starts_with(plan::checkpointPrefix) || name == own)
      return true;
    return conflict("the checkpoint is of step " +
                        std::to_string(converted.steps) +
                        ", and accel-run reads another number from this name",
                    std::string("name it ") + own);
  }

  bool checkDtypes() {
    auto good = [this](const Tensor &tensor, const std::string &name) {
      return isRunDtype(tensor.dtype) ||
             refuse("'" + printable(name) + "' is " + tensor.dtype +
                    ", which accel-run does not read");
    };
    for (const auto &[name, parameter] : trained.parameters) {
      if (!good(*parameter.weight, name))
        return false;
      for (const auto &[kind, state] : parameter.states)
        if (!good(*state, name + "." + kind))
          return false;
    }
    return std::all_of(
        trained.buffers.begin(), trained.buffers.end(),
        [&](const Tensor *buffer) { return good(*buffer, buffer->name); });
  }

  bool conflict(const std::string &message, const std::string &hint) {
    diagnostics.error("conflicting-arguments", output, message, hint);
    return false;
  }

  /// Each step reads as many sequences. The optimizer's own count lacks steps
  /// that were skipped in fp16.
  bool checkSamples() {
    if (given && given != samples)
      return conflict("the checkpoint says that its run has read " +
                          std::to_string(samples) +
                          " sequences, and --samples " + std::to_string(given),
                      "leave --samples out");
    const int64_t steps = converted.steps;
    if (trained.samples || steps == 0)
      return true;
    if (trained.scale ? samples >= steps : samples % steps == 0)
      return true;
    return conflict(
        "--samples " + std::to_string(samples) + " is " +
            (trained.scale ? "less than" : "no multiple of") + " the " +
            std::to_string(steps) + " steps of the checkpoint",
        "N is steps x accumulation x ranks x sequences of a micro-batch");
  }

  /// Of an optimizer that accel-run has, with elements as the parameter's: the
  /// shard that is written has no place for others. Each parameter has those
  /// that accel-run reads.
  bool checkStates() {
    std::set<std::string> kinds;
    bool matrices = true;
    for (const auto &[name, parameter] : trained.parameters)
      for (const auto &[kind, state] : parameter.states) {
        kinds.insert(kind);
        matrices &= parameter.weight->shape.size() == 2;
      }
    if (kinds.empty())
      return keepsNoStates(plan) ||
             refuse("the checkpoint holds weights, and no states of an "
                    "optimizer to go on with",
                    plan ? ""
                         : "give its plan by --plan where SGD has no momentum, "
                           "and so no states; else ");
    optimizer = optimizerOfStates(kinds, trained.optimizers, matrices, plan,
                                  output, diagnostics);
    if (!optimizer)
      return false;
    for (const auto &[name, parameter] : trained.parameters)
      if (!parameter.states.empty() && !checkStates(name, parameter, kinds))
        return false;
    if (!plan)
      return true; // one without any may be frozen, or a buffer
    for (const plan::Parameter &planned : plan->parameters)
      if (planned.trainable && !hasStates(planned))
        if (const TrainedParameter *found = findTrained(trained, planned);
            found && !checkStates(planned.fqn, *found, kinds))
          return false;
    return true;
  }

  bool checkStates(const std::string &name, const TrainedParameter &parameter,
                   const std::set<std::string> &kinds) {
    const std::vector<int64_t> &shape = parameter.weight->shape;
    for (const plan::StateRule &rule : optimizer->states)
      if ((!rule.needs || kinds.count(rule.name)) &&
          plan::OptimizerRule::elements(rule, shape,
                                        shape.empty() ? 1 : shape.front()) &&
          !parameter.states.count(rule.name))
        return refuse("the optimizer has no '" + std::string(rule.name) +
                      "' of '" + printable(name) + "', which " +
                      optimizer->name + " of accel-run keeps");
    return true;
  }

  /// By any of its names.
  bool hasStates(const plan::Parameter &planned) const {
    auto has = [this](const std::string &name) {
      const auto found = trained.parameters.find(name);
      return found != trained.parameters.end() && !found->second.states.empty();
    };
    return has(planned.fqn) ||
           std::any_of(planned.aliases.begin(), planned.aliases.end(), has);
  }

  bool refuse(const std::string &message, const std::string &hint = "") {
    diagnostics.error("not-supported", output, message,
                      hint + "merge writes the weights, and 'init: pretrained' "
                             "in job.yaml starts from them");
    return false;
  }

  void addFlat(const std::string &name, const Tensor &tensor) {
    flat.push_back(flattened(tensor));
    add(name, flat.back());
  }
  void add(const std::string &name, const Tensor &tensor) {
    part().tensors.push_back(
        {name, &tensor, tensor.dtype, tensor.bytes, part().bytes});
    part().bytes += tensor.bytes;
    merged.bytes += tensor.bytes;
    ++merged.tensors;
  }
  MergedPart &part() { return merged.parts.front(); }

  void layOut() {
    merged.parts.emplace_back();
    part().name = shardName;
    Json layout = Json::array();
    for (const auto &[name, parameter] : trained.parameters) {
      const std::string unit = std::to_string(layout.size());
      const Tensor &weight = *parameter.weight;
      const Json pieces =
          Json::array({{{"fqn", name},
                        {"shape", weight.shape},
                        {"begin", 0},
                        {"end", weight.bytes / elementBytes(weight.dtype)},
                        {"offset", 0}}});
      addFlat(unit + ".param", weight);
      layout.push_back({{"prefix", unit + "."}, {"pieces", pieces}});
      for (const auto &[kind, state] : parameter.states) {
        const bool apart = standsApart(kind);
        const std::string prefix = unit + (apart ? "-" + kind : "") + ".";
        addFlat(prefix + kind, *state);
        if (apart)
          layout.push_back(
              {{"prefix", prefix}, {"state", kind}, {"pieces", pieces}});
      }
      converted.states += int64_t(parameter.states.size());
    }
    for (const Tensor *buffer : trained.buffers)
      add(runBufferPrefix + buffer->name, *buffer);
    content.update(layout.dump());
    content.update(std::to_string(converted.steps));
    part().metadata = {{"format", runShardFormat},
                       {"run", runName},
                       {"step", std::to_string(converted.steps)},
                       {"layout", layout.dump()}};
    converted.parameters = int64_t(trained.parameters.size());
    converted.bytes = merged.bytes;
    converted.files = 1;
  }

  bool standsApart(const std::string &kind) const {
    return std::any_of(optimizer->states.begin(), optimizer->states.end(),
                       [&](const plan::StateRule &rule) {
                         return kind == rule.name && plan::hasOwnLayout(rule);
                       });
  }

  /// Gives the file's bytes from `begin` on; its size, or -1 where it cannot be
  /// read.
  static int64_t readFrom(File &file, int64_t begin,
                          const std::function<void(std::string_view)> &take) {
    std::string buffer(bufferBytes, '\0');
    int64_t at = begin;
    ssize_t n;
    while ((n = file.read(buffer.data(), buffer.size(), at)) > 0) {
      take({buffer.data(), size_t(n)});
      at += n;
    }
    return n < 0 ? -1 : at;
  }

  /// Names the run after what it holds, so that two checkpoints of one layout
  /// are not taken for one run; the header has room for a name of this length.
  bool nameRun(File &file) {
    const std::string old = "\"run\":\"" + runName + "\"";
    unsigned char size[8];
    if (file.read(reinterpret_cast<char *>(size), sizeof size, 0) != 8)
      return false;
    uint64_t bytes = 0;
    for (size_t i = 0; i < 8; ++i)
      bytes |= uint64_t(size[i]) << (8 * i);
    std::string header(bytes, '\0');
    if (file.read(header.data(), bytes, 8) != ssize_t(bytes))
      return false;
    if (readFrom(file, int64_t(8 + bytes), [this](std::string_view block) {
          content.update(std::to_string(SliceChecksums::extend(0, block)) +
                         ",");
        }) < 0)
      return false;
    const size_t at = header.find(old);
    runName = plan::convertedRun + content.hexDigest().substr(0, 16);
    return file.write("\"run\":\"" + runName + "\"", int64_t(8 + at)) &&
           file.sync();
  }

  bool writeState(const std::string &folder) {
    const std::string path = (fs::path(folder) / shardName).string();
    File file(path, O_RDWR);
    plan::Sha256 digest;
    const int64_t bytes =
        file.good() && nameRun(file)
            ? readFrom(file, 0,
                       [&](std::string_view block) { digest.update(block); })
            : -1;
    if (bytes < 0)
      return reportUnwritten(path, converted.bytes, diagnostics);
    // Without one, that which torch's GradScaler begins with.
    const LossScale scale = trained.scale.value_or(LossScale());
    Json json = {
        {"format", 2},
        {"run", runName},
        {"step", converted.steps},
        {"micro_batches", samples},
        {"micro_batch_size", 1},
        {"optimizer_steps", double(trained.optimizerSteps())},
        {"scaler", {{"scale", scale.scale}, {"good_steps", scale.goodSteps}}},
        {"ranks", 1}};
    json["files"] = {{{"name", shardName},
                      {"bytes", bytes},
                      {"sha256", digest.hexDigest()}}};
    plan::Sha256 own;
    own.update(json.dump());
    json["sha256"] = own.hexDigest();
    return writeSmallFile((fs::path(folder) / "state.json").string(),
                          json.dump(2) + "\n", converted.bytes, diagnostics);
  }

  const Trained &trained;
  const plan::Plan *plan;
  const plan::OptimizerDescription *optimizer = nullptr; // where it has states
  const int64_t samples, given; // given: 0 where it is not
  const std::string &output;
  DiagnosticEngine &diagnostics;
  std::list<Tensor> flat;
  Merged merged;
  plan::Sha256 content; // the same input, the same name
  std::string runName = plan::convertedRun + std::string(16, '0');
  Converted converted;
};

} // namespace

std::optional<Converted> convertToRun(const Trained &trained,
                                      const plan::Plan *plan, int64_t samples,
                                      const std::string &output,
                                      const std::function<void(int64_t)> &done,
                                      DiagnosticEngine &diagnostics) {
  return RunWriter(trained, plan, samples, output, diagnostics).run(done);
}

} // namespace accel::checkpoint
