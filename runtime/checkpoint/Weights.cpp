//===- Weights.cpp - Starting from safetensors ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Weights.h"

#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Pt2.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Sha256.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>

namespace accel::run {

namespace {

constexpr int64_t chunkElements = int64_t(1) << 21;
constexpr size_t namesShown = 5;
/// Of each weight file's samples that tell it from another.
constexpr int64_t pieceBytes = 4096, piecesHashed = 16;

std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < namesShown; ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > namesShown)
    text += " and " + std::to_string(names.size() - namesShown) + " more";
  return text;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// The names of a whole parameter in the files: in an adapter's, which is
/// preferred, and in the model's.
std::vector<std::string> wholeNames(const plan::Parameter &p) {
  std::vector<std::string> names;
  if (!p.adapterKey.empty())
    names.push_back(p.adapterKey);
  if (p.baseNames.empty())
    names.push_back(p.fqn);
  const auto &others = p.baseNames.empty() ? p.aliases : p.baseNames;
  std::copy_if(others.begin(), others.end(), std::back_inserter(names),
               [](const std::string &name) { return !name.empty(); });
  return names;
}

/// A head's that the model's files lack: an empty name says so.
bool maybeAbsent(const plan::Parameter &p) {
  return !p.baseNames.empty() && p.baseNames.front().empty();
}

/// Only an adapter's weight file has it.
bool isAdapters(const plan::Parameter &p) {
  return !p.adapterKey.empty() && p.baseNames.empty();
}

/// Where each parameter is in the files.
class Source {
public:
  Source(const plan::Plan &plan, const std::vector<std::string> &paths,
         std::vector<std::string> &warnings);
  bool has(int parameter) const { return !places[parameter].empty(); }
  /// Elements [begin, begin + count) of a parameter, into flat[at...].
  void read(int parameter, int64_t begin, int64_t count, const at::Tensor &flat,
            int64_t at) const;
  /// Of where which tensor is, and of samples of what the files hold: the same
  /// on ranks that see the same files. Throws FileError.
  double fingerprint() const;

private:
  struct Found {
    const File *file = nullptr;
    StoredTensor tensor;
    int64_t begin = 0; // its first element's place in the parameter
  };
  /// Where `p` is; names what is not there in `missing`.
  std::vector<Found> find(const plan::Parameter &p,
                          std::vector<std::string> &missing);
  static void checkShape(const Found &found, const std::vector<int64_t> &shape);

  std::vector<std::unique_ptr<File>> files;
  std::map<std::string, Found> stored; // all tensors of the files
  std::set<std::string> used;
  std::vector<std::vector<Found>> places; // by parameter, then by `begin`
};

void Source::read(int parameter, int64_t begin, int64_t count,
                  const at::Tensor &flat, int64_t at) const {
  for (const Found &found : places[parameter]) {
    const int64_t from = std::max(begin, found.begin);
    const int64_t to =
        std::min(begin + count, found.begin + found.tensor.numel());
    if (from < to)
      readElements(*found.file,
                   found.tensor.offset + (from - found.begin) *
                                             plan::itemSize(found.tensor.dtype),
                   found.tensor.dtype, flat, at + from - begin, to - from);
  }
}

void Source::checkShape(const Found &found, const std::vector<int64_t> &shape) {
  if (found.tensor.shape != shape)
    throw FileError(found.file->path() + ": tensor '" + found.tensor.name +
                    "' is " + shapeText(found.tensor.shape) +
                    ", and the model's is " + shapeText(shape));
}

std::vector<Source::Found> Source::find(const plan::Parameter &p,
                                        std::vector<std::string> &missing) {
  const std::vector<std::string> names = wholeNames(p);
  used.insert(names.begin(), names.end());
  for (const std::string &name : names)
    if (auto at = stored.find(name); at != stored.end()) {
      checkShape(at->second, p.shape);
      return {at->second};
    }
  if (maybeAbsent(p))
    return {};
  // As transformers stores it: in parts, or under another name.
  const auto stands = plan::storedParts(
      p.baseNames.empty() ? p.fqn : p.baseNames.front(), p.stored, p.shape);
  std::vector<Found> parts;
  for (const plan::StoredPart &part : stands.value()) {
    used.insert(part.name);
    auto at = stored.find(part.name);
    if (at == stored.end()) {
      missing.push_back(part.name);
      continue;
    }
    checkShape(at->second, part.shape);
    parts.push_back(at->second);
    parts.back().begin = part.begin;
  }
  return parts;
}

Source::Source(const plan::Plan &plan, const std::vector<std::string> &paths,
               std::vector<std::string> &warnings) {
  for (const std::string &path : paths) {
    files.push_back(std::make_unique<File>(path, File::Mode::Read));
    for (StoredTensor &tensor : readTensors(*files.back())) {
      std::string name = tensor.name;
      stored[name] = {files.back().get(), std::move(tensor), 0};
    }
  }
  std::vector<std::string> missing, fresh;
  bool trained = false; // the adapter, in its file
  for (const plan::Parameter &p : plan.parameters) {
    places.push_back(find(p, isAdapters(p) ? fresh : missing));
    trained |= isAdapters(p) && !places.back().empty();
  }
  if (trained)
    missing.insert(missing.end(), fresh.begin(), fresh.end());
  if (!missing.empty())
    throw FileError((paths.empty() ? "" : paths.front() + ": ") +
                    std::string("the weight files lack ") +
                    std::to_string(missing.size()) +
                    " of the model's tensors: " + listed(missing));
  std::set<std::string> buffers;
  for (const plan::Buffer &buffer : plan.buffers)
    buffers.insert(buffer.fqn);
  std::vector<std::string> surplus;
  for (const auto &[name, found] : stored)
    if (!used.count(name) && !buffers.count(name))
      surplus.push_back(name);
  if (!surplus.empty())
    warnings.push_back("the model has no parameter for " + listed(surplus) +
                       " of the weight files; not loaded");
}

double Source::fingerprint() const {
  plan::Sha256 digest;
  auto add = [&](const std::string &text) { digest.update(text + "\n"); };
  std::string piece;
  for (const auto &file : files) {
    const int64_t size = file->size();
    add(std::to_string(size));
    // From the first bytes to the last: whole files take as long to read as
    // the weights themselves.
    const int64_t last = std::max<int64_t>(size - pieceBytes, 0);
    for (int64_t i = 0; i < piecesHashed; ++i) {
      const int64_t at = last * i / (piecesHashed - 1);
      piece.resize(std::min(pieceBytes, size - at));
      file->readAt(at, piece.data(), static_cast<int64_t>(piece.size()));
      digest.update(piece);
    }
  }
  for (const auto &[name, found] : stored) {
    add(name);
    add(std::to_string(found.tensor.offset));
    for (int64_t size : found.tensor.shape)
      add(std::to_string(size));
  }
  // 52 bits, which a double holds.
  return static_cast<double>(
      std::stoull(digest.hexDigest().substr(0, 13), nullptr, 16));
}

/// Whether all ranks see the same weight files, so that each can read what it
/// holds: 70 billion parameters through one rank's network take hours. `own` is
/// the fingerprint of this rank's files, or negative without them.
bool everyoneHas(Groups &groups, double own) {
  for (double other : groups.gather({own}))
    if (other != own || own < 0)
      return groups.size() == 1;
  return true;
}

} // namespace

std::vector<bool> loadWeights(Executor &executor,
                              const std::vector<std::string> &files,
                              std::vector<std::string> &warnings) {
  const plan::Plan &plan = executor.plan();
  Groups &groups = executor.groups();
  std::unique_ptr<Source> source;
  double fingerprint = -1;
  if (groups.rank() == 0) {
    source = std::make_unique<Source>(plan, files, warnings);
    fingerprint = source->fingerprint();
  } else {
    try {
      std::vector<std::string> alike; // rank 0 says them
      source = std::make_unique<Source>(plan, files, alike);
      fingerprint = source->fingerprint();
    } catch (const FileError &) {
      // Not every machine has the files: rank 0 sends what it reads.
    }
  }
  Communicator *world = groups.world();
  if (everyoneHas(groups, fingerprint)) {
    world = nullptr;
  } else if (groups.rank() != 0) {
    source.reset();
  }
  // Rank 0 tells which parameters the files lack.
  std::vector<uint8_t> flags(plan.parameters.size());
  for (size_t i = 0; source && i < flags.size(); ++i)
    flags[i] = !source->has(static_cast<int>(i));
  at::Tensor all =
      at::from_blob(flags.data(), {static_cast<int64_t>(flags.size())},
                    at::TensorOptions(at::ScalarType::Byte));
  if (world && !flags.empty())
    world->broadcast(all, 0).wait();
  const std::vector<bool> absent(flags.begin(), flags.end());
  std::vector<char> memory;
  const Executor::Holding holding(executor);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    UnitStorage *own = executor.holds(static_cast<int>(u))
                           ? &executor.unit(static_cast<int>(u))
                           : nullptr;
    if (!own && !world)
      continue;
    if (own)
      executor.hold(static_cast<int>(u), /*changes=*/true);
    const plan::Unit &unit = plan.units[u];
    const std::vector<std::string> inside = axesOfParts(plan, unit);
    const int position = groups.mesh().position(inside);
    const std::vector<int> holders =
        world ? Mesh(plan, 0).members(inside) : std::vector<int>{groups.rank()};
    const int64_t ownBegin = own ? own->shardBegin() : 0;
    const int64_t ownEnd = own ? own->shardEnd() : 0;
    const plan::DType dtype = unit.storage;
    memory.resize(chunkElements * plan::itemSize(dtype));
    // Of what is sent every rank sees all; what it reads itself is its own.
    const int64_t first = world ? 0 : ownBegin;
    const int64_t last = world ? unit.padded : ownEnd;
    for (int64_t from = first; from < last; from += chunkElements) {
      const int64_t to = std::min(from + chunkElements, last);
      at::Tensor chunk = at::from_blob(memory.data(), {to - from},
                                       at::TensorOptions(scalarType(dtype)));
      for (int holder : holders) {
        const Mesh place(plan, holder);
        if (source) {
          chunk.zero_();
          for (const Piece &piece : piecesOf(plan, unit, from, to, place))
            if (source->has(piece.parameter))
              source->read(piece.parameter, piece.begin,
                           piece.end - piece.begin, chunk, piece.offset);
        }
        if (world)
          world->broadcast(chunk, 0).wait();
        const int64_t begin = std::max(from, ownBegin);
        const int64_t end = std::min(to, ownEnd);
        if (begin < end && place.position(inside) == position)
          own->shard()
              .narrow(0, begin - ownBegin, end - begin)
              .copy_(chunk.narrow(0, begin - from, end - begin));
      }
    }
  }
  return absent;
}

} // namespace accel::run
