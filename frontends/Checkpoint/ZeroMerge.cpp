//===- ZeroMerge.cpp - Tensors of DeepSpeed's flat weights ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Zero.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t maxTagBytes = 4096;

std::string counted(int64_t n, const std::string &one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

class Assembler {
public:
  Assembler(const Checkpoint &read, int64_t &leftOut,
            DiagnosticEngine &diagnostics)
      : read(read), leftOut(leftOut), diagnostics(diagnostics) {}

  std::optional<Part> weights() {
    if (!chooseFolder() || !takeFiles())
      return std::nullopt;
    restart();
    const bool good = optimizers.empty() ? takeUnpartitioned() : takeFlat("");
    if (!good || !takeFrozen() || !takeModule())
      return std::nullopt;
    return std::move(made);
  }

  std::optional<ZeroStates> states() {
    ZeroStates found;
    if (!chooseFolder() || !takeFiles())
      return std::nullopt;
    std::set<std::string> kinds;
    for (const auto &[rank, part] : optimizers)
      for (const Tensor &tensor : part->tensors)
        if (isZeroState(tensor) && tensor.path.back() == "step")
          found.steps.push_back(&tensor);
        else if (isZeroState(tensor) && rank == 0)
          kinds.insert(tensor.path.back());
    for (const std::string &kind : kinds) {
      restart();
      if (!takeFlat(kind))
        return std::nullopt;
      found.kinds[kind] = std::move(made);
    }
    found.saved = module->zero->steps;
    found.skipped = module->zero->skipped;
    for (const auto &[rank, part] : optimizers)
      found.counts.insert(part->zero->counts.begin(), part->zero->counts.end());
    if (!optimizers.empty())
      for (const ParamGroup &group : optimizers.begin()->second->zero->updates)
        found.groups.push_back(named(group));
    return found;
  }

private:
  bool fail(const std::string &path, const std::string &message,
            const std::string &hint = "save the checkpoint again") {
    diagnostics.error("invalid-checkpoint", path, message, hint);
    return false;
  }
  /// With names in place of numbers of flat weights. DeepSpeed's schedules keep
  /// no rate to begin from, so that `lr` alone is that of the last step.
  ParamGroup named(ParamGroup group) const {
    const auto &groups = module->zero->groups;
    std::vector<std::string> parameters;
    for (size_t i = 0; i < groups.size(); ++i)
      if (std::find(group.params.begin(), group.params.end(),
                    std::to_string(i)) != group.params.end())
        for (const auto &[name, shape] : groups[i])
          parameters.push_back(name);
    group.params = std::move(parameters);
    group.values.erase("lr");
    return group;
  }
  bool refuse(const std::string &message, const std::string &hint) {
    diagnostics.error("not-supported",
                      (fs::path(read.folder) / folder).string(), message, hint);
    return false;
  }
  std::string pathOf(const Part &part) const {
    return (fs::path(read.folder) / part.path).string();
  }

  void restart() {
    made = Part();
    made.path = folder;
    made.format = PartFormat::TorchSave;
    made.meaning = "put together from flat weights";
    names.clear();
    flats.clear();
  }

  //===--------------------------------------------------------------------===//
  // Files
  //===--------------------------------------------------------------------===//

  /// The tag's: of several that which DeepSpeed would load.
  bool chooseFolder() {
    std::set<std::string> folders;
    for (const Part &part : read.parts)
      if (part.zero)
        folders.insert(zeroFolderOf(part));
    folder = *folders.begin();
    const std::string path = (fs::path(read.folder) / "latest").string();
    std::error_code failed;
    if (fs::is_regular_file(path, failed)) {
      std::string tag, error;
      if (!yaml::readWholeFile(path, maxTagBytes, tag, error))
        return fail(path, error);
      tag.erase(std::find_if(tag.begin(), tag.end(),
                             [](char c) { return c == '\n' || c == '\r'; }),
                tag.end());
      if (!folders.count(tag))
        return fail(path,
                    "names '" + printable(tag) +
                        "', a folder that has no states of DeepSpeed",
                    "copy that folder, or merge the folder of another tag");
      folder = tag;
    } else if (folders.size() > 1) {
      return refuse("holds " + std::to_string(folders.size()) +
                        " tags of DeepSpeed, and no file 'latest' that names "
                        "one",
                    "merge the folder of one: " +
                        printablePath(*folders.rbegin()));
    }
    return true;
  }

  bool takeFiles() {
    for (const Part &part : read.parts) {
      if (!part.zero || zeroFolderOf(part) != folder)
        continue;
      const ZeroFile &file = *part.zero;
      if (file.kind == ZeroFile::Kind::Other)
        return refuse(printablePath(part.path) +
                          " is of a layer or an expert: pipeline stages and "
                          "experts are not merged",
                      "DeepSpeed's ds_to_universal.py reads them");
      if (!file.whole)
        return refuse("its files are of several tensor-parallel ranks, and "
                      "say not how those cut parameters",
                      "DeepSpeed's ds_to_universal.py reads them");
      if (file.experts)
        return refuse("experts that only some ranks hold are not merged",
                      "DeepSpeed's ds_to_universal.py reads them");
      auto &files =
          file.kind == ZeroFile::Kind::Optimizer ? optimizers : modules;
      if (!files.emplace(file.rank.value_or(-1), &part).second)
        return fail(pathOf(part), "another file is of the same rank",
                    "keep the files of one save");
    }
    if (modules.empty())
      return fail((fs::path(read.folder) / folder).string(),
                  "the states of the module are missing: "
                  "*_model_states.pt",
                  "copy them from rank 0");
    module = modules.begin()->second;
    if (!optimizers.empty() && !takeRanks())
      return false;
    // ZeRO 1 and 2 keep one, ZeRO 3 one a rank.
    const bool good = stage == 3
                          ? modules.begin()->first == 0
                          : modules.size() == 1 && modules.begin()->first == -1;
    if (!good)
      return fail(pathOf(*module),
                  "is not what ZeRO " + std::to_string(stage) +
                      " saves of a module, or another file is missing",
                  "copy the *_model_states.pt of all ranks, of one save");
    return checkZeroSave(read, folder, diagnostics);
  }

  bool takeRanks() {
    stage = optimizers.begin()->second->zero->stage;
    ranks = int64_t(optimizers.size());
    for (const auto &[rank, part] : optimizers) {
      const ZeroFile &file = *part->zero;
      if (file.stage != stage)
        return fail(pathOf(*part), "is of ZeRO " + std::to_string(file.stage) +
                                       ", and others are of ZeRO " +
                                       std::to_string(stage));
      for (int64_t count : file.ranks)
        if (count != ranks)
          return fail(pathOf(*part),
                      "the weights are cut over " + counted(count, "rank") +
                          ", and " + counted(ranks, "file") +
                          " of optimizers are here",
                      "copy the files of all ranks, of one save");
    }
    if (optimizers.rbegin()->first != ranks - 1)
      return fail(pathOf(*optimizers.rbegin()->second),
                  "the file of a rank before it is missing",
                  "copy the files of all ranks");
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Flat weights
  //===--------------------------------------------------------------------===//

  /// Elements of a tensor that the flat weights of a rank, or a group, have.
  struct Segment {
    const Part *part;
    const Tensor *tensor;
    int64_t begin; // where its first element stands
    int64_t elements;
  };
  using Flat = std::vector<Segment>;

  static int64_t endOf(const Flat &flat) {
    return flat.empty() ? 0 : flat.back().begin + flat.back().elements;
  }
  bool append(Flat &flat, const Part &part, const Tensor &tensor) {
    if (tensor.shape.size() != 1 || tensor.pieces.size() != 1)
      return fail(pathOf(part),
                  "'" + printable(tensor.name) + "' is no flat tensor");
    if (!flat.empty() && flat.front().tensor->dtype != tensor.dtype)
      return fail(pathOf(part), "'" + printable(tensor.name) + "' is " +
                                    tensor.dtype + ", and before it stand " +
                                    flat.front().tensor->dtype);
    const int64_t begin = endOf(flat);
    int64_t end;
    if (__builtin_add_overflow(begin, tensor.shape[0], &end))
      return fail(pathOf(part), "the flat weights are too large");
    flat.push_back({&part, &tensor, begin, tensor.shape[0]});
    return true;
  }

  /// Whether the tensor is a part of the flat weights or, with a kind, of what
  /// the optimizer keeps of them.
  static bool isFlat(const Part &part, const Tensor &tensor,
                     const std::string &kind) {
    if (!kind.empty())
      return isZeroState(tensor) && tensor.path.back() == kind;
    return tensor.path.size() == 2 && tensor.path[0] == zeroOptimizerKey &&
           tensor.path[1] == part.zero->flatKey();
  }

  bool takeFlat(const std::string &kind) {
    return takeGroups(kind) &&
           (stage == 3 ? takeCutParameters() : takeCutGroups());
  }

  /// The flat tensors: of ZeRO 3 those of each rank, else of each group.
  bool takeGroups(const std::string &kind) {
    flats.resize(stage == 3 ? size_t(ranks) : 0);
    for (const auto &[rank, part] : optimizers) {
      size_t group = 0;
      for (const Tensor &tensor : part->tensors) {
        if (!isFlat(*part, tensor, kind)) {
          leftOut += kind.empty();
          continue;
        }
        if (!kind.empty() && tensor.path[3] != std::to_string(group))
          return fail(pathOf(*part), "'" + printable(tensor.name) +
                                         "' is not in the order of groups");
        if (stage != 3 && rank == 0)
          flats.emplace_back();
        const size_t at = stage == 3 ? size_t(rank) : group;
        ++group;
        if (at >= flats.size())
          return fail(pathOf(*part), "has more groups of parameters than "
                                     "rank 0");
        if (!append(flats[at], *part, tensor))
          return false;
      }
      if (group == 0)
        return fail(pathOf(*part),
                    std::string("has no '") +
                        (kind.empty() ? part->zero->flatKey() : kind.c_str()) +
                        "' of the flat weights",
                    "take a checkpoint that was saved with them");
      if (stage != 3 && group != flats.size())
        return fail(pathOf(*part),
                    "has fewer groups of parameters than rank 0");
    }
    return true;
  }

  /// Adds elements [from, from + count) of `flat` to `tensor` as those from
  /// `at` on. They are there.
  static void addPieces(const Flat &flat, int64_t from, int64_t count,
                        Tensor &tensor, int64_t at, int64_t elements) {
    auto it = std::upper_bound(
        flat.begin(), flat.end(), from,
        [](int64_t place, const Segment &s) { return place < s.begin; });
    if (it != flat.begin())
      --it;
    for (; count > 0 && it != flat.end(); ++it) {
      const int64_t inside = from - it->begin;
      const int64_t n = std::min(count, it->elements - inside);
      if (n <= 0)
        continue;
      Piece piece = it->tensor->pieces.front();
      piece.entryBegin += inside * elementBytes(tensor.dtype);
      piece.view = {elements};
      piece.offsets = {at};
      piece.sizes = {n};
      tensor.pieces.push_back(std::move(piece));
      from += n;
      at += n;
      count -= n;
    }
  }

  /// A tensor without pieces; its number of elements.
  bool begin(const std::string &name, const std::vector<int64_t> &shape,
             const std::string &dtype, Tensor &tensor, int64_t &elements) {
    tensor.name = name;
    tensor.path = {name};
    tensor.dtype = dtype;
    tensor.shape = shape;
    elements = 1;
    for (int64_t size : shape)
      if (__builtin_mul_overflow(elements, size, &elements))
        return fail(pathOf(*module), "'" + printable(name) + "' has no shape");
    return !__builtin_mul_overflow(elements, elementBytes(dtype),
                                   &tensor.bytes) ||
           fail(pathOf(*module), "'" + printable(name) + "' is too large");
  }
  void finish(Tensor tensor) {
    tensor.shards = std::max<int64_t>(1, int64_t(tensor.pieces.size()));
    names.insert(tensor.name);
    made.tensors.push_back(std::move(tensor));
  }

  bool tooFew(const std::string &name) {
    return fail(pathOf(*module),
                "the flat weights end inside of '" + printable(name) + "'",
                "keep the files of one save; weights that were moved to an "
                "NVMe are in no file");
  }

  /// ZeRO 1 and 2: the parameters of a group stand behind each other, and the
  /// ranks' parts too.
  bool takeCutGroups() {
    const std::vector<ZeroFile::Shapes> &groups = module->zero->groups;
    const auto &paddings = optimizers.begin()->second->zero->paddings;
    if (groups.size() != flats.size())
      return fail(pathOf(*module),
                  "has " + counted(int64_t(groups.size()), "group") +
                      " of parameters, and the optimizer " +
                      std::to_string(flats.size()));
    for (size_t g = 0; g < groups.size(); ++g) {
      const bool padded = g < paddings.size();
      if (padded && paddings[g].size() != groups[g].size())
        return fail(pathOf(*module),
                    "param_alignment_paddings does not fit param_shapes");
      const int64_t all = endOf(flats[g]);
      int64_t at = 0;
      for (size_t i = 0; i < groups[g].size(); ++i) {
        const auto &[name, shape] = groups[g][i];
        Tensor tensor;
        int64_t elements;
        if (!begin(name, shape, flats[g].front().tensor->dtype, tensor,
                   elements))
          return false;
        if (elements > all - at)
          return tooFew(name);
        addPieces(flats[g], at, elements, tensor, 0, elements);
        at += elements;
        if (padded && __builtin_add_overflow(at, paddings[g][i], &at))
          return tooFew(name);
        finish(std::move(tensor));
      }
      // The whole is padded to two elements a rank; DeepSpeed leaves some of
      // the padding away.
      const int64_t step = 2 * ranks, beyond = (step - at % step) % step;
      if (all - at > beyond)
        return fail(pathOf(*module),
                    "the parameters of group " + std::to_string(g) + " have " +
                        counted(at, "element") + ", and the flat weights " +
                        std::to_string(all),
                    "keep the files of one save");
    }
    return true;
  }

  /// ZeRO 3: each rank has an equal part of each parameter.
  bool takeCutParameters() {
    for (const Flat &flat : flats)
      if (endOf(flat) != endOf(flats[0]))
        return fail(pathOf(*flat.front().part),
                    "has " + counted(endOf(flat), "element") +
                        " of flat weights, and rank 0 " +
                        std::to_string(endOf(flats[0])),
                    "keep the files of one save");
    int64_t at = 0;
    for (const ZeroFile::Shapes &group : module->zero->groups)
      for (const auto &[name, shape] : group) {
        Tensor tensor;
        int64_t elements;
        if (!begin(name, shape, flats[0].front().tensor->dtype, tensor,
                   elements))
          return false;
        const int64_t part = elements / ranks + (elements % ranks != 0);
        if (part > endOf(flats[0]) - at)
          return tooFew(name);
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const int64_t from = std::min(elements, rank * part);
          addPieces(flats[size_t(rank)], at, std::min(part, elements - from),
                    tensor, from, elements);
        }
        at += part;
        finish(std::move(tensor));
      }
    return at == endOf(flats[0]) ||
           fail(pathOf(*module),
                "the parameters have " + counted(at, "element") +
                    " on a rank, and its flat weights " +
                    std::to_string(endOf(flats[0])),
                "keep the files of one save");
  }

  //===--------------------------------------------------------------------===//
  // The module's own tensors
  //===--------------------------------------------------------------------===//

  const Tensor *find(const Part &part, const std::string &key,
                     const std::string &name) {
    auto &table = tables[{&part, key}];
    if (table.empty())
      for (const Tensor &tensor : part.tensors)
        if (tensor.path.size() == 2 && tensor.path[0] == key)
          table.emplace(tensor.path[1], &tensor);
    auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
  }
  void copy(const Tensor &from, const std::string &name) {
    Tensor tensor = from;
    tensor.name = name;
    tensor.path = {name};
    finish(std::move(tensor));
  }

  /// Without ZeRO the module's states are whole.
  bool takeUnpartitioned() {
    return module->zero->groups.empty() ||
           fail(pathOf(*module),
                "the files of the ranks' optimizers are missing, which hold "
                "the weights: *_optim_states.pt",
                "copy them from the ranks' own disks");
  }

  bool takeFrozen() {
    const std::string key = "frozen_param_fragments";
    if (stage == 3 && !module->zero->frozen.empty() &&
        int64_t(modules.size()) != ranks)
      return fail(pathOf(*module),
                  "the module's states of " +
                      counted(ranks - int64_t(modules.size()), "rank") +
                      " are missing, with parts of frozen parameters",
                  "copy the *_model_states.pt of all ranks");
    for (const auto &[name, shape] : module->zero->frozen) {
      const Tensor *first = find(*module, key, name);
      if (!first)
        return fail(pathOf(*module), "the frozen parameter '" +
                                         printable(name) + "' is missing");
      if (stage != 3) {
        if (first->shape != shape)
          return fail(pathOf(*module), "the frozen parameter '" +
                                           printable(name) +
                                           "' has another shape");
        copy(*first, name);
        continue;
      }
      Tensor tensor;
      int64_t elements;
      if (!begin(name, shape, first->dtype, tensor, elements))
        return false;
      const int64_t part = elements / ranks + (elements % ranks != 0);
      Flat flat;
      for (const auto &[rank, states] : modules) {
        const Tensor *own = find(*states, key, name);
        if (!own || !append(flat, *states, *own))
          return own ||
                 fail(pathOf(*states), "the frozen parameter '" +
                                           printable(name) + "' is missing");
        if (own->shape[0] != part)
          return fail(pathOf(*states),
                      "of the frozen parameter '" + printable(name) +
                          "' it has " + counted(own->shape[0], "element") +
                          ", and " + std::to_string(part) + " are its part");
      }
      addPieces(flat, 0, elements, tensor, 0, elements);
      finish(std::move(tensor));
    }
    return true;
  }

  /// Buffers; other names of shared parameters; of ZeRO 1 and 2, which keep the
  /// module whole, what no optimizer and no list of frozen parameters has.
  bool takeModule() {
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < made.tensors.size(); ++i)
      places.emplace(made.tensors[i].name, i);
    for (const auto &[name, other] : module->zero->shared)
      if (auto found = places.find(other);
          found != places.end() && !names.count(name))
        copy(Tensor(made.tensors[found->second]), name);
    const std::set<std::string> buffers(module->zero->buffers.begin(),
                                        module->zero->buffers.end());
    for (const Tensor &tensor : module->tensors) {
      const std::vector<std::string> &path = tensor.path;
      if (path.size() != 2 || path[0] != "module") {
        leftOut += !path.empty() && path[0] == "optimizer";
        continue;
      }
      // ZeRO 3 leaves a parameter's place empty.
      const bool empty = stage == 3 && tensor.bytes == 0;
      if (!names.count(path[1]) && (!empty || buffers.count(path[1])))
        copy(tensor, path[1]);
    }
    return true;
  }

  const Checkpoint &read;
  int64_t &leftOut;
  DiagnosticEngine &diagnostics;
  std::string folder; // inside of the checkpoint
  std::map<int64_t, const Part *> optimizers, modules; // by rank
  const Part *module = nullptr;                        // of rank 0
  int64_t stage = 0, ranks = 0;
  std::vector<Flat> flats;
  std::map<std::pair<const Part *, std::string>,
           std::map<std::string, const Tensor *>>
      tables;
  std::set<std::string> names; // of what is made
  Part made;
};

} // namespace

std::optional<Part> assembleZero(const Checkpoint &read, int64_t &leftOut,
                                 DiagnosticEngine &diagnostics) {
  return Assembler(read, leftOut, diagnostics).weights();
}

std::optional<ZeroStates> assembleZeroStates(const Checkpoint &read,
                                             DiagnosticEngine &diagnostics) {
  int64_t leftOut = 0;
  return Assembler(read, leftOut, diagnostics).states();
}

} // namespace accel::checkpoint
