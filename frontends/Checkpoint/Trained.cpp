//===- Trained.cpp - Weights and states of an optimizer -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Trained.h"
#include "frontends/Checkpoint/ConvertedStates.h"
#include "frontends/Checkpoint/NumberedStates.h"
#include "frontends/Checkpoint/PieceReader.h"
#include "frontends/Checkpoint/RunShards.h"
#include "frontends/Checkpoint/SavedSteps.h"
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/TorchSave.h"
#include "frontends/Checkpoint/Zero.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace accel::checkpoint {

namespace {

/// Steps beyond which a float32 counts no further.
constexpr double maxSteps = 1 << 24;

class TrainedReader {
public:
  TrainedReader(const Checkpoint &read, const plan::Plan *plan, int64_t given,
                DiagnosticEngine &diagnostics)
      : read(read), plan(plan), given(given), diagnostics(diagnostics),
        reader(diagnostics) {}

  std::optional<Trained> run() {
    const bool good =
        read.format == FolderFormat::AccelRun ? takeRunShards() : takeParts();
    if (!good || !countSteps() || !takeScale())
      return std::nullopt;
    separateBuffers();
    nameTied();
    leaveBehind();
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
    trained.stepsRead = shards->step;
    trained.samples = shards->samples;
    trained.scale = shards->scale;
    if (shards->kinds.count("momentum_buffer"))
      trained.optimizers = {shards->apart.count("momentum_buffer") ? "muon"
                                                                   : "sgd"};
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

  /// Trainers other than accel-run save buffers as they save parameters; a plan
  /// tells which are which.
  void separateBuffers() {
    if (!plan)
      return;
    Part &part = trained.owner.made.emplace_back();
    for (const plan::Buffer &buffer : plan->buffers)
      if (auto found = trained.parameters.find(buffer.fqn);
          found != trained.parameters.end()) {
        // The keys around a model are part of the name that it is saved by.
        part.tensors.push_back(*found->second.weight);
        part.tensors.back().name = buffer.fqn;
        trained.parameters.erase(found);
      }
    for (const Tensor &tensor : part.tensors)
      trained.buffers.push_back(&tensor);
  }

  /// A model that saves a tied parameter by each of its names may have states
  /// of another than the plan's, which its groups list.
  void nameTied() {
    if (!plan)
      return;
    for (const plan::Parameter &parameter : plan->parameters) {
      auto own = trained.parameters.find(parameter.fqn);
      for (const std::string &alias : parameter.aliases)
        if (auto other = trained.parameters.find(alias);
            other != trained.parameters.end() &&
            own != trained.parameters.end() && own->second.states.empty())
          own->second.states.swap(other->second.states);
    }
  }

  /// With the keys "state", parameter, kind; others are of groups.
  static bool isState(const Tensor &tensor) {
    return tensor.optimizer && tensor.path.size() == *tensor.optimizer + 3 &&
           tensor.path[*tensor.optimizer] == "state";
  }

  bool takeParts() {
    // Of an optimizer's own folder, which Accelerate writes beside.
    auto merged = planMerge(read, {}, diagnostics);
    if (!merged)
      return false;
    trained.owner = std::move(*merged);
    for (const auto &[what, files] : trained.owner.unread)
      trained.leftBehind[what].files = files;
    for (const MergedPart &part : trained.owner.parts)
      for (const MergedTensor &tensor : part.tensors)
        trained.parameters[tensor.name].weight = tensor.source;
    bool zero = false;
    for (const Part &part : read.parts) {
      zero |= part.zero != nullptr;
      // A damaged one stays unread here, others were refused.
      if (part.zero || !part.damage.empty() || !part.unread.empty())
        continue;
      if (!takeStates(part))
        return false;
    }
    return !zero || takeZeroStates();
  }

  /// DeepSpeed numbers groups of parameters; they have names all the same.
  bool takeZeroStates() {
    auto states = assembleZeroStates(read, diagnostics);
    if (!states || !checkUpdates(states->groups, read.folder, diagnostics))
      return false;
    std::set<std::string> kinds;
    for (const auto &[kind, part] : states->kinds)
      kinds.insert(kind);
    if (!takeOptimizer(kinds, states->groups, {}, read.folder))
      return false;
    for (const ParamGroup &group : states->groups)
      compare(group, [](const std::string &name) { return name; });
    for (const Tensor *step : states->steps)
      if (!takeStep(*step))
        return false;
    for (const auto &[key, steps] : states->counts)
      if (!takeStep(steps, key))
        return false;
    trained.stepsRead = states->saved;
    if (!trained.steps && states->saved)
      trained.steps = *states->saved - states->skipped;
    for (auto &[kind, part] : states->kinds) {
      trained.owner.made.push_back(std::move(part));
      for (const Tensor &tensor : trained.owner.made.back().tensors)
        if (auto found = trained.parameters.find(tensor.name);
            found != trained.parameters.end())
          found->second.states[kind] = &tensor;
    }
    return true;
  }

  /// What the names of hyperparameters say of states: those in `groups`, which
  /// are whole, and those `beside` them in a .metadata.
  bool takeOptimizer(const std::set<std::string> &kinds,
                     const std::vector<ParamGroup> &groups,
                     std::set<std::string> beside, const std::string &path) {
    // A script may save a part of them; those of Adam have its `betas`.
    if (!checkScaled(beside, path, diagnostics) ||
        (beside.count("betas") && !checkAdam(beside, kinds, path, diagnostics)))
      return false;
    for (const ParamGroup &group : groups) {
      const std::set<std::string> own = group.hyperparameters();
      if (!checkScaled(own, path, diagnostics) ||
          !checkAdam(own, kinds, path, diagnostics))
        return false;
      beside.insert(own.begin(), own.end());
    }
    if (auto name = optimizerOfGroups(kinds, beside); !name.empty())
      trained.optimizers.insert(std::move(name));
    return true;
  }

  /// Names of hyperparameters in a .metadata that lie beside a state: below
  /// "param_groups" with the number of a group, or joined to a parameter's
  /// name.
  static std::set<std::string> hyperparametersBeside(const Part &part,
                                                     const Tensor &state) {
    std::set<std::string> names;
    const size_t depth = state.path.size() - 3;
    for (const Tensor &value : part.values)
      if (isOfGroups(value.path) && value.path.size() > depth &&
          std::equal(state.path.begin(), state.path.begin() + depth,
                     value.path.begin()) &&
          value.path[depth].starts_with("param_groups"))
        names.insert(value.name.substr(value.name.rfind('.') + 1));
    return names;
  }

  /// A part may have several optimizers, which number parameters each.
  bool takeStates(const Part &part) {
    std::map<std::string, Part> optimizers; // by the keys around
    for (const Tensor &tensor : part.tensors)
      if (isState(tensor)) {
        // Names count the items of lists too, keys of torch.save do not.
        const std::string own = joinKeys(tensor.path, tensor.path.size() - 3);
        optimizers[tensor.name.ends_with(own)
                       ? tensor.name.substr(0, tensor.name.size() - own.size())
                       : ""]
            .tensors.push_back(tensor);
      }
    if (optimizers.empty())
      return checkStateless(part);
    for (auto &[around, states] : optimizers) {
      states.path = part.path;
      states.format = part.format;
      trained.owner.made.push_back(std::move(states));
      if (!takeStates(part, trained.owner.made.back()))
        return false;
    }
    return true;
  }

  /// `states` are those of one of the part's optimizers.
  bool takeStates(const Part &part, const Part &states) {
    const Tensor &state = states.tensors.front();
    std::set<std::string> kinds;
    for (const Tensor &tensor : states.tensors)
      if (tensor.path.back() != "step")
        kinds.insert(tensor.path.back());
    if (!checkFactored(kinds, read.folder, diagnostics))
      return false;
    SavedOptimizer saved;
    std::string path = read.folder;
    if (part.format == PartFormat::TorchSave && !state.pieces.empty()) {
      path = state.pieces.front().file;
      const std::vector<std::string> inside(state.path.begin(),
                                            state.path.end() - 3);
      auto own = readSavedOptimizer(path, inside, diagnostics);
      if (!own || !takeTensors(part, inside, own->groups, diagnostics) ||
          !checkUpdates(own->groups, path, diagnostics))
        return false;
      saved = std::move(*own);
    }
    if (!takeOptimizer(kinds, saved.groups, hyperparametersBeside(part, state),
                       path))
      return false;
    std::map<std::string, std::string> names;
    if (numbersParameters(states)) {
      // Groups are compared by shapes of states, which these have too.
      if (!checkKnown(kinds, read.folder, diagnostics))
        return false;
      if (part.format == PartFormat::TorchDcp)
        return fail("not-supported",
                    "the optimizer numbers its parameters in place of naming "
                    "them, and torch.distributed.checkpoint keeps the "
                    "param_groups that list them as pickles, which are not "
                    "read",
                    "save what torch.distributed.checkpoint.state_dict."
                    "get_optimizer_state_dict returns, which names them");
      auto numbered = namesOfNumbers(
          read, states, saved.groups, plan,
          [this](const std::string &name) {
            return trained.parameters.count(name) > 0;
          },
          diagnostics);
      if (!numbered)
        return false;
      names = std::move(*numbered);
    }
    auto nameOf = [&](const std::string &key) {
      const auto found = names.find(key);
      return found == names.end() ? key : found->second;
    };
    for (const Tensor &tensor : states.tensors)
      if (!takeState(tensor, nameOf(tensor.path[tensor.path.size() - 2])))
        return false;
    for (const auto &[key, steps] : saved.steps)
      if (!takeStep(steps, key))
        return false;
    for (const ParamGroup &group : saved.groups)
      compare(group, nameOf);
    return true;
  }

  /// An optimizer that keeps no states may make another update all the same.
  bool checkStateless(const Part &part) {
    if (part.format != PartFormat::TorchSave || !keepsNoStates(plan))
      return true;
    const std::string path =
        (std::filesystem::path(read.folder) / part.path).string();
    const auto saved = readSavedOptimizer(path, {}, diagnostics);
    return saved && checkUpdates(saved->groups, path, diagnostics) &&
           takeOptimizer({}, saved->groups, {}, path);
  }

  /// With the plan's groups that parameters of `group` are in.
  template <typename NameOf>
  void compare(const ParamGroup &group, const NameOf &nameOf) {
    if (!plan)
      return;
    std::set<std::string> own;
    for (const std::string &key : group.params)
      own.insert(nameOf(key));
    std::set<size_t> planned;
    for (const plan::Parameter &parameter : plan->parameters)
      if (parameter.trainable &&
          (own.count(parameter.fqn) ||
           std::any_of(
               parameter.aliases.begin(), parameter.aliases.end(),
               [&](const std::string &alias) { return own.count(alias); })))
        planned.insert(size_t(parameter.group));
    for (size_t index : planned)
      for (Replaced &each : replacedBy(group, plan->job.optimizer, index))
        if (std::find(trained.replaced.begin(), trained.replaced.end(), each) ==
            trained.replaced.end())
          trained.replaced.push_back(std::move(each));
  }

  /// A tied parameter may be saved by another of its names.
  std::map<std::string, TrainedParameter>::iterator
  findParameter(const std::string &name) {
    auto found = trained.parameters.find(name);
    if (!plan || found != trained.parameters.end())
      return found;
    for (const plan::Parameter &parameter : plan->parameters) {
      std::vector<std::string> names = parameter.aliases;
      names.push_back(parameter.fqn);
      if (std::find(names.begin(), names.end(), name) == names.end())
        continue;
      for (const std::string &each : names)
        if (auto other = trained.parameters.find(each);
            other != trained.parameters.end())
          return other;
    }
    return found;
  }

  bool takeState(const Tensor &tensor, const std::string &name) {
    const std::string &kind = tensor.path.back();
    auto found = findParameter(name);
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
                  convertedStates);
    if (storedDtypeOf(tensor.dtype).empty())
      return fail("not-supported",
                  "'" + printable(kind) + "' of '" + printable(name) + "' is " +
                      whyNotStored(tensor.dtype),
                  "convert it in torch");
    for (const Piece &piece : tensor.pieces)
      if (piece.transformed || !piece.contiguous)
        return fail("not-supported",
                    "'" + printable(kind) + "' of '" + printable(name) +
                        "' is compressed or stored with strides",
                    "save the checkpoint without stream transforms");
    found->second.states[kind] = &tensor;
    return true;
  }

  bool takeStep(const Tensor &tensor) {
    const auto value = reader.number(tensor);
    return value && takeStep(*value, tensor.path[tensor.path.size() - 2]);
  }

  bool takeStep(double value, const std::string &key) {
    if (!(value >= 0 && value <= maxSteps) || value != std::floor(value))
      return fail("invalid-checkpoint",
                  "the optimizer has done " + std::to_string(value) +
                      " steps of '" + printable(key) + "'",
                  "save the checkpoint again");
    const auto steps = int64_t(value);
    if (trained.steps && *trained.steps != steps)
      return fail("not-supported",
                  "the optimizer has done " + std::to_string(*trained.steps) +
                      " steps of one parameter and " + std::to_string(steps) +
                      " of another",
                  "accel-run steps all of them together");
    trained.steps = steps;
    return true;
  }

  /// Optimizers without a bias correction, as SGD, keep no count.
  bool countSteps() {
    if (!trained.stepsRead)
      trained.stepsRead = trainerSteps(read);
    if (given && trained.steps && *trained.steps != given)
      return fail("conflicting-arguments",
                  "the checkpoint says that its optimizer has done " +
                      std::to_string(*trained.steps) + " steps, and --steps " +
                      std::to_string(given),
                  "leave --steps out");
    if (given) {
      trained.steps = given;
    } else if (!trained.steps && (trained.hasStates() || keepsNoStates(plan))) {
      if (auto beside = stepsBeside(read)) {
        trained.steps = beside->steps;
        trained.stepsFrom = std::move(beside->from);
      }
    }
    return true;
  }

  /// scaler.pt of Accelerate and the Trainer: GradScaler.state_dict().
  bool takeScale() {
    const std::string path =
        (std::filesystem::path(read.folder) / "scaler.pt").string();
    if (std::none_of(read.parts.begin(), read.parts.end(),
                     [](const Part &part) { return part.path == "scaler.pt"; }))
      return true;
    return takeSavedPickle(path, diagnostics, [&](const Pickle &pickle) {
      return takeScale(path, pickle);
    });
  }

  bool takeScale(const std::string &path, const Pickle &pickle) {
    if (pickle.entries(pickle.root()).empty() &&
        pickle.is(pickle.root(), Pickle::Kind::Dict))
      return true; // of a scaler that is not enabled
    const auto scale = pickle.field(pickle.root(), "scale");
    const auto steps = pickle.field(pickle.root(), "_growth_tracker");
    const auto good = steps ? pickle.integer(*steps) : std::nullopt;
    if (!scale || !pickle.is(*scale, Pickle::Kind::Float) || !good ||
        *good < 0 || !(pickle.at(*scale).real > 0)) {
      diagnostics.error("invalid-checkpoint", path,
                        "holds no scale and steps of a GradScaler",
                        "save the checkpoint again");
      return false;
    }
    trained.scale = LossScale{pickle.at(*scale).real, *good};
    return true;
  }

  /// Accelerate's and the Trainer's files that are known by their names alone,
  /// and what is beside the states in those of DeepSpeed.
  void leaveBehind() {
    for (const Part &part : read.parts) {
      if (part.zero && part.unread.empty())
        for (const auto &[meaning, what] : part.zero->beside) {
          LeftBehind &left = trained.leftBehind[meaning];
          left.what = what;
          left.files.push_back(part.path);
        }
      if (part.format == PartFormat::ByName && part.unread.empty() &&
          part.beside != Beside::Scaler && part.beside != Beside::Tag) {
        LeftBehind &left = trained.leftBehind[part.meaning];
        left.what = part.beside;
        left.files.push_back(part.path);
      }
    }
  }

  const Checkpoint &read;
  const plan::Plan *plan;
  const int64_t given; // steps; 0: none
  DiagnosticEngine &diagnostics;
  PieceReader reader;
  Trained trained;
};

} // namespace

std::optional<Trained> readTrained(const Checkpoint &read,
                                   const plan::Plan *plan, int64_t steps,
                                   DiagnosticEngine &diagnostics) {
  return TrainedReader(read, plan, steps, diagnostics).run();
}

bool Trained::hasStates() const {
  return std::any_of(
      parameters.begin(), parameters.end(),
      [](const auto &parameter) { return !parameter.second.states.empty(); });
}

} // namespace accel::checkpoint
