//===- Trained.cpp - Weights and states of an optimizer -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Trained.h"
#include "frontends/Checkpoint/PieceReader.h"
#include "frontends/Checkpoint/RunShards.h"
#include "frontends/Checkpoint/Zero.h"

#include <algorithm>
#include <cmath>

namespace accel::checkpoint {

namespace {

/// Steps beyond which a float32 counts no further.
constexpr double maxSteps = 1 << 24;

class TrainedReader {
public:
  TrainedReader(const Checkpoint &read, DiagnosticEngine &diagnostics)
      : read(read), diagnostics(diagnostics), reader(diagnostics) {}

  std::optional<Trained> run() {
    const bool good =
        read.format == FolderFormat::AccelRun ? takeRunShards() : takeParts();
    if (!good)
      return std::nullopt;
    return std::move(trained);
  }

private:
  bool fail(const std::string &code, const std::string &message,
            const std::string &hint) {
    diagnostics.error(code, read.folder, message, hint);
    return false;
  }

  bool takeRunShards() {
    auto shards = readRunShards(read, diagnostics);
    if (!shards)
      return false;
    trained.steps = shards->optimizerSteps;
    for (auto &[kind, part] : shards->kinds) {
      trained.owner.made.push_back(std::move(part));
      for (const Tensor &tensor : trained.owner.made.back().tensors) {
        TrainedParameter &parameter = trained.parameters[tensor.name];
        if (kind == "param")
          parameter.weight = &tensor;
        else
          parameter.states[kind] = &tensor;
      }
    }
    trained.owner.made.push_back(std::move(shards->buffers));
    for (const Tensor &tensor : trained.owner.made.back().tensors)
      trained.buffers.push_back(&tensor);
    for (const auto &[name, parameter] : trained.parameters)
      if (!parameter.weight)
        return fail("invalid-checkpoint",
                    "there are states of '" + printable(name) +
                        "', and no weights",
                    "copy the files again");
    return true;
  }

  /// The keys of a state: "optimizer", "state", parameter, kind. A file of an
  /// optimizer alone begins with "state".
  static bool isState(const std::vector<std::string> &path) {
    return path.size() >= 3 && path[path.size() - 3] == "state";
  }

  bool takeParts() {
    // Of an optimizer's own folder, which Accelerate writes beside.
    auto merged = planMerge(read, {}, diagnostics);
    if (!merged)
      return false;
    trained.owner = std::move(*merged);
    for (const MergedPart &part : trained.owner.parts)
      for (const MergedTensor &tensor : part.tensors)
        trained.parameters[tensor.name].weight = tensor.source;
    bool zero = false;
    for (const Part &part : read.parts) {
      zero |= part.zero != nullptr;
      if (part.zero)
        continue;
      for (const Tensor &tensor : part.tensors)
        if (isState(tensor.path) && !takeState(tensor))
          return false;
    }
    return !zero || takeZeroStates();
  }

  /// DeepSpeed numbers groups of parameters; they have names all the same.
  bool takeZeroStates() {
    auto states = assembleZeroStates(read, diagnostics);
    if (!states)
      return false;
    for (const Tensor *step : states->steps)
      if (!takeStep(*step))
        return false;
    if (!trained.steps)
      trained.steps = states->saved;
    for (auto &[kind, part] : states->kinds) {
      trained.owner.made.push_back(std::move(part));
      for (const Tensor &tensor : trained.owner.made.back().tensors)
        if (auto found = trained.parameters.find(tensor.name);
            found != trained.parameters.end())
          found->second.states[kind] = &tensor;
    }
    return true;
  }

  bool takeState(const Tensor &tensor) {
    const std::string &name = tensor.path[tensor.path.size() - 2];
    const std::string &kind = tensor.path.back();
    auto found = trained.parameters.find(name);
    if (found == trained.parameters.end())
      return fail("not-supported",
                  "the optimizer keeps states of '" + printable(name) +
                      "', which is the name of no parameter",
                  "save them by torch's get_optimizer_state_dict, as "
                  "Accelerate does with FSDP");
    if (kind == "step")
      return takeStep(tensor);
    if (tensor.shape != found->second.weight->shape)
      return fail("not-supported",
                  "'" + printable(kind) + "' of '" + printable(name) +
                      "' has another shape than the parameter",
                  "states of AdamW and SGD are converted");
    if (storedDtypeOf(tensor.dtype).empty())
      return fail("not-supported",
                  "'" + printable(kind) + "' of '" + printable(name) + "' is " +
                      tensor.dtype + ", which safetensors cannot hold",
                  "convert it in torch");
    for (const Piece &piece : tensor.pieces)
      if (piece.file.empty() || piece.transformed || !piece.contiguous)
        return fail("not-supported",
                    "'" + printable(kind) + "' of '" + printable(name) +
                        "' is compressed or stored with strides",
                    "save the checkpoint without stream transforms");
    found->second.states[kind] = &tensor;
    return true;
  }

  bool takeStep(const Tensor &tensor) {
    const auto value = reader.number(tensor);
    if (!value)
      return false;
    if (!(*value >= 0 && *value <= maxSteps) || *value != std::floor(*value))
      return fail("invalid-checkpoint",
                  "the optimizer has done " + std::to_string(*value) +
                      " steps of '" +
                      printable(tensor.path[tensor.path.size() - 2]) + "'",
                  "save the checkpoint again");
    const auto steps = int64_t(*value);
    if (trained.steps && *trained.steps != steps)
      return fail("not-supported",
                  "the optimizer has done " + std::to_string(*trained.steps) +
                      " steps of one parameter and " + std::to_string(steps) +
                      " of another",
                  "accel-run steps all of them together");
    trained.steps = steps;
    return true;
  }

  const Checkpoint &read;
  DiagnosticEngine &diagnostics;
  PieceReader reader;
  Trained trained;
};

} // namespace

std::optional<Trained> readTrained(const Checkpoint &read,
                                   DiagnosticEngine &diagnostics) {
  return TrainedReader(read, diagnostics).run();
}

} // namespace accel::checkpoint
