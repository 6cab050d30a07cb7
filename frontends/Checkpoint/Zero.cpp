//===- Zero.cpp - Reading files of DeepSpeed ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Zero.h"
#include "frontends/Checkpoint/TorchNames.h"
#include "frontends/Checkpoint/TorchSave.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

namespace accel::checkpoint {

namespace {

constexpr std::string_view moduleEnd = "_model_states.pt";
constexpr std::string_view optimizerEnd = "_optim_states.pt";

bool allows(std::string_view name) {
  static const std::set<std::string_view> known = {
      "deepspeed.runtime.fp16.loss_scaler LossScaler",
      "deepspeed.runtime.fp16.loss_scaler DynamicLossScaler",
      "deepspeed.runtime.zero.config ZeroStageEnum",
      "deepspeed.utils.tensor_fragment fragment_address",
      "__builtin__ getattr", // of an enumeration, by Python 3.11's first
      "__builtin__ set"};
  return known.count(name) || isSavedName(name);
}

/// Takes `begin` and the number behind it away.
std::optional<int64_t> takeNumber(std::string_view &name,
                                  std::string_view begin) {
  if (!name.starts_with(begin))
    return std::nullopt;
  const char *first = name.data() + begin.size(),
             *end = name.data() + name.size();
  int64_t value = 0;
  const auto [next, error] = std::from_chars(first, end, value);
  if (error != std::errc() || value < 0)
    return std::nullopt;
  name.remove_prefix(size_t(next - name.data()));
  return value;
}

/// (bf16_)zero_pp_rank_R_mp_rank_00_optim_states.pt and the like. Files of
/// layers and experts have other names.
void readName(std::string_view name, ZeroFile &file) {
  for (std::string_view half : {"bf16_", "fp16_"})
    if (name.starts_with(half))
      name.remove_prefix(half.size());
  if (name.starts_with("zero_pp_rank_")) {
    file.rank = takeNumber(name, "zero_pp_rank_");
    if (!file.rank || !name.starts_with("_"))
      return;
    name.remove_prefix(1);
  }
  const auto model = takeNumber(name, "mp_rank_");
  if (!model)
    return;
  file.whole = *model == 0;
  if (name == moduleEnd)
    file.kind = ZeroFile::Kind::Module;
  else if (name == optimizerEnd && file.rank)
    file.kind = ZeroFile::Kind::Optimizer;
}

class ZeroReader {
public:
  ZeroReader(const Pickle &pickle, const std::string &path, ZeroFile &file,
             DiagnosticEngine &diagnostics)
      : pickle(pickle), path(path), file(file), diagnostics(diagnostics) {}

  bool run() {
    if (file.kind == ZeroFile::Kind::Module)
      return takeModule(pickle.root());
    if (file.kind != ZeroFile::Kind::Optimizer)
      return true;
    auto states = pickle.field(pickle.root(), "optimizer_state_dict");
    return states ? takeOptimizer(*states) : fail("optimizer_state_dict");
  }

private:
  using Kind = Pickle::Kind;

  bool fail(const std::string &what) {
    diagnostics.error("invalid-checkpoint", path,
                      what + " is not what DeepSpeed writes",
                      "save the checkpoint again");
    return false;
  }

  /// An enumeration is its class, called with the number, or asked for a name.
  std::optional<int64_t> number(ValueId id) const {
    if (pickle.typeOf(id).ends_with(" ZeroStageEnum") ||
        pickle.typeOf(id) == "__builtin__ getattr")
      for (ValueId argument : pickle.at(pickle.at(id).items[1]).items) {
        if (auto value = pickle.integer(argument))
          return value;
        const auto name = pickle.text(argument);
        if (name == "optimizer_states")
          return 1;
        if (name == "gradients")
          return 2;
        if (name == "weights")
          return 3;
      }
    return pickle.integer(id);
  }
  bool isNone(std::optional<ValueId> id) const {
    return !id || pickle.is(*id, Kind::None);
  }

  bool takeOptimizer(ValueId states) {
    if (auto stage = pickle.field(states, "zero_stage"))
      file.stage = number(*stage).value_or(0);
    else // DeepSpeed's BF16_Optimizer says none: it cuts as ZeRO 1 does
      file.stage = pickle.field(states, "fp32_flat_groups") ? 3 : 1;
    if (file.stage < 1 || file.stage > 3)
      return fail("the ZeRO stage");
    if (auto base =
            pickle.field(states, file.stage == 3 ? "optimizer_state_dict"
                                                 : "base_optimizer_state")) {
      file.updates = paramGroupsAt(pickle, *base);
      file.counts = stepsAt(pickle, *base);
    }
    if (auto ranks = pickle.field(states, "partition_count")) {
      if (auto one = pickle.integer(*ranks))
        file.ranks.push_back(*one);
      else if (!takeNumbers(*ranks, file.ranks))
        return fail("partition_count");
    }
    if (auto groups = pickle.field(states, "param_alignment_paddings");
        !isNone(groups))
      for (ValueId group : pickle.at(*groups).items)
        if (!takeNumbers(group, file.paddings.emplace_back()))
          return fail("param_alignment_paddings");
    file.experts = !isNone(pickle.field(states, "ds_zero_partition_groups"));
    return true;
  }

  bool takeModule(ValueId root) {
    auto groups = pickle.field(root, "param_shapes");
    if (!isNone(groups)) {
      if (!pickle.is(*groups, Kind::List))
        return fail("param_shapes");
      for (ValueId group : pickle.at(*groups).items)
        if (!takeShapes(group, file.groups.emplace_back()))
          return fail("param_shapes");
    }
    auto frozen = pickle.field(root, "frozen_param_shapes");
    if (!isNone(frozen) && !takeShapes(*frozen, file.frozen))
      return fail("frozen_param_shapes");
    if (auto shared = pickle.field(root, "shared_params")) {
      const auto entries = pickle.entries(*shared);
      for (size_t i = 0; i + 1 < entries.size(); i += 2) {
        auto name = pickle.text(entries[i]);
        auto other = pickle.text(entries[i + 1]);
        if (!name || !other)
          return fail("shared_params");
        file.shared.emplace_back(*name, *other);
      }
    }
    if (auto names = pickle.field(root, "buffer_names"))
      for (ValueId item : pickle.at(*names).items)
        if (auto name = pickle.text(item))
          file.buffers.emplace_back(*name);
    if (auto steps = pickle.field(root, "global_steps"))
      file.steps = pickle.integer(*steps);
    if (auto skipped = pickle.field(root, "skipped_steps"))
      file.skipped = pickle.integer(*skipped).value_or(0);
    if (file.skipped < 0 || (file.steps && file.skipped > *file.steps))
      return fail("skipped_steps");
    for (const char *key : {"ds_autoep_layers", "autoep_layers"})
      file.experts |= !isNone(pickle.field(root, key));
    takeBeside(root);
    return true;
  }

  /// The engine's own keys (_save_checkpoint and _save_moe_checkpoint in its
  /// runtime/engine.py, those of older releases too); it adds a script's.
  void takeBeside(ValueId root) {
    static const std::map<std::string_view, std::pair<const char *, Beside>>
        states = {{"lr_scheduler",
                   {"learning-rate schedule (DeepSpeed)", Beside::Schedule}},
                  {"data_sampler",
                   {"position of a sampler (DeepSpeed)", Beside::Sampler}},
                  {"random_ltd",
                   {"schedule of random layer token dropping (DeepSpeed)",
                    Beside::Script}}};
    static const std::set<std::string_view> others = {
        "module",
        "buffer_names",
        "optimizer",
        "param_shapes",
        "frozen_param_shapes",
        "shared_params",
        "frozen_param_fragments",
        "skipped_steps",
        "global_steps",
        "global_samples",
        "dp_world_size",
        "mp_world_size",
        "checkpoint_parallel_dimensions",
        "ds_config",
        "ds_version",
        "num_experts",
        "ds_autoep_layers",
        "autoep_layers",
        "universal_checkpoint_info",
        "folding",
        "sparse_tensor_module_names",
        "csr_tensor_module_names"};
    const auto entries = pickle.entries(root);
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      const auto key = pickle.text(entries[i]);
      if (!key || isNone(entries[i + 1]) || others.count(*key))
        continue;
      if (const auto state = states.find(*key); state != states.end())
        file.beside.insert(state->second);
      else
        file.beside["the script's own '" + std::string(*key) +
                    "' (DeepSpeed)"] = Beside::Script;
    }
  }

  bool takeNumbers(ValueId id, std::vector<int64_t> &into) {
    for (ValueId item : pickle.at(id).items) {
      auto value = pickle.integer(item);
      if (!value || *value < 0)
        return false;
      into.push_back(*value);
    }
    return pickle.is(id, Kind::List) || pickle.is(id, Kind::Tuple);
  }

  /// {name: torch.Size([2, 3])}
  bool takeShapes(ValueId id, ZeroFile::Shapes &into) {
    const auto entries = pickle.entries(id);
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      auto name = pickle.text(entries[i]);
      ValueId size = entries[i + 1];
      if (pickle.typeOf(size) == "torch Size") {
        const PickleValue &arguments = pickle.at(pickle.at(size).items[1]);
        if (arguments.items.size() != 1)
          return false;
        size = arguments.items[0];
      }
      std::vector<int64_t> shape;
      if (!name || !takeNumbers(size, shape))
        return false;
      into.emplace_back(*name, std::move(shape));
    }
    return true;
  }

  const Pickle &pickle;
  const std::string &path;
  ZeroFile &file;
  DiagnosticEngine &diagnostics;
};

} // namespace

bool isZeroName(std::string_view name) {
  return name.ends_with(moduleEnd) || name.ends_with("-model_states.pt") ||
         name.ends_with(optimizerEnd);
}

bool parseZero(std::string_view bytes, const std::string &path, Part &part,
               DiagnosticEngine &diagnostics) {
  Pickle::Problem problem;
  auto pickle = Pickle::parse(bytes, allows, problem);
  if (!pickle)
    return reportPickle(problem, path, diagnostics);
  auto file = std::make_shared<ZeroFile>();
  readName(std::filesystem::path(path).filename().string(), *file);
  if (!takeSavedTensors(*pickle, path, part, diagnostics) ||
      !ZeroReader(*pickle, path, *file, diagnostics).run())
    return false;
  part.zero = std::move(file);
  return true;
}

bool readZero(const std::string &path, Part &part,
              DiagnosticEngine &diagnostics) {
  const auto bytes = readDataPickle(path, diagnostics);
  return bytes && parseZero(*bytes, path, part, diagnostics);
}

std::string describeZero(const Checkpoint &read) {
  int64_t ranks = 0, stage = 0;
  for (const Part &part : read.parts)
    if (part.zero && part.unread.empty() &&
        part.zero->kind == ZeroFile::Kind::Optimizer) {
      stage = part.zero->stage;
      for (int64_t count : part.zero->ranks)
        ranks = std::max(ranks, count);
    }
  if (stage == 0)
    return "";
  return "ZeRO " + std::to_string(stage) + " on " + std::to_string(ranks) +
         (ranks == 1 ? " rank" : " ranks");
}

} // namespace accel::checkpoint
