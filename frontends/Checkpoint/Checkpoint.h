//===- Checkpoint.h - What a checkpoint folder is ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Says what a folder holds from names, headers and metadata: of tensors counts
// of steps alone are read, and no pickle is run.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_CHECKPOINT_H
#define ACCEL_FRONTENDS_CHECKPOINT_CHECKPOINT_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accel::checkpoint {

/// A box of a tensor, row by row, and the bytes that hold it.
struct Piece {
  std::string file;   // absolute, or from the working directory
  int64_t begin = 0;  // in the file
  int64_t length = 0; // 0: to the file's end
  /// The bytes are an entry of the zip that torch.save wrote there: found in
  /// its pickle, where this is empty.
  bool zip = false;
  std::string entry;
  int64_t entryBegin = 0;
  bool contiguous = true;
  /// Something that is not known was done to the bytes (compression).
  bool transformed = false;
  std::vector<int64_t> offsets, sizes;
  /// The shape that offsets and sizes count in, where it is not the tensor's:
  /// its elements in one row, or in rows that runs of a shard are columns of.
  std::vector<int64_t> view;
};

struct Tensor {
  std::string name;
  /// The keys of the dictionaries that it lies in, the outermost first.
  std::vector<std::string> path;
  std::string dtype; // as torch spells it: "float32"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t shards = 1;
  std::vector<Piece> pieces; // cover it
  /// Of what an optimizer keeps: where in `path` its "state" or "param_groups"
  /// stands.
  std::optional<size_t> optimizer;
  /// It lies among an optimizer's states and has a kind that is not known.
  bool unsure = false;
};

/// How a file or folder holds its tensors. ByName: it is known by its name and
/// was not read.
enum class PartFormat { ByName, Safetensors, TorchDcp, TorchSave };
const char *toString(PartFormat format); // "by-name"

/// Whose a folder is.
enum class FolderFormat {
  AccelRun,    // one checkpoint
  AccelRunOut, // a run's folder, with its checkpoints
  Accelerate,
  Deepspeed,
  HuggingFace,
  Safetensors,
  TorchDcp,
  TorchSave,
  Trainer
};
const char *toString(FolderFormat format); // "accel-run"

/// What lies beside weights and an optimizer, as a file's name says.
enum class Beside {
  Nothing,
  RandomStates,
  Schedule,
  Sampler,
  Script,
  Scaler,
  Tag
};

struct ZeroFile; // Zero.h

/// A file that cannot be read from some byte on. It is an error where that is
/// to be read.
struct Damage {
  std::string file;
  int64_t bytes = 0; // that are there
  Diagnostic what;
};

/// One file or folder of the checkpoint.
struct Part {
  std::string path; // inside of the checkpoint; "." is the whole
  PartFormat format = PartFormat::ByName;
  std::string meaning;
  Beside beside = Beside::Nothing;
  int64_t bytes = 0; // on the disk
  std::vector<Tensor> tensors;
  int64_t objects = 0; // values that are no tensors
  /// Names and paths of these, where a .metadata says them.
  std::vector<Tensor> values;
  /// Paths of values that an optimizer's groups hold.
  std::vector<std::vector<std::string>> groups;
  std::vector<Damage> damage;
  int64_t files = 1;
  std::shared_ptr<const ZeroFile> zero; // of a file of DeepSpeed
  bool runShard = false;                // of accel-run
  bool unfinished = false;              // such a shard without its state.json
  /// What weights are that others of the checkpoint stand before; "": they are
  /// read.
  std::string unread;
  /// The folder that it lies in where a model beside that folder is read in its
  /// place: "checkpoint-5" of a Trainer.
  std::string apart;
};

/// Of torch's GradScaler.
struct LossScale {
  double scale = 65536;
  int64_t goodSteps = 0; // since it last changed
};

struct Checkpoint {
  std::string folder;
  FolderFormat format = FolderFormat::TorchSave;
  std::string meaning;
  std::optional<int64_t> step;
  std::string run;
  std::vector<Part> parts;
};

/// What a checkpoint is read for: only the files of that must be sound.
enum class Wanted {
  Everything,
  Training, // weights, an optimizer and what lies beside: what goes on
  Weights
};

/// Reports damaged files and returns nothing where one is wanted, or where the
/// folder is no checkpoint that accel-opt knows. Where everything is wanted,
/// DeepSpeed's files of several saves are reported too, and returned.
std::optional<Checkpoint> readCheckpoint(const std::string &folder,
                                         Wanted wanted,
                                         DiagnosticEngine &diagnostics);

/// A folder of torch.distributed.checkpoint: its .metadata, each shard's place
/// checked against the files, whose damage becomes the part's. Shards must
/// cover their tensor.
bool readDcp(const std::string &folder, Part &part,
             DiagnosticEngine &diagnostics);
/// The same for the bytes of a .metadata; files are not looked at.
bool parseDcpMetadata(std::string_view bytes, const std::string &path,
                      const std::string &folder, bool lookAtFiles, Part &part,
                      DiagnosticEngine &diagnostics);

/// A file of torch.save: tensors in nested dictionaries and lists.
bool readTorchSave(const std::string &path, Part &part,
                   DiagnosticEngine &diagnostics);
/// The same for the bytes of its data.pkl.
bool parseTorchSave(std::string_view bytes, const std::string &path, Part &part,
                    DiagnosticEngine &diagnostics);

/// torch's name of a safetensors dtype ("F32" is "float32"), and the reverse;
/// "" where there is none.
std::string_view torchDtypeOf(std::string_view stored);
std::string_view storedDtypeOf(std::string_view torch);
/// What a message says of a dtype that storedDtypeOf has no name for:
/// "complex128, which safetensors cannot hold".
std::string whyNotStored(std::string_view dtype);
/// Whether accel-run reads tensors of this dtype from its checkpoints.
bool isRunDtype(std::string_view torch);

/// Bytes of an element of torch's dtype ("float32"), 0 for an unknown one.
int64_t elementBytes(std::string_view dtype);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_CHECKPOINT_H
