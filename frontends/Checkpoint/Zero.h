//===- Zero.h - Files of DeepSpeed ------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// DeepSpeed's engine saves a folder of files of torch.save: of each rank its
// optimizer's, with the rank's part of flat fp32 weights, and the module's
// states, which say how parameters lie in the flat weights. ZeRO 1 and 2 cut
// the flat weights of a group of parameters into one part a rank; ZeRO 3 cuts
// each parameter, the last part padded.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_ZERO_H
#define ACCEL_FRONTENDS_CHECKPOINT_ZERO_H

#include "frontends/Checkpoint/Checkpoint.h"
#include "frontends/Checkpoint/ParamGroups.h"
#include "frontends/Checkpoint/Pickle.h"

#include <map>
#include <utility>

namespace accel::checkpoint {

/// What a file says beside its tensors.
struct ZeroFile {
  enum class Kind { Module, Optimizer, Other };
  using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

  // By its name.
  Kind kind = Kind::Other;
  std::optional<int64_t> rank; // of zero_pp_rank_R
  bool whole = true;           // of one tensor-parallel rank: mp_rank_00

  // Of an optimizer: 1 to 3, ranks a group is cut over, and elements between a
  // parameter of a group and the next one.
  int64_t stage = 0;
  std::vector<int64_t> ranks;
  std::vector<std::vector<int64_t>> paddings;
  /// Their parameters are numbers of the flat weights.
  std::vector<ParamGroup> updates;
  /// Their counts of steps that are no tensors, by the same numbers.
  std::map<std::string, double> counts;

  // Of a module: parameters in the order of the flat weights, by group.
  std::vector<Shapes> groups;
  Shapes frozen;
  std::vector<std::pair<std::string, std::string>> shared; // name, the other's
  std::vector<std::string> buffers;
  std::optional<int64_t> steps; // with those that a loss scale skipped
  int64_t skipped = 0;
  /// Experts that only some ranks hold.
  bool experts = false;
  /// What it holds beside the model and the optimizer: a schedule, and what the
  /// script gave to save_checkpoint (`client_state`). By its meaning.
  std::map<std::string, Beside> beside;

  /// Where the flat weights of an optimizer lie.
  const char *flatKey() const {
    return stage == 3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups";
  }
};

/// Whether DeepSpeed gives such a name to a file with states.
bool isZeroName(std::string_view name);

bool readZero(const std::string &path, Part &part,
              DiagnosticEngine &diagnostics);
/// The same for the bytes of its data.pkl.
bool parseZero(std::string_view bytes, const std::string &path, Part &part,
               DiagnosticEngine &diagnostics);

/// The key of a rank's optimizer in its file.
constexpr std::string_view zeroOptimizerKey = "optimizer_state_dict";

/// Where a file of DeepSpeed lies inside of the checkpoint, a folder a tag:
/// "global_step2"; "." is the checkpoint's own.
std::string zeroFolderOf(const Part &part);
/// Of what an optimizer keeps of a group:
/// {"optimizer_state_dict": {..: {"state": {group: {kind: tensor}}}}}
bool isZeroState(const Tensor &tensor);

/// Whether the files in `folder` (zeroFolderOf) are of one save, as far as they
/// count steps: the optimizers' states of a group, the modules' global_steps.
/// Reports those of several.
bool checkZeroSave(const Checkpoint &read, const std::string &folder,
                   DiagnosticEngine &diagnostics);
/// The same of each tag.
bool checkZeroSaves(const Checkpoint &read, DiagnosticEngine &diagnostics);

/// "ZeRO 2 on 4 ranks", "" where there are no optimizers.
std::string describeZero(const Checkpoint &read);

/// The model's tensors in the files of DeepSpeed, put together from their parts
/// in the flat weights. Of several tags that which `latest` names. `leftOut`
/// grows by the tensors of optimizers. Reports and returns nothing where a rank
/// is missing or the files do not fit together.
std::optional<Part> assembleZero(const Checkpoint &read, int64_t &leftOut,
                                 DiagnosticEngine &diagnostics);

/// What the optimizers of the ranks keep of each parameter.
struct ZeroStates {
  std::map<std::string, Part> kinds;    // by name: "exp_avg"
  std::vector<const Tensor *> steps;    // numbers, in the files
  std::map<std::string, double> counts; // of DeepSpeed's own Adam
  std::optional<int64_t> saved;         // the engine's own count of steps
  int64_t skipped = 0;                  // of them, by a loss scale
  std::vector<ParamGroup> groups;       // by names of parameters
};

/// The same for the states of the optimizers.
std::optional<ZeroStates> assembleZeroStates(const Checkpoint &read,
                                             DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_ZERO_H
